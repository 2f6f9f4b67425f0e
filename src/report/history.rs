//! What was done in the walk: who answered what, which commands ran, how they ended.
//!
//! In: the walk's record and the playbooks. Out: rows for the report, escaped. It leaves what an entry means for the verdict
//! to the engine.

use crate::playbook::Library;
use crate::playbook::record::{Ended, Entry, Happened, Ran, Record};
use crate::text::escape;

use super::model::HistoryEntry;

/// Rows that a report keeps, the last ones.
const LIMIT: usize = 500;

/// The rows of a record, the first thing first. A start stands only where its end is missing.
#[must_use]
pub fn rows(record: &Record, library: &Library) -> Vec<HistoryEntry> {
    let skip = record.history.len().saturating_sub(LIMIT);
    let entries = record.history.iter().enumerate().skip(skip);
    entries
        .filter(|(index, entry)| {
            entry.what != Happened::Started
                || !has_end(record.history.get(index + 1..).unwrap_or_default(), entry)
        })
        .map(|(_, entry)| row(entry, library))
        .collect()
}

fn has_end(later: &[Entry], started: &Entry) -> bool {
    later.iter().any(|entry| entry.step == started.step && matches!(entry.what, Happened::Ran(_)))
}

fn row(entry: &Entry, library: &Library) -> HistoryEntry {
    let show = |text: &str| escape(text).to_string();
    let step = library.get(&entry.step.playbook).and_then(|playbook| playbook.step(&entry.step.step));
    let title = step.map_or(entry.step.step.as_str(), |(_, step)| step.title.as_str());
    let (did, ran) = match &entry.what {
        Happened::Answered(answer) => (format!("answered: {}", answer.text()), None),
        Happened::Chose(outcome) => (format!("outcome: {outcome}"), None),
        Happened::Skipped => ("skipped".to_owned(), None),
        Happened::Applied => ("done".to_owned(), None),
        Happened::Reopened => ("opened again".to_owned(), None),
        Happened::Started => ("started; its end is not known".to_owned(), None),
        Happened::Ran(ran) => (how_it_ended(ran), Some(ran)),
    };
    let command = ran.filter(|ran| !ran.command.is_empty()).map(|ran| {
        let settings = ran.environment.iter().map(|(name, value)| format!("{name}={value}"));
        let env = (!ran.environment.is_empty()).then(|| "env".to_owned());
        env.into_iter().chain(settings).chain(ran.command.iter().cloned()).map(|word| show(&word)).collect()
    });
    HistoryEntry {
        at: entry.stamp.at.as_deref().map(show),
        by: entry.stamp.by.as_deref().map(show),
        playbook: show(&entry.step.playbook),
        step: show(&entry.step.step),
        title: show(title),
        did: show(&did),
        command,
        exit_code: ran.and_then(|ran| match ran.ended {
            Ended::Exit(code) => Some(code),
            _ => None,
        }),
        duration_ms: ran.filter(|ran| ran.ended != Ended::Elsewhere).map(|ran| ran.duration_ms),
    }
}

fn how_it_ended(ran: &Ran) -> String {
    let seconds = format!("{}.{} s", ran.duration_ms / 1000, ran.duration_ms % 1000 / 100);
    match &ran.ended {
        Ended::Exit(code) => format!("ran {seconds}, exit status {code}"),
        Ended::Signal(signal) => format!("ran {seconds}, ended by signal {signal}"),
        Ended::Deadline => format!("ran {seconds}, ended at its deadline"),
        Ended::Stopped => format!("ran {seconds}, ended by hand"),
        Ended::NotStarted(why) => format!("could not be started: {why}"),
        Ended::Elsewhere => {
            format!("ran elsewhere; its log: {}", ran.log.as_deref().unwrap_or("not named"))
        }
    }
}

/// `2026-01-02T03:04:05Z, ann` in front of a row; empty where neither is known.
#[must_use]
pub fn stamp(entry: &HistoryEntry) -> String {
    let parts: Vec<&str> = [&entry.at, &entry.by].into_iter().flatten().map(String::as_str).collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::playbook::StepRef;
    use crate::playbook::record::{Answer, Stamp};

    #[test]
    fn who_did_what_when_and_how_it_ended() {
        let mut record = Record::default();
        let by = |at: &str| Stamp { at: Some(at.to_owned()), by: Some("ann".to_owned()) };
        let blocking = StepRef::new("index-overflow", "launch-blocking");
        record.add_stamped(blocking.clone(), Happened::Started, by("1"));
        let ran = Ran {
            command: vec!["python3".to_owned(), "a\x1b.py".to_owned()],
            environment: vec![("CUDA_LAUNCH_BLOCKING".to_owned(), "1".to_owned())],
            ended: Ended::Exit(1),
            duration_ms: 61_250,
            output_bytes: 10,
            log: None,
            input: None,
        };
        record.add_stamped(blocking, Happened::Ran(ran), by("2"));
        let phase = StepRef::new("index-overflow", "phase");
        record.add_stamped(phase, Happened::Answered(Answer::Choice("a shard".to_owned())), by("3"));
        record.add(StepRef::new("gone", "x"), Happened::Started);
        let rows = rows(&record, &Library::shipped());
        let said: Vec<(&str, &str)> = rows.iter().map(|row| (row.title.as_str(), row.did.as_str())).collect();
        assert_eq!(
            said,
            [
                ("Rerun with launch blocking", "ran 61.2 s, exit status 1"),
                ("Which phase, and sharded or not?", "answered: a shard"),
                ("x", "started; its end is not known"),
            ]
        );
        assert_eq!(stamp(&rows[0]), "2, ann");
        assert_eq!(stamp(&rows[2]), "");
        assert_eq!(
            rows[0].command.as_deref(),
            Some(&["env", "CUDA_LAUNCH_BLOCKING=1", "python3", "a\\x1b.py"].map(str::to_owned)[..])
        );
        assert_eq!((rows[0].exit_code, rows[0].duration_ms), (Some(1), Some(61_250)));
    }
}
