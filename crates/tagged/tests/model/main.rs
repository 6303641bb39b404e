//! Random operations of two to four engines, over a transport with delays and connection losses, compared with the
//! reference.

#[allow(unreachable_pub)]
mod reference;
#[path = "../world/mod.rs"]
mod world;

use pathweave_tagged::*;
use proptest::prelude::*;
use reference::{Message, Posted, Reference};
use std::collections::{BTreeMap, BTreeSet};
use world::{Bytes, Note, World, pattern, peer};

const LENGTHS: [u64; 7] = [0, 10, 1000, 2013, 6000, 16_384, 40_000];

#[derive(Clone, Debug)]
enum Op {
    Send { from: usize, to: usize, tag: u64, len: usize, hold: BufferLifetime, done: DoneWhen },
    Receive { at: usize, from: Option<usize>, tag: u64, ignore: u64, room: usize, least: Option<u64> },
    Peek { at: usize, from: Option<usize>, tag: u64, ignore: u64, found: Found },
    Claim { at: usize, room: Option<usize> },
    Cancel { at: usize, back: u64 },
    Steps(u8),
    Kill { one: usize, other: usize },
}

fn op() -> impl Strategy<Value = Op> {
    let node = 0usize..4;
    let from = prop_oneof![Just(None), (0usize..4).prop_map(Some)];
    let ignore = prop_oneof![3 => Just(0u64), 1 => Just(u64::MAX), 1 => Just(1u64), 1 => Just(1 << 63)];
    let tag = prop_oneof![0u64..3, Just(1 << 63)];
    let hold = prop_oneof![Just(BufferLifetime::UntilDone), Just(BufferLifetime::ThisCall)];
    let done = prop_oneof![Just(DoneWhen::Transmitted), Just(DoneWhen::Delivered)];
    let least = prop_oneof![4 => Just(None), 1 => (1u64..3000).prop_map(Some)];
    let found = prop_oneof![Just(Found::Stays), Just(Found::Claimed), Just(Found::Dropped)];
    let len = 0..LENGTHS.len();
    let room = prop_oneof![Just(None), len.clone().prop_map(Some)];
    prop_oneof![
        8 => (node.clone(), node.clone(), tag.clone(), len.clone(), hold, done)
            .prop_map(|(from, to, tag, len, hold, done)| Op::Send { from, to, tag, len, hold, done }),
        8 => (node.clone(), from.clone(), tag.clone(), ignore.clone(), len, least).prop_map(
            |(at, from, tag, ignore, room, least)| Op::Receive { at, from, tag, ignore, room, least }),
        2 => (node.clone(), from, tag, ignore, found)
            .prop_map(|(at, from, tag, ignore, found)| Op::Peek { at, from, tag, ignore, found }),
        1 => (node.clone(), room).prop_map(|(at, room)| Op::Claim { at, room }),
        1 => (node.clone(), 0u64..20).prop_map(|(at, back)| Op::Cancel { at, back }),
        8 => any::<u8>().prop_map(Op::Steps),
        1 => (node.clone(), node).prop_map(|(one, other)| Op::Kill { one, other }),
    ]
}

/// Send that has not ended.
#[derive(Clone, Copy, Debug)]
struct SendState {
    from: usize,
    to: usize,
}

struct Model {
    world: World,
    limits: Config,
    references: Vec<Reference>,
    sends: BTreeMap<u64, SendState>,
    lengths: BTreeMap<u64, u64>,
    buffers: BTreeMap<(usize, u64), Piece>,
    /// Pairs whose connection has been lost at some time.
    dead: BTreeSet<(usize, usize)>,
    /// Last message of each pair that arrived.
    last: BTreeMap<(usize, usize), u64>,
    /// Multi-receives that were released.
    released: BTreeSet<(usize, u64)>,
    next: u64,
}

