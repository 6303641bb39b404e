//! Configuration of a datagram queue pair.

use pathweave_policy::{DatagramConfig, DestinationControl};
use pathweave_units::{Duration, HostId, QpNum};
use pathweave_wire::Framing;

use super::send::MAX_PACKETS;
use crate::config::{MAX_MTU_PAYLOAD, MIN_MTU_PAYLOAD};
use crate::work::MAX_MESSAGE_BYTES;

/// Peer of a flow: a datagram queue pair of another host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId {
    /// Peer host.
    pub host: HostId,
    /// Number of the queue pair at that host.
    pub qp: QpNum,
}

/// Configuration of a datagram queue pair.
#[derive(Clone, Debug)]
pub struct RdConfig<P> {
    /// Number of the queue pair.
    pub num: QpNum,
    /// Decides when packets leave and on which path. It gets no acknowledgements, because there are none, and must
    /// not wait for them.
    pub policy: P,
    /// Congestion control for each destination. `None`: sending is limited by the policy only.
    pub control: Option<DestinationControl>,
    /// Behaviour of the queue pair. The same at both ends.
    pub behaviour: DatagramConfig,
    /// Bytes of a full packet behind DETH and before ICRC, as the NIC counts its MTU: 256 to 32,576. The same at both
    /// ends.
    pub mtu_payload: u16,
    /// Framing, which determines the bytes of a packet on a link.
    pub framing: Framing,
    /// Number of paths that packets take. The same at both ends.
    pub paths: u16,
    /// Number of NIC ports, 1 to 64. All lead to every peer, and path `p` leaves by port `p % nic_ports`, unless a
    /// [`PortChange`](crate::PortChange) says otherwise.
    pub nic_ports: u8,
    /// Seed of the random stream.
    pub seed: u64,
    /// Longest round-trip time to any peer. [`RdQp::add_peer`](super::RdQp::add_peer) may raise it.
    pub rtt: Duration,
    /// Time that a NACK takes between host and NIC (T_pcie). Added twice to the time to wait for a requested packet.
    pub nack_delay: Duration,
}

impl<P> RdConfig<P> {
    /// Payload bytes of a full packet.
    pub fn capacity(&self) -> u16 {
        self.behaviour.capacity(self.mtu_payload)
    }

    /// Bytes of the longest message: 4 GiB, or less if that would be more packets than PSNs distinguish, which
    /// happens below 512 payload bytes a packet.
    pub fn most_message_bytes(&self) -> u64 {
        MAX_MESSAGE_BYTES.min(u64::from(self.capacity()) * MAX_PACKETS)
    }

    /// Panics if a field is out of its range. Configurations from outside must be checked before.
    pub(super) fn check(&self) {
        assert!(
            (MIN_MTU_PAYLOAD..=MAX_MTU_PAYLOAD).contains(&self.mtu_payload),
            "mtu_payload is {} bytes; allowed are {MIN_MTU_PAYLOAD} to {MAX_MTU_PAYLOAD}",
            self.mtu_payload
        );
        assert!((1..=64).contains(&self.nic_ports), "nic_ports is {}; allowed are 1 to 64", self.nic_ports);
        self.behaviour.validate().expect("checked with the scheme");
    }
}
