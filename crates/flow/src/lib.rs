//! Fluid model of a run: flows share links, and there are no packets.
//!
//! [`run`] simulates the [`SimSpec`] of a packet run and yields the same records in a fraction of the time. Each
//! message is a flow with a rate on the links that it crosses. Rates are max-min fair at every time. Schemes describe
//! further effects ([`pathweave_policy::fluid`]): queues met by short messages, collisions of sprayed packets, and rate
//! controls that recover slowly.
//!
//! Workload, connections, routes, hashes and random paths are those of the packet engine, from
//! [`PacketFreeNetwork`](pathweave_sim::PacketFreeNetwork). `docs/flow-fidelity.md` states where the model is valid.

mod agenda;
mod brief;
mod classes;
mod delays;
mod engine;
mod fold;
mod gauge;
mod heap;
mod lane;
mod ledger;
mod model;
mod network;
mod ports;
mod profile;
mod queue;
mod records;
mod recovery;
mod refuse;
mod representatives;
mod scale_up;
mod settle;
mod short;
mod sizes;
mod slow;
mod transport;
#[cfg(test)]
mod unequal_links;
mod validity;
mod walk;
mod wanted;

use pathweave_records::RunResult;
use pathweave_sim::{Monitor, SimError, SimSpec};
pub use validity::MAX_SMALL_RUN_MESSAGES;

use crate::engine::Engine;

/// Share of the links' capacity that flows use: all of it, or the share that rate controls were seen to use in a run
/// of packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Efficiency(f64);

impl Efficiency {
    /// The full capacity.
    pub const WHOLE: Efficiency = Efficiency(1.0);

    /// Creates an efficiency of this share.
    ///
    /// # Panics
    /// If `share` is not a finite number above 0.
    pub fn new(share: f64) -> Self {
        assert!(share > 0.0 && share.is_finite(), "a share above 0, not {share}");
        Efficiency(share)
    }
}

/// Runs a spec to its end and returns the result. The caller adds wall and CPU time.
///
/// # Errors
/// Errors of the packet engine, and features that depend on packets ([`SimError::Fidelity`]).
pub fn run(spec: &SimSpec, efficiency: Efficiency, monitor: &mut dyn Monitor) -> Result<RunResult, SimError> {
    let mut engine = Engine::new(spec, efficiency.0)?;
    let end = engine.run(monitor);
    Ok(engine.into_result(end))
}

/// Checks that [`run`] accepts a spec.
///
/// # Errors
/// The errors of [`run`].
pub fn check(spec: &SimSpec) -> Result<(), SimError> {
    spec.task_notification()?;
    refuse::admit(spec).map(drop)
}
