//! Runs with progress and interruption from Python.

use std::num::NonZeroU16;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pathweave_heap::usage::{peak_rss_bytes, thread_cpu_s};
use pathweave_scenario::Loaded;
use pathweave_sim::{Monitor, MonitorDecision, SimSpec, Snapshot};
use pyo3::prelude::*;

use crate::arguments::in_range;
use crate::control::{self, PythonControls};
use crate::error::scenario_error;
use crate::picker::{self, FirstException, PythonPickers};
use crate::result::RunResult;
use crate::scenario::Scenario;

/// Interval at which signals are checked and progress is reported.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Switch that stops runs from another thread.
#[pyclass(frozen, module = "pathweave._pathweave")]
#[derive(Default)]
pub(crate) struct Cancel {
    wanted: AtomicBool,
}

#[pymethods]
impl Cancel {
    #[new]
    fn new() -> Self {
        Cancel::default()
    }
    /// Ends every run that was given this object. Its result reports an interruption.
    fn cancel(&self) {
        self.wanted.store(true, Ordering::Relaxed);
    }
    /// True after `cancel` was called.
    #[getter]
    fn cancelled(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }
}

/// Progress of a run.
#[pyclass(frozen, get_all, module = "pathweave._pathweave")]
pub(crate) struct Progress {
    /// Share of the run that is done, from 0 to 1.
    done: f64,
    /// Simulated time in nanoseconds.
    simulated_ns: f64,
    /// Number of packet-hops so far.
    packet_hops: u64,
    /// Number of completed flows.
    flows_done: usize,
    /// Number of all flows.
    flows_total: usize,
    /// Wall-clock time since the start in seconds.
    elapsed_s: f64,
}

struct Watcher<'a> {
    callback: Option<&'a Py<PyAny>>,
    trouble: &'a FirstException,
    cancel: Option<&'a Cancel>,
    started: Instant,
    looked: Instant,
    /// Exception raised in Python: an interruption, or an error of the callback.
    raised: Option<PyErr>,
}

impl Watcher<'_> {
    fn report_progress(&self, py: Python<'_>, at: &Snapshot) -> PyResult<()> {
        py.check_signals()?;
        let Some(callback) = self.callback else { return Ok(()) };
        let progress = Progress {
            done: at.share_done(),
            simulated_ns: at.now.as_ps() as f64 / 1e3,
            packet_hops: at.packet_hops,
            flows_done: at.flows_done,
            flows_total: at.flows_total,
            elapsed_s: self.started.elapsed().as_secs_f64(),
        };
        callback.call1(py, (progress,)).map(drop)
    }
}

impl Monitor for Watcher<'_> {
    fn look(&mut self, at: &Snapshot) -> MonitorDecision {
        if self.trouble.is_set() || self.cancel.is_some_and(Cancel::cancelled) {
            return MonitorDecision::Stop;
        }
        if self.looked.elapsed() < CHECK_INTERVAL {
            return MonitorDecision::Continue;
        }
        self.looked = Instant::now();
        match Python::attach(|py| self.report_progress(py, at)) {
            Ok(()) => MonitorDecision::Continue,
            Err(error) => {
                self.raised = Some(error);
                MonitorDecision::Stop
            }
        }
    }
}

