//! Whether two calls of the same sequence number belong together.
//!
//! In: two signatures. Out: what differs, if anything that NCCL compares. It leaves alone states and ranks.

use super::Differs;
use crate::read::event::CollectiveName;
use crate::read::flight_recorder::Signature;

/// What differs between two calls, the gravest first.
pub(super) fn differs(a: &Signature, b: &Signature) -> Option<Differs> {
    if a.op.op.is_empty() || b.op.op.is_empty() {
        return None;
    }
    if a.op.op != b.op.op && !is_barrier_pair(a, b) {
        return Some(Differs::Op);
    }
    let (inputs, outputs) = sides(&a.op.op);
    let differ = |a: Option<u64>, b: Option<u64>| matches!((a, b), (Some(a), Some(b)) if a != b);
    if inputs && differ(a.numel_in(), b.numel_in()) || outputs && differ(a.numel_out(), b.numel_out()) {
        return Some(Differs::Size);
    }
    let differ = |a: &[String], b: &[String]| !a.is_empty() && !b.is_empty() && a != b;
    if inputs && differ(&a.input_dtypes, &b.input_dtypes)
        || outputs && differ(&a.output_dtypes, &b.output_dtypes)
    {
        return Some(Differs::Dtype);
    }
    None
}

/// A barrier is an all-reduce of one element; the watchdog prints it so, the recorder names it.
fn is_barrier_pair(a: &Signature, b: &Signature) -> bool {
    let is = |signature: &Signature, op| signature.op.op == op;
    (is(a, "BARRIER") && is(b, "ALLREDUCE") || is(a, "ALLREDUCE") && is(b, "BARRIER"))
        && a.numel_in() == b.numel_in()
}

/// Whether all ranks must give equal inputs and equal outputs. Only a root gathers, scatters or gets the reduction, and an
/// all-to-all may have uneven parts.
fn sides(op: &str) -> (bool, bool) {
    match op {
        "GATHER" | "REDUCE" => (true, false),
        "SCATTER" | "BROADCAST" => (false, true),
        "ALLTOALL" | "ALLTOALL_BASE" | "COALESCED" | "SEND" | "RECV" => (false, false),
        _ => (true, true),
    }
}

/// True for operations that no rank can complete before all have entered. A broadcast's root, a reduction's leaf or a sender
/// may be through long before the others come.
pub(super) fn needs_all(op: &str) -> bool {
    op.contains("ALLREDUCE") || op.contains("ALLGATHER") || op.contains("REDUCE_SCATTER") || op == "BARRIER"
}

/// The name of a call.
pub(super) fn name(
    signature: Option<&Signature>,
    seq: Option<u64>,
    group: &super::GroupName,
) -> CollectiveName {
    CollectiveName {
        op: signature.map(|signature| signature.op.op.clone()).unwrap_or_default(),
        seq,
        group: group.desc.clone().or_else(|| Some(group.name.clone()).filter(|name| !name.is_empty())),
        numel_in: signature.and_then(Signature::numel_in),
        numel_out: signature.and_then(Signature::numel_out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::flight_recorder::operation;

    fn call(op: &str, input: i64, output: i64, dtype: &str) -> Signature {
        Signature {
            op: operation(op),
            input_sizes: vec![vec![input]],
            output_sizes: vec![vec![output]],
            input_dtypes: vec![dtype.into()],
            output_dtypes: vec![dtype.into()],
        }
    }

    #[test]
    fn names_the_gravest_difference() {
        let base = call("all_reduce", 8, 8, "Float");
        assert_eq!(differs(&base, &base), None);
        assert_eq!(differs(&base, &call("all_gather", 16, 8, "Half")), Some(Differs::Op));
        assert_eq!(differs(&base, &call("all_reduce", 16, 16, "Half")), Some(Differs::Size));
        assert_eq!(differs(&base, &call("all_reduce", 8, 8, "Half")), Some(Differs::Dtype));
    }

    #[test]
    fn shapes_of_equal_size_and_uneven_parts_are_no_difference() {
        let mut reshaped = call("all_reduce", 8, 8, "Float");
        reshaped.input_sizes = vec![vec![2, 4]];
        assert_eq!(differs(&call("all_reduce", 8, 8, "Float"), &reshaped), None);
        assert_eq!(differs(&call("all_to_all", 8, 9, "Float"), &call("all_to_all", 9, 8, "Float")), None);
        assert_eq!(differs(&call("gather", 8, 64, "Float"), &call("gather", 8, 0, "Float")), None);
        let unknown = Signature { op: operation("all_reduce"), ..Signature::default() };
        assert_eq!(differs(&call("all_reduce", 8, 8, "Float"), &unknown), None, "a log may print no size");
    }
}
