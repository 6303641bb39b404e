//! Results of a run.

use std::path::PathBuf;

use pathweave_records as records;
use pathweave_records::Summary;
use pathweave_report::ResultFolder;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::output_error;
use crate::table::{Table, bug};

/// Records of a run and their summary.
#[pyclass(frozen, module = "pathweave._pathweave")]
pub(crate) struct RunResult {
    run: records::RunResult,
    summary: Summary,
    notes: Vec<String>,
}

impl RunResult {
    pub(crate) fn new(run: records::RunResult, notes: Vec<String>) -> Self {
        RunResult { summary: Summary::from_run(&run), run, notes }
    }
}

#[pymethods]
impl RunResult {
    /// Name of the run.
    #[getter]
    fn name(&self) -> &str {
        &self.run.info.name
    }
    /// Seed of every random stream.
    #[getter]
    fn seed(&self) -> u64 {
        self.run.info.seed
    }
    /// Digest of the event trace. It is the same for the same scenario and seed on every machine.
    #[getter]
    fn digest(&self) -> String {
        self.run.info.digest_hex()
    }
    /// Reason why the run ended: "completed", "time_limit", ...
    #[getter]
    fn ended(&self) -> &'static str {
        self.run.info.ended.name()
    }
    /// Assumptions about input files, and input that was not used.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
    /// Figures of `summary.json` as a dict.
    #[getter]
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.summary)
    }
    /// Table of flows, one row per flow.
    #[getter]
    fn flows(&self) -> PyResult<Table> {
        Table::from_records(&self.run, records::FLOWS, &self.run.flows).map_err(|e| bug(&e))
    }
    /// Table of samples of queues, rates and shares over time.
    #[getter]
    fn series(&self) -> PyResult<Table> {
        Table::from_records(&self.run, records::SERIES, &self.run.series).map_err(|e| bug(&e))
    }
    /// Table of drops, pauses, retransmissions, timeouts and faults.
    #[getter]
    fn events(&self) -> PyResult<Table> {
        Table::from_records(&self.run, records::EVENTS, &self.run.events).map_err(|e| bug(&e))
    }
    /// Table of links, one row per direction of a link.
    #[getter]
    fn links(&self) -> PyResult<Table> {
        Table::from_records(&self.run, records::LINKS, &self.run.links).map_err(|e| bug(&e))
    }
    /// Table of jobs, one row per job.
    #[getter]
    fn jobs(&self) -> PyResult<Table> {
        Table::from_records(&self.run, records::JOBS, &self.run.jobs).map_err(|e| bug(&e))
    }
    /// Table of host activity, one row per computation, part in a collective, or run of messages.
    #[getter]
    fn activities(&self) -> PyResult<Table> {
        Table::from_records(&self.run, records::ACTIVITIES, &self.run.activities).map_err(|e| bug(&e))
    }
    /// Table of collectives, one row per collective: begin and end at its ranks, bandwidth, exposed time.
    #[getter]
    fn collectives(&self) -> PyResult<Table> {
        Table::from_records(&self.run, records::COLLECTIVES, &records::collectives(&self.run))
            .map_err(|e| bug(&e))
    }
    /// Table of rank activity for each layer, with its exposed time.
    #[getter]
    fn layers(&self) -> PyResult<Table> {
        Table::from_records(&self.run, records::LAYERS, &records::layers(&self.run)).map_err(|e| bug(&e))
    }
    /// Table of the critical path of each job: what it waited for, step by step.
    #[getter]
    fn critical(&self) -> PyResult<Table> {
        Table::from_records(&self.run, records::CRITICAL, &self.run.critical).map_err(|e| bug(&e))
    }
    /// Table of the slowest flows' time: what each waited for, and at which link.
    #[getter]
    fn waits(&self) -> PyResult<Table> {
        Table::from_records(&self.run, records::WAITS, &self.run.waits).map_err(|e| bug(&e))
    }
    /// Plots of this run by matplotlib: a `pathweave._plot.Plot`. Needs the extra `pathweave[plots]`.
    #[getter]
    fn plot<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pathweave._plot")?.getattr("Plot")?.call_method1("of", (slf,))
    }
    /// Returns the report, one self-contained HTML page.
    fn report_html(&self, py: Python<'_>) -> String {
        py.detach(|| pathweave_report::report_html(&[(&self.run, &self.summary)]))
    }
    /// Writes the same folder as `pathweave run`: Parquet tables, summary, scenario and report.
    ///
    /// Raises `OSError` if `folder` holds something else or cannot be written. The folder is never left half-written.
    fn write(&self, py: Python<'_>, folder: PathBuf) -> PyResult<PathBuf> {
        py.detach(|| {
            let target = ResultFolder::create(&folder)?;
            target.write_run(&self.run, &self.summary)?;
            target.commit()
        })
        .map_err(|e| output_error(&e))
    }
    /// Returns the tables that `pathweave run --all` prints.
    fn table(&self) -> String {
        pathweave_report::summary_table(&self.summary)
    }
    /// Returns the sentences and the table that `pathweave run` prints.
    fn __str__(&self) -> String {
        let words = pathweave_report::run_in_words(&self.run, &self.summary);
        format!("{words}\n{}", pathweave_report::brief_run(&self.summary))
    }
    fn __repr__(&self) -> String {
        let info = &self.run.info;
        format!("<RunResult {:?}, seed {}, {}, digest {}>", info.name, info.seed, self.ended(), self.digest())
    }
}

