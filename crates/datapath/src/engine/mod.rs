//! Connections as a service of the loop. Arrivals, timers and requests go into the endpoint; packets, completions and
//! wake-ups come out.

pub(crate) mod acks;
mod address_pairs;
pub(crate) mod clock_reset;
mod commands;
mod connection;
pub(crate) mod contain;
mod control;
mod departed;
#[cfg(test)]
pub(crate) mod fault_injection;
mod fit;
mod held_acks;
mod inbound;
#[cfg(test)]
mod links_test;
pub(crate) mod path_monitor;
mod route;
pub(crate) mod setup;
mod transmit;
mod unproven;
mod upkeep;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use pathweave_policy::PeerKind;
use pathweave_transport::{
    Completion as Done, Endpoint, EndpointConfig, Event, FreePorts, Keys, Opcode, Status, TimerKind,
};
use pathweave_units::{HostId, Time};
use pathweave_wire::{Ecn, Framing};

use crate::api::ProtectionDomain;
use crate::backend::Backend;
use crate::completion::Completion;
use crate::config::DeviceConfig;
use crate::event_loop::{Engine, Io, MAY_BEGIN_ANEW, Origin, Service};
use crate::secure::SetupError;
use crate::shared::{Command, ConnectionShared, Release, Shared, Side};
use crate::state::{CloseReason, ConnectionId};
use crate::stream::{EventQueue, QueuedEvent};
use clock_reset::Renewal;
use connection::{Connection, Connections};
use departed::RemovedConnections;
use held_acks::HeldAcks;
use path_monitor::{Deaths, MonitoredPolicy};
use setup::Setup;
use unproven::Unproven;

/// The connections of a device, driven by the loop.
pub(crate) struct Core {
    config: Arc<DeviceConfig>,
    io: Io,
    endpoint: Endpoint<MonitoredPolicy>,
    connections: Connections,
    departed: RemovedConnections,
    setup: Setup,
    shared: Arc<Shared>,
    receive_buffer_bytes: Option<usize>,
    acks: HeldAcks,
    /// Connections whose peers have sent Close and wait for the answer.
    answers: Vec<ConnectionId>,
    /// Ask messages of peers that are to be answered.
    asked: Vec<transmit::Asked>,
    unproven: Unproven,
    /// Connections all of whose paths are to be probed.
    surveys: Vec<ConnectionId>,
    regions: Regions,
    deaths: Deaths,
    renewal: Renewal,
}

/// Memory that peers can access.
struct Regions {
    /// Registered regions by key.
    registered: BTreeMap<u64, Registered>,
    /// Regions to be closed once READs of them are answered.
    releases: Vec<Release>,
    /// Regions that lose their memory, but keep their key, once READs of them are answered.
    withdrawals: Vec<Release>,
    /// Allocator of the keys. A key returns to it when no region is registered under it any more.
    keys: Arc<Mutex<Keys>>,
}

/// A registered region.
struct Registered {
    /// Handle of its memory in the table of places.
    handle: u64,
    /// Held so that no other domain gets the same number meanwhile.
    _domain: Option<ProtectionDomain>,
}

/// Creates the loop of a device, without connections. `keys`: allocator of its regions' keys.
pub(crate) fn open<B: Backend>(
    config: DeviceConfig,
    backend: B,
    shared: Arc<Shared>,
    keys: Arc<Mutex<Keys>>,
) -> Result<Engine<B, Core>, SetupError> {
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
    // The endpoint identifies peers by connection numbers.
    let endpoint = Endpoint::with_peers(endpoint, PeerKind::Connections);
    let core = Core {
        io: Io::new(&config, &backend),
        endpoint,
        connections: Connections::new(u16::from_ne_bytes([a, b])),
        departed: RemovedConnections::default(),
        setup: Setup::new(&config)?,
        shared,
        receive_buffer_bytes: backend.receive_buffer_bytes(),
        acks: HeldAcks::default(),
        answers: Vec::new(),
        asked: Vec::new(),
        unproven: Unproven::default(),
        surveys: Vec::new(),
        regions: Regions { registered: BTreeMap::new(), releases: Vec::new(), withdrawals: Vec::new(), keys },
        deaths: Deaths::default(),
        renewal: Renewal::default(),
        config: Arc::new(config),
    };
    Ok(Engine { backend, core })
}

