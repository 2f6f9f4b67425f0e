//! A kernel under bindings → findings.
//!
//! In: a [`Kernel`] and [`Bindings`]. Out: an [`Analysis`]: the answer, its findings with a witness each, and what could
//! not be decided. It reads no file and knows no log.

use std::collections::{BTreeMap, BTreeSet};

use super::bind::Bindings;
use super::check::{Checker, Doubt, Verdict, Wrap, culprit};
use super::launch::{
    GridAssumption, applying, environment, grid_assumptions, grid_sizes, thread_facts, value_of,
};
use super::location::{Complaint, Location};
use super::model::{Access, AccessKind, Model, Source};
use super::solve::{Fact, Fuel};
use super::sweep::Sweep;
use super::sym::{NodeId, Origin, Point, VarKind};

/// A kernel ready to be analysed under any bindings.
#[derive(Debug)]
pub struct Kernel {
    /// Its accesses.
    pub model: Model,
    /// What its masks say about the grid.
    pub grid: Vec<GridAssumption>,
    /// What holds in every thread.
    pub thread_facts: Vec<Fact>,
}

impl Kernel {
    /// Prepares a model.
    #[must_use]
    pub fn new(mut model: Model) -> Self {
        for access in &mut model.accesses {
            access.meant = model.dag.meant(access.offset);
        }
        let thread_facts = thread_facts(&mut model);
        let grid = grid_assumptions(&mut model);
        Self { model, grid, thread_facts }
    }

    /// Writes the assumptions about the grid anew, after parameters got other names.
    pub fn rename_grid(&mut self) {
        self.grid = grid_assumptions(&mut self.model);
    }

    /// The facts that hold for every access under bindings.
    #[must_use]
    pub fn common_facts(&self, bindings: &Bindings) -> Vec<Fact> {
        let mut facts = self.thread_facts.clone();
        facts.extend(applying(&self.grid, bindings).into_iter().map(|a| (a.fact, true)));
        facts
    }
}

/// The answer about a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Answer {
    /// No 32-bit index can wrap.
    Fits,
    /// Not shown either way.
    Unknown,
    /// Some 32-bit index wraps.
    Wraps,
}

/// What kind of finding it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FindingKind {
    /// An index wraps before it reaches an address.
    Int32Overflow,
    /// An access without a mask passes the end.
    UnmaskedAccess,
    /// A row offset without its stride.
    MissingStride,
    /// A masked load without `other` feeds a reduction.
    MissingOther,
    /// Several programs store to one address.
    NonAtomicStore,
    /// A block size that is no power of two.
    BlockNotPowerOfTwo,
    /// A fixed `num_warps`.
    FixedNumWarps,
    /// Compiled for another architecture than the device's.
    ArchMismatch,
    /// More shared memory than the device has.
    SharedMemory,
}

/// How sure a finding is, in the words of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Certainty {
    /// Possible by what is known.
    Suspected,
    /// The compiled kernel says so at these values.
    Supported,
}

/// A point where a finding shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Witness {
    /// The program or block.
    pub program: [i128; 3],
    /// The lane of each tensor axis (TTIR) or the thread (PTX).
    pub lanes: Vec<(String, i128)>,
    /// Iterations of loops.
    pub iterations: Vec<i128>,
    /// The exact index that was meant.
    pub index: i128,
    /// What the 32-bit arithmetic makes of it.
    pub wrapped: i128,
}

/// One finding.
#[derive(Debug, Clone)]
pub struct Finding {
    /// Its kind.
    pub kind: FindingKind,
    /// How sure it is.
    pub certainty: Certainty,
    /// The expression, in the author's names.
    pub expression: String,
    /// `store to y_ptr`.
    pub reaches: String,
    /// Where the expression stands.
    pub location: Option<Location>,
    /// Where the access stands.
    pub access_location: Option<Location>,
    /// The extreme exact value, where it was computed.
    pub max_value: Option<i128>,
    /// The limit that it passes.
    pub limit: Option<i128>,
    /// A point where it happens.
    pub witness: Option<Witness>,
    /// Up to where it is safe.
    pub sweep: Option<Sweep>,
    /// A sentence for people.
    pub detail: String,
    /// What to write instead.
    pub remedy: Option<String>,
    /// Accesses that it concerns, as indices.
    pub accesses: Vec<usize>,
}

