//! Where text goes: standard output, standard error, a file.
//!
//! In: finished text. Out: bytes. A closed pipe ends quietly; colours follow NO_COLOR, CLICOLOR and the terminal. A terminal
//! whose locale is not UTF-8 gets our signs in ASCII; files and pipes get the text as it is.

use std::borrow::Cow;
use std::fs::Permissions;
use std::io::{ErrorKind as IoKind, IsTerminal, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use clap::CommandFactory;

use crate::error::{Error, ErrorKind, Result};
use crate::text::signs::{is_utf8, locale, plain};

use crate::source::{self, InputKind, InputSpec, Limits};

use super::arguments::Arguments;

/// Writes a report to `file`, else to standard output.
pub fn write(file: Option<&Path>, text: &str) -> Result<()> {
    match file {
        Some(path) => save(path, text).map_err(|error| {
            Error::new(ErrorKind::Output, "the report could not be written").at(path, None).because(error)
        }),
        None => print(text),
    }
}

/// A file is replaced as a whole or stays as it was: a full disk must not cost the last report. A device, a pipe or what a link
/// leads to can't be replaced and is written to.
fn save(path: &Path, text: &str) -> std::io::Result<()> {
    // A limit on file sizes is then an error of the write, and not the end of the program.
    signal_hook::flag::register(libc::SIGXFSZ, Arc::default())?;
    let old = std::fs::symlink_metadata(path).ok();
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        return std::fs::write(path, text);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // What a new file gets; the user's mask is laid over it.
    let readable = Permissions::from_mode(0o666);
    let mut new =
        match tempfile::Builder::new().prefix(".warpfault-").permissions(readable).tempfile_in(folder) {
            Ok(new) => new,
            // The file may be writable where its folder isn't.
            Err(_) if old.is_some() => return std::fs::write(path, text),
            Err(error) => return Err(error),
        };
    new.write_all(text.as_bytes())?;
    if let Some(old) = old {
        new.as_file().set_permissions(old.permissions())?;
    }
    new.persist(path).map(drop).map_err(|error| error.error)
}

/// Refuses a file for output that is, or lies in the folder of, one of the inputs: a report must not replace the log.
pub fn spare(file: Option<&Path>, inputs: &[InputSpec]) -> Result<()> {
    let Some(path) = file.and_then(|path| path.canonicalize().ok()) else { return Ok(()) };
    let is_input = |input: &InputSpec| match input {
        InputSpec::Path(input) => input.canonicalize().is_ok_and(|input| path.starts_with(input)),
        InputSpec::Glob(pattern) => glob::glob(pattern).is_ok_and(|found| {
            found.flatten().filter_map(|found| found.canonicalize().ok()).any(|found| path.starts_with(found))
        }),
        InputSpec::Stdin | InputSpec::Text { .. } => false,
    };
    // The report of an earlier run lies there, too, and may be written anew.
    let is_own = || {
        let loaded = source::load(&[InputSpec::Path(path.clone())], Limits::default());
        loaded.inputs.iter().all(|input| matches!(input.kind, InputKind::Report | InputKind::Empty))
    };
    if path.is_file() && inputs.iter().any(is_input) && !is_own() {
        return Err(Error::new(ErrorKind::Usage, "the report would replace an input")
            .at(&path, None)
            .hint("give -o a name that no input has"));
    }
    Ok(())
}

/// Prints to standard output; a reader that went away is no error.
pub fn print(text: &str) -> Result<()> {
    let text = signs(text, std::io::stdout().is_terminal());
    let mut stdout = anstream::stdout();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != IoKind::BrokenPipe => {
            Err(Error::new(ErrorKind::Output, "standard output could not be written").because(error))
        }
        _ => Ok(()),
    }
}

/// Tells the person something on standard error.
pub fn tell(text: &str) {
    let text = signs(text, std::io::stderr().is_terminal());
    let _ = writeln!(anstream::stderr(), "warpfault: {text}");
}

fn signs(text: &str, terminal: bool) -> Cow<'_, str> {
    let ascii = terminal && !is_utf8(&locale(|name| std::env::var(name).ok()));
    if ascii { plain(text) } else { Cow::Borrowed(text) }
}

/// Shows what a running command prints, escaped, on standard error.
pub fn live(chunk: &[u8]) {
    let mut stderr = anstream::stderr();
    let text = String::from_utf8_lossy(chunk);
    for line in text.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        let _ = write!(stderr, "{}{end}", crate::text::escape(line.trim_end_matches('\r')));
    }
}

/// Prints a completion script.
pub fn completions(shell: clap_complete::Shell) -> Result<u8> {
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "warpfault", &mut bytes);
    print(&String::from_utf8_lossy(&bytes)).map(|()| 0)
}

/// Prints the manual page.
pub fn man() -> Result<u8> {
    let mut bytes = Vec::new();
    clap_mangen::Man::new(Arguments::command())
        .render(&mut bytes)
        .map_err(|error| Error::new(ErrorKind::Output, "the manual page could not be made").because(error))?;
    print(&String::from_utf8_lossy(&bytes)).map(|()| 0)
}
