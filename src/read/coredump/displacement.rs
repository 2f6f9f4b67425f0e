//! The fault-address test on addresses that a dump holds: was a 32-bit index wrapped?
//!
//! In: pointer arguments, addresses that registers spell, scalar arguments and the block. Out: every pair of pointer
//! and address whose distance is what a wrapped signed 32-bit index leaves behind, with the index before it wrapped. It
//! leaves alone how sure that makes anyone: a distance alone fits by chance, which is why agreements are listed too.
//!
//! A wrapped index lands 2³² elements below where it should have been. With w = (address − pointer) / element size,
//! w must be a whole number in [−2³¹, 0), and the index was w + 2³².

/// Element sizes in bytes that are tried; 16 covers vectors of four floats.
const ELEMENT_BYTES: [u32; 5] = [1, 2, 4, 8, 16];

/// Arguments of either kind that are tried, and pairs that are kept: a launch has dozens, a hostile dump thousands.
const TRIED: usize = 64;
const KEPT: usize = 512;

/// Arguments below this are no device pointers: GPU memory is never mapped there.
const LEAST_POINTER: u64 = 1 << 16;

/// An address that a wrapped index explains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Displaced {
    /// Registers that spell the address (`R2:R3`).
    pub registers: String,
    /// The address.
    pub address: u64,
    /// Ordinal of the pointer argument.
    pub argument: u16,
    /// Its value.
    pub pointer: u64,
    /// Element size in bytes under which the distance fits.
    pub element_bytes: u32,
    /// The index before it wrapped: 2³¹ or more, in elements.
    pub index: u64,
    /// Ways in which the index fits the rest of the launch.
    pub agreements: Vec<Agreement>,
    /// The nearest pointer argument at or below the address (ordinal), and how many bytes below: the address may be an
    /// ordinary one in that buffer.
    pub above: Option<(u16, u64)>,
}

impl Displaced {
    /// True where the distance tells something: the index agrees with the launch, or no buffer starts within 2 GiB below
    /// the address.
    #[must_use]
    pub fn is_telling(&self) -> bool {
        !self.agreements.is_empty() || self.above.is_none_or(|(_, bytes)| bytes >= 1 << 31)
    }
}

/// The index, divided by a scalar argument as row stride, gives a row that the launch knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agreement {
    /// Ordinal of the argument taken as stride.
    pub stride_argument: u16,
    /// The stride in elements.
    pub stride: u64,
    /// index / stride.
    pub row: u64,
    /// index mod stride.
    pub column: u64,
    /// What the row equals.
    pub row_is: RowIs,
}

/// What a recovered row equals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowIs {
    /// A coordinate of the faulting block (0 is x).
    Block(u8),
    /// A scalar argument plus a coordinate of the faulting block.
    ArgumentPlusBlock(u16, u8),
}

/// All pairs that fit. `addresses` and `scalars` come with their names: registers, ordinals.
#[must_use]
pub fn displaced(
    pointers: &[(u16, u64)],
    addresses: &[(String, u64)],
    scalars: &[(u16, u64)],
    block: Option<[u64; 3]>,
) -> Vec<Displaced> {
    let pointers = pointers.get(..TRIED).unwrap_or(pointers);
    let scalars = scalars.get(..TRIED).unwrap_or(scalars);
    let mut found = Vec::new();
    for (registers, address) in addresses {
        if found.len() >= KEPT {
            break;
        }
        let below = pointers.iter().filter(|(_, pointer)| *pointer >= LEAST_POINTER);
        let below = below.filter_map(|(ordinal, pointer)| Some((*ordinal, address.checked_sub(*pointer)?)));
        let above = below.min_by_key(|(_, bytes)| *bytes);
        for (argument, pointer) in pointers.iter().filter(|(_, pointer)| *pointer >= LEAST_POINTER) {
            for element_bytes in ELEMENT_BYTES {
                if let Some(index) = unwrapped(*address, *pointer, element_bytes) {
                    found.push(Displaced {
                        registers: registers.clone(),
                        address: *address,
                        argument: *argument,
                        pointer: *pointer,
                        element_bytes,
                        index,
                        agreements: agreements(index, scalars, block),
                        above,
                    });
                }
            }
        }
    }
    found
}

/// The index in [2³¹, 2³²) that wrapped to reach `address` from `pointer` with elements of `element_bytes`; `None`
/// where no such index does.
#[must_use]
pub fn unwrapped(address: u64, pointer: u64, element_bytes: u32) -> Option<u64> {
    let distance = i128::from(address) - i128::from(pointer);
    let size = i128::from(element_bytes);
    if size == 0 || distance % size != 0 {
        return None;
    }
    let wrapped = distance / size;
    let range = -(1_i128 << 31)..0;
    range.contains(&wrapped).then(|| u64::try_from(wrapped + (1 << 32)).ok()).flatten()
}