/// Something that stopped the analysis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// What.
    pub what: String,
    /// Where.
    pub location: Option<Location>,
    /// What would settle it, where that is known.
    pub settle: Option<String>,
}

/// What is known about a kernel under bindings.
#[derive(Debug, Clone)]
pub struct Analysis {
    /// The entry's name.
    pub entry: String,
    /// What was read.
    pub source: Source,
    /// `sm_90`.
    pub target: Option<String>,
    /// The answer about wraps.
    pub answer: Answer,
    /// The findings, wraps first.
    pub findings: Vec<Finding>,
    /// What could not be decided.
    pub unknown: Vec<Unknown>,
    /// Values used, by argument name.
    pub assumptions: BTreeMap<String, i128>,
    /// What was assumed beyond the given values, a sentence each.
    pub stated: Vec<String>,
    /// How many accesses there are.
    pub accesses: usize,
    /// How many of them could not be decided.
    pub undecided: usize,
    /// A sweep over the asked argument, where one was asked for.
    pub sweep: Option<Sweep>,
    /// What the reader could not make sense of.
    pub complaints: Vec<Complaint>,
    /// Remarks.
    pub notes: Vec<String>,
}

/// The raw verdict of every access.
pub(super) struct Verdicts {
    pub each: Vec<Verdict>,
    pub single: BTreeSet<u8>,
}

/// Analyses a kernel at the values that are set.
#[must_use]
pub fn analyze(kernel: &Kernel, bindings: &Bindings) -> Analysis {
    let all: Vec<usize> = (0..kernel.model.accesses.len()).collect();
    let verdicts = verdicts(kernel, bindings, &all, Fuel::default());
    let mut analysis = blank(kernel, bindings);
    let mut groups: Vec<Finding> = Vec::new();
    let mut undecided: Vec<&Access> = Vec::new();
    for (index, verdict) in verdicts.each.iter().enumerate() {
        let Some(access) = kernel.model.accesses.get(index) else { continue };
        match verdict {
            Verdict::Fits => {}
            Verdict::Wraps(wrap) => {
                let finding = overflow(kernel, bindings, index, access, wrap, &verdicts.single);
                merge(&mut groups, finding);
            }
            Verdict::Unknown(doubts) => {
                undecided.push(access);
                for doubt in doubts {
                    let unknown = describe(&kernel.model, access, doubt);
                    if !analysis.unknown.contains(&unknown) && analysis.unknown.len() < 200 {
                        analysis.unknown.push(unknown);
                    }
                }
            }
        }
    }
    analysis.undecided = operations(undecided);
    for axis in &verdicts.single {
        let letter = ["x", "y", "z"].get(usize::from(*axis)).copied().unwrap_or("?");
        analysis.stated.push(format!("grid {letter} is not known: taken as one program (--grid)"));
    }
    for (what, location) in &kernel.model.lost {
        analysis.unknown.push(Unknown { what: what.clone(), location: location.clone(), settle: None });
    }
    if kernel.model.dag.is_full() {
        let what = "the kernel is too large to follow as a whole".to_owned();
        analysis.unknown.push(Unknown { what, location: None, settle: None });
    }
    analysis.answer = match (groups.is_empty(), analysis.unknown.is_empty()) {
        (false, _) => Answer::Wraps,
        (true, true) => Answer::Fits,
        (true, false) => Answer::Unknown,
    };
    analysis.findings = groups;
    let unmasked = super::unmasked::find(kernel, bindings);
    analysis.stated.extend(unmasked.iter().filter_map(|f| f.1.clone()));
    analysis.stated.dedup();
    for (finding, _) in unmasked {
        merge(&mut analysis.findings, finding);
    }
    analysis
}

/// How many operations accesses stand for: one that a first and a later round of a loop reach is listed for each.
fn operations<'a>(accesses: impl IntoIterator<Item = &'a Access>) -> usize {
    let mut places = BTreeSet::new();
    let mut unplaced = 0;
    for access in accesses {
        if access.origin == Origin::NONE {
            unplaced += 1;
        } else {
            places.insert(access.origin);
        }
    }
    unplaced + places.len()
}

