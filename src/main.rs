//! The command: hands its arguments to the library and exits with its status.

use std::process::ExitCode;

fn main() -> ExitCode {
    warpfault::cli::run(std::env::args_os())
}
