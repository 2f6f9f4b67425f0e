//! `warpfault resume`: past incidents, or one of them.
//!
//! In: an id, or none. Out: a list, or the incident's report and walk. Without a terminal it prints; with one the UI opens
//! it.

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use crate::effect;
use crate::error::Result;
use crate::report::text;
use crate::store::{Row, Store, resume};
use crate::text::escape;
use crate::tui::{self, TuiOptions};

use super::output;
use super::playbook::walk_page;

/// `warpfault resume`
#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// Incident's id; none lists them.
    pub id: Option<String>,
    /// Folder of playbooks, laid over the shipped ones and your own; repeatable.
    #[arg(long, value_name = "DIR")]
    pub playbooks: Vec<PathBuf>,
}

/// Runs it.
pub fn run(args: &ResumeArgs) -> Result<u8> {
    let store = Store::of_user()?;
    let Some(id) = &args.id else {
        return output::print(&list(&store.list()?)).map(|()| 0);
    };
    if super::open::can_draw() && args.playbooks.is_empty() {
        return tui::run(TuiOptions { resume: Some(id.clone()), ..TuiOptions::default() });
    }
    let (library, notes) = effect::library(&args.playbooks)?;
    let resumed = resume(&store, id, Arc::new(library))?;
    for note in notes.iter().chain(&resumed.notes) {
        output::tell(&escape(note).to_string());
    }
    let report = text::render(resumed.session.report(), text::Paint::Ansi);
    output::print(&format!("{report}\n{}", walk_page(resumed.session.walk())))?;
    Ok(0)
}

fn list(rows: &[Row]) -> String {
    let mut out = String::new();
    if rows.is_empty() {
        out.push_str("no incident was saved yet\n");
    }
    for row in rows {
        let times = rows.iter().filter(|other| other.signature == row.signature).count();
        let seen = if times > 1 && row.signature.is_some() {
            format!(" (seen {times} times)")
        } else {
            String::new()
        };
        let what = row.cause.as_ref().unwrap_or(&row.class);
        let input = row.input.as_deref().unwrap_or("");
        let _ = writeln!(out, "{:20} {:18} {}{seen}", row.id, escape(what), escape(input));
        let _ = writeln!(out, "{:20} {}", "", escape(&row.summary));
    }
    out
}
