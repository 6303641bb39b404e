//! Engine of collectives among hostile ranks, which send frames of any content and report writes that were not allowed.

use std::collections::{BTreeSet, HashMap, HashSet};

use pathweave_collective::{
    Call, Dtype, EAGER_BYTES, Engine, Frame, Key, Kind, Landing, Lane, OpId, Output, PeerId, Place, Plan,
    Received, ReduceOp, Reduction, SEGMENT_BYTES, Span, TEMPORARY, Target, combine, plans,
};

/// Largest input in bytes. More operations take long and find nothing new.
const MOST_BYTES: usize = 4 << 10;
/// Number of the first group; each that fails is followed by another one.
const GROUP: u64 = 7;
const SIZES: [usize; 8] = [0, 4, 100, EAGER_BYTES, EAGER_BYTES + 4, 100_000, 600_000, 4 * SEGMENT_BYTES + 8];

/// The fuzzer's choices; zeros after their end.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }
    fn below(&mut self, most: usize) -> usize {
        self.byte() as usize % most.max(1)
    }
    fn of<T: Copy>(&mut self, list: &[T]) -> Option<T> {
        let index = self.below(list.len());
        list.get(index).copied()
    }
    fn bytes(&mut self) -> Vec<u8> {
        let len = (self.byte() as usize).min(self.0.len());
        let (first, rest) = self.0.split_at(len);
        self.0 = rest;
        first.to_vec()
    }
}

/// An operation in progress: its call, and the bytes of its buffers.
struct Running {
    call: Call,
    lane: Lane,
    buffers: Vec<usize>,
    temporary: usize,
}

impl Running {
    fn check(&self, span: Span) {
        let room = match span.buffer {
            TEMPORARY => self.temporary,
            number => *self.buffers.get(number as usize).expect("a buffer of the operation"),
        };
        let end = span.start.checked_add(span.len).expect("an end");
        assert!(end <= room || span.len == 0, "{span:?} beyond {room} bytes of {}", self.call);
    }
}

/// One honest process.
struct Rank {
    engine: Engine,
    group: u64,
    place: Place,
    running: HashMap<OpId, Running>,
    /// Announced writes: their sender, place and bytes.
    announced: HashMap<u32, (PeerId, Option<u32>, u64)>,
    writes: BTreeSet<u64>,
    lost: HashSet<PeerId>,
}

impl Rank {
    fn new(place: Place) -> Self {
        let mut engine = Engine::new();
        engine.join(GROUP, place, (0..place.ranks).collect());
        let (running, announced) = (HashMap::new(), HashMap::new());
        Rank {
            engine,
            group: GROUP,
            place,
            running,
            announced,
            writes: BTreeSet::new(),
            lost: HashSet::new(),
        }
    }

    /// Carries out the engine's orders, all of which must be allowed.
    fn obey(&mut self) {
        while let Some(output) = self.engine.next_output() {
            self.check(output);
        }
    }

    /// Takes a frame of a peer that is not lost.
    fn hear(&mut self, peer: PeerId, bytes: &[u8]) {
        if !self.lost.contains(&peer) {
            self.engine.frame(peer, bytes);
        }
    }

    fn operation(&self, op: OpId) -> &Running {
        self.running.get(&op).expect("an operation in progress")
    }

    fn check(&mut self, output: Output) {
        match output {
            Output::Frame { bytes, .. } => assert!(Frame::decode(&bytes).is_some()),
            Output::Eager { head, op, from, .. } => {
                assert!(from.len <= EAGER_BYTES && Frame::decode(&head).is_some());
                self.operation(op).check(from);
            }
            Output::Announce { peer, op, landing, bytes, token, .. } => {
                let slot = match landing {
                    Landing::Span(span) => {
                        self.operation(op).check(span);
                        assert_eq!(span.len, bytes);
                        None
                    }
                    Landing::Scratch(slot) => {
                        assert!(bytes <= SEGMENT_BYTES);
                        let is_free = self.announced.values().all(|(_, other, _)| *other != Some(slot));
                        assert!(is_free, "place {slot} is given to two writes");
                        Some(slot)
                    }
                };
                let former = self.announced.insert(token, (peer, slot, bytes as u64));
                assert!(former.is_none(), "token {token} is given to two writes");
            }
            Output::Write { op, from, id, .. } => {
                self.operation(op).check(from);
                assert!(self.writes.insert(id), "write {id} has the number of another one");
            }
            Output::Store { op, to, bytes } => {
                self.operation(op).check(to);
                assert_eq!(to.len, bytes.len());
            }
            Output::Combine { op, with, into, received, order } => {
                let running = self.operation(op);
                running.check(with);
                running.check(into);
                assert_eq!(with.len, into.len);
                if let Received::Bytes(bytes) = received {
                    assert_eq!(bytes.len(), with.len);
                    let how = running.call.op.unwrap_or(ReduceOp::Sum);
                    combine(running.call.dtype, how, &mut vec![0; with.len], &bytes, order);
                }
            }
            Output::Copy { op, from, to } => {
                self.operation(op).check(from);
                self.operation(op).check(to);
                assert_eq!(from.len, to.len);
            }
            Output::Divide { op, of, by } => {
                self.operation(op).check(of);
                assert_eq!(by, self.place.ranks);
            }
            Output::Done { op, .. } => {
                assert!(self.running.remove(&op).is_some(), "operation {op} ends once");
            }
        }
    }

