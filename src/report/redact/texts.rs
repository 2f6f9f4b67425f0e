//! Every text of a report that may hold something from outside.
//!
//! In: a report. Out: its texts, to be read or changed in place. Each struct is taken apart field by field, so that a field
//! added later fails to compile here until somebody decides about it. Enums, numbers and the tool's own name are left out.

use serde_json::{Map, Value};

use super::super::Report;
use super::super::model::{
    Cause, Check, Code, Collective, Diagnostic, Evidence, Failure, FaultAt, From, HistoryEntry, Hypothesis,
    Input, Mitigation, Next, ObservedAt, Rank, Restart, Verdict,
};

/// The texts, in the order of the report.
pub(super) fn of(report: &mut Report) -> Vec<&mut String> {
    let Report {
        schema: _,
        tool: _,
        inputs,
        verdict,
        failures,
        hypotheses,
        evidence,
        shapes,
        ranks,
        checks,
        next,
        mitigations,
        history,
        diagnostics,
    } = report;
    let mut all = Vec::new();
    for Input { path, kind: _, bytes: _, lines: _, truncated: _ } in inputs {
        all.push(path);
    }
    of_verdict(verdict, &mut all);
    for Failure { class: _, role: _, shown: _, rank: _, why, evidence: _ } in failures {
        all.extend(why);
    }
    for Hypothesis { class: _, cause: _, certainty: _, summary, supports: _, against: _, would_settle } in
        hypotheses
    {
        all.push(summary);
        all.extend(would_settle);
    }
    evidence.iter_mut().for_each(|evidence| of_evidence(evidence, &mut all));
    shapes.iter_mut().for_each(|shape| of_value(shape, &mut all));
    for rank in ranks {
        let Rank {
            rank: _,
            host,
            pid: _,
            pci,
            state: _,
            signal: _,
            exit_code: _,
            last_enqueued: _,
            last_completed: _,
            evidence: _,
        } = rank;
        all.extend([host, pci].into_iter().flatten());
    }
    for Check { id: _, title, status: _, reading, evidence: _ } in checks {
        all.extend([title, reading]);
    }
    for Next { id: _, title, command, cost, why } in next {
        all.extend([title, cost, why]);
        all.extend(command.iter_mut().flatten());
    }
    for Mitigation { summary, scope: _ } in mitigations {
        all.push(summary);
    }
    for entry in history {
        let HistoryEntry {
            at: _,
            by,
            playbook: _,
            step: _,
            title,
            did,
            command,
            exit_code: _,
            duration_ms: _,
        } = entry;
        all.extend(by);
        all.extend([title, did]);
        all.extend(command.iter_mut().flatten());
    }
    for Diagnostic { severity: _, message } in diagnostics {
        all.push(message);
    }
    all
}

/// The command lines, word by word: of the steps, and as the log printed them.
pub(super) fn commands(report: &mut Report) -> Vec<Vec<&mut String>> {
    let next = report.next.iter_mut().filter_map(|step| step.command.as_mut());
    let done = report.history.iter_mut().filter_map(|entry| entry.command.as_mut());
    let steps = next.chain(done).map(|words| words.iter_mut().collect());
    let printed = report.evidence.iter_mut().filter_map(|evidence| {
        let words = evidence.fields.get_mut("words")?.as_array_mut()?;
        Some(words.iter_mut().filter_map(text_of).collect())
    });
    steps.chain(printed).collect()
}

fn text_of(value: &mut Value) -> Option<&mut String> {
    match value {
        Value::String(text) => Some(text),
        _ => None,
    }
}

fn of_verdict<'r>(verdict: &'r mut Verdict, all: &mut Vec<&'r mut String>) {
    let Verdict {
        class: _,
        family: _,
        certainty: _,
        summary,
        cause,
        code,
        masked_by: _,
        reported_asynchronously: _,
        observed_at,
        fault_at,
        root_rank: _,
        collective,
        restart: Restart { advice: _, summary: restart },
    } = verdict;
    all.extend([summary, restart]);
    all.extend(cause.iter_mut().map(|Cause { kind: _, certainty: _, summary }| summary));
    if let Some(Code { domain: _, number: _, name }) = code {
        all.extend(name);
    }
    if let Some(notice) = observed_at {
        let ObservedAt {
            rank: _,
            file,
            line: _,
            function,
            call,
            call_text,
            log_line: _,
            is_sync_point: _,
            evidence: _,
        } = notice;
        all.extend([file, function, call, call_text].into_iter().flatten());
    }
    if let Some(fault) = fault_at {
        let FaultAt {
            rank: _,
            kernel,
            file,
            line: _,
            grid: _,
            block: _,
            thread: _,
            pc,
            address,
            access,
            function,
            library,
            offset,
            evidence: _,
        } = fault;
        all.extend([kernel, file, pc, address, access, function, library, offset].into_iter().flatten());
    }
    if let Some(Collective { op, seq: _, group, numel_in: _, numel_out: _ }) = collective {
        all.extend([op, group].into_iter().flatten());
    }
}

fn of_evidence<'r>(evidence: &'r mut Evidence, all: &mut Vec<&'r mut String>) {
    let Evidence { id: _, kind: _, rank: _, time, from, text, fields } = evidence;
    match from {
        From::Span { input: _, line: _, byte: _, lines: _ }
        | From::Derived { from: _ }
        | From::Probe
        | From::Answer => {}
    }
    all.extend(time);
    all.push(text);
    of_map(fields, all);
}

fn of_map<'r>(map: &'r mut Map<String, Value>, all: &mut Vec<&'r mut String>) {
    map.values_mut().for_each(|value| of_value(value, all));
}

fn of_value<'r>(value: &'r mut Value, all: &mut Vec<&'r mut String>) {
    match value {
        Value::String(text) => all.push(text),
        Value::Array(values) => values.iter_mut().for_each(|value| of_value(value, all)),
        Value::Object(map) => of_map(map, all),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
