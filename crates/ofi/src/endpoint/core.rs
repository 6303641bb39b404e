//! State of an endpoint behind its lock.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use arrayvec::ArrayVec;
use pathweave_datapath::{Accepting, ConnectionId, Device, Events, Remote, Slice};
use pathweave_tagged::{
    self as tagged, Action, Buffer, Completion, Config, Engine, Failure, Payload, PeerId, Piece, RegionId,
    Release, RequestId,
};
use slab::Slab;

use super::Endpoint;
use super::buffers::{Buffers, Direction};
use super::links::{Link, Links};
use super::local_peers::{Copy, LocalPeers};
use super::report::{Local, Reporter};
use super::stage::StagingPool;
use super::visits::DevicePollSchedule;
use crate::abi::errno::FI_EADDRINUSE;
use crate::abi::fabric::*;
use crate::ffi::memory;
use crate::guard::{Errno, FiResult};
use crate::log::{Level, log, log_once};
use crate::object::lock;
use crate::object::uses::Use;
use crate::object::vector::Vector;

/// Size of the smaller staging slots, bytes. They hold messages without payload and small messages.
const SMALL_PLACE: usize = 256;
/// Largest size of a message's header, bytes.
pub(super) const HEADER_ROOM: usize = 96;

/// Largest number of buffers of an operation: operand, comparand and result of an atomic.
const MOST_BUFFERS: usize = 3;

/// An operation of the application.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) context: usize,
    pub(super) buffers: ArrayVec<Buffer, MOST_BUFFERS>,
    pub(super) kind: OperationKind,
}

/// Completion that ends an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OperationKind {
    /// The first completion ends the operation.
    Once,
    /// A receive: the first completion ends it, and it can be cancelled.
    Receive,
    /// A multi-receive: the completion that releases the buffer ends it, and it can be cancelled.
    Many,
    /// A search for a message to claim: it ends with the claim, if there is one.
    Claiming,
    /// The message is claimed.
    Claimed,
}

/// A request to the datapath.
#[derive(Debug)]
pub(super) enum Request {
    Send { peer: PeerId, request: RequestId, place: Slice },
    Move { peer: PeerId, request: RequestId },
    Receive { place: Slice },
}

/// A region that is being closed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Closing {
    pub(super) key: u64,
    pub(super) region: RegionId,
    pub(super) buffer: Buffer,
}

/// All state that the lock guards. Fields are dropped in this order: connections before the device.
pub(crate) struct EndpointState {
    pub(super) engine: Engine,
    pub(super) neighbours: LocalPeers,
    pub(super) buffers: Buffers,
    pub(super) links: Links,
    pub(super) stage: StagingPool,
    pub(super) operations: Slab<Operation>,
    /// Claimed messages, by the application's context.
    pub(super) claimed: HashMap<usize, usize>,
    pub(super) requests: Slab<Request>,
    /// Number of requests to send or to transfer bytes that the device has not completed.
    pub(super) unanswered: usize,
    pub(super) regions: HashMap<u64, (RegionId, Buffer)>,
    /// Regions that are being closed, by the application's key.
    pub(super) closing: HashMap<u64, Closing>,
    /// Completions that are delayed until their memory is no longer read.
    deferred: Vec<Completion>,
    /// Connections that are being closed, by connection.
    pub(super) closing_connections: HashMap<ConnectionId, PeerId>,
    pub(super) reporter: Reporter,
    pub(super) vector: Arc<Vector>,
    _held: Use,
    domain: Arc<crate::object::domain::Domain>,
    pub(super) own: SocketAddr,
    pub(super) caps: u64,
    pub(super) scheme: String,
    pub(super) next_token: u64,
    /// Peers by the application's addresses, and the version of the address vector for which they are valid.
    pub(super) targets: (u64, Vec<Option<PeerId>>),
    pub(super) visits: DevicePollSchedule,
    _accepting: Accepting,
    pub(super) events: Events,
    device: Device,
}