impl Model {
    fn new(count: usize, limits: Config, seed: u64) -> Self {
        Model {
            world: World::new(count, limits, seed),
            limits,
            references: (0..count).map(|_| Reference::default()).collect(),
            sends: BTreeMap::new(),
            lengths: BTreeMap::new(),
            buffers: BTreeMap::new(),
            dead: BTreeSet::new(),
            last: BTreeMap::new(),
            released: BTreeSet::new(),
            next: 0,
        }
    }
    fn count(&self) -> usize {
        self.references.len()
    }
    fn id(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
    fn has_died(&self, one: usize, other: usize) -> bool {
        self.dead.contains(&(one.min(other), one.max(other)))
    }

    fn apply(&mut self, op: &Op) {
        let count = self.count();
        match *op {
            Op::Send { from, to, tag, len, hold, done } => {
                self.send(from % count, to % count, tag, LENGTHS[len], hold, done);
            }
            Op::Receive { at, from, tag, ignore, room, least } => {
                let room = LENGTHS[room];
                let (at, from) = (at % count, from.map(|from| from % count));
                let least = least.filter(|_| room > 0);
                let context = self.id();
                let into = self.world.buffer(at, &vec![0xee; room as usize]);
                self.buffers.insert((at, context), into);
                self.references[at].post(Posted { context, from, tag, ignore, room, size: room, least });
                let receive = Receive {
                    from: from.map(|from| name(at, from)),
                    want: MatchOn::Tagged { tag, ignore },
                    into,
                    take: least.map_or(ReceiveCount::One, |least| ReceiveCount::Many { least }),
                    report: Report::Entry,
                    context,
                };
                self.world.at(at, |e, ram| e.post_receive(receive, ram)).expect("lengths are right");
                self.look();
            }
            Op::Peek { at, from, tag, ignore, found } => {
                self.peek(at % count, from.map(|f| f % count), tag, ignore, found);
            }
            Op::Claim { at, room } => self.claim(at % count, room.map(|room| LENGTHS[room])),
            Op::Cancel { at, back } => {
                let at = at % count;
                let context = self.next.saturating_sub(back);
                let expected = self.references[at].cancel(context);
                let is_receive = self.buffers.contains_key(&(at, context));
                self.world.at(at, |e, _| e.cancel(context));
                let all = self.world.take_completions(at);
                let (cancelled, others): (Vec<_>, Vec<_>) =
                    all.into_iter().partition(|c| c.result == Err(Failure::Cancelled));
                self.world.nodes[at].completions = others;
                assert_eq!(cancelled.len(), usize::from(expected && is_receive));
                for completion in cancelled {
                    assert_eq!(completion.context, context);
                    self.note_release(at, &completion);
                }
                self.look();
            }
            Op::Steps(steps) => {
                for _ in 0..steps {
                    self.world.step();
                    self.look();
                }
            }
            Op::Kill { one, other } => {
                self.world.kill(one % count, other % count, Failure::TimedOut);
                self.look();
            }
        }
    }

    fn send(&mut self, from: usize, to: usize, tag: u64, len: u64, hold: BufferLifetime, done: DoneWhen) {
        let id = self.id();
        let hold = if len > MAX_INJECT { BufferLifetime::UntilDone } else { hold };
        let payload = self.world.buffer(from, &pattern(id, len as usize));
        self.sends.insert(id, SendState { from, to });
        self.lengths.insert(id, len);
        if from == to {
            self.references[to].arrive(Message { from, tag, id, len, bytes: Bytes::Here });
        }
        let send = Send {
            to: name(from, to),
            label: Label::Tagged(tag),
            payload,
            data: Some(id),
            hold,
            done,
            report: Report::Entry,
            context: id,
        };
        self.world.at(from, |e, ram| e.post_send(send, ram)).expect("there is room");
        if hold == BufferLifetime::ThisCall {
            self.world.nodes[from].ram.free(payload);
        }
        self.look();
    }

    fn peek(&mut self, at: usize, from: Option<usize>, tag: u64, ignore: u64, found: Found) {
        let context = self.id();
        let wanted = Posted { context, from, tag, ignore, room: 0, size: 0, least: None };
        let expected = self.references[at].peek(&wanted, found != Found::Stays);
        if let (Some(message), Found::Claimed) = (expected, found) {
            self.references[at].claimed.push((context, Some(message)));
        }
        let (from, want) = (from.map(|from| name(at, from)), MatchOn::Tagged { tag, ignore });
        self.world.at(at, |e, ram| e.peek(Peek { from, want, found, context }, ram));
        let all = self.world.take_completions(at);
        let (answers, others): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|c| c.context == context && matches!(c.kind, Kind::Receive(_)));
        self.world.nodes[at].completions = others;
        let [answer] = answers[..] else { panic!("one answer: {answers:?}") };
        match expected {
            None => assert_eq!(answer.result, Err(Failure::NoMessage)),
            Some(message) => {
                assert_eq!((answer.result, answer.data), (Ok(()), Some(message.id)));
                assert_eq!((answer.len, answer.tag()), (message.len, message.tag));
            }
        }
        self.look();
    }

