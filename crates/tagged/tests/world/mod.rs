//! Engines connected by an in-memory transport that delays requests and interleaves peers, but preserves the order of
//! each queue pair. It performs the checks that a transport and an application would.
#![allow(dead_code, unreachable_pub)]

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use pathweave_tagged::*;

pub fn peer(index: usize) -> PeerId {
    PeerId(index as u32)
}

/// Memory of one process.
#[derive(Default)]
pub struct Ram {
    buffers: BTreeMap<u64, Vec<u8>>,
    next: u64,
    kept: BTreeSet<u64>,
    /// Registered pieces and their access rights, by rkey.
    regions: BTreeMap<u64, (Piece, Access)>,
}

/// First address, large enough not to be mistaken for an offset.
const ADDRESS: u64 = 1 << 40;

impl Ram {
    pub fn buffer(&mut self, bytes: &[u8]) -> Piece {
        self.next += 1;
        self.buffers.insert(self.next, bytes.to_vec());
        Piece::whole(Buffer(self.next), bytes.len() as u64)
    }
    pub fn bytes(&self, piece: Piece) -> &[u8] {
        &self.buffers[&piece.buffer.0][piece.offset as usize..][..piece.len as usize]
    }
    pub fn set(&mut self, piece: Piece, bytes: &[u8]) {
        self.write(piece, bytes);
    }
    pub fn free(&mut self, piece: Piece) {
        self.buffers.remove(&piece.buffer.0);
    }
    pub fn kept(&self) -> usize {
        self.kept.len()
    }
    pub fn registered(&self) -> usize {
        self.regions.len()
    }
    fn remote(&self, remote: Remote, len: u64, may: impl Fn(Access) -> bool) -> Piece {
        let (piece, access) = self.regions.get(&remote.rkey).expect("the key is registered");
        assert!(may(*access), "the key allows it");
        let offset = remote.address.checked_sub(ADDRESS).expect("an address of the region");
        piece.part(offset, len).expect("within the region")
    }
}

impl Memory for Ram {
    fn write(&mut self, at: Piece, bytes: &[u8]) {
        assert_eq!(at.len, bytes.len() as u64);
        if at.len > 0 {
            let buffer = self.buffers.get_mut(&at.buffer.0).expect("the buffer lives");
            buffer[at.offset as usize..][..bytes.len()].copy_from_slice(bytes);
        }
    }
    fn fetch(&mut self, from: Piece, into: &mut [u8]) {
        assert_eq!(from.len, into.len() as u64);
        if from.len > 0 {
            into.copy_from_slice(self.bytes(from));
        }
    }
    fn copy_out(&mut self, piece: Piece) -> Option<Buffer> {
        let bytes = self.bytes(piece).to_vec();
        let copy = self.buffer(&bytes).buffer;
        self.kept.insert(copy.0);
        Some(copy)
    }
    fn release(&mut self, buffer: Buffer) {
        assert!(self.kept.remove(&buffer.0), "kept and not yet released");
        self.buffers.remove(&buffer.0);
    }
    fn register(&mut self, piece: Piece, access: Access, _: Option<PeerId>) -> Option<Remote> {
        self.next += 1;
        self.regions.insert(self.next, (piece, access));
        Some(Remote { address: ADDRESS, rkey: self.next })
    }
    fn deregister(&mut self, rkey: u64) {
        assert!(self.regions.remove(&rkey).is_some(), "registered and not yet deregistered");
    }
}

/// Request in flight.
enum Item {
    /// A long payload is read from the application's memory as late as possible.
    Send {
        bytes: Vec<u8>,
        late: Piece,
        request: RequestId,
    },
    Write {
        remote: Remote,
        from: Piece,
        request: RequestId,
    },
    Read {
        remote: Remote,
        into: Piece,
        request: RequestId,
    },
}

/// Pending completion at the requester, in order.
enum Done {
    Request(RequestId),
    Read { remote: Remote, into: Piece, request: RequestId },
}

/// One end of a connection.
#[derive(Default)]
struct End {
    /// Number of the connection, the same at both ends.
    connection: u64,
    /// Requests in flight to the other end, then their pending completions.
    requests: VecDeque<Item>,
    done: VecDeque<Done>,
    /// Sizes of the receives posted here.
    receives: VecDeque<u32>,
}

