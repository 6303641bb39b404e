//! The process: its device, its groups, and the start of operations.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pathweave_collective::{Call, OpId, Overdue, PeerId, Place, Plan, Span};
use pathweave_datapath::secure::Refusal;
use pathweave_datapath::{
    Accepting, Completion, ConnectError, Connection, Device, DeviceConfig, Event, Events, Opcode,
};
use pathweave_door::{
    Interface, Process as Fork, SharedMemory, include_keepalive_in_timeout, interfaces, interfaces_from,
    settings,
};

use crate::copies::{Copies, Note};
use crate::lock;
use crate::neighbour::{Apart, Identity, lasting_cookie};
use crate::peer::{IS_FRAME, IS_WRITE, Link, Peer};
use crate::record::{Cookie, Record, greeted, greeting, random};
use crate::ticket::{Ticket, Waited};
use crate::work::{Buffer, Keep, Running, State};

/// Longest time for which the end of the process waits for what peers have not acknowledged.
const FAREWELL: Duration = Duration::from_secs(5);

/// Device of this process with its connections.
pub struct Process {
    device: Device,
    events: Events,
    _accepting: Accepting,
    cookie: &'static Cookie,
    /// Identity for processes of this host, if they may copy memory.
    identity: Option<Identity>,
    scheme: String,
    patience: Duration,
    fork: Fork,
    state: Mutex<State>,
}

/// Way to processes of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbours {
    /// Long transfers are copied from their memory, if the kernel permits it, and sent to them otherwise.
    Copy,
    /// They are peers like others.
    OverNetwork,
}

/// Returns this process's cookie, which stays where it is, and its identity.
fn identify(neighbours: Neighbours) -> (&'static Cookie, Option<Identity>) {
    let cookie = lasting_cookie();
    let identity = match neighbours {
        Neighbours::Copy => Identity::own(cookie),
        Neighbours::OverNetwork => None,
    };
    (cookie, identity)
}

/// A group of ranks that this process belongs to.
pub struct Group {
    process: Arc<Process>,
    id: u64,
    place: Place,
    members: Vec<PeerId>,
}

impl Process {
    /// Opens the device, as the environment says.
    ///
    /// # Errors
    /// One line for users.
    pub fn open() -> Result<Arc<Self>, String> {
        let settings = settings::from_environment().map_err(|error| error.to_string())?;
        let found = interfaces_from(&settings.place, &interfaces())?;
        let interfaces: Vec<&Interface> = found.iter().collect();
        let neighbours = match settings.shared_memory {
            SharedMemory::Off | SharedMemory::Messages => Neighbours::OverNetwork,
            SharedMemory::On => Neighbours::Copy,
        };
        let (cookie, identity) = identify(neighbours);
        let ports = settings.ports.clone().unwrap_or(0..=0);
        let adapt = |config: &mut DeviceConfig| {
            include_keepalive_in_timeout(config);
            config.answer_data = identity.map_or(Vec::new(), |identity| identity.encode());
            Ok(())
        };
        let device = settings.open(&interfaces, interfaces[0].address, ports, adapt);
        let device = device.map_err(|error| error.to_string())?;
        Process::over(device, settings.scheme, settings.peer_timeout, (cookie, identity))
    }

    /// Opens a device with this configuration.
    ///
    /// # Errors
    /// One line for users.
    pub fn with(mut config: DeviceConfig, neighbours: Neighbours) -> Result<Arc<Self>, String> {
        let (scheme, patience) = (config.scheme.clone(), config.peer_timeout);
        let (cookie, identity) = identify(neighbours);
        config.answer_data = identity.map_or(Vec::new(), |identity| identity.encode());
        let device = Device::open(config).map_err(|error| error.to_string())?;
        Process::over(device, scheme, patience, (cookie, identity))
    }

