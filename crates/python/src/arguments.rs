//! Arguments from Python that need more than their type: settings of scenarios, and numbers in a range.

use std::fmt::Display;
use std::ops::RangeInclusive;

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyMapping, PyString};

/// Returns settings of scenarios as a list of texts `key=value`, as `--set` takes them. `set` is such a list, or a
/// mapping of fields to values.
///
/// Raises `TypeError` for anything else.
#[pyfunction]
pub(crate) fn settings(set: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    let refuse = |what: &dyn Display| {
        let example = "[\"run.until=1ms\"] or {\"run.until\": \"1ms\"}";
        PyTypeError::new_err(format!("set is {what}; expected a list or a mapping, such as {example}"))
    };
    if let Ok(text) = set.cast::<PyString>() {
        return Err(refuse(&format!("the text {}", text.repr()?)));
    }
    if let Ok(mapping) = set.cast::<PyMapping>() {
        let entry = |item: Bound<'_, PyAny>| {
            let (key, value): (String, Bound<'_, PyAny>) = item.extract()?;
            let value: toml::Value = pythonize::depythonize(&value)
                .map_err(|why| PyTypeError::new_err(format!("set[{key:?}] is no value of a field: {why}")))?;
            Ok(format!("{key}={value}"))
        };
        return mapping.items()?.iter().map(entry).collect();
    }
    let texts: Option<Vec<String>> = set.try_iter().ok().and_then(|items| {
        items.map(|item| item.and_then(|item| item.extract::<String>())).collect::<PyResult<_>>().ok()
    });
    texts.ok_or_else(|| set.repr().map_or_else(|why| why, |shown| refuse(&shown)))
}

/// Returns the whole number of the argument `name`.
///
/// # Errors
/// `ValueError` for a number that is not in `range`, `TypeError` for what is no whole number.
pub(crate) fn in_range(
    name: &str,
    number: Option<&Bound<'_, PyAny>>,
    range: RangeInclusive<i64>,
) -> PyResult<Option<i64>> {
    let Some(number) = number else { return Ok(None) };
    let why = match number.extract::<i64>() {
        Ok(found) if range.contains(&found) => return Ok(Some(found)),
        Err(why) if !why.is_instance_of::<PyOverflowError>(number.py()) => {
            PyTypeError::new_err(format!("{name} is {}; expected a whole number", number.repr()?))
        }
        _ => PyValueError::new_err(format!(
            "{name} is {number}; expected {} or more, at most {}",
            range.start(),
            range.end()
        )),
    };
    Err(why)
}
