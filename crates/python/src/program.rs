//! The program `pathweave`, which the package carries beside the module.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the program with `arguments`, of which the first is its own name, and returns its exit code. Ctrl-C is the program's from
/// then on; a wrong command line ends the process.
#[pyfunction]
pub(crate) fn program(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| pathweave_cli::main(arguments))
}