    fn over(
        device: Device,
        scheme: String,
        patience: Duration,
        (cookie, identity): (&'static Cookie, Option<Identity>),
    ) -> Result<Arc<Self>, String> {
        let events = device.events();
        let accepting = events.accept().map_err(|error| error.to_string())?;
        let process = Arc::new(Process {
            events,
            _accepting: accepting,
            cookie,
            identity,
            scheme,
            patience,
            fork: Fork::this(),
            state: Mutex::new(State::new()),
            device,
        });
        let weak = Arc::downgrade(&process);
        let hook = move || {
            if let Some(process) = weak.upgrade() {
                process.drain();
            }
        };
        process.device.set_hook(hook).map_err(|error| error.to_string())?;
        Ok(process)
    }

    /// Returns the text with which this process enters a group; other members read it from torch's store.
    pub fn record(&self) -> String {
        Record { cookie: *self.cookie, group: random(), addresses: self.device.addresses().to_vec() }.encode()
    }

    /// Returns the transfers so far with processes of this host.
    pub fn copies(&self) -> Copies {
        lock(&self.state).copies.clone()
    }

    /// Joins a group whose members have these records, by rank.
    ///
    /// # Errors
    /// One line for users.
    pub fn join(self: &Arc<Self>, rank: u32, records: &[String]) -> Result<Group, String> {
        let records: Vec<Record> =
            records.iter().map(|text| Record::decode(text)).collect::<Result<_, _>>()?;
        let place = Place { rank, ranks: records.len() as u32 };
        let id = records.first().ok_or("a group needs a member")?.group;
        let mut state = lock(&self.state);
        let mut members = Vec::with_capacity(records.len());
        for record in records {
            let peer = state.peer(record.cookie);
            state.peers[peer as usize].addresses = record.addresses;
            members.push(peer);
        }
        state.engine.join(id, place, members.clone());
        self.obey(&mut state);
        drop(state);
        Ok(Group { process: self.clone(), id, place, members })
    }

    /// Carries out the engine's orders.
    fn obey(&self, state: &mut State) {
        let ended = state.obey(&self.device, &self.events);
        self.dial(state);
        if ended {
            self.device.rouse();
        }
    }

    /// Dials the peers that something is to be sent to. Of two processes, the one with the lower cookie dials.
    fn dial(&self, state: &mut State) {
        for peer in std::mem::take(&mut state.wanted) {
            let to = &mut state.peers[peer as usize];
            if *self.cookie < to.cookie && matches!(to.link, Link::None) && !to.addresses.is_empty() {
                to.link = Link::Dialling(Instant::now());
                self.connect(peer, to);
            }
        }
    }

    fn connect(&self, peer: PeerId, to: &Peer) {
        let identity = self.identity.map_or(Vec::new(), |identity| identity.encode());
        let greeting = greeting(self.cookie, &to.cookie, &identity);
        // Dropping the attempt has no effect.
        let _ = self.events.connect_any(
            u64::from(peer),
            to.addresses[0],
            &to.addresses[1..],
            &self.scheme,
            &greeting,
        );
    }

    /// Takes all events. Called by the loop.
    fn drain(&self) {
        let mut state = lock(&self.state);
        while let Some(event) = self.events.take() {
            match event {
                Event::Completed(done) => self.completed(&mut state, &done),
                Event::Opened { token, connection } => {
                    let identity = connection.info().private_data.clone();
                    self.opened(&mut state, token as PeerId, connection, &identity);
                }
                Event::Accepted(connection) => {
                    let greeting = connection.info().private_data.clone();
                    if let Some((cookie, identity)) = greeted(&greeting, self.cookie) {
                        let peer = state.peer(cookie);
                        self.opened(&mut state, peer, connection, identity);
                    }
                }
                Event::Refused { token, error } => self.refused(&mut state, token as PeerId, &error),
                Event::Closed { connection, reason } => {
                    if let Some(peer) = state.by_connection.remove(&connection) {
                        state.peers[peer as usize].lose();
                        state.forget(peer);
                        state.engine.lost(peer, &reason.to_string());
                    }
                }
                _ => {}
            }
            self.obey(&mut state);
        }
    }

    fn opened(&self, state: &mut State, peer: PeerId, connection: Connection, identity: &[u8]) {
        state.by_connection.insert(connection.id(), peer);
        if let Some((theirs, own)) = Identity::decode(identity).zip(self.identity) {
            let to = &mut state.peers[peer as usize];
            match theirs.reach(&own, &to.cookie, connection.info().peer.ip()) {
                Ok(neighbour) => {
                    to.neighbour = Some(neighbour);
                    state.copies.neighbours += 1;
                }
                Err(Apart::Elsewhere) => {}
                Err(Apart::Refused(reason)) => state.apart(peer, reason),
            }
        }
        if let Err(error) = state.peers[peer as usize].open(connection) {
            state.engine.lost(peer, &error.to_string());
        }
    }

    fn refused(&self, state: &mut State, peer: PeerId, error: &ConnectError) {
        let busy = matches!(
            error,
            ConnectError::Refused { reason: Refusal::Busy | Refusal::PeerLimit, .. }
                | ConnectError::TooMany { .. }
        );
        let to = &mut state.peers[peer as usize];
        if busy && !to.is_late(self.patience) {
            return self.connect(peer, to);
        }
        to.lose();
        state.engine.lost(peer, &format!("no connection: {error}"));
    }

    fn completed(&self, state: &mut State, done: &Completion) {
        let Some(&peer) = state.by_connection.get(&done.connection) else { return };
        match done.opcode {
            Opcode::Recv | Opcode::RecvWriteImm => {
                if !done.is_success() {
                    return;
                }
                match done.imm {
                    Some(token) => {
                        state.peers[peer as usize].reuse(done.wr_id);
                        state.arrived(peer, token, done.byte_len);
                    }
                    None => {
                        let frame = state.peers[peer as usize].frame(done.wr_id, done.byte_len);
                        state.peers[peer as usize].reuse(done.wr_id);
                        let frame = frame.unwrap_or_default();
                        match Note::decode(&frame) {
                            Some(note) => state.note(peer, note),
                            None => state.engine.frame(peer, &frame),
                        }
                    }
                }
            }
            Opcode::Send | Opcode::Write | Opcode::Read => {
                state.peers[peer as usize].completed();
                if done.wr_id & IS_FRAME != 0 {
                    state.frame_left(done.wr_id);
                } else if done.is_success() {
                    state.engine.written(done.wr_id & !IS_WRITE);
                }
            }
        }
    }

    pub(crate) fn wait(&self, ticket: &Ticket, patience: Duration) -> Waited {
        match self.device.wait_until(patience, || ticket.outcome().map(|_| ())) {
            Ok(Some(())) => Waited::Done,
            Ok(None) => Waited::Late,
            Err(error) => {
                ticket.end(Err(error.to_string()));
                Waited::Done
            }
        }
    }

    /// Asks the ranks that an operation waits for. Returns false if there are none to be asked.
    pub(crate) fn ask(&self, op: OpId) -> bool {
        let mut state = lock(&self.state);
        let asked = state.engine.ask(op);
        self.obey(&mut state);
        asked
    }

    /// Returns true if an operation waits only for ranks that wait themselves.
    pub(crate) fn waits_for_waiting(&self, op: OpId) -> bool {
        lock(&self.state).engine.overdue(op).is_some_and(|overdue| overdue.absent.is_empty())
    }

    pub(crate) fn expire(&self, op: OpId, lasted: Duration) {
        let mut state = lock(&self.state);
        let Some(Overdue { group, call, awaited, absent }) = state.engine.overdue(op) else { return };
        let list = |ranks: &[u32]| {
            let words: Vec<String> = ranks.iter().map(u32::to_string).collect();
            format!("{} {}", if words.len() == 1 { "rank" } else { "ranks" }, words.join(", "))
        };
        let missing = match (awaited.len(), absent.len()) {
            (0, _) => "no rank has answered".to_owned(),
            (_, 0) => format!("nothing came from {}, which has begun it and waits, too", list(&awaited)),
            _ => format!("nothing came from {}", list(&absent)),
        };
        let text = format!("{call} timed out after {:.1} s: {missing}", lasted.as_secs_f64());
        if !state.engine.withdraw(op, &text) {
            state.engine.fail(group, &text);
        }
        self.obey(&mut state);
    }

    /// Waits until peers have acknowledged what was sent to them, for a few seconds at most; fails what is in progress.
    pub fn close(&self) {
        let quiet = || {
            let state = lock(&self.state);
            state.peers.iter().all(Peer::is_quiet).then_some(())
        };
        if self.fork.is_this() {
            let _ = self.device.wait_until(FAREWELL, quiet);
        }
        let running: Vec<Running> = lock(&self.state).running.drain().map(|(_, running)| running).collect();
        for running in running {
            running.ticket.end(Err("the process has left the group".into()));
        }
        self.device.rouse();
    }
}

impl State {
    /// Returns the number of a process, new or known.
    fn peer(&mut self, cookie: Cookie) -> PeerId {
        let next = self.peers.len() as PeerId;
        let number = *self.by_cookie.entry(cookie).or_insert(next);
        if number == next {
            self.peers.push(Peer::new(cookie));
        }
        number
    }
}

impl Group {
    /// Returns rank and number of ranks.
    pub fn place(&self) -> Place {
        self.place
    }

