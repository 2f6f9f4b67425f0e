//! The report of `warpfault probe --format json`: as a file, or within what a terminal showed.
//!
//! In: bytes. Out: an event with what was tried and how each trial ended, and what could not be read. In a transcript the
//! probe's own command, progress and exit status belong to the report and are no events of the incident. It leaves alone
//! what the trials prove.

use memchr::memmem;

use super::event::{Data, Event, InputId, Origin, ProbeReport, ProbeTrial, Span};

/// The schema that is read.
const SCHEMA: &str = "\"warpfault/probe/1\"";

/// Longest report that is read; the largest real ones have some tens of kilobytes.
const LIMIT_BYTES: usize = 8 << 20;

/// Most trials, arguments, faults and notes that are kept of a report.
const LIST_LIMIT: usize = 512;

/// Longest text that is kept of one field, in characters.
const TEXT_LIMIT: usize = 2_000;

/// Reports that one transcript may hold.
const REPORT_LIMIT: usize = 64;

/// Bytes between the report's opening brace and its schema.
const OPENING_BYTES: usize = 64;

/// Reads a file that is a report.
#[must_use]
pub fn read(input: InputId, bytes: &[u8]) -> (Vec<Event>, Vec<String>) {
    match parse(bytes) {
        Ok((report, _)) => (vec![event(report, Span { input, line: 0, byte: 0, lines: 0 })], Vec::new()),
        Err(why) => {
            (Vec::new(), vec![format!("is a probe report that can't be read ({why}); run the probe again")])
        }
    }
}

/// Finds reports within a text, and takes away the events that are the probe's own.
#[must_use]
pub fn take_from_text(input: InputId, bytes: &[u8], events: &mut Vec<Event>) -> (Vec<Event>, Vec<String>) {
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    let mut from = 0;
    let mut line = 1;
    let mut counted = 0;
    for at in memmem::find_iter(bytes, SCHEMA.as_bytes()).take(REPORT_LIMIT) {
        let Some(start) = opening(bytes, at).filter(|start| *start >= from) else { continue };
        line += lines(bytes.get(counted..start).unwrap_or_default());
        counted = start;
        match parse(bytes.get(start..).unwrap_or_default()) {
            Ok((report, length)) => {
                from = start + length;
                let height = lines(bytes.get(start..from).unwrap_or_default()) + 1;
                let span = Span {
                    input,
                    line,
                    byte: start as u64,
                    lines: u32::try_from(height).unwrap_or(u32::MAX),
                };
                drop_own(events, span.byte, from as u64);
                found.push(event(report, span));
            }
            Err(why) => {
                problems.push(format!(
                    "line {line}: a probe report that can't be read ({why}); run the probe again"
                ));
            }
        }
    }
    (found, problems)
}

fn lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// The brace before `"schema": …`, where nothing else stands between them.
fn opening(bytes: &[u8], schema: usize) -> Option<usize> {
    let from = schema.saturating_sub(OPENING_BYTES);
    let before = bytes.get(from..schema)?;
    let brace = memchr::memrchr(b'{', before)?;
    let between: String = before
        .get(brace + 1..)?
        .iter()
        .map(|byte| char::from(*byte))
        .filter(|c| !c.is_whitespace())
        .collect();
    (between == "\"schema\":").then_some(from + brace)
}

/// The report at the start of `bytes`, and how long it is.
fn parse(bytes: &[u8]) -> Result<(ProbeReport, usize), String> {
    let head = bytes.get(..LIMIT_BYTES).unwrap_or(bytes);
    let mut values = serde_json::Deserializer::from_slice(head).into_iter::<ProbeReport>();
    match values.next() {
        Some(Ok(report)) => Ok((bounded(report), values.byte_offset())),
        Some(Err(error)) if error.is_eof() && head.len() < bytes.len() => {
            Err(format!("it is longer than {LIMIT_BYTES} bytes"))
        }
        Some(Err(error)) if error.is_eof() => Err("it is cut".to_owned()),
        Some(Err(error)) => Err(error.to_string()),
        None => Err("it is empty".to_owned()),
    }
}

