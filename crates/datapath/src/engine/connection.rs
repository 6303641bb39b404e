//! State of a connection in the loop, and the table of all connections.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use pathweave_transport::Opcode;
use pathweave_units::{Duration, HostId, PathId, QpNum, Time};

use super::address_pairs::Rails;
use super::path_monitor::PathProbe;
use crate::api::ProtectionDomain;
use crate::backend::Rail;
use crate::event_loop::outbound::SendRoute;
use crate::secure::{RequestId, Session};
use crate::shared::ConnectionShared;
use crate::state::ConnectionId;
use crate::stream::EventQueue;

/// Bits of a connection's number that are the slot; the others are the generation.
const SLOT_BITS: u32 = 16;
/// Low bits of a queue pair number that are its slot (see the endpoint). Connections are looked up by it.
const QP_SLOT_BITS: u32 = 18;

/// Silence of the peer after which the connection tries other address pairs.
const STALLED: Duration = Duration::from_ms(200);

/// State of a connection, as the loop sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The handshake is in progress.
    Opening,
    /// Packets flow.
    Open,
    /// The peer has closed the connection while local requests were in flight. They may be acknowledged until this
    /// time.
    PeerClosing { until: Time },
    /// Closed here: packets that were in flight are still acknowledged, and nothing else happens.
    Lingering {
        until: Time,
        /// Time at which to repeat Close; `None` once the peer has answered.
        next_close: Option<Time>,
    },
}

/// One connection.
pub(crate) struct Connection {
    pub(crate) id: ConnectionId,
    pub(crate) shared: Arc<ConnectionShared>,
    /// Event stream for the connection; `None`: its events go to its own handle.
    pub(crate) stream: Option<Arc<EventQueue>>,
    pub(crate) phase: Phase,
    /// Destination address of its packets, and the rail from which they leave.
    pub(crate) peer: SocketAddr,
    pub(crate) rail: Rail,
    /// All address pairs, if an end has several addresses.
    pub(crate) rails: Option<Box<Rails>>,
    /// Address under which admission control counts the connection.
    pub(crate) counted: IpAddr,
    pub(crate) qp: QpNum,
    /// The peer's queue pair, and the peer's number of the connection.
    pub(crate) remote_qp: QpNum,
    pub(crate) remote_id: u32,
    pub(crate) paths: u16,
    /// Session keys and numbers, set when the handshake is complete.
    pub(crate) session: Option<Session>,
    /// Protection domain, held until the queue pair is destroyed; `None`: the device's own.
    pub(crate) _domain: Option<ProtectionDomain>,
    /// Handshake request of the peer, until the peer has confirmed.
    pub(crate) request: Option<RequestId>,
    /// A PSN near those of the peer's data, and one near this end's: references to expand truncated PSNs.
    pub(crate) near_data: u64,
    pub(crate) near_answers: u64,
    /// Key and address of the peer's last WRITE.
    pub(crate) last_write: Option<(u64, u64)>,
    /// Handles of posted requests, oldest first.
    pub(crate) sends: VecDeque<(u64, Opcode)>,
    pub(crate) receives: VecDeque<u64>,
    /// Time of the last arrival from the peer.
    pub(crate) heard: Time,
    /// Time of the next probe of the peer or of a dead path.
    pub(crate) next_probe: Time,
    /// Number of probes sent. It selects the path of the next one, round robin.
    pub(crate) probes: u16,
    /// Number of dead paths when they were last probed, and the number of probes in a row with the same number.
    pub(crate) dead: (u16, u32),
    /// Probe results of each path.
    pub(crate) probed: Vec<PathProbe>,
    /// Packets refused since the handshake: damaged, invalid, or without memory to receive them.
    pub(crate) refused: u64,
}

impl Connection {
    /// Returns true if posted requests can still be carried out.
    pub(crate) fn takes_requests(&self) -> bool {
        matches!(self.phase, Phase::Open | Phase::PeerClosing { .. })
    }

    /// Returns true if both ends know that the connection has ended.
    pub(crate) fn has_parted(&self) -> bool {
        matches!(self.phase, Phase::Lingering { next_close: None, .. })
    }

    /// Maps `path` to a path of the connection. An answer echoes the path of the packet it answers, which can be any
    /// number without protection.
    #[inline]
    pub(crate) fn on_wire(&self, path: PathId) -> PathId {
        PathId(path.0 % self.paths)
    }

    /// Returns true if requests are outstanding and nothing has arrived for [`STALLED`].
    pub(crate) fn stalls(&self, now: Time) -> bool {
        !self.sends.is_empty() && now.saturating_since(self.heard) >= STALLED
    }