    /// Returns the number of collectives that have begun.
    pub fn begun(&self) -> u64 {
        lock(&self.process.state).engine.begun(self.id)
    }

    /// Starts an operation with these ranks. Both ends ask for the connection, since only one of them dials.
    fn start(
        &self,
        running: Result<Running, String>,
        ranks: impl Iterator<Item = u32>,
        begin: impl FnOnce(&mut State) -> Result<OpId, String>,
    ) -> Result<Arc<Ticket>, String> {
        let running = running?;
        let ticket = running.ticket.clone();
        if !self.process.fork.is_this() {
            return Err("a child of the process that opened the group cannot use it".into());
        }
        let mut state = lock(&self.process.state);
        let op = begin(&mut state)?;
        ticket.is_for(op);
        state.running.insert(op, running);
        state.wanted.extend(ranks.map(|rank| self.members[rank as usize]));
        self.process.obey(&mut state);
        Ok(ticket)
    }

    /// Begins a collective on these buffers.
    ///
    /// # Errors
    /// The group has failed, or a rank that is needed has left.
    ///
    /// # Safety
    /// The buffers are valid until `keep` is dropped, and only this library uses them until the operation has ended.
    #[allow(unsafe_code, reason = "passes a promise of the caller on")]
    pub unsafe fn collective(
        &self,
        call: Call,
        plan: Plan,
        buffers: &[Buffer],
        keep: &Keep,
    ) -> Result<Arc<Ticket>, String> {
        let ticket = Ticket::new(&self.process);
        // SAFETY: guaranteed by the caller.
        let running = unsafe { Running::new(call, buffers, keep, plan.temporary_bytes, ticket) };
        let ranks: Vec<u32> = plan.ranks().collect();
        self.start(running, ranks.into_iter(), |state| state.engine.collective(self.id, call, plan))
    }