impl Service for Core {
    const HAS_SIDE_CHANNEL: bool = false;
    type Transport = Endpoint<MonitoredPolicy>;
    type Command = Command;
    type Handed = Arc<ConnectionShared>;

    #[inline]
    fn io(&self) -> &Io {
        &self.io
    }
    #[inline]
    fn io_mut(&mut self) -> &mut Io {
        &mut self.io
    }
    #[inline]
    fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
    #[inline]
    fn transport(&self) -> &Endpoint<MonitoredPolicy> {
        &self.endpoint
    }
    #[inline]
    fn on_datagram(
        &mut self,
        now: Time,
        whence: Origin,
        ecn: Ecn,
        frame: &mut [u8],
        residue: u32,
    ) -> Option<()> {
        self.process_frame(now, whence, ecn, frame, residue)
    }
    fn carry_out(&mut self, command: Command) {
        if let Some(command) = self.defers(command) {
            self.execute(command);
        }
    }
    fn advance<B: Backend>(&mut self, backend: &mut B) -> bool {
        if self.io.now >= MAY_BEGIN_ANEW {
            self.renew();
        }
        self.setup_progress(self.io.now, backend)
    }
    fn run_timers(&mut self, now: Time) -> bool {
        self.on_time(now);
        let told = self.deliver_events();
        self.answer();
        told
    }
    fn deliver_events(&mut self) -> bool {
        let told = self.drain_events();
        if told {
            self.shared.notify();
        }
        told
    }
    #[inline]
    fn send_one(&mut self, now: Time, gate: FreePorts) -> bool {
        self.send(now, gate)
    }
    fn sent_all(&mut self, told: bool) {
        self.acknowledge(told);
    }
    fn held_until(&self) -> Option<Time> {
        self.acks_held_until()
    }
    fn flush_held<B: Backend>(&mut self, backend: &mut B) {
        self.contain(Core::emit_held_acks);
        self.io.outbound.flush(backend);
    }
    fn is_loss_due(&self) -> bool {
        // The comparison uses the time of the last arrival. The timer fires later in the turn, when the loop has read
        // the clock and a check for further arrivals has found none.
        let timer = self.endpoint.next_timer();
        timer.is_some_and(|(due, _, kind)| is_timeout(kind) && due <= self.io.now)
    }
    fn next_timer(&self) -> Option<Time> {
        let timers = [self.endpoint.poll_timer(), self.setup.next_timer(), self.io.waits_for_line];
        let closes = !self.regions.releases.is_empty() || !self.regions.withdrawals.is_empty();
        let waits = self.connections.len() > 0 || closes;
        let upkeep = waits.then_some(self.io.next_upkeep);
        timers.into_iter().chain([upkeep]).flatten().min()
    }
    #[inline]
    fn act_for_nobody(&mut self) {
        self.endpoint.set_acting_qp(None);
    }
    fn give_up_acting(&mut self, bug: &str) -> bool {
        self.close_acting(bug)
    }
    fn is_finished(&self) -> bool {
        let parted = || !self.io.outbound.is_stuck() && self.connections.iter().all(Connection::has_parted);
        self.io.stop_by.is_some_and(|at| at <= self.io.now || parted())
    }
    fn abandon(&mut self) {
        self.close_all(CloseReason::DeviceClosed);
        std::mem::take(&mut self.regions.releases).into_iter().for_each(released);
        std::mem::take(&mut self.regions.withdrawals).into_iter().for_each(released);
    }
}