impl EndpointState {
    /// Starts to accept connections.
    ///
    /// # Errors
    ///
    /// Returns FI_EADDRINUSE if another object accepts them already.
    pub(super) fn start(
        endpoint: &Endpoint,
        boot: u64,
        device: Device,
        reporter: Reporter,
        vector: Arc<Vector>,
        held: Use,
    ) -> FiResult<Self> {
        let events = device.events();
        let accepting = events.accept().map_err(|_| Errno(FI_EADDRINUSE))?;
        let settings = &endpoint.domain.settings;
        let eager = settings.eager_bytes;
        let config = Config {
            eager: eager as u32,
            busy_receive: (eager + 64) as u32,
            unexpected_bytes: settings.unexpected_bytes as u64,
            seed: super::random(),
            ..Config::default()
        };
        let (_, first_bytes) = tagged::FIRST_RECEIVES;
        let sizes = vec![SMALL_PLACE, first_bytes as usize, config.busy_receive as usize];
        let scheme = settings.scheme.clone();
        Ok(EndpointState {
            engine: Engine::new(config),
            neighbours: LocalPeers::open(settings),
            buffers: Buffers::new(device.clone(), events.clone(), endpoint.domain.words.clone()),
            links: Links::new(endpoint.own(), boot),
            stage: StagingPool::new(sizes),
            operations: Slab::new(),
            claimed: HashMap::new(),
            requests: Slab::new(),
            unanswered: 0,
            regions: HashMap::new(),
            closing: HashMap::new(),
            deferred: Vec::new(),
            closing_connections: HashMap::new(),
            reporter,
            vector,
            _held: held,
            domain: endpoint.domain.clone(),
            own: endpoint.own(),
            caps: endpoint.caps,
            scheme,
            next_token: 0,
            targets: (0, Vec::new()),
            visits: DevicePollSchedule::default(),
            _accepting: accepting,
            events,
            device,
        })
    }

    /// Starts the thread that serves peers on this host.
    pub(super) fn start_watch(&mut self, endpoint: Weak<Endpoint>) {
        self.neighbours.start(endpoint);
    }

    /// Processes messages that arrived through shared memory, without the device. Returns true if there were
    /// any.
    pub(super) fn poll_lanes(&mut self) -> bool {
        let heard = self.poll_local();
        self.take_notices();
        self.run_actions();
        heard
    }

    /// Tells the engine how many notices of peers' writes the application has read, which makes room for
    /// more.
    fn take_notices(&mut self) {
        if self.reporter.notices_read.load(Ordering::Relaxed) > 0 {
            let read = self.reporter.notices_read.swap(0, Ordering::Relaxed);
            self.engine.notices_read(read, &mut self.buffers);
        }
    }

    pub(super) fn device(&self) -> Device {
        self.device.clone()
    }

    /// Processes all events and their consequences. Returns true if a peer on this host has sent anything.
    pub(super) fn pass(&mut self) -> bool {
        while let Some(event) = self.events.take() {
            self.visits.saw_event();
            self.on_event(event);
            self.run_actions();
        }
        self.poll_lanes()
    }

    /// Executes the engine's actions and reports finished operations.
    pub(super) fn run_actions(&mut self) {
        while let Some(action) = self.engine.poll_action() {
            self.run_action(action);
        }
        while let Some(done) = self.engine.poll_completion() {
            self.finish(done);
        }
    }

    /// Returns true if no work is left for any peer.
    pub(super) fn is_idle(&self) -> bool {
        self.links.ids().all(|peer| self.engine.is_idle(peer))
            && !self.neighbours.is_waiting()
            && self.deferred.is_empty()
            && self.closing_connections.is_empty()
    }

    /// Returns true if a peer has yet to receive data that the application cannot wait for.
    pub(super) fn has_undelivered(&self) -> bool {
        self.links.ids().any(|peer| self.engine.has_unreported_output(peer))
    }

