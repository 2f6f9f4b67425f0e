//! The layout against a driver that only keeps books: which addresses would fault.

use std::collections::BTreeMap;

use super::*;
use crate::probe::protocol::Fill;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Keeps what was reserved, mapped and allowed, and refuses what a driver refuses.
#[derive(Default)]
struct Books {
    next: u64,
    reserved: BTreeMap<u64, u64>,
    pieces: Vec<u64>,
    mapped: BTreeMap<u64, u64>,
    allowed: Vec<(u64, u64)>,
    plain: BTreeMap<u64, u64>,
    address_limit: u64,
    unsupported: bool,
}

const INVALID: i32 = 1;

impl Books {
    fn new() -> Self {
        Self { next: 0x7f00_0000_0000, address_limit: 1 << 46, ..Self::default() }
    }

    /// Whether a kernel could touch the byte at `address`.
    fn reaches(&self, address: u64) -> bool {
        let holds = |start: u64, bytes: u64| address >= start && address - start < bytes;
        let mapped =
            self.mapped.range(..=address).next_back().is_some_and(|(&start, &bytes)| holds(start, bytes));
        mapped && self.allowed.iter().any(|&(start, bytes)| holds(start, bytes))
            || self.plain.iter().any(|(&start, &bytes)| holds(start, bytes))
    }
}

fn refuse<T>(call: &'static str) -> Answer<T> {
    Err(CallFailed { call, code: INVALID })
}

impl DeviceMemory for Books {
    fn granularity(&mut self) -> Answer<u64> {
        if self.unsupported {
            return Err(CallFailed { call: "cuMemGetAllocationGranularity", code: 801 });
        }
        Ok(2 * MIB)
    }

    fn reserve(&mut self, bytes: u64) -> Answer<u64> {
        if !bytes.is_multiple_of(2 * MIB) || bytes > self.address_limit {
            return Err(CallFailed { call: "cuMemAddressReserve", code: 2 });
        }
        let at = self.next;
        self.next += bytes;
        self.reserved.insert(at, bytes);
        Ok(at)
    }

    fn create(&mut self, bytes: u64) -> Answer<u64> {
        if bytes == 0 || !bytes.is_multiple_of(2 * MIB) {
            return refuse("cuMemCreate");
        }
        self.pieces.push(bytes);
        Ok(self.pieces.len() as u64)
    }

    fn map(&mut self, address: u64, bytes: u64, handle: u64) -> Answer<()> {
        let piece = self.pieces.get(handle as usize - 1).copied();
        let inside = self
            .reserved
            .range(..=address)
            .next_back()
            .is_some_and(|(&start, &size)| address + bytes <= start + size);
        let free = self.mapped.range(..address + bytes).next_back().is_none_or(|(&at, &n)| at + n <= address);
        if piece != Some(bytes) || !address.is_multiple_of(2 * MIB) || !inside || !free {
            return refuse("cuMemMap");
        }
        self.mapped.insert(address, bytes);
        Ok(())
    }

    fn allow(&mut self, address: u64, bytes: u64) -> Answer<()> {
        self.allowed.push((address, bytes));
        Ok(())
    }

    fn allocate(&mut self, bytes: u64) -> Answer<u64> {
        let at = self.next;
        self.next += bytes.next_multiple_of(512);
        self.plain.insert(at, bytes);
        Ok(at)
    }

    fn free(&mut self, address: u64) -> Answer<()> {
        self.plain.remove(&address).map(|_| ()).ok_or(CallFailed { call: "cuMemFree", code: INVALID })
    }

    fn set(&mut self, _: u64, _: u8, _: u64) -> Answer<()> {
        Ok(())
    }

    fn copy(&mut self, _: u64, _: &[u8]) -> Answer<()> {
        Ok(())
    }
}

fn buffer(bytes: u64, align: u64, placement: Placement) -> Buffer {
    Buffer { name: "y".into(), bytes, align, backing: Backing::Aliased, placement, fill: Fill::Zero }
}

#[test]
fn every_address_outside_an_end_aligned_buffer_that_matters_faults() {
    let mut books = Books::new();
    let bytes = 233_016 * 9_216 * 2;
    let laid = lay_out(&mut books, &buffer(bytes, 16, Placement::End), 600 * MIB).unwrap();
    let (start, end) = (laid.placed.address, laid.placed.address + bytes);
    assert_eq!((laid.piece_bytes, laid.physical_bytes, laid.placed.mappings), (4 * MIB, 4 * MIB, 1_024));
    assert_eq!((start % 16, laid.placed.slack_bytes), (0, 0));
    assert!(books.reaches(start) && books.reaches(start + bytes / 2) && books.reaches(end - 1));
    assert!(!books.reaches(end), "one element past the end");
    assert!(!books.reaches(end + GUARD_BYTES - 1));
    // Wrapped indices: 2^32 elements of 1, 2, 4 and 8 bytes before where they should have been.
    for element in [1, 2, 4, 8] {
        for place in [start, start + bytes / 2 / element * element, end - element] {
            let wrapped = place - (element << 32);
            assert!(!books.reaches(wrapped) || wrapped >= start, "element {element}");
        }
    }
    assert!(!books.reaches(start - (8 << 32)));
}

