//! The loop: arrivals, timers and requests go into the endpoint; packets, completions and wake-ups come out.

pub(crate) mod acks;
mod anticipation;
#[cfg(test)]
pub(crate) mod bomb;
mod commands;
mod connection;
pub(crate) mod contain;
mod control;
pub(crate) mod epoch;
mod fit;
mod inbound;
pub(crate) mod line;
#[cfg(test)]
mod links_test;
pub(crate) mod outbound;
pub(crate) mod setup;
mod transmit;
mod upkeep;
pub(crate) mod watch;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use pathweave_policy::Peers;
use pathweave_transport::{Completion as Done, Endpoint, EndpointConfig, Event, Opcode, Status, TimerKind};
use pathweave_units::{Duration as Span, HostId, Time};
use pathweave_wire::{Framing, Segment};

use crate::api::ProtectionDomain;
use crate::backend::{Arrivals, Backend, Wait};
use crate::clock::Clock;
use crate::completion::Completion;
use crate::config::{DeviceConfig, Waiting};
use crate::places::Places;
use crate::scheme;
use crate::secure::SetupError;
use crate::shared::{Command, Delivered, Shared, Side};
use crate::state::{CloseReason, ConnectionId};
use anticipation::{Anticipation, Look};
use connection::{Connection, Connections};
use line::Line;
use outbound::Outbound;
use setup::Setup;
use watch::{Deaths, Watched};

/// Requests and receives that may be outstanding on a connection, unless said otherwise.
pub(crate) const QUEUE_DEPTH: u32 = 4_096;
/// Commands one turn takes, so that arrivals are not kept waiting.
const COMMANDS_A_TURN: usize = 256;
/// Receive calls of one turn.
const RECEIVES_A_TURN: usize = 4;
/// And where a packet is about to count as lost: several socket buffers.
const RECEIVES_BEFORE_TIMEOUT: usize = 256;
/// Waits shorter than this are spent looking: going to sleep and waking up takes about as long.
const SHORTEST_SLEEP: Duration = Duration::from_micros(15);
/// Acknowledgements due so soon leave at once: no sleep is that short.
const ACK_GRACE: Span = Span::from_us(15);
/// So much earlier a sleep ends than its timer, to be awake in time.
const WAKE_EARLY: Duration = Duration::from_micros(5);

/// What a turn has found to do, and when there is more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    /// There is more to do at once.
    pub(crate) more: bool,
    /// There was something to do.
    pub(crate) active: bool,
    /// When the next timer is due.
    pub(crate) until: Option<Time>,
    /// The loop is to end.
    pub(crate) stopped: bool,
}

/// How long a sleep may last, besides the loop's own timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// No sleep at all.
    AtOnce,
    /// Nobody waits.
    Timer,
    /// Somebody waits until then.
    Deadline(Instant),
}

/// What sending has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// There was nothing to do.
    Idle,
    /// All was done.
    Done,
    /// There is more.
    More,
}

/// What runs the loop, whatever carries its packets.
pub(crate) trait Drive: Send {
    /// Does all there is to do now, and returns without waiting.
    fn turn(&mut self) -> io::Result<Turn>;
    /// Does what the application has just asked for, and leaves arrivals for later.
    fn push(&mut self);
    /// Sleeps until there is something to do, at most until the turn's timer and `until`.
    fn park(&mut self, turn: &Turn, until: Until) -> io::Result<()>;
    /// Fails all connections: the loop has ended.
    fn abandon(&mut self);
}

/// The loop over a backend.
pub(crate) struct Engine<B> {
    backend: B,
    core: Core,
}

