//! Commands of `update`, carried out.
//!
//! In: a command. Out: jobs for the workers, and files, clipboard, editor and terminal as asked. What went wrong comes back
//! as a message.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::report::{Report, html, markdown, text};
use crate::source::InputSpec;
use crate::store::Store;
use crate::tui::copy;
use crate::tui::model::Sample;
use crate::tui::msg::{Cmd, Msg, Opening};
use crate::tui::work::{self, Job, Work};

use super::Ui;
use super::settings::Settings;

/// Carries a command out.
///
/// # Errors
/// The terminal's only.
pub fn carry_out(ui: &mut Ui<'_>, command: Cmd) -> io::Result<()> {
    match command {
        Cmd::Quit => ui.end(),
        Cmd::Suspend if !crate::tui::terminal::has_shell() => {
            ui.take(Msg::Told("No shell stands behind this program: nothing could bring it back.".into()))?;
        }
        Cmd::Suspend => {
            ui.screen.suspend()?;
            ui.take_size()?;
        }
        Cmd::Redraw => ui.screen.forget()?,
        Cmd::Mouse(on) => ui.screen.set_mouse(on)?,
        Cmd::Open { generation, opening, follow } => {
            ui.work.open(generation, opening, follow, ui.settings.store());
        }
        Cmd::Add(specs) => ui.work.job(Job::Add(specs)),
        Cmd::Again => ui.work.job(Job::Again),
        Cmd::Apply(input) => ui.work.job(Job::Apply(input)),
        Cmd::Feed { step, spec } => ui.work.job(Job::Feed(step, spec)),
        Cmd::Stop => ui.work.stop(),
        Cmd::Index { generation, source, bytes, index } => ui.work.index(generation, source, bytes, index),
        Cmd::Search { id, bytes, from, pattern } => ui.work.search(id, bytes, from, pattern),
        Cmd::Filter { id, bytes, run } => ui.work.filter(id, bytes, *run),
        Cmd::Copy { text, what } => {
            let said = copy::copy(&mut io::stdout(), &text, what, ui.settings.state.as_deref());
            ui.take(Msg::Told(said))?;
        }
        Cmd::Edit { choices } => edit(ui, choices)?,
        Cmd::OpenIfPath { text } => {
            let exists = Path::new(text.trim()).exists();
            ui.take(Msg::PathChecked { text, exists })?;
        }
        Cmd::Save { path, text } => match save(path, &text, ui.settings) {
            Ok(path) => ui.take(Msg::Saved(path))?,
            Err(why) => ui.take(Msg::Told(format!("Not saved: {why}")))?,
        },
        Cmd::Export { path, report } => {
            let said = match export(&path, &report) {
                Ok(()) => format!("Wrote {}", crate::text::escape(&path.to_string_lossy())),
                Err(why) => format!("Not written: {why}"),
            };
            ui.take(Msg::Told(said))?;
        }
        Cmd::CompletePath { text } => {
            let (sender, home) = (ui.work.sender(), ui.settings.home.clone());
            ui.work.plain(move || {
                let candidates = work::complete_path(&text, home.as_ref());
                let _ = sender.send(Msg::Completed { text, candidates });
            });
        }
    }
    Ok(())
}

/// Writes a text to a new file that only its owner reads.
pub fn save(path: Option<PathBuf>, text: &str, settings: &Settings) -> io::Result<PathBuf> {
    let write = |path: &Path| {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    if let Some(path) = path {
        return write(&path).map(|()| path);
    }
    let folder = settings.state.clone().unwrap_or_else(std::env::temp_dir).join("pastes");
    std::fs::create_dir_all(&folder)?;
    for number in 1..10_000 {
        let path = folder.join(format!("paste-{number}.log"));
        match write(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            result => return result.map(|()| path),
        }
    }
    Err(io::Error::other("the folder for pastes is full"))
}

fn export(path: &Path, report: &Report) -> io::Result<()> {
    let text = match path.extension().and_then(|ending| ending.to_str()) {
        Some("md") => markdown::render(report),
        Some("html" | "htm") => html::render(report),
        Some("json") => serde_json::to_string_pretty(report).map_err(io::Error::other)? + "\n",
        _ => text::render(report, text::Paint::Plain),
    };
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())
}

/// Opens the editor at the first file that exists here. A path out of a log is never a word of its own choosing: it is made
/// absolute, so it can't be taken for an option.
fn edit(ui: &mut Ui<'_>, choices: Vec<(PathBuf, Option<u64>)>) -> io::Result<()> {
    let first = choices.first().map(|(path, _)| crate::text::escape(&path.to_string_lossy()).to_string());
    let found = choices.into_iter().find_map(|(path, line)| {
        let path = path.canonicalize().ok().filter(|path| path.is_file())?;
        Some((path, line))
    });
    let Some((path, line)) = found else {
        let first = first.unwrap_or_default();
        return ui.take(Msg::Told(format!("{first} is not on this machine.")));
    };
    let Some((program, words)) = ui.settings.editor.split_first() else { return Ok(()) };
    let mut command = Command::new(program);
    command.args(words).args(editor_arguments(program, &path, line));
    // Standard input may be the log itself; the editor needs the keyboard.
    if let Ok(tty) = OpenOptions::new().read(true).open("/dev/tty") {
        command.stdin(Stdio::from(tty));
    }
    let keyboard = ui.keyboard;
    let status = keyboard.without(|| ui.screen.without(|| command.status()))?;
    ui.take_size()?;
    match status {
        Ok(_) => Ok(()),
        Err(error) => {
            let program = crate::text::escape(program).to_string();
            ui.take(Msg::Told(format!("{program} did not start: {error}. Set EDITOR to your editor.")))
        }
    }
}