/// Returns the tables that `pathweave compare --all` prints. Ratios are relative to the first run.
#[pyfunction]
pub(crate) fn comparison_table(runs: Vec<PyRef<'_, RunResult>>) -> String {
    pathweave_report::comparison_table(&runs.iter().map(|run| &run.summary).collect::<Vec<_>>())
}

/// Returns the verdict and the table that `pathweave compare` prints.
#[pyfunction]
pub(crate) fn comparison_brief(runs: Vec<PyRef<'_, RunResult>>) -> String {
    let summaries: Vec<_> = runs.iter().map(|run| &run.summary).collect();
    let infos: Vec<_> = runs.iter().map(|run| &run.run.info).collect();
    let verdict = pathweave_report::Verdict::of(&summaries);
    format!("{}\n{}", verdict.sentence, pathweave_report::brief_comparison(&summaries, &infos))
}

/// Returns the colours of curves as "#rrggbb". A scheme has the same colour as on pages.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "what Python hands over")]
pub(crate) fn scheme_colours(names: Vec<String>) -> Vec<String> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let hex = |number: usize| {
        let (red, green, blue) = pathweave_report::SCHEME_COLOURS[number];
        format!("#{red:02x}{green:02x}{blue:02x}")
    };
    pathweave_report::scheme_colours(&names).into_iter().map(hex).collect()
}

/// Writes the same folder as `pathweave compare`: a folder per run, and a report of all runs.
#[pyfunction]
pub(crate) fn write_comparison(runs: Vec<PyRef<'_, RunResult>>, folder: PathBuf) -> PyResult<PathBuf> {
    let all: Vec<_> = runs.iter().map(|run| (&run.run, &run.summary)).collect();
    let target = ResultFolder::create(&folder).map_err(|e| output_error(&e))?;
    target.write_comparison(&all).and_then(|()| target.commit()).map_err(|e| output_error(&e))
}

/// Compares two result folders as `pathweave diff` does. Returns the differences as a dict, and the table for a terminal.
#[pyfunction]
pub(crate) fn diff<'py>(py: Python<'py>, a: PathBuf, b: PathBuf) -> PyResult<(Bound<'py, PyAny>, String)> {
    let found = py
        .detach(|| pathweave_report::diff(&a, &b))
        .map_err(|why| PyValueError::new_err(format!("cannot compare results: {why}")))?;
    Ok((to_python(py, &found)?, found.table()))
}

/// Converts a serialisable value to dicts, lists and numbers.
pub(crate) fn to_python<'py>(py: Python<'py>, value: &impl serde::Serialize) -> PyResult<Bound<'py, PyAny>> {
    Ok(pythonize::pythonize(py, value)?)
}
