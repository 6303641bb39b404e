//! Peer that knows the message formats and follows no rule, beside an application that operates normally. For any
//! input nothing panics, memory stays within its bounds, and each operation ends once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use pathweave_tagged::*;

const PEER: PeerId = PeerId(3);
const BUFFER: u64 = 4096;

/// Limits that are small enough to be reached.
fn config() -> Config {
    Config {
        pool: 64 << 10,
        unexpected_bytes: 8 << 10,
        unexpected_messages: 300,
        operations: 32,
        notices: 40,
        chunk: 1000,
        ..Config::default()
    }
}

/// Memory with bounds checks.
#[derive(Default)]
struct Ram {
    buffers: BTreeMap<u64, Vec<u8>>,
    regions: BTreeSet<u64>,
    next: u64,
}

impl Memory for Ram {
    fn write(&mut self, at: Piece, bytes: &[u8]) {
        assert_eq!(at.len, bytes.len() as u64);
        if at.len > 0 {
            let buffer = self.buffers.get_mut(&at.buffer.0).expect("a buffer of the application");
            buffer[at.offset as usize..][..bytes.len()].copy_from_slice(bytes);
        }
    }
    fn fetch(&mut self, from: Piece, into: &mut [u8]) {
        assert_eq!(from.len, into.len() as u64);
        if from.len > 0 {
            into.copy_from_slice(&self.buffers[&from.buffer.0][from.offset as usize..][..into.len()]);
        }
    }
    fn copy_out(&mut self, piece: Piece) -> Option<Buffer> {
        let mut bytes = vec![0; piece.len as usize];
        self.fetch(piece, &mut bytes);
        self.next += 1;
        self.buffers.insert(1000 + self.next, bytes);
        Some(Buffer(1000 + self.next))
    }
    fn release(&mut self, buffer: Buffer) {
        assert!(self.buffers.remove(&buffer.0).is_some());
    }
    fn register(&mut self, _: Piece, _: Access, _: Option<PeerId>) -> Option<Remote> {
        self.next += 1;
        self.regions.insert(self.next);
        Some(Remote { address: 1 << 20, rkey: self.next })
    }
    fn deregister(&mut self, rkey: u64) {
        assert!(self.regions.remove(&rkey));
    }
}

/// Source of choices: bytes of a fuzzer or a generator, then zeros.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }
    fn below(&mut self, limit: usize) -> usize {
        usize::from(self.byte()) % limit
    }
    fn word(&mut self) -> u64 {
        u64::from_le_bytes([0; 8].map(|_: u8| self.byte()))
    }
}

struct Liar<'a> {
    choices: Choices<'a>,
    engine: Engine,
    ram: Ram,
    /// Sizes of the receives that the engine has posted, and the number of the next message.
    receives: VecDeque<u32>,
    number: u32,
    /// Numbers that the engine has sent, by the kind of message in which they are valid.
    heard: BTreeMap<u8, Vec<u64>>,
    /// Number of regions that the peer has invented.
    told: u64,
    requests: Vec<RequestId>,
    regions: Vec<RegionId>,
    /// Contexts of operations that have not ended, and the next context.
    open: BTreeSet<u64>,
    next: u64,
    /// Entries of writes with data that the application has not read.
    notices: u64,
}

