//! The commands behind `:`.
//!
//! In: a typed line. Out: a [`Command`], or a sentence about what is wrong; and candidates for Tab. It leaves carrying out to
//! `update`.

use super::theme::Palette;

/// What a command takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Argument {
    /// Nothing.
    None,
    /// A path.
    Path,
    /// Any text.
    Text,
    /// A rank.
    Rank,
    /// A kind of evidence.
    Kind,
    /// A palette.
    Palette,
}

/// A row of the list of commands.
#[derive(Debug)]
pub struct Usage {
    /// Its name.
    pub name: &'static str,
    /// Name and argument, as the help shows them.
    pub usage: &'static str,
    /// What it takes.
    pub argument: Argument,
    /// What it does.
    pub help: &'static str,
}

const fn usage(name: &'static str, usage: &'static str, argument: Argument, help: &'static str) -> Usage {
    Usage { name, usage, argument, help }
}

/// Every command.
pub static COMMANDS: &[Usage] = &[
    usage("open", "open PATH", Argument::Path, "open another incident: a file, a folder, a pattern"),
    usage("add", "add PATH", Argument::Path, "add an input to this incident"),
    usage("again", "again", Argument::None, "read the inputs once more"),
    usage("follow", "follow", Argument::None, "follow the inputs as they grow, or stop it"),
    usage("search", "search REGEX", Argument::Text, "search the log, as / does"),
    usage("only", "only REGEX", Argument::Text, "show only lines that match"),
    usage("hide", "hide REGEX", Argument::Text, "show only lines that don't match"),
    usage("rank", "rank N", Argument::Rank, "show only lines of this rank"),
    usage("kind", "kind NAME", Argument::Kind, "show only evidence of this kind"),
    usage("all", "all", Argument::None, "show all lines"),
    usage("goto", "goto LINE", Argument::Text, "go to a line; :120 is short for it"),
    usage("wrap", "wrap", Argument::None, "wrap long lines, or cut them"),
    usage("save", "save FILE", Argument::Path, "save the pasted text"),
    usage("export", "export FILE", Argument::Path, "write the report: .md, .html, .json, else text"),
    usage("theme", "theme NAME", Argument::Palette, "dark, light or mono"),
    usage("help", "help", Argument::None, "the keys"),
    usage("quit", "quit", Argument::None, "leave (:q too)"),
];

/// A command to carry out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Open another incident.
    Open(String),
    /// Add an input.
    Add(String),
    /// Read once more.
    Again,
    /// Follow, or not.
    Follow,
    /// Search.
    Search(String),
    /// Show only matching lines, or only others.
    Only {
        /// The pattern.
        pattern: String,
        /// Whether matching lines are hidden instead.
        invert: bool,
    },
    /// Show only a rank.
    Rank(u32),
    /// Show only a kind.
    Kind(String),
    /// Show all lines.
    All,
    /// Go to a line.
    Goto(u64),
    /// Wrap, or not.
    Wrap,
    /// Save the paste.
    Save(String),
    /// Write the report.
    Export(String),
    /// Change colours.
    Theme(Palette),
    /// Show the help.
    Help,
    /// Leave.
    Quit,
}

/// Reads a command. A name may be cut where that is unambiguous.
///
/// # Errors
/// A sentence for the bottom line.
pub fn parse(line: &str) -> Result<Command, String> {
    let line = line.trim();
    if let Ok(number) = line.parse() {
        return Ok(Command::Goto(number));
    }
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let usage = find(word)?;
    if usage.argument != Argument::None && rest.is_empty() {
        return Err(format!("write :{}", usage.usage));
    }
    let text = rest.to_owned();
    Ok(match usage.name {
        "open" => Command::Open(text),
        "add" => Command::Add(text),
        "again" => Command::Again,
        "follow" => Command::Follow,
        "search" => Command::Search(text),
        "only" => Command::Only { pattern: text, invert: false },
        "hide" => Command::Only { pattern: text, invert: true },
        "rank" => Command::Rank(rest.parse().map_err(|_| format!("no rank is called {rest}"))?),
        "kind" => Command::Kind(text),
        "all" => Command::All,
        "goto" => Command::Goto(rest.parse().map_err(|_| format!("{rest} is no line number"))?),
        "wrap" => Command::Wrap,
        "save" => Command::Save(text),
        "export" => Command::Export(text),
        "theme" => {
            Command::Theme(Palette::from_name(rest).ok_or_else(|| "themes: dark, light, mono".to_owned())?)
        }
        "help" => Command::Help,
        _ => Command::Quit,
    })
}

