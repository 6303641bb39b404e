//! Settings of hosts, of the run and of its observation. They are sections of a scenario.

use std::path::PathBuf;

use pathweave_policy::ConfigError;
use pathweave_records::Fidelity;
use pathweave_transport::{MIN_MTU_PAYLOAD, RetransmissionConfig};
use pathweave_units::{Bytes, Duration};
use pathweave_wire::{Framing, RouteBytes};

use crate::nic::{NicConfig, SideChannelConfig};

/// Largest payload of a full packet in a fabric: that of jumbo frames. Real hosts use larger packets on loopback
/// only.
const LARGEST_MTU: Bytes = Bytes::new(9_000);

/// Packets: size, headers, and retransmission.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkConfig {
    /// Headers that count on the wire: "rocev2" (default) for RoCEv2 over Ethernet, or "ns3" for the headers of the
    /// ns-3 RDMA simulators, for comparison with their results.
    pub framing: Framing,
    /// Encoding of a route that the source has chosen (`routing.kind = "source"`) in each packet. "none" adds no
    /// bytes. "anchors" lists the few switches that determine the route, 4 bytes each. "hops" lists the port at every
    /// switch, 2 bytes each. "segments" lists every anchor with 16 bytes, as in SRv6. Each list has 8 more bytes of
    /// header. Default "hops", or "none" with `framing = "ns3"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_route: Option<RouteBytes>,
    /// Payload of a full packet, 256 B to 9000 B. Default 4096 B, the largest MTU of InfiniBand verbs.
    pub mtu: Bytes,
    /// Verb of all messages: "write" (default), as in collective libraries, or "send".
    pub verb: Verb,
    /// Retransmission timer of every queue pair.
    pub retransmission: RetransmissionConfig,
    /// Costs of NICs and hosts besides the link: queue-pair contexts, PCIe, cores. Default: absent, and they take no
    /// time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nic: Option<NicConfig>,
    /// Reliable side channel of datagram queue pairs.
    #[serde(skip_serializing_if = "is_default")]
    pub side_channel: SideChannelConfig,
    /// Time until a host knows that a task has ended at another host. The receiver of a message knows of its delivery
    /// at once, the sender with the acknowledgement of its last byte. A task at any other host that waits for the
    /// message begins this much later, and so does a task that waits for a barrier. At least the delay of the
    /// shortest link. Default 1 us (ours: about a small message within a data centre), or the delay of the shortest
    /// link if that is longer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_notification: Option<Duration>,
}

impl Default for NetworkConfig {
    fn default() -> Self {
        NetworkConfig {
            framing: Framing::default(),
            source_route: None,
            mtu: Bytes::new(4_096),
            verb: Verb::default(),
            retransmission: RetransmissionConfig::default(),
            nic: None,
            side_channel: SideChannelConfig::default(),
            task_notification: None,
        }
    }
}

/// Default delay of a task notification: about that of a small message within a data centre.
pub const USUAL_TASK_NOTIFICATION: Duration = Duration::from_us(1);

impl NetworkConfig {
    /// Returns an error for each value out of its range. NICs and side channels are checked by the simulator.
    pub fn errors(&self) -> Vec<ConfigError> {
        let (least, most) = (Bytes::new(u64::from(MIN_MTU_PAYLOAD)), LARGEST_MTU);
        let payload = format!("{} B to {} B of payload", least.get(), most.get());
        let timer = &self.retransmission;
        let first = format!("at least `timeout`, {}", timer.timeout);
        let checks = [
            check((least..=most).contains(&self.mtu), "mtu", self.mtu, &payload),
            check(timer.timeout > Duration::ZERO, "retransmission.timeout", timer.timeout, "above 0"),
            check(
                timer.max_timeout >= timer.timeout,
                "retransmission.max_timeout",
                timer.max_timeout,
                &first,
            ),
            check((1..=16).contains(&timer.backoff), "retransmission.backoff", timer.backoff, "1 to 16"),
        ];
        checks.into_iter().flatten().collect()
    }
    /// Returns the parts of a source route that count as bytes of packets.
    pub(crate) fn route_bytes(&self) -> RouteBytes {
        self.source_route.unwrap_or(self.framing.default_route_bytes())
    }
}

/// Verb with which messages are posted.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Verb {
    /// One-sided WRITE.
    #[default]
    Write,
    /// Two-sided SEND.
    Send,
}

