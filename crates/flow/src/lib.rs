//! Messages as fluids: a model of a run in which flows share links and there are no packets.
//!
//! [`run`] takes the [`SimSpec`] that packets are simulated from to the same records, in a fraction of the time. Each
//! message is a flow: it has bytes on the wire, the links it crosses with the fraction of its bytes that crosses each, and a
//! rate. Rates are max-min fair at every instant. To the end of a flow's service comes what it takes on an idle
//! network besides sending: propagation, and a packet at each switch. What is beyond that, short messages that wait in queues,
//! sprayed packets that collide, rate controls that recover slowly, is in terms of what each scheme says of itself
//! ([`pathweave_policy::fluid`]).
//!
//! What happens when, workloads, connections, routes, hashes and random paths are those of the packet engine; `sim` has them
//! in [`Ways`](pathweave_sim::Ways). `docs/flow-fidelity.md` says when to believe the model, with measurements.

mod agenda;
mod carry;
mod engine;
mod fold;
mod gauge;
mod heap;
mod lane;
mod ledger;
mod model;
mod network;
mod outside;
mod queue;
mod records;
mod recovery;
mod refuse;
mod settle;
mod short;
mod sizes;
mod slow;
mod solver;
mod walk;
mod wanted;

pub use outside::FEW;
use pathweave_results::RunResult;
use pathweave_sim::{Monitor, SimError, SimSpec};

use crate::engine::Engine;

/// The share of the capacity of links that flows use: all of it, or what a run of packets has shown that rate controls leave used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Efficiency(f64);

impl Efficiency {
    /// All of it.
    pub const WHOLE: Efficiency = Efficiency(1.0);

    /// This share.
    ///
    /// # Panics
    /// Unless it is a number above 0.
    pub fn new(share: f64) -> Self {
        assert!(share > 0.0 && share.is_finite(), "a share above 0, not {share}");
        Efficiency(share)
    }
}

/// Runs a spec to its end and returns what was observed. Wall and CPU time are for the caller to add.
///
/// # Errors
/// What is wrong for packets, too; and what depends on packets ([`SimError::Fidelity`]).
pub fn run(spec: &SimSpec, efficiency: Efficiency, monitor: &mut dyn Monitor) -> Result<RunResult, SimError> {
    let mut engine = Engine::new(spec, efficiency.0)?;
    let end = engine.run(monitor);
    Ok(engine.into_result(end))
}

/// Checks whether [`run`] would run a spec.
///
/// # Errors
/// Those of [`run`].
pub fn check(spec: &SimSpec) -> Result<(), SimError> {
    spec.task_notification()?;
    refuse::admit(spec).map(drop)
}
