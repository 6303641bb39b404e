//! Peers on this host: the lanes that are shared with them.
//!
//! Who dials a peer at an address of this host says where it can be met, with a ticket. The peer, if it is on the same kernel,
//! makes a lane and hands it over there, and from its first message on all messages go through it, both ways; who dialled hears
//! of the lane by its ticket, before that first message. Where there is no meeting the peer answers over the network.

use std::collections::{HashSet, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};

use pathweave_shm::{Apart, Brought, Copies, Heard, Lane, Meeting, Name, Place, Rest, Ticket, Watch, kernel};
use pathweave_tagged::{PeerId, Piece, Remote, RequestId};
use slab::Slab;

use super::handshake::Here;
use super::relay::Relay;
use super::watch::{self, LaneKey, Watched};
use crate::ffi::{cores, interfaces};
use crate::log::{Level, say};
use crate::object::Map;
use crate::settings::{Progress, Settings, SharedMemory};

/// About half a millisecond.
const LOOKS: u64 = 8192;
/// About as long as an answer takes.
const LOOKS_WITHOUT_CORES: u64 = 64;

/// Notes that wait for room, or for what the peer pulls before them.
#[derive(Debug)]
pub(super) enum Waiting {
    /// A message.
    Message { bytes: Box<[u8]>, request: RequestId },
    /// A READ of what this process cannot copy by itself.
    Ask { id: u32, from: Place, len: u64 },
    /// A WRITE whose bytes go through the lane, or the rest of it.
    Put { id: u32, to: Place, from: Piece },
    /// A WRITE that the peer is to carry out, and where its bytes are here.
    Pull { id: u32, to: Place, from: Piece, start: u64 },
    /// Memory that was open under a key is not any more.
    Withdrawn { key: u64 },
}

/// A copy from or to memory of the peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Copy {
    /// In the peer's memory.
    pub(super) remote: Remote,
    pub(super) local: Piece,
    pub(super) request: RequestId,
}

/// Whose turn it is to go into the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// What waits, in the order in which it was said.
    Said,
    /// Answers.
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

/// A peer, and what is shared with it.
#[derive(Debug)]
pub(super) struct Neighbour {
    pub(super) peer: PeerId,
    pub(super) lane: Lane,
    pub(super) waiting: VecDeque<Waiting>,
    /// Pieces to be copied from there, in order.
    pub(super) copies: VecDeque<Copy>,
    /// Keys of the peer's memory that were withdrawn while this end had not given them up.
    pub(super) withdrawn: HashSet<u64>,
    /// The request of the peer.
    pub(super) relay: Relay,
    pub(super) turn: Turn,
    pub(super) health: Health,
    pub(super) standing: Standing,
}

/// Whether a lane is known to be what the link with its peer goes over; it is as long as there is the lane, then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    New,
    Settled,
}

/// Whether a lane can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Health {
    Good,
    /// The peer has broken the rules.
    Broken,
}

/// Where this endpoint can be met.
struct Reception {
    kernel: [u8; 16],
    meeting: Name,
    local: Vec<IpAddr>,
    watch: Arc<Watch>,
    stop: Arc<AtomicBool>,
    /// Handed to the thread when it starts.
    door: Option<Meeting>,
    thread: Option<JoinHandle<()>>,
}

/// All lanes of an endpoint.
pub(super) struct Neighbours {
    lanes: Slab<Neighbour>,
    /// Keys of all lanes, to look through them quickly.
    keys: Vec<LaneKey>,
    /// Those that are settled, by peer.
    settled: Map<PeerId, LaneKey>,
    /// The message that was heard last.
    mail: Vec<u8>,
    /// Cores of this host.
    cores: usize,
    /// Bytes that may yet be copied in this pass.
    pub(super) budget: u64,
    copies: Copies,
    /// `None`: memory is not shared.
    reception: Option<Reception>,
}

