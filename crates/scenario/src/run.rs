//! Execution of a run with packets or flows.

use pathweave_flow::Efficiency;
use pathweave_records::RunResult;
use pathweave_sim::{Calibrate, Fidelity, Monitor, SimError, SimSpec, Simulation};

use crate::{calibrate, outside_check};

/// Runs a spec to its end, with packets or with flows as it states. The caller adds wall time and the CPU time of the
/// calling thread.
///
/// # Errors
/// The engine refuses the spec.
pub fn run(spec: &SimSpec, monitor: &mut dyn Monitor) -> Result<RunResult, SimError> {
    match spec.run.fidelity {
        Fidelity::Packet => pathweave_sim::run(spec, monitor),
        Fidelity::Flow => match spec.run.calibrate {
            Calibrate::Prefix => calibrate::run(spec, monitor),
            Calibrate::Auto => outside_check::run(spec, monitor),
            Calibrate::Off => pathweave_flow::run(spec, Efficiency::WHOLE, monitor),
        },
    }
}

/// Sets a run up to find errors that only an engine detects. With packets, it also simulates the first window.
pub(crate) fn try_out(spec: &SimSpec) -> Result<(), SimError> {
    match spec.run.fidelity {
        Fidelity::Packet => Simulation::whole(spec).map(Simulation::try_out),
        Fidelity::Flow => pathweave_flow::check(spec),
    }
}
