//! Engines above the real queue pair endpoints, in simulated time. The channels lose, duplicate and reorder packets,
//! cut paths and stop hosts.

use std::collections::{BTreeMap, BTreeSet};

use pathweave_tagged as tagged;
use pathweave_tagged::{Action, Engine, Failure, Memory, Payload, PeerId, Piece, Remote, Role};
use pathweave_transport::{
    Access, Buffer, Completion, Endpoint, EndpointConfig, Event, FreePorts, MemoryRegion, Op, Opcode,
    QpConfig, RecvRequest, Scope, Status, WorkRequest,
};
use pathweave_units::{Duration, HostId, PathId, QpNum, Rate, Rng, Time};
use pathweave_wire::{Body, Segment};

use crate::pair::Fixed;

pub const MTU: u16 = 1_024;

/// Impairments of the network.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    pub loss: f64,
    pub duplicate: f64,
    /// Upper bound of the extra delay, which is uniformly distributed.
    pub jitter: Duration,
    /// Start and end of an outage of the first paths, of 4, and their number.
    pub cut: Option<(Time, Time, u16)>,
}

/// Purpose of a request to the endpoint.
#[derive(Clone, Copy, Debug)]
enum Work {
    Send { peer: usize, request: tagged::RequestId, staged: u64 },
    Move { peer: usize, request: tagged::RequestId },
    Receive { peer: usize, staged: u64 },
}

/// Host without its engine: memory, and the endpoint that reads it.
pub struct Driver {
    endpoint: Endpoint<Fixed>,
    buffers: BTreeMap<u64, Vec<u8>>,
    next: u64,
    kept: BTreeSet<u64>,
    regions: BTreeSet<u64>,
    /// Keys to deregister after the responses in progress have left.
    closing: Vec<u64>,
}

/// Encodes a piece for the endpoint: buffer and offset in one number.
fn place(piece: Piece) -> Buffer {
    Buffer(piece.buffer.0 << 32 | piece.offset)
}

impl Driver {
    pub fn buffer(&mut self, bytes: &[u8]) -> Piece {
        self.next += 1;
        self.buffers.insert(self.next, bytes.to_vec());
        Piece::whole(tagged::Buffer(self.next), bytes.len() as u64)
    }
    pub fn bytes(&self, piece: Piece) -> &[u8] {
        &self.buffers[&piece.buffer.0][piece.offset as usize..][..piece.len as usize]
    }
    /// Returns true if no kept buffer and no registered region is left.
    pub fn is_clean(&self) -> bool {
        self.kept.is_empty() && self.regions.is_empty()
    }
}

impl Memory for Driver {
    fn write(&mut self, at: Piece, bytes: &[u8]) {
        if at.len > 0 {
            let buffer = self.buffers.get_mut(&at.buffer.0).expect("it lives");
            buffer[at.offset as usize..][..bytes.len()].copy_from_slice(bytes);
        }
    }
    fn fetch(&mut self, from: Piece, into: &mut [u8]) {
        if from.len > 0 {
            into.copy_from_slice(self.bytes(from));
        }
    }
    fn copy_out(&mut self, piece: Piece) -> Option<tagged::Buffer> {
        let bytes = self.bytes(piece).to_vec();
        let copy = self.buffer(&bytes).buffer;
        self.kept.insert(copy.0);
        Some(copy)
    }
    fn release(&mut self, buffer: tagged::Buffer) {
        // The bytes stay, because the endpoint may retransmit them.
        assert!(self.kept.remove(&buffer.0), "released once");
    }
    fn register(&mut self, piece: Piece, access: tagged::Access, _: Option<PeerId>) -> Option<Remote> {
        let access = Access { read: access.reads(), write: access.writes() };
        let (buffer, len) = (place(piece), piece.len);
        let region = MemoryRegion { buffer, addr: 0, len, access, scope: Scope::DEFAULT };
        let rkey = self.endpoint.register(region, 0).ok()?;
        self.regions.insert(rkey);
        Some(Remote { address: 0, rkey })
    }
    fn deregister(&mut self, rkey: u64) {
        assert!(self.regions.remove(&rkey), "deregistered once");
        self.closing.push(rkey);
    }
}

pub struct Host {
    pub engine: Engine,
    pub driver: Driver,
    pub completions: Vec<tagged::Completion>,
    pub faults: u32,
    qps: BTreeMap<usize, QpNum>,
    work: BTreeMap<u64, Work>,
    next_work: u64,
    port_free_at: Time,
    dead: bool,
}