/// The loop without the backend.
pub(crate) struct Core {
    config: Arc<DeviceConfig>,
    clock: Clock,
    /// What the endpoint was last told.
    now: Time,
    endpoint: Endpoint<Watched>,
    connections: Connections,
    places: Places,
    outbound: Outbound,
    line: Line,
    /// When the line opens again for packets that wait for it.
    waits_for_line: Option<Time>,
    setup: Setup,
    shared: Arc<Shared>,
    local: SocketAddr,
    receive_buffer_bytes: Option<usize>,
    ports: Vec<u16>,
    /// Acknowledgements of this turn, by connection's host number.
    acks: Vec<(HostId, Segment)>,
    /// Since when some of them are held.
    held_since: Option<Time>,
    /// A peer waits for one of them before it goes on.
    acks_are_awaited: bool,
    /// Connections whose peers have said Close and are owed an answer.
    answers: Vec<ConnectionId>,
    /// Connections all of whose paths are to be probed.
    surveys: Vec<ConnectionId>,
    /// Registered regions by their keys.
    registered: BTreeMap<u64, Registered>,
    /// Keys of regions to be closed once READs of them are answered.
    releases: Vec<u64>,
    counts: Counts,
    next_upkeep: Time,
    deaths: Deaths,
    /// When there was last anything to do.
    idle_since: Time,
    anticipation: Anticipation,
    /// All that had arrived has been received, and there was no sleep since.
    drained: bool,
    /// Something may have arrived that nobody has looked at.
    unread: bool,
    /// Everything that followed from inputs so far has been done.
    settled: bool,
    stopping: bool,
    /// Time is to begin anew as soon as the connections are gone; until then these wait.
    renewing: bool,
    deferred: Vec<Command>,
}

/// A registered region.
struct Registered {
    /// Of its place.
    handle: u64,
    /// Kept, so that no other domain has its number meanwhile.
    _domain: Option<ProtectionDomain>,
}

/// What only the loop counts.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    received_datagrams: u64,
    received_bytes: u64,
    refused_datagrams: u64,
    turns: u64,
    sleeps: u64,
    paced: u64,
    paced_late_ns: u64,
    paced_late_over_10us: u64,
    panics: u64,
}

fn anticipation_of(config: &DeviceConfig) -> Anticipation {
    Anticipation::new(match config.waiting {
        Waiting::Adaptive { most } => scheme::span(most),
        Waiting::Busy | Waiting::Blocking { .. } => Span::ZERO,
    })
}

impl<B: Backend> Engine<B> {
    /// A loop without connections. `ports`: source port of each path, for statistics.
    pub(crate) fn new(
        config: DeviceConfig,
        backend: B,
        ports: Vec<u16>,
        shared: Arc<Shared>,
    ) -> Result<Self, SetupError> {
        let clock = Clock::start();
        let mut random = [0; 10];
        getrandom::fill(&mut random).map_err(|_| SetupError::Random(crate::secure::RandomError))?;
        let [a, b, of_seed @ ..] = random;
        let seed = config.seed.unwrap_or(u64::from_ne_bytes(of_seed));
        let endpoint = EndpointConfig {
            mtu_payload: config.mtu_payload,
            framing: Framing::Pathweave,
            nic_ports: 1,
            seed,
            ..EndpointConfig::new(HostId(0))
        };
        // The endpoint knows peers by the numbers of connections.
        let endpoint = Endpoint::with_peers(endpoint, Peers::Connections);
        let core = Core {
            now: clock.now(),
            clock,
            endpoint,
            connections: Connections::new(u16::from_ne_bytes([a, b])),
            places: Places::default(),
            outbound: Outbound::new(backend.limits(), backend.paths()),
            line: Line::of_device(&config),
            waits_for_line: None,
            setup: Setup::new(&config)?,
            shared,
            local: backend.local_addr(),
            receive_buffer_bytes: backend.receive_buffer_bytes(),
            ports,
            acks: Vec::new(),
            held_since: None,
            acks_are_awaited: false,
            answers: Vec::new(),
            surveys: Vec::new(),
            registered: BTreeMap::new(),
            releases: Vec::new(),
            counts: Counts::default(),
            next_upkeep: Time::ZERO,
            deaths: Deaths::default(),
            idle_since: Time::ZERO,
            anticipation: anticipation_of(&config),
            drained: false,
            unread: true,
            settled: false,
            stopping: false,
            renewing: false,
            deferred: Vec::new(),
            config: Arc::new(config),
        };
        Ok(Engine { backend, core })
    }
}

