//! Case and verdict to the report that other programs read.
//!
//! In: a case and its verdict. Out: a [`Report`], every string escaped. It decides nothing.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::arith::Reading;
use crate::case::{Case, Evidence, EvidenceId, Fact, Provenance};
use crate::read::event::{Data, Event, Messenger};
use crate::text::escape;
use crate::verdict::{self, Verdict, places};

use super::fields;
use super::model::{self, Report};
use super::shapes::ShapeView;

/// Evidence that a report lists beside what it refers to.
const EVIDENCE_LIMIT: usize = 400;

/// Versions, settings and commands that it lists beyond those.
const FACT_LIMIT: usize = 200;

/// Shapes that a report lists.
const SHAPE_LIMIT: usize = 12;

/// Builds the report.
#[must_use]
pub fn build(case: &Case, verdict: &Verdict) -> Report {
    Report {
        schema: model::SCHEMA,
        tool: model::Tool { name: env!("CARGO_PKG_NAME"), version: env!("CARGO_PKG_VERSION") },
        inputs: case.inputs().iter().map(input).collect(),
        verdict: answer(verdict),
        failures: verdict.failures.iter().map(|one| failure(one, verdict.failures.first())).collect(),
        hypotheses: verdict.hypotheses.iter().map(hypothesis).collect(),
        evidence: evidence(case, verdict),
        shapes: verdict.shapes.iter().take(SHAPE_LIMIT).filter_map(shape).collect(),
        ranks: verdict.ranks.iter().map(rank).collect(),
        checks: verdict.checks.iter().map(check).collect(),
        next: next_steps(&verdict.next),
        mitigations: verdict
            .mitigations
            .iter()
            .map(|m| model::Mitigation { summary: show(&m.summary), scope: m.scope.to_owned() })
            .collect(),
        history: Vec::new(),
        diagnostics: case
            .notes()
            .iter()
            .chain(&verdict.notes)
            .map(|note| model::Diagnostic {
                severity: note.severity.to_owned(),
                message: show(&note.message),
            })
            .collect(),
    }
}

/// Text from outside, made safe to print.
pub(super) fn show(text: &str) -> String {
    escape(text).to_string()
}

fn ids(ids: &[EvidenceId]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}

fn hex(value: Option<u64>) -> Option<String> {
    value.map(|value| format!("{value:#x}"))
}

fn input(input: &crate::case::InputMeta) -> model::Input {
    model::Input {
        path: show(&input.path),
        kind: input.kind,
        bytes: input.bytes,
        lines: input.lines,
        truncated: input.truncated,
    }
}

fn answer(verdict: &Verdict) -> model::Verdict {
    model::Verdict {
        class: verdict.class,
        family: verdict.class.family(),
        certainty: verdict.certainty,
        summary: show(&verdict.summary),
        cause: verdict.cause().and_then(|hypothesis| {
            Some(model::Cause {
                kind: hypothesis.cause?,
                certainty: hypothesis.certainty,
                summary: show(&hypothesis.summary),
            })
        }),
        code: verdict.code.as_ref().map(|code| model::Code {
            domain: code.domain.to_owned(),
            number: code.number,
            name: code.name.as_deref().map(show),
        }),
        masked_by: verdict.masked_by.and_then(masked_by),
        reported_asynchronously: verdict.asynchronous,
        observed_at: verdict.places.notice.as_ref().map(notice),
        fault_at: verdict.places.fault.as_ref().map(fault),
        root_rank: verdict.root_rank,
        collective: verdict.collective.as_ref().map(|collective| model::Collective {
            op: Some(show(&collective.op)).filter(|op| !op.is_empty()),
            seq: collective.seq,
            group: collective.group.as_deref().map(show),
            numel_in: collective.numel_in,
            numel_out: collective.numel_out,
        }),
        restart: model::Restart { advice: verdict.restart.advice, summary: show(&verdict.restart.summary) },
    }
}

fn masked_by(messenger: Messenger) -> Option<model::MaskedBy> {
    Some(match messenger {
        Messenger::NcclWatchdog | Messenger::Nccl => model::MaskedBy::NcclWatchdog,
        Messenger::Cublas => model::MaskedBy::Cublas,
        Messenger::Cudnn => model::MaskedBy::Cudnn,
        Messenger::Destructor => model::MaskedBy::Destructor,
        Messenger::Allocator => model::MaskedBy::Allocator,
        Messenger::Launcher => model::MaskedBy::Launcher,
        Messenger::SanitizerEcho => return None,
    })
}

