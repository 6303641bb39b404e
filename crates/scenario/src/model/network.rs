//! Packets and what a sender does about lost ones.

use pathweave_sim::Verb;
use pathweave_sim::nic::{NicConfig, SideChannelConfig};
use pathweave_transport::RetransmissionConfig;
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
    /// The payload of a full packet as a share of the bytes that it takes on a link, 0 to 1.
    pub fn payload_share(&self) -> f64 {
        let (full, _) = pathweave_sim::full_and_ack_bytes(&self.to_sim());
        self.mtu.get() as f64 / f64::from(full)
    }

    /// The same, as the simulator takes it.
    pub fn to_sim(&self) -> pathweave_sim::HostConfig {
        pathweave_sim::HostConfig {
            mtu: self.mtu,
            framing: self.framing,
            source_route: self.source_route.unwrap_or(self.framing.usual_route()),
            verb: self.verb,
            rto: self.retransmission,
            nic: self.nic.clone(),
            side_channel: self.side_channel.clone(),
            task_notification: self.task_notification,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_what_the_framing_counts() {
        let share = |framing| {
            NetworkConfig { framing, mtu: Bytes::new(1_400), ..NetworkConfig::default() }.payload_share()
        };
        assert_eq!(share(Framing::Ns3), 1_400.0 / 1_448.0);
        // Preamble and gap 20, Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4, FCS 4.
        assert_eq!(share(Framing::Rocev2), 1_400.0 / 1_482.0);
    }
}