impl<B: Backend> Drive for Engine<B> {
    fn turn(&mut self) -> io::Result<Turn> {
        let core = &mut self.core;
        core.counts.turns += 1;
        if core.drained && core.settled && core.shared.commands.is_empty() {
            // Only sleep, or a timer, will bring something new.
            return Ok(Turn { more: false, active: false, until: core.next_timer(), stopped: core.stopping });
        }
        let mut active = core.take_commands(&self.backend);
        if core.outbound.is_stuck() {
            core.outbound.flush(&mut self.backend);
        }
        let mut arrivals = Arrivals::None;
        // Where everything has been received and nobody has slept since, the sleep will tell whether there is more.
        if !core.drained {
            for receives in 1.. {
                arrivals = self.backend.receive(&mut |received| core.on_received(received))?;
                core.unread = arrivals != Arrivals::None;
                if core.unread {
                    active = true;
                    let looks = core.anticipation.is_looking();
                    core.anticipation.arrived(core.now, if looks { core.clock.now() } else { core.now });
                }
                // Before a packet counts as lost everything is looked at that may say otherwise.
                let wants_all = core.unread && receives < RECEIVES_BEFORE_TIMEOUT && core.timeout_is_due();
                if arrivals != Arrivals::More && !wants_all {
                    core.drained = true;
                    break;
                }
                if receives >= RECEIVES_A_TURN && !wants_all {
                    break;
                }
                core.after_input(&mut self.backend);
            }
            if core.timeout_is_due() {
                // However much there is: whoever is asked for an answer all the time must see that one is missing.
                core.unread = false;
            }
        }
        if !active && core.settled && !core.outbound.is_stuck() {
            // Whoever looks again and again finds mostly nothing.
            let (now, until) = (core.tick(), core.next_timer());
            if until.into_iter().chain(core.held_until()).all(|due| due > now) {
                return Ok(Turn { more: false, active, until, stopped: core.stopping });
            }
        }
        let left = core.after_input(&mut self.backend);
        active |= left != Left::Idle;
        core.settled = left != Left::More;
        let more = arrivals == Arrivals::More || left == Left::More || !core.shared.commands.is_empty();
        Ok(Turn { more, active, until: core.next_timer(), stopped: core.stopping })
    }

    fn push(&mut self) {
        let core = &mut self.core;
        if core.take_commands(&self.backend) {
            core.unread = true;
            core.anticipation.interrupted();
            core.settled = core.after_input(&mut self.backend) != Left::More;
        }
    }

    fn park(&mut self, turn: &Turn, until: Until) -> io::Result<()> {
        let core = &mut self.core;
        if turn.more || core.config.waiting == Waiting::Busy {
            core.drained = false;
            if !turn.active {
                std::thread::yield_now();
            }
            return Ok(());
        }
        // The turn has just ended: its time is good enough.
        let now = core.now;
        let held_until = core.held_until();
        if held_until.is_some_and(|until| until <= now + ACK_GRACE) {
            core.flush_acks(&mut self.backend);
        }
        if until == Until::AtOnce {
            core.drained = false;
            return Ok(());
        }
        if turn.active {
            core.idle_since = now;
        }
        let timer = turn.until.into_iter().chain(core.held_until()).min();
        let left = timer.map(|until| Duration::from_nanos(until.saturating_since(now).as_ns()));
        let look = core.looks_again(now).or(left.filter(|left| *left < SHORTEST_SLEEP).map(|_| Look::Once));
        if let Some(look) = look {
            core.drained = false;
            match look {
                Look::Once => std::hint::spin_loop(),
                // Whoever else has work on this core does it meanwhile, the other end above all: where both share a
                // core, its answer is here when this returns, without the sleep and the wake-up of either.
                Look::Again => std::thread::yield_now(),
            }
            return Ok(());
        }
        if !core.shared.park() {
            return Ok(());
        }
        core.counts.sleeps += 1;
        let left = left.map(|left| left - WAKE_EARLY);
        let at_most = match (left, until) {
            (left, Until::Deadline(deadline)) => {
                let other = deadline.saturating_duration_since(Instant::now());
                Some(left.map_or(other, |left| left.min(other)))
            }
            (left, Until::Timer | Until::AtOnce) => left,
        };
        let result = self.backend.wait(Wait { at_most, for_room: core.outbound.is_stuck() });
        core.shared.unpark();
        core.drained = false;
        result
    }