fn notice(notice: &places::Notice) -> model::ObservedAt {
    model::ObservedAt {
        rank: notice.rank,
        file: notice.file.as_deref().map(show),
        line: notice.line,
        function: notice.function.as_deref().map(show),
        call: notice.call.as_deref().map(show),
        call_text: notice.call_text.as_deref().map(show),
        log_line: notice.log_line,
        is_sync_point: notice.is_sync_point,
        evidence: ids(&notice.evidence),
    }
}

fn fault(fault: &places::Fault) -> model::FaultAt {
    model::FaultAt {
        rank: fault.rank,
        kernel: fault.kernel.as_deref().map(show),
        file: fault.file.as_deref().map(show),
        line: fault.line,
        grid: fault.grid,
        block: fault.block,
        thread: fault.thread,
        pc: hex(fault.pc),
        address: hex(fault.address),
        access: fault.access.as_deref().map(show),
        function: fault.function.as_deref().map(show),
        library: fault.library.as_deref().map(show),
        offset: hex(fault.offset),
        evidence: ids(&fault.evidence),
    }
}

fn failure(failure: &verdict::Failure, root: Option<&verdict::Failure>) -> model::Failure {
    model::Failure {
        class: failure.class,
        role: failure.role,
        shown: root.and_then(|root| failure.beside(root)),
        rank: failure.rank,
        why: Some(show(&failure.why)).filter(|why| !why.is_empty()),
        evidence: ids(&failure.evidence),
    }
}

fn hypothesis(hypothesis: &verdict::Hypothesis) -> model::Hypothesis {
    model::Hypothesis {
        class: hypothesis.class,
        cause: hypothesis.cause,
        certainty: hypothesis.certainty,
        summary: show(&hypothesis.summary),
        supports: ids(&hypothesis.supports),
        against: ids(&hypothesis.against),
        would_settle: hypothesis.would_settle.iter().map(|text| show(text)).collect(),
    }
}

/// A shape that 64 bits cannot count is left out: its log is wrong, or hostile.
fn shape(row: &verdict::shapes::ShapeRow) -> Option<Value> {
    let view = ShapeView::of(&row.layout, row.sweep, None).ok()?;
    let mut value = serde_json::to_value(&view).ok()?;
    let map = value.as_object_mut()?;
    map.insert("dtype".to_owned(), row.mention.dtype.as_deref().map(show).into());
    map.insert("label".to_owned(), row.mention.label.as_deref().map(show).into());
    let likelihood = match row.likelihood {
        verdict::shapes::Likelihood::Operand => "operand",
        verdict::shapes::Likelihood::Near => "near",
        verdict::shapes::Likelihood::Mentioned => "mentioned",
    };
    map.insert("likelihood".to_owned(), likelihood.into());
    map.insert("evidence".to_owned(), vec![row.evidence.to_string()].into());
    escape_names(map);
    Some(value)
}

/// Names of dimensions come from the log.
fn escape_names(map: &mut Map<String, Value>) {
    let names = map.get_mut("names").and_then(Value::as_array_mut).into_iter().flatten();
    for name in names {
        if let Some(text) = name.as_str() {
            *name = show(text).into();
        }
    }
    if let Some(text) = map.get("sweep").and_then(Value::as_str) {
        let text = show(text);
        map.insert("sweep".to_owned(), text.into());
    }
}

fn rank(row: &verdict::RankRow) -> model::Rank {
    model::Rank {
        rank: row.rank,
        host: row.host.as_deref().map(show),
        pid: row.pid,
        pci: row.pci.as_deref().map(show),
        state: row.state,
        signal: row.signal,
        exit_code: row.exit_code,
        last_enqueued: row.last_enqueued,
        last_completed: row.last_completed,
        evidence: ids(&row.evidence),
    }
}

fn check(check: &verdict::Check) -> model::Check {
    model::Check {
        id: check.id.to_owned(),
        title: check.title.to_owned(),
        status: check.status,
        reading: show(&check.reading),
        evidence: ids(&check.evidence),
    }
}

/// Next steps as a report has them.
#[must_use]
pub fn next_steps(steps: &[verdict::Next]) -> Vec<model::Next> {
    steps.iter().map(next).collect()
}

fn next(step: &verdict::Next) -> model::Next {
    model::Next {
        id: step.id.to_owned(),
        title: step.title.to_owned(),
        command: step.command.as_ref().map(|words| words.iter().map(|word| show(word)).collect()),
        cost: step.cost.to_owned(),
        why: step.why.to_owned(),
    }
}

