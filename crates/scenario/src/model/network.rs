//! Packets and what a sender does about lost ones.

use pathweave_sim::Verb;
use pathweave_sim::nic::{NicConfig, SideChannelConfig};
use pathweave_transport::RtoConfig;
use pathweave_units::{Bytes, Duration};
use pathweave_wire::{Framing, RouteBytes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Packets: their size, their headers, and what a sender does about lost ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkConfig {
    /// Header bytes on the wire: "rocev2" counts real RoCEv2 over Ethernet (default), "ns3" what the ns-3 RDMA
    /// simulators count, for comparison with their results.
    pub framing: Framing,
    /// Bytes that packets carry of a route their source has chosen (`routing.kind = "source"`): "none"; "anchors", the few
    /// switches that pin it, 4 bytes each; "hops", the port at every switch, 2 bytes each; "segments", 16 bytes for every
    /// anchor, as in SRv6; each with 8 bytes around them. Default: "hops", and "none" with `framing = "ns3"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_route: Option<RouteBytes>,
    /// Payload of a full packet, 256 B to 9000 B. Default 4096 B, the largest MTU of InfiniBand verbs.
    pub mtu: Bytes,
    /// What messages are posted as: "write" (default), as collective libraries do, or "send".
    pub verb: Verb,
    /// Retransmission timer of every queue pair.
    pub retransmission: RetransmissionConfig,
    /// NICs and hosts beyond the link: queue-pair contexts, PCIe, cores. Absent: they cost no time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nic: Option<NicConfig>,
    /// The channel that datagram queue pairs have beside them.
    #[serde(skip_serializing_if = "is_default")]
    pub side_channel: SideChannelConfig,
    /// How long it takes until a host knows what has ended at another one. The receiver of a message knows of its delivery
    /// at once, the sender with the acknowledgement of its last byte; a task elsewhere that waits for either begins this
    /// much later, and so does what waits for a barrier. At least the delay of the shortest link. Default 1 us (ours: about
    /// a small message within a data centre), or the delay of the shortest link where that is longer.
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

fn is_default(config: &SideChannelConfig) -> bool {
    *config == SideChannelConfig::default()
}

impl NetworkConfig {
    /// The same, as the simulator takes it.
    pub fn to_sim(&self) -> pathweave_sim::HostConfig {
        pathweave_sim::HostConfig {
            mtu: self.mtu,
            framing: self.framing,
            source_route: self.source_route.unwrap_or(self.framing.usual_route()),
            verb: self.verb,
            rto: self.retransmission.to_transport(),
            nic: self.nic.clone(),
            side_channel: self.side_channel.clone(),
            task_notification: self.task_notification,
        }
    }
}

/// Retransmission timer: runs from the last progress of a queue pair, or from its oldest packet in flight if that
/// left later.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RetransmissionConfig {
    /// Time to the first timeout. Default 4 ms (ConWeave's set-ups): longer than a full 32 MB buffer takes to drain at
    /// 100 Gb/s, so that in a lossless fabric what is late is not taken for lost. A fabric that drops wants less.
    pub timeout: Duration,
    /// Longest time between timeouts. Default 64 ms.
    pub max_timeout: Duration,
    /// Factor by which the time grows with each timeout in a row, 1 to 16. Default 2.
    pub backoff: u32,
    /// Timeouts in a row without progress after which a message fails. Default 7, the most a RoCE NIC can be set to.
    pub retry_limit: u32,
}

impl Default for RetransmissionConfig {
    fn default() -> Self {
        let RtoConfig { max, backoff, retry_limit, .. } = RtoConfig::default();
        RetransmissionConfig { timeout: Duration::from_ms(4), max_timeout: max, backoff, retry_limit }
    }
}

impl RetransmissionConfig {
    /// The same, as the transport takes it.
    pub fn to_transport(&self) -> RtoConfig {
        RtoConfig {
            initial: self.timeout,
            max: self.max_timeout,
            backoff: self.backoff,
            retry_limit: self.retry_limit,
        }
    }
}