impl Liar<'_> {
    fn drain(&mut self) {
        while let Some(action) = self.engine.poll_action() {
            match action {
                Action::Connect { .. } => {}
                Action::Disconnect { .. } => self.receives.clear(),
                Action::PostReceives { count, size, .. } => {
                    self.receives.extend((0..count).map(|_| size));
                }
                Action::Send { header, payload, request, .. } => {
                    let bytes = header.as_slice();
                    self.hear(bytes);
                    if let Payload::Piece(piece) = payload {
                        let mut copy = vec![0; piece.len as usize];
                        self.ram.fetch(piece, &mut copy);
                    }
                    self.requests.push(request);
                }
                Action::Read { into, request, .. } => {
                    let bytes = vec![0xaa; into.len as usize];
                    self.ram.write(into, &bytes);
                    self.requests.push(request);
                }
                Action::Write { from, request, .. } => {
                    let mut bytes = vec![0; from.len as usize];
                    self.ram.fetch(from, &mut bytes);
                    self.requests.push(request);
                }
            }
        }
        while let Some(completion) = self.engine.poll_completion() {
            match completion.kind {
                Kind::RemoteWrite | Kind::RemoteRead => {
                    self.notices += u64::from(completion.report == Report::Entry);
                }
                _ => assert!(self.open.remove(&completion.context), "ended once: {completion:?}"),
            }
        }
        self.check();
    }

    fn check(&self) {
        let limits = config();
        let first = u64::from(FIRST_RECEIVES.0) * u64::from(FIRST_RECEIVES.1);
        assert!(self.engine.pool_bytes() <= limits.pool + first);
        assert!(self.engine.held_bytes() <= limits.unexpected_bytes + limits.pool + first);
        let granted = u64::from(FIRST_RECEIVES.0);
        assert!(self.engine.unexpected_messages() as u64 <= limits.unexpected_messages + granted);
        assert!(self.notices <= limits.notices + u64::from(MOST_RECEIVES));
        assert!(self.engine.room() <= limits.operations);
    }

    /// Records the numbers in the engine's message that an answer can use.
    fn hear(&mut self, bytes: &[u8]) {
        assert!(bytes.len() >= 20);
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let labels = 8 * (usize::from(bytes[2] & 1) + usize::from(bytes[2] >> 1 & 1));
        let said = match bytes[1] {
            // Number of an announcement, for FIN; a requested key, for KEY; a region, for NOTIFY, REVOKE's answer and
            // ATOMIC.
            2 => (3, word(20 + labels)),
            5 => (6, word(20)),
            6 if bytes.len() > 28 => (9, word(28)),
            7 => (8, word(20)),
            10 => (11, word(36)),
            _ => return,
        };
        self.heard.entry(said.0).or_default().push(said.1);
        let list = self.heard.entry(said.0).or_default();
        if list.len() > 20 {
            list.remove(0);
        }
    }

    /// Returns a number: a valid one, a small one, or an arbitrary one.
    fn value(&mut self, kind: u8) -> u64 {
        let heard = self.heard.get(&if kind == 10 { 9 } else { kind });
        let count = heard.map_or(0, Vec::len);
        match self.choices.below(16) {
            0 => self.choices.word(),
            1..4 => self.choices.byte().into(),
            _ if count > 0 => {
                let at = count - 1 - self.choices.below(count.min(3));
                let list = self.heard.get_mut(&kind).filter(|_| matches!(kind, 3 | 6 | 7 | 8 | 11));
                match list {
                    Some(list) => list.remove(at),
                    None => self.heard[&9][at],
                }
            }
            _ => self.choices.byte().into(),
        }
    }

    /// Sends a message that is valid except for some choices.
    fn lie(&mut self) {
        let Some(size) = self.receives.pop_front() else { return };
        // Mostly plausible messages, since the engine soon disconnects a peer that breaks rules all the time.
        let kinds: Vec<u8> =
            self.heard.iter().filter(|(_, list)| !list.is_empty()).map(|(k, _)| *k).collect();
        let kind = match self.choices.below(8) {
            0 => 1 + self.choices.byte() % 12,
            1 | 2 => [1, 2, 4, 5][self.choices.below(4)],
            4 if kinds.contains(&9) => 10,
            _ if !kinds.is_empty() => kinds[self.choices.below(kinds.len())],
            _ => [1, 2, 4, 5][self.choices.below(4)],
        };
        let flags = match (kind, self.choices.byte()) {
            (_, 255) => self.choices.byte(),
            (1, chosen) => chosen & 7,
            (2, chosen) => chosen & 3,
            (9, chosen) => chosen & 1,
            (10, chosen) => chosen & 4,
            _ => 0,
        };
        let mut bytes = vec![1, kind, flags, 0];
        let off = if self.choices.byte() == 255 { 1 } else { 0 };
        bytes.extend((self.number + off).to_le_bytes());
        let acked = if self.choices.byte() > 250 { self.choices.byte() } else { 0 };
        bytes.extend(u32::from(acked).to_le_bytes());
        let grants = self.choices.byte() % 8;
        let usage = u8::from(grants == 7);
        let room: u32 = match self.choices.byte() {
            0 => 100,
            1 => 1 << 30,
            2..128 => 2048,
            _ => 16448,
        };
        bytes.extend(u16::from(grants).to_le_bytes());
        bytes.extend([usage, 0]);
        bytes.extend(if grants == 0 { 0 } else { room }.to_le_bytes());
        // Number of 8-byte words of the kind, and of single bytes after them.
        let labels = usize::from(flags & 1) + usize::from(flags >> 1 & 1);
        let (words, singles) = match kind {
            1 => (labels, 0),
            2 => (labels + 4, 0),
            3 => (1, 1),
            4 => (0, 0),
            5 | 7 | 8 | 11 => (1, 0),
            6 if self.choices.below(4) == 0 => (1, 0),
            6 => (6, 2),
            9 => (labels + 1, 1),
            _ => (3, 0),
        };
        for word in 0..words {
            let value = match (kind, word) {
                (6, 0) | (3 | 7 | 8 | 11, _) => self.value(kind),
                (9 | 10, _) if word + 1 == words.min(labels + 1) => self.value(kind),
                (5, 0) => (self.choices.byte() % 4).into(),
                (6, 1) => {
                    self.told += 1;
                    self.heard.entry(7).or_default().push(self.told);
                    self.told
                }
                // Start and length of the memory, and an atomic without an answer.
                (6, 4) | (10, 1 | 2) => self.choices.byte().saturating_sub(200).into(),
                (6, 5) => 10_000,
                _ => u64::from(self.choices.byte()) << (self.choices.byte() % 20),
            };
            bytes.extend(value.to_le_bytes());
        }
        for single in 0..singles {
            bytes.push(if (kind, single) == (6, 0) { 3 } else { self.choices.byte() % 2 });
        }
        match kind {
            9 => bytes.extend(u64::from(self.choices.byte()).to_le_bytes()),
            10 => {
                // A plain atomic has the number 0.
                let asks = bytes[bytes.len() - 8..] != [0; 8];
                let op = if self.choices.byte() == 0 { 11 } else { self.choices.byte() % 11 };
                let (of, form) = (self.choices.byte() % 8, u8::from(asks));
                let count = 1 + self.choices.byte() % 4;
                bytes.extend([op, of, form, 0, count, 0]);
                let lists = usize::from(op != 9) + usize::from(form == 2);
                let width = AtomicType::ALL[usize::from(of)].size();
                bytes.extend(vec![self.choices.byte(); lists * width * usize::from(count)]);
            }
            11 => bytes.extend([kind; 8]),
            1 => {
                let len = [0, 8, 100, 2000, 16384][self.choices.below(5)];
                bytes.extend(vec![kind; len]);
            }
            _ => {}
        }
        if self.choices.byte() == 254 {
            bytes.push(0);
        }
        // A transport drops a message that does not fit; here it is truncated.
        bytes.truncate(size as usize);
        self.number += 1;
        self.engine.delivered(PEER, &bytes, &mut self.ram);
    }

    /// Sends arbitrary bytes.
    fn babble(&mut self) {
        let Some(size) = self.receives.pop_front() else { return };
        let len = self.choices.below(80).min(size as usize);
        let bytes: Vec<u8> = (0..len).map(|_| self.choices.byte()).collect();
        self.engine.delivered(PEER, &bytes, &mut self.ram);
    }

    fn context(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Performs an operation of the application.
    fn live(&mut self) {
        let context = self.context();
        let piece = Piece::whole(Buffer(self.choices.below(4) as u64), BUFFER);
        let len = [0, 8, 500, BUFFER][self.choices.below(4)];
        let piece = piece.part(0, len).expect("within");
        let (report, done) = (Report::Entry, DoneWhen::Delivered);
        let hold = if len <= 500 { BufferLifetime::ThisCall } else { BufferLifetime::UntilDone };
        let tag = self.choices.byte().into();
        let segments = Segment { key: tag % 4, address: len, len }.into();
        // An answer may come at once, so the operation counts as posted before the call.
        self.open.insert(context);
        let (engine, ram) = (&mut self.engine, &mut self.ram);
        let answer = match self.choices.byte() % 10 {
            0 | 1 => {
                let label = if tag > 128 { Label::Message } else { Label::Tagged(tag) };
                let send = Send { to: PEER, label, payload: piece, data: None, hold, done, report, context };
                engine.post_send(send, ram)
            }
            2 | 3 => {
                let ignore = if tag & 1 == 0 { u64::MAX } else { 0 };
                let want = if tag > 200 { MatchOn::Message } else { MatchOn::Tagged { tag, ignore } };
                let receive =
                    Receive { from: None, want, into: piece, take: ReceiveCount::One, report, context };
                engine.post_receive(receive, ram)
            }
            4 => engine.post_read(Read { to: PEER, segments, into: piece, report, context }, ram),
            5 => {
                let data = Some(tag);
                let write = Write { to: PEER, segments, from: piece, data, hold, report, context };
                engine.post_write(write, ram)
            }
            6 => {
                let word = piece.part(0, len.min(8)).expect("within");
                let fetch = if tag & 1 == 0 { Fetch::Nothing } else { Fetch::Old { result: word } };
                let atomic = Atomic {
                    to: PEER,
                    key: tag % 4,
                    address: 0,
                    op: AtomicOp::Sum,
                    kind: AtomicType::U64,
                    count: 1,
                    operand: word,
                    fetch,
                    done,
                    report,
                    context,
                };
                engine.post_atomic(atomic, ram)
            }
            7 => {
                let found = if tag & 1 == 0 { Found::Dropped } else { Found::Stays };
                let want = MatchOn::Tagged { tag, ignore: u64::MAX };
                engine.peek(Peek { from: Some(PEER), want, found, context }, ram);
                Ok(())
            }
            8 => {
                let access = [Access::Read, Access::Write, Access::ReadWrite][tag as usize % 3];
                let events = [RegionEvents::None, RegionEvents::All][tag as usize % 2];
                let region = Region { key: tag % 4, base: 0, piece, access, events };
                if let Ok(id) = engine.open_region(region) {
                    self.regions.push(id);
                }
                Err(PostError::Full)
            }
            _ => {
                if let Some(id) = self.regions.pop() {
                    engine.close_region(id, ram);
                    if tag & 1 == 0 {
                        engine.withdraw_region(id, ram);
                    }
                }
                Err(PostError::Full)
            }
        };
        if answer.is_err() {
            self.open.remove(&context);
        }
    }

    fn step(&mut self) {
        match self.choices.byte() % 16 {
            0..8 => self.lie(),
            8 => self.babble(),
            9..12 => self.live(),
            12 | 13 if !self.requests.is_empty() => {
                let at = self.choices.below(self.requests.len());
                let request = self.requests.remove(at);
                let result = if self.choices.byte() > 250 { Err(Failure::Io) } else { Ok(()) };
                self.engine.completed(PEER, request, result, &mut self.ram);
            }
            14 => {
                let read = self.choices.below(4) as u64;
                self.notices = self.notices.saturating_sub(read);
                self.engine.notices_read(read, &mut self.ram);
            }
            _ => {
                // Occasionally cancels an operation posted long ago.
                let context = self.choices.word() % self.next.max(1);
                self.engine.cancel(context);
            }
        }
        self.drain();
        if !self.engine.is_up(PEER) {
            self.connect();
        }
    }

    fn connect(&mut self) {
        self.receives.clear();
        self.heard.clear();
        self.number = 0;
        let role = if self.choices.byte() & 1 == 0 { Role::Initiator } else { Role::Acceptor };
        self.engine.peer_up(PEER, role, &mut self.ram);
        self.drain();
    }
}