    /// Closes the connections of peers that have yet to receive data that the application cannot wait for.
    /// Operations on that data fail.
    pub(super) fn drop_undelivered(&mut self) {
        let owed: Vec<PeerId> =
            self.links.ids().filter(|peer| self.engine.has_unreported_output(*peer)).collect();
        for peer in owed {
            let who = self.links.address(peer).map_or_else(|| "a peer".into(), |address| address.to_string());
            log_once(&format!(
                "{who} has not taken all messages by the end of fi_close; the others are lost"
            ));
            self.give_up(peer, Link::None);
            self.engine.peer_down(peer, Failure::TimedOut, &mut self.buffers);
        }
        self.run_actions();
    }

    fn run_action(&mut self, action: Action) {
        match action {
            Action::Connect { peer } => self.dial(peer),
            Action::Disconnect { peer, fault } => {
                log(Level::Warn, format_args!("a peer is cut off: {fault:?}"));
                self.give_up(peer, Link::None);
            }
            Action::PostReceives { peer, count, size } => {
                // A connection that was dialled here has its first receives already.
                if !self.links.take_first_receives(peer) && self.lane_of(peer).is_none() {
                    self.post_receives(peer, count, size as usize);
                }
            }
            Action::Send { peer, header, payload, request } => match self.lane_of(peer) {
                Some(lane) => self.send_local(lane, header.as_slice(), &payload, request),
                None => self.transmit(peer, header.as_slice(), &payload, request),
            },
            Action::Read { peer, remote, into, request } => {
                self.transfer(peer, Direction::FromPeer, remote, into, request);
            }
            Action::Write { peer, remote, from, request } => {
                self.transfer(peer, Direction::ToPeer, remote, from, request);
            }
        }
    }

    fn transfer(
        &mut self,
        peer: PeerId,
        way: Direction,
        remote: tagged::Remote,
        local: Piece,
        request: RequestId,
    ) {
        if let Some(lane) = self.lane_of(peer) {
            let copy = Copy { remote, local, request };
            return match way {
                Direction::FromPeer => self.read_local(lane, copy),
                Direction::ToPeer => self.write_local(lane, copy),
            };
        }
        let remote = Remote { address: remote.address, rkey: remote.rkey };
        let slices = self.buffers.slices(local);
        let wr = self.requests.insert(Request::Move { peer, request }) as u64;
        self.unanswered += 1;
        let connection = self.links.connection(peer).zip(slices);
        let posted = connection.is_some_and(|(to, slices)| match way {
            Direction::FromPeer => to.read(wr, slices, remote).is_ok(),
            Direction::ToPeer => to.write(wr, slices, remote).is_ok(),
        });
        self.rollback_if_failed(posted, wr);
    }

    /// Rolls back a request if it could not be posted. In that case its connection has ended, which an event
    /// reports.
    fn rollback_if_failed(&mut self, posted: bool, wr: u64) {
        if !posted {
            match self.requests.remove(wr as usize) {
                Request::Receive { place } => self.stage.free(place),
                Request::Send { place, .. } => {
                    self.unanswered -= 1;
                    self.stage.free(place);
                }
                Request::Move { .. } => self.unanswered -= 1,
            }
        }
    }

    pub(super) fn post_receives(&mut self, peer: PeerId, count: u16, bytes: usize) {
        for _ in 0..count {
            let Some(place) = self.stage.alloc(bytes) else { return };
            let wr = self.requests.insert(Request::Receive { place: place.clone() }) as u64;
            // The length is exactly what the peer was told, so it cannot send more.
            let into = place.region().slice(place.offset()..place.offset() + bytes).ok();
            let connection = self.links.connection(peer).zip(into);
            let posted = connection.is_some_and(|(to, into)| to.recv(wr, into).is_ok());
            self.rollback_if_failed(posted, wr);
        }
    }