fn editor_arguments(program: &str, path: &Path, line: Option<u64>) -> Vec<std::ffi::OsString> {
    let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or(program);
    let Some(line) = line else { return vec![path.into()] };
    let mut with_line = path.as_os_str().to_owned();
    with_line.push(format!(":{line}"));
    match name {
        "code" | "codium" | "cursor" => vec!["--wait".into(), "--goto".into(), with_line],
        "hx" | "helix" | "subl" | "zed" => vec![with_line],
        _ => vec![format!("+{line}").into(), path.into()],
    }
}

/// Most incidents that are offered.
const RECENT: usize = 8;

/// Looks for past incidents to go on with, and for recorded crashes to try.
pub fn find_picks(work: &Work, settings: &Settings) {
    let sender = work.sender();
    let store = settings.store();
    work.plain(move || {
        let recent = store.as_ref().map(recent).unwrap_or_default();
        let samples = sample_folders().into_iter().find_map(|folder| {
            let samples = samples_in(&folder);
            (!samples.is_empty()).then_some(samples)
        });
        let _ = sender.send(Msg::Picks { recent, samples: samples.unwrap_or_default() });
    });
}

/// The latest incidents.
fn recent(store: &Store) -> Vec<Sample> {
    let rows = store.list().unwrap_or_default();
    rows.into_iter()
        .take(RECENT)
        .map(|row| {
            let input = row.input.as_deref().unwrap_or("");
            let name = input.rsplit('/').next().unwrap_or(input);
            let day = row.updated.get(..16).unwrap_or(&row.updated).replace('T', " ");
            let title = format!("{day}  {name}: {}", row.summary);
            Sample { title: crate::text::escape(&title).to_string(), opening: Opening::Saved(row.id) }
        })
        .collect()
}

/// Where samples may lie: named by the environment, beside the program, in the folder one is in.
fn sample_folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> =
        std::env::var_os("WARPFAULT_SAMPLES").map(PathBuf::from).into_iter().collect();
    if let Ok(program) = std::env::current_exe() {
        let up = |levels: usize| program.ancestors().nth(levels).map(Path::to_path_buf);
        folders.extend(up(2).map(|prefix| prefix.join("share/warpfault/samples")));
        // A checkout's target/release/warpfault.
        folders.extend(up(3).map(|root| root.join("samples")));
    }
    folders.push(PathBuf::from("samples"));
    folders
}

fn samples_in(folder: &Path) -> Vec<Sample> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut samples: Vec<Sample> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.path().join("README.md").is_file())
        .map(|entry| {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            let readme = std::fs::read_to_string(path.join("README.md")).unwrap_or_default();
            let line =
                readme.lines().map(|line| line.trim_start_matches('#').trim()).find(|line| !line.is_empty());
            let title = line.map_or(name.clone(), |line| format!("{name}: {line}"));
            let opening = Opening::Named(vec![InputSpec::Path(path)]);
            Sample { title: crate::text::escape(&title).to_string(), opening }
        })
        .collect();
    samples.sort_by(|a, b| a.title.cmp(&b.title));
    samples
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_written_as_its_name_ends_and_replaces_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let session = crate::session::Session::new();
        for (name, begins) in
            [("a.md", "#"), ("a.html", "<!doctype html>"), ("a.json", "{"), ("a.txt", "NONE")]
        {
            let path = folder.path().join(name);
            export(&path, session.report()).unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(text.to_lowercase().starts_with(&begins.to_lowercase()), "{name}: {text:.40}");
            assert!(export(&path, session.report()).is_err());
        }
    }

    #[test]
    fn editors_are_told_the_line_their_own_way() {
        let words = |program: &str, line| -> Vec<String> {
            let words = editor_arguments(program, Path::new("/x/a.py"), line);
            words.into_iter().map(|word| word.into_string().unwrap()).collect()
        };
        assert_eq!(words("/usr/bin/vim", Some(60)), ["+60", "/x/a.py"]);
        assert_eq!(words("code", Some(60)), ["--wait", "--goto", "/x/a.py:60"]);
        assert_eq!(words("hx", Some(60)), ["/x/a.py:60"]);
        assert_eq!(words("nano", None), ["/x/a.py"]);
    }

    #[test]
    fn samples_are_told_by_their_readme() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("b-case")).unwrap();
        std::fs::create_dir(folder.path().join("a-case")).unwrap();
        std::fs::write(folder.path().join("a-case/README.md"), "# A rank that died\n").unwrap();
        let titles: Vec<String> = samples_in(folder.path()).into_iter().map(|sample| sample.title).collect();
        assert_eq!(titles, ["a-case: A rank that died"]);
    }
}
