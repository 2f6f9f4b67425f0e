//! The search: splits a box until the node is bounded everywhere or a point is found.
//!
//! In: an [`Env`], facts and a goal. Out: an [`Outcome`]. The work is bounded by [`Fuel`]; when that is used up the
//! outcome says so.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::Env;
use super::facts::{Fact, Inequality, flatten, inequalities};
use super::goal::{Fuel, Goal, Outcome};
use crate::kernel::interval::Interval;
use crate::kernel::sym::{NodeId, Op, Point, Poly, Values, VarId};

#[derive(Debug, Clone)]
pub(super) struct Region {
    pub(super) vars: Vec<Interval>,
    pub(super) atoms: HashMap<NodeId, Interval>,
}

pub(super) struct Search<'e, 'a> {
    pub(super) env: &'e Env<'a>,
    goal: Goal,
    values: Values,
    vars: Vec<VarId>,
    pub(super) slot: HashMap<VarId, usize>,
    fixed: Vec<bool>,
    pub(super) facts: Vec<Fact>,
    pub(super) inequalities: Vec<Inequality>,
    poly: Poly,
    /// Divisors of the whole access: a point where one is zero proves nothing.
    divisors: Vec<NodeId>,
}

#[derive(PartialEq, Eq)]
struct Ranked(i128, Reverse<u32>, usize);

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1, self.2).cmp(&(other.0, other.1, other.2))
    }
}

impl<'a> Env<'a> {
    /// The bounds of a variable where the facts hold, as far as narrowing alone tells.
    pub fn bound_under(&self, var: VarId, node: NodeId, facts: &[Fact]) -> Interval {
        let search = self.prepare(Goal { node, upward: true, limit: 0 }, facts, &[]);
        let mut region = search.start();
        if search.narrow(&mut region).is_none() {
            return Interval::point(0);
        }
        let at = search.slot.get(&var).and_then(|&at| region.vars.get(at));
        at.copied().unwrap_or_else(|| self.bound(var))
    }

    fn prepare<'e>(&'e self, goal: Goal, facts: &[Fact], whole: &[NodeId]) -> Search<'e, 'a> {
        let facts = flatten(self.dag, facts);
        let mut roots: Vec<NodeId> = facts.iter().map(|&(id, _)| id).collect();
        roots.push(goal.node);
        let divisors: Vec<NodeId> = self
            .dag
            .slice(&[&roots, whole].concat())
            .into_iter()
            .map(|id| self.dag.node(id))
            .filter(|node| matches!(node.op, Op::DivS | Op::DivU | Op::RemS | Op::RemU))
            .filter_map(|node| node.args().get(1).copied())
            .filter(|&divisor| self.dag.as_const(divisor).is_none_or(|value| value == 0))
            .collect();
        roots.extend(&divisors);
        let values = Values::new(self.dag, &roots, &|id| self.trusts(id));
        let vars: Vec<VarId> =
            values.ids().iter().filter_map(|&id| self.dag.as_var(id).map(|(var, _)| var)).collect();
        Search {
            env: self,
            goal,
            slot: vars.iter().enumerate().map(|(at, &var)| (var, at)).collect(),
            fixed: vars.iter().map(|&var| self.is_unknown(var)).collect(),
            inequalities: inequalities(self, &facts),
            poly: Poly::constant(0)
                .plus(&self.poly(goal.node), if goal.upward { 1 } else { -1 })
                .unwrap_or_else(|| Poly::atom(goal.node)),
            values,
            vars,
            facts,
            divisors,
        }
    }

    /// Searches for a point that passes the goal's limit while every fact holds.
    pub fn search(&self, goal: Goal, facts: &[Fact], fuel: &mut Fuel) -> Outcome {
        self.search_whole(goal, facts, &[], fuel)
    }

    /// The same, of points alone at which everything in `whole` has a value: no division by zero anywhere in it.
    pub fn search_whole(&self, goal: Goal, facts: &[Fact], whole: &[NodeId], fuel: &mut Fuel) -> Outcome {
        if fuel.nodes == 0 {
            let range = self.root(goal.node);
            let bound = if goal.upward { range.hi } else { range.lo };
            return Outcome::Open { bound, pointless: false };
        }
        let search = self.prepare(goal, facts, whole);
        fuel.nodes = fuel.nodes.saturating_sub(search.values.ids().len() as u64);
        let mut outcome = search.run(fuel);
        if !goal.upward {
            // Inside, the search maximises the negated node.
            match &mut outcome {
                Outcome::Holds(value)
                | Outcome::Open { bound: value, .. }
                | Outcome::Passes { value, .. } => *value = -*value,
            }
        }
        outcome
    }
}

impl Search<'_, '_> {
    fn limit(&self) -> i128 {
        if self.goal.upward { self.goal.limit } else { -self.goal.limit }
    }

