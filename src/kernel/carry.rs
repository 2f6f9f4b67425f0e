//! Values that a loop carries round: from "start" and "next" to a closed form.
//!
//! In: for each carried value a placeholder, its start and its next value in terms of the placeholder. Out: nodes
//! without placeholders: start + trips · step where the step doesn't change, else a value that can't be followed.

use std::collections::HashMap;

use super::sym::{Dag, NodeId, Op, Origin, Pred, Var, VarKind};

/// Deepest chain of carried values that lean on each other.
const MAX_DEPTH: usize = 12;

#[derive(Debug, Clone, Copy)]
enum Entry {
    Open,
    Loop {
        start: NodeId,
        next: NodeId,
        trip: u32,
        origin: Origin,
    },
    /// A value carried by the loop, after its last round.
    Final {
        of: u32,
        trip: u32,
        trips: NodeId,
    },
}

/// The carried values of one kernel.
#[derive(Debug, Default)]
pub struct Carries {
    entries: Vec<(u8, Entry)>,
    resolved: HashMap<u32, NodeId>,
}

impl Carries {
    /// A placeholder of `width` bits.
    pub fn placeholder(&mut self, dag: &mut Dag, width: u8) -> (u32, NodeId) {
        let key = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        self.entries.push((width, Entry::Open));
        (key, dag.var(VarKind::Carried(key), width))
    }

    /// Says how a placeholder starts and goes on in the loop whose trip count is [`VarKind::Trip`] of `trip`.
    pub fn define(&mut self, key: u32, start: NodeId, next: NodeId, trip: u32, origin: Origin) {
        if let Some(entry) = self.entries.get_mut(key as usize) {
            entry.1 = Entry::Loop { start, next, trip, origin };
        }
    }

    /// Says that a placeholder is another one's value after the loop went round `trips` times.
    pub fn define_final(&mut self, key: u32, of: u32, trip: u32, trips: NodeId) {
        if let Some(entry) = self.entries.get_mut(key as usize) {
            entry.1 = Entry::Final { of, trip, trips };
        }
    }

    /// The node without placeholders.
    pub fn resolve(&mut self, dag: &mut Dag, root: NodeId) -> NodeId {
        self.resolve_at(dag, root, 0)
    }

    fn resolve_at(&mut self, dag: &mut Dag, root: NodeId, depth: usize) -> NodeId {
        let mut needed: Vec<u32> = dag
            .slice(&[root])
            .into_iter()
            .filter_map(|id| match dag.as_var(id) {
                Some((_, Var { kind: VarKind::Carried(key), .. })) => Some(*key),
                _ => None,
            })
            .collect();
        if needed.is_empty() {
            return root;
        }
        needed.sort_unstable();
        let mut map = HashMap::new();
        for key in needed {
            map.insert(key, self.value(dag, key, depth));
        }
        dag.substitute(
            root,
            &|var| match var.kind {
                VarKind::Carried(key) => map.get(&key).copied(),
                _ => None,
            },
            &mut HashMap::new(),
        )
    }

    fn value(&mut self, dag: &mut Dag, key: u32, depth: usize) -> NodeId {
        if let Some(&known) = self.resolved.get(&key) {
            return known;
        }
        let Some(&(width, entry)) = self.entries.get(key as usize) else {
            return dag.opaque("a value carried round a loop", 64, Origin::NONE);
        };
        // Whoever asks for it again while it is being resolved leans on itself through another value.
        let stuck =
            dag.opaque("values that a loop carries and that depend on each other", width, Origin::NONE);
        self.resolved.insert(key, stuck);
        let value = if depth > MAX_DEPTH { None } else { self.closed_form(dag, key, entry, depth) };
        let value = value.unwrap_or(stuck);
        self.resolved.insert(key, value);
        value
    }

