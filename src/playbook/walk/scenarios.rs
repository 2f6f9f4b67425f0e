//! Every step of every shipped playbook, in each of its outcomes, on evidence made for the purpose.
//!
//! A scenario is a line: `set NAME=VALUE; answer STEP=VALUE; choose STEP=OUTCOME; ran STEP NAME=VALUE …; skip STEP`. What it
//! leaves open is skipped, so that each walk comes to its end. The snapshots hold what a person reads on the way.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::*;
use crate::playbook::record::{Answer, Ended, Happened, Ran};
use crate::playbook::schema::{Action, Playbook};
use crate::playbook::{names, schema};

const SCENARIOS: &[(&str, &str)] = &[
    ("illegal-address", include_str!("scenarios/illegal-address.txt")),
    ("index-overflow", include_str!("scenarios/index-overflow.txt")),
    ("illegal-instruction", include_str!("scenarios/illegal-instruction.txt")),
    ("nccl", include_str!("scenarios/nccl.txt")),
    ("symmetric-memory", include_str!("scenarios/symmetric-memory.txt")),
    ("cuda-graph", include_str!("scenarios/cuda-graph.txt")),
    ("segfault", include_str!("scenarios/segfault.txt")),
    ("triton-review", include_str!("scenarios/triton-review.txt")),
    ("device-assert", include_str!("scenarios/device-assert.txt")),
    ("out-of-memory", include_str!("scenarios/out-of-memory.txt")),
    ("race", include_str!("scenarios/race.txt")),
    ("leak", include_str!("scenarios/leak.txt")),
    ("hardware", include_str!("scenarios/hardware.txt")),
];

/// What is known in any incident: its class, its limits, which kinds of input are there.
fn evidence() -> Known {
    let mut known = Known::default();
    for root in names::ROOTS {
        known.put(root, Known::default());
    }
    known.put("limits.int32", 2_147_483_647_u64);
    known.put("shapes.count", 0);
    known.put("facts.probe.proven", false);
    known.put("facts.source.checked", false);
    for input in
        ["kernel_log", "sanitizer_report", "core_dump", "triton_cache", "triton", "flight_recorder", "ras"]
    {
        known.put(&format!("facts.{input}"), false);
    }
    known
}

fn value(text: &str) -> Known {
    if let Some(list) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        let items = list.split('|').filter(|item| !item.is_empty());
        return Known::List(items.map(value).collect());
    }
    match text {
        "true" => Known::Bool(true),
        "false" => Known::Bool(false),
        _ => text.parse::<i128>().map_or_else(|_| Known::from(text), Known::Int),
    }
}

struct Scenario {
    evidence: Known,
    record: Record,
    runs: BTreeMap<StepRef, Known>,
}

impl Scenario {
    fn read(playbook: &Playbook, line: &str) -> Self {
        let mut scenario = Self { evidence: evidence(), record: Record::default(), runs: BTreeMap::new() };
        for item in line.split(';').map(str::trim).filter(|item| !item.is_empty()) {
            scenario.item(playbook, item);
        }
        scenario
    }

    fn item(&mut self, playbook: &Playbook, item: &str) {
        let (verb, rest) = item.split_once(' ').unwrap();
        if verb == "set" {
            let (path, text) = rest.split_once('=').unwrap();
            // One word lays the measured shape of the field's own case.
            if path == "shape" {
                let mut record = Record::default();
                record.add(StepRef::new("x", "shape"), Happened::Answered(Answer::Shape(text.to_owned())));
                crate::playbook::facts::answers(&mut self.evidence, &record);
                self.evidence.put("answers", Known::default());
                return;
            }
            // Settings are text, as the log prints them.
            let setting = path.starts_with("environment.");
            return self.evidence.put(path, if setting { Known::from(text) } else { value(text) });
        }
        if verb == "ran" {
            let mut words = rest.split(' ');
            let at = StepRef::new(&playbook.id, words.next().unwrap());
            assert!(playbook.step(&at.step).is_some(), "{item}");
            let mut this = Known::default();
            for (name, text) in [
                ("ran", "true"),
                ("started", "true"),
                ("timed_out", "false"),
                ("stopped", "false"),
                ("seconds", "12"),
            ] {
                this.put(name, value(text));
            }
            for word in words {
                let (name, text) = word.split_once('=').unwrap();
                this.put(name, value(text));
            }
            self.runs.insert(at.clone(), this);
            let ran = Ran {
                command: Vec::new(),
                environment: Vec::new(),
                // What the run showed is given by name; its settings are not looked at.
                ended: Ended::Elsewhere,
                duration_ms: 0,
                output_bytes: 0,
                log: None,
                input: None,
            };
            return self.record.add(at, Happened::Ran(ran));
        }
        let (step, text) = rest.split_once('=').unwrap_or((rest, ""));
        let at = StepRef::new(&playbook.id, step);
        let (_, found) = playbook.step(step).unwrap_or_else(|| panic!("{item}"));
        let what = match (verb, &found.action) {
            ("answer", Action::Ask(question)) => Happened::Answered(Answer::read(question, text).unwrap()),
            ("choose", _) => {
                assert!(found.outcomes.iter().any(|outcome| outcome.id == text), "{item}");
                Happened::Chose(text.to_owned())
            }
            ("skip", _) => Happened::Skipped,
            other => panic!("{item}: {other:?}"),
        };
        self.record.add(at, what);
    }

