//! What a datagram endpoint counts.

use std::time::Duration;

use pathweave_transport::rd::RdCounters;
use pathweave_units::Rate;

use super::address_vector::Peer;
pub use super::tcp::SideStats;
use crate::stats::{SendCounters, SendError};

/// A datagram endpoint, as it is now.
#[derive(Clone, Debug)]
pub struct RdmStats {
    /// Peers it knows.
    pub peers: usize,
    /// Of these, those with which keys are agreed on.
    pub associations: usize,
    /// Packets, NACKs, flows scanned, messages.
    pub counters: RdCounters,
    /// The side channel.
    pub side: SideStats,
    /// What was handed to the system.
    pub sent: SendCounters,
    /// The last batch that the system refused for good.
    pub last_send_error: Option<SendError>,
    /// Datagrams that arrived, of whatever kind.
    pub received_datagrams: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Datagrams dropped: damaged, foreign, forged, replayed or senseless.
    pub refused_datagrams: u64,
    /// Datagrams that arrived marked Congestion Experienced.
    pub marked_datagrams: u64,
    /// The lowest rate at which a destination is sent to at present; `None` without congestion control.
    pub slowest: Option<Rate>,
    /// Packets dropped because no receive was posted and what may be kept was used up; their senders were told to wait.
    pub no_room_drops: u64,
    /// Bugs that struck over the packet of one peer, and cost no other. Each is in the log, at level error.
    pub panics: u64,
    /// Peers whose messages wait for a receive or room here.
    pub waiting_peers: usize,
    /// Bytes kept of messages for which no receive is posted.
    pub kept_bytes: u64,
    /// Data packets sent on each path, retransmissions included, and the path's UDP source port.
    pub paths: Vec<RdmPath>,
    /// Period of the scan.
    pub scan_period: Duration,
    /// Turns of the loop, and how often it slept.
    pub turns: u64,
    /// Times it slept.
    pub sleeps: u64,
}

/// A path of a datagram endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RdmPath {
    /// UDP source port; 0 where the backend has none.
    pub source_port: u16,
    /// Data packets sent, retransmissions included.
    pub packets: u64,
}

/// A peer of a datagram endpoint, as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RdmPeer {
    /// Its name.
    pub peer: Peer,
    /// How far this end has come with it.
    pub state: RdmPeerState,
    /// For how long nothing has been heard of it and nothing posted to it; `None` where nothing ever was.
    pub idle: Option<Duration>,
    /// Messages to it that are not done.
    pub outstanding: usize,
}

/// How far an endpoint has come with a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RdmPeerState {
    /// It is known by its address alone.
    Known,
    /// Keys are being agreed on.
    Opening,
    /// Keys are agreed on.
    Open,
}
