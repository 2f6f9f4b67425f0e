//! One access: can a 32-bit value that its address is made of wrap?
//!
//! In: an [`Env`], an access and the facts that hold there. Out: it fits, it wraps (with a point where the machine itself
//! does so), or what stopped the check.

use std::collections::HashMap;

use super::model::{Access, Model};
use super::solve::{Duty, Env, Fact, Fuel, Goal, Outcome, duties};
use super::sym::{NodeId, Op, Point, Values, VarKind};

/// The answer for one access.
#[derive(Debug, Clone)]
pub enum Verdict {
    /// No value that its address is made of leaves its type.
    Fits,
    /// A value leaves its type.
    Wraps(Wrap),
    /// Not shown either way.
    Unknown(Vec<Doubt>),
}

/// A wrap that was found.
#[derive(Debug, Clone)]
pub struct Wrap {
    /// The value that leaves its type, and who reads it.
    pub duty: Duty,
    /// Whether it passes the upper limit (else the lower).
    pub upward: bool,
    /// Where.
    pub point: Point,
    /// Its exact value there.
    pub value: i128,
}

/// Why an access could not be decided.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Doubt {
    /// An argument has no value.
    Argument(usize),
    /// The index, or the mask where `in_mask`, is read from memory by an operation.
    Loaded(super::sym::Origin, bool),
    /// A value that can't be followed, with the reason.
    Opaque(String, super::sym::Origin),
    /// It wraps only from this program id on, along an axis whose size isn't known.
    Grid {
        /// 0 = x.
        axis: u8,
        /// A program id at which it wraps.
        from: i128,
    },
    /// The search used up its budget.
    GaveUp,
}

/// Checks accesses under one environment.
pub struct Checker<'e, 'm> {
    model: &'m Model,
    env: &'e mut Env<'m>,
    fuel: Fuel,
    /// Whether the last access can't be shown to wrap by any point, in this box or a smaller one.
    pointless: bool,
    known: HashMap<(NodeId, bool, Vec<Fact>, Vec<NodeId>), Outcome>,
}

impl<'e, 'm> Checker<'e, 'm> {
    /// A checker with a budget.
    pub fn new(model: &'m Model, env: &'e mut Env<'m>, fuel: Fuel) -> Self {
        Self { model, env, fuel, pointless: true, known: HashMap::new() }
    }

    /// Checks one access under its own facts and `more`.
    pub fn access(&mut self, access: &Access, more: &[Fact]) -> Verdict {
        let dag = &self.model.dag;
        let mut roots = vec![access.offset];
        roots.extend(&access.also);
        let mut facts = access.facts.clone();
        facts.extend_from_slice(more);
        self.env.forget();
        self.pointless = true;
        let mut doubts: Vec<Doubt> = Vec::new();
        let divisors = self.divisors(&roots);
        for duty in duties(dag, &roots, self.model.modular_unsigned) {
            let limits = duty.limits(dag);
            let root = self.env.root(duty.value);
            let mut proven = true;
            for upward in [true, false] {
                let inside = if upward { root.hi <= limits.hi } else { root.lo >= limits.lo };
                if inside {
                    continue;
                }
                let limit = if upward { limits.hi } else { limits.lo };
                let held: Vec<Fact> = facts.iter().chain(&duty.when).copied().collect();
                match self.search(Goal { node: duty.value, upward, limit }, &held, &roots, &divisors) {
                    Outcome::Holds(_) => {}
                    Outcome::Passes { .. } if duty.loose => {
                        proven = false;
                        self.pointless = false;
                        doubts.push(Doubt::GaveUp);
                    }
                    Outcome::Passes { point, value, .. } => {
                        return Verdict::Wraps(Wrap { duty: duty.clone(), upward, point, value });
                    }
                    Outcome::Open { pointless, .. } => {
                        proven = false;
                        self.pointless &= pointless;
                        for doubt in self.reasons(&[duty.value], &facts) {
                            if !doubts.contains(&doubt) {
                                doubts.push(doubt);
                            }
                        }
                    }
                }
            }
            // Proven only under a choice says nothing of other places where the same operation stands.
            if proven && duty.when.is_empty() {
                self.env.trust(duty.reader);
            }
        }
        if let Some(lost) = &access.lost {
            doubts.push(Doubt::Opaque(lost.clone(), access.origin));
        }
        for doubt in self.unfollowed(&roots, false) {
            if !doubts.contains(&doubt) {
                doubts.push(doubt);
            }
        }
        if doubts.is_empty() { Verdict::Fits } else { Verdict::Unknown(doubts) }
    }