    /// Returns true if the peer has this address.
    #[inline]
    pub(crate) fn is_at(&self, ip: IpAddr) -> bool {
        self.peer.ip() == ip || self.rails.as_ref().is_some_and(|rails| rails.has_remote(ip))
    }

    /// Returns the route of a packet that is not an answer, on a path.
    #[inline]
    pub(crate) fn lane(&self, path: PathId) -> SendRoute {
        let (rail, to) =
            self.rails.as_ref().map_or((self.rail, self.peer), |rails| rails.pair_for_request(path));
        SendRoute { to, rail, path }
    }

    /// Returns the route of an answer to a packet of a path.
    #[inline]
    pub(crate) fn lane_back(&self, path: PathId) -> SendRoute {
        let (rail, to) =
            self.rails.as_ref().map_or((self.rail, self.peer), |rails| rails.pair_for_answer(path));
        SendRoute { to, rail, path }
    }

    /// Number by which the endpoint identifies the peer.
    pub(crate) fn host(&self) -> HostId {
        HostId(self.id.0)
    }
}

/// Connections by number.
pub(crate) struct Connections {
    /// First generation of each slot.
    first: u16,
    slots: Vec<Slot>,
    free: VecDeque<u16>,
    /// Slot of the connection of each queue pair.
    by_qp: Vec<u16>,
    len: usize,
}

struct Slot {
    generation: u16,
    connection: Option<Box<Connection>>,
}

impl Connections {
    /// `first`: first generation, random, so that the numbers of an earlier device at this address are not reused.
    pub(crate) fn new(first: u16) -> Self {
        // Number 0 is never assigned.
        Connections {
            first: first.max(1),
            slots: Vec::new(),
            free: VecDeque::new(),
            by_qp: Vec::new(),
            len: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of the next connection, or `None` if the table is full.
    pub(crate) fn next_id(&mut self) -> Option<ConnectionId> {
        if self.free.is_empty() {
            let index = u16::try_from(self.slots.len()).ok()?;
            self.slots.push(Slot { generation: self.first, connection: None });
            self.free.push_back(index);
        }
        let index = *self.free.front()?;
        Some(ConnectionId(
            u32::from(self.slots[usize::from(index)].generation) << SLOT_BITS | u32::from(index),
        ))
    }

    /// Inserts a connection whose number came from [`Connections::next_id`].
    pub(crate) fn insert(&mut self, connection: Connection) {
        let index = self.free.pop_front().expect("next_id has seen to it");
        debug_assert_eq!(connection.id.0 & 0xffff, u32::from(index), "the number is the one that was given");
        let qp = qp_slot(connection.qp);
        if self.by_qp.len() <= qp {
            self.by_qp.resize(qp + 1, 0);
        }
        self.by_qp[qp] = index;
        self.slots[usize::from(index)].connection = Some(Box::new(connection));
        self.len += 1;
    }

    pub(crate) fn remove(&mut self, id: ConnectionId) -> Option<Box<Connection>> {
        let index = (id.0 & 0xffff) as u16;
        let slot = self.slots.get_mut(usize::from(index))?;
        let connection = slot.connection.take_if(|connection| connection.id == id)?;
        slot.generation = slot.generation.wrapping_add(1).max(1);
        self.free.push_back(index);
        self.len -= 1;
        Some(connection)
    }

    #[inline]
    pub(crate) fn get(&self, id: ConnectionId) -> Option<&Connection> {
        let slot = self.slots.get((id.0 & 0xffff) as usize)?;
        slot.connection.as_deref().filter(|connection| connection.id == id)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        let slot = self.slots.get_mut((id.0 & 0xffff) as usize)?;
        slot.connection.as_deref_mut().filter(|connection| connection.id == id)
    }

    #[inline]
    pub(crate) fn of_qp(&mut self, qp: QpNum) -> Option<&mut Connection> {
        let index = *self.by_qp.get(qp_slot(qp))?;
        let slot = self.slots.get_mut(usize::from(index))?;
        slot.connection.as_deref_mut().filter(|connection| connection.qp == qp)
    }

    pub(crate) fn ids(&self) -> Vec<ConnectionId> {
        self.iter().map(|connection| connection.id).collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Connection> {
        self.slots.iter().filter_map(|slot| slot.connection.as_deref())
    }
}

fn qp_slot(qp: QpNum) -> usize {
    qp.index() & ((1 << QP_SLOT_BITS) - 1)
}
