//! Command lines that stand in a log: after a prompt, as `set -x` prints them, or pasted with their settings.
//!
//! In: a line. Out: a [`Command`]: words and the `NAME=VALUE` settings before the program. Advice that quotes a switch
//! (`consider passing CUDA_LAUNCH_BLOCKING=1`) is no command.

use super::super::event::Command;
use super::super::scan::clip;

/// Longest command that is split.
const COMMAND_LIMIT_BYTES: usize = 8_192;
/// Programs that start jobs.
const PROGRAMS: [&str; 20] = [
    "python",
    "python3",
    "torchrun",
    "accelerate",
    "deepspeed",
    "mpirun",
    "mpiexec",
    "srun",
    "compute-sanitizer",
    "cuda-memcheck",
    "cuda-gdb",
    "bash",
    "sh",
    "env",
    "docker",
    "vllm",
    "llama-server",
    "nsys",
    "ncu",
    "ray",
];

/// The command of a line.
#[must_use]
pub fn command(body: &str) -> Option<Command> {
    let text = clip(body.trim(), COMMAND_LIMIT_BYTES);
    let (prompted, text) = match prompt(text) {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    if text.is_empty() {
        return None;
    }
    let text = text.trim_end_matches('\\').trim();
    let words = shlex::split(text).unwrap_or_else(|| text.split_whitespace().map(str::to_owned).collect());
    let mut words = one_program(words).into_iter().peekable();
    let mut environment = Vec::new();
    while let Some(word) = words.peek() {
        if matches!(word.as_str(), "env" | "export" | "sudo" | "time" | "nohup") {
            words.next();
            continue;
        }
        let Some((name, value)) = setting(word) else { break };
        environment.push((name, value));
        words.next();
    }
    let words: Vec<String> = words.collect();
    let program = words.first().map_or("", String::as_str);
    let program = program.rsplit('/').next().unwrap_or(program);
    let known = PROGRAMS.contains(&program) || program.starts_with("python") || is_script(program);
    let accepted = if prompted {
        known
            || program.starts_with("./")
            || words.first().is_some_and(|word| word.contains('/'))
            || !environment.is_empty()
            || plausible(program)
    } else {
        known && (!environment.is_empty() || runs_something(program, &words))
    };
    let exported = words.is_empty() && !environment.is_empty() && (prompted || text.starts_with("export "));
    (accepted && !words.is_empty() || exported).then_some(Command { words, environment })
}

/// What a shell does itself, before or around the program of a line.
const SHELL_WORDS: [&str; 14] = [
    "cd", "pushd", "popd", "source", ".", "set", "ulimit", "umask", "module", "conda", "mkdir", "sleep",
    "echo", "true",
];

/// The program that a line is about, with its words: of `cd /x && python3 t.py 2>&1 | tee log` it is `python3 t.py`. Given to a
/// program as arguments, the rest of the line would make it another command. Settings that were exported before stay in front.
fn one_program(words: Vec<String>) -> Vec<String> {
    let is_operator = |word: &str| matches!(word, "&&" | "||" | ";" | "|" | "|&" | "&");
    if !words.iter().any(|word| is_operator(word) || word.ends_with(';') || redirection(word).is_some()) {
        return words;
    }
    let mut parts: Vec<Vec<String>> = vec![Vec::new()];
    let mut into_file = false;
    for word in words {
        if std::mem::take(&mut into_file) {
            continue;
        }
        if is_operator(&word) {
            parts.push(Vec::new());
        } else if let Some(whole) = redirection(&word) {
            into_file = !whole;
            if word.ends_with(';') {
                parts.push(Vec::new());
            }
        } else {
            let last = word.strip_suffix(';').map(str::to_owned);
            let ends = last.is_some();
            if let Some(part) = parts.last_mut() {
                part.extend(Some(last.unwrap_or(word)).filter(|word| !word.is_empty()));
            }
            if ends {
                parts.push(Vec::new());
            }
        }
    }
    let is_export = |part: &Vec<String>| part.first().is_some_and(|word| word == "export");
    let runs = |part: &&Vec<String>| {
        part.first().is_some_and(|word| !SHELL_WORDS.contains(&word.as_str())) && !is_export(part)
    };
    let Some(program) = parts.iter().find(runs) else { return parts.into_iter().next().unwrap_or_default() };
    let exported =
        parts.iter().filter(|part| is_export(part)).flatten().filter(|word| setting(word).is_some());
    exported.chain(program).cloned().collect()
}

/// Whether a word sends output elsewhere: with its file in the same word (true) or in the next (false).
fn redirection(word: &str) -> Option<bool> {
    let rest =
        word.strip_prefix('&').unwrap_or_else(|| word.trim_start_matches(|c: char| c.is_ascii_digit()));
    let file =
        rest.strip_prefix(">>").or_else(|| rest.strip_prefix(">|")).or_else(|| rest.strip_prefix('>'))?;
    Some(!file.is_empty())
}

/// The job's command from a process that DeepSpeed's launcher lists: `['/usr/bin/python', '-u', 'train.py', '--local_rank=3']
/// exits with …`. The launcher stands in place of the interpreter, and the rank that it added is left out.
#[must_use]
pub fn of_deepspeed(body: &str) -> Option<Command> {
    let text = clip(body, COMMAND_LIMIT_BYTES);
    if !text.contains("exits with return code") && !text.contains("spawned with command") {
        return None;
    }
    let (_, list) = text.split_once("['")?;
    let (list, _) = list.split_once("']")?;
    let listed = list.split("', '").skip(1).filter(|word| *word != "-u" && !word.starts_with("--local_rank"));
    let mut words = vec!["deepspeed".to_owned()];
    words.extend(listed.map(|word| if word == "-m" { "--module" } else { word }.to_owned()));
    (words.len() > 1).then(|| Command { words, environment: Vec::new() })
}

/// The text after a prompt: `$ `, `+ ` of `set -x`, `user@host:~/x$ `, `(base) root@x:/# `.
fn prompt(text: &str) -> Option<&str> {
    if let Some(rest) = text.strip_prefix("$ ") {
        return Some(rest.trim());
    }
    if text.starts_with('+') {
        let rest = text.trim_start_matches('+').strip_prefix(' ')?.trim();
        return rest.starts_with(|next: char| next.is_ascii_alphabetic() || next == '/').then_some(rest);
    }
    let (head, rest) = text.split_once("$ ").or_else(|| text.split_once("# "))?;
    let shellish = head.contains('@') && head.contains(':')
        || head.ends_with('~')
        || head.ends_with(']') && head.starts_with('[');
    let short = head.len() <= 96 && head.split(' ').count() <= 3 && !head.contains("  ");
    (shellish && short).then_some(rest.trim())
}

/// `NAME=VALUE` with a name in capitals.
fn setting(word: &str) -> Option<(String, String)> {
    let (name, value) = word.split_once('=')?;
    let capital = name.as_bytes().first().is_some_and(|first| first.is_ascii_uppercase() || *first == b'_');
    let rest = name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
    (capital && rest && name.len() >= 2).then(|| (name.to_owned(), value.to_owned()))
}

fn is_script(program: &str) -> bool {
    program.ends_with(".sh") || program.ends_with(".py")
}

/// A word that looks like a program rather than prose or mathematics.
fn plausible(program: &str) -> bool {
    program.len() >= 2
        && program.len() <= 64
        && program.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
        && program.as_bytes().first().is_some_and(u8::is_ascii_lowercase)
}

/// Without a prompt the words themselves must show that something is run: `python3 train.py`, `torchrun --nproc-per-node 2 x.py`.
fn runs_something(program: &str, words: &[String]) -> bool {
    let Some(second) = words.get(1) else { return false };
    let scripted = words.iter().skip(1).take(40).any(|word| word.ends_with(".py") || word.ends_with(".sh"));
    let flagged = second.starts_with('-') && second.len() > 1;
    match program {
        "bash" | "sh" | "env" | "ray" | "docker" => scripted && flagged,
        "python" | "python3" => {
            scripted && (flagged || second.ends_with(".py")) || second == "-m" && words.len() > 2
        }
        _ if program.starts_with("python") => scripted,
        _ => flagged || scripted,
    }
}