fn blank(kernel: &Kernel, bindings: &Bindings) -> Analysis {
    let model = &kernel.model;
    let mut assumptions = BTreeMap::new();
    let mut stated = Vec::new();
    for (index, param) in model.params.iter().enumerate() {
        if let Some(value) = value_of(model, bindings, index) {
            assumptions.insert(param.name.clone(), value);
            let lattice = lattice_of(model, bindings, index);
            if lattice > 1 && value.rem_euclid(i128::from(lattice)) != 0 {
                stated.push(format!(
                    "{} = {value} is no multiple of {lattice}, which the compiled kernel relies on",
                    param.name
                ));
            }
        }
    }
    stated.extend(applying(&kernel.grid, bindings).into_iter().map(|a| a.text.clone()));
    for (axis, size) in grid_sizes(bindings).into_iter().enumerate() {
        if let (Some(size), Some(Some(expr))) = (size, bindings.grid.get(axis))
            && !matches!(expr, super::bind::Expr::Number(_))
        {
            stated.push(format!(
                "grid {} = {expr} = {size}",
                ["x", "y", "z"].get(axis).copied().unwrap_or("?")
            ));
        }
    }
    Analysis {
        entry: model.entry.clone(),
        source: model.source,
        target: model.target.clone(),
        answer: Answer::Unknown,
        findings: Vec::new(),
        unknown: Vec::new(),
        assumptions,
        stated,
        accesses: operations(&model.accesses),
        undecided: 0,
        sweep: None,
        complaints: model.complaints.clone(),
        notes: model.notes.clone(),
    }
}

/// What an argument is promised to be a multiple of: the text's promise or the bindings'.
#[must_use]
pub fn lattice_of(model: &Model, bindings: &Bindings, index: usize) -> u64 {
    let Some(param) = model.params.get(index) else { return 1 };
    bindings.lattice.get(&param.name).copied().unwrap_or(1).max(param.divisibility)
}

/// Checks some accesses. Where an open grid leaves one undecided, it is tried again with one program along that axis:
/// every launch has at least that one.
pub(super) fn verdicts(kernel: &Kernel, bindings: &Bindings, which: &[usize], fuel: Fuel) -> Verdicts {
    let model = &kernel.model;
    let common = kernel.common_facts(bindings);
    let open = open_axes(kernel, bindings);
    let mut roots: Vec<NodeId> = common.iter().map(|f| f.0).collect();
    for access in which.iter().filter_map(|&i| model.accesses.get(i)) {
        roots.push(access.offset);
        roots.extend(&access.also);
        roots.extend(access.facts.iter().map(|f| f.0));
    }
    let mut env = environment(model, bindings, &BTreeSet::new(), &roots);
    let mut checker = Checker::new(model, &mut env, fuel);
    let mut each: Vec<Verdict> = Vec::new();
    let mut settled: Vec<bool> = Vec::new();
    for access in which.iter().filter_map(|&i| model.accesses.get(i)) {
        let verdict = checker.access(access, &common);
        settled.push(match &verdict {
            Verdict::Fits => true,
            Verdict::Wraps(_) => false,
            Verdict::Unknown(_) => checker.is_settled(),
        });
        each.push(verdict);
    }
    let mut single = BTreeSet::new();
    if !open.is_empty() && !settled.iter().all(|&settled| settled) {
        let mut env = environment(model, bindings, &open, &roots);
        let mut checker = Checker::new(model, &mut env, fuel);
        for ((verdict, settled), &index) in each.iter_mut().zip(settled).zip(which) {
            let Some(access) = model.accesses.get(index).filter(|_| !settled) else { continue };
            let used: BTreeSet<u8> = axes_of(kernel, access).intersection(&open).copied().collect();
            if used.is_empty() {
                continue;
            }
            let narrow = checker.access(access, &common);
            match (&narrow, &*verdict) {
                (Verdict::Wraps(_), _) => {
                    single.extend(used);
                    *verdict = narrow;
                }
                (_, Verdict::Wraps(wrap)) => {
                    let doubts = used
                        .iter()
                        .map(|&axis| Doubt::Grid { axis, from: program_at(model, &wrap.point, axis) });
                    let mut doubts: Vec<Doubt> = doubts.collect();
                    if let Verdict::Unknown(more) = narrow {
                        doubts.extend(more);
                    }
                    *verdict = Verdict::Unknown(doubts);
                }
                _ => {}
            }
        }
    }
    Verdicts { each, single }
}

