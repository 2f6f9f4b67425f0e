//! What was compiled.