/// A hostile report costs no more than a real one.
fn bounded(mut report: ProbeReport) -> ProbeReport {
    let trials = |trials: &mut Vec<ProbeTrial>| {
        trials.truncate(LIST_LIMIT);
        for trial in trials {
            while trial.values.len() > 1 {
                trial.values.pop_last();
            }
        }
    };
    trials(&mut report.trials);
    if let Some(control) = &mut report.control {
        trials(&mut control.trials);
    }
    report.bindings.truncate(LIST_LIMIT);
    report.faults.truncate(LIST_LIMIT);
    report.notes.truncate(LIST_LIMIT);
    for text in report.texts() {
        if let Some((at, _)) = text.char_indices().nth(TEXT_LIMIT) {
            text.truncate(at);
        }
    }
    report
}

/// The command before a report, the exit status after it and everything between are the probe's.
fn drop_own(events: &mut Vec<Event>, start: u64, end: u64) {
    let first = events
        .iter()
        .filter(|event| event.span.byte < start && is_probe_command(event))
        .map(|event| event.span.byte)
        .max();
    let last = events
        .iter()
        .filter(|event| event.span.byte >= end)
        .min_by_key(|event| event.span.byte)
        .filter(|event| first.is_some() && matches!(event.data, Data::Exit(_)))
        .map(|event| event.span.byte);
    let own = first.unwrap_or(start)..=last.unwrap_or(end);
    events.retain(|event| !own.contains(&event.span.byte));
}

fn is_probe_command(event: &Event) -> bool {
    matches!(&event.data, Data::Command(command) if command.words.get(1).is_some_and(|word| word == "probe"))
}