    /// Sends a buffer to a rank.
    ///
    /// # Errors
    /// The group has failed, or the rank has left.
    ///
    /// # Safety
    /// As for [`collective`](Group::collective).
    #[allow(unsafe_code, reason = "passes a promise of the caller on")]
    pub unsafe fn send(
        &self,
        to: u32,
        tag: u64,
        call: Call,
        buffer: Buffer,
        keep: &Keep,
    ) -> Result<Arc<Ticket>, String> {
        self.check(to)?;
        let ticket = Ticket::new(&self.process);
        // SAFETY: guaranteed by the caller.
        let running = unsafe { Running::new(call, &[buffer], keep, 0, ticket) };
        let from = Span::whole(0, buffer.bytes);
        self.start(running, [to].into_iter(), |state| state.engine.send(self.id, to, tag, call, from))
    }

    /// Receives into a buffer, from a rank or from any.
    ///
    /// # Errors
    /// The group has failed, or the rank has left.
    ///
    /// # Safety
    /// As for [`collective`](Group::collective).
    #[allow(unsafe_code, reason = "passes a promise of the caller on")]
    pub unsafe fn receive(
        &self,
        from: Option<u32>,
        tag: u64,
        call: Call,
        buffer: Buffer,
        keep: &Keep,
    ) -> Result<Arc<Ticket>, String> {
        from.map_or(Ok(()), |rank| self.check(rank))?;
        let ticket = Ticket::new(&self.process);
        // SAFETY: guaranteed by the caller.
        let running = unsafe { Running::new(call, &[buffer], keep, 0, ticket) };
        let to = Span::whole(0, buffer.bytes);
        let Place { rank: own, ranks } = self.place;
        let others = (0..ranks).filter(|rank| from.map_or(*rank != own, |from| *rank == from));
        self.start(running, others, |state| state.engine.receive(self.id, from, tag, call, to))
    }

    fn check(&self, rank: u32) -> Result<(), String> {
        let Place { rank: own, ranks } = self.place;
        if rank < ranks && rank != own {
            return Ok(());
        }
        Err(format!(
            "a message between rank {own} and rank {rank}; another rank of 0 to {} is needed",
            ranks - 1
        ))
    }

    /// Fails the group at all ranks.
    pub fn abort(&self, reason: &str) {
        let mut state = lock(&self.process.state);
        state.engine.fail(self.id, reason);
        self.process.obey(&mut state);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let mut state = lock(&self.process.state);
        state.engine.leave(self.id);
        self.process.obey(&mut state);
    }
}