impl Core {
    /// Handles everything that is due: timers, dead paths, silent peers.
    fn on_time(&mut self, now: Time) {
        self.note_lateness(now);
        match self.endpoint.next_timer() {
            Some((due, _, kind)) if due <= now && !(self.io.unread && is_timeout(kind)) => {
                self.endpoint.on_timer(now);
            }
            _ => {}
        }
        if self.deaths.load(Ordering::Relaxed) {
            self.deaths.store(false, Ordering::Relaxed);
            self.abandon_dead(now);
            self.upkeep(now);
        } else if now >= self.io.next_upkeep {
            self.upkeep(now);
        }
    }

    /// Counts how late packets leave that pacing by the scheme or by the line rate has delayed.
    fn note_lateness(&mut self, now: Time) {
        let by_scheme = match self.endpoint.next_timer() {
            Some((due, _, TimerKind::Pacing)) => Some(due),
            _ => None,
        };
        let by_line = self.io.waits_for_line.take_if(|due| *due <= now);
        for due in by_scheme.into_iter().chain(by_line).filter(|due| *due <= now) {
            let late_ns = (now - due).as_ns();
            self.io.counts.paced += 1;
            self.io.counts.paced_late_ns += late_ns;
            self.io.counts.paced_late_over_10us += u64::from(late_ns > 10_000);
        }
    }

    /// Takes all events out of the endpoint. Returns true if there was one.
    fn drain_events(&mut self) -> bool {
        let mut any = false;
        while let Some(event) = self.endpoint.poll_event() {
            any = true;
            match event {
                Event::Completion(done) => {
                    self.endpoint.set_acting_qp(Some(done.qp));
                    self.complete(&done);
                }
                // These events are for observers; the latter two are not enabled here.
                Event::Delivered { .. } | Event::Retransmitted { .. } | Event::TimedOut { .. } => {}
                Event::QpError { qp, .. } => {
                    self.endpoint.set_acting_qp(Some(qp));
                    if let Some(id) = self.connections.of_qp(qp).map(|connection| connection.id) {
                        self.close(id, CloseReason::Failed);
                    }
                }
            }
        }
        any
    }

    fn complete(&mut self, done: &Done) {
        // Requests of a closed connection are flushed at once. Later completions of the endpoint for them are
        // ignored.
        let Some(place) = self.io.places.remove(done.wr_id) else { return };
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
        deliver(&connection.shared, connection.stream.as_ref(), side, completion);
    }

    /// Completes everything posted: the oldest send request with `first`, all others with [`Status::Flushed`].
    fn flush(&mut self, id: ConnectionId, first: Status) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let mut status = first;
        let sends = std::mem::take(&mut connection.sends).into_iter();
        let receives = std::mem::take(&mut connection.receives).into_iter();
        let sends = sends.map(|(handle, opcode)| (handle, opcode, Side::Send));
        for (handle, opcode, side) in
            sends.chain(receives.map(|handle| (handle, Opcode::Recv, Side::Receive)))
        {
            let Some(place) = self.io.places.remove(handle) else { continue };
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
            deliver(&connection.shared, connection.stream.as_ref(), side, completion);
        }
    }
}

/// Returns true if packets count as lost when this timer fires.
fn is_timeout(kind: TimerKind) -> bool {
    matches!(kind, TimerKind::Retransmit | TimerKind::PathOrder)
}

/// Hands a completion to the application.
fn deliver(
    shared: &Arc<ConnectionShared>,
    stream: Option<&Arc<EventQueue>>,
    side: Side,
    completion: Completion,
) {
    match stream {
        None => shared.completions.push((side, completion)),
        Some(stream) => stream.push(QueuedEvent::Completed { completion, side, connection: shared.clone() }),
    }
}

/// Notifies the application that nothing accesses a region any more.
fn released(release: Release) {
    if let Some((stream, token)) = release.tell {
        stream.push(QueuedEvent::Released { token });
    }
}

/// Removal of a completed request. Completions come in the order of posting, so it is at the front.
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