fn agreements(index: u64, scalars: &[(u16, u64)], block: Option<[u64; 3]>) -> Vec<Agreement> {
    let Some(block) = block else { return Vec::new() };
    let mut found = Vec::new();
    // A stride that fits no int32 can't be a factor of a 32-bit index.
    for (stride_argument, stride) in scalars.iter().filter(|(_, stride)| (2..1 << 31).contains(stride)) {
        let (row, column) = (index / stride, index % stride);
        let known = row_is(row, *stride_argument, scalars, block);
        found.extend(known.map(|row_is| Agreement {
            stride_argument: *stride_argument,
            stride: *stride,
            row,
            column,
            row_is,
        }));
    }
    found
}

fn row_is(row: u64, stride_argument: u16, scalars: &[(u16, u64)], block: [u64; 3]) -> Option<RowIs> {
    if row == 0 {
        return None;
    }
    let axes = || (0_u8..).zip(block);
    if let Some((axis, _)) = axes().find(|(_, at)| *at == row) {
        return Some(RowIs::Block(axis));
    }
    let others = scalars.iter().filter(|(ordinal, value)| *ordinal != stride_argument && *value > 0);
    others.flat_map(|scalar| axes().map(move |axis| (scalar, axis))).find_map(
        |((ordinal, value), (axis, at))| {
            (value.checked_add(at) == Some(row)).then_some(RowIs::ArgumentPlusBlock(*ordinal, axis))
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const Y: u64 = 0x7f06_9400_0000;

    #[test]
    fn scatter_rows_wrapped_at_two_bytes() {
        let address = 0x7f05_9400_0400;
        assert_eq!(address, Y - (1 << 32) + 0x400);
        assert_eq!(unwrapped(address, Y, 2), Some(2_147_484_160));
        let scalars = [(2, 300_000), (3, 4096), (4, 8192), (5, 262_144)];
        let found = displaced(&[(1, Y)], &[("R2:R3".to_owned(), address)], &scalars, Some([0, 0, 0]));
        let agreeing: Vec<_> = found.iter().filter(|pair| !pair.agreements.is_empty()).collect();
        assert_eq!(agreeing.len(), 1);
        assert_eq!((agreeing[0].element_bytes, agreeing[0].index), (2, 2_147_484_160));
        // A product of two arguments agrees both ways round.
        let agreement = |stride_argument, stride, row, other| Agreement {
            stride_argument,
            stride,
            row,
            column: 512,
            row_is: RowIs::ArgumentPlusBlock(other, 0),
        };
        assert_eq!(agreeing[0].agreements, [agreement(4, 8192, 262_144, 5), agreement(5, 262_144, 8192, 4)]);
        assert!(found.iter().all(|pair| pair.above.is_none() && pair.is_telling()));
        let sizes: Vec<u32> = found.iter().map(|pair| pair.element_bytes).collect();
        assert_eq!(sizes, [2, 4, 8, 16]);
    }

    #[test]
    fn the_rows_of_fill_rows() {
        // 8,543,272,832 bytes before an allocation of 9,175,040,000: 2,159,149,088 of four bytes, block 65892, thread 32.
        let out = 0x7fa4_4400_0000;
        let address = 0x7fa2_46c8_0080;
        assert_eq!(unwrapped(address, out, 4), Some(2_159_149_088));
        let found = displaced(
            &[(0, out)],
            &[("R4:R5".to_owned(), address)],
            &[(1, 70_000), (2, 32_768), (3, 32_768)],
            Some([65_892, 0, 0]),
        );
        let four = found.iter().find(|pair| pair.element_bytes == 4).unwrap();
        assert_eq!(four.agreements.len(), 2);
        assert_eq!((four.agreements[0].row, four.agreements[0].column), (65_892, 32));
        assert_eq!(four.agreements[0].row_is, RowIs::Block(0));
    }

    #[test]
    fn an_address_in_the_next_buffer_tells_nothing() {
        let pointers = [(0, 0x7fd0_ffe0_2000), (1, 0x7fd0_ffe0_1000)];
        let found = displaced(&pointers, &[("R6:R7".to_owned(), 0x7fd0_ffe0_1c00)], &[], Some([3, 0, 0]));
        assert!(found.iter().all(|pair| pair.argument == 0 && pair.above == Some((1, 0xc00))));
        assert_eq!((found.len(), found.iter().any(Displaced::is_telling)), (5, false));
    }

    #[test]
    fn distances_that_no_wrap_explains() {
        assert_eq!(unwrapped(Y, Y, 4), None);
        assert_eq!(unwrapped(Y + 4096, Y, 4), None);
        assert_eq!(unwrapped(Y - 2, Y, 4), None);
        assert_eq!(unwrapped(Y - (1 << 33) - 4, Y, 4), None);
        assert_eq!(unwrapped(Y - (1 << 33), Y, 4), Some(1 << 31));
        assert_eq!(unwrapped(0, u64::MAX, 0), None);
        assert!(displaced(&[(0, 0)], &[("R0:R1".to_owned(), 0)], &[], None).is_empty());
    }
}
