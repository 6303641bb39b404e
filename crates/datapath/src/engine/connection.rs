//! A connection as the loop knows it, and all of them by number.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use pathweave_transport::Opcode;
use pathweave_units::{Duration, HostId, PathId, QpNum, Time};

use super::rails::Rails;
use super::watch::PathProbe;
use crate::api::ProtectionDomain;
use crate::backend::Rail;
use crate::event_loop::outbound::Lane;
use crate::secure::{RequestId, Session};
use crate::shared::ConnectionShared;
use crate::state::ConnectionId;
use crate::stream::Stream;

/// Slots of the table; the rest of a number is the generation.
const SLOT_BITS: u32 = 16;
/// Queue pair numbers are slots in their low bits (see the endpoint), which is what they are looked up by.
const QP_SLOT_BITS: u32 = 18;

/// Silence after which other ways are looked for.
const STALLED: Duration = Duration::from_ms(200);

/// How far a connection has come, as the loop sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The handshake is under way.
    Opening,
    /// Packets flow.
    Open,
    /// The peer has closed it while requests of ours were on the way: they may yet be acknowledged, until then.
    PeerClosing { until: Time },
    /// Closed here: nothing of it is left but that packets which were on the way are acknowledged.
    Lingering {
        until: Time,
        /// When to say Close again; `None` once the peer has answered.
        next_close: Option<Time>,
    },
}

/// A connection.
pub(crate) struct Connection {
    pub(crate) id: ConnectionId,
    pub(crate) shared: Arc<ConnectionShared>,
    /// Where everything that happens on it is told; `None`: to its own handle.
    pub(crate) stream: Option<Arc<Stream>>,
    pub(crate) phase: Phase,
    /// Where its packets go, and from where.
    pub(crate) peer: SocketAddr,
    pub(crate) rail: Rail,
    /// Where else, if an end has several addresses.
    pub(crate) rails: Option<Box<Rails>>,
    /// The address that it is counted under.
    pub(crate) counted: IpAddr,
    pub(crate) qp: QpNum,
    /// The peer's queue pair and its number of the connection.
    pub(crate) remote_qp: QpNum,
    pub(crate) remote_id: u32,
    pub(crate) paths: u16,
    /// There once the handshake is done.
    pub(crate) session: Option<Session>,
    /// Its protection domain, kept until its queue pair is gone; `None`: the device's own.
    pub(crate) _domain: Option<ProtectionDomain>,
    /// The request it came from, while the peer's sign is awaited.
    pub(crate) request: Option<RequestId>,
    /// A PSN near those of the peer's data, and one near our own.
    pub(crate) near_data: u64,
    pub(crate) near_answers: u64,
    /// Where the peer's last WRITE went.
    pub(crate) last_write: Option<(u64, u64)>,
    /// Handles of what is posted, oldest first.
    pub(crate) sends: VecDeque<(u64, Opcode)>,
    pub(crate) receives: VecDeque<u64>,
    /// When anything last came from the peer.
    pub(crate) heard: Time,
    /// When the peer or a dead path is asked next.
    pub(crate) next_probe: Time,
    /// Counts probes, to try one path after the other.
    pub(crate) probes: u16,
    /// How many paths were dead when they were last probed, and how often so many were.
    pub(crate) dead: (u16, u32),
    /// What probes of each path have told.
    pub(crate) probed: Vec<PathProbe>,
    /// Packets refused since the handshake: damaged, senseless or without place.
    pub(crate) refused: u64,
}

impl Connection {
    /// Whether what is posted can still be done.
    pub(crate) fn takes_requests(&self) -> bool {
        matches!(self.phase, Phase::Open | Phase::PeerClosing { .. })
    }

    /// Whether its end is known to both.
    pub(crate) fn has_parted(&self) -> bool {
        matches!(self.phase, Phase::Lingering { next_close: None, .. })
    }

    /// The path a packet that names `path` takes: answers echo the path of what they answer, which without protection may
    /// be any number.
    #[inline]
    pub(crate) fn on_wire(&self, path: PathId) -> PathId {
        PathId(path.0 % self.paths)
    }

    /// Whether nothing comes back although something should.
    pub(crate) fn stalls(&self, now: Time) -> bool {
        !self.sends.is_empty() && now.saturating_since(self.heard) >= STALLED
    }

    /// Whether its peer is at this address.
    #[inline]
    pub(crate) fn is_at(&self, ip: IpAddr) -> bool {
        self.peer.ip() == ip || self.rails.as_ref().is_some_and(|rails| rails.has_remote(ip))
    }

    /// By which way what this end says itself leaves on a path.
    #[inline]
    pub(crate) fn lane(&self, path: PathId) -> Lane {
        let (rail, to) = self.rails.as_ref().map_or((self.rail, self.peer), |rails| rails.way(path));
        Lane { to, rail, path }
    }

    /// By which way what answers a packet of a path does.
    #[inline]
    pub(crate) fn lane_back(&self, path: PathId) -> Lane {
        let (rail, to) = self.rails.as_ref().map_or((self.rail, self.peer), |rails| rails.way_back(path));
        Lane { to, rail, path }
    }

    /// The endpoint's name for the peer.
    pub(crate) fn host(&self) -> HostId {
        HostId(self.id.0)
    }
}

/// Connections by number.
pub(crate) struct Connections {
    /// Where generations begin.
    first: u16,
    slots: Vec<Slot>,
    free: VecDeque<u16>,
    /// Slot of each queue pair.
    by_qp: Vec<u16>,
    len: usize,
}

struct Slot {
    generation: u16,
    connection: Option<Box<Connection>>,
}

impl Connections {
    /// `first`: where numbers begin, at random, so that those of a device that was here before are not given again.
    pub(crate) fn new(first: u16) -> Self {
        // Number 0 names nothing.
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

    /// The number the next connection will have; `None` if there are too many.
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

    /// Takes in a connection whose number [`Connections::next_id`] gave.
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
