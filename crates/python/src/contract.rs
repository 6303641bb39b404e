//! Checks of the contracts of pickers and congestion controls, for those written in Python.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use pathweave_policy::cc::{CcConfig, CcFactory, UnlimitedConfig};
use pathweave_policy::picker::{PickerConfig, PickerFactory};
use pathweave_policy::testing::{Report, Scenario, random_operations};
use pathweave_policy::{MeasuredSection, PolicyEnv, SplitConfig};
use pathweave_units::Duration;
use pyo3::exceptions::PyAssertionError;
use pyo3::prelude::*;

use crate::control::PythonControls;
use crate::picker::{FirstException, PythonPickers};

/// Number of operations in each random sequence.
const STEPS: u32 = 1_000;

/// Checks that a picker fulfils the contract of pickers, without a network. It runs the situations of the policy
/// bench, each twice with the same expected result, and `seeds` sequences of random operations.
///
/// Raises `AssertionError` if the picker breaks the contract or is not reproducible, and any exception that the
/// picker raises.
#[pyfunction]
#[pyo3(signature = (picker, seeds = 12))]
pub(crate) fn check_picker(py: Python<'_>, picker: &Bound<'_, PyAny>, seeds: u64) -> PyResult<()> {
    let trouble = Arc::new(FirstException::default());
    let supply = PickerFactory::new(Arc::new(PythonPickers::new(picker, Arc::clone(&trouble))?));
    let cc = CcConfig::None(UnlimitedConfig::default());
    let policy = SplitConfig { cc, picker: PickerConfig::Supplied(supply) };
    let odd = "the picker took other paths with the same seed; random numbers must come from `self.random`";
    check(py, &policy, &trouble, seeds, odd)
}

/// Checks that a congestion control fulfils the contract of congestion controls, as [`check_picker`] does for
/// pickers.
///
/// Raises `AssertionError` if the control breaks the contract or is not reproducible, and any exception that the
/// control raises.
#[pyfunction]
#[pyo3(signature = (control, seeds = 12))]
pub(crate) fn check_control(py: Python<'_>, control: &Bound<'_, PyAny>, seeds: u64) -> PyResult<()> {
    let trouble = Arc::new(FirstException::default());
    let factory = CcFactory::new(Arc::new(PythonControls::new(control, Arc::clone(&trouble))?));
    let policy = SplitConfig { cc: CcConfig::Supplied(factory), picker: PickerConfig::Rps };
    check(
        py,
        &policy,
        &trouble,
        seeds,
        "the control sent other packets with the same seed; it must not be random",
    )
}

/// Runs the situations of the policy bench and random operations. `odd` says what is wrong if a run does not repeat.
fn check(
    py: Python<'_>,
    policy: &SplitConfig,
    trouble: &FirstException,
    seeds: u64,
    odd: &str,
) -> PyResult<()> {
    let checked = py.detach(|| {
        for (situation, scenario) in Scenario::all() {
            let run = || guarded(trouble, situation, || scenario.run(|env, rng| policy.build(env, rng)));
            if observable(&run()?) != observable(&run()?) {
                return Err(PyAssertionError::new_err(format!("situation {situation:?}: {odd}")));
            }
        }
        for seed in 0..seeds {
            // In every other run, a switch answers for the network behind it.
            let edge = (seed % 2 == 1).then_some(MeasuredSection::with_rtt(Duration::from_us(4)));
            let env = PolicyEnv { edge, ..Scenario::steady().env };
            let run = || random_operations(seed, STEPS, &env, |env, rng| policy.build(env, rng));
            guarded(trouble, &format!("random operations, seed {seed}"), run)?;
        }
        Ok(())
    });
    py.check_signals()?;
    checked
}

/// Runs a situation. Returns an error if the picker raised an exception or broke the contract.
fn guarded<T>(trouble: &FirstException, situation: &str, run: impl FnOnce() -> T) -> PyResult<T> {
    let outcome = catch_unwind(AssertUnwindSafe(run));
    if let Some(raised) = trouble.take() {
        return Err(raised);
    }
    outcome.map_err(|panic| {
        let text =
            panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        let why = text.unwrap_or("the bench gave up");
        PyAssertionError::new_err(format!("situation {situation:?}: {why}"))
    })
}

/// Returns the observable results of a run by sender: packets by path, retransmissions, completion time.
fn observable(report: &Report) -> Vec<(Vec<u64>, u64, Option<u64>)> {
    let sender = |sender: &pathweave_policy::testing::SenderReport| {
        (sender.sent.clone(), sender.retransmitted, sender.done_at.map(pathweave_units::Time::as_ps))
    };
    report.senders.iter().map(sender).collect()
}
