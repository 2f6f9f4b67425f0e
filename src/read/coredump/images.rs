//! The cubins inside a dump, found by program counter.
//!
//! In: the dump's relocated images. Out: the function, kernel and source line of a program counter. Only images that
//! are asked about are read whole: a PyTorch process has hundreds loaded.

use std::collections::BTreeMap;

use crate::image::cubin::{self, Cubin};
use crate::image::elf::Elf;

/// Images that are looked at.
const IMAGE_LIMIT: usize = 1 << 14;

/// Images that are read whole.
const READ_LIMIT: usize = 16;

/// Section headers that are looked at in all images together.
const SECTION_LIMIT: u64 = 1 << 24;

/// Stretches of machine code that are kept.
const CODE_LIMIT: usize = 1 << 20;

/// Stretches that are tried for one program counter: they don't overlap in a dump that the driver wrote.
const TRIED: usize = 16;

/// The images of a dump.
pub(super) struct Images<'a> {
    images: Vec<&'a [u8]>,
    architecture: Option<u32>,
    /// Machine code by address: start, size, image.
    code: Vec<(u64, u64, usize)>,
    read: BTreeMap<usize, Cubin>,
}

impl<'a> Images<'a> {
    pub(super) fn of(images: impl Iterator<Item = &'a [u8]>, diagnostics: &mut Vec<String>) -> Self {
        let mut all =
            Self { images: Vec::new(), architecture: None, code: Vec::new(), read: BTreeMap::new() };
        let (mut broken, mut headers) = (0_u64, 0_u64);
        for bytes in images.take(IMAGE_LIMIT) {
            let Ok(elf) = Elf::parse(bytes) else {
                broken += 1;
                continue;
            };
            headers = headers.saturating_add(elf.section_count().into());
            if headers > SECTION_LIMIT {
                diagnostics
                    .push(format!("core dump: images past {SECTION_LIMIT} section headers were not read"));
                break;
            }
            let number = all.images.len();
            let room = CODE_LIMIT.saturating_sub(all.code.len());
            let code = cubin::code_ranges(&elf).filter(|(start, _)| *start != 0).take(room);
            all.code.extend(code.map(|(start, size)| (start, size, number)));
            all.architecture = all.architecture.or_else(|| cubin::architecture(elf.os_abi, elf.flags));
            all.images.push(bytes);
        }
        all.code.sort_unstable();
        if broken != 0 {
            diagnostics.push(format!("core dump: {broken} images are no ELF files"));
        }
        all
    }

    pub(super) fn len(&self) -> usize {
        self.images.len()
    }

    pub(super) fn architecture(&self) -> Option<u32> {
        self.architecture
    }

    /// Reads the image that holds `pc` and returns its number.
    pub(super) fn find(&mut self, pc: u64, diagnostics: &mut Vec<String>) -> Option<usize> {
        let holds =
            |(start, size, _): &&(u64, u64, usize)| pc.checked_sub(*start).is_some_and(|at| at < *size);
        let after = self.code.partition_point(|(start, _, _)| *start <= pc);
        let number = self.code.get(..after)?.iter().rev().take(TRIED).find(holds)?.2;
        if !self.read.contains_key(&number) && self.read.len() < READ_LIMIT {
            let (cubin, said) = cubin::parse(self.images.get(number)?);
            diagnostics.extend(said.into_iter().map(|text| format!("image {number}: {text}")));
            self.read.insert(number, cubin);
        }
        self.read.contains_key(&number).then_some(number)
    }

    /// An image that [`Images::find`] has read.
    pub(super) fn get(&self, number: usize) -> Option<&Cubin> {
        self.read.get(&number)
    }

    /// All images that were read, with their numbers.
    pub(super) fn into_read(self) -> impl Iterator<Item = (usize, Cubin)> {
        self.read.into_iter()
    }

    /// Addresses and sizes of the machine code of every image, by address.
    pub(super) fn code(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.code.iter().map(|(start, size, _)| (*start, *size))
    }
}
