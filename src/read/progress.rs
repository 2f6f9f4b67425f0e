//! How far a long reading is.
//!
//! In: bytes gone through, from any thread. Out: their sum, for whoever watches. It knows no total and no clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A counter of bytes that were gone through; clones count together.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<AtomicU64>);

impl Progress {
    /// Adds bytes.
    pub fn add(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
