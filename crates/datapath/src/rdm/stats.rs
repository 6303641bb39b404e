//! Statistics of a datagram endpoint.

use std::time::Duration;

use pathweave_transport::rd::RdCounters;
use pathweave_units::Rate;

use super::address_vector::Peer;
pub use super::tcp::SideStats;
use crate::stats::{SendCounters, SendError};

/// Statistics and present state of a datagram endpoint.
#[derive(Clone, Debug)]
pub struct RdmStats {
    /// Number of known peers.
    pub peers: usize,
    /// Number of these with an association.
    pub associations: usize,
    /// Packets, NACKs, scanned flows, messages.
    pub counters: RdCounters,
    /// Statistics of the side channel.
    pub side: SideStats,
    /// Batches handed to the system.
    pub sent: SendCounters,
    /// Last batch that the system refused permanently.
    pub last_send_error: Option<SendError>,
    /// Datagrams received, of any kind.
    pub received_datagrams: u64,
    /// Bytes of these datagrams.
    pub received_bytes: u64,
    /// Datagrams dropped: damaged, foreign, forged, replayed or invalid.
    pub refused_datagrams: u64,
    /// Datagrams received with the mark Congestion Experienced.
    pub marked_datagrams: u64,
    /// Lowest present rate of all destinations; `None` without congestion control.
    pub slowest: Option<Rate>,
    /// Packets dropped because no receive was posted and the store for such messages was full. Their senders wait.
    pub no_room_drops: u64,
    /// Panics while processing a packet of one peer. Each ended that peer's association only, and is in the log at
    /// level error.
    pub panics: u64,
    /// Peers whose messages wait for a receive or for room here.
    pub waiting_peers: usize,
    /// Bytes stored of messages for which no receive is posted.
    pub kept_bytes: u64,
    /// Data packets sent on each path, and the path's UDP source port.
    pub paths: Vec<RdmPath>,
    /// Period of the scan.
    pub scan_period: Duration,
    /// Turns of the loop.
    pub turns: u64,
    /// Sleeps of the loop.
    pub sleeps: u64,
}

/// A path of a datagram endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RdmPath {
    /// UDP source port; 0 if the backend has none.
    pub source_port: u16,
    /// Data packets sent, retransmissions included.
    pub packets: u64,
}

/// A peer of a datagram endpoint, in its present state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RdmPeer {
    /// Name of the peer.
    pub peer: Peer,
    /// Progress of its association.
    pub state: RdmPeerState,
    /// Time since anything was last received from it or posted to it; `None` if nothing ever was.
    pub idle: Option<Duration>,
    /// Outstanding messages to it.
    pub outstanding: usize,
}

/// State of an endpoint's association with a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RdmPeerState {
    /// The peer has no association.
    Known,
    /// An association is being negotiated.
    Opening,
    /// An association is established.
    Open,
}
