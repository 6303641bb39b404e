//! Peers on this host, and the lanes shared with them.
//!
//! An endpoint that dials a peer at an address of this host sends the name of its meeting socket, and a
//! ticket. If the peer runs on the same kernel, it makes a lane and hands it over through that socket. From
//! its first message on, all messages in both directions use the lane. The dialling endpoint finds the lane
//! by its ticket, before that first message. If the sockets cannot meet, the peer answers over the network.

use std::collections::{HashSet, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};

use pathweave_shm::{
    CannotShare, CopyMethod, Listener, ListenerName, OfferedMemory, Received, RemoteLocation, ShmChannel,
    Ticket, WakeEvents, Watch, boot_id,
};
use pathweave_tagged::{PeerId, Piece, Remote, RequestId};
use slab::Slab;

use super::handshake::Here;
use super::local_thread::{self, LaneKey, Watched};
use super::relay::Relay;
use crate::ffi::cores;
use crate::log::{Level, log};
use crate::object::Map;
use crate::settings::{Progress, Settings, SharedMemory};

/// Number of polls before a yield if each rank has a core: about half a millisecond.
const LOOKS: u64 = 8192;
/// Number of polls before a yield if ranks share cores: about as long as a response takes.
const LOOKS_WITHOUT_CORES: u64 = 64;

/// Outgoing items that wait for room, or for the peer's pull of earlier data.
#[derive(Debug)]
pub(super) enum Waiting {
    /// A message.
    Message { bytes: Box<[u8]>, request: RequestId },
    /// A READ of memory that this process cannot copy by itself.
    Ask { id: u32, from: RemoteLocation, len: u64 },
    /// A WRITE whose bytes, or remaining bytes, go through the lane.
    Put { id: u32, to: RemoteLocation, from: Piece },
    /// A WRITE that the peer executes by copying, with the address of its bytes here.
    Pull { id: u32, to: RemoteLocation, from: Piece, start: u64 },
    /// Notice that the memory behind a key was withdrawn.
    Withdrawn { key: u64 },
}

/// A copy from or to memory of the peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Copy {
    /// Address and key in the peer's memory.
    pub(super) remote: Remote,
    pub(super) local: Piece,
    pub(super) request: RequestId,
}

/// Kind of item that enters the ring next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Own messages and requests, in their order.
    Said,
    /// Responses to the peer's requests.
    Answers,
}

impl Turn {
    pub(super) fn other(self) -> Self {
        match self {
            Turn::Said => Turn::Answers,
            Turn::Answers => Turn::Said,
        }
    }
}

/// A peer on this host, and the state of its lane.
#[derive(Debug)]
pub(super) struct LocalPeer {
    pub(super) peer: PeerId,
    pub(super) lane: ShmChannel,
    pub(super) waiting: VecDeque<Waiting>,
    /// Copies from the peer's memory, in order.
    pub(super) copies: VecDeque<Copy>,
    /// Keys of the peer's memory that were withdrawn while this endpoint still used them.
    pub(super) withdrawn: HashSet<u64>,
    /// Requests between this endpoint and the peer.
    pub(super) relay: Relay,
    pub(super) turn: Turn,
    pub(super) health: Health,
    pub(super) standing: LaneState,
}

/// State of a lane in relation to its link. Once settled, the lane carries the link until the lane is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LaneState {
    New,
    Settled,
}

/// Condition of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Health {
    Good,
    /// The peer has violated the protocol.
    Broken,
}

/// Meeting socket of this endpoint, and the thread that serves it.
struct Rendezvous {
    kernel: [u8; 16],
    meeting: ListenerName,
    local: Vec<IpAddr>,
    watch: Arc<Watch>,
    stop: Arc<AtomicBool>,
    /// Meeting socket, until it is handed to the thread.
    listener: Option<Listener>,
    thread: Option<JoinHandle<()>>,
}

/// All lanes of an endpoint.
pub(super) struct LocalPeers {
    lanes: Slab<LocalPeer>,
    /// Keys of all lanes, for fast iteration.
    keys: Vec<LaneKey>,
    /// Settled lanes, by peer.
    active: Map<PeerId, LaneKey>,
    /// Buffer of the last message taken.
    mail: Vec<u8>,
    /// Number of cores of this host.
    cores: usize,
    /// Number of bytes that this pass may still copy.
    pub(super) budget: u64,
    copies: CopyMethod,
    /// `None` if memory is not shared.
    reception: Option<Rendezvous>,
}

