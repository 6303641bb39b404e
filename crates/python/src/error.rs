//! Conversion of errors to Python exceptions.

use pathweave_scenario::{Diagnostic, Diagnostics};
use pyo3::create_exception;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

create_exception!(
    pathweave,
    ScenarioError,
    PyValueError,
    "A scenario that cannot run. The text shows each finding with the line it is about; `findings` has them as dicts \
     with `message`, `field`, `line`, `allowed` and `help`."
);

/// Converts the mistakes found to a `ScenarioError`.
pub(crate) fn scenario_error(py: Python<'_>, found: &Diagnostics) -> PyErr {
    let error = ScenarioError::new_err(found.to_string());
    let findings: PyResult<Vec<_>> = found.iter().map(|finding| as_dict(py, finding)).collect();
    match findings.and_then(|findings| error.value(py).setattr("findings", findings)) {
        Ok(()) => error,
        Err(other) => other,
    }
}

fn as_dict<'py>(py: Python<'py>, finding: &Diagnostic) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("message", &finding.message)?;
    dict.set_item("field", finding.field.to_string())?;
    let line = finding.span.as_ref().map(|span| {
        let text = &span.source().text;
        1 + text[..span.range().start].matches('\n').count()
    });
    dict.set_item("line", line)?;
    dict.set_item("allowed", finding.allowed.as_deref())?;
    dict.set_item("help", &finding.help)?;
    Ok(dict)
}

/// Converts the error of an output to an `OSError`.
pub(crate) fn output_error(error: &pathweave_report::OutputError) -> PyErr {
    PyOSError::new_err(error.to_string())
}