/// One process: engine, memory and connections.
pub struct Node {
    pub engine: Engine,
    pub ram: Ram,
    ends: BTreeMap<usize, End>,
    dialling: BTreeSet<usize>,
    pub completions: Vec<Completion>,
    pub cut: Vec<(PeerId, Fault)>,
    /// Number of READ and WRITE chunks, and of SENDs.
    pub chunks: u64,
    pub sends: u64,
}

/// Event that an observer between the engines sees.
#[derive(Clone, Copy, Debug)]
pub enum Note {
    /// The header of a message has arrived, with its bytes or as an announcement.
    Arrived { at: usize, from: usize, bytes: Bytes, tag: u64, data: u64 },
    /// A connection has ended.
    Lost { at: usize, peer: usize },
}

/// Location of a message's bytes when its header arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bytes {
    Here,
    Announced,
}

/// Returns the note for a tagged message with data.
fn note(at: usize, from: usize, message: &[u8]) -> Option<Note> {
    let bytes = match message[1..3] {
        [1, flags] if flags & 3 == 3 => Bytes::Here,
        [2, flags] if flags & 3 == 3 => Bytes::Announced,
        _ => return None,
    };
    let word = |at: usize| u64::from_le_bytes(message[at..at + 8].try_into().expect("eight bytes"));
    Some(Note::Arrived { at, from, bytes, tag: word(20), data: word(28) })
}

/// Event that can occur next.
#[derive(Clone, Copy, Debug)]
enum Event {
    Connect(usize, usize),
    Request(usize, usize),
    Done(usize, usize),
}

pub struct World {
    pub nodes: Vec<Node>,
    connections: u64,
    /// Remote ends of killed connections that have not been informed yet.
    dying: VecDeque<(usize, usize, Failure)>,
    state: u64,
    pub deaf: BTreeSet<usize>,
    pub notes: Vec<Note>,
}

impl World {
    pub fn new(count: usize, config: Config, seed: u64) -> Self {
        let node = |_| Node {
            engine: Engine::new(config),
            ram: Ram::default(),
            ends: BTreeMap::new(),
            dialling: BTreeSet::new(),
            completions: Vec::new(),
            cut: Vec::new(),
            chunks: 0,
            sends: 0,
        };
        World {
            nodes: (0..count).map(node).collect(),
            connections: 0,
            dying: VecDeque::new(),
            state: seed | 1,
            deaf: BTreeSet::new(),
            notes: Vec::new(),
        }
    }