    fn start(&mut self, call: Call, plan: Option<Plan>, buffers: Vec<usize>, begin: Begin) {
        let temporary = plan.as_ref().map_or(0, |plan| plan.temporary_bytes);
        let whole = Span::whole(0, buffers.first().copied().unwrap_or(0));
        let (group, number) = (self.group, self.engine.begun(self.group));
        let (begun, lane) = match (begin, plan) {
            (Begin::Send { to, tag }, _) => (self.engine.send(group, to, tag, call, whole), Lane::Tag(tag)),
            (Begin::Receive { from, tag }, _) => {
                (self.engine.receive(group, from, tag, call, whole), Lane::Tag(tag))
            }
            (Begin::Collective, Some(plan)) => {
                (self.engine.collective(group, call, plan), Lane::Collective(number))
            }
            (Begin::Collective, None) => return,
        };
        match begun {
            Ok(op) => drop(self.running.insert(op, Running { call, lane, buffers, temporary })),
            // The group has failed.
            Err(_) => {
                self.engine.leave(group);
                self.group += 1;
                self.engine.join(self.group, self.place, (0..self.place.ranks).collect());
            }
        }
    }
}

/// Beginning of an operation.
enum Begin {
    Collective,
    Send { to: PeerId, tag: u64 },
    Receive { from: Option<PeerId>, tag: u64 },
}

fn call(kind: Kind, bytes: usize, choices: &mut Choices<'_>) -> Call {
    let reduces = matches!(kind, Kind::AllReduce | Kind::Reduce | Kind::ReduceScatter);
    let op = choices.of(&[ReduceOp::Sum, ReduceOp::Avg, ReduceOp::Max]).filter(|_| reduces);
    let dtype = choices.of(&[Dtype::F32, Dtype::Bf16, Dtype::U8]).unwrap_or(Dtype::U8);
    let rooted = matches!(kind, Kind::Broadcast | Kind::Reduce | Kind::Gather | Kind::Scatter);
    let root = Some(u32::from(choices.byte()) % 2).filter(|_| rooted);
    Call { kind, op, dtype, root, elements: (bytes / dtype.bytes()) as u64 }
}

/// Returns a collective with its plan and the bytes of its buffers.
fn collective_of(at: Place, choices: &mut Choices<'_>) -> (Call, Plan, Vec<usize>) {
    let kinds: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| *kind != Kind::Message).collect();
    let (kind, len) = (choices.of(&kinds).unwrap_or(Kind::Barrier), choices.of(&SIZES).unwrap_or(0));
    let call = call(kind, len, choices);
    let (ranks, root, whole) = (at.ranks, call.root.unwrap_or(0), Span::whole(0, len));
    let how = Reduction { dtype: call.dtype, op: call.op.unwrap_or(ReduceOp::Sum) };
    let blocks =
        |first: u32| (first..first + ranks).map(|number| Span::whole(number, len)).collect::<Vec<_>>();
    let rest = if at.rank == root { blocks(1) } else { Vec::new() };
    let plan = match kind {
        Kind::AllReduce => plans::all_reduce(at, how, whole),
        Kind::Broadcast => plans::broadcast(at, root, whole),
        Kind::Reduce => plans::reduce(at, how, root, whole),
        Kind::AllGather => plans::all_gather(at, whole, &blocks(1)),
        Kind::ReduceScatter => plans::reduce_scatter(at, how, &blocks(1), whole),
        Kind::AllToAll => plans::all_to_all(at, &blocks(0), &blocks(ranks)),
        Kind::Gather => plans::gather(at, root, whole, &rest),
        Kind::Scatter => plans::scatter(at, root, whole, &rest),
        Kind::Barrier | Kind::Message => plans::barrier(at),
    };
    (call, plan, vec![len; 2 * ranks as usize + 1])
}