impl Neighbours {
    /// Opens a place to be met at, unless memory is not to be shared.
    pub(super) fn open(settings: &Settings) -> Self {
        let wanted = settings.shared_memory != SharedMemory::Off && settings.progress != Progress::Caller;
        let copies = match settings.shared_memory {
            SharedMemory::Messages => Copies::ByPeer,
            SharedMemory::On | SharedMemory::Off => Copies::ByKernel,
        };
        let reception = if wanted { Reception::open() } else { None };
        let (lanes, keys, settled, mail) = (Slab::new(), Vec::new(), Map::default(), Vec::new());
        Neighbours { lanes, keys, settled, mail, cores: cores(), budget: 0, copies, reception }
    }

    /// Begins to watch.
    pub(super) fn start(&mut self, endpoint: Weak<impl Watched + 'static>) {
        let Some(reception) = &mut self.reception else { return };
        let Some(door) = reception.door.take() else { return };
        let (watch, stop) = (reception.watch.clone(), reception.stop.clone());
        let body = move || watch::run(&endpoint, &watch, &door, &stop);
        let named = thread::Builder::new().name("pathweave-watch".into());
        match pathweave_datapath::with_signals_blocked(|| named.spawn(body)) {
            Ok(thread) => reception.thread = Some(thread),
            Err(error) => {
                say(Level::Warn, format_args!("no memory is shared with ranks on this host: {error}"));
                self.reception = None;
            }
        }
    }

    /// What a peer at this address is told, so that it can share memory.
    pub(super) fn here(&self, address: IpAddr) -> Option<Here> {
        let reception = self.reception.as_ref()?;
        if !address.is_loopback() && !reception.local.contains(&address) {
            return None;
        }
        let ticket = Ticket::new().ok()?;
        Some(Here { kernel: reception.kernel, meeting: reception.meeting, ticket })
    }

    /// Makes a lane to a peer that has said where it can be met.
    pub(super) fn offer(&mut self, peer: PeerId, here: &Here) -> Option<LaneKey> {
        let reception = self.reception.as_ref()?;
        if here.kernel != reception.kernel {
            return None;
        }
        match Lane::offer(here.meeting, here.ticket, self.copies) {
            Ok(lane) => self.insert(peer, lane),
            Err(Apart::Elsewhere) => None,
            Err(apart) => {
                say(
                    Level::Info,
                    format_args!("a peer on this host is talked to over the network: {apart:?}"),
                );
                None
            }
        }
    }

    /// Takes a lane that a peer has made.
    pub(super) fn take(&mut self, peer: PeerId, brought: Brought) -> Option<LaneKey> {
        match Lane::take(brought, self.copies) {
            Ok(lane) => self.insert(peer, lane),
            Err(error) => {
                say(Level::Warn, format_args!("memory that a peer has handed over cannot be used: {error}"));
                None
            }
        }
    }

    fn insert(&mut self, peer: PeerId, lane: Lane) -> Option<LaneKey> {
        let watch = &self.reception.as_ref()?.watch;
        let entry = self.lanes.vacant_entry();
        let key = LaneKey(entry.key());
        watch.add(&lane, watch::token(key)).ok()?;
        say(Level::Info, format_args!("memory is shared with a peer on this host"));
        entry.insert(Neighbour {
            peer,
            lane,
            waiting: VecDeque::new(),
            copies: VecDeque::new(),
            withdrawn: HashSet::new(),
            relay: Relay::new(),
            turn: Turn::Said,
            health: Health::Good,
            standing: Standing::New,
        });
        self.keys.push(key);
        Some(key)
    }

    /// A lane is not used any more.
    pub(super) fn remove(&mut self, key: LaneKey) {
        if let Some(neighbour) = self.lanes.try_remove(key.0) {
            neighbour.lane.leave();
            self.keys.retain(|known| *known != key);
            self.settled.retain(|_, known| *known != key);
        }
    }

    /// The link with a peer goes over this lane, from now on to the lane's end.
    pub(super) fn settle(&mut self, key: LaneKey) {
        if let Some(neighbour) = self.lanes.get_mut(key.0) {
            neighbour.standing = Standing::Settled;
            self.settled.insert(neighbour.peer, key);
        }
    }

    /// The neighbour to whom a message can be sent at once: nothing is before it.
    pub(super) fn prompt(&mut self, peer: PeerId) -> Option<&mut Neighbour> {
        let neighbour = self.lanes.get_mut(self.settled.get(&peer)?.0)?;
        let idle = neighbour.is_prompt() && neighbour.health == Health::Good;
        idle.then_some(neighbour)
    }