impl LocalPeers {
    /// Opens a meeting socket, unless memory sharing is off.
    pub(super) fn open(settings: &Settings) -> Self {
        let wanted = settings.shared_memory != SharedMemory::Off && settings.progress != Progress::Caller;
        let copies = match settings.shared_memory {
            SharedMemory::Messages => CopyMethod::ByPeer,
            SharedMemory::On | SharedMemory::Off => CopyMethod::ByKernel,
        };
        let reception = if wanted { Rendezvous::open() } else { None };
        let (lanes, keys, settled, mail) = (Slab::new(), Vec::new(), Map::default(), Vec::new());
        LocalPeers { lanes, keys, active: settled, mail, cores: cores(), budget: 0, copies, reception }
    }

    /// Starts the watching thread.
    pub(super) fn start(&mut self, endpoint: Weak<impl Watched + 'static>) {
        let Some(reception) = &mut self.reception else { return };
        let Some(door) = reception.listener.take() else { return };
        let (watch, stop) = (reception.watch.clone(), reception.stop.clone());
        let body = move || local_thread::run(&endpoint, &watch, &door, &stop);
        let named = thread::Builder::new().name("pathweave-watch".into());
        match pathweave_datapath::with_signals_blocked(|| named.spawn(body)) {
            Ok(thread) => reception.thread = Some(thread),
            Err(error) => {
                log(Level::Warn, format_args!("no memory is shared with ranks on this host: {error}"));
                self.reception = None;
            }
        }
    }

    /// Returns the data that a peer at this address needs to share memory.
    pub(super) fn rendezvous_for(&self, address: IpAddr) -> Option<Here> {
        let reception = self.reception.as_ref()?;
        if !address.is_loopback() && !reception.local.contains(&address) {
            return None;
        }
        let ticket = Ticket::new().ok()?;
        Some(Here { kernel: reception.kernel, meeting: reception.meeting, ticket })
    }

    /// Makes a lane to a peer that has sent its meeting data.
    pub(super) fn offer(&mut self, peer: PeerId, here: &Here) -> Option<LaneKey> {
        let reception = self.reception.as_ref()?;
        if here.kernel != reception.kernel {
            return None;
        }
        match ShmChannel::offer(here.meeting, here.ticket, self.copies) {
            Ok(lane) => self.insert(peer, lane),
            Err(CannotShare::NotFound) => None,
            Err(apart) => {
                log(
                    Level::Info,
                    format_args!("a peer on this host is talked to over the network: {apart:?}"),
                );
                None
            }
        }
    }

    /// Accepts a lane that a peer has made.
    pub(super) fn take(&mut self, peer: PeerId, brought: OfferedMemory) -> Option<LaneKey> {
        match ShmChannel::take(brought, self.copies) {
            Ok(lane) => self.insert(peer, lane),
            Err(error) => {
                log(Level::Warn, format_args!("memory that a peer has handed over cannot be used: {error}"));
                None
            }
        }
    }

    fn insert(&mut self, peer: PeerId, lane: ShmChannel) -> Option<LaneKey> {
        let watch = &self.reception.as_ref()?.watch;
        let entry = self.lanes.vacant_entry();
        let key = LaneKey(entry.key());
        watch.add(&lane, local_thread::token(key)).ok()?;
        log(Level::Info, format_args!("memory is shared with a peer on this host"));
        entry.insert(LocalPeer {
            peer,
            lane,
            waiting: VecDeque::new(),
            copies: VecDeque::new(),
            withdrawn: HashSet::new(),
            relay: Relay::new(),
            turn: Turn::Said,
            health: Health::Good,
            standing: LaneState::New,
        });
        self.keys.push(key);
        Some(key)
    }

    /// Removes a lane.
    pub(super) fn remove(&mut self, key: LaneKey) {
        if let Some(neighbour) = self.lanes.try_remove(key.0) {
            neighbour.lane.announce_close();
            self.keys.retain(|known| *known != key);
            self.active.retain(|_, known| *known != key);
        }
    }

    /// Marks a lane as the carrier of its link, until the lane is closed.
    pub(super) fn activate(&mut self, key: LaneKey) {
        if let Some(neighbour) = self.lanes.get_mut(key.0) {
            neighbour.standing = LaneState::Settled;
            self.active.insert(neighbour.peer, key);
        }
    }

    /// Returns the lane of a peer through which a message can be sent at once, with no other item before it.
    pub(super) fn sendable_now(&mut self, peer: PeerId) -> Option<&mut LocalPeer> {
        let neighbour = self.lanes.get_mut(self.active.get(&peer)?.0)?;
        let idle = neighbour.can_send_now() && neighbour.health == Health::Good;
        idle.then_some(neighbour)
    }

