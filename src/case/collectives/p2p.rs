//! Sends without their receives.
//!
//! In: the table and one group. Out: one finding for each pair of ranks where one side waits and the other never came.
//! It leaves alone operations that completed, and sizes.

use std::collections::BTreeMap;

use super::compare::name;
use super::finding::{Basis, Finding, LastSeen, Missing};
use super::table::{Group, PendingPeer, Table};

/// Pending operations of one direction: those of the sender, those of the receiver.
#[derive(Default)]
struct Direction {
    sends: Vec<PendingPeer>,
    receives: Vec<PendingPeer>,
}

/// Most pairs that are reported.
const PAIR_LIMIT: usize = 64;

/// Compares waiting sends and receives of one group.
pub(super) fn group(table: &Table, group: &Group) -> Vec<Finding> {
    let mut pairs: BTreeMap<(u32, u32), Direction> = BTreeMap::new();
    for pending in group.peers.values() {
        for operation in pending {
            let Some(signature) = table.signature(operation.signature) else { continue };
            let Some((from, to)) = signature.op.peers else { continue };
            let global = |local: u32| group.ranks.get(local as usize).copied().unwrap_or(local);
            let pair = pairs.entry((global(from), global(to))).or_default();
            if signature.op.op == "SEND" {
                pair.sends.push(*operation)
            } else {
                pair.receives.push(*operation)
            }
        }
    }
    let mut out = Vec::new();
    for ((from, to), pair) in pairs {
        let (waiting, absent, operation) = match pair.sends.len().cmp(&pair.receives.len()) {
            std::cmp::Ordering::Greater => (from, to, pair.sends.get(pair.receives.len())),
            std::cmp::Ordering::Less => (to, from, pair.receives.get(pair.sends.len())),
            std::cmp::Ordering::Equal => continue,
        };
        let Some(operation) = operation else { continue };
        let view = group.views.get(&absent);
        let last = view.map(|view| LastSeen {
            rank: absent,
            last_enqueued: None,
            at: table.place(view.last.and_then(|call| call.at)),
        });
        out.push(Finding::Missing(Missing {
            group: group.name.clone(),
            collective: name(table.signature(operation.signature), operation.seq, &group.name),
            missing: view.map_or_else(Vec::new, |_| vec![absent]),
            unseen: if view.is_none() { vec![absent] } else { Vec::new() },
            waiting: vec![waiting],
            waiting_at: table.place(operation.at),
            last: last.into_iter().collect(),
            blocked: Vec::new(),
            basis: Basis::Dumps,
        }));
        if out.len() >= PAIR_LIMIT {
            break;
        }
    }
    out
}
