//! Program `pathweave` as a function of the module.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the program with `args`, the first of which is its name, and returns its exit code. `started_by` is the
/// command line that starts it again. Ends the process if the program does. Other Python threads continue meanwhile.
#[pyfunction]
pub(crate) fn program(py: Python<'_>, started_by: Vec<OsString>, args: Vec<OsString>) -> u8 {
    py.detach(|| pathweave_cli::main_within(started_by, args))
}