    pub(super) fn get(&self, key: LaneKey) -> Option<&LocalPeer> {
        self.lanes.get(key.0)
    }

    pub(super) fn get_mut(&mut self, key: LaneKey) -> Option<&mut LocalPeer> {
        self.lanes.get_mut(key.0)
    }

    /// Returns the lane at an index of the list of all lanes.
    pub(super) fn nth(&self, at: usize) -> Option<LaneKey> {
        self.keys.get(at).copied()
    }

    /// Takes the next message of a lane into [`mail`](LocalPeers::mail).
    pub(super) fn receive(&mut self, key: LaneKey) -> Received {
        match self.lanes.get_mut(key.0) {
            Some(LocalPeer { health: Health::Good, lane, .. }) => lane.receive(&mut self.mail),
            Some(_) => Received::Broken,
            None => Received::Nothing,
        }
    }

    /// Returns the buffer whose first bytes are the last message taken.
    pub(super) fn received(&self) -> &[u8] {
        &self.mail
    }

    /// Returns true if there is work for a lane.
    pub(super) fn is_busy(&self, key: LaneKey) -> bool {
        let busy = |n: &LocalPeer| n.lane.has_message() || n.is_waiting() || n.health == Health::Broken;
        self.lanes.get(key.0).is_some_and(busy)
    }

    /// Returns the number of consecutive unsuccessful polls after which an application yields its core. If
    /// each of the ranks that share memory has a core, the awaited rank does not need this one. On a busy
    /// host, a yielded core comes back late.
    pub(super) fn looks(&self) -> u64 {
        match self.keys.len() {
            0 => 0,
            lanes if lanes < self.cores => LOOKS,
            _ => LOOKS_WITHOUT_CORES,
        }
    }

    /// Returns true if there is any lane.
    pub(super) fn is_any(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Returns true if a message has arrived and was not taken.
    pub(super) fn has_mail(&self) -> bool {
        self.lanes.iter().any(|(_, neighbour)| neighbour.lane.has_message())
    }

    /// Returns true if any item waits for room, or any copy for its turn.
    pub(super) fn is_waiting(&self) -> bool {
        self.lanes.iter().any(|(_, neighbour)| neighbour.is_waiting())
    }

    /// Returns true if there is anything to copy.
    pub(super) fn is_copying(&self) -> bool {
        self.lanes.iter().any(|(_, neighbour)| !neighbour.copies.is_empty())
    }

    /// Makes peers ring the bell from now on.
    pub(super) fn arm_bells(&self) {
        for (_, neighbour) in &self.lanes {
            let until =
                if neighbour.is_waiting() { WakeEvents::UntilMailOrRoom } else { WakeEvents::Messages };
            neighbour.lane.arm_wakeup(until);
        }
    }

    /// Wakes the watching thread to handle waiting items.
    pub(super) fn wake(&self) {
        if let Some(reception) = &self.reception {
            reception.watch.wake();
        }
    }
}

impl Drop for LocalPeers {
    fn drop(&mut self) {
        self.lanes.iter().for_each(|(_, neighbour)| neighbour.lane.announce_close());
    }
}

impl LocalPeer {
    /// Returns true if any item waits for room or for its turn.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty() || !self.copies.is_empty() || self.relay.next().is_some()
    }

    /// Returns true if a message would be sent at once, with no other item before it.
    pub(super) fn can_send_now(&self) -> bool {
        self.waiting.is_empty() && !self.relay.is_pulling()
    }

    /// Records that the peer has violated the protocol.
    pub(super) fn mark_broken(&mut self) {
        self.health = Health::Broken;
    }
}

impl Rendezvous {
    fn open() -> Option<Self> {
        let opened = Listener::open().and_then(|door| {
            let watch = Watch::new()?;
            watch.add(&door, local_thread::LISTENER)?;
            Ok((door, watch))
        });
        let (door, watch) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                log(Level::Warn, format_args!("no memory is shared with ranks on this host: {error}"));
                return None;
            }
        };
        Some(Rendezvous {
            kernel: boot_id()?,
            meeting: door.name(),
            local: pathweave_door::interfaces().into_iter().map(|interface| interface.address).collect(),
            watch: Arc::new(watch),
            stop: Arc::default(),
            listener: Some(door),
            thread: None,
        })
    }
}

impl Drop for Rendezvous {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.watch.wake();
        if let Some(thread) =
            self.thread.take().filter(|thread| thread.thread().id() != thread::current().id())
        {
            let _ = thread.join();
        }
    }
}
