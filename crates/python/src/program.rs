//! The program `pathweave`, as a function of the module.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the program with `args`, of which the first is its name, and returns its exit code. `started_by` are the words that
/// start it again. Ends the process where the program does. Other Python threads go on meanwhile.
#[pyfunction]
pub(crate) fn program(py: Python<'_>, started_by: Vec<OsString>, args: Vec<OsString>) -> u8 {
    py.detach(|| pathweave_cli::main_within(started_by, args))
}