    pub(super) fn over(&self, region: &Region) -> Vec<Interval> {
        self.values.over(
            &|var| self.slot.get(&var).and_then(|&at| region.vars.get(at)).copied().unwrap_or(Interval::ALL),
            &|id| region.atoms.get(&id).copied(),
        )
    }

    pub(super) fn of(&self, ranges: &[Interval], id: NodeId) -> Interval {
        self.values.place(id).and_then(|at| ranges.get(at)).copied().unwrap_or(Interval::ALL)
    }

    /// The best upper bound of the goal in a region.
    fn bound(&self, ranges: &[Interval]) -> i128 {
        let direct = self.of(ranges, self.goal.node);
        let mut best = if self.goal.upward { direct.hi } else { -direct.lo };
        let of = |id: NodeId| self.of(ranges, id);
        let usable: Vec<&Inequality> = self.valid(ranges).collect();
        let mut poly = self.poly.clone();
        let mut own = poly.range(&of).hi;
        // Each inequality q ≤ 0 gives goal ≤ goal − k·q for every k ≥ 0; take those that cancel a term and help.
        for _ in 0..4 {
            let mut next: Option<(i128, Poly)> = None;
            for inequality in &usable {
                for (mono, c) in poly.terms() {
                    let other = inequality.poly.coefficient(mono);
                    if mono.is_empty() || other == 0 || c % other != 0 || c / other <= 0 {
                        continue;
                    }
                    if let Some(less) = poly.plus(&inequality.poly, -(c / other)) {
                        let hi = less.range(&of).hi;
                        if hi < next.as_ref().map_or(own, |n| n.0) {
                            next = Some((hi, less));
                        }
                    }
                }
            }
            match next {
                Some((hi, less)) => {
                    own = hi;
                    poly = less;
                }
                None => break,
            }
        }
        best = best.min(own);
        best
    }

    /// The goal's value at a point where every fact holds.
    fn try_point(&self, point: &[i128]) -> Option<i128> {
        let at = self.values.at(&|var| {
            let slot = self.slot.get(&var).copied()?;
            let known = self.fixed.get(slot).copied().unwrap_or(true);
            if known { None } else { point.get(slot).copied() }
        });
        let value = |id: NodeId| self.values.place(id).and_then(|place| at.get(place)).copied().flatten();
        for &(id, wanted) in &self.facts {
            if value(id)? & 1 != i128::from(wanted) {
                return None;
            }
        }
        let width = |id: NodeId| self.env.dag.node(id).width;
        let zero = |id: &NodeId| value(*id).is_some_and(|v| v.rem_euclid(1i128 << width(*id)) == 0);
        if self.divisors.iter().any(zero) {
            return None;
        }
        let value = value(self.goal.node)?;
        Some(if self.goal.upward { value } else { -value })
    }

    /// A few points of a region that are likely to be extreme.
    fn probes(&self, region: &Region) -> Vec<Vec<i128>> {
        let slope = |var: VarId| {
            self.poly.terms().iter().find_map(|(mono, c)| {
                mono.iter()
                    .any(|&id| self.env.dag.as_var(id).is_some_and(|(v, _)| v == var))
                    .then_some(*c > 0)
            })
        };
        let pick = |up: &dyn Fn(VarId) -> bool| -> Vec<i128> {
            self.vars
                .iter()
                .zip(&region.vars)
                .map(|(&var, range)| if up(var) { range.hi } else { range.lo })
                .collect()
        };
        let mut out = vec![
            pick(&|var| slope(var).unwrap_or(true)),
            pick(&|var| slope(var).unwrap_or(false)),
            pick(&|_| true),
            pick(&|_| false),
        ];
        out.push(region.vars.iter().map(|range| range.lo + (range.hi - range.lo) / 2).collect());
        out.dedup();
        out
    }

    /// The variable whose halves bound the goal best.
    fn choose(&self, region: &Region, parent: i128) -> Option<usize> {
        let mut best: Option<(i128, i128, usize)> = None;
        for (at, range) in region.vars.iter().enumerate() {
            if range.lo >= range.hi || self.fixed.get(at).copied().unwrap_or(true) {
                continue;
            }
            let (low, high) = halves(*range);
            let side = |half: Interval| {
                let mut part = region.clone();
                if let Some(slot) = part.vars.get_mut(at) {
                    *slot = half;
                }
                self.narrow(&mut part).map_or(-Interval::ALL.hi, |ranges| self.bound(&ranges))
            };
            let (a, b) = (side(low), side(high));
            let gain =
                parent.saturating_sub(a.min(b)).max(0).saturating_add(parent.saturating_sub(a.max(b)).max(0));
            let key = (gain, range.span(), at);
            if best.is_none_or(|known| (key.0, key.1) > (known.0, known.1)) {
                best = Some(key);
            }
        }
        best.map(|(_, _, at)| at)
    }