/// End, fidelity and execution of the run. The run ends when every foreground message is delivered and acknowledged
/// or has failed, or earlier at one of the limits below.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RunConfig {
    /// Granularity of the simulation: "packet" (default) simulates every packet. "flow" simulates messages as fluids
    /// that share links, in a fraction of the time; docs/flow-fidelity.md states its error.
    #[serde(skip_serializing_if = "is_default")]
    pub fidelity: Fidelity,
    /// Check of a flow simulation against packets of its beginning. "auto" (default) measures a run that shows signs
    /// of being outside of the model, for some tenths of a second, and reports whether it is. "prefix" measures every
    /// run for some seconds: one number is fitted on half of the messages, and the label states the error on the
    /// others. "off" measures none.
    #[serde(skip_serializing_if = "is_default")]
    pub calibrate: Calibrate,
    /// Folding of equivalent ranks in a flow simulation of a collective or training job ("collective", "simai",
    /// "transformer"). Ranks that the network and the job treat alike are simulated once. "auto" (default) folds jobs
    /// of more than 4 million messages and computations. "always" folds every job and is an error where no ranks are
    /// alike; "never" folds none. Needs a single workload without stragglers or faults, and a scheme that spreads its
    /// packets.
    #[serde(skip_serializing_if = "is_default")]
    pub fold: Fold,
    /// Simulated time at which the run ends, even if work is left. Above 0. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Duration>,
    /// Number of simulator events after which the run ends. The run completes the window (2us at most) in which it
    /// reaches the number. At least 1. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_events: Option<u64>,
    /// Number of parallel threads, 1 to 1024. Has no influence on results. Default: as many as the command sets, or
    /// as there are cores and enough hosts for, with at least 64 hosts a thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<u16>,
    /// File that assigns each node to a part of the run, for threads and ranks. Each line has the name of a node and
    /// the number of its part, from 0. A host that is not listed belongs to the part of its switch. Has no influence
    /// on results. Default: by the topology.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<PathBuf>,
    /// Verification that every byte of every message is delivered exactly once. A violation stops the run with an
    /// internal error. Costs time and memory. Default false.
    pub verify: bool,
}

impl RunConfig {
    /// Returns an error for each value out of its range.
    pub fn errors(&self) -> Vec<ConfigError> {
        let threads = self.threads.unwrap_or(1);
        let checks = [
            check(self.until != Some(Duration::ZERO), "until", Duration::ZERO, "above 0"),
            check(self.max_events != Some(0), "max_events", 0, "1 or more"),
            check((1..=1_024).contains(&threads), "threads", threads, "1 to 1024"),
        ];
        checks.into_iter().flatten().collect()
    }
}

/// Check of a flow simulation against packets.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Calibrate {
    /// Check runs that show signs of being outside of the model.
    #[default]
    Auto,
    /// Check no run.
    Off,
    /// Check every run, and use links to the share that packets of its beginning used.
    Prefix,
}

/// Folding of equivalent ranks.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Fold {
    /// Fold large jobs.
    #[default]
    Auto,
    /// Fold every job. An error if no ranks are alike.
    Always,
    /// Fold no job.
    Never,
}

/// Observations recorded beyond one record for each flow, job and link.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ObserveConfig {
    /// Time between samples of queues, links and hosts. It doubles whenever there are more than `max_samples`
    /// instants. Default 5 us; 0s disables samples.
    pub interval: Duration,
    /// Largest number of sampled instants to keep, 2 or more. Default 256.
    pub max_samples: u32,
    /// Largest number of events of each kind to keep in full. Further events are only counted. Default 100000.
    pub max_events: u32,
    /// Number of messages that are followed over time, at most 1000. The largest messages are followed; of equal
    /// ones, the first. A sample holds the throughput, the bytes still to arrive, the rate that the policy allows, the
    /// bytes in flight, and the distribution over paths of the packets that arrived since the sample before. If the
    /// scheme has several queue pairs, the distribution is over these. Each distribution lists the 32 entries with the
    /// most packets. Does not apply to datagram queue pairs. Default 0.
    pub flows: u32,
    /// Numbers of further messages that are followed over time, as in column `flow` of flows.parquet. The numbers are
    /// the same in each run of a scenario. `flows` and `follow` together may select at most 1000 messages. Default:
    /// none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub follow: Vec<u32>,
    /// Collects statistics of data packets that leave their hosts, written to `summary.json`: the gaps between
    /// packets of a message and, if sources choose paths, the bytes by path length. Does not apply to datagram queue
    /// pairs. Default false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub departures: bool,
}

impl Default for ObserveConfig {
    fn default() -> Self {
        ObserveConfig {
            interval: Duration::from_us(5),
            max_samples: 256,
            max_events: 100_000,
            flows: 0,
            follow: Vec::new(),
            departures: false,
        }
    }
}

impl ObserveConfig {
    /// Returns an error for each value out of its range.
    pub fn errors(&self) -> Vec<ConfigError> {
        const MOST: usize = 1_000;
        let enough = "2 or more; `observe.interval = \"0s\"` turns samples off";
        let (flows, follow) = (self.flows as usize, self.follow.len());
        let all = "at most 1000 flows, including `observe.flows`";
        let is_small = flows > MOST || flows + follow <= MOST;
        let checks = [
            check(self.max_samples >= 2, "max_samples", self.max_samples, enough),
            check(flows <= MOST, "flows", flows, "0 to 1000"),
            check(is_small, "follow", format!("a list of {follow}"), all),
        ];
        checks.into_iter().flatten().collect()
    }
    /// Returns the time between samples, or `None` if there are none.
    pub fn sampling(&self) -> Option<Duration> {
        Some(self.interval).filter(|interval| *interval > Duration::ZERO)
    }
    /// Returns true if any message is followed.
    pub(crate) fn follows_any(&self) -> bool {
        self.flows > 0 || !self.follow.is_empty()
    }
}

/// Returns the error of a field unless `ok`.
fn check(ok: bool, field: &str, value: impl ToString, allowed: &str) -> Option<ConfigError> {
    (!ok).then(|| ConfigError::new(field, value, allowed))
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
