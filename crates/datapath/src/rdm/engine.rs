//! The loop: datagrams, side messages, timers and requests go into the transport; packets, side messages and completions
//! come out.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pathweave_policy::AnyPolicy;
use pathweave_transport::rd::{RdEvent, RdQp};
use pathweave_transport::{Opcode, Status, Transport};
use pathweave_units::{HostId, QpNum, Time};

use super::address_vector::{AddressVector, Peer, PeerEntry};
use super::config::RdmConfig;
use super::handshakes::Handshakes;
use super::inbox::{Filled, Inbox, Sender};
use super::queue_pair::queue_pair;
use super::remote::{Leave, Remote, Remotes, index_of};
use super::shared::{Command, EndpointShared, RdmCompletion};
use super::tcp::Lines;
use crate::backend::{Arrivals, Backend, Wait};
use crate::clock::Clock;
use crate::config::Waiting;
use crate::engine::epoch::MAY_BEGIN_ANEW;
use crate::engine::line::Line;
use crate::engine::outbound::Outbound;
use crate::engine::{Drive, Left, Turn, Until};
use crate::error::OpenError;
use crate::places::Places;
use crate::scheme;

/// Commands one turn takes, so that arrivals are not kept waiting.
const COMMANDS_A_TURN: usize = 256;
/// Receive calls of one turn.
const RECEIVES_A_TURN: usize = 4;
/// Receive calls before a scan, so that it takes nothing for missing that is here.
const RECEIVES_BEFORE_SCAN: usize = 64;
/// Waits shorter than this are spent looking.
const SHORTEST_SLEEP: Duration = Duration::from_micros(15);
/// Where the backend cannot wait for TCP, it is looked at so often.
const LOOK_AT_TCP: Duration = Duration::from_millis(1);

/// How long the end of an endpoint waits at most for peers to have its last words: a timer of TCP and then some.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// The loop over a backend.
pub(super) struct Engine<B> {
    backend: B,
    core: Core,
}

/// The loop without the backend.
pub(super) struct Core {
    pub(super) config: RdmConfig,
    pub(super) clock: Clock,
    /// What the transport was last told.
    pub(super) now: Time,
    pub(super) rd: RdQp<AnyPolicy>,
    pub(super) qp: QpNum,
    pub(super) addresses: Arc<AddressVector>,
    pub(super) remotes: Remotes,
    pub(super) inbox: Inbox,
    pub(super) places: Places,
    pub(super) outbound: Outbound,
    pub(super) line: Line,
    pub(super) waits_for_line: Option<Time>,
    pub(super) handshakes: Handshakes,
    pub(super) lines: Lines,
    /// Associations with something to say on the side channel.
    pub(super) talkers: Vec<u32>,
    /// Peers whose messages wait for room here, in the order in which they began to.
    pub(super) waiting: VecDeque<u32>,
    /// Peers that have said something about being forgotten, by association.
    pub(super) leaving: Vec<(u32, Leave)>,
    pub(super) shared: Arc<EndpointShared>,
    pub(super) ports: Vec<u16>,
    pub(super) path_packets: Vec<u64>,
    pub(super) counts: Counts,
    pub(super) next_upkeep: Time,
    /// When it was done last.
    pub(super) upkeep_at: Time,
    pub(super) idle_since: Time,
    /// Something may have arrived that nobody has looked at.
    unread: bool,
    /// The backend's sleep ends when TCP has something.
    hears_tcp: bool,
    stopping: bool,
    /// Time is about to begin anew, and waits so long for peers to agree.
    pub(super) renewing: Option<Time>,
    /// Whose packet is being taken in.
    pub(super) acting: Option<u32>,
}

/// What only the loop counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) received_datagrams: u64,
    pub(super) received_bytes: u64,
    pub(super) refused_datagrams: u64,
    pub(super) marked_datagrams: u64,
    pub(super) no_room_drops: u64,
    pub(super) panics: u64,
    pub(super) turns: u64,
    pub(super) sleeps: u64,
}

