//! What a run is made from.

use std::num::NonZeroU16;
use std::sync::Arc;

use pathweave_execution::GroupSpec;
use pathweave_fabric::config::{ConfigError, FaultConfig, SwitchConfig};
use pathweave_policy::{Scheme, Service};
use pathweave_results::{Fidelity, Role};
use pathweave_topo::{PathSets, Topology};
use pathweave_transport::RetransmissionConfig;
use pathweave_units::{Bytes, Duration};
use pathweave_wire::{Framing, RouteBytes};
use pathweave_workload::{GroupId, MessageGraph};

use crate::nic::{NicConfig, SideChannelConfig};

/// With fewer hosts than this, waiting for each other takes threads longer than they save.
const HOSTS_PER_THREAD: u32 = 64;

/// Everything a run depends on. Equal specs give equal digests.
#[derive(Clone, Debug)]
pub struct SimSpec {
    /// Name of the run, for its records.
    pub name: String,
    /// Seed of every random stream.
    pub seed: u64,
    /// The network.
    pub topology: Arc<Topology>,
    /// What chooses the routes of packets through it.
    pub routing: RouteChoice,
    /// All switches.
    pub switch: SwitchConfig,
    /// All hosts.
    pub host: HostConfig,
    /// Schemes in use.
    pub schemes: Vec<NamedScheme>,
    /// How each group of `graph` is carried.
    pub groups: Vec<GroupSpec>,
    /// The messages.
    pub graph: Arc<MessageGraph>,
    /// What goes wrong, and when.
    pub faults: Vec<FaultConfig>,
    /// When to stop.
    pub stop: StopConfig,
    /// What to record.
    pub observe: ObserveConfig,
    /// Threads that run it side by side, no more than there are nodes; `None`: one. They show in no result but the time it
    /// takes.
    pub threads: Option<NonZeroU16>,
    /// By node, the part of the run that it belongs to, for threads and ranks; of no influence on results. Where there are more
    /// parts than threads, those of neighbouring numbers are put together. `None`: by the topology.
    pub partition: Option<Arc<[u16]>>,
    /// Check every placement of a WRITE: each byte of each message exactly once (see [`crate::check`]). Costs time
    /// and memory.
    pub verify: bool,
    /// What moves through the network.
    pub fidelity: Fidelity,
    /// With [`Fidelity::Flow`]: when packets of the beginning tell how far flows are from packets.
    pub calibrate: Calibrate,
    /// The scenario this came from, for its records.
    pub scenario_toml: String,
}

/// When a run of flows is measured on packets of its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Calibrate {
    /// It is not.
    #[default]
    Never,
    /// Where the run shows signs that it is outside of what flows are good for.
    InDoubt,
    /// Before it is run, and links are used as much as packets used them.
    Always,
}

