//! Configuration of weave.

use pathweave_units::Rng;

use super::Weave;
use crate::error::{above, within};
use crate::fluid::{AsFluid, ControlModel, Fluid, Spread};
use crate::{Adapt, Awaited, ConfigError, FabricEnv, HostDelay, HostEnv, LateWait, PolicyEnv};

/// Default target if the application waits for each message by itself: low, since what is queued delays others.
pub(super) const MESSAGE_TARGET: f64 = 0.05;
/// Default target if it waits for all messages of a step. Equal flows then end together, because no queue that chance
/// causes makes a window smaller, and the last message counts.
const STEP_TARGET: f64 = 3.0;

/// Parameters of weave. The numbers are dimensionless and hold for every rate, packet size and distance. All other
/// values are constants in the code, each with its reason.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct WeaveConfig {
    /// Queueing delay at which the largest window stays as it is, in round-trip times of the idle network. The time of
    /// two packets at line rate is added. A smaller window has a higher target. A lower target costs throughput, a
    /// higher one latency. Default: 3 if the application waits for all messages of a step, as in collectives and
    /// training; 0.05 if it waits for each message by itself.
    pub target: Option<f64>,
    /// Largest window, in bandwidth-delay products. The first window is two thirds of it. At 93 % load four hops
    /// queue packets by chance alone, and the window must cover these queues. Default 1.5.
    pub max_bdp: f64,
    /// Most packets in a row on one path, at least 1; fewer if the window or the target is small. Scenarios use 1,
    /// because a change of path costs nothing there; hosts set it ([`HostEnv::batch_packets`]).
    #[cfg_attr(feature = "serde", serde(skip))]
    pub run_packets: u8,
    /// Choice of paths. "came_back_well" (default): a path whose packets returned in time, marked or not, else a
    /// random one, with one window for all paths. It fits fabrics with many similar paths. "window_each": the least
    /// full path, where each of the first 1,024 paths has a window of its own. It fits few paths of unequal rates.
    /// Real hosts (`pathweave perf`, the lab, the libfabric provider) always use "window_each"; set it to simulate
    /// them.
    pub choice: PathChoice,
}

/// Choice of paths in weave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum PathChoice {
    /// A path whose packets returned in time, marked or not, else a random one. One window serves all paths, and no
    /// state is kept per path.
    #[default]
    CameBackWell,
    /// The least full path. Each path has a window of its own, which takes 32 bytes. Of more than 1,024 paths the
    /// first are used.
    WindowEach,
}

impl Default for WeaveConfig {
    fn default() -> Self {
        WeaveConfig { target: None, max_bdp: 1.5, run_packets: 1, choice: PathChoice::CameBackWell }
    }
}

impl AsFluid for WeaveConfig {
    fn as_fluid(&self) -> Fluid {
        Fluid { spread: Some(Spread::ByCapacity), control: ControlModel::BY_DELAY }
    }
}

impl Adapt for WeaveConfig {
    fn adapt_to_fabric(&mut self, fabric: &FabricEnv<'_>) {
        self.target = self.target.or(Some(match fabric.awaited {
            Awaited::Message => MESSAGE_TARGET,
            Awaited::Step => STEP_TARGET,
        }));
    }
    fn host_delay(&self) -> HostDelay {
        HostDelay::InRoundTrip
    }
    /// The path that returned last takes the copy.
    fn late_wait(&self) -> LateWait {
        LateWait::Brief
    }
    /// Paths between hosts may be few and of any rates. On software hosts each change of path costs a system call and
    /// an acknowledgement, and the same again at the peer.
    fn adapt_to_host(&mut self, host: &HostEnv) {
        self.max_bdp *= host.max_inflight_bdps;
        self.run_packets = host.batch_packets;
        self.choice = PathChoice::WindowEach;
    }
}

impl WeaveConfig {
    /// Returns an error that names the first invalid field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        within("target", self.target.unwrap_or(MESSAGE_TARGET), above(0.0, 1e3), "")?;
        within("max_bdp", self.max_bdp, above(0.0, 1e3), "")?;
        within("run_packets", self.run_packets, 1.., "")
    }
    /// Builds the policy of one direction of one queue pair.
    pub fn build(&self, env: &PolicyEnv, rng: &mut Rng) -> Weave {
        Weave::new(self, env, rng)
    }
}