impl<B: Backend> Engine<B> {
    /// A loop without peers. `ports`: source port of each path, for statistics.
    pub(super) fn new(
        config: RdmConfig,
        mut backend: B,
        ports: Vec<u16>,
        shared: Arc<EndpointShared>,
        addresses: Arc<AddressVector>,
    ) -> Result<Self, OpenError> {
        let local = backend.local_addr();
        let system = |source: io::Error| OpenError::System { address: local, source };
        let other = |text: String| system(io::Error::other(text));
        let clock = Clock::start();
        let mut first_association = [0; 4];
        getrandom::fill(&mut first_association).map_err(|error| other(error.to_string()))?;
        // Of endpoints at one address, each has a port: so address and queue pair name one.
        let qp = QpNum(u32::from(local.port()));
        let rd = queue_pair(&config, qp)?;
        let lines = Lines::open(local).map_err(|error| OpenError::of_socket(local, error))?;
        let hears_tcp = backend.watch(lines.happenings().map_err(system)?);
        let device = &config.device;
        let handshakes = Handshakes::new(&config).map_err(|error| other(error.to_string()))?;
        let core = Core {
            now: clock.now(),
            clock,
            rd,
            qp,
            addresses,
            remotes: Remotes::new(u32::from_ne_bytes(first_association)),
            inbox: Inbox::new(config.unexpected_bytes, config.receives_a_peer),
            places: Places::default(),
            outbound: Outbound::new(backend.limits(), backend.paths()),
            line: Line::of_device(device),
            waits_for_line: None,
            handshakes,
            lines,
            talkers: Vec::new(),
            waiting: VecDeque::new(),
            leaving: Vec::new(),
            shared,
            ports,
            path_packets: vec![0; usize::from(backend.paths())],
            counts: Counts::default(),
            next_upkeep: MAY_BEGIN_ANEW,
            upkeep_at: Time::ZERO,
            idle_since: Time::ZERO,
            unread: true,
            hears_tcp,
            stopping: false,
            renewing: None,
            acting: None,
            config,
        };
        Ok(Engine { backend, core })
    }
}

impl<B> Engine<B> {
    /// Bytes of the longest message.
    pub(super) fn most_message_bytes(&self) -> u64 {
        self.core.rd.most_message_bytes()
    }
}

impl<B: Backend> Drive for Engine<B> {
    fn turn(&mut self) -> io::Result<Turn> {
        let core = &mut self.core;
        core.counts.turns += 1;
        let mut active = core.take_commands();
        if core.outbound.is_stuck() {
            core.outbound.flush(&mut self.backend);
        }
        let mut arrivals;
        for receives in 1.. {
            arrivals = self.backend.receive(&mut |received| core.on_received(received))?;
            core.unread = arrivals == Arrivals::More;
            active |= arrivals != Arrivals::None;
            let before_scan = core.unread && receives < RECEIVES_BEFORE_SCAN && core.scan_is_due();
            if !core.unread || (receives >= RECEIVES_A_TURN && !before_scan) {
                break;
            }
            core.after_input(&mut self.backend);
        }
        let left = core.after_input(&mut self.backend);
        active |= left != Left::Idle;
        let more = core.unread || left == Left::More || !core.shared.commands.is_empty();
        Ok(Turn { more, active, until: core.next_timer(), stopped: core.stopping })
    }

    fn push(&mut self) {
        let core = &mut self.core;
        if core.take_commands() {
            core.after_input(&mut self.backend);
        }
    }

    fn park(&mut self, turn: &Turn, until: Until) -> io::Result<()> {
        let core = &mut self.core;
        if turn.active {
            core.idle_since = core.now;
        }
        let waiting = core.config.device.waiting;
        if turn.more || until == Until::AtOnce || waiting == Waiting::Busy {
            return Ok(());
        }
        let now = core.now;
        let spin = match waiting {
            Waiting::Busy => Duration::MAX,
            Waiting::Blocking { spin } => spin,
            Waiting::Adaptive { most } => most,
        };
        let left = turn.until.map(|until| Duration::from_nanos(until.saturating_since(now).as_ns()));
        if now - core.idle_since < scheme::span(spin) || left.is_some_and(|left| left < SHORTEST_SLEEP) {
            core.tick();
            std::hint::spin_loop();
            return Ok(());
        }
        if !core.shared.park() {
            return Ok(());
        }
        core.counts.sleeps += 1;
        let deadline = match until {
            Until::Deadline(deadline) => Some(deadline.saturating_duration_since(Instant::now())),
            Until::Timer | Until::AtOnce => None,
        };
        let tcp = (!core.hears_tcp).then_some(LOOK_AT_TCP);
        let at_most = left.into_iter().chain(deadline).chain(tcp).min();
        let result = self.backend.wait(Wait { at_most, for_room: core.outbound.is_stuck() });
        core.shared.unpark();
        result
    }

    fn abandon(&mut self) {
        let core = &mut self.core;
        core.take_commands();
        core.say_farewell();
        core.flush_side();
        core.lines.finish(core.now, LAST_WORDS);
        for index in core.remotes.indices() {
            core.fail(index, Status::Flushed);
        }
        for posted in core.inbox.drain() {
            core.end_receive(posted.handle, None, Status::Flushed, 0);
        }
        core.shared.signal.notify();
    }
}