/// Makes a frame that a rank might send, or nearly so.
fn forge(rank: &Rank, choices: &mut Choices<'_>) -> Vec<u8> {
    let known: BTreeSet<OpId> = rank.running.keys().copied().collect();
    let known = choices.of(&known.into_iter().collect::<Vec<_>>()).and_then(|op| rank.running.get(&op));
    let (mut call, mut lane) = match known {
        Some(running) => (running.call, running.lane),
        None => (call(Kind::Message, 100_000, choices), Lane::Tag(0)),
    };
    match choices.byte() {
        0..4 => call.elements /= 2,
        4..8 => lane = Lane::Collective(u64::from(choices.byte()) % 8),
        8..24 => lane = Lane::Tag(u64::from(choices.byte() % 2)),
        _ => {}
    }
    let group = rank.group + u64::from(choices.byte() >= 250);
    let key = Key { group, lane, index: u32::from(choices.byte() % 4) };
    let long = call.elements.wrapping_mul(call.dtype.bytes() as u64);
    let shared = long / u64::from(rank.place.ranks);
    let bytes = choices.of(&[long, long, long / 2, shared, SEGMENT_BYTES as u64, u64::MAX]).unwrap_or(0);
    let target = Target { address: 1, rkey: 2, token: u32::from(choices.byte()) };
    let payload = vec![choices.byte(); (bytes as usize).min(EAGER_BYTES)];
    match choices.byte() {
        0..100 => Frame::Ready { key, call, bytes, target }.encode(),
        100..200 => Frame::Eager { key, call, payload: &payload }.encode(),
        200..240 => Frame::Offer { key, call, bytes }.encode(),
        240..245 => Frame::Ask { group, number: u64::from(choices.byte() % 8) }.encode(),
        245..250 => Frame::Here { group, number: u64::from(choices.byte() % 8) }.encode(),
        _ => Frame::Fault { group, text: "no" }.encode(),
    }
}

/// Reports a write, of an announced one mostly.
fn report(rank: &mut Rank, choices: &mut Choices<'_>) {
    let tokens: BTreeSet<u32> = rank.announced.keys().copied().collect();
    let token = choices.of(&tokens.into_iter().collect::<Vec<_>>()).unwrap_or(99);
    let (sender, _, bytes) = rank.announced.get(&token).copied().unwrap_or((0, None, 0));
    let (peer, bytes) = match choices.byte() {
        0..4 => ((sender + 1) % rank.place.ranks, bytes),
        4..8 => (sender, bytes / 2),
        _ => (sender, bytes),
    };
    rank.engine.arrived(peer, token, bytes);
    if peer == sender {
        rank.announced.remove(&token);
    }
}

fn act(rank: &mut Rank, choices: &mut Choices<'_>) {
    let Place { rank: own, ranks } = rank.place;
    let peer = (own + 1 + choices.below(ranks as usize - 1) as PeerId) % ranks;
    match choices.below(16) {
        0..3 => {
            let (call, plan, buffers) = collective_of(rank.place, choices);
            rank.start(call, Some(plan), buffers, Begin::Collective);
        }
        which @ 3..5 => {
            let len = choices.of(&SIZES).unwrap_or(0);
            let (call, tag) = (call(Kind::Message, len, choices), u64::from(choices.byte() % 2));
            let begin = match which {
                3 => Begin::Send { to: peer, tag },
                _ => Begin::Receive { from: Some(peer).filter(|_| choices.byte() < 128), tag },
            };
            rank.start(call, None, vec![len], begin);
        }
        5 => {
            let bytes = choices.bytes();
            if let Some(frame) = Frame::decode(&bytes) {
                assert_eq!(Frame::decode(&frame.encode()), Some(frame));
            }
            rank.hear(peer, &bytes);
        }
        6..11 => {
            let bytes = forge(rank, choices);
            rank.hear(peer, &bytes);
        }
        11..14 => report(rank, choices),
        14 => {
            if let Some(id) = rank.writes.pop_first() {
                rank.engine.written(id);
            }
        }
        _ if choices.byte() < 8 => {
            rank.engine.lost(peer, "gone");
            rank.lost.insert(peer);
            rank.announced.retain(|_, (of, ..)| *of != peer);
        }
        _ => {
            let ops: BTreeSet<OpId> = rank.running.keys().copied().collect();
            if let Some(op) = choices.of(&ops.into_iter().collect::<Vec<_>>()) {
                assert!(rank.engine.overdue(op).is_some(), "an operation in progress is known");
                rank.engine.ask(op);
                rank.engine.withdraw(op, "late");
            }
        }
    }
    rank.obey();
}

/// Runs the engine. The input selects the actions of the other ranks and of the application.
pub fn collective(data: &[u8]) {
    let mut choices = Choices(&data[..data.len().min(MOST_BYTES)]);
    let ranks = 2 + choices.below(4) as u32;
    let mut rank = Rank::new(Place { rank: u32::from(choices.byte()) % ranks, ranks });
    while !choices.0.is_empty() {
        act(&mut rank, &mut choices);
    }
    rank.engine.leave(rank.group);
    rank.obey();
    assert!(rank.running.is_empty(), "all operations end with their group");
}