#[test]
fn a_start_aligned_buffer_faults_one_byte_before_it() {
    let mut books = Books::new();
    let laid = lay_out(&mut books, &buffer(1_000, 16, Placement::Start), GIB).unwrap();
    assert_eq!(laid.placed.address, laid.mapped);
    assert!(books.reaches(laid.placed.address) && !books.reaches(laid.placed.address - 1));
}

#[test]
fn alignment_is_kept_and_the_slack_is_told() {
    let mut books = Books::new();
    let laid = lay_out(&mut books, &buffer(1_002, 16, Placement::End), GIB).unwrap();
    assert_eq!((laid.placed.address % 16, laid.placed.slack_bytes), (0, 6));
    assert!(!books.reaches(laid.placed.address + 1_002 + 6));
}

#[test]
fn a_shape_larger_than_the_card_needs_a_larger_piece_and_no_more_mappings() {
    let mut books = Books::new();
    let bytes = 33_331_200 * 9_216 * 2;
    assert_eq!(bytes, 614_360_678_400);
    let laid = lay_out(&mut books, &buffer(bytes, 16, Placement::End), 2 * GIB).unwrap();
    assert_eq!((laid.piece_bytes, laid.placed.mappings), (GIB, 573));
    assert!(books.reaches(laid.placed.address) && !books.reaches(laid.placed.address + bytes));
}

#[test]
fn buffers_lie_two_guards_apart() {
    let mut books = Books::new();
    let first = lay_out(&mut books, &buffer(10 * MIB, 16, Placement::End), GIB).unwrap();
    let second = lay_out(&mut books, &buffer(10 * MIB, 16, Placement::Start), GIB).unwrap();
    assert_eq!(second.placed.address - (first.placed.address + 10 * MIB), 2 * GUARD_BYTES);
}

#[test]
fn contents_that_count_get_memory_of_their_own_within_the_limit() {
    let mut books = Books::new();
    let whole = Buffer { backing: Backing::Whole, ..buffer(3 * MIB, 4, Placement::End) };
    let laid = lay_out(&mut books, &whole, GIB).unwrap();
    assert_eq!((laid.physical_bytes, laid.placed.mappings), (4 * MIB, 1));
    assert!(!books.reaches(laid.placed.address + 3 * MIB));
    assert_eq!(
        lay_out(&mut books, &whole, 3 * MIB),
        Err(LayFailed::Limit { needed: 4 * MIB, left: 3 * MIB })
    );
}

#[test]
fn without_hand_made_mappings_the_loss_is_stated() {
    let mut books = Books { unsupported: true, ..Books::new() };
    let laid = lay_out(&mut books, &buffer(1_000, 16, Placement::End), GIB).unwrap();
    assert_eq!(laid.guard_bytes, 0);
    assert!(laid.note.unwrap().contains("801"), "the driver's status is named");
    assert!(books.reaches(laid.placed.address));
}

#[test]
fn guards_shrink_where_addresses_are_short() {
    let mut books = Books { address_limit: 20 * GIB, ..Books::new() };
    let laid = lay_out(&mut books, &buffer(MIB, 16, Placement::End), GIB).unwrap();
    assert_eq!(laid.guard_bytes, 8 * GIB);
    assert!(laid.note.unwrap().contains("8 GiB"));
    let mut none = Books { address_limit: GIB, ..Books::new() };
    let failed = lay_out(&mut none, &buffer(MIB, 16, Placement::End), GIB);
    assert_eq!(failed, Err(LayFailed::Call(CallFailed { call: "cuMemAddressReserve", code: 2 })));
}

#[test]
fn an_empty_buffer_faults_everywhere() {
    let mut books = Books::new();
    let laid = lay_out(&mut books, &buffer(0, 16, Placement::End), GIB).unwrap();
    assert!(!books.reaches(laid.placed.address));
    assert_eq!(laid.physical_bytes, 0);
}

#[test]
fn sizes_that_make_no_sense_are_refused() {
    let mut books = Books::new();
    assert_eq!(lay_out(&mut books, &buffer(u64::MAX, 16, Placement::End), GIB), Err(LayFailed::Size));
    assert_eq!(lay_out(&mut books, &buffer(16, 12, Placement::End), GIB), Err(LayFailed::Size));
}
