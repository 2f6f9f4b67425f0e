//! One input of any kind to events and artifacts.
//!
//! In: a kind and bytes. Out: [`InputReading`]: events, and the typed content of files that are no text. It leaves
//! opening files to `source` and meaning to `verdict`.

use super::coredump::{self, DumpSummary};
use super::event::{Data, Event, FlightDumpSummary, InputId, Origin, RasSummary, Span};
use super::flight_recorder::{self, FlightDump};
use super::nccl_ras::{self, RasAnswer};
use super::{
    Progress, Reading, dcgm, model_config, nvidia_smi, probe_report, read_text_watched, sanitizer_xml,
    shapes, tritonparse,
};
use crate::source::InputKind;

/// What a file that is no text holds.
#[derive(Debug)]
pub enum Artifact {
    /// A CUDA core dump.
    Dump(Box<DumpSummary>),
    /// A flight-recorder dump.
    Flight(FlightDump),
    /// A RAS answer.
    Ras(RasAnswer),
    /// Compilations of a trace.
    Compiled(Vec<tritonparse::Compilation>),
}

/// What the readers made of one input.
#[derive(Debug, Default)]
pub struct InputReading {
    /// Events and diagnostics.
    pub reading: Reading,
    /// Content of files that are no text.
    pub artifacts: Vec<Artifact>,
    /// True where no reader takes this kind.
    pub unread: bool,
}

/// Reads one input; `progress` counts its bytes.
#[must_use]
pub fn read_input(input: InputId, kind: InputKind, bytes: &[u8], progress: &Progress) -> InputReading {
    if !kind.is_line_text() {
        progress.add(bytes.len() as u64);
    }
    match kind {
        InputKind::CoreDump => dump(input, bytes),
        InputKind::FlightRecorder => flight(input, bytes),
        InputKind::SanitizerXml => sanitizer_report(input, bytes),
        InputKind::NcclRas => ras(input, bytes),
        InputKind::ModelConfig => model(input, bytes),
        InputKind::ProbeReport => probe(input, bytes),
        InputKind::NvidiaSmi => {
            let reading = match nvidia_smi::is_xml(bytes) {
                true => {
                    progress.add(bytes.len() as u64);
                    nvidia_smi::read_xml(input, bytes)
                }
                false => nvidia_smi::add_text(text(input, bytes, progress), input, bytes),
            };
            InputReading { reading, ..InputReading::default() }
        }
        InputKind::Dcgm => InputReading { reading: dcgm::read(input, bytes), ..InputReading::default() },
        InputKind::Tritonparse => trace(input, bytes),
        kind if kind.is_line_text() => {
            let mut reading = text(input, bytes, progress);
            reading.events.extend(nvidia_smi::excerpts(input, bytes));
            InputReading { reading, ..InputReading::default() }
        }
        InputKind::Empty => InputReading::default(),
        _ => InputReading { unread: true, ..InputReading::default() },
    }
}

/// Events of a text, then the shapes near its failures, and what a probe printed into it.
fn text(input: InputId, bytes: &[u8], progress: &Progress) -> Reading {
    let mut reading = read_text_watched(input, bytes, progress);
    reading.times = super::times::times(bytes);
    reading.ends_well = super::went_on::ends_well(bytes);
    reading.went_on = super::went_on::went_on(bytes, &reading.events);
    reading.survived = super::went_on::survived(bytes, &reading.events);
    let (probes, problems) = probe_report::take_from_text(input, bytes, &mut reading.events);
    reading.diagnostics.extend(problems);
    let focus: Vec<Span> = reading.events.iter().map(|event| event.span).collect();
    reading.events.extend(shapes::read_near(input, bytes, &focus));
    shapes::mark_passed(input, bytes, &mut reading.events);
    shapes::mark_wide(bytes, &mut reading.events);
    reading.events.extend(probes);
    reading
}

fn probe(input: InputId, bytes: &[u8]) -> InputReading {
    let (events, diagnostics) = probe_report::read(input, bytes);
    let lines = memchr::memchr_iter(b'\n', bytes).count() as u64;
    InputReading {
        reading: Reading { events, diagnostics, lines, ..Reading::default() },
        ..InputReading::default()
    }
}