    fn abandon(&mut self) {
        self.core.take_commands(&self.backend);
        self.core.close_all(CloseReason::DeviceClosed);
        self.core.shared.signal.notify();
    }
}

impl Core {
    /// Time passes: the present, as the endpoint is told.
    fn tick(&mut self) -> Time {
        self.now = self.clock.now().max(self.now);
        self.now
    }

    /// Whether to look for packets rather than sleep.
    fn looks_again(&mut self, now: Time) -> Option<Look> {
        match self.config.waiting {
            Waiting::Busy => Some(Look::Again),
            Waiting::Blocking { spin } => (now - self.idle_since < scheme::span(spin)).then_some(Look::Once),
            Waiting::Adaptive { .. } => {
                let bytes = self.counts.received_bytes + self.outbound.counters().bytes;
                self.anticipation.looks(now, bytes)
            }
        }
    }

    /// After every input, all outputs.
    fn after_input<B: Backend>(&mut self, backend: &mut B) -> Left {
        if self.tick() >= epoch::MAY_BEGIN_ANEW {
            self.renew();
        }
        let now = self.now;
        let mut active = self.contain(|core| core.setup_progress(now, backend)).unwrap_or(true);
        let before = self.contain(|core| {
            core.look_after(now);
            // The application hears first: it has work to do, too.
            let told = core.tell();
            core.answer();
            told
        });
        let told = before.unwrap_or(true);
        active |= told;
        let left = self.transmit(backend, told);
        // Sending may end something, too.
        active |= self.contain(Core::tell).unwrap_or(true);
        if left == Left::Idle && active { Left::Done } else { left }
    }

    /// What time brings: timers, dead paths, silent peers.
    fn look_after(&mut self, now: Time) {
        self.note_lateness(now);
        match self.endpoint.next_timer() {
            Some((due, _, kind)) if due <= now && !(self.unread && is_timeout(kind)) => {
                self.endpoint.on_timer(now);
            }
            _ => {}
        }
        if self.deaths.load(Ordering::Relaxed) {
            self.deaths.store(false, Ordering::Relaxed);
            self.abandon_dead(now);
            self.upkeep(now);
        } else if now >= self.next_upkeep {
            self.upkeep(now);
        }
    }

    /// Whether a timer is due for which packets count as lost.
    fn timeout_is_due(&mut self) -> bool {
        // By the time of the last arrival. It fires only later, when the turn looks at the clock, and not before a look
        // for arrivals has found none.
        let timer = self.endpoint.next_timer();
        timer.is_some_and(|(due, _, kind)| is_timeout(kind) && due <= self.now)
    }

    /// How late packets leave that a scheme or the line has made wait for an instant.
    fn note_lateness(&mut self, now: Time) {
        let by_scheme = match self.endpoint.next_timer() {
            Some((due, _, TimerKind::Pacing)) => Some(due),
            _ => None,
        };
        let by_line = self.waits_for_line.take_if(|due| *due <= now);
        for due in by_scheme.into_iter().chain(by_line).filter(|due| *due <= now) {
            let late_ns = (now - due).as_ns();
            self.counts.paced += 1;
            self.counts.paced_late_ns += late_ns;
            self.counts.paced_late_over_10us += u64::from(late_ns > 10_000);
        }
    }

