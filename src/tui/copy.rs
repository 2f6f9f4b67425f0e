//! Text to the clipboard of whoever sits before the terminal, also through ssh.
//!
//! In: a text. Out: an OSC 52 sequence, and a file with the same text, since no terminal says whether it obeyed. It is escaped
//! here, so the sequence can't be broken out of; it is base64 anyway.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crossterm::clipboard::CopyToClipboard;

/// Longest text that terminals take: xterm and tmux give up near 75 kB.
const OSC_BYTES: usize = 72 * 1024;

/// Copies and says where to.
pub fn copy(out: &mut impl Write, text: &str, what: &str, folder: Option<&Path>) -> String {
    // What is pasted is what was on the screen: nothing in it hides or changes its direction.
    let text: Vec<_> = text.split('\n').map(|line| crate::text::escape(line).to_cow()).collect();
    let text = &*text.join("\n");
    let to_terminal =
        text.len() <= OSC_BYTES && crossterm::execute!(out, CopyToClipboard::to_clipboard_from(text)).is_ok();
    let file = folder.and_then(|folder| write_file(folder, text).ok());
    match (to_terminal, file) {
        (true, Some(path)) => format!("Copied {what}. If your terminal refused: {}", path.display()),
        (true, None) => format!("Copied {what}."),
        (false, Some(path)) => {
            format!("Too long for a terminal's clipboard: {what} is in {}", path.display())
        }
        (false, None) => format!("Could not copy {what}."),
    }
}

fn write_file(folder: &Path, text: &str) -> io::Result<PathBuf> {
    std::fs::create_dir_all(folder)?;
    let path = folder.join("copied.txt");
    // A log may hold secrets: only its owner reads the file.
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_goes_to_terminal_and_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut out = Vec::new();
        let said = copy(&mut out, "env A=1 python3 x.py", "the command", Some(folder.path()));
        assert!(said.starts_with("Copied the command. If your terminal refused: "), "{said}");
        assert_eq!(out, b"\x1b]52;c;ZW52IEE9MSBweXRob24zIHgucHk=\x1b\\");
        let file = std::fs::read_to_string(folder.path().join("copied.txt")).unwrap();
        assert_eq!(file, "env A=1 python3 x.py\n");
    }

    #[test]
    fn what_hides_is_copied_as_it_is_shown() {
        let folder = tempfile::tempdir().unwrap();
        copy(&mut Vec::new(), "python3 a\u{202e}yp.b\ntwo\x1b[0m", "the command", Some(folder.path()));
        let file = std::fs::read_to_string(folder.path().join("copied.txt")).unwrap();
        assert_eq!(file, "python3 a\\u{202e}yp.b\ntwo\\x1b[0m\n");
    }

    #[test]
    fn a_long_text_goes_to_the_file_only() {
        let folder = tempfile::tempdir().unwrap();
        let mut out = Vec::new();
        let said = copy(&mut out, &"x".repeat(80 << 10), "the report", Some(folder.path()));
        assert!(said.starts_with("Too long") && out.is_empty(), "{said}");
    }
}