    pub(super) fn get(&self, key: LaneKey) -> Option<&Neighbour> {
        self.lanes.get(key.0)
    }

    pub(super) fn get_mut(&mut self, key: LaneKey) -> Option<&mut Neighbour> {
        self.lanes.get_mut(key.0)
    }

    /// The lane at a place of the list of all.
    pub(super) fn nth(&self, at: usize) -> Option<LaneKey> {
        self.keys.get(at).copied()
    }

    /// The next message of a lane, as [`mail`](Neighbours::mail) has it.
    pub(super) fn hear(&mut self, key: LaneKey) -> Heard {
        match self.lanes.get_mut(key.0) {
            Some(Neighbour { health: Health::Good, lane, .. }) => lane.hear(&mut self.mail),
            Some(_) => Heard::Broken,
            None => Heard::Nothing,
        }
    }

    /// The first bytes are the message that was heard last.
    pub(super) fn mail(&self) -> &[u8] {
        &self.mail
    }

    /// Whether there is anything to do for a lane.
    pub(super) fn is_busy(&self, key: LaneKey) -> bool {
        let busy = |n: &Neighbour| n.lane.has_mail() || n.is_waiting() || n.health == Health::Broken;
        self.lanes.get(key.0).is_some_and(busy)
    }

    /// How often in a row an application that finds nothing may look before it leaves its core to others. Where each of the ranks
    /// that share memory has a core the one that it waits for needs none of it, and who gives his core away on a busy host waits
    /// long to have it back.
    pub(super) fn looks(&self) -> u64 {
        match self.keys.len() {
            0 => 0,
            lanes if lanes < self.cores => LOOKS,
            _ => LOOKS_WITHOUT_CORES,
        }
    }

    /// Whether there is any lane.
    pub(super) fn is_any(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Whether a message has come that was not heard.
    pub(super) fn has_mail(&self) -> bool {
        self.lanes.iter().any(|(_, neighbour)| neighbour.lane.has_mail())
    }

    /// Whether anything waits for room, or copies for their turn.
    pub(super) fn is_waiting(&self) -> bool {
        self.lanes.iter().any(|(_, neighbour)| neighbour.is_waiting())
    }

    /// Whether there is anything to copy.
    pub(super) fn is_copying(&self) -> bool {
        self.lanes.iter().any(|(_, neighbour)| !neighbour.copies.is_empty())
    }

    /// Peers ring from now on.
    pub(super) fn rest(&self) {
        for (_, neighbour) in &self.lanes {
            let until = if neighbour.is_waiting() { Rest::UntilMailOrRoom } else { Rest::UntilMail };
            neighbour.lane.rest(until);
        }
    }

    /// Has the thread look after what waits.
    pub(super) fn wake(&self) {
        if let Some(reception) = &self.reception {
            reception.watch.wake();
        }
    }
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        self.lanes.iter().for_each(|(_, neighbour)| neighbour.lane.leave());
    }
}

impl Neighbour {
    /// Whether anything waits for room, or for its turn.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty() || !self.copies.is_empty() || self.relay.next().is_some()
    }

    /// True if a message would go at once: nothing is before it.
    pub(super) fn is_prompt(&self) -> bool {
        self.waiting.is_empty() && !self.relay.is_pulling()
    }

    /// The peer has broken the rules.
    pub(super) fn broke(&mut self) {
        self.health = Health::Broken;
    }
}

impl Reception {
    fn open() -> Option<Self> {
        let opened = Meeting::open().and_then(|door| {
            let watch = Watch::new()?;
            watch.add(&door, watch::DOOR)?;
            Ok((door, watch))
        });
        let (door, watch) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                say(Level::Warn, format_args!("no memory is shared with ranks on this host: {error}"));
                return None;
            }
        };
        Some(Reception {
            kernel: kernel()?,
            meeting: door.name(),
            local: interfaces::list().into_iter().map(|interface| interface.address).collect(),
            watch: Arc::new(watch),
            stop: Arc::default(),
            door: Some(door),
            thread: None,
        })
    }
}

impl Drop for Reception {
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
