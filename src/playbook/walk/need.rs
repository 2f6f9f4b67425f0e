//! What a command lacks, and where it goes once somebody tells.
//!
//! In: needs and what was typed for them. Out: the whole command. A typed value becomes one word, or words split as a shell
//! splits them where the need is for a command; it never reaches a shell. Nothing is run here.

use std::fmt;
use std::sync::LazyLock;

use regex::Regex;

/// Something that a command lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// What: an option, a fact's name, a file. Not escaped.
    pub name: String,
    /// Why, or what it is for; empty where the name says it. Not escaped.
    pub why: String,
    /// Where it goes.
    pub fill: Fill,
    /// Whether the command can't run without it.
    pub required: bool,
}

/// Where a typed value goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fill {
    /// Behind the other words, as an option with its value: `--set`, `n=` and the value.
    Option {
        /// The option.
        flag: String,
        /// What stands before the value in its word.
        prefix: String,
    },
    /// In place of the word at this position.
    Word(usize),
    /// In place of this text inside the word at this position.
    Within(usize, &'static str),
    /// In place of the word at this position: a command, with variables in front.
    Command(usize),
    /// Nowhere that can be named: the whole line has to be edited.
    Line,
}

/// A command as typed or completed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Typed {
    /// Variables to set.
    pub environment: Vec<(String, String)>,
    /// Words, the program first.
    pub command: Vec<String>,
}

impl Need {
    /// A need that has to be met.
    #[must_use]
    pub fn new(name: impl Into<String>, why: impl Into<String>, fill: Fill) -> Self {
        Self { name: name.into(), why: why.into(), fill, required: true }
    }

    /// An option as help texts write it: `--set n=NUMBER`, `--grid EXPRESSIONS`. Its value stands behind `=`, or is the next word.
    #[must_use]
    pub fn option(written: &str, why: &str) -> Self {
        let (flag, value) = written.split_once(' ').unwrap_or((written, ""));
        let name = value.split_once('=').map(|(name, _)| name).filter(|name| !name.contains(' '));
        Self::new(written, why, Fill::Option { flag: flag.to_owned(), prefix: prefix(name) })
    }
}

/// What stands before the typed value. `NAME=VALUE` stands for any pair: both halves are typed.
fn prefix(name: Option<&str>) -> String {
    name.filter(|name| *name != "NAME").map(|name| format!("{name}=")).unwrap_or_default()
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if self.why.is_empty() { Ok(()) } else { write!(f, ": {}", self.why) }
    }
}

/// Needs in one line, for a message.
#[must_use]
pub fn list(needs: &[Need]) -> String {
    needs.iter().map(Need::to_string).collect::<Vec<_>>().join(", ")
}

/// Options that a message of this program may ask for.
const ASKED: [&str; 7] = ["--set", "--kind", "--entry", "--shape", "--grid", "--block", "--sweep"];

static OPTION: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?P<flag>--[a-z]+)(?: (?P<name>[A-Za-z_][A-Za-z0-9_.]*)=\S*)?").ok());

/// The options that a message of this program asks for, each once. Which of them is enough, only the program knows.
#[must_use]
pub fn asked_for(said: &str) -> Vec<Need> {
    let mut needs: Vec<Need> = Vec::new();
    for found in OPTION.iter().flat_map(|option| option.captures_iter(said)) {
        let Some(flag) = found.name("flag").map(|flag| flag.as_str()).filter(|flag| ASKED.contains(flag))
        else {
            continue;
        };
        let prefix = prefix(found.name("name").map(|name| name.as_str()));
        let name = match (prefix.is_empty(), flag) {
            (false, _) => format!("{flag} {prefix}"),
            (true, "--set") => "--set NAME=VALUE".to_owned(),
            (true, _) => flag.to_owned(),
        };
        if !needs.iter().any(|need| need.name == name) {
            let fill = Fill::Option { flag: flag.to_owned(), prefix };
            needs.push(Need { name, why: String::new(), fill, required: false });
        }
    }
    needs
}

/// The command with what was typed, value by need, once that is enough: everything required, and of the rest at least one.
///
/// # Errors
/// A sentence: what is still empty, or which typed command can't be split into words.
pub fn filled(base: &Typed, needs: &[Need], values: &[String]) -> Result<Typed, String> {
    let mut pairs = needs.iter().zip(values);
    if let Some((need, _)) = pairs.find(|(need, value)| need.required && value.trim().is_empty()) {
        return Err(format!("{} is still empty.", need.name));
    }
    if !needs.is_empty() && values.iter().all(|value| value.trim().is_empty()) {
        return Err("Nothing is filled in yet.".to_owned());
    }
    so_far(base, needs, values)
}