/// Runs a scenario to its end. Other Python threads continue meanwhile.
///
/// `threads` is the number of threads; it does not affect the results. By default it is that of the scenario, or else
/// `cores` or the number of cores of the machine, limited so that each has enough hosts. With a picker or control,
/// which take the interpreter's lock, the default is one. `progress` is called with a `Progress` ten times a second. Ctrl-C
/// raises `KeyboardInterrupt`. Exceptions of the callback or of a picker are passed on.
///
/// `picker` is called with the `QueuePair` of each queue pair and returns its path picker, which replaces the pickers
/// of the scenario's schemes; `control` does the same for congestion controls. Raises `ValueError` if a scheme decides
/// rate and path together.
#[pyfunction]
#[pyo3(signature = (scenario, progress = None, cancel = None, threads = None, cores = None, picker = None, control = None))]
#[allow(clippy::too_many_arguments, reason = "the keyword arguments of Python's function")]
pub(crate) fn run(
    py: Python<'_>,
    scenario: &Scenario,
    progress: Option<Py<PyAny>>,
    cancel: Option<&Cancel>,
    threads: Option<&Bound<'_, PyAny>>,
    cores: Option<&Bound<'_, PyAny>>,
    picker: Option<&Bound<'_, PyAny>>,
    control: Option<&Bound<'_, PyAny>>,
) -> PyResult<RunResult> {
    let (threads, cores) = (positive("threads", threads)?, positive("cores", cores)?);
    let mut prepared = scenario.prepare(py)?;
    let trouble = Arc::new(FirstException::default());
    if let Some(make) = picker {
        let pickers = PythonPickers::new(make, Arc::clone(&trouble))?;
        prepared.notes.push(picker::replace_pickers(&mut prepared.spec, pickers)?);
    }
    if let Some(make) = control {
        let controls = PythonControls::new(make, Arc::clone(&trouble))?;
        prepared.notes.push(control::replace_controls(&mut prepared.spec, controls)?);
    }
    let spec = match (threads, picker.or(control)) {
        (Some(threads), _) => SimSpec { threads: Some(threads), ..prepared.spec },
        (None, Some(_)) => prepared.spec,
        (None, None) => prepared.spec.on_cores(cores.unwrap_or_else(all_cores)),
    };
    let watched = RunHooks { progress: progress.as_ref(), cancel, trouble: &trouble };
    let run = simulate(py, &scenario.loaded, &spec, &watched)?;
    Ok(RunResult::new(run, prepared.notes))
}

fn positive(name: &str, number: Option<&Bound<'_, PyAny>>) -> PyResult<Option<NonZeroU16>> {
    let number = in_range(name, number, 1..=i64::from(u16::MAX))?;
    Ok(number.and_then(|number| u16::try_from(number).ok()).and_then(NonZeroU16::new))
}

fn all_cores() -> NonZeroU16 {
    let cores = std::thread::available_parallelism().ok();
    cores.and_then(|cores| cores.try_into().ok()).unwrap_or(NonZeroU16::MIN)
}

/// Connection of a run to Python.
pub(crate) struct RunHooks<'a> {
    /// Callback that gets a `Progress` repeatedly.
    pub(crate) progress: Option<&'a Py<PyAny>>,
    /// Switch that ends the run.
    pub(crate) cancel: Option<&'a Cancel>,
    /// Exception raised by the user's code within the run.
    pub(crate) trouble: &'a FirstException,
}

/// Runs the simulation, with progress and timing, while the interpreter's lock is released.
pub(crate) fn simulate(
    py: Python<'_>,
    loaded: &Loaded,
    spec: &SimSpec,
    watched: &RunHooks<'_>,
) -> PyResult<pathweave_records::RunResult> {
    let now = Instant::now();
    let RunHooks { progress, cancel, trouble } = *watched;
    let mut watcher =
        Watcher { callback: progress, trouble, cancel, started: now, looked: now, raised: None };
    let (result, cpu_s) = py.detach(|| {
        let before = thread_cpu_s();
        let result = pathweave_scenario::run(spec, &mut watcher);
        (result, thread_cpu_s() - before)
    });
    if let Some(raised) = trouble.take().or(watcher.raised) {
        return Err(raised);
    }
    let mut run = result.map_err(|why| scenario_error(py, &loaded.sim_error(&why)))?;
    run.info.wall_s = now.elapsed().as_secs_f64();
    run.info.cpu_s += cpu_s;
    run.info.peak_rss_bytes = peak_rss_bytes();
    run.info.version = env!("CARGO_PKG_VERSION").to_owned();
    Ok(run)
}