fn program_at(model: &Model, point: &Point, axis: u8) -> i128 {
    let found = point.iter().find(|(var, _)| {
        matches!(model.dag.vars().get(var.index()).map(|v| &v.kind), Some(VarKind::ProgramId(a)) if *a == axis)
    });
    found.map_or(0, |(_, &value)| value)
}

/// The axes whose size neither the bindings nor a mask gives. A mask gives it where it bounds the program id; one that
/// speaks only of a remainder of it doesn't.
fn open_axes(kernel: &Kernel, bindings: &Bindings) -> BTreeSet<u8> {
    let given = grid_sizes(bindings);
    let facts: Vec<Fact> = applying(&kernel.grid, bindings).into_iter().map(|a| (a.fact, true)).collect();
    let roots: Vec<NodeId> = facts.iter().map(|f| f.0).collect();
    let env = environment(&kernel.model, bindings, &BTreeSet::new(), &roots);
    let told = |axis: u8| {
        let var = kernel.model.dag.slice(&roots).into_iter().find_map(|id| {
            let (var, info) = kernel.model.dag.as_var(id)?;
            (info.kind == VarKind::ProgramId(axis)).then_some((var, id))
        });
        var.is_some_and(|(var, node)| env.bound_under(var, node, &facts).hi < env.bound(var).hi)
    };
    (0..3u8).filter(|&a| given.get(usize::from(a)).copied().flatten().is_none() && !told(a)).collect()
}

fn axes_of(kernel: &Kernel, access: &Access) -> BTreeSet<u8> {
    let mut roots = vec![access.offset];
    roots.extend(&access.also);
    roots.extend(access.facts.iter().map(|f| f.0));
    kernel
        .model
        .dag
        .slice(&roots)
        .into_iter()
        .filter_map(|id| match kernel.model.dag.as_var(id).map(|(_, v)| &v.kind) {
            Some(VarKind::ProgramId(axis) | VarKind::ProgramCount(axis)) => Some(*axis),
            _ => None,
        })
        .collect()
}

/// `store to y_ptr`
pub(super) fn reaches(model: &Model, access: &Access) -> String {
    let verb = match access.kind {
        AccessKind::Load => "load from",
        AccessKind::Store => "store to",
        AccessKind::Atomic => "atomic update of",
    };
    format!("{verb} {}", model.base_name(&access.base))
}

fn overflow(
    kernel: &Kernel,
    bindings: &Bindings,
    index: usize,
    access: &Access,
    wrap: &Wrap,
    single: &BTreeSet<u8>,
) -> Finding {
    let model = &kernel.model;
    let dag = &model.dag;
    let (node, at_point) = culprit(model, wrap);
    let limits = wrap.duty.limits(dag);
    let limit = if wrap.upward { limits.hi } else { limits.lo };
    let common = kernel.common_facts(bindings);
    let mut roots: Vec<NodeId> = common.iter().map(|f| f.0).collect();
    roots.push(access.offset);
    roots.extend(&access.also);
    roots.extend(access.facts.iter().map(|f| f.0));
    let used: BTreeSet<u8> = axes_of(kernel, access).intersection(single).copied().collect();
    let mut env = environment(model, bindings, &used, &roots);
    let mut checker = Checker::new(model, &mut env, Fuel::default());
    let extreme = checker.extreme(node, wrap.upward, limit, access, &common).unwrap_or(at_point);
    let name = |i: usize| model.params.get(i).map_or_else(|| format!("arg{i}"), |p| p.name.clone());
    let expression = dag.expression(node, &name);
    let own = model.location(dag.node(node).origin);
    let read = model.location(dag.node(wrap.duty.reader).origin);
    let at = model.location(access.origin);
    // A compiler moves and merges 32-bit arithmetic; the widening stays where the address is formed.
    let location = match model.source {
        Source::Ttir => own.or(read).or(at),
        Source::Ptx => read.or(at).or(own),
    };
    let target = reaches(model, access);
    let width = dag.node(wrap.duty.value).width;
    let detail = format!(
        "{expression} reaches {extreme} in {width}-bit arithmetic, past {limit}, and goes on to the {target}"
    );
    Finding {
        kind: FindingKind::Int32Overflow,
        certainty: Certainty::Supported,
        expression,
        reaches: target,
        location: location.cloned(),
        access_location: at.cloned(),
        max_value: Some(extreme),
        limit: Some(limit),
        witness: Some(witness(model, wrap)),
        sweep: None,
        detail,
        remedy: Some("widen before multiplying: row.to(tl.int64) * stride, (long long)row * stride".into()),
        accesses: vec![index],
    }
}

