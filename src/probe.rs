//! Reruns a kernel at the predicted boundary, in processes that may die.
pub mod child;
pub mod extent;
pub mod host;
pub mod outcome;
pub mod plan;
pub mod protocol;