fn dump(input: InputId, bytes: &[u8]) -> InputReading {
    let (summary, diagnostics) = coredump::read(bytes);
    let mut events = Vec::new();
    if let Some(launch) = coredump::faulting_launch(&summary) {
        let text = launch_line(&launch);
        events.push(whole_file(input, Data::FaultingLaunch(launch), text));
    }
    for fact in coredump::environment_facts(&summary) {
        let text = format!("{}: {}", fact.name, fact.value);
        events.push(whole_file(input, Data::Environment(fact), text));
    }
    InputReading {
        reading: Reading { events, diagnostics, ..Reading::default() },
        artifacts: vec![Artifact::Dump(Box::new(summary))],
        unread: false,
    }
}

fn launch_line(launch: &super::event::FaultingLaunch) -> String {
    let arguments: Vec<String> =
        launch.arguments.iter().map(|(name, value)| format!("{name}={value}")).collect();
    format!(
        "{} in {}({})",
        launch.exception.as_deref().unwrap_or("running launch"),
        launch.kernel.as_deref().unwrap_or("an unnamed kernel"),
        arguments.join(", ")
    )
}

fn sanitizer_report(input: InputId, bytes: &[u8]) -> InputReading {
    let (events, diagnostics) = sanitizer_xml::read(bytes, input);
    let lines = memchr::memchr_iter(b'\n', bytes).count() as u64;
    InputReading {
        reading: Reading { events, diagnostics, lines, ..Reading::default() },
        ..InputReading::default()
    }
}

fn flight(input: InputId, bytes: &[u8]) -> InputReading {
    let dump = match flight_recorder::read(bytes) {
        Ok(dump) => dump,
        Err(error) => {
            let reading = Reading { diagnostics: vec![error.to_string()], ..Reading::default() };
            return InputReading { reading, ..InputReading::default() };
        }
    };
    let summary = FlightDumpSummary {
        rank: dump.rank,
        entries: dump.entries.len() as u64,
        groups: dump.groups.len() as u64,
        version: dump.version.clone(),
    };
    let text =
        format!("flight-recorder dump: {} entries, {} process groups", summary.entries, summary.groups);
    InputReading {
        reading: Reading {
            events: vec![whole_file(input, Data::FlightDump(summary), text)],
            diagnostics: dump.diagnostics.clone(),
            ..Reading::default()
        },
        artifacts: vec![Artifact::Flight(dump)],
        unread: false,
    }
}

fn ras(input: InputId, bytes: &[u8]) -> InputReading {
    let answer = nccl_ras::read(bytes);
    let summary = RasSummary {
        nccl_version: answer.nccl_version.clone(),
        communicators: answer.communicators.len() as u64,
        verdicts: answer
            .communicators
            .iter()
            .flat_map(|communicator| communicator.verdicts.iter().cloned())
            .collect(),
    };
    let words =
        if summary.verdicts.is_empty() { "no verdict".to_owned() } else { summary.verdicts.join(", ") };
    let text = format!("RAS answer: {} communicators, {words}", summary.communicators);
    InputReading {
        reading: Reading {
            events: vec![whole_file(input, Data::Ras(summary), text)],
            diagnostics: answer.diagnostics.clone(),
            ..Reading::default()
        },
        artifacts: vec![Artifact::Ras(answer)],
        unread: false,
    }
}

fn trace(input: InputId, bytes: &[u8]) -> InputReading {
    let trace = tritonparse::read(bytes);
    let events = tritonparse::events(&trace, input);
    InputReading {
        reading: Reading { events, lines: trace.lines, diagnostics: trace.diagnostics, ..Reading::default() },
        artifacts: vec![Artifact::Compiled(trace.compilations)],
        unread: false,
    }
}

fn model(input: InputId, bytes: &[u8]) -> InputReading {
    let reading = match model_config::read(bytes) {
        Ok(found) => {
            let facts = found.facts();
            let text = model_config::sentence(&facts);
            let events = vec![whole_file(input, Data::Model(Box::new(facts)), text)];
            Reading { events, diagnostics: found.notes, ..Reading::default() }
        }
        Err(error) => Reading { diagnostics: vec![error.to_string()], ..Reading::default() },
    };
    InputReading { reading, ..InputReading::default() }
}

/// An event of a file that has no lines.
fn whole_file(input: InputId, data: Data, text: String) -> Event {
    Event { span: Span { input, line: 0, byte: 0, lines: 0 }, origin: Origin::default(), data, text }
}
