//! What a small GPU core dump leaves out.
//!
//! In: nothing. Out: the value of `CUDA_COREDUMP_GENERATION_FLAGS` that every proposed command gives. It leaves reading a
//! dump's own flags to `read`.

/// Memory and duplicate code are left out; registers, launch arguments and relocated code stay. Constant banks go too: where
/// global memory was left out and they were not, driver 580.159 cut the dump off at its first 68,672 bytes
/// (docs/gpu-validation.md).
pub const SMALL: &str = "skip_nonrelocated_elf_images,skip_global_memory,skip_shared_memory,skip_local_memory,skip_constbank_memory";
