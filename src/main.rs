//! The command: parses arguments, dispatches, maps an error's kind to the exit status.

fn main() {}
