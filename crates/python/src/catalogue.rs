//! Lists of the names that a scenario can use.

use pathweave_scenario::catalogue::{self, Section};
use pyo3::prelude::*;

use crate::result::to_python;

fn entries<'py>(py: Python<'py>, sections: &[Section]) -> PyResult<Bound<'py, PyAny>> {
    let all: Vec<_> = sections.iter().flat_map(|section| &section.entries).collect();
    to_python(py, &all)
}

/// Returns all schemes as a list of dicts with `name`, `help`, `source`, `aliases` and `fields`.
#[pyfunction]
pub(crate) fn schemes(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    entries(py, &catalogue::schemes())
}

/// Returns all topologies with their fields, defaults and units.
#[pyfunction]
pub(crate) fn topologies(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    entries(py, &catalogue::topology_kinds())
}

/// Returns all workloads with their fields, defaults and units.
#[pyfunction]
pub(crate) fn workloads(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    entries(py, &catalogue::workload_kinds())
}

/// Returns all presets: named topologies, congestion control parameters and flow-size distributions.
#[pyfunction]
pub(crate) fn presets(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    entries(py, &catalogue::presets())
}

/// Returns the JSON Schema of scenario files as a dict.
#[pyfunction]
pub(crate) fn schema(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    to_python(py, &pathweave_scenario::schema())
}
