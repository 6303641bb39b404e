//! A host beyond its NIC ports and connections: datagram queue pairs, and what the NIC and the host themselves cost.

use std::collections::{BTreeMap, VecDeque};

use pathweave_execution::ConnId;
use pathweave_policy::AnyPolicy;
use pathweave_transport::rd::{PeerId, RdHost};
use pathweave_units::{Bytes, Duration, HostId, PathId, QpNum, Rate, Time};
use pathweave_wire::Segment;

use super::{Cores, Engine, NicConfig, Reorder};

/// Numbers of datagram queue pairs have this bit; those of connections do not.
pub(crate) const DATAGRAMS: u32 = 1 << 23;

/// A side channel to another host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Channel {
    pub(crate) free_at: Time,
    pub(crate) latency: Duration,
    /// Messages so far.
    pub(crate) sent: u64,
}

/// What a host has beyond the transmitters of its NIC ports and its connections.
#[derive(Debug)]
pub(crate) struct NicModel {
    pub(crate) rd: RdHost<AnyPolicy>,
    /// `None`: the NIC sends at line rate whatever it has to keep.
    pub(crate) engine: Option<Engine>,
    pub(crate) cores: Cores,
    /// Where the NIC puts datagrams in order.
    pub(crate) reorder: Option<Reorder>,
    /// Datagrams and connections take turns at the NIC: whose it was.
    pub(crate) datagrams_next: bool,
    /// The explicit routes to each host, if sources choose routes.
    pub(crate) routes: BTreeMap<HostId, DatagramRoutes>,
    /// Datagrams that were sent again, until the run takes note.
    pub(crate) sent_again: Vec<SentAgain>,
    /// Flows of the messages that each datagram queue pair here sends to a peer, and expects of one, by their number.
    pub(crate) outgoing: BTreeMap<(QpNum, PeerId), Vec<u32>>,
    pub(crate) incoming: BTreeMap<(QpNum, PeerId), Vec<u32>>,
    pub(crate) channels: BTreeMap<HostId, Channel>,
    /// Messages that wait for an end-to-end context, with when they were posted; there while it is in use.
    pub(crate) waiting: BTreeMap<ConnId, VecDeque<(u32, Time)>>,
}

/// A datagram that was sent again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentAgain {
    pub(crate) at: Time,
    pub(crate) qp: QpNum,
    pub(crate) psn: u64,
    pub(crate) path: PathId,
    /// Its message.
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
            waiting: BTreeMap::new(),
        }
    }

    /// Whether a packet without data is for a datagram queue pair.
    pub(crate) fn is_notified(&self, from: HostId, segment: &Segment) -> bool {
        let peer = PeerId { host: from, qp: segment.src_qp };
        self.rd.get(segment.dst_qp).is_some_and(|qp| qp.expected_psn(peer).is_some())
    }

    /// The flow of a message of these 16 bits between a queue pair here and a peer: the latest there is.
    pub(crate) fn latest(messages: Option<&Vec<u32>>, msg_id: u16) -> Option<u32> {
        let messages = messages?;
        let last = messages.len().checked_sub(1)?;
        let index = last.checked_sub(usize::from((last as u16).wrapping_sub(msg_id)))?;
        messages.get(index).copied()
    }

    /// The route that stands for a path of datagrams that leave by a NIC port.
    pub(crate) fn route(&self, to: HostId, path: PathId, port: u8) -> PathId {
        self.routes.get(&to).map_or(path, |routes| routes.of(path, port))
    }
}

/// Explicit routes of datagrams to a host. A queue pair counts the same paths to all its peers; they are spread over the routes
/// that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DatagramRoutes {
    /// Number of routes: as many by each port.
    pub(crate) routes: u16,
    /// Number of paths of a queue pair by each port.
    pub(crate) paths: u16,
    /// NIC ports that lead there, a bit each.
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
        // Ports 0 and 2 lead there, with four routes each: even ones by port 0, odd ones by port 2, whatever the path is.
        assert_eq!([0, 1, 2, 3].map(|path| of(8, 2, 0b101, path, 0)), [0, 0, 4, 4]);
        assert_eq!([0, 1, 2, 3].map(|path| of(8, 2, 0b101, path, 2)), [1, 1, 5, 5]);
    }
}