fn witness(model: &Model, wrap: &Wrap) -> Witness {
    let mut out = Witness { index: wrap.value, ..Witness::default() };
    let span = wrap.duty.limits(&model.dag);
    let turn = span.hi - span.lo + 1;
    out.wrapped = (wrap.value - span.lo).rem_euclid(turn) + span.lo;
    let mut vars: Vec<_> = wrap.point.iter().collect();
    vars.sort();
    for (var, &value) in vars {
        match model.dag.vars().get(var.index()).map(|v| &v.kind) {
            Some(VarKind::ProgramId(axis)) => {
                if let Some(slot) = out.program.get_mut(usize::from(*axis)) {
                    *slot = value;
                }
            }
            Some(VarKind::Lane(axis, _)) => out.lanes.push((format!("lane{axis}"), value)),
            Some(kind @ (VarKind::Thread(_) | VarKind::ThreadCount(_))) => {
                out.lanes.push((model.dag.variable_name(kind), value));
            }
            Some(VarKind::Trip(_)) => out.iterations.push(value),
            _ => {}
        }
    }
    out
}

/// Accesses of one kind at one place with one expression are one finding.
fn merge(groups: &mut Vec<Finding>, finding: Finding) {
    let same = groups.iter_mut().find(|known| {
        known.kind == finding.kind
            && known.reaches == finding.reaches
            && known.location.as_ref().map(|l| (&l.file, l.line))
                == finding.location.as_ref().map(|l| (&l.file, l.line))
    });
    match same {
        Some(known) => {
            known.accesses.extend(&finding.accesses);
            if finding.max_value.map(i128::abs) > known.max_value.map(i128::abs) {
                let accesses = std::mem::take(&mut known.accesses);
                *known = Finding { accesses, ..finding };
            }
        }
        None => groups.push(finding),
    }
}

fn describe(model: &Model, access: &Access, doubt: &Doubt) -> Unknown {
    let at = model.location(access.origin).cloned();
    let target = reaches(model, access);
    match doubt {
        Doubt::Argument(index) => {
            let name = model.params.get(*index).map_or_else(|| format!("arg{index}"), |p| p.name.clone());
            Unknown {
                what: format!("the {target} depends on {name}, which has no value"),
                location: at,
                settle: Some(format!("--set {name}=…")),
            }
        }
        Doubt::Loaded(origin, in_mask) => {
            let what = if *in_mask { "mask of the" } else { "index of the" };
            let from = model.location(*origin).map(|l| format!(", at {l}")).unwrap_or_default();
            Unknown {
                what: format!(
                    "the {what} {target} is loaded from memory{from}: its values are not in the compiled kernel"
                ),
                location: at,
                settle: Some(
                    "check the largest index on the host, or rerun under compute-sanitizer memcheck".into(),
                ),
            }
        }
        Doubt::Opaque(reason, origin) => Unknown {
            what: format!("the address of the {target} can't be followed: {reason}"),
            location: model.location(*origin).cloned().or(at),
            settle: None,
        },
        Doubt::Grid { axis, from } => {
            let letter = ["x", "y", "z"].get(usize::from(*axis)).copied().unwrap_or("?");
            Unknown {
                what: format!("the {target} wraps in program {from} along {letter}, if the grid has so many"),
                location: at,
                settle: Some("--grid".into()),
            }
        }
        Doubt::GaveUp => Unknown {
            what: format!("the search for a bound of the {target} was given up"),
            location: at,
            settle: None,
        },
    }
}
