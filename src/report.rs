//! One labelled report, in every format.
//!
//! In: a case and its verdict. Out: [`model::Report`], and text, Markdown and JSON made of it. Every string that came from
//! a log is escaped here, once, so that no format can let one through. It knows nothing of terminals.

pub mod asked;
pub mod build;
mod fields;
pub mod figure;
pub mod history;
pub mod html;
pub mod kernel;
pub mod kernel_text;
pub mod markdown;
pub mod model;
pub mod model_extents;
pub mod number_line;
pub mod probe;
pub mod probe_text;
pub mod redact;
pub mod shapes;
pub mod shapes_text;
pub mod text;
pub mod trials;
pub mod wording;

pub use build::{build, next_steps};
pub use fields::kind as evidence_kind;
pub use model::Report;
