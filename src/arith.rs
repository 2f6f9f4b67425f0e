//! Pure checked integers: what a shape's largest index is, which limit it crosses, and what a fault address proves.
//!
//! In: sizes, strides, element sizes, addresses. Out: exact numbers, boundary shapes and typed readings, or a clear
//! error where a number leaves 128 bits. It leaves logs, JSON, files and wording alone: callers bring numbers and
//! turn answers into sentences.

pub mod boundary;
pub mod distance;
pub mod dtype;
pub mod layout;
pub mod limits;
pub mod model;
pub mod padding;
pub mod parse;
pub mod shape;

pub use boundary::{Boundary, BoundaryShape, Expect, Role};
pub use distance::{Access, Allocation, Context, KnownTensor, Reading, Strength, Wrapped};
pub use dtype::DType;
pub use layout::{Extent, Strides, TensorLayout};
pub use limits::{IndexLimit, LimitCheck};
pub use shape::Shape;