    fn claim(&mut self, at: usize, room: Option<u64>) {
        let Some((context, message)) = self.references[at].claimed.pop() else { return };
        let into = room.map(|room| self.world.buffer(at, &vec![0xee; room as usize]));
        let claim = Claim { into, report: Report::Entry, context };
        match (message, into) {
            (Some(message), Some(into)) => {
                self.buffers.insert((at, context), into);
                let len = message.len.min(into.len);
                self.references[at].matches.push(reference::Match { context, message, offset: 0, len });
            }
            _ => {
                self.world.at(at, |e, ram| e.claim(claim, ram)).expect("claimed");
                let completions = &mut self.world.nodes[at].completions;
                let place = completions.iter().position(|c| c.context == context).expect("an answer");
                let answer = completions.remove(place);
                assert_eq!(answer.result.is_ok(), message.is_some() || into.is_none());
                return self.look();
            }
        }
        self.world.at(at, |e, ram| e.claim(claim, ram)).expect("claimed");
        self.look();
    }

    /// Passes all events to the references, then compares the engines with them.
    fn look(&mut self) {
        for note in core::mem::take(&mut self.world.notes) {
            match note {
                Note::Arrived { at, from, bytes, tag, data: id } => {
                    let before = self.last.insert((from, at), id).unwrap_or(0);
                    assert!(before < id, "messages of one sender arrive in order");
                    let len = self.lengths[&id];
                    self.references[at].arrive(Message { from, tag, id, len, bytes });
                }
                Note::Lost { at, peer } => {
                    self.dead.insert((at.min(peer), at.max(peer)));
                    self.references[at].lose(peer);
                }
            }
        }
        for at in 0..self.count() {
            for completion in self.world.take_completions(at) {
                match completion.kind {
                    Kind::Send(_) => self.sent(at, &completion),
                    Kind::Receive(_) => self.received(at, &completion),
                    other => panic!("{other:?}"),
                }
            }
            let (engine, reference) = (&self.world.nodes[at].engine, &self.references[at]);
            assert_eq!(engine.unexpected_messages(), reference.unexpected.len() + reference.claimed.len());
            let first = 4 * 2048 * self.count() as u64;
            assert!(engine.pool_bytes() <= self.limits.pool + first);
            // Messages to the endpoint itself that wait use the engine's memory only if they are short.
            let own = self.lengths.len() as u64 * MAX_INJECT;
            assert!(engine.held_bytes() <= self.limits.unexpected_bytes + self.limits.pool + first + own);
        }
    }

    fn sent(&mut self, at: usize, completion: &Completion) {
        let state = self.sends.remove(&completion.context).expect("each send ends once");
        assert_eq!(state.from, at);
        match completion.result {
            Ok(()) => assert_eq!(completion.len, self.lengths[&completion.context]),
            Err(Failure::TimedOut | Failure::Reset) => assert!(self.has_died(at, state.to)),
            Err(Failure::Io) => assert!(self.has_died(at, state.to)),
            Err(other) => panic!("{other:?}"),
        }
    }

