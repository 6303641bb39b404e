//! What can be set.

use pathweave_units::Rng;

use super::Weave;
use crate::error::check;
use crate::fluid::{AsFluid, Control, Fluid, Spread};
use crate::{Adapt, ConfigError, HostDelay, HostEnv, PolicyEnv};

/// Parameters of weave. The numbers are pure, right for every rate, packet size and distance; the rest are constants, each
/// with its reason where it is used.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WeaveConfig {
    /// Queueing delay at which the window stays as it is, in idle round-trip times; the time of two packets on the line is
    /// added. What is below it costs throughput, what is above it latency.
    pub target: f64,
    /// Largest window, in bandwidth-delay products; the first is two thirds of it. Four hops at 93 % of their rate queue by
    /// chance alone, and the window has to cover that.
    pub max_bdp: f64,
    /// Most packets in a row on one path, at least 1; fewer where the window or the target is small. 1 wherever a change of
    /// path costs nothing, so no scenario has it: hosts set it ([`HostEnv::batch_packets`]).
    #[cfg_attr(feature = "serde", serde(skip))]
    pub run_packets: u8,
    /// How paths are chosen. "came_back_well" (default): a path whose packets came back quickly again, else a random
    /// one, with one window for all paths; right for fabrics with many similar paths. "window_each": the least full path, each
    /// with a window of its own; right for few paths of unequal rates. Real hosts always use "window_each" (`pathweave perf`,
    /// the lab, the libfabric provider): set it to simulate what they run.
    pub choice: PathChoice,
}

/// How weave chooses paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum PathChoice {
    /// A path whose packets came back quickly again, else a random one. One window for all paths, and no state for
    /// each path.
    #[default]
    CameBackWell,
    /// The least full path. Each has a window of its own, which takes 32 bytes a path.
    WindowEach,
}

impl Default for WeaveConfig {
    fn default() -> Self {
        WeaveConfig { target: 0.3, max_bdp: 1.5, run_packets: 1, choice: PathChoice::CameBackWell }
    }
}

impl AsFluid for WeaveConfig {
    fn as_fluid(&self) -> Fluid {
        Fluid { spread: Some(Spread::ByCapacity), control: Control::BY_DELAY }
    }
}

impl Adapt for WeaveConfig {
    fn host_delay(&self) -> HostDelay {
        HostDelay::InRoundTrip
    }
    /// Paths between hosts may be few and of any rates. On hosts of software each change of path is a system call, an acknowledgement, and as much again at the other end.
    fn adapt_to_host(&mut self, host: &HostEnv) {
        self.max_bdp *= host.held_bdps;
        self.run_packets = host.batch_packets;
        self.choice = PathChoice::WindowEach;
    }
}

impl WeaveConfig {
    /// Names the first field that is wrong.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let positive = |name, x: f64| check(x > 0.0 && x <= 1e3, name, x, "more than 0, at most 1000");
        positive("target", self.target)?;
        positive("max_bdp", self.max_bdp)?;
        check(self.run_packets > 0, "run_packets", self.run_packets, "at least 1")
    }
    /// The policy of one direction of one queue pair.
    pub fn build(&self, env: &PolicyEnv, rng: &mut Rng) -> Weave {
        Weave::new(self, env, rng)
    }
}