/// The command with what was typed until now; what is empty leaves its place as it is.
///
/// # Errors
/// A sentence: which typed command can't be split into words.
pub fn so_far(base: &Typed, needs: &[Need], values: &[String]) -> Result<Typed, String> {
    let mut whole = base.clone();
    let mut commands = Vec::new();
    let pairs = needs.iter().zip(values.iter().map(|value| value.trim()));
    for (need, value) in pairs.filter(|(_, value)| !value.is_empty()) {
        match &need.fill {
            Fill::Option { flag, prefix } => {
                let value = format!("{prefix}{value}");
                if value.starts_with('-') {
                    whole.command.push(format!("{flag}={value}"));
                } else {
                    whole.command.extend([flag.clone(), value]);
                }
            }
            Fill::Word(at) => {
                if let Some(word) = whole.command.get_mut(*at) {
                    // A file's name that starts with a dash would be read as an option.
                    *word = if value.starts_with('-') { format!("./{value}") } else { value.to_owned() };
                }
            }
            Fill::Within(at, hole) => {
                if let Some(word) = whole.command.get_mut(*at) {
                    *word = word.replacen(hole, value, 1);
                }
            }
            Fill::Command(at) => commands.push((*at, read(value)?)),
            Fill::Line => {}
        }
    }
    // Words are put in from behind, so that the positions in front stay.
    commands.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    for (at, typed) in commands {
        if at < whole.command.len() {
            whole.command.splice(at..=at, typed.command);
        }
        whole.environment.extend(typed.environment);
    }
    Ok(whole)
}

/// A command as typed: quotes as in a shell, nothing else. `env NAME=VALUE …` in front sets variables.
///
/// # Errors
/// A sentence about what is typed.
pub fn read(line: &str) -> Result<Typed, String> {
    let words = shlex::split(line).ok_or("A quote is not closed.")?;
    let mut words = words.into_iter().peekable();
    let mut environment = Vec::new();
    if words.peek().is_some_and(|word| word == "env") {
        words.next();
    }
    let variable = |word: &String| {
        let (name, value) = word.split_once('=')?;
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        (!name.is_empty() && name.chars().all(plain)).then(|| (name.to_owned(), value.to_owned()))
    };
    while let Some(pair) = words.peek().and_then(variable) {
        environment.push(pair);
        words.next();
    }
    let command: Vec<String> = words.collect();
    match command.first() {
        None => Err("There is no program in this line.".to_owned()),
        Some(option) if option.starts_with('-') => {
            Err(format!("{} stands where a program should.", crate::text::escape(option)))
        }
        Some(_) => Ok(Typed { environment, command }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    fn base(line: &str) -> Typed {
        Typed { environment: Vec::new(), command: words(line) }
    }

    #[test]
    fn a_typed_command_is_split_into_variables_and_words() {
        let read = |line| read(line).map(|typed| (typed.environment, typed.command));
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            read("env CUDA_LAUNCH_BLOCKING=1 'A B'=2 python3 'a b.py' '$(rm x)'"),
            Ok((
                vec![pair("CUDA_LAUNCH_BLOCKING", "1")],
                ["A B=2", "python3", "a b.py", "$(rm x)"].map(str::to_owned).to_vec()
            ))
        );
        assert_eq!(read("X=1 ./run"), Ok((vec![pair("X", "1")], vec!["./run".to_owned()])));
        assert!(read("python3 'a").unwrap_err().contains("quote"));
        assert!(read("env A=1").is_err() && read("env -i sh").is_err());
    }

    #[test]
    fn values_go_where_they_are_wanted() {
        let needs = [
            Need::new("a command", "", Fill::Command(1)),
            Need::new("the cache", "", Fill::Word(2)),
            Need::option("--set n=NUMBER", "nothing tells"),
            Need::option("--grid EXPRESSIONS (as in cdiv(M,128),72)", ""),
        ];
        let values = ["A=1 python3 'x y.py'", "-cache", "-5", "cdiv(n, 128)"].map(str::to_owned);
        let whole = filled(&base("run your-command CACHE"), &needs, &values).unwrap();
        assert_eq!(whole.environment, [("A".to_owned(), "1".to_owned())]);
        assert_eq!(
            whole.command,
            ["run", "python3", "x y.py", "./-cache", "--set", "n=-5", "--grid", "cdiv(n, 128)"]
        );
    }

    #[test]
    fn a_value_stays_one_word() {
        let needs = [Need::new("launch.kernel", "", Fill::Within(1, "(not known)"))];
        let whole = filled(
            &base("tool kernel=(not known)").with(1, "kernel=(not known)"),
            &needs,
            &["a; rm -rf ~".to_owned()],
        );
        assert_eq!(whole.unwrap().command, ["tool", "kernel=a; rm -rf ~"]);
    }

    impl Typed {
        fn with(mut self, at: usize, word: &str) -> Self {
            self.command.truncate(at);
            self.command.push(word.to_owned());
            self
        }
    }

    #[test]
    fn what_is_required_is_asked_for_and_one_of_the_others_is_enough() {
        let both =
            [Need::option("--set n=NUMBER", ""), Need { required: false, ..Need::option("--kind KIND", "") }];
        let none = |values: [&str; 2]| filled(&base("x"), &both, &values.map(str::to_owned));
        assert_eq!(none(["", "cuda"]).unwrap_err(), "--set n=NUMBER is still empty.");
        assert_eq!(none(["1", " "]).unwrap().command, ["x", "--set", "n=1"]);
        let free = [Need { required: false, ..Need::option("--kind KIND", "") }];
        assert_eq!(filled(&base("x"), &free, &[String::new()]).unwrap_err(), "Nothing is filled in yet.");
    }

    #[test]
    fn options_are_read_out_of_what_this_program_says() {
        let said = "no size is told (give it: --set rows=1000, or --set NAME=VALUE; choose with --kind; --set rows=2; --rm=x)";
        let names: Vec<String> = asked_for(said).into_iter().map(|need| need.name).collect();
        assert_eq!(names, ["--set rows=", "--set NAME=VALUE", "--kind"]);
    }
}