    fn received(&mut self, at: usize, completion: &Completion) {
        self.note_release(at, completion);
        let matches = &mut self.references[at].matches;
        let place = matches
            .iter()
            .position(|m| m.context == completion.context && Some(m.message.id) == completion.data)
            .unwrap_or_else(|| panic!("not what was to be received: {completion:?}"));
        let expected = matches.remove(place);
        let message = expected.message;
        assert_eq!((completion.tag(), completion.peer), (message.tag, Some(name(at, message.from))));
        match completion.result {
            Err(Failure::TimedOut | Failure::Reset) => {
                assert!(message.bytes == Bytes::Announced && self.has_died(at, message.from));
                return;
            }
            Err(Failure::Truncated { cut }) => assert_eq!(cut, message.len - expected.len),
            result => assert_eq!((result, expected.len), (Ok(()), message.len)),
        }
        assert_eq!(completion.len, expected.len);
        let into =
            self.buffers[&(at, completion.context)].part(expected.offset, expected.len).expect("within");
        assert_eq!(completion.into, into);
        let bytes = pattern(message.id, message.len as usize);
        assert!(self.world.nodes[at].ram.bytes(into) == &bytes[..expected.len as usize], "contents");
    }

    fn note_release(&mut self, at: usize, completion: &Completion) {
        if completion.release == Release::Released {
            assert!(self.released.insert((at, completion.context)), "released once");
            assert!(!self.references[at].posted.iter().any(|p| p.context == completion.context));
        }
        assert!(
            completion.release == Release::Released || !self.released.contains(&(at, completion.context)),
            "nothing comes after the release"
        );
    }

    /// Receives everything that is left, and checks that nothing remains.
    fn finish(mut self) {
        loop {
            while self.world.step() {
                self.look();
            }
            let Some(at) = (0..self.count()).find(|at| !self.references[*at].unexpected.is_empty()) else {
                break;
            };
            self.apply(&Op::Receive { at, from: None, tag: 0, ignore: u64::MAX, room: 6, least: None });
        }
        for at in 0..self.count() {
            while !self.references[at].claimed.is_empty() {
                self.claim(at, Some(100));
            }
        }
        while self.world.step() {
            self.look();
        }
        assert!(self.sends.is_empty(), "sends that never end: {:?}", self.sends);
        for (at, reference) in self.references.iter().enumerate() {
            assert!(reference.matches.is_empty(), "{at} did not receive {:?}", reference.matches);
            let node = &self.world.nodes[at];
            assert_eq!(node.engine.posted_receives(), reference.posted.len());
            assert_eq!((node.ram.kept(), node.ram.registered()), (0, 0));
            assert_eq!((node.engine.held_bytes(), node.engine.room()), (0, self.limits.operations));
            assert_eq!(node.cut, []);
        }
    }
}

/// Returns the identifier by which a node addresses another one, or itself.
fn name(at: usize, other: usize) -> PeerId {
    if at == other { PeerId::SELF } else { peer(other) }
}

fn limits() -> impl Strategy<Value = Config> {
    let bytes = prop_oneof![Just(2u64 << 10), Just(32 << 10), Just(64 << 20)];
    let pool = prop_oneof![Just(16u64 << 10), Just(300 << 10), Just(64 << 20)];
    (bytes, pool, any::<u64>()).prop_map(|(unexpected_bytes, pool, seed)| Config {
        unexpected_bytes,
        pool,
        chunk: 3000,
        seed,
        ..Config::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn the_engines_do_what_the_reference_does(
        count in 2usize..5,
        limits in limits(),
        seed in any::<u64>(),
        ops in proptest::collection::vec(op(), 1..150),
    ) {
        let mut model = Model::new(count, limits, seed);
        for op in &ops {
            model.apply(op);
        }
        model.finish();
    }
}
