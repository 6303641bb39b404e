//! Configuration of packets and retransmission.

use pathweave_sim::Verb;
use pathweave_sim::nic::{NicConfig, SideChannelConfig};
use pathweave_transport::RetransmissionConfig;
use pathweave_units::{Bytes, Duration};
use pathweave_wire::{Framing, RouteBytes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Packets: size, headers, and retransmission.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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

fn is_default(config: &SideChannelConfig) -> bool {
    *config == SideChannelConfig::default()
}

impl NetworkConfig {
    /// Returns the payload of a full packet as a share of its bytes on a link, 0 to 1.
    pub fn payload_share(&self) -> f64 {
        let (full, _) = pathweave_sim::full_and_ack_bytes(&self.to_sim());
        self.mtu.get() as f64 / f64::from(full)
    }

    /// Converts the configuration to that of the simulator.
    pub fn to_sim(&self) -> pathweave_sim::HostConfig {
        pathweave_sim::HostConfig {
            mtu: self.mtu,
            framing: self.framing,
            source_route: self.source_route.unwrap_or(self.framing.default_route_bytes()),
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