fn find(word: &str) -> Result<&'static Usage, String> {
    if let Some(exact) = COMMANDS.iter().find(|usage| usage.name == word) {
        return Ok(exact);
    }
    let mut cut = COMMANDS.iter().filter(|usage| !word.is_empty() && usage.name.starts_with(word));
    match (cut.next(), cut.next()) {
        (Some(only), None) => Ok(only),
        (Some(a), Some(b)) => Err(format!("{word} could be {} or {}", a.name, b.name)),
        (None, _) => Err(format!("no command is called {word}; ? lists them")),
    }
}

/// What Tab offers for a line, as whole lines. `None` where paths are wanted, which takes a look at the disk.
pub fn complete(line: &str, ranks: &[u32], kinds: &[String]) -> Option<Vec<String>> {
    let line = line.trim_start();
    let Some((word, rest)) = line.split_once(char::is_whitespace) else {
        let starts = COMMANDS.iter().filter(|usage| usage.name.starts_with(line));
        return Some(starts.map(with_space).collect());
    };
    let Ok(usage) = find(word) else { return Some(Vec::new()) };
    let rest = rest.trim_start();
    let of = |values: Vec<String>| {
        let values = values.into_iter().filter(|value| value.starts_with(rest));
        Some(values.map(|value| format!("{} {value}", usage.name)).collect())
    };
    match usage.argument {
        Argument::Path => None,
        Argument::Rank => of(ranks.iter().map(ToString::to_string).collect()),
        Argument::Kind => of(kinds.to_vec()),
        Argument::Palette => of(["dark", "light", "mono"].map(str::to_owned).to_vec()),
        Argument::None | Argument::Text => Some(Vec::new()),
    }
}

fn with_space(usage: &Usage) -> String {
    if usage.argument == Argument::None { usage.name.to_owned() } else { format!("{} ", usage.name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_understood() {
        for usage in COMMANDS {
            let line = match usage.argument {
                Argument::None => usage.name.to_owned(),
                Argument::Rank | Argument::Text => format!("{} 7", usage.name),
                Argument::Palette => format!("{} light", usage.name),
                Argument::Path | Argument::Kind => format!("{} x", usage.name),
            };
            assert!(parse(&line).is_ok(), "{line}");
        }
        assert_eq!(parse("120"), Ok(Command::Goto(120)));
        assert_eq!(parse("q"), Ok(Command::Quit));
        assert_eq!(parse("  only  a b "), Ok(Command::Only { pattern: "a b".to_owned(), invert: false }));
    }

    #[test]
    fn faults_are_sentences() {
        assert_eq!(parse("open"), Err("write :open PATH".to_owned()));
        assert_eq!(parse("fly"), Err("no command is called fly; ? lists them".to_owned()));
        assert_eq!(parse("s x"), Err("s could be search or save".to_owned()));
        assert_eq!(parse("rank x"), Err("no rank is called x".to_owned()));
        assert_eq!(parse(""), Err("no command is called ; ? lists them".to_owned()));
    }

    #[test]
    fn tab_offers_what_fits() {
        assert_eq!(complete("th", &[], &[]), Some(vec!["theme ".to_owned()]));
        assert_eq!(
            complete("rank 1", &[1, 2, 10], &[]),
            Some(vec!["rank 1".to_owned(), "rank 10".to_owned()])
        );
        assert_eq!(complete("theme m", &[], &[]), Some(vec!["theme mono".to_owned()]));
        assert_eq!(complete("open /tm", &[], &[]), None);
    }
}
