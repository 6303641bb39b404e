//! What a datagram queue pair is made from.

use pathweave_policy::{DatagramConfig, DestinationControl};
use pathweave_units::{Duration, HostId, QpNum};
use pathweave_wire::Framing;

use super::send::MAX_PACKETS;
use crate::config::{MAX_MTU_PAYLOAD, MIN_MTU_PAYLOAD};
use crate::work::MAX_MESSAGE_BYTES;

/// The other end of a flow: a datagram queue pair of another host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId {
    /// The host.
    pub host: HostId,
    /// The queue pair there.
    pub qp: QpNum,
}

/// What a datagram queue pair is made from.
#[derive(Clone, Debug)]
pub struct RdConfig<P> {
    /// Its number.
    pub num: QpNum,
    /// Decides when packets leave and on which path. It hears of no acknowledgements, for there are none: it must not
    /// wait for them.
    pub policy: P,
    /// Congestion control of each destination; `None`: it is sent to as fast as the policy lets.
    pub control: Option<DestinationControl>,
    /// How it behaves. Both ends alike.
    pub behaviour: DatagramConfig,
    /// Bytes of a full packet behind DETH and before ICRC, as the NIC counts its MTU; 256 to 32,576. Both ends alike.
    pub mtu_payload: u16,
    /// How many bytes a packet takes on a link.
    pub framing: Framing,
    /// Paths that packets take. Both ends alike.
    pub paths: u16,
    /// NIC ports, 1 to 64. All of them lead to every peer, and path `p` leaves by port `p % nic_ports`, unless told otherwise.
    pub nic_ports: u8,
    /// Seed of its random stream.
    pub seed: u64,
    /// Longest round-trip time to any peer; [`RdQp::add_peer`](super::RdQp::add_peer) may raise it.
    pub rtt: Duration,
    /// Time a NACK takes between host and NIC (T_pcie), which is added twice to the time a packet asked for is waited
    /// for.
    pub nack_delay: Duration,
}

impl<P> RdConfig<P> {
    /// Payload bytes of a full packet.
    pub fn capacity(&self) -> u16 {
        self.behaviour.capacity(self.mtu_payload)
    }

    /// Bytes of the longest message: 4 GiB, or less where that would be more packets than a PSN tells apart, which is with
    /// fewer than 512 bytes a packet.
    pub fn most_message_bytes(&self) -> u64 {
        MAX_MESSAGE_BYTES.min(u64::from(self.capacity()) * MAX_PACKETS)
    }

    /// Panics if a field is out of its range: a configuration is checked before it gets here.
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
