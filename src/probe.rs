//! Reruns a kernel at the predicted boundary, in processes that may die.
//!
//! In: a compiled kernel, what its arguments are, a device. Out: one outcome a size and what they say together. It changes
//! no setting of a GPU, never resets one, and uses no managed memory. Nothing here draws or asks: the front ends do.
//!
//! [`load`] finds the kernel, [`binding`] its arguments (with [`extent`] reading them off the compiled code), [`plan`] the
//! sizes, [`run`] carries the plan out with [`host`], which starts a [`child`] for each launch.

pub mod binding;
pub mod child;
pub mod compile;
pub mod extent;
pub mod host;
pub mod load;
pub mod outcome;
pub mod plan;
pub mod protocol;
pub mod reference;
pub mod run;
pub mod spec;
pub mod target;
