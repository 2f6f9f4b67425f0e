//! Dumps of a whole job, a few in memory at a time.
//!
//! In: how many there are and how to load one. Out: each dump, in order, to a function of the caller's. It leaves alone
//! where the bytes come from.

use rayon::prelude::*;

use super::{FlightDump, read};
use crate::error::Result;

/// Loads and reads dumps 0 to `count` - 1 on all cores. `take` gets them in that order, one at a time; a dump that could not
/// be loaded or read comes as its error and stops nothing.
pub fn read_each(
    count: usize,
    load: impl Fn(usize) -> Result<Vec<u8>> + Sync,
    mut take: impl FnMut(usize, Result<FlightDump>),
) {
    let batch = rayon::current_num_threads().saturating_mul(4).max(1);
    let mut from = 0;
    while from < count {
        let to = count.min(from.saturating_add(batch));
        let read_one = |index| load(index).and_then(|bytes| read(&bytes));
        let dumps: Vec<Result<FlightDump>> = (from..to).into_par_iter().map(read_one).collect();
        for (index, dump) in (from..to).zip(dumps) {
            take(index, dump);
        }
        from = to;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Error, ErrorKind};

    #[test]
    fn hands_out_every_dump_in_order_and_goes_on_after_a_bad_one() {
        let dump = include_bytes!("../../../samples/pair-missing-rank/nccl_trace_rank_0");
        let mut got = Vec::new();
        let load = |index| match index {
            7 => Err(Error::new(ErrorKind::Input, "gone")),
            _ => Ok(dump.to_vec()),
        };
        read_each(100, load, |index, dump| got.push((index, dump.is_ok())));
        let expected: Vec<(usize, bool)> = (0..100).map(|index| (index, index != 7)).collect();
        assert_eq!(got, expected);
    }
}
