//! Scenarios for Python.

use std::path::PathBuf;

use pathweave_scenario::{Changes, Loaded, Prepared};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arguments::{in_range, settings};
use crate::error::scenario_error;
use crate::result::to_python;

/// Scenario: network, traffic, schemes and faults, complete and checked. It is immutable; `with_` creates a changed
/// one.
#[pyclass(frozen, module = "pathweave._pathweave")]
pub(crate) struct Scenario {
    origin: Origin,
    changes: Changes,
    pub(crate) loaded: Loaded,
}

/// Source of the text, from which it is read again with other changes.
#[derive(Clone)]
enum Origin {
    File(PathBuf),
    Text { text: String, name: String, base_dir: PathBuf },
}

impl Scenario {
    fn read(py: Python<'_>, origin: Origin, changes: Changes) -> PyResult<Self> {
        let loaded = match &origin {
            Origin::File(path) => Loaded::read(path, &changes),
            Origin::Text { text, name, base_dir } => Loaded::parse(text, name, base_dir, &changes),
        };
        let loaded = loaded.map_err(|found| scenario_error(py, &found))?;
        Ok(Scenario { origin, changes, loaded })
    }

    /// Builds network and messages. Mistakes found at this stage are errors as well.
    pub(crate) fn prepare(&self, py: Python<'_>) -> PyResult<Prepared> {
        py.detach(|| self.loaded.prepare()).map_err(|found| scenario_error(py, &found))
    }
}

#[pymethods]
impl Scenario {
    /// Reads a scenario file. File names in it are relative to its folder.
    ///
    /// Raises `ScenarioError` with every mistake found.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        Scenario::read(py, Origin::File(path), Changes::default())
    }

    /// Reads a scenario from TOML text. Errors call it `name`. File names in it are relative to `base_dir`.
    #[staticmethod]
    #[pyo3(signature = (text, name = "scenario.toml", base_dir = PathBuf::new()))]
    fn from_toml(py: Python<'_>, text: &str, name: &str, base_dir: PathBuf) -> PyResult<Self> {
        let origin = Origin::Text { text: text.to_owned(), name: name.to_owned(), base_dir };
        Scenario::read(py, origin, Changes::default())
    }

    /// Creates a scenario from a dict in the format of a scenario file.
    #[staticmethod]
    #[pyo3(signature = (fields, name = "scenario", base_dir = PathBuf::new()))]
    fn from_dict(py: Python<'_>, fields: &Bound<'_, PyAny>, name: &str, base_dir: PathBuf) -> PyResult<Self> {
        let value: toml::Table = pythonize::depythonize(fields)?;
        let text = toml::to_string(&value).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Scenario::from_toml(py, &text, name, base_dir)
    }

    /// Returns the scenario with changes. `set` has entries `key=value` as for `--set`, or maps keys to values; they apply
    /// to the scheme given with them. `seed` and `scheme` replace those of the file. Changes add to earlier ones, and a new scheme
    /// discards settings of another one.
    #[pyo3(signature = (set = None, seed = None, scheme = None))]
    fn with_(
        &self,
        py: Python<'_>,
        set: Option<&Bound<'_, PyAny>>,
        seed: Option<&Bound<'_, PyAny>>,
        scheme: Option<String>,
    ) -> PyResult<Self> {
        let set = set.map(settings).transpose()?.unwrap_or_default();
        let seed = in_range("seed", seed, 0..=i64::MAX)?.map(i64::unsigned_abs);
        let mut changes = self.changes.clone();
        changes.then(Changes { set, seed, scheme, ..Changes::default() });
        Scenario::read(py, self.origin.clone(), changes)
    }

    /// Name of the scenario.
    #[getter]
    fn name(&self) -> &str {
        &self.loaded.scenario.name
    }

    /// Seed of every random stream.
    #[getter]
    fn seed(&self) -> u64 {
        self.loaded.scenario.seed
    }

    /// Returns every field with its value, including defaults, as TOML. A run's folder stores it as `scenario.toml`.
    fn to_toml(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.prepare(py)?.spec.scenario_toml)
    }

    /// Returns facts that are known before a run, as a dict: size of network and traffic, path counts, bounds, cost.
    fn check<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let prepared = self.prepare(py)?;
        to_python(py, &py.detach(|| prepared.inspect()))
    }

    fn __repr__(&self) -> String {
        format!("<Scenario {:?}, seed {}>", self.name(), self.seed())
    }
}
