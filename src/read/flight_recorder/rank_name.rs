//! Ranks out of file names.
//!
//! In: the names of all dumps of one job, and the number of ranks where it is known. Out: a rank for each name that ends in
//! one. It leaves alone the content.
//!
//! A name is a prefix and the rank, and the prefix may itself hold a host name or end in digits: `nccl_trace_rank_12`,
//! `host7_3`, `job420` for rank 0 of `job42`.

/// Ranks of `names`, in their order. Folders, endings (`.json`, `.pkl`, `.gz`, …) and leading zeros are put aside.
/// With `world_size`, digits that all names share are taken for the prefix where the ranks would otherwise not fit in.
#[must_use]
pub fn ranks_from_names(names: &[&str], world_size: Option<u32>) -> Vec<Option<u32>> {
    let digits: Vec<&str> = names.iter().map(|name| trailing_digits(name)).collect();
    let whole: Vec<Option<u32>> = digits.iter().map(|digits| digits.parse().ok()).collect();
    let Some(world_size) = world_size else { return whole };
    let fits =
        |ranks: &[Option<u32>]| ranks.iter().flatten().all(|&rank| rank < world_size) && are_distinct(ranks);
    if fits(&whole) {
        return whole;
    }
    let present = || digits.iter().filter(|digits| !digits.is_empty());
    let shortest = present().map(|digits| digits.len()).min().unwrap_or(0);
    let shared = present().next().map_or(0, |first| {
        (0..shortest)
            .take_while(|&len| present().all(|digits| digits.get(..=len) == first.get(..=len)))
            .count()
    });
    for cut in 1..=shared.min(shortest.saturating_sub(1)) {
        let ranks: Vec<Option<u32>> =
            digits.iter().map(|digits| digits.get(cut..).and_then(|rank| rank.parse().ok())).collect();
        if fits(&ranks) {
            return ranks;
        }
    }
    whole
}

fn are_distinct(ranks: &[Option<u32>]) -> bool {
    let mut known: Vec<u32> = ranks.iter().flatten().copied().collect();
    let all = known.len();
    known.sort_unstable();
    known.dedup();
    known.len() == all
}

/// The digits at the end of a file's name, without its folder and its ending.
fn trailing_digits(name: &str) -> &str {
    let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let mut stem = name;
    while let Some((rest, ending)) = stem.rsplit_once('.') {
        if ending.is_empty() || ending.len() > 7 || ending.bytes().all(|byte| byte.is_ascii_digit()) {
            break;
        }
        stem = rest;
    }
    let start = stem.rfind(|char: char| !char.is_ascii_digit()).map_or(0, |last| {
        last + stem.get(last..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8)
    });
    stem.get(start..).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_digits_at_the_end() {
        let names = [
            "/tmp/nccl_trace_rank_0",
            "nccl_trace_rank_12",
            "host7_3",
            "trace_rank_007.json.gz",
            "notes",
            "a.1",
        ];
        assert_eq!(ranks_from_names(&names, None), [Some(0), Some(12), Some(3), Some(7), None, Some(1)]);
        assert_eq!(ranks_from_names(&["rank_10", "rank_11"], Some(16)), [Some(10), Some(11)]);
    }

    #[test]
    fn a_prefix_that_ends_in_digits_is_found_by_the_number_of_ranks() {
        let names = ["job420", "job421", "job4210", "job4215"];
        assert_eq!(ranks_from_names(&names, Some(16)), [Some(0), Some(1), Some(10), Some(15)]);
        assert_eq!(ranks_from_names(&["node10", "node11"], Some(2)), [Some(0), Some(1)]);
        assert_eq!(ranks_from_names(&["node10", "node11"], None), [Some(10), Some(11)]);
    }

    #[test]
    fn hosts_in_the_prefix_may_differ() {
        let names = ["trace_node-07_14", "trace_node-08_15"];
        assert_eq!(ranks_from_names(&names, Some(16)), [Some(14), Some(15)]);
    }
}
