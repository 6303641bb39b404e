//! Sweeps: planned and stored here, while Python makes each run, on any machine.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pathweave_records::{EndReason, Summary};
use pathweave_scenario::{Changes, Loaded};
use pathweave_study::sweep::{
    Dataset, ENGINE, Files, Outcome, Plan, StoredFiles, SweepError, SweepSummary, TableName, encode_files,
    task_key,
};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::error::scenario_error;
use crate::picker::FirstException;
use crate::result::to_python;
use crate::run::{Cancel, RunHooks, simulate};

/// Sweep: a scenario, the values that its fields take, and the resulting runs.
#[pyclass(frozen, module = "pathweave._pathweave")]
pub(crate) struct Sweep {
    plan: Arc<Plan>,
}

/// Output folder of a sweep. It is locked while this object lives.
#[pyclass(frozen, module = "pathweave._pathweave")]
pub(crate) struct SweepFolder {
    plan: Arc<Plan>,
    dataset: Dataset,
}

/// Run of a sweep, with all data that another machine needs to make it.
#[pyclass(frozen, get_all, module = "pathweave._pathweave")]
pub(crate) struct SweepRun {
    /// Digest of everything that the outcome depends on.
    key: String,
    /// Description for people: cell and seed.
    label: String,
    /// Seed of the run.
    seed: u64,
    /// Complete scenario as TOML.
    scenario: String,
    /// Tables stored for the run. `None` if all output of a run is stored.
    tables: Option<Vec<String>>,
}

#[pymethods]
impl Sweep {
    /// Reads a sweep file. File names in it are relative to its folder.
    ///
    /// Raises `ScenarioError` with every mistake found.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        Self::from_plan(py, py.detach(|| Plan::read(&path)))
    }

    /// Reads a sweep from TOML text. Errors call it `name`. File names in it are relative to `base_dir`.
    #[staticmethod]
    #[pyo3(signature = (text, name = "sweep.toml", base_dir = PathBuf::new()))]
    fn from_toml(py: Python<'_>, text: &str, name: &str, base_dir: PathBuf) -> PyResult<Self> {
        Self::from_plan(py, py.detach(|| Plan::parse(text, name, &base_dir)))
    }

    /// Creates a sweep from a dict in the format of a sweep file.
    #[staticmethod]
    #[pyo3(signature = (fields, name = "sweep", base_dir = PathBuf::new()))]
    fn from_dict(py: Python<'_>, fields: &Bound<'_, PyAny>, name: &str, base_dir: PathBuf) -> PyResult<Self> {
        let value: toml::Table = pythonize::depythonize(fields)?;
        let text = toml::to_string(&value).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Self::from_toml(py, &text, name, base_dir)
    }

    /// Name of the sweep.
    #[getter]
    fn name(&self) -> &str {
        &self.plan.name
    }

    /// Cells of the sweep, each a dict from the key of an axis to its value.
    #[getter]
    fn cells<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let mut cells = Vec::new();
        for cell in &self.plan.cells {
            let dict = PyDict::new(py);
            for (axis, &at) in self.plan.axes.iter().zip(&cell.value_indices) {
                dict.set_item(&axis.key, &axis.values[at])?;
            }
            cells.push(dict);
        }
        Ok(cells)
    }

    /// Runs to make, with equal runs merged.
    #[getter]
    fn runs(&self) -> Vec<SweepRun> {
        let tables: Option<Vec<String>> = match &self.plan.keep {
            StoredFiles::Tables(tables) => {
                Some(tables.iter().map(|table| name_of(*table).to_owned()).collect())
            }
            StoredFiles::Whole => None,
        };
        let run = |run: &pathweave_study::sweep::Run| SweepRun {
            key: run.key.clone(),
            label: run.label.clone(),
            seed: run.seed,
            scenario: run.scenario.clone(),
            tables: tables.clone(),
        };
        self.plan.runs.iter().map(run).collect()
    }

    /// Opens the folder `path` for this sweep, a new one or one of an earlier call. No other process can write there
    /// meanwhile.
    fn open(&self, path: PathBuf) -> PyResult<SweepFolder> {
        let dataset = Dataset::open(&path).map_err(|why| PyOSError::new_err(why.to_string()))?;
        Ok(SweepFolder { plan: Arc::clone(&self.plan), dataset })
    }

    fn __repr__(&self) -> String {
        format!(
            "<Sweep {:?}, {} cells, {} runs>",
            self.plan.name,
            self.plan.cells.len(),
            self.plan.runs.len()
        )
    }
}