struct Packet {
    from: usize,
    to: usize,
    segment: Segment,
    payload: Vec<u8>,
}

/// Hosts with 100 Gb/s and a delay of one microsecond, with four paths between any two by default.
pub struct Network {
    pub paths: u16,
    pub now: Time,
    pub hosts: Vec<Host>,
    pub weather: Weather,
    wire: BTreeMap<(Time, u64), Packet>,
    packets: u64,
    pub rng: Rng,
    dials: Vec<(usize, usize)>,
}

impl Network {
    pub fn new(count: usize, config: tagged::Config, weather: Weather, seed: u64) -> Self {
        let host = |host: usize| {
            let id = HostId(host as u32);
            let endpoint = Endpoint::new(EndpointConfig { mtu_payload: MTU, ..EndpointConfig::new(id) });
            Host {
                engine: Engine::new(config),
                driver: Driver {
                    endpoint,
                    buffers: BTreeMap::new(),
                    next: 0,
                    kept: BTreeSet::new(),
                    regions: BTreeSet::new(),
                    closing: Vec::new(),
                },
                completions: Vec::new(),
                faults: 0,
                qps: BTreeMap::new(),
                work: BTreeMap::new(),
                next_work: 0,
                port_free_at: Time::ZERO,
                dead: false,
            }
        };
        Network {
            paths: 4,
            now: Time::ZERO,
            hosts: (0..count).map(host).collect(),
            weather,
            wire: BTreeMap::new(),
            packets: 0,
            rng: Rng::for_component(seed, "network", 0),
            dials: Vec::new(),
        }
    }

    /// Calls an engine and executes the resulting actions.
    pub fn at<T>(&mut self, at: usize, call: impl FnOnce(&mut Engine, &mut Driver) -> T) -> T {
        let host = &mut self.hosts[at];
        let result = call(&mut host.engine, &mut host.driver);
        self.carry_out(at);
        result
    }

    fn carry_out(&mut self, at: usize) {
        while let Some(action) = self.hosts[at].engine.poll_action() {
            self.act(at, action);
        }
        let host = &mut self.hosts[at];
        while let Some(completion) = host.engine.poll_completion() {
            host.completions.push(completion);
        }
    }

    fn act(&mut self, at: usize, action: Action) {
        let host = &mut self.hosts[at];
        match action {
            Action::Connect { peer } => self.dials.push((at, peer.0 as usize)),
            Action::Disconnect { peer, .. } => {
                host.faults += 1;
                self.hang_up(at, peer.0 as usize);
            }
            Action::PostReceives { peer, count, size } => {
                let peer = peer.0 as usize;
                for _ in 0..count {
                    let staged = host.driver.buffer(&vec![0; size as usize]);
                    let (buffer, len) = (place(staged), u64::from(size));
                    let wr_id = host.note(Work::Receive { peer, staged: staged.buffer.0 });
                    let request = RecvRequest { wr_id, buffer, len };
                    host.driver.endpoint.post_recv(host.qps[&peer], request).expect("it is up");
                }
            }
            Action::Send { peer, header, payload, request } => {
                let mut bytes = header.as_slice().to_vec();
                match payload {
                    Payload::None => {}
                    Payload::Piece(piece) => bytes.extend_from_slice(host.driver.bytes(piece)),
                    Payload::Bytes(payload) => bytes.extend_from_slice(&payload),
                }
                let staged = host.driver.buffer(&bytes);
                let work = Work::Send { peer: peer.0 as usize, request, staged: staged.buffer.0 };
                self.request(at, peer, work, Op::Send, staged);
            }
            Action::Read { peer, remote, into, request } => {
                let op = Op::Read { rkey: remote.rkey, remote_addr: remote.address };
                self.request(at, peer, Work::Move { peer: peer.0 as usize, request }, op, into);
            }
            Action::Write { peer, remote, from, request } => {
                let op = Op::Write { rkey: remote.rkey, remote_addr: remote.address };
                self.request(at, peer, Work::Move { peer: peer.0 as usize, request }, op, from);
            }
        }
    }

    fn request(&mut self, at: usize, peer: PeerId, work: Work, op: Op, local: Piece) {
        let host = &mut self.hosts[at];
        let wr_id = host.note(work);
        let request = WorkRequest { wr_id, op, local: place(local), len: local.len };
        // If the queue pair has failed, an event reports it.
        if let Some(qp) = host.qps.get(&(peer.0 as usize)) {
            let _ = host.driver.endpoint.post(self.now, *qp, request);
        }
    }

