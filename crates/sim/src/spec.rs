//! Specification of a run.

use std::num::NonZeroU16;
use std::sync::Arc;

use pathweave_execution::GroupSpec;
use pathweave_fabric::config::{ConfigError, FaultConfig, SwitchConfig};
use pathweave_policy::{Scheme, Service};
use pathweave_records::Role;
use pathweave_topo::{PathSets, Topology};
use pathweave_transport::RetransmissionConfig;
use pathweave_units::{Bytes, Duration};
use pathweave_workload::{GroupId, MessageGraph};

use crate::config::{Calibrate, NetworkConfig, ObserveConfig, RunConfig, USUAL_TASK_NOTIFICATION};

/// Number of hosts below which threads spend more time waiting for each other than they save.
const HOSTS_PER_THREAD: u32 = 64;

/// All parameters of a run. Equal specs give equal digests.
#[derive(Clone, Debug)]
pub struct SimSpec {
    /// Name of the run, for its records.
    pub name: String,
    /// Seed of every random stream.
    pub seed: u64,
    /// The network, with the latencies that `switch` gives to switches ([`crate::with_switch_latencies`]).
    pub topology: Arc<Topology>,
    /// Choice of routes by switches or by sources.
    pub routing: RouteChoice,
    /// Configuration of all switches.
    pub switch: SwitchConfig,
    /// Configuration of all hosts.
    pub network: NetworkConfig,
    /// Schemes in use.
    pub schemes: Vec<NamedScheme>,
    /// Transport of each group of `graph`.
    pub groups: Vec<GroupSpec>,
    /// The messages.
    pub graph: Arc<MessageGraph>,
    /// Faults and their times.
    pub faults: Vec<FaultConfig>,
    /// Fidelity and end of the run.
    pub run: RunConfig,
    /// Observations to record.
    pub observe: ObserveConfig,
    /// Number of threads that execute the run in parallel, at most the number of nodes. `None`: one thread. The
    /// number affects only the wall time, not the results. Callers choose it; `run.threads` is the user's wish.
    pub threads: Option<NonZeroU16>,
    /// Shard of each node, for threads and ranks; does not affect results. If there are more shards than threads,
    /// shards with adjacent numbers are merged. `None`: derived from the topology. Callers read it from the file
    /// `run.partition`.
    pub partition: Option<Arc<[u16]>>,
    /// Text of the scenario file, for the records of the run.
    pub scenario_toml: String,
}

impl SimSpec {
    /// Creates a spec for these messages under one scheme. By default, switches choose routes, nothing fails, and
    /// nothing is limited, sampled or verified. Callers change fields of the returned spec as needed.
    pub fn new(name: &str, topology: Topology, graph: MessageGraph, scheme: NamedScheme) -> Self {
        SimSpec {
            name: name.to_owned(),
            seed: 1,
            topology: Arc::new(topology),
            routing: RouteChoice::default(),
            switch: SwitchConfig::default(),
            network: NetworkConfig {
                retransmission: RetransmissionConfig::SHORT,
                ..NetworkConfig::default()
            },
            schemes: vec![scheme],
            groups: graph.groups().iter().map(|_| GroupSpec::new(0)).collect(),
            graph: Arc::new(graph),
            faults: Vec::new(),
            run: RunConfig { calibrate: Calibrate::Off, ..RunConfig::default() },
            observe: ObserveConfig { interval: Duration::ZERO, ..ObserveConfig::default() },
            threads: None,
            partition: None,
            scenario_toml: String::new(),
        }
    }
    /// Returns the same run on up to `cores` threads, or fewer if there are too few hosts. A number of threads that
    /// is already set is kept.
    #[must_use]
    pub fn on_cores(&self, cores: NonZeroU16) -> Self {
        let worthwhile = (self.topology.hosts() / HOSTS_PER_THREAD).clamp(1, u32::from(cores.get())) as u16;
        SimSpec { threads: self.threads.or(NonZeroU16::new(worthwhile)), ..self.clone() }
    }
    /// Returns true if any messages use datagram queue pairs.
    pub(crate) fn has_datagrams(&self) -> bool {
        self.schemes.iter().any(|named| matches!(named.scheme.service, Service::Datagram(_)))
    }
    /// Returns the delay until a host knows that a task at another host has ended. It applies to tasks that wait for
    /// a task at another host or for a barrier.
    ///
    /// # Errors
    /// The configured delay is shorter than the delay of the shortest link.
    pub fn task_notification(&self) -> Result<Duration, SimError> {
        let shortest = self.topology.shortest_delay();
        match self.network.task_notification {
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
    /// Returns the longest window in which no message over a scale-up network can be both posted and delivered.
    pub(crate) fn scale_up_window(&self) -> Duration {
        self.topology.scale_up().map_or(Duration::MAX, pathweave_topo::ScaleUp::delay)
    }
    /// Returns true if the run has background traffic, at whose end the run does not wait.
    pub fn has_background(&self) -> bool {
        self.groups.iter().any(|group| group.role == Role::Background)
    }
    /// Returns the scheme of a group.
    pub fn scheme_of(&self, group: GroupId) -> &NamedScheme {
        &self.schemes[usize::from(self.groups[group.index()].scheme)]
    }
}

/// Entity that chooses the routes of packets.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum RouteChoice {
    /// Switches choose among the shortest routes by a hash of the header fields that the source sets.
    #[default]
    Switches,
    /// Sources choose among explicit paths. Every pair of hosts that exchange messages must have at least one.
    Sources(Arc<PathSets>),
    /// The senders' switches choose among explicit paths, according to `switch.forwarding`.
    SenderSwitches(Arc<PathSets>),
    /// Each switch chooses among the next hops that explicit paths of the packet's pair of hosts take there. These
    /// next hops must not form a circle ([`PathSets::find_next_hop_loop`]).
    NextHops(Arc<PathSets>),
}

/// Scheme under the name that results use.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct NamedScheme {
    /// Name in results. Default: the name of `base`, followed by "*" if any field was changed.
    pub name: String,
    /// The scheme.
    #[serde(flatten)]
    pub scheme: Scheme,
}

