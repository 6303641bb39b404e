//! A run of either fidelity.

use pathweave_flow::Efficiency;
use pathweave_results::RunResult;
use pathweave_sim::{Calibrate, Fidelity, Monitor, SimError, SimSpec, Simulation};

use crate::{calibrate, doubt};

/// Runs a spec to its end, with packets or with flows as it says. Wall time and the CPU time of the calling thread are for
/// the caller to add.
///
/// # Errors
/// What the engine refuses.
pub fn run(spec: &SimSpec, monitor: &mut dyn Monitor) -> Result<RunResult, SimError> {
    match spec.fidelity {
        Fidelity::Packet => pathweave_sim::run(spec, monitor),
        Fidelity::Flow => match spec.calibrate {
            Calibrate::Always => calibrate::run(spec, monitor),
            Calibrate::InDoubt => doubt::run(spec, monitor),
            Calibrate::Never => pathweave_flow::run(spec, Efficiency::WHOLE, monitor),
        },
    }
}

/// Sets a run up, and plays the first window of one of packets, for what only an engine can refuse.
pub(crate) fn try_out(spec: &SimSpec) -> Result<(), SimError> {
    match spec.fidelity {
        Fidelity::Packet => Simulation::whole(spec).map(Simulation::try_out),
        Fidelity::Flow => pathweave_flow::check(spec),
    }
}