    /// Returns a number below `limit` (xorshift64*).
    pub fn below(&mut self, limit: usize) -> usize {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        (self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit
    }

    /// Executes an engine's actions and collects its completions. Called after every call of the engine.
    pub fn drain(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        while let Some(action) = node.engine.poll_action() {
            match action {
                Action::Connect { peer } => {
                    node.dialling.insert(peer.0 as usize);
                }
                Action::Disconnect { peer, fault } => {
                    node.cut.push((peer, fault));
                    node.ends.remove(&(peer.0 as usize));
                    self.dying.push_back((peer.0 as usize, at, Failure::Reset));
                }
                Action::PostReceives { peer, count, size } => {
                    let end = node.ends.get_mut(&(peer.0 as usize)).expect("a connection");
                    end.receives.extend((0..count).map(|_| size));
                }
                Action::Send { peer, header, payload, request } => {
                    let mut bytes = header.as_slice().to_vec();
                    let mut late = Piece::NONE;
                    match payload {
                        Payload::None => {}
                        Payload::Piece(piece) if piece.len > MAX_INJECT => late = piece,
                        Payload::Piece(piece) => bytes.extend_from_slice(node.ram.bytes(piece)),
                        Payload::Bytes(payload) => bytes.extend_from_slice(&payload),
                    }
                    node.sends += 1;
                    let end = node.ends.get_mut(&(peer.0 as usize)).expect("a connection");
                    end.requests.push_back(Item::Send { bytes, late, request });
                }
                Action::Read { peer, remote, into, request } => {
                    node.chunks += 1;
                    let end = node.ends.get_mut(&(peer.0 as usize)).expect("a connection");
                    end.requests.push_back(Item::Read { remote, into, request });
                }
                Action::Write { peer, remote, from, request } => {
                    node.chunks += 1;
                    let end = node.ends.get_mut(&(peer.0 as usize)).expect("a connection");
                    end.requests.push_back(Item::Write { remote, from, request });
                }
            }
        }
        while let Some(completion) = node.engine.poll_completion() {
            node.completions.push(completion);
        }
    }

    /// Calls one engine and executes the resulting actions there.
    pub fn at<T>(&mut self, at: usize, call: impl FnOnce(&mut Engine, &mut Ram) -> T) -> T {
        let node = &mut self.nodes[at];
        let result = call(&mut node.engine, &mut node.ram);
        self.drain(at);
        result
    }

    fn events(&self) -> Vec<Event> {
        let mut events = Vec::new();
        for (from, node) in self.nodes.iter().enumerate() {
            events.extend(node.dialling.iter().map(|to| Event::Connect(from, *to)));
            for (to, end) in &node.ends {
                if !end.requests.is_empty() && !self.deaf.contains(to) {
                    events.push(Event::Request(from, *to));
                }
                if !end.done.is_empty() {
                    events.push(Event::Done(from, *to));
                }
            }
        }
        events
    }

    /// Processes one event. Returns false if there is none.
    pub fn step(&mut self) -> bool {
        if !self.dying.is_empty() && self.below(8) == 0 {
            self.bury();
            return true;
        }
        let events = self.events();
        if events.is_empty() {
            return self.bury();
        }
        match events[self.below(events.len())] {
            Event::Connect(from, to) => self.connect(from, to),
            Event::Request(from, to) => self.arrive(from, to),
            Event::Done(from, to) => self.finish(from, to),
        }
        true
    }

    fn bury(&mut self) -> bool {
        let Some((at, other, failure)) = self.dying.pop_front() else { return false };
        // A new connection may have replaced the old one; then nothing is left to do.
        let node = &self.nodes[at];
        let old = node.ends.get(&other).map(|end| end.connection);
        let theirs = self.nodes[other].ends.get(&at).map(|end| end.connection);
        if old.is_some() && old != theirs {
            self.nodes[at].ends.remove(&other);
            self.lose(at, other, failure);
        }
        true
    }

    fn connect(&mut self, from: usize, to: usize) {
        self.nodes[from].dialling.remove(&to);
        // If both ends dial, one connection remains.
        self.nodes[to].dialling.remove(&from);
        if self.nodes[from].engine.is_up(peer(to)) {
            return;
        }
        if self.nodes[to].ends.remove(&from).is_some() {
            self.lose(to, from, Failure::Reset);
            self.nodes[to].dialling.remove(&from);
        }
        self.connections += 1;
        let end = |connection| End { connection, ..End::default() };
        self.nodes[from].ends.insert(to, end(self.connections));
        self.nodes[to].ends.insert(from, end(self.connections));
        self.at(from, |engine, ram| engine.peer_up(peer(to), Role::Initiator, ram));
        self.at(to, |engine, ram| engine.peer_up(peer(from), Role::Acceptor, ram));
    }

    fn arrive(&mut self, from: usize, to: usize) {
        let end = self.nodes[from].ends.get_mut(&to).expect("there was an event");
        let connection = end.connection;
        let item = end.requests.pop_front().expect("there was an event");
        if self.nodes[to].ends.get(&from).is_none_or(|end| end.connection != connection) {
            return;
        }
        let done = match item {
            Item::Send { mut bytes, late, request } => {
                if late.len > 0 {
                    bytes.extend_from_slice(self.nodes[from].ram.bytes(late));
                }
                let other = self.nodes[to].ends.get_mut(&from).expect("looked at above");
                let size = other.receives.pop_front().expect("no message finds no receive");
                assert!(bytes.len() <= size as usize, "no message is larger than its receive");
                self.notes.extend(note(to, from, &bytes));
                self.at(to, |engine, ram| engine.delivered(peer(from), &bytes, ram));
                Done::Request(request)
            }
            Item::Write { remote, from: piece, request } => {
                let bytes = self.nodes[from].ram.bytes(piece).to_vec();
                let ram = &mut self.nodes[to].ram;
                let piece = ram.remote(remote, bytes.len() as u64, Access::writes);
                ram.write(piece, &bytes);
                Done::Request(request)
            }
            Item::Read { remote, into, request } => Done::Read { remote, into, request },
        };
        if let Some(end) = self.nodes[from].ends.get_mut(&to).filter(|end| end.connection == connection) {
            end.done.push_back(done);
        }
    }

    fn finish(&mut self, from: usize, to: usize) {
        let end = self.nodes[from].ends.get_mut(&to).expect("there was an event");
        let connection = end.connection;
        let request = match end.done.pop_front().expect("there was an event") {
            Done::Request(request) => request,
            Done::Read { remote, into, request } => {
                let alive = self.nodes[to].ends.get(&from).is_some_and(|end| end.connection == connection);
                if !alive {
                    return;
                }
                let ram = &self.nodes[to].ram;
                let bytes = ram.bytes(ram.remote(remote, into.len, Access::reads)).to_vec();
                self.nodes[from].ram.write(into, &bytes);
                request
            }
        };
        if request.0 != 0 {
            self.at(from, |engine, ram| engine.completed(peer(to), request, Ok(()), ram));
        }
    }

    /// Kills the connection between two nodes. `a` is informed at once, `b` later.
    pub fn kill(&mut self, a: usize, b: usize, failure: Failure) {
        if self.nodes[a].ends.remove(&b).is_some() {
            self.dying.push_back((b, a, failure));
            self.lose(a, b, failure);
        }
    }

    fn lose(&mut self, at: usize, other: usize, failure: Failure) {
        self.notes.push(Note::Lost { at, peer: other });
        self.at(at, |engine, ram| engine.peer_down(peer(other), failure, ram));
    }

    /// Runs until no event is left.
    pub fn run(&mut self) {
        let mut steps = 0u64;
        while self.step() {
            steps += 1;
            assert!(steps < 50_000_000, "it never ends");
        }
    }

    pub fn take_completions(&mut self, at: usize) -> Vec<Completion> {
        core::mem::take(&mut self.nodes[at].completions)
    }

    // Operations of applications.

    pub fn send(&mut self, from: usize, to: usize, tag: u64, payload: Piece, context: u64) {
        let send = message(to, tag, payload, context);
        self.at(from, |engine, ram| engine.post_send(send, ram)).expect("room");
    }
    /// Sends a short message with `send_now`, if the engine accepts it.
    pub fn send_now(&mut self, from: usize, to: usize, tag: u64, payload: &[u8]) -> bool {
        let len = payload.len() as u64;
        let header = self.at(from, |engine, _| engine.send_now(peer(to), Label::Tagged(tag), len, None));
        let Some(header) = header else { return false };
        let bytes = [header.as_slice(), payload].concat();
        let end = self.nodes[from].ends.get_mut(&to).expect("a connection");
        end.requests.push_back(Item::Send { bytes, late: Piece::NONE, request: RequestId(0) });
        true
    }
    pub fn receive(
        &mut self,
        at: usize,
        from: Option<usize>,
        tag: u64,
        ignore: u64,
        into: Piece,
        context: u64,
    ) {
        let receive = Receive {
            from: from.map(peer),
            want: MatchOn::Tagged { tag, ignore },
            into,
            take: ReceiveCount::One,
            report: Report::Entry,
            context,
        };
        self.at(at, |engine, ram| engine.post_receive(receive, ram)).expect("lengths are right");
    }
    pub fn buffer(&mut self, at: usize, bytes: &[u8]) -> Piece {
        self.nodes[at].ram.buffer(bytes)
    }
}

/// Returns a tagged message with default settings.
pub fn message(to: usize, tag: u64, payload: Piece, context: u64) -> Send {
    Send {
        to: peer(to),
        label: Label::Tagged(tag),
        payload,
        data: None,
        hold: BufferLifetime::UntilDone,
        done: DoneWhen::Transmitted,
        report: Report::Entry,
        context,
    }
}

/// Returns bytes that identify the message they belong to.
pub fn pattern(seed: u64, len: usize) -> Vec<u8> {
    (0..len as u64)
        .map(|i| (seed.wrapping_mul(31).wrapping_add(i.wrapping_mul(seed | 1)) >> 3) as u8)
        .collect()
}