    fn hang_up(&mut self, at: usize, peer: usize) {
        let host = &mut self.hosts[at];
        if let Some(qp) = host.qps.remove(&peer) {
            host.driver.endpoint.destroy_qp(qp).expect("it was there");
        }
    }

    /// Establishes a connection at once, if both hosts are alive.
    fn dial(&mut self, from: usize, to: usize) {
        if self.hosts[from].engine.is_up(PeerId(to as u32)) {
            return;
        }
        if self.hosts[to].dead {
            self.at(from, |engine, driver| engine.peer_down(PeerId(to as u32), Failure::Refused, driver));
            return;
        }
        for (at, other) in [(from, to), (to, from)] {
            if self.hosts[at].qps.contains_key(&other) {
                self.lose(at, other, Failure::Reset);
            }
        }
        self.dials.retain(|dial| *dial != (to, from));
        let [a, b] = [(from, to), (to, from)].map(|(at, other)| {
            let mut policy = Fixed::window(64);
            policy.paths = self.paths;
            let mut config = QpConfig::new(HostId(other as u32), policy, &[]);
            config.rto.timeout = Duration::from_us(60);
            config.rto.max_timeout = Duration::from_us(500);
            config.rnr.delay = Duration::from_us(20);
            // As on devices: the next READ may arrive as soon as the response has, before its acknowledgement.
            config.max_reads_in = 128;
            let host = &mut self.hosts[at];
            let qp = host.driver.endpoint.create_qp(self.now, config);
            host.qps.insert(other, qp);
            qp
        });
        self.hosts[from].driver.endpoint.connect(a, b).expect("new");
        self.hosts[to].driver.endpoint.connect(b, a).expect("new");
        let name = |host: usize| PeerId(host as u32);
        self.at(from, |engine, driver| engine.peer_up(name(to), Role::Initiator, driver));
        self.at(to, |engine, driver| engine.peer_up(name(from), Role::Acceptor, driver));
    }

    fn lose(&mut self, at: usize, peer: usize, failure: Failure) {
        self.hang_up(at, peer);
        self.at(at, |engine, driver| engine.peer_down(PeerId(peer as u32), failure, driver));
    }

    /// Stops a host.
    pub fn kill(&mut self, at: usize) {
        self.hosts[at].dead = true;
    }

    fn handle(&mut self, at: usize, event: Event) {
        match event {
            Event::Completion(done) => self.on_completion(at, &done),
            Event::QpError { qp, .. } => {
                let peer = self.hosts[at].qps.iter().find(|(_, of)| **of == qp).map(|(peer, _)| *peer);
                if let Some(peer) = peer {
                    self.lose(at, peer, Failure::TimedOut);
                }
            }
            _ => {}
        }
    }

    fn on_completion(&mut self, at: usize, done: &Completion) {
        let host = &mut self.hosts[at];
        let Some(work) = host.work.remove(&done.wr_id) else { return };
        let current = |peer: &usize| host.qps.get(peer) == Some(&done.qp);
        let result = match done.status {
            Status::Success => Ok(()),
            Status::RemoteAccess => Err(Failure::Access),
            _ => Err(Failure::TimedOut),
        };
        match work {
            Work::Receive { peer, staged } if current(&peer) && result.is_ok() => {
                assert_eq!(done.opcode, Opcode::Recv);
                let bytes = host.driver.buffers.remove(&staged).expect("staged");
                let bytes = &bytes[..done.byte_len as usize];
                self.at(at, |engine, driver| engine.delivered(PeerId(peer as u32), bytes, driver));
            }
            Work::Receive { .. } => {}
            Work::Send { peer, request, staged } => {
                host.driver.buffers.remove(&staged);
                if self.hosts[at].qps.get(&peer) == Some(&done.qp) {
                    self.at(at, |e, driver| e.completed(PeerId(peer as u32), request, result, driver));
                }
            }
            Work::Move { peer, request } if current(&peer) => {
                self.at(at, |e, driver| e.completed(PeerId(peer as u32), request, result, driver));
            }
            Work::Move { .. } => {}
        }
    }

    /// Handles everything that is due now, and sends the endpoints' packets.
    fn drain(&mut self) {
        loop {
            let mut quiet = true;
            for (from, to) in core::mem::take(&mut self.dials) {
                quiet = false;
                self.dial(from, to);
            }
            for at in (0..self.hosts.len()).filter(|at| !self.hosts[*at].dead).collect::<Vec<_>>() {
                while let Some(event) = self.hosts[at].driver.endpoint.poll_event() {
                    quiet = false;
                    self.handle(at, event);
                }
                self.transmit(at);
                let driver = &mut self.hosts[at].driver;
                driver.closing.retain(|rkey| driver.endpoint.deregister(*rkey).is_err());
            }
            if quiet && self.dials.is_empty() {
                break;
            }
        }
    }

