//! Pure checked integers.