    /// Whether no smaller box could show that the access that was checked last wraps.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.pointless
    }

    fn search(&mut self, goal: Goal, facts: &[Fact], whole: &[NodeId], divisors: &[NodeId]) -> Outcome {
        let key = (goal.node, goal.upward, facts.to_vec(), divisors.to_vec());
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let outcome = self.env.search_whole(goal, facts, whole, &mut self.fuel);
        self.known.insert(key, outcome.clone());
        outcome
    }

    /// The divisions in a slice: what tells two searches of the same value apart.
    fn divisors(&self, whole: &[NodeId]) -> Vec<NodeId> {
        let dag = &self.model.dag;
        let divides = |id: &NodeId| matches!(dag.node(*id).op, Op::DivS | Op::DivU | Op::RemS | Op::RemU);
        dag.slice(whole).into_iter().filter(divides).collect()
    }

    /// The greatest (or least) exact value of a node under an access's facts, where the search closes on it.
    pub fn extreme(
        &mut self,
        node: NodeId,
        upward: bool,
        limit: i128,
        access: &Access,
        more: &[Fact],
    ) -> Option<i128> {
        let mut facts = access.facts.clone();
        facts.extend_from_slice(more);
        let whole = [access.offset];
        let divisors = self.divisors(&whole);
        match self.search(Goal { node, upward, limit }, &facts, &whole, &divisors) {
            Outcome::Passes { value, .. } => Some(value),
            _ => None,
        }
    }

    /// Values in a slice that can't be followed.
    fn unfollowed(&self, roots: &[NodeId], in_mask: bool) -> Vec<Doubt> {
        let mut out = Vec::new();
        for var in self.env.vars_of(roots) {
            let doubt = match self.model.dag.vars().get(var.index()).map(|v| &v.kind) {
                Some(VarKind::Loaded(origin, _)) => Doubt::Loaded(*origin, in_mask),
                Some(VarKind::Opaque(reason, origin, _)) => Doubt::Opaque(reason.clone(), *origin),
                Some(VarKind::Carried(_)) => {
                    Doubt::Opaque("a value that a loop carries".into(), super::sym::Origin::NONE)
                }
                _ => continue,
            };
            if !out.contains(&doubt) {
                out.push(doubt);
            }
        }
        out
    }

    fn unset(&self, roots: &[NodeId]) -> Vec<Doubt> {
        let mut out: Vec<Doubt> = Vec::new();
        for var in self.env.vars_of(roots) {
            if let Some(VarKind::Arg(index)) = self.model.dag.vars().get(var.index()).map(|v| &v.kind)
                && self.env.is_unknown(var)
            {
                out.push(Doubt::Argument(*index));
            }
        }
        out.dedup();
        out
    }

    /// What keeps a search from closing: unset arguments first, then values out of memory, then the budget.
    fn reasons(&self, value: &[NodeId], facts: &[Fact]) -> Vec<Doubt> {
        let own: Vec<Doubt> = [self.unset(value), self.unfollowed(value, false)].concat();
        if !own.is_empty() {
            return own;
        }
        let nodes: Vec<NodeId> = facts.iter().map(|f| f.0).collect();
        let from_facts: Vec<Doubt> = [self.unset(&nodes), self.unfollowed(&nodes, true)].concat();
        if from_facts.is_empty() { vec![Doubt::GaveUp] } else { from_facts }
    }
}

/// Where in a wrapped value the first step past the type stands: the innermost sum, difference or product whose exact
/// value is outside while its operands' are inside.
#[must_use]
pub fn culprit(model: &Model, wrap: &Wrap) -> (NodeId, i128) {
    let dag = &model.dag;
    let values = Values::new(dag, &[wrap.duty.value], &|_| false);
    let at = values.at(&|var| wrap.point.get(&var).copied());
    let exact = |id: NodeId| values.place(id).and_then(|p| at.get(p)).copied().flatten();
    let limits = wrap.duty.limits(dag);
    let mut node = wrap.duty.value;
    let mut value = wrap.value;
    loop {
        let info = dag.node(node);
        let inner = match info.op {
            Op::Add | Op::Sub | Op::Mul | Op::Trunc => info.args().to_vec(),
            Op::Select => {
                let chosen =
                    info.args().first().and_then(|&c| exact(c)).map(|c| if c & 1 == 1 { 1 } else { 2 });
                chosen.and_then(|nth| info.args().get(nth)).copied().into_iter().collect()
            }
            _ => Vec::new(),
        };
        let deeper = inner.into_iter().find_map(|id| {
            let value = exact(id)?;
            (dag.node(id).is_exact() && dag.node(id).width < 64 && !limits.holds(value))
                .then_some((id, value))
        });
        match deeper {
            Some(next) => (node, value) = next,
            None => return (node, value),
        }
    }
}
