//! Program `pathweave` as a function of the module.

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;

/// Runs the program with `args`, the first of which is its name, and returns its exit code. `started_by` is the
/// command line that starts it again, and `libraries` the folder of the libraries for
/// other programs. Ends the process if the program does. Other Python threads continue meanwhile.
#[pyfunction]
pub(crate) fn program(
    py: Python<'_>,
    started_by: Vec<OsString>,
    libraries: PathBuf,
    args: Vec<OsString>,
) -> u8 {
    py.detach(|| pathweave_cli::main_within(started_by, libraries, args))
}