impl NamedScheme {
    /// Finds a scheme of the policy crate by name, or returns `None`.
    pub fn find(name: &str) -> Option<Self> {
        let info = pathweave_policy::find_scheme(name)?;
        Some(NamedScheme { name: name.to_owned(), scheme: (info.make)() })
    }
}

/// Setting of the scenario that caused an error, from which other settings may follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorSource {
    /// `switch.forwarding.kind`, which was set explicitly.
    Kind,
    /// The scheme of this name.
    Scheme(String),
    /// The choice of routes.
    Routing,
    /// The topology.
    Topology,
    /// This field of the scenario.
    Field(&'static str),
    /// The fault of this number, from 0.
    Fault(usize),
}

/// Field that sets the buffer of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferField {
    /// `switch.buffer`.
    Local,
    /// `switch.external.buffer`.
    External,
    /// Field of the table of `switch.for` with this number, from 0.
    Table(usize, &'static str),
}

impl std::fmt::Display for BufferField {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BufferField::Local => f.write_str("switch.buffer"),
            BufferField::External => f.write_str("switch.external.buffer"),
            BufferField::Table(table, field) => write!(f, "switch.for[{table}].{field}"),
        }
    }
}

/// Error that prevents a run from starting.
#[derive(Clone, Debug, thiserror::Error, PartialEq)]
pub enum SimError {
    /// A switch setting is out of its range.
    #[error("switch.{0}")]
    Switch(ConfigError),
    /// A table of switch settings selects no switch, or gives switches settings that they cannot have.
    #[error("switch.for[{table}]: {message}")]
    SwitchFor {
        /// Number of the table, from 0.
        table: usize,
        /// Field of the table.
        field: &'static str,
        /// Description of the error.
        message: String,
        /// Allowed values, or another remedy.
        allowed: String,
        /// The most similar value that would be accepted.
        nearest: Option<String>,
    },
    /// A fault has a value out of its range.
    #[error("fault {index}: {error}")]
    Fault {
        /// Number of the fault, from 0.
        index: usize,
        /// The invalid value.
        error: ConfigError,
    },
    /// A fault names a link or node that does not exist.
    #[error("fault {index}: {message}")]
    FaultTarget {
        /// Number of the fault, from 0.
        index: usize,
        /// Description of the error, with the most similar name.
        message: String,
    },
    /// Ranks cannot make this run together.
    #[error("{0}")]
    Ranks(String),
    /// PFC headroom leaves no shared buffer.
    #[error(
        "the buffer of {switch} is {buffer}, but PFC headroom alone takes {headroom}; enlarge {field} or set \
         switch.pfc.headroom"
    )]
    BufferTooSmall {
        /// Name of the switch.
        switch: String,
        /// Bytes that headroom takes.
        headroom: Bytes,
        /// Size of the buffer.
        buffer: Bytes,
        /// Field that sets it.
        field: BufferField,
    },
    /// Schemes, routing and the load balancing of switches are incompatible.
    #[error("{message}")]
    Forwarding {
        /// Setting that caused the error.
        blame: ErrorSource,
        /// Description of the error.
        message: String,
        /// Change that would resolve the error.
        advice: &'static str,
    },
    /// A setting requires packets, but the run has none.
    #[error("{message}")]
    Fidelity {
        /// Setting that caused the error.
        blame: ErrorSource,
        /// Description of the error.
        message: String,
        /// Change that would resolve the error.
        advice: String,
    },
    /// A value of NICs, side channels or task notifications is out of its range.
    #[error("{field} = {value} is not allowed: {allowed}")]
    Nic {
        /// Name of the field.
        field: &'static str,
        /// Value of the field.
        value: String,
        /// Permitted values.
        allowed: String,
    },
    /// Middleboxes cannot work on this network.
    #[error("{0}")]
    Middlebox(String),
    /// Another error of the network.
    #[error("{0}")]
    Network(String),
}
