//! Facts as data: failure classes, causes, CUDA and library status codes, sync points.
//!
//! In: nothing; everything is constant. Out: vocabularies ([`FailureClass`], [`CauseKind`]) and look-ups by number, name
//! or text. It leaves alone which of several facts decides an incident.

pub mod cause;
pub mod class;
pub mod cuda_status;
pub mod dump_flags;
pub mod library_status;
pub mod signals;
pub mod sync_points;
pub mod sync_source;
pub mod xid;

pub use cause::CauseKind;
pub use class::{FailureClass, Family};
pub use cuda_status::CudaStatus;
pub use library_status::LibraryCode;
pub use sync_points::{SyncPoint, sync_point};
pub use sync_source::{SyncCall, first_call, only_enqueues, sync_in_source};
