//! Up to which value of an argument a kernel is safe.
//!
//! In: a kernel, bindings and the name of an argument. Out: the largest value up to which every value fits, found by
//! halving and then checked value by value around the boundary and at samples below it.

use super::analyze::{Kernel, lattice_of};
use super::bind::Bindings;
use super::check::Verdict;
use super::interval::{Interval, Sign};
use super::launch::environment;
use super::solve::{Fuel, Goal, Outcome};
use super::sym::NodeId;
use super::verdicts::verdicts;

/// The largest memory of one device that is taken as possible, in bytes: 288 GiB.
pub const MACHINE_BYTES: i128 = 288 << 30;
/// How many values just below the boundary are checked one by one.
const SCAN: i128 = 132;

/// A sweep's result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sweep {
    /// The argument.
    pub name: String,
    /// The largest value up to which every one fits; 0 when even 1 doesn't.
    pub safe: i128,
    /// The first value that wraps, where one does up to `up_to`.
    pub first_unsafe: Option<i128>,
    /// What the argument is a multiple of.
    pub lattice: u64,
    /// The largest safe multiple of the lattice.
    pub safe_on_lattice: i128,
    /// The largest value that was considered.
    pub up_to: i128,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Fits,
    Wraps,
    Unknown,
}

/// Sweeps an argument over 1..=`up_to` for some accesses. `None` when a value can't be decided.
#[must_use]
pub fn sweep(
    kernel: &Kernel,
    bindings: &Bindings,
    name: &str,
    which: &[usize],
    up_to: i128,
) -> Option<Sweep> {
    let index = kernel.model.params.iter().position(|p| p.name == name);
    let lattice = index.map_or(1, |i| lattice_of(&kernel.model, bindings, i));
    // What PTX computes holds on the lattice only; TTIR says what happens off it too.
    let step = match kernel.model.source {
        super::model::Source::Ptx => i128::from(lattice),
        super::model::Source::Ttir => 1,
    };
    let state = |units: i128| state_at(kernel, bindings, name, units * step, which);
    let most = up_to / step;
    let (mut low, mut high) = (0, most + 1);
    if most < 1 {
        return None;
    }
    match state(most) {
        State::Fits => low = most,
        State::Unknown => return None,
        State::Wraps => high = most,
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match state(middle) {
            State::Fits => low = middle,
            State::Wraps => high = middle,
            State::Unknown => return None,
        }
        // Halving finds a boundary; whether it is the first one shows below it.
        if high - low <= 1
            && let Some(earlier) = earlier_wrap(low, &state)?
        {
            (low, high) = (0, earlier);
        }
    }
    let safe = low * step;
    let lattice_i = i128::from(lattice);
    Some(Sweep {
        name: name.to_owned(),
        safe,
        first_unsafe: (high <= most).then_some(high * step),
        lattice,
        safe_on_lattice: safe - safe.rem_euclid(lattice_i),
        up_to,
    })
}

/// A value at or below a boundary that wraps nevertheless; `None` outside when one can't be decided.
#[expect(clippy::option_option, reason = "undecided and none found are different answers")]
fn earlier_wrap(boundary: i128, state: &dyn Fn(i128) -> State) -> Option<Option<i128>> {
    let near = (boundary - SCAN).max(1)..=boundary;
    let far = (1..=16).map(|part| boundary * part / 17).chain([1, 2, 3]).filter(|&v| v >= 1 && v <= boundary);
    let mut worst: Option<i128> = None;
    for value in far.chain(near) {
        match state(value) {
            State::Fits => {}
            State::Wraps => worst = Some(worst.map_or(value, |w| w.min(value))),
            State::Unknown => return None,
        }
    }
    Some(worst)
}

fn at_value(bindings: &Bindings, name: &str, value: i128) -> Bindings {
    let mut at = bindings.clone();
    at.values.insert(name.to_owned(), value);
    at
}

fn state_at(kernel: &Kernel, bindings: &Bindings, name: &str, value: i128, which: &[usize]) -> State {
    let verdicts = verdicts(kernel, &at_value(bindings, name, value), which, Fuel::default());
    let mut state = State::Fits;
    for verdict in &verdicts.each {
        match verdict {
            Verdict::Wraps(_) => return State::Wraps,
            Verdict::Unknown(_) => state = State::Unknown,
            Verdict::Fits => {}
        }
    }
    state
}

/// The largest value of an argument at which no access reaches further than [`MACHINE_BYTES`] from its base.
#[must_use]
pub fn machine_limit(kernel: &Kernel, bindings: &Bindings, name: &str) -> i128 {
    let param = kernel.model.params.iter().find(|p| p.name == name);
    let width = param.and_then(|p| p.int_width).unwrap_or(32);
    let most = Interval::of_type(width, Sign::Signed).hi.min(1 << 40);
    let fits = |value: i128| {
        let bindings = at_value(bindings, name, value);
        let common = kernel.common_facts(&bindings);
        kernel.model.accesses.iter().all(|access| {
            let mut roots: Vec<NodeId> = vec![access.meant];
            roots.extend(common.iter().chain(&access.facts).map(|f| f.0));
            let env = environment(&kernel.model, &bindings, &std::collections::BTreeSet::new(), &roots);
            let facts: Vec<_> = access.facts.iter().chain(&common).copied().collect();
            let goal = Goal { node: access.meant, upward: true, limit: MACHINE_BYTES };
            let mut fuel = Fuel { per_search: 40, total: 40, ..Fuel::default() };
            // Only a point past the limit counts: what can't be bounded says nothing about memory.
            !matches!(env.search(goal, &facts, &mut fuel), Outcome::Passes { .. })
        })
    };
    let (mut low, mut high) = (1, most);
    if fits(most) {
        return most;
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle) { low = middle } else { high = middle }
    }
    low
}