impl Sweep {
    fn from_plan(py: Python<'_>, plan: Result<Plan, SweepError>) -> PyResult<Self> {
        match plan {
            Ok(plan) => Ok(Sweep { plan: Arc::new(plan) }),
            Err(SweepError::File(findings) | SweepError::Scenario { findings, .. }) => {
                Err(scenario_error(py, &findings))
            }
            Err(other) => Err(PyOSError::new_err(other.to_string())),
        }
    }
}

#[pymethods]
impl SweepFolder {
    /// Path of the folder.
    #[getter]
    fn path(&self) -> &Path {
        self.dataset.path()
    }

    /// Returns the keys of the finished runs.
    fn finished(&self, py: Python<'_>) -> Vec<String> {
        let done = |run: &&pathweave_study::sweep::Run| self.dataset.record(&self.plan, &run.key).is_some();
        py.detach(|| self.plan.runs.iter().filter(done).map(|run| run.key.clone()).collect())
    }

    /// Stores the files that `sweep_run` returned for the run `key`.
    fn put(&self, py: Python<'_>, key: &str, files: BTreeMap<String, Vec<u8>>) -> PyResult<()> {
        let files: Files = files.into_iter().collect();
        py.detach(|| self.dataset.store(key, &files))
            .map(drop)
            .map_err(|why| PyOSError::new_err(why.to_string()))
    }

    /// Writes summary, tables and report of the finished runs. `failed` has the reasons of failed runs by key.
    /// Returns the summary as a dict.
    fn write<'py>(&self, py: Python<'py>, failed: BTreeMap<String, String>) -> PyResult<Bound<'py, PyAny>> {
        let summary = py.detach(|| {
            let outcome = |(number, run): (usize, &pathweave_study::sweep::Run)| {
                let failed = || failed.get(&run.key).map(|why| Outcome::Failed(why.clone()));
                let finished = self.dataset.record(&self.plan, &run.key).map(Outcome::Finished);
                Some((number, finished.or_else(failed)?))
            };
            let outcomes = self.plan.runs.iter().enumerate().filter_map(outcome).collect();
            let summary = SweepSummary::from_outcomes(&self.plan, outcomes);
            self.dataset.write(&self.plan, &summary).map(|()| summary)
        });
        to_python(py, &summary.map_err(|why| PyOSError::new_err(why.to_string()))?)
    }

    /// Returns the representation with the folder's path.
    fn __repr__(&self) -> String {
        format!("<SweepFolder {:?}>", self.dataset.path())
    }
}

/// Makes a run of a sweep, here or on another machine, and returns its files by name. Other Python threads continue
/// meanwhile.
///
/// Raises `ScenarioError` if the scenario cannot run. Raises `RuntimeError` if the outcome would be that of another
/// run: the engine has another version, or a file that the scenario references has other contents here.
#[pyfunction]
#[pyo3(signature = (key, scenario, tables, cancel = None))]
pub(crate) fn sweep_run<'py>(
    py: Python<'py>,
    key: &str,
    scenario: &str,
    tables: Option<Vec<String>>,
    cancel: Option<&Cancel>,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let keep = match tables {
        Some(names) => StoredFiles::Tables(names.iter().map(|name| table_of(name)).collect::<PyResult<_>>()?),
        None => StoredFiles::Whole,
    };
    let here = task_key(scenario).map_err(|found| scenario_error(py, &found))?;
    if here != key {
        let why = format!(
            "this is another run here: engine {ENGINE} is not that of the sweep, or a file of the scenario differs"
        );
        return Err(PyRuntimeError::new_err(why));
    }
    let loaded = Loaded::parse(scenario, "scenario.toml", "", &Changes::default());
    let loaded = loaded.map_err(|found| scenario_error(py, &found))?;
    let prepared = py.detach(|| loaded.prepare()).map_err(|found| scenario_error(py, &found))?;
    let trouble = FirstException::default();
    let watched = RunHooks { progress: None, cancel, trouble: &trouble };
    let made = catch_unwind(AssertUnwindSafe(|| simulate(py, &loaded, &prepared.spec, &watched)));
    let run = made.map_err(|_| PyRuntimeError::new_err("a bug in the simulator"))??;
    if run.info.ended == EndReason::Interrupted {
        return Ok(None);
    }
    let files = py.detach(|| encode_files(key, &run, &Summary::from_run(&run), &keep));
    let dict = PyDict::new(py);
    for (name, content) in files.map_err(|why| PyRuntimeError::new_err(why.to_string()))? {
        dict.set_item(name, PyBytes::new(py, &content))?;
    }
    Ok(Some(dict))
}

fn name_of(table: TableName) -> &'static str {
    table.file().trim_end_matches(".parquet")
}

fn table_of(name: &str) -> PyResult<TableName> {
    let found = TableName::ALL.into_iter().find(|table| name_of(*table) == name);
    found.ok_or_else(|| PyValueError::new_err(format!("no table is named {name:?}")))
}
