//! When a run ends and what it records.

use pathweave_units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When the run ends, besides when every message is delivered and acknowledged or has failed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RunConfig {
    /// Simulated time at which the run ends whatever is left to do. Absent: when all is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Duration>,
    /// Simulator events after which the run ends, with the window (2us at most) in which they are reached. Absent: no
    /// limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_events: Option<u64>,
    /// Check that every byte of every message is delivered exactly once, and stop with an internal error if not. Costs
    /// time and memory. Default false.
    pub verify: bool,
}

/// What is recorded beyond one record for each flow, job and link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ObserveConfig {
    /// Time between samples of queues, links and hosts; doubled whenever there are more than `max_samples` of them.
    /// Default 5 us; 0s: no samples.
    pub interval: Duration,
    /// Instants kept at most, 2 or more. Default 256.
    pub max_samples: u32,
    /// Events of each kind kept in full at most; further ones are counted. Default 100000.
    pub max_events: u32,
    /// Messages that are followed over time, 1000 at most: the largest, of equal ones the first. At each sample the rate
    /// that the policy allows, the bytes in flight, and how the packets that arrived since the last one are spread over
    /// paths, or over queue pairs where the scheme has several (the 32 that carried most). Not for datagram queue pairs. Default 0.
    pub flows: u32,
    /// Count data packets as they leave their hosts, in `summary.json`: the times between packets of a message, and, where
    /// sources choose paths, the bytes by the length of the path. Not for datagram queue pairs. Default false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub departures: bool,
}

impl Default for ObserveConfig {
    fn default() -> Self {
        let pathweave_sim::ObserveConfig { interval, max_samples, max_events, flows, departures } =
            Default::default();
        let interval = interval.unwrap_or(Duration::ZERO);
        ObserveConfig { interval, max_samples, max_events, flows, departures }
    }
}

impl ObserveConfig {
    /// The same, as the simulator takes it.
    pub fn to_sim(&self) -> pathweave_sim::ObserveConfig {
        pathweave_sim::ObserveConfig {
            interval: (self.interval > Duration::ZERO).then_some(self.interval),
            max_samples: self.max_samples,
            max_events: self.max_events,
            flows: self.flows,
            departures: self.departures,
        }
    }
}
