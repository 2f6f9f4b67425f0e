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
const READ_LIMIT: usize = 64;

/// The images of a dump.
pub(super) struct Images<'a> {
    images: Vec<Image<'a>>,
    read: BTreeMap<usize, Cubin>,
}

struct Image<'a> {
    bytes: &'a [u8],
    architecture: Option<u32>,
    code: Vec<(u64, u64)>,
}

impl<'a> Images<'a> {
    pub(super) fn of(images: impl Iterator<Item = &'a [u8]>, diagnostics: &mut Vec<String>) -> Self {
        let mut list = Vec::new();
        let mut broken = 0_u64;
        for bytes in images.take(IMAGE_LIMIT) {
            match Elf::parse(bytes) {
                Ok(elf) => list.push(Image {
                    bytes,
                    architecture: cubin::architecture(elf.os_abi, elf.flags),
                    code: cubin::code_ranges(&elf).filter(|(start, _)| *start != 0).collect(),
                }),
                Err(_) => broken += 1,
            }
        }
        if broken != 0 {
            diagnostics.push(format!("core dump: {broken} images are no ELF files"));
        }
        Self { images: list, read: BTreeMap::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.images.len()
    }

    pub(super) fn architecture(&self) -> Option<u32> {
        self.images.iter().find_map(|image| image.architecture)
    }

    /// Reads the image that holds `pc` and returns its number.
    pub(super) fn find(&mut self, pc: u64, diagnostics: &mut Vec<String>) -> Option<usize> {
        let holds = |(start, size): &(u64, u64)| pc.checked_sub(*start).is_some_and(|at| at < *size);
        let number = self.images.iter().position(|image| image.code.iter().any(holds))?;
        if !self.read.contains_key(&number) && self.read.len() < READ_LIMIT {
            let (cubin, said) = cubin::parse(self.images.get(number)?.bytes);
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

    /// Function addresses and sizes of every image, for a dump without tables.
    pub(super) fn code(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.images.iter().flat_map(|image| image.code.iter().copied())
    }
}