    fn closed_form(&mut self, dag: &mut Dag, key: u32, entry: Entry, depth: usize) -> Option<NodeId> {
        match entry {
            Entry::Open => None,
            Entry::Final { of, trip, trips } => {
                let value = self.value(dag, of, depth + 1);
                let trips = self.resolve_at(dag, trips, depth + 1);
                Some(replace_trip(dag, value, trip, trips))
            }
            Entry::Loop { start, next, trip, origin } => {
                let own = dag.var(VarKind::Carried(key), dag.node(start).width);
                let start = self.resolve_at(dag, start, depth + 1);
                if next == own {
                    return Some(start);
                }
                let count = dag.var(VarKind::Trip(trip), 64);
                if let Some(step) = step(dag, next, own, 0) {
                    let step = self.resolve_at(dag, step, depth + 1);
                    if contains(dag, step, |kind| matches!(kind, VarKind::Trip(t) if *t == trip)) {
                        return None;
                    }
                    let width = dag.node(start).width;
                    // What memory gives in one round says nothing of the others, though it is one variable here.
                    let varies = |kind: &VarKind| matches!(kind, VarKind::Loaded(..) | VarKind::Opaque(..));
                    if contains(dag, step, varies) {
                        let moved = dag.opaque(
                            "a loop adds to it what may differ from round to round",
                            width,
                            origin,
                        );
                        return Some(dag.make(Op::Add, width, &[start, moved], origin));
                    }
                    let count = dag.make(Op::Trunc, width, &[count], origin);
                    let moved = dag.make(Op::Mul, width, &[count, step], origin);
                    return Some(dag.make(Op::Add, width, &[start, moved], origin));
                }
                if contains(dag, next, |kind| matches!(kind, VarKind::Carried(k) if *k == key)) {
                    return None;
                }
                // Set anew each round from values of that round: what it was one round earlier.
                let next = self.resolve_at(dag, next, depth + 1);
                if contains(dag, next, |kind| matches!(kind, VarKind::Loaded(..) | VarKind::Opaque(..))) {
                    return None;
                }
                let one = dag.constant(1, 64);
                let before = dag.make(Op::Sub, 64, &[count, one], origin);
                let earlier = replace_trip(dag, next, trip, before);
                let zero = dag.constant(0, 64);
                let first = dag.compare(Pred::Eq, count, zero, origin);
                Some(dag.make(Op::Select, dag.node(start).width, &[first, start, earlier], origin))
            }
        }
    }
}

/// `node` with the trip count of a loop replaced.
pub fn replace_trip(dag: &mut Dag, node: NodeId, trip: u32, with: NodeId) -> NodeId {
    dag.substitute(
        node,
        &|var| match var.kind {
            VarKind::Trip(t) if t == trip => Some(with),
            _ => None,
        },
        &mut HashMap::new(),
    )
}

fn contains(dag: &Dag, root: NodeId, wanted: impl Fn(&VarKind) -> bool) -> bool {
    dag.slice(&[root]).into_iter().any(|id| dag.as_var(id).is_some_and(|(_, var)| wanted(&var.kind)))
}

/// What is added to `own` to give `next`, where `next` is a sum with `own` in it once.
fn step(dag: &mut Dag, next: NodeId, own: NodeId, depth: usize) -> Option<NodeId> {
    let node = dag.node(next);
    if next == own {
        return Some(dag.constant(0, node.width));
    }
    let (Op::Add | Op::Sub, &[a, b]) = (node.op, node.args()) else { return None };
    if depth > 200 {
        return None;
    }
    let (in_a, in_b) = (dag.slice(&[a]).contains(&own), dag.slice(&[b]).contains(&own));
    match (in_a, in_b, node.op) {
        (true, false, op) => {
            let inner = step(dag, a, own, depth + 1)?;
            Some(dag.make(op, node.width, &[inner, b], node.origin))
        }
        (false, true, Op::Add) => {
            let inner = step(dag, b, own, depth + 1)?;
            Some(dag.make(Op::Add, node.width, &[a, inner], node.origin))
        }
        _ => None,
    }
}
