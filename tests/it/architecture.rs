//! The house keeps its direction: a room uses the rooms above it, never one below.
//!
//! In: the `use` lines of `src/`. Out: a list of lines that break design. Paths written out in code count too.

use std::path::Path;

/// The rooms from the ground up.
const ROOMS: &[&str] = &[
    "error", "arith", "text", "tables", "image", "source", "read", "kernel", "case", "launch", "verdict",
    "playbook", "probe", "repro", "report", "session", "store", "effect", "tui", "cli",
];

fn level(room: &str) -> Option<usize> {
    ROOMS.iter().position(|known| *known == room)
}

fn sources(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_test = path.file_stem().is_some_and(|stem| stem == "tests");
        if path.is_dir() && !is_test {
            sources(&path, found);
        } else if is_test {
            // Tests may read files and look anywhere.
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn room_of(path: &Path) -> String {
    let below = path.strip_prefix("src").unwrap();
    let first = below.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
    first.trim_end_matches(".rs").to_owned()
}

/// Code lines before the tests, comments away.
fn code(path: &Path) -> Vec<(usize, String)> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .enumerate()
        .take_while(|(_, line)| line.trim() != "#[cfg(test)]")
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
        .map(|(number, line)| (number + 1, line.to_owned()))
        .collect()
}

/// Rooms that a line of code names: `crate::room`, `crate::{a, b}`.
fn rooms_in(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in line.match_indices("crate::") {
        let rest = &line[at + "crate::".len()..];
        let names: Vec<&str> = match rest.strip_prefix('{') {
            Some(list) => list.split(',').map(|part| part.trim().split("::").next().unwrap_or("")).collect(),
            None => vec![rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or("")],
        };
        found.extend(names.into_iter().map(|name| name.trim_end_matches(['}', ';']).to_owned()));
    }
    found
}

#[test]
fn no_room_uses_a_room_below_it() {
    let mut files = Vec::new();
    sources(Path::new("src"), &mut files);
    assert!(files.len() > 50);
    let mut broken = Vec::new();
    for path in files {
        let Some(mine) = level(&room_of(&path)) else { continue };
        for (number, line) in code(&path) {
            for room in rooms_in(&line) {
                if level(&room).is_some_and(|used| used > mine) {
                    broken.push(format!("{}:{number} uses {room}", path.display()));
                }
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn forbidden_knowledge_stays_out() {
    let rules: &[(&str, &[&str])] = &[
        ("arith", &["regex::", "serde_json", "std::fs", "std::env"]),
        ("verdict", &["regex::", "std::fs", "std::env", "std::time", "std::process"]),
        ("session", &["std::fs", "std::env", "std::time", "std::thread", "std::process", "std::io"]),
        ("case", &["std::fs", "std::env", "std::time", "std::process"]),
        ("kernel", &["std::fs", "std::env", "std::process"]),
        ("report", &["ratatui", "crossterm"]),
        ("read", &["std::fs", "std::env", "std::process"]),
    ];
    let mut files = Vec::new();
    sources(Path::new("src"), &mut files);
    let mut broken = Vec::new();
    for path in files {
        let room = room_of(&path);
        for (number, line) in code(&path) {
            for (_, words) in rules.iter().filter(|(name, _)| *name == room) {
                for word in words.iter().filter(|word| line.contains(**word)) {
                    broken.push(format!("{}:{number} uses {word}", path.display()));
                }
            }
            if line.contains("ratatui") && room != "tui" && room != "cli" {
                broken.push(format!("{}:{number} draws outside the terminal UI", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_file_opens_with_what_comes_in_and_out() {
    let mut files = Vec::new();
    sources(Path::new("src"), &mut files);
    let bare: Vec<String> = files
        .iter()
        .filter(|path| !std::fs::read_to_string(path).unwrap().starts_with("//!"))
        .map(|path| path.display().to_string())
        .collect();
    assert!(bare.is_empty(), "{bare:?}");
}
