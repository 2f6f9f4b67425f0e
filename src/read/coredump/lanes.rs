//! Registers of the warp at fault, and what they spell.
//!
//! In: the registers of up to 32 lanes. Out: the addresses that register pairs spell, and the lanes that break the
//! pattern of their warp. An exception is raised for a whole warp; which lane caused it shows in its registers alone. It
//! leaves alone what instruction uses which register.

use crate::read::event::Dim3;

/// Lanes whose registers are compared; fewer tell no pattern.
const LEAST_LANES: usize = 8;

/// A lane of the warp at fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lane {
    /// Position in the warp, 0 to 31.
    pub lane: u32,
    /// Thread index in the block.
    pub thread: Dim3,
    /// Where it stood when the dump was written: often past the faulting instruction.
    pub pc: u64,
    /// Its exception number; 0 for none.
    pub exception: u32,
    /// R0, R1, … as far as the kernel uses them; empty where the dump doesn't hold them.
    pub registers: Vec<u32>,
}

/// A register whose value in one lane breaks the pattern of its warp.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OddRegister {
    /// Number of the register.
    pub register: u32,
    /// The lane that stands out.
    pub lane: u32,
    /// Its thread index.
    pub thread: Dim3,
    /// What it holds.
    pub value: u32,
    /// What the other lanes' pattern (a start and a step a lane) predicts for it.
    pub expected: u32,
}

/// Values of even register pairs that can be addresses in GPU memory, by name (`R2:R3`).
#[must_use]
pub fn addresses(registers: &[u32], prefix: &str) -> Vec<(String, u64)> {
    let pairs = (0_u32..).step_by(2).zip(registers.chunks_exact(2));
    pairs
        .filter_map(|(low, pair)| {
            let value = u64::from(*pair.get(1)?) << 32 | u64::from(*pair.first()?);
            // Above 4 GiB; unified addresses follow the host and stay below 2^49, data words seldom do.
            let possible = (1 << 32..1 << 49).contains(&value);
            possible.then(|| (format!("{prefix}{low}:{prefix}{}", low + 1), value))
        })
        .collect()
}

/// Lanes that break the pattern of their warp: three of four lanes hold start + step × lane, this one doesn't.
#[must_use]
pub fn odd_registers(lanes: &[Lane]) -> Vec<OddRegister> {
    let count = lanes.iter().map(|lane| lane.registers.len()).min().unwrap_or(0);
    if lanes.len() < LEAST_LANES {
        return Vec::new();
    }
    (0..count).flat_map(|register| odd_in(lanes, register)).collect()
}

fn odd_in(lanes: &[Lane], register: usize) -> Vec<OddRegister> {
    let value = |lane: &Lane| lane.registers.get(register).copied().unwrap_or(0);
    let Some((start, step)) = pattern(lanes, value) else { return Vec::new() };
    let expected = |lane: &Lane| start.wrapping_add(step.wrapping_mul(lane.lane));
    let odd = lanes.iter().filter(|lane| value(lane) != expected(lane)).map(|lane| OddRegister {
        register: u32::try_from(register).unwrap_or(u32::MAX),
        lane: lane.lane,
        thread: lane.thread,
        value: value(lane),
        expected: expected(lane),
    });
    odd.collect()
}

/// The start and step that at least three of four lanes follow.
fn pattern(lanes: &[Lane], value: impl Fn(&Lane) -> u32) -> Option<(u32, u32)> {
    let line = |pair: &[Lane]| {
        let (first, second) = (pair.first()?, pair.get(1)?);
        let adjacent = second.lane.checked_sub(first.lane) == Some(1);
        let step = value(second).wrapping_sub(value(first));
        adjacent.then(|| (value(first).wrapping_sub(step.wrapping_mul(first.lane)), step))
    };
    let candidates: Vec<(u32, u32)> = lanes.windows(2).filter_map(line).collect();
    let follows = |(start, step): (u32, u32)| {
        lanes.iter().filter(|lane| value(lane) == start.wrapping_add(step.wrapping_mul(lane.lane))).count()
    };
    candidates.into_iter().find(|candidate| follows(*candidate) * 4 >= lanes.len() * 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warp(value: impl Fn(u32) -> u32) -> Vec<Lane> {
        (0..32)
            .map(|lane| Lane {
                lane,
                thread: [lane.into(), 0, 0],
                pc: 0,
                exception: 14,
                registers: vec![value(lane)],
            })
            .collect()
    }

    #[test]
    fn one_wild_index_stands_out() {
        let odd = odd_registers(&warp(|lane| if lane == 9 { 1 << 30 } else { 0x300 + lane }));
        assert_eq!(
            odd,
            [OddRegister { register: 0, lane: 9, thread: [9, 0, 0], value: 1 << 30, expected: 0x309 }]
        );
    }

    #[test]
    fn no_pattern_no_odd_lane() {
        assert!(odd_registers(&warp(|lane| lane * lane)).is_empty());
        assert!(odd_registers(&warp(|lane| 7 + 3 * lane)).is_empty());
        assert!(odd_registers(&warp(|lane| lane / 8)).is_empty());
        assert!(odd_registers(&warp(|lane| if lane == 0 { 9 } else { lane }).split_off(28)).is_empty());
    }

    #[test]
    fn pairs_spell_addresses() {
        let registers = [0x600, 0xff_fdc0, 0x9400_0400, 0x7f05, 7, 0];
        assert_eq!(addresses(&registers, "R"), [("R2:R3".to_owned(), 0x7f05_9400_0400)]);
    }
}