/// What the report refers to, then the first of the rest.
fn evidence(case: &Case, verdict: &Verdict) -> Vec<model::Evidence> {
    let referred = referred(verdict);
    let wrapped = wrapped(case, verdict);
    let mut room = EVIDENCE_LIMIT;
    let mut facts = FACT_LIMIT;
    let take = |room: &mut usize| {
        let fits = *room > 0;
        *room = room.saturating_sub(1);
        fits
    };
    case.evidence()
        .iter()
        .filter(|evidence| {
            referred.contains(&evidence.id) || take(&mut room) || is_asked_for(evidence) && take(&mut facts)
        })
        .map(|evidence| {
            let mut shown = one_evidence(evidence);
            if let Some((_, value)) = wrapped.iter().find(|(id, _)| *id == evidence.id) {
                shown.fields.insert("wrapped".to_owned(), value.clone());
            }
            shown
        })
        .collect()
}

/// What every maintainer asks for first, however long the log is.
fn is_asked_for(evidence: &Evidence) -> bool {
    matches!(&evidence.fact, Fact::Event(event) if matches!(event.data, Data::Environment(_) | Data::Command(_)))
}

/// The indices that the distance test recovers, beside the records that they are read from.
fn wrapped(case: &Case, verdict: &Verdict) -> Vec<(EvidenceId, Value)> {
    let Some(view) = verdict.view(case) else { return Vec::new() };
    let found =
        verdict::cause::distance::readings(&view).into_iter().filter_map(|reading| match reading.reading {
            Reading::Wrapped(found) => Some((reading.evidence, found)),
            _ => None,
        });
    found
        .filter_map(|(id, found)| {
            let base = case.get(id).and_then(|evidence| match &evidence.fact {
                Fact::Event(event) => match &event.data {
                    Data::Sanitizer(record) => record.nearest.map(|near| near.base),
                    _ => None,
                },
                Fact::Derived(_) => None,
            })?;
            let intended = base.checked_add(found.recovered_index.checked_mul(found.element_bytes)?)?;
            let value = serde_json::json!({
                "element_bytes": found.element_bytes, "multiples": found.k, "index": found.recovered_index,
                "row": found.row_col.map(|(row, _)| row), "column": found.row_col.map(|(_, column)| column),
                "intended": hex(Some(intended)),
            });
            Some((id, value))
        })
        .collect()
}

fn referred(verdict: &Verdict) -> BTreeSet<EvidenceId> {
    let mut all = BTreeSet::new();
    let places = &verdict.places;
    all.extend(places.notice.iter().flat_map(|notice| notice.evidence.iter().copied()));
    all.extend(places.fault.iter().flat_map(|fault| fault.evidence.iter().copied()));
    all.extend(verdict.failures.iter().flat_map(|failure| failure.evidence.iter().copied()));
    all.extend(verdict.hypotheses.iter().flat_map(|h| h.supports.iter().chain(&h.against).copied()));
    all.extend(verdict.ranks.iter().flat_map(|row| row.evidence.iter().copied()));
    all.extend(verdict.checks.iter().flat_map(|check| check.evidence.iter().copied()));
    all
}

/// The host that printed the line, where its prefixes name one.
fn with_host(mut fields: Map<String, Value>, event: &Event) -> Map<String, Value> {
    if let Some(host) = &event.origin.host {
        fields.insert("host".to_owned(), show(host).into());
    }
    fields
}

fn one_evidence(evidence: &Evidence) -> model::Evidence {
    let from = match &evidence.provenance {
        Provenance::Span(span) => {
            model::From::Span { input: span.input.0, line: span.line, byte: span.byte, lines: span.lines }
        }
        Provenance::Derived(from) => model::From::Derived { from: ids(from) },
        Provenance::Probe => model::From::Probe,
        Provenance::Answer => model::From::Answer,
    };
    let id = evidence.id.to_string();
    match &evidence.fact {
        Fact::Event(event) => model::Evidence {
            id,
            kind: fields::kind(&event.data),
            rank: event.origin.rank,
            time: event.origin.time.as_ref().map(|stamp| show(&stamp.text)),
            from,
            text: show(event.text.trim_end()),
            fields: with_host(fields::fields(event), event),
        },
        Fact::Derived(derived) => model::Evidence {
            id,
            kind: model::EvidenceKind::Derived,
            rank: None,
            time: None,
            from,
            text: show(&derived.text),
            fields: derived
                .fields
                .iter()
                .map(|(name, value)| ((*name).to_owned(), show(value).into()))
                .collect(),
        },
    }
}
