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
    /// Where sources choose explicit routes: how many paths of datagrams there are to each host, and of how many the
    /// scheme knows.
    pub(crate) routes: BTreeMap<HostId, (u16, u16)>,
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

    /// The route that stands for a path of datagrams. A queue pair counts the same paths to all its peers; they are
    /// spread over the routes there are.
    pub(crate) fn route(&self, to: HostId, path: PathId) -> PathId {
        match self.routes.get(&to) {
            Some(&(routes, paths)) if routes > paths => {
                PathId((u32::from(path.0) * u32::from(routes) / u32::from(paths)) as u16)
            }
            Some(&(routes, _)) => PathId(path.0 % routes.max(1)),
            None => path,
        }
    }
}
