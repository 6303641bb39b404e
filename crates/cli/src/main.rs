//! The program `pathweave`; see the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(pathweave_cli::main(std::env::args_os()))
}
