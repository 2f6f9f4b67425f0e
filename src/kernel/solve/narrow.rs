//! Regions made smaller by what must hold in them.
//!
//! In: a region and the facts of a search. Out: a smaller region without losing a point that satisfies them, or none where no
//! point does. It leaves splitting regions to `search`.

use super::facts::Inequality;
use super::search::{Region, Search};
use crate::kernel::interval::{Interval, Sign};
use crate::kernel::sym::{NodeId, Op};

impl Search<'_, '_> {
    /// Narrows a region by the facts; `None` when no point of it can satisfy them.
    pub(super) fn narrow(&self, region: &mut Region) -> Option<Vec<Interval>> {
        let mut ranges = self.over(region);
        for _ in 0..6 {
            if region.vars.iter().any(|range| range.is_empty())
                || self.facts.iter().any(|&(id, value)| !self.of(&ranges, id).holds(i128::from(value)))
            {
                return None;
            }
            let mut changed = false;
            for inequality in self.valid(&ranges) {
                if inequality.poly.range(&|id| self.of(&ranges, id)).lo > 0 {
                    return None;
                }
                changed |= self.isolate(inequality, region, &ranges)?;
            }
            if !changed {
                break;
            }
            ranges = self.over(region);
        }
        Some(ranges)
    }

    /// The inequalities whose values all fit their types in a region.
    pub(super) fn valid<'s>(&'s self, ranges: &'s [Interval]) -> impl Iterator<Item = &'s Inequality> {
        self.inequalities.iter().filter(|inequality| {
            inequality.needs.iter().all(|&(id, sign)| {
                let width = self.env.dag.node(id).width;
                width >= 64 || self.of(ranges, id).within(Interval::of_type(width, sign))
            })
        })
    }

    /// Narrows each node that stands alone in a term. `None` when one has no value left.
    fn isolate(&self, inequality: &Inequality, region: &mut Region, ranges: &[Interval]) -> Option<bool> {
        let mut changed = false;
        for (mono, c) in inequality.poly.terms() {
            let rest = inequality.poly.terms().iter().filter(|(other, _)| other != mono);
            let least = rest.fold(Interval::point(0), |sum, (other, c)| {
                sum.plus(other.iter().fold(Interval::point(*c), |p, &id| p.times(self.of(ranges, id))))
            });
            for (at, &factor) in mono.iter().enumerate() {
                let others = mono.iter().enumerate().filter(|&(other, _)| other != at);
                let scale = others.fold(Interval::point(*c), |p, (_, &id)| p.times(self.of(ranges, id)));
                let Some(bound) = allowed(scale, -least.lo) else { continue };
                let old = self.of(ranges, factor);
                if !old.within(bound) {
                    let new = old.meet(bound);
                    if new.is_empty() {
                        return None;
                    }
                    changed |= self.tighten(region, factor, new, ranges);
                }
            }
        }
        Some(changed)
    }

    /// Notes that a node is within an interval; of a quotient the dividend is then known too.
    fn tighten(&self, region: &mut Region, id: NodeId, new: Interval, ranges: &[Interval]) -> bool {
        let node = self.env.dag.node(id);
        match (node.op, node.args()) {
            (Op::Var(var), _) => {
                let Some(slot) = self.slot.get(&var).and_then(|&at| region.vars.get_mut(at)) else {
                    return false;
                };
                let next = slot.meet(new);
                let changed = next != *slot;
                *slot = next;
                changed
            }
            (op, args) => {
                let next = region.atoms.get(&id).map_or(new, |known| known.meet(new));
                let mut changed = region.atoms.insert(id, next) != Some(next);
                if let (Op::DivS | Op::DivU, &[dividend, divisor]) = (op, args)
                    && let Some(by) = self.of(ranges, divisor).single()
                    && by > 0
                {
                    let old = self.of(ranges, dividend);
                    // Only where the dividend is the number that the division reads.
                    if old.lo >= 0 && old.within(Interval::of_type(node.width, Sign::Signed)) && next.hi >= 0
                    {
                        let bound = Interval::new(next.lo.max(0) * by, next.hi.saturating_mul(by) + by - 1);
                        if !old.within(bound) {
                            changed |= self.tighten(region, dividend, old.meet(bound), ranges);
                        }
                    }
                }
                changed
            }
        }
    }
}

/// The values `v` with `scale · v ≤ room`, where the sign of the scale is known.
fn allowed(scale: Interval, room: i128) -> Option<Interval> {
    if scale.lo > 0 {
        let divisor = if room >= 0 { scale.lo } else { scale.hi };
        Some(Interval::new(i128::MIN, room.div_euclid(divisor)))
    } else if scale.hi < 0 {
        let divisor = if room >= 0 { -scale.hi } else { -scale.lo };
        Some(Interval::new(-room.div_euclid(divisor), i128::MAX))
    } else {
        None
    }
}