    fn walk(&self, playbook: &Playbook) -> Walk {
        let library = Library::shipped();
        let walker = Walker {
            library: &library,
            evidence: &self.evidence,
            record: &self.record,
            runs: &self.runs,
            probe: None,
            repro: None,
            unavailable: &[schema::StepKind::Probe],
        };
        walker.walk(Some(&playbook.id), &[])
    }

    /// Walks to the end of the first playbook, skipping what waits.
    fn finish(&mut self, playbook: &Playbook) -> Walk {
        for _ in 0..100 {
            let walk = self.walk(playbook);
            match walk.current() {
                Some(step) if walk.end.is_none() && step.at.playbook == playbook.id => {
                    self.record.add(step.at.clone(), Happened::Skipped);
                }
                _ => return walk,
            }
        }
        panic!("the walk has no end");
    }
}

type Seen = BTreeSet<(String, String, String)>;

fn tell(walk: &Walk, playbook: &str, seen: &mut Seen, out: &mut String) {
    let on_the_way = |step: &&WalkStep| {
        step.at.playbook == playbook && !matches!(step.state, StepState::Ahead | StepState::Aside)
    };
    for step in walk.steps.iter().filter(on_the_way) {
        let outcome = step.outcome.clone().unwrap_or_default();
        seen.insert((step.at.playbook.clone(), step.at.step.clone(), outcome.clone()));
        let head =
            if outcome.is_empty() { step.at.step.clone() } else { format!("{}: {outcome}", step.at.step) };
        writeln!(out, "  {:8} {head}", step.state.name()).unwrap();
        for (mark, text) in [("=", &step.shows), (">", &step.reading)] {
            if let Some(text) = text {
                writeln!(out, "           {mark} {text}").unwrap();
            }
        }
        if let (Act::Apply { text, scope }, StepState::Open) = (&step.act, step.state) {
            writeln!(out, "           {scope}: {text}").unwrap();
        }
    }
    let other = walk.steps.iter().find(|step| step.at.playbook != playbook).map(|step| &step.at.playbook);
    match (other, &walk.end) {
        (Some(other), _) => writeln!(out, "  → {other}").unwrap(),
        (None, Some(end)) => writeln!(out, "  {end:?}").unwrap(),
        (None, None) => writeln!(out, "  waits").unwrap(),
    }
}

/// Walks every scenario of a playbook; what a person reads, and the outcomes that were taken.
fn play(id: &str, lines: &str) -> (String, Seen) {
    let library = Library::shipped();
    let playbook = library.get(id).unwrap();
    let mut seen = Seen::new();
    let mut out = String::new();
    for line in lines.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        writeln!(out, "{line}").unwrap();
        let walk = Scenario::read(playbook, line).finish(playbook);
        tell(&walk, id, &mut seen, &mut out);
    }
    (out, seen)
}

#[test]
fn what_a_person_reads_on_every_way() {
    for (id, lines) in SCENARIOS {
        let (out, _) = play(id, lines);
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(format!("walk-{id}"), out);
        });
    }
}

#[test]
fn every_step_is_reached_and_every_outcome_taken() {
    let mut missing = Vec::new();
    for (id, lines) in SCENARIOS {
        let (_, seen) = play(id, lines);
        let library = Library::shipped();
        for step in &library.get(id).unwrap().steps {
            let taken =
                |outcome: &str| seen.contains(&((*id).to_owned(), step.id.clone(), outcome.to_owned()));
            let reached = seen.iter().any(|(_, at, _)| *at == step.id);
            if !reached {
                missing.push(format!("{id}: {} is never reached", step.id));
            }
            let outcomes = step.outcomes.iter().filter(|outcome| !taken(&outcome.id));
            missing
                .extend(outcomes.map(|outcome| format!("{id}: {}: {} is never taken", step.id, outcome.id)));
        }
    }
    assert_eq!(missing, Vec::<String>::new());
    let played: Vec<&str> = SCENARIOS.iter().map(|(id, _)| *id).collect();
    let shipped = Library::shipped();
    assert_eq!(played, shipped.playbooks().iter().map(|playbook| playbook.id.as_str()).collect::<Vec<_>>());
}