    fn transmit(&mut self, peer: PeerId, header: &[u8], payload: &Payload, request: RequestId) {
        let len = match payload {
            Payload::None => 0,
            Payload::Piece(piece) => piece.len as usize,
            Payload::Bytes(bytes) => bytes.len(),
        };
        let all = header.len() + len;
        let Some(mut place) = self.stage.alloc(all.max(HEADER_ROOM)) else { return };
        // The slot is exclusive until it is returned.
        let bytes = memory::bytes_mut(&mut place, all);
        bytes[..header.len()].copy_from_slice(header);
        let behind = &mut bytes[header.len()..];
        match payload {
            Payload::None => {}
            Payload::Piece(piece) => tagged::Memory::fetch(&mut self.buffers, *piece, behind),
            Payload::Bytes(bytes) => behind.copy_from_slice(bytes),
        }
        let from = place.region().slice(place.offset()..place.offset() + all).ok();
        let wr = self.requests.insert(Request::Send { peer, request, place }) as u64;
        self.unanswered += 1;
        let connection = self.links.connection(peer).zip(from);
        let posted = connection.is_some_and(|(to, from)| to.send(wr, from).is_ok());
        self.rollback_if_failed(posted, wr);
    }

    /// Handles the end of an operation. Reports it at once, or later if its memory is still in use.
    fn finish(&mut self, done: Completion) {
        if self.must_wait(&done) {
            self.deferred.push(done);
        } else {
            self.report(&done);
        }
    }

    fn must_wait(&self, done: &Completion) -> bool {
        if self.deferred.is_empty() && self.closing_connections.is_empty() && !self.buffers.any_in_use() {
            return false;
        }
        let Some(operation) = self.operation(done.context) else { return false };
        let dying = done.result.is_err()
            && done.peer.is_some_and(|peer| self.closing_connections.values().any(|of| *of == peer));
        dying || operation.buffers.iter().any(|buffer| self.buffers.is_in_use(*buffer))
    }

    /// Re-examines the delayed completions.
    pub(super) fn finish_deferred(&mut self) {
        for done in std::mem::take(&mut self.deferred) {
            self.finish(done);
        }
    }

    fn operation(&self, context: u64) -> Option<&Operation> {
        self.operations.get((context as usize).checked_sub(1)?)
    }

    fn report(&mut self, done: &Completion) {
        let wants_source = self.caps & FI_SOURCE != 0;
        let source = || {
            let address = self.links.address(done.peer?)?;
            self.vector.number(address)
        };
        let local = Local {
            context: self.operation(done.context).map_or(0, |operation| operation.context),
            address: self.buffers.address(done.into),
            source: if wants_source { source().unwrap_or(FI_ADDR_NOTAVAIL) } else { FI_ADDR_NOTAVAIL },
        };
        self.reporter.report(done, local);
        self.count_in_region(done);
        self.end(done);
    }

    /// Counts an operation of a peer in the counters of the region it accessed.
    fn count_in_region(&self, done: &Completion) {
        let Some(mr) = done.region.and_then(|key| self.domain.region(key)) else { return };
        let class = super::report::class_of(done.kind);
        for bound in lock(&mr.counters).iter().filter(|bound| bound.flags & class != 0) {
            bound.counter.change(|counts| counts.good += 1);
        }
    }

    /// Removes an operation, unless it has further completions.
    fn end(&mut self, done: &Completion) {
        let Some(index) = (done.context as usize).checked_sub(1) else { return };
        let Some(operation) = self.operations.get_mut(index) else { return };
        match (operation.kind, done.release) {
            (OperationKind::Many, Release::No) => return,
            (OperationKind::Claiming, _) if done.result.is_ok() => {
                operation.kind = OperationKind::Claimed;
                self.claimed.insert(operation.context, index);
                return;
            }
            _ => {}
        }
        for buffer in self.operations.remove(index).buffers {
            self.buffers.forget(buffer);
        }
    }

    /// Closes the connection with a peer and replaces its link.
    pub(super) fn give_up(&mut self, peer: PeerId, instead: Link) {
        match self.set_link(peer, instead) {
            Link::None => {}
            Link::Dialling { attempt, .. } => attempt.give_up(),
            Link::Answered(open) | Link::Up(open) => {
                // Dropping the handle closes the connection. Its memory is in use until the close is done.
                self.closing_connections.insert(open.connection.id(), peer);
            }
        }
    }

    /// Adds memory of the application for one operation.
    pub(super) fn piece(&mut self, spans: memory::Spans) -> Piece {
        self.buffers.add(spans)
    }
}