/// Runs the test with `data` as the choices of peer and application.
#[allow(unreachable_pub)]
pub fn run(data: &[u8]) {
    let mut ram = Ram::default();
    for buffer in 0..4 {
        ram.buffers.insert(buffer, vec![buffer as u8; BUFFER as usize]);
    }
    let mut liar = Liar {
        choices: Choices(data),
        engine: Engine::new(config()),
        ram,
        receives: VecDeque::new(),
        number: 0,
        heard: BTreeMap::new(),
        told: 0,
        requests: Vec::new(),
        regions: Vec::new(),
        open: BTreeSet::new(),
        next: 0,
        notices: 0,
    };
    liar.connect();
    while !liar.choices.0.is_empty() {
        liar.step();
    }
    // Finally the peer is forgotten, and none of its state may remain.
    liar.engine.forget(PEER, Failure::Reset, &mut liar.ram);
    liar.drain();
    for context in liar.open.clone() {
        liar.engine.cancel(context);
    }
    liar.drain();
    assert_eq!(liar.open, BTreeSet::new(), "all has ended");
    for id in core::mem::take(&mut liar.regions) {
        liar.engine.close_region(id, &mut liar.ram);
        assert!(!liar.engine.is_closing(id), "nobody knows of it");
    }
    assert_eq!(liar.ram.regions, BTreeSet::new(), "no key is left");
    assert_eq!(liar.ram.buffers.len(), 4, "no copy is left");
    assert_eq!(liar.engine.room(), config().operations);
    assert_eq!(liar.engine.pool_bytes(), 0);
}
