//! The user's own program, as the commands of a log tell it.
//!
//! In: a case. Out: its words, without the tools, settings and debuggers in front of them, or a word that the engineer replaces.
//! It leaves parsing a shell's line to `read`.

use crate::case::Case;
use crate::read::event::Data;

/// What stands for the user's own command where the inputs hold none.
pub const YOUR_COMMAND: &str = "your-command";

/// The user's own program: the first command of the log, else a word that the engineer replaces.
pub(super) fn program(case: &Case) -> Vec<String> {
    own_command(case).unwrap_or_else(|| vec![YOUR_COMMAND.to_owned()])
}

/// A command on another host; none where the log's word for the host is no host name. `ssh` takes a word that begins with a dash as
/// an option, and its options start programs; it hands the rest to a shell there, so that no word may hold a shell's signs.
pub(super) fn on_host(host: &str, words: &[&str]) -> Option<Vec<String>> {
    let plain = |word: &str, more: &[char]| {
        !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(&c))
    };
    let is_host =
        plain(host, &['.', '-', '_']) && host.starts_with(|first: char| first.is_ascii_alphanumeric());
    (is_host && words.iter().all(|word| plain(word, &['.', '-', '_'])))
        .then(|| ["ssh", "--", host].iter().chain(words).map(|word| (*word).to_owned()).collect())
}

/// The user's own command, without tools and settings before it; none where the input holds no command line.
#[must_use]
pub fn own_command(case: &Case) -> Option<Vec<String>> {
    case.pick(|data| match data {
        Data::Command(command) if !command.words.is_empty() && !asks_the_machine(&command.words) => {
            Some(command)
        }
        _ => None,
    })
    .map(|(_, _, command)| own_words(&command.words))
    .find(|words| words.first().is_some_and(|program| !is_this_tool(program)))
}

/// A run of this tool that the inputs show is no run of the user's program.
fn is_this_tool(program: &str) -> bool {
    super::super::summary::base_name(program) == "warpfault"
}

/// A command that looked at the machine and ran no job.
fn asks_the_machine(words: &[String]) -> bool {
    let tools = ["nvidia-smi", "dcgmi", "dmesg", "journalctl", "torch.utils.collect_env", "collect_env.py"];
    words.iter().take(4).any(|word| tools.contains(&word.rsplit('/').next().unwrap_or(word)))
}

/// Without a tool that ran it already. Empty where the command is no run of a program: a debugger that opened a dump.
fn own_words(words: &[String]) -> Vec<String> {
    let mut rest = words;
    while let Some((first, tail)) = rest.split_first() {
        if matches!(super::super::summary::base_name(first), "gdb" | "cuda-gdb") {
            let program = tail.iter().position(|word| word == "--args");
            rest = program.and_then(|at| tail.get(at + 1..)).unwrap_or_default();
            continue;
        }
        let is_tool = matches!(first.as_str(), "env" | "compute-sanitizer" | "cuda-memcheck");
        let is_option = first.starts_with('-')
            || first.contains('=')
            || !tail.is_empty()
                && matches!(first.as_str(), "memcheck" | "racecheck" | "initcheck" | "synccheck" | "full");
        let is_number = first.chars().all(|c| c.is_ascii_digit());
        if is_tool || is_option || is_number {
            rest = tail;
        } else {
            break;
        }
    }
    joined_script(rest)
}

/// A log prints `bash -c python3 a.py` of a script that was one word.
fn joined_script(words: &[String]) -> Vec<String> {
    match words {
        [shell, flag, script @ ..]
            if flag == "-c" && script.len() > 1 && matches!(shell.as_str(), "sh" | "bash") =>
        {
            vec![shell.clone(), flag.clone(), script.join(" ")]
        }
        _ => words.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::on_host;

    #[test]
    fn a_word_that_is_no_host_reaches_no_ssh() {
        let words = |host| on_host(host, &["ibstat", "mlx5_3", "1"]);
        let shown = words("gpu-12").map(|words| words.join(" "));
        assert_eq!(shown.as_deref(), Some("ssh -- gpu-12 ibstat mlx5_3 1"));
        for host in ["", "-oProxyCommand=x", "-v", "a b", "a;b", "$(x)", "a\nb", "user@host"] {
            assert_eq!(words(host), None, "{host}");
        }
        assert_eq!(on_host("gpu-12", &["cat", "x;y"]), None);
    }
}