    /// Tells the application what the endpoint has to say. Returns whether it had anything.
    fn tell(&mut self) -> bool {
        let told = self.drain_events();
        if told {
            self.shared.signal.notify();
        }
        told
    }

    fn next_timer(&self) -> Option<Time> {
        let timers = [self.endpoint.poll_timer(), self.setup.next_timer(), self.waits_for_line];
        let upkeep = (self.connections.len() > 0).then_some(self.next_upkeep);
        timers.into_iter().chain([upkeep]).flatten().min()
    }

    /// Takes all events out of the endpoint. Returns whether there was one.
    fn drain_events(&mut self) -> bool {
        let mut any = false;
        while let Some(event) = self.endpoint.poll_event() {
            any = true;
            match event {
                Event::Completion(done) => {
                    self.endpoint.act_for(Some(done.qp));
                    self.complete(&done);
                }
                // For observers; nobody here asks for the latter two.
                Event::Delivered { .. } | Event::Retransmitted { .. } | Event::TimedOut { .. } => {}
                Event::QpError { qp, .. } => {
                    self.endpoint.act_for(Some(qp));
                    if let Some(id) = self.connections.of_qp(qp).map(|connection| connection.id) {
                        self.close(id, CloseReason::Failed);
                    }
                }
            }
        }
        any
    }

    fn complete(&mut self, done: &Done) {
        // Whoever closes a connection has its requests flushed at once; what the endpoint says later is known.
        let Some(place) = self.places.remove(done.wr_id) else { return };
        let Some(connection) = self.connections.of_qp(done.qp) else { return };
        let side = match done.opcode {
            Opcode::Recv | Opcode::RecvWriteImm => {
                connection.receives.done_with(|handle| *handle == done.wr_id);
                Side::Receive
            }
            Opcode::Send | Opcode::Write | Opcode::Read => {
                connection.sends.done_with(|(handle, _)| *handle == done.wr_id);
                Side::Send
            }
        };
        let completion = Completion {
            connection: connection.id,
            wr_id: place.wr_id,
            status: done.status,
            opcode: done.opcode,
            byte_len: done.byte_len,
            imm: done.imm,
        };
        deliver(connection, side, completion);
    }

    /// Completes everything posted with `first` and then [`Status::Flushed`].
    fn flush(&mut self, id: ConnectionId, first: Status) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let mut status = first;
        let sends = std::mem::take(&mut connection.sends).into_iter();
        let receives = std::mem::take(&mut connection.receives).into_iter();
        let sends = sends.map(|(handle, opcode)| (handle, opcode, Side::Send));
        for (handle, opcode, side) in
            sends.chain(receives.map(|handle| (handle, Opcode::Recv, Side::Receive)))
        {
            let Some(place) = self.places.remove(handle) else { continue };
            let status_of_this = if side == Side::Send {
                std::mem::replace(&mut status, Status::Flushed)
            } else {
                Status::Flushed
            };
            let completion = Completion {
                connection: id,
                wr_id: place.wr_id,
                status: status_of_this,
                opcode,
                byte_len: 0,
                imm: None,
            };
            deliver(connection, side, completion);
        }
    }
}

/// Whether packets count as lost when this timer fires.
fn is_timeout(kind: TimerKind) -> bool {
    matches!(kind, TimerKind::Retransmit | TimerKind::PathOrder)
}

/// Hands a completion to the application.
fn deliver(connection: &Connection, side: Side, completion: Completion) {
    let shared = connection.shared.clone();
    connection.shared.completions.push(Delivered { completion, side, connection: shared });
}

/// Completions come in the order of posting, so what is done is in front.
trait DoneWith<T> {
    fn done_with(&mut self, is_done: impl FnMut(&T) -> bool);
}

impl<T> DoneWith<T> for std::collections::VecDeque<T> {
    fn done_with(&mut self, mut is_done: impl FnMut(&T) -> bool) {
        if self.front().is_some_and(&mut is_done) {
            self.pop_front();
        } else if let Some(index) = self.iter().position(is_done) {
            self.remove(index);
        }
    }
}