impl SimSpec {
    /// These messages under one scheme, with defaults for the rest: switches choose routes, nothing fails, and nothing is
    /// limited, sampled or verified. Fields that shall be otherwise are set in what comes back.
    pub fn new(name: &str, topology: Topology, graph: MessageGraph, scheme: NamedScheme) -> Self {
        SimSpec {
            name: name.to_owned(),
            seed: 1,
            topology: Arc::new(topology),
            routing: RouteChoice::default(),
            switch: SwitchConfig::default(),
            host: HostConfig::default(),
            schemes: vec![scheme],
            groups: graph.groups().iter().map(|_| GroupSpec::new(0)).collect(),
            graph: Arc::new(graph),
            faults: Vec::new(),
            stop: StopConfig::default(),
            observe: ObserveConfig { interval: Duration::ZERO, ..ObserveConfig::default() },
            threads: None,
            partition: None,
            verify: false,
            fidelity: Fidelity::Packet,
            calibrate: Calibrate::Never,
            scenario_toml: String::new(),
        }
    }
    /// The same run on so many cores: by that many threads, or fewer where there is not enough to do for them. A number of
    /// threads that the run says itself is left.
    #[must_use]
    pub fn on_cores(&self, cores: NonZeroU16) -> Self {
        let worthwhile = (self.topology.hosts() / HOSTS_PER_THREAD).clamp(1, u32::from(cores.get())) as u16;
        SimSpec { threads: self.threads.or(NonZeroU16::new(worthwhile)), ..self.clone() }
    }
    /// Whether any messages go by datagram queue pairs.
    pub(crate) fn has_datagrams(&self) -> bool {
        self.schemes.iter().any(|named| matches!(named.scheme.service, Service::Datagram(_)))
    }
    /// How long it takes until a host knows what has ended at another one: what a task costs that waits for something
    /// elsewhere, or for a barrier. An error if that is shorter than the delay of the shortest link.
    pub fn task_notification(&self) -> Result<Duration, SimError> {
        let links = self.topology.links().iter();
        let shortest = links.map(|link| link.delay).min().unwrap_or(Duration::ZERO);
        match self.host.task_notification {
            Some(notification) if notification < shortest => Err(SimError::Nic {
                field: "task_notification",
                value: notification.to_string(),
                allowed: format!(
                    "at least {shortest}, the delay of the shortest link: nothing travels faster"
                ),
            }),
            Some(notification) => Ok(notification),
            None => Ok(USUAL_TASK_NOTIFICATION.max(shortest)),
        }
    }
    /// Whether the run ends before some of its traffic does.
    pub fn has_background(&self) -> bool {
        self.groups.iter().any(|group| group.role == Role::Background)
    }
    /// The scheme of a group.
    pub fn scheme_of(&self, group: GroupId) -> &NamedScheme {
        &self.schemes[usize::from(self.groups[group.index()].scheme)]
    }
}

/// What chooses the routes of packets.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum RouteChoice {
    /// Switches, among the shortest ones, by a hash of what the source gives them.
    #[default]
    Switches,
    /// Sources, among explicit paths. There must be some for every pair of hosts that talk.
    Sources(Arc<PathSets>),
    /// The switches of the senders, among explicit paths, by `switch.forwarding`.
    SenderSwitches(Arc<PathSets>),
    /// Switches, each among the next hops that explicit paths of a packet's hosts take there. None of these may lead in a
    /// circle ([`PathSets::next_hops_in_a_circle`]).
    NextHops(Arc<PathSets>),
}

/// A scheme under the name it has in results.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NamedScheme {
    /// Name in results. Default: that of `base`, with "*" behind it if anything was changed.
    pub name: String,
    /// The scheme.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub scheme: Scheme,
}

impl NamedScheme {
    /// The scheme of the policy crate that has this name; `None` if none has.
    pub fn find(name: &str) -> Option<Self> {
        let info = pathweave_policy::find_scheme(name)?;
        Some(NamedScheme { name: name.to_owned(), scheme: (info.make)() })
    }
}

/// All hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct HostConfig {
    /// Payload of a full packet, 256 to 9000 bytes.
    pub mtu: Bytes,
    /// How headers are counted.
    pub framing: Framing,
    /// What of source routes counts as bytes of packets.
    pub source_route: RouteBytes,
    /// What messages are posted as.
    pub verb: Verb,
    /// Retransmission timer.
    pub rto: RetransmissionConfig,
    /// The NIC beyond its link, and the host; `None`: it costs no time.
    pub nic: Option<NicConfig>,
    /// The side channel of datagram queue pairs.
    pub side_channel: SideChannelConfig,
    /// How long it takes until a host knows what has ended at another one; at least the delay of the shortest link.
    /// `None`: [`USUAL_TASK_NOTIFICATION`], or that delay where it is longer.
    pub task_notification: Option<Duration>,
}

/// What a notification takes where nothing else is said: about a small message within a data centre.
pub const USUAL_TASK_NOTIFICATION: Duration = Duration::from_us(1);

impl Default for HostConfig {
    /// Full packets of 4,096 bytes as WRITE in RoCEv2 frames; NICs cost no time.
    fn default() -> Self {
        HostConfig {
            mtu: Bytes::new(4_096),
            framing: Framing::Rocev2,
            source_route: Framing::Rocev2.usual_route(),
            verb: Verb::Write,
            rto: RetransmissionConfig::SHORT,
            nic: None,
            side_channel: SideChannelConfig::default(),
            task_notification: None,
        }
    }
}