    fn transmit(&mut self, from: usize) {
        let host = &mut self.hosts[from];
        loop {
            let gate = if host.port_free_at <= self.now { FreePorts::OPEN } else { FreePorts::CONTROL };
            let Some(transmit) = host.driver.endpoint.poll_transmit(self.now, gate) else { break };
            if let Body::Data(_) = transmit.segment.body {
                let time = Rate::from_gbps(100).time_for(u64::from(transmit.wire_bytes));
                host.port_free_at = self.now + time;
            }
            let payload = transmit.payload.map_or(vec![], |payload| {
                let (id, start) = (payload.buffer.0 >> 32, (payload.buffer.0 & 0xffff_ffff) + payload.offset);
                let buffer = &host.driver.buffers[&id];
                buffer[start as usize..][..usize::from(payload.len)].to_vec()
            });
            let weather = &self.weather;
            let PathId(path) = transmit.segment.path;
            let is_cut = weather
                .cut
                .is_some_and(|(start, end, paths)| path < paths && (start..end).contains(&self.now));
            let copies = match is_cut || self.rng.bernoulli(weather.loss) {
                true => 0,
                false => 1 + usize::from(self.rng.bernoulli(weather.duplicate)),
            };
            for _ in 0..copies {
                let jitter = (weather.jitter.as_ps() as f64 * self.rng.unit_f64()) as u64;
                let arrives = self.now + Duration::from_us(1) + Duration::from_ps(jitter);
                let (to, segment, payload) = (transmit.to.index(), transmit.segment, payload.clone());
                self.wire.insert((arrives, self.packets), Packet { from, to, segment, payload });
                self.packets += 1;
            }
        }
        host.driver.endpoint.assert_invariants();
    }

    /// Advances to the next event. Returns false if there is none.
    pub fn step(&mut self) -> bool {
        self.drain();
        let arrival = self.wire.keys().next().map(|&(at, _)| at);
        let alive = || self.hosts.iter().filter(|host| !host.dead);
        let timers = alive().filter_map(|host| host.driver.endpoint.poll_timer());
        let ports = alive().map(|host| host.port_free_at).filter(|&at| at > self.now);
        let Some(next) = arrival.into_iter().chain(timers).chain(ports).min() else { return false };
        self.now = self.now.max(next);
        for host in self.hosts.iter_mut().filter(|host| !host.dead) {
            if host.driver.endpoint.poll_timer().is_some_and(|at| at <= self.now) {
                host.driver.endpoint.on_timer(self.now);
            }
        }
        while let Some(entry) = self.wire.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let Packet { from, to, segment, payload } = entry.remove();
            let host = &mut self.hosts[to];
            if host.dead {
                continue;
            }
            let from = HostId(from as u32);
            if let Some(at) = host.driver.endpoint.on_packet(self.now, from, &segment, false) {
                let (id, start) = (at.buffer.0 >> 32, (at.buffer.0 & 0xffff_ffff) + at.offset);
                let buffer = host.driver.buffers.get_mut(&id).expect("a place lives until it is full");
                buffer[start as usize..][..payload.len()].copy_from_slice(&payload);
            }
        }
        self.drain();
        true
    }

    /// Runs until no event is left.
    pub fn run(&mut self, limit: Duration) {
        let end = self.now + limit;
        while self.step() {
            assert!(self.now <= end, "not done after {limit}");
        }
    }

    pub fn take_completions(&mut self, at: usize) -> Vec<tagged::Completion> {
        core::mem::take(&mut self.hosts[at].completions)
    }
    /// Returns the number of packets retransmitted by all hosts.
    pub fn retransmitted(&self) -> u64 {
        self.hosts.iter().map(|host| host.driver.endpoint.counters().retransmitted_packets).sum()
    }
    /// Returns the number of packets dropped by all hosts because a message found no receive.
    pub fn not_ready(&self) -> u64 {
        self.hosts.iter().map(|host| host.driver.endpoint.counters().rnr_drops).sum()
    }
}

impl Host {
    fn note(&mut self, work: Work) -> u64 {
        self.next_work += 1;
        self.work.insert(self.next_work, work);
        self.next_work
    }
}