impl Core {
    /// Time passes: the present, as the transport is told.
    pub(super) fn tick(&mut self) -> Time {
        self.now = self.clock.now().max(self.now);
        self.now
    }

    fn scan_is_due(&mut self) -> bool {
        let now = self.tick();
        self.rd.poll_timer().is_some_and(|due| due <= now)
    }

    /// After every input, all outputs.
    fn after_input<B: Backend>(&mut self, backend: &mut B) -> Left {
        let now = self.tick();
        let mut active = self.go_on_with_handshakes(now, backend);
        active |= self.hear_side(now);
        active |= self.see_off();
        if !self.unread && self.scan_is_due() {
            self.rd.on_timer(self.now);
        }
        if now >= self.next_upkeep {
            self.upkeep(self.now);
        }
        active |= self.tell();
        active |= self.make_use_of_room() && self.tell();
        let left = self.transmit(backend);
        active |= self.tell();
        self.flush_side();
        if left == Left::Idle && active { Left::Done } else { left }
    }

    fn next_timer(&self) -> Option<Time> {
        let upkeep = Some(self.next_upkeep).filter(|&at| at < Time::MAX);
        let timers = [
            self.rd.poll_timer(),
            self.handshakes.next_timer(),
            self.waits_for_line,
            self.lines.next_timer(),
            upkeep,
        ];
        timers.into_iter().flatten().min()
    }

    /// Takes out what the transport has to tell. Returns whether there was anything.
    pub(super) fn tell(&mut self) -> bool {
        let mut any = false;
        while let Some(event) = self.rd.poll_event() {
            any = true;
            match event {
                RdEvent::Delivered { from, msg, bytes } => {
                    let filled = self.inbox.delivered(index_of(from.host.0), msg, bytes);
                    self.end_filled(filled);
                }
                RdEvent::Abandoned { from, msg } => {
                    let filled = self.inbox.abandoned(&self.places, index_of(from.host.0), msg);
                    self.end_filled(filled);
                }
                RdEvent::Completion { wr_id, to, status, .. } => {
                    if let Some((index, association)) = self.remotes.of_id(to.host.0) {
                        association.outstanding -= 1;
                        self.end_send(wr_id, index, status);
                        self.post_pending(index);
                    }
                }
            }
        }
        while let Some((HostId(id), message)) = self.rd.poll_side() {
            any = true;
            self.say(id, message);
        }
        if any {
            self.shared.signal.notify();
        }
        any
    }

    /// The peer of this entry, who is met if need be.
    pub(super) fn meet(&mut self, entry: &Arc<PeerEntry>) -> &mut Remote {
        self.inbox.meet(entry.peer);
        self.remotes.meet(self.now, entry)
    }

    /// Tells the application of receives that are filled.
    pub(super) fn end_filled(&mut self, filled: impl IntoIterator<Item = Filled>) {
        for Filled { posted, by, status, bytes } in filled {
            let by = match by {
                Sender::Known(index) => self.remotes.get(index).map(|remote| remote.entry.peer),
                Sender::Forgotten(peer) => Some(peer),
            };
            self.end_receive(posted.handle, by, status, bytes);
        }
    }

    pub(super) fn end_receive(&mut self, handle: u64, peer: Option<Peer>, status: Status, byte_len: u64) {
        let Some(place) = self.places.remove(handle) else { return };
        let opcode = Opcode::Recv;
        self.shared.handed.push(RdmCompletion { wr_id: place.wr_id, peer, status, opcode, byte_len });
    }

    /// A message to a peer is over.
    pub(super) fn end_send(&mut self, handle: u64, index: u32, status: Status) {
        let Some(place) = self.places.remove(handle) else { return };
        let byte_len = if status == Status::Success { place.memory.len() as u64 } else { 0 };
        let remote = self.remotes.get_mut(index);
        let peer = remote.map(|remote| {
            remote.entry.room.give_back();
            remote.entry.peer
        });
        let opcode = Opcode::Send;
        self.shared.handed.push(RdmCompletion { wr_id: place.wr_id, peer, status, opcode, byte_len });
    }

    /// Takes what the application asks for. Returns whether there was anything.
    fn take_commands(&mut self) -> bool {
        let mut any = false;
        for _ in 0..COMMANDS_A_TURN {
            let Some(command) = self.shared.commands.pop() else { break };
            if !any {
                self.tick();
                any = true;
            }
            match command {
                Command::Stop => self.stopping = true,
                command => self.take(command),
            }
        }
        any
    }

    /// How long a peer may be silent.
    pub(super) fn give_up(&self) -> Duration {
        self.config.device.peer_timeout
    }

    /// The number of a path's source port.
    pub(super) fn port_of(&self, path: usize) -> u16 {
        self.ports.get(path).copied().unwrap_or(0)
    }
}