    fn start(&self) -> Region {
        Region { vars: self.vars.iter().map(|&var| self.env.bound(var)).collect(), atoms: HashMap::new() }
    }

    fn run(&self, fuel: &mut Fuel) -> Outcome {
        let mut start = self.start();
        let Some(ranges) = self.narrow(&mut start) else { return Outcome::Holds(-Interval::ALL.hi) };
        let first = self.bound(&ranges);
        // Where no point can be shown and a single choice already passes, splitting the box would decide nothing.
        let pointless = self.is_pointless();
        if pointless && first > self.limit() && self.probes(&start).iter().any(|point| self.passes_at(point))
        {
            return Outcome::Open { bound: first, pointless };
        }
        let mut regions = vec![start];
        let mut heap = BinaryHeap::from([Ranked(first, Reverse(0), 0)]);
        let mut found: Option<(i128, Point)> = None;
        let any_unknown = self.fixed.contains(&true);
        let mut left = fuel.per_search.min(fuel.total).min(if any_unknown { 200 } else { u32::MAX });
        let mut count = 0u32;
        while let Some(Ranked(bound, _, index)) = heap.pop() {
            let known = found.as_ref().map_or(self.limit(), |f| f.0.max(self.limit()));
            if bound <= known {
                return match found {
                    Some((value, point)) => Outcome::Passes { point, value, greatest: true },
                    None => Outcome::Holds(bound),
                };
            }
            if left == 0 {
                return match found {
                    Some((value, point)) => Outcome::Passes { point, value, greatest: false },
                    None => Outcome::Open { bound, pointless },
                };
            }
            left -= 1;
            fuel.total = fuel.total.saturating_sub(1);
            let Some(region) = regions.get(index).cloned() else { continue };
            for probe in self.probes(&region) {
                if let Some(value) = self.try_point(&probe)
                    && value > found.as_ref().map_or(self.limit(), |f| f.0)
                {
                    let point = self.vars.iter().copied().zip(probe.iter().copied()).collect();
                    found = Some((value, point));
                }
            }
            let Some(at) = self.choose(&region, bound) else {
                // One point left, or only variables that can't be chosen: no better bound exists.
                if found.as_ref().is_none_or(|f| f.0 < bound) && !self.is_decided(&region) {
                    return match found {
                        Some((value, point)) => Outcome::Passes { point, value, greatest: false },
                        None => Outcome::Open { bound, pointless },
                    };
                }
                continue;
            };
            let Some(range) = region.vars.get(at).copied() else { continue };
            let (low, high) = halves(range);
            for half in [low, high] {
                let mut part = region.clone();
                if let Some(slot) = part.vars.get_mut(at) {
                    *slot = half;
                }
                if let Some(ranges) = self.narrow(&mut part) {
                    count += 1;
                    heap.push(Ranked(self.bound(&ranges).min(bound), Reverse(count), regions.len()));
                    regions.push(part);
                }
            }
        }
        match found {
            Some((value, point)) => Outcome::Passes { point, value, greatest: true },
            None => Outcome::Holds(self.limit()),
        }
    }

    /// Whether the goal or a fact needs a variable that can't be chosen, whatever the others are: no point has a value.
    fn is_pointless(&self) -> bool {
        if !self.fixed.contains(&true) {
            return false;
        }
        let open = self
            .values
            .needing(&|var| self.slot.get(&var).and_then(|&at| self.fixed.get(at)).copied().unwrap_or(true));
        let needs = |id: NodeId| self.values.place(id).and_then(|at| open.get(at)).copied().unwrap_or(true);
        needs(self.goal.node) || self.facts.iter().any(|&(id, _)| needs(id))
    }

    /// Whether the goal may pass its limit where the variables that can be chosen have a point's values.
    fn passes_at(&self, point: &[i128]) -> bool {
        let mut region = self.start();
        for ((range, fixed), &value) in region.vars.iter_mut().zip(&self.fixed).zip(point) {
            if !fixed {
                *range = Interval::point(value);
            }
        }
        self.narrow(&mut region).is_some_and(|ranges| self.bound(&ranges) > self.limit())
    }

    /// Whether every variable has one value and none is unknown: the probes said all there is to say.
    fn is_decided(&self, region: &Region) -> bool {
        region.vars.iter().all(|range| range.lo == range.hi) && !self.fixed.contains(&true)
    }
}

fn halves(range: Interval) -> (Interval, Interval) {
    let middle = range.lo + (range.hi - range.lo).div_euclid(2);
    (Interval { lo: range.lo, hi: middle }, Interval { lo: middle + 1, hi: range.hi })
}