/// The verb that messages are posted with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Verb {
    /// One-sided WRITE.
    #[default]
    Write,
    /// Two-sided SEND.
    Send,
}

/// When a run ends, besides when everything is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct StopConfig {
    /// At this simulated time.
    pub until: Option<Duration>,
    /// With the window of the look-ahead in which this many events are reached.
    pub max_events: Option<u64>,
}

/// What is recorded beyond one record for each flow, job and link.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// Numbers of further messages that are followed over time: column `flow` of flows.parquet, which is the same in each run of a
    /// scenario. With those of `flows` 1000 at most. Default none.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Vec::is_empty"))]
    pub follow: Vec<u32>,
    /// Count data packets as they leave their hosts, in `summary.json`: the times between packets of a message, and, where
    /// sources choose paths, the bytes by the length of the path. Not for datagram queue pairs. Default false.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "std::ops::Not::not"))]
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
    /// Time between samples; `None`: no samples.
    pub fn sampling(&self) -> Option<Duration> {
        Some(self.interval).filter(|interval| *interval > Duration::ZERO)
    }
    /// Whether any message is followed.
    pub(crate) fn follows_any(&self) -> bool {
        self.flows > 0 || !self.follow.is_empty()
    }
}

/// Which setting a mistake is about: one that is written in the scenario, where others follow from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Blame {
    /// `switch.forwarding.kind`, which was set.
    Kind,
    /// The scheme of this name.
    Scheme(String),
    /// Who chooses routes.
    Routing,
    /// The topology.
    Topology,
    /// This field of the scenario.
    Field(&'static str),
    /// The fault of this number, from 0.
    Fault(usize),
}

/// Why a run cannot start.
#[derive(Clone, Debug, thiserror::Error, PartialEq)]
pub enum SimError {
    /// A value out of its range.
    #[error("switch.{0}")]
    Switch(ConfigError),
    /// A fault with a value out of its range.
    #[error("fault {index}: {error}")]
    Fault {
        /// Which one, from 0.
        index: usize,
        /// What is wrong.
        error: ConfigError,
    },
    /// A fault that names a link or node that does not exist.
    #[error("fault {index}: {message}")]
    FaultTarget {
        /// Which one, from 0.
        index: usize,
        /// What is wrong, with the nearest name.
        message: String,
    },
    /// Ranks that cannot make this run together.
    #[error("{0}")]
    Ranks(String),
    /// PFC headroom does not leave any shared buffer.
    #[error(
        "the buffer of {switch} is {buffer}, but PFC headroom alone takes {headroom}; enlarge switch.buffer (or, for an \
         external switch, switch.external.buffer) or set switch.pfc.headroom"
    )]
    BufferTooSmall {
        /// The switch.
        switch: String,
        /// Bytes that headroom takes.
        headroom: Bytes,
        /// Bytes there are.
        buffer: Bytes,
    },
    /// Schemes, routing and what switches do that do not go together.
    #[error("{message}")]
    Forwarding {
        /// What the mistake is about.
        blame: Blame,
        /// What is wrong.
        message: String,
        /// What to change.
        advice: &'static str,
    },
    /// What depends on packets, in a run without them.
    #[error("{message}")]
    Fidelity {
        /// What the mistake is about.
        blame: Blame,
        /// What is wrong.
        message: String,
        /// What to change.
        advice: String,
    },
    /// A value of NICs, side channels or notifications out of its range.
    #[error("{field} = {value} is not allowed: {allowed}")]
    Nic {
        /// Which one.
        field: &'static str,
        /// Its value.
        value: String,
        /// What is allowed.
        allowed: String,
    },
    /// Middleboxes that cannot work on this network.
    #[error("{0}")]
    Middlebox(String),
    /// Something else about the network.
    #[error("{0}")]
    Network(String),
}
