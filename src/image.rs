//! ELF images and what NVIDIA puts into them: symbols, line table, parameter table, embedded PTX.
//!
//! In: the bytes of a cubin, alone or inside a core dump, however damaged. Out: plain values with a diagnostic for
//! each thing that could not be understood. It leaves alone what the machine code does and who asked for it; core
//! dumps (`read::coredump`), kernels and the probe all read images through this room.

pub mod cubin;
pub mod elf;
pub mod line_table;
pub mod params;
pub mod ptx_text;
pub mod symbol;