fn event(report: ProbeReport, span: Span) -> Event {
    let kernel = if report.kernel.entry.is_empty() { "a kernel" } else { &report.kernel.entry };
    let device = report.device.as_ref().map(|device| format!(" on {}", device.name)).unwrap_or_default();
    let said = report.conclusion.map_or("nothing was run", |conclusion| conclusion.name());
    let text = format!("probe of {kernel}{device}: {said}: {}", report.why);
    Event { span, origin: Origin::default(), text, data: Data::Probe(Box::new(report)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::event::{ProbeBoundary, ProbeFinding};
    use crate::read::{InputReading, Progress, read_input};
    use crate::source::{InputKind, sniff};

    const REPORT: &str = r#"{
  "schema": "warpfault/probe/1",
  "device": {"name": "NVIDIA H200", "compute_capability": "9.0", "driver": null, "memory_bytes": 1, "new_key": []},
  "kernel": {"entry": "k", "source": "cubin", "path": "k.cubin"},
  "sweep": "M", "lattice": 16, "predicted": {"last_pass": 16, "first_fail": 32},
  "trials": [{"values": {"M": 16}, "outcome": "pass", "code": 0, "ms": 1.5, "role": "last_pass", "placement": "end"},
    {"values": {"M": 32}, "outcome": "illegal_address", "code": 700, "detail": "CUDA error: an illegal memory access was encountered"}],
  "boundary": {"last_pass": 16, "first_fail": 32}, "control": null, "conclusion": "confirmed", "why": "it does"
}
"#;

    fn text(bytes: &[u8]) -> InputReading {
        read_input(InputId(0), InputKind::Log, bytes, &Progress::default())
    }

    fn reports(reading: &InputReading) -> Vec<(Span, ProbeReport)> {
        let report = |event: &Event| match &event.data {
            Data::Probe(report) => Some((event.span, (**report).clone())),
            _ => None,
        };
        reading.reading.events.iter().filter_map(report).collect()
    }

    #[test]
    fn a_file_is_told_from_other_reports_and_read() {
        assert_eq!(sniff(REPORT.as_bytes(), None), InputKind::ProbeReport);
        let other = REPORT.replace("warpfault/probe/1", "warpfault/report/1");
        assert_eq!(sniff(other.as_bytes(), None), InputKind::Report);
        let (events, problems) = read(InputId(3), REPORT.as_bytes());
        assert_eq!(problems, Vec::<String>::new());
        let Data::Probe(report) = &events[0].data else { panic!("{events:?}") };
        assert_eq!(report.kernel.entry, "k");
        assert_eq!(report.boundary, ProbeBoundary { last_pass: Some(16), first_fail: Some(32) });
        assert_eq!(report.conclusion, Some(ProbeFinding::Confirmed));
        assert_eq!(report.trials.iter().map(ProbeTrial::value).collect::<Vec<_>>(), [Some(16), Some(32)]);
        assert_eq!(events[0].text, "probe of k on NVIDIA H200: confirmed: it does");
    }

    #[test]
    fn in_a_transcript_the_probes_own_lines_are_no_events() {
        let log = format!(
            "$ python3 train.py\nRuntimeError: CUDA error: an illegal memory access was encountered\n\
             $ warpfault probe cache --format json\nwarpfault:  32  illegal_address 700\n{REPORT}exit status 1\nexit status 3\n"
        );
        let reading = text(log.as_bytes());
        let found = reports(&reading);
        assert_eq!(found.len(), 1);
        let span = found[0].0;
        assert_eq!((span.line, span.lines), (5, 9));
        assert!(log[span.byte as usize..].starts_with('{'));
        let lines: Vec<u64> = reading.reading.events.iter().map(|event| event.span.line).collect();
        // Of the rest the job's command, its error and its own exit status.
        assert!(lines.iter().all(|line| [1, 2, 5, 15].contains(line)), "{lines:?}");
        assert!(lines.contains(&2) && lines.contains(&15), "{lines:?}");
    }

    #[test]
    fn two_reports_in_one_transcript_are_two() {
        let log = format!("{REPORT}\n$ warpfault probe again --json\n{REPORT}");
        assert_eq!(reports(&text(log.as_bytes())).len(), 2);
    }

    #[test]
    fn a_cut_or_scribbled_report_is_named_and_nothing_panics() {
        for cut in 0..REPORT.len() - 3 {
            let (events, problems) = read(InputId(0), &REPORT.as_bytes()[..cut]);
            assert!(events.is_empty() && problems.len() == 1, "{cut}");
            let _ = text(&REPORT.as_bytes()[..cut]);
        }
        for (from, to) in
            [("[{\"values\"", "[[[[{\"values\""), ("16", "1e400"), ("\"k\"", "{}"), ("1.5", "\"fast\"")]
        {
            let (events, problems) = read(InputId(0), REPORT.replace(from, to).as_bytes());
            assert!(events.is_empty() && problems[0].contains("run the probe again"), "{from}: {problems:?}");
        }
        let deep = format!("{{\"schema\": \"warpfault/probe/1\", \"x\": {}", "[".repeat(100_000));
        assert_eq!(read(InputId(0), deep.as_bytes()).1.len(), 1);
        assert!(text(deep.as_bytes()).reading.diagnostics[0].contains("line 1"));
    }

    #[test]
    fn sizes_are_capped() {
        let trial = "{\"values\": {\"M\": 16, \"N\": 1}, \"outcome\": \"pass\"},";
        let many = REPORT
            .replace("\"trials\": [", &format!("\"trials\": [{}", trial.repeat(5_000)))
            .replace("it does", &"ä".repeat(10_000));
        let (events, _) = read(InputId(0), many.as_bytes());
        let Data::Probe(report) = &events[0].data else { panic!() };
        assert_eq!((report.trials.len(), report.trials[0].values.len()), (LIST_LIMIT, 1));
        assert_eq!(report.why.chars().count(), TEXT_LIMIT);
        let huge = format!("{{\"schema\": \"warpfault/probe/1\", \"why\": \"{}\"}}", "x".repeat(LIMIT_BYTES));
        assert!(read(InputId(0), huge.as_bytes()).1[0].contains("longer than"));
    }
}
