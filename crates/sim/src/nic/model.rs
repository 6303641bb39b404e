//! Model of a host beyond NIC ports and connections: datagram queue pairs, and the delays of NIC and host.

use std::collections::{BTreeMap, VecDeque};

use pathweave_execution::ConnId;
use pathweave_policy::AnyPolicy;
use pathweave_transport::rd::{PeerId, RdHost, SideMessage};
use pathweave_units::{Bytes, Duration, HostId, PathId, QpNum, Rate, Time};
use pathweave_wire::Segment;

use super::{Cores, Engine, NicConfig, Reorder};

/// Bit that is set in the numbers of datagram queue pairs and clear in those of connections.
pub(crate) const DATAGRAMS: u32 = 1 << 23;

/// State of a side channel to another host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Channel {
    pub(crate) free_at: Time,
    pub(crate) latency: Duration,
    /// Number of messages sent so far.
    pub(crate) sent: u64,
}

/// State of a host beyond the transmitters of its NIC ports and its connections.
#[derive(Debug)]
pub(crate) struct NicModel {
    pub(crate) rd: RdHost<AnyPolicy>,
    /// Sending engine. `None`: the NIC sends at line rate with any number of contexts.
    pub(crate) engine: Option<Engine>,
    pub(crate) cores: Cores,
    /// Reorder buffer, if the NIC puts datagrams in order.
    pub(crate) reorder: Option<Reorder>,
    /// True if the latest turn at the NIC was that of datagrams. Datagrams and connections take turns.
    pub(crate) datagrams_next: bool,
    /// Explicit routes to each host, if sources choose paths.
    pub(crate) routes: BTreeMap<HostId, DatagramRoutes>,
    /// Retransmitted datagrams that the run has not recorded yet.
    pub(crate) sent_again: Vec<SentAgain>,
    /// Flows of the messages that each datagram queue pair sends to a peer, and expects from a peer, indexed by
    /// message number.
    pub(crate) outgoing: BTreeMap<(QpNum, PeerId), Vec<u32>>,
    pub(crate) incoming: BTreeMap<(QpNum, PeerId), Vec<u32>>,
    pub(crate) channels: BTreeMap<HostId, Channel>,
    /// Side messages of each host whose bytes have not arrived over the fabric, in the order of sending.
    pub(crate) side_messages: BTreeMap<HostId, VecDeque<SideMessage>>,
    /// Messages that wait for the end-to-end context of a connection, with the times of their posts. An entry exists
    /// while the context is in use.
    pub(crate) waiting: BTreeMap<ConnId, VecDeque<(u32, Time)>>,
}

/// Record of a retransmitted datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentAgain {
    pub(crate) at: Time,
    pub(crate) qp: QpNum,
    pub(crate) psn: u64,
    pub(crate) path: PathId,
    /// Flow of the message that the datagram belongs to.
    pub(crate) flow: u32,
}

impl NicModel {
    pub(crate) fn new(nic: Option<&NicConfig>, line_rate: Rate) -> Self {
        let reorders = nic.filter(|nic| nic.reorder_buffer > Bytes::ZERO);
        NicModel {
            rd: RdHost::default(),
            engine: nic.map(|nic| Engine::new(line_rate, nic.clone())),
            cores: Cores::default(),
            reorder: reorders.map(|nic| Reorder::new(nic.reorder_buffer.get())),
            datagrams_next: false,
            sent_again: Vec::new(),
            routes: BTreeMap::new(),
            outgoing: BTreeMap::new(),
            incoming: BTreeMap::new(),
            channels: BTreeMap::new(),
            side_messages: BTreeMap::new(),
            waiting: BTreeMap::new(),
        }
    }

    /// Returns true if a packet without data is addressed to a datagram queue pair.
    pub(crate) fn is_notified(&self, from: HostId, segment: &Segment) -> bool {
        let peer = PeerId { host: from, qp: segment.src_qp };
        self.rd.get(segment.dst_qp).is_some_and(|qp| qp.expected_psn(peer).is_some())
    }

    /// Returns the flow of the latest message whose number ends in these 16 bits, between a queue pair of this host
    /// and a peer.
    pub(crate) fn latest(messages: Option<&Vec<u32>>, msg_id: u16) -> Option<u32> {
        let messages = messages?;
        let last = messages.len().checked_sub(1)?;
        let index = last.checked_sub(usize::from((last as u16).wrapping_sub(msg_id)))?;
        messages.get(index).copied()
    }

    /// Returns the explicit route for datagrams on `path` that leave by NIC port `port`.
    pub(crate) fn route(&self, to: HostId, path: PathId, port: u8) -> PathId {
        self.routes.get(&to).map_or(path, |routes| routes.of(path, port))
    }
}

/// Explicit routes of datagrams to a host. A queue pair uses the same path identifiers for all its peers. They are
/// mapped onto the available routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DatagramRoutes {
    /// Number of routes, equal for each port.
    pub(crate) routes: u16,
    /// Number of paths that a queue pair uses on each port.
    pub(crate) paths: u16,
    /// NIC ports that lead to the host, as a bit set.
    pub(crate) ports: u64,
}

impl DatagramRoutes {
    fn of(self, path: PathId, port: u8) -> PathId {
        let ports = self.ports.count_ones().max(1);
        let place = (self.ports & ((1 << port) - 1)).count_ones();
        let (routes, paths) = ((u32::from(self.routes) / ports).max(1), u32::from(self.paths).max(1));
        let inner = u32::from(path.0) / ports;
        let route = if routes > paths { inner * routes / paths % routes } else { inner % routes };
        PathId((route * ports + place) as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_spread_over_the_routes_of_their_port() {
        let of = |routes, paths, ports, path, port| {
            DatagramRoutes { routes, paths, ports }.of(PathId(path), port).0
        };
        // One port: 4 paths over 8 routes, and 8 over 3.
        assert_eq!([0, 1, 2, 3].map(|path| of(8, 4, 1, path, 0)), [0, 2, 4, 6]);
        assert_eq!([0, 1, 2, 3, 7].map(|path| of(3, 8, 1, path, 0)), [0, 1, 2, 0, 1]);
        // Ports 0 and 2 lead to the host, with four routes each: even routes by port 0, odd ones by port 2, on every
        // path.
        assert_eq!([0, 1, 2, 3].map(|path| of(8, 2, 0b101, path, 0)), [0, 0, 4, 4]);
        assert_eq!([0, 1, 2, 3].map(|path| of(8, 2, 0b101, path, 2)), [1, 1, 5, 5]);
    }
}
