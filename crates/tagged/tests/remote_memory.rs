//! Tests of the specification's oracles on RMA, counters, regions and atomics.

mod world;

use pathweave_tagged::*;
use world::*;

const KEY: u64 = 0xfeed_0000_0000_0001;

/// Opens memory of node 1 to peers.
fn open(world: &mut World, bytes: &[u8], access: Access, events: RegionEvents) -> (Piece, RegionId) {
    let piece = world.buffer(1, bytes);
    let region = Region { key: KEY, base: 0, piece, access, events };
    let id = world.at(1, |engine, _| engine.open_region(region)).expect("the key is free");
    (piece, id)
}

fn segment(address: u64, len: u64) -> Segment {
    Segment { key: KEY, address, len }
}

fn write(to: usize, address: u64, from: Piece, context: u64) -> Write {
    Write {
        to: peer(to),
        segments: segment(address, from.len).into(),
        from,
        data: None,
        hold: BufferLifetime::UntilDone,
        report: Report::Entry,
        context,
    }
}

fn read(to: usize, address: u64, into: Piece, context: u64) -> Read {
    let segments = segment(address, into.len).into();
    Read { to: peer(to), segments, into, report: Report::Entry, context }
}

fn results(completions: &[Completion]) -> Vec<(u64, Kind, Result<(), Failure>)> {
    completions.iter().map(|c| (c.context, c.kind, c.result)).collect()
}

#[test]
fn written_files_are_read_again() {
    for len in [0, 1, 5000, 3 << 20] {
        let mut world = World::new(2, Config::default(), 5);
        let (there, _) = open(&mut world, &vec![0; len + 10], Access::ReadWrite, RegionEvents::None);
        let from = world.buffer(0, &pattern(6, len));
        let into = world.buffer(0, &vec![0; len]);
        world.at(0, |e, ram| e.post_write(write(1, 10, from, 1), ram)).expect("room");
        // The read is posted without waiting, and sees the write before it.
        world.at(0, |e, ram| e.post_read(read(1, 10, into, 2), ram)).expect("room");
        world.run();
        let mut done = results(&world.take_completions(0));
        done.sort_by_key(|(context, ..)| *context);
        assert_eq!(done, [(1, Kind::Write, Ok(())), (2, Kind::Read, Ok(()))]);
        assert_eq!(world.nodes[0].ram.bytes(into), pattern(6, len));
        assert_eq!(&world.nodes[1].ram.bytes(there)[10..], pattern(6, len));
        assert_eq!(world.take_completions(1), [], "nobody is told");
    }
}

/// Oracle 21: each request is refused locally, and the connection continues.
#[test]
fn forbidden_accesses_fail_and_the_connection_continues() {
    let cases = [
        (Access::Read, KEY, 0, 4),
        (Access::Write, KEY, 1, 100),
        (Access::Write, KEY, 101, 0),
        (Access::Write, KEY, u64::MAX, 2),
        (Access::Write, KEY + 1, 0, 4),
    ];
    for (access, key, address, len) in cases {
        let mut world = World::new(2, Config::default(), 5);
        open(&mut world, &[0; 100], access, RegionEvents::None);
        let from = world.buffer(0, &pattern(6, len));
        let bad =
            Write { segments: Segment { key, address, len: len as u64 }.into(), ..write(1, 0, from, 1) };
        world.at(0, |e, ram| e.post_write(bad, ram)).expect("room");
        let payload = world.buffer(0, b"after");
        world.send(0, 1, 5, payload, 2);
        world.run();
        let done = results(&world.take_completions(0));
        assert_eq!(done[0], (1, Kind::Write, Err(Failure::Access)), "{access:?} {address} {len}");
        assert_eq!(done[1].2, Ok(()));
        assert_eq!(world.nodes[0].cut.len() + world.nodes[1].cut.len(), 0);
    }
}

#[test]
fn a_read_without_right_is_refused() {
    let mut world = World::new(2, Config::default(), 5);
    open(&mut world, &[0; 100], Access::Write, RegionEvents::None);
    let into = world.buffer(0, &[0; 4]);
    world.at(0, |e, ram| e.post_read(read(1, 0, into, 1), ram)).expect("room");
    world.run();
    assert_eq!(results(&world.take_completions(0)), [(1, Kind::Read, Err(Failure::Access))]);
}

/// A refused key may be opened later, a closed one is refused, and one that is opened again refers to the new memory.
#[test]
fn keys_come_and_go() {
    let mut world = World::new(2, Config::default(), 5);
    let from = world.buffer(0, b"data");
    let attempt = |world: &mut World| {
        world.at(0, |e, ram| e.post_write(write(1, 0, from, 1), ram)).expect("room");
        world.run();
        world.take_completions(0)[0].result
    };
    assert_eq!(attempt(&mut world), Err(Failure::Access));
    let (first, id) = open(&mut world, &[0; 4], Access::ReadWrite, RegionEvents::None);
    assert_eq!(attempt(&mut world), Ok(()));
    let again = Region { key: KEY, base: 0, piece: first, access: Access::Read, events: RegionEvents::None };
    assert_eq!(world.at(1, |e, _| e.open_region(again)), Err(PostError::KeyInUse));
    world.at(1, |e, ram| e.close_region(id, ram));
    assert!(world.nodes[1].engine.is_closing(id), "the peer has not been asked yet");
    // The key is free at once; the old memory is not.
    let (second, _) = open(&mut world, &[0; 4], Access::ReadWrite, RegionEvents::None);
    world.run();
    assert!(!world.nodes[1].engine.is_closing(id));
    world.nodes[1].ram.free(first);
    assert_eq!(attempt(&mut world), Ok(()));
    assert_eq!(world.nodes[1].ram.bytes(second), b"data");
    assert_eq!(world.nodes[1].ram.registered(), 1);
}

/// Oracle 21: regions close during reads and writes. The test transport checks that no request uses a removed key.
#[test]
fn a_region_closes_when_nobody_uses_it_any_more() {
    for seed in 1..100 {
        let mut world = World::new(3, Config::default(), seed);
        let (there, id) = open(&mut world, &pattern(1, 4 << 20), Access::ReadWrite, RegionEvents::None);
        for number in 0..4 {
            for at in [0, 2] {
                let into = world.buffer(at, &vec![0; 2 << 20]);
                world.at(at, |e, ram| e.post_read(read(1, 0, into, number), ram)).expect("room");
                world.at(at, |e, ram| e.post_write(write(1, 2 << 20, into, number), ram)).expect("room");
            }
        }
        for _ in 0..world.below(150) {
            world.step();
        }
        world.at(1, |e, ram| e.close_region(id, ram));
        while world.nodes[1].engine.is_closing(id) {
            assert!(world.step(), "seed {seed}: it closes");
        }
        world.nodes[1].ram.free(there);
        world.run();
        for at in [0, 2] {
            let done = world.take_completions(at);
            assert_eq!(done.len(), 8);
            assert!(done.iter().all(|c| matches!(c.result, Ok(()) | Err(Failure::Access))));
        }
        assert_eq!(world.nodes[1].ram.registered(), 0);
    }
}

/// A region whose peer does not respond is withdrawn. The peer keeps its connection but can no longer access the
/// memory.
#[test]
fn a_region_is_withdrawn_from_a_peer_that_does_not_give_it_up() {
    let mut world = World::new(2, Config::default(), 5);
    let (there, id) = open(&mut world, &[0; 8], Access::ReadWrite, RegionEvents::All);
    let (from, into) = (world.buffer(0, &1u64.to_le_bytes()), world.buffer(0, &[0; 8]));
    world.at(0, |e, ram| e.post_write(write(1, 0, from, 1), ram)).expect("room");
    world.run();
    world.take_completions(0);
    world.take_completions(1);
    world.deaf.insert(0);
    assert_eq!(world.at(1, |e, ram| e.withdraw_region(id, ram)), None, "it is open");
    world.at(1, |e, ram| e.close_region(id, ram));
    for _ in 0..100 {
        world.step();
    }
    assert!(world.nodes[1].engine.is_closing(id));
    assert_eq!(world.nodes[1].engine.closing_for(id).collect::<Vec<_>>(), [peer(0)]);
    let (_, askers) = world.at(1, |e, ram| e.withdraw_region(id, ram)).expect("it is closing");
    assert!(askers.contains(&peer(0)) && !world.nodes[1].engine.is_closing(id));
    assert_eq!(world.nodes[1].ram.registered(), 1, "the key stays for who may use it");
    world.nodes[1].ram.free(there);
    // Node 0 has not processed the revocation yet.
    for (number, fetch) in [(2, Fetch::Old { result: into }), (3, Fetch::Nothing)] {
        world.at(0, |e, ram| e.post_atomic(add(from, fetch, number), ram)).expect("room");
    }
    world.deaf.clear();
    world.run();
    let mut done = results(&world.take_completions(0));
    done.sort_by_key(|(number, ..)| *number);
    assert_eq!(done, [(2, Kind::FetchAtomic, Err(Failure::Access)), (3, Kind::Atomic, Ok(()))]);
    assert_eq!(world.take_completions(1), []);
    assert_eq!(world.nodes[1].ram.registered(), 0, "it was given up");
    // No peer was disconnected, and the key is free.
    assert!(world.nodes[1].cut.is_empty() && world.nodes[0].engine.is_up(peer(1)));
    let (again, _) = open(&mut world, &[0; 8], Access::ReadWrite, RegionEvents::None);
    world.at(0, |e, ram| e.post_write(write(1, 0, from, 4), ram)).expect("room");
    world.run();
    assert_eq!(results(&world.take_completions(0)), [(4, Kind::Write, Ok(()))]);
    assert_eq!(world.nodes[1].ram.bytes(again), 1u64.to_le_bytes());
}

/// Returns an atomic that adds a word to the first word of the region.
fn add(operand: Piece, fetch: Fetch, context: u64) -> Atomic {
    let (op, kind, done, report) = (AtomicOp::Sum, AtomicType::U64, DoneWhen::Transmitted, Report::Entry);
    Atomic { to: peer(1), key: KEY, address: 0, op, kind, count: 1, operand, fetch, done, report, context }
}

/// Oracle 22: the entry of a write with data follows the arrival of its bytes.
#[test]
fn data_comes_after_the_bytes() {
    for len in [0, 8, 2 << 20] {
        for hold in [BufferLifetime::UntilDone, BufferLifetime::ThisCall] {
            if hold == BufferLifetime::ThisCall && len > MAX_INJECT as usize {
                continue;
            }
            let mut world = World::new(2, Config::default(), 5);
            let (there, _) = open(&mut world, &vec![0; len], Access::Write, RegionEvents::None);
            let from = world.buffer(0, &pattern(2, len));
            let posted = Write { data: Some(u64::MAX), hold, ..write(1, 0, from, 1) };
            world.at(0, |e, ram| e.post_write(posted, ram)).expect("room");
            if hold == BufferLifetime::ThisCall {
                world.nodes[0].ram.set(from, &vec![0; len]);
            }
            while world.nodes[1].completions.is_empty() {
                assert!(world.step(), "it comes");
            }
            assert_eq!(world.nodes[1].ram.bytes(there), pattern(2, len));
            let entry = world.take_completions(1)[0];
            let expected = (0, Kind::RemoteWrite, Report::Entry, Some(u64::MAX), len as u64);
            assert_eq!((entry.context, entry.kind, entry.report, entry.data, entry.len), expected);
            assert_eq!((entry.region, entry.peer), (Some(KEY), Some(peer(0))));
            world.run();
            assert_eq!(results(&world.take_completions(0)), [(1, Kind::Write, Ok(()))]);
            assert_eq!(world.nodes[0].ram.kept(), 0);
        }
    }
}

/// Oracle 22: both ends count operations if the region asks for it.
#[test]
fn regions_with_events_count_what_peers_do() {
    let mut world = World::new(2, Config::default(), 5);
    let (_, id) = open(&mut world, &[0; 4 << 10], Access::ReadWrite, RegionEvents::All);
    let local = world.buffer(0, &[1; 1000]);
    for number in 0..50 {
        let post =
            Write { hold: BufferLifetime::ThisCall, report: Report::Count, ..write(1, 0, local, number) };
        world.at(0, |e, ram| e.post_write(post, ram)).expect("room");
        world.at(0, |e, ram| e.post_read(read(1, 0, local, number), ram)).expect("room");
    }
    world.run();
    let told = world.take_completions(1);
    let count = |kind| told.iter().filter(|c| c.kind == kind && c.report == Report::Count).count();
    assert_eq!((count(Kind::RemoteWrite), count(Kind::RemoteRead), told.len()), (50, 50, 100));
    let done = world.take_completions(0);
    let count = |kind, report| done.iter().filter(|c| c.kind == kind && c.report == report).count();
    assert_eq!((count(Kind::Write, Report::Count), count(Kind::Read, Report::Entry)), (50, 50));
    world.at(1, |e, ram| e.close_region(id, ram));
    world.run();
    assert!(!world.nodes[1].engine.is_closing(id));
}

/// Entries of writes with data are bounded: peers wait until the application reads them.
#[test]
fn writes_with_data_wait_for_the_application() {
    let limits = Config { notices: 100, ..Config::default() };
    let mut world = World::new(2, limits, 5);
    open(&mut world, &[0; 4], Access::Write, RegionEvents::None);
    let from = world.buffer(0, b"data");
    for number in 0..1000 {
        let posted = Write { data: Some(number), ..write(1, 0, from, number) };
        world.at(0, |e, ram| e.post_write(posted, ram)).expect("room");
    }
    let mut numbers = Vec::new();
    while numbers.len() < 1000 {
        world.run();
        let told = world.take_completions(1);
        assert!(!told.is_empty() && told.len() <= 100 + usize::from(MOST_RECEIVES));
        numbers.extend(told.iter().map(|c| c.data.expect("data")));
        world.at(1, |e, ram| e.notices_read(told.len() as u64, ram));
    }
    assert_eq!(numbers, (0..1000).collect::<Vec<_>>());
}

/// A message is matched after the bytes of the preceding write have arrived (SAW).
#[test]
fn a_message_comes_after_the_writes_before_it() {
    for seed in 1..50 {
        let mut world = World::new(2, Config::default(), seed);
        let (there, _) = open(&mut world, &vec![0; 3 << 20], Access::Write, RegionEvents::None);
        let from = world.buffer(0, &pattern(2, 3 << 20));
        world.at(0, |e, ram| e.post_write(write(1, 0, from, 1), ram)).expect("room");
        world.receive(1, None, 5, 0, Piece::NONE, 10);
        world.send(0, 1, 5, Piece::NONE, 2);
        while world.nodes[1].completions.is_empty() {
            assert!(world.step());
        }
        assert!(world.nodes[1].ram.bytes(there) == &pattern(2, 3 << 20)[..]);
    }
}

#[test]
fn one_write_may_go_to_several_segments() {
    let mut world = World::new(2, Config::default(), 5);
    let (there, _) = open(&mut world, &[b'.'; 10], Access::ReadWrite, RegionEvents::None);
    let from = world.buffer(0, b"abcdef");
    let segments = Segments::new(&[segment(8, 2), segment(0, 0), segment(1, 3), segment(5, 1)]);
    let segments = segments.expect("four");
    let posted = Write { segments, ..write(1, 0, from, 1) };
    world.at(0, |e, ram| e.post_write(posted, ram)).expect("room");
    let into = world.buffer(0, &[0; 6]);
    let posted = Read { segments, ..read(1, 0, into, 2) };
    world.at(0, |e, ram| e.post_read(posted, ram)).expect("room");
    world.run();
    assert_eq!(world.nodes[1].ram.bytes(there), b".cde.f..ab");
    assert_eq!(world.nodes[0].ram.bytes(into), b"abcdef");
    assert!(Segments::new(&[segment(0, 1); 5]).is_none());
    let uneven = Write { from: from.part(0, 5).expect("within"), ..posted_write(segments, from) };
    assert_eq!(world.at(0, |e, ram| e.post_write(uneven, ram)), Err(PostError::Lengths));
}

fn posted_write(segments: Segments, from: Piece) -> Write {
    Write { segments, ..write(1, 0, from, 1) }
}

/// Oracle 13: RMA and atomics on this endpoint's own memory.
#[test]
fn ones_own_memory_is_reached_without_a_peer() {
    let mut world = World::new(2, Config::default(), 5);
    let (there, _) = open(&mut world, &[0; 16], Access::ReadWrite, RegionEvents::Writes);
    let from = world.buffer(1, &7u64.to_ne_bytes());
    let mut posted = Write { to: PeerId::SELF, data: Some(4), ..write(1, 8, from, 1) };
    world.at(1, |e, ram| e.post_write(posted, ram)).expect("room");
    let result = world.buffer(1, &[0; 8]);
    let atomic = Atomic { to: PeerId::SELF, ..atomic(AtomicOp::Sum, AtomicType::U64, 8, 1, from) };
    let atomic = Atomic { fetch: Fetch::Old { result }, ..atomic };
    world.at(1, |e, ram| e.post_atomic(atomic, ram)).expect("room");
    posted.segments = segment(9, 8).into();
    world.at(1, |e, ram| e.post_write(posted, ram)).expect("room");
    let done = world.take_completions(1);
    let kinds: Vec<_> = done.iter().map(|c| (c.kind, c.data, c.result)).collect();
    let expected = [
        (Kind::RemoteWrite, Some(4), Ok(())),
        (Kind::Write, None, Ok(())),
        (Kind::RemoteWrite, None, Ok(())),
        (Kind::FetchAtomic, None, Ok(())),
        (Kind::Write, None, Err(Failure::Access)),
    ];
    assert_eq!(kinds[..4], expected[..4]);
    assert_eq!((kinds[4].0, kinds[4].2), (expected[4].0, expected[4].2));
    assert_eq!(world.nodes[1].ram.bytes(result), 7u64.to_ne_bytes());
    assert_eq!(world.nodes[1].ram.bytes(there)[8..], 14u64.to_ne_bytes());
    assert_eq!(world.nodes[1].sends, 0);
}

fn atomic(op: AtomicOp, kind: AtomicType, address: u64, count: u32, operand: Piece) -> Atomic {
    Atomic {
        to: peer(1),
        key: KEY,
        address,
        op,
        kind,
        count,
        operand,
        fetch: Fetch::Nothing,
        done: DoneWhen::Transmitted,
        report: Report::Entry,
        context: 1,
    }
}

/// Oracle 23: 8 ranks add to one word, 1,000 times each, some of them fetching. All additions count, and all fetched
/// values differ.
#[test]
fn no_addition_is_lost() {
    let mut world = World::new(9, Config { operations: 64, ..Config::default() }, 5);
    let ranks = [0, 2, 3, 4, 5, 6, 7, 8];
    let (there, _) = open(&mut world, &[0; 8], Access::ReadWrite, RegionEvents::None);
    let mut results_of = Vec::new();
    for number in 0..1000u64 {
        for at in ranks {
            let operand = world.buffer(at, &1u64.to_ne_bytes());
            let mut posted = atomic(AtomicOp::Sum, AtomicType::U64, 0, 1, operand);
            if number % 2 == 0 {
                let result = world.buffer(at, &[0; 8]);
                posted.fetch = Fetch::Old { result };
                results_of.push((at, result));
            } else if number % 3 == 0 {
                posted.done = DoneWhen::Delivered;
            }
            while world.at(at, |e, ram| e.post_atomic(posted, ram)) == Err(PostError::Full) {
                assert!(world.step());
            }
        }
    }
    world.run();
    assert_eq!(world.nodes[1].ram.bytes(there), 8000u64.to_ne_bytes());
    let word = |(at, piece): &(usize, Piece)| {
        u64::from_ne_bytes(world.nodes[*at].ram.bytes(*piece).try_into().expect("8 bytes"))
    };
    let mut old: Vec<_> = results_of.iter().map(word).collect();
    old.sort_unstable();
    old.dedup();
    assert_eq!(old.len(), 4000);
    for at in ranks {
        let done = world.take_completions(at);
        assert!(done.len() == 1000 && done.iter().all(|c| c.result.is_ok()));
    }
}

/// Decodes a number of any type for the model, as types wide enough for all.
#[allow(clippy::cast_lossless, reason = "the same for all types")]
fn decode(kind: AtomicType, bytes: &[u8]) -> (i128, f64) {
    macro_rules! of {
        ($t:ty) => {{
            let value = <$t>::from_ne_bytes(bytes.try_into().expect("a value"));
            (value as i128, value as f64)
        }};
    }
    match kind {
        AtomicType::I8 => of!(i8),
        AtomicType::U8 => of!(u8),
        AtomicType::I16 => of!(i16),
        AtomicType::U16 => of!(u16),
        AtomicType::I32 => of!(i32),
        AtomicType::U32 => of!(u32),
        AtomicType::I64 => of!(i64),
        AtomicType::U64 => of!(u64),
        AtomicType::F32 => of!(f32),
        AtomicType::F64 => of!(f64),
    }
}

fn encode(kind: AtomicType, (integer, float): (i128, f64)) -> Vec<u8> {
    match kind {
        AtomicType::F32 => (float as f32).to_ne_bytes().to_vec(),
        AtomicType::F64 => float.to_ne_bytes().to_vec(),
        // The low bytes: values that do not fit wrap around.
        _ if cfg!(target_endian = "little") => integer.to_le_bytes()[..kind.size()].to_vec(),
        _ => integer.to_be_bytes()[16 - kind.size()..].to_vec(),
    }
}

/// Reference model of each operation as in the manual page, with types wide enough for all values.
fn model(op: AtomicOp, kind: AtomicType, value: &[u8], operand: &[u8], compare: &[u8]) -> Vec<u8> {
    let [(v, fv), (o, fo), (c, _)] = [value, operand, compare].map(|bytes| decode(kind, bytes));
    let truth = |holds: bool| (i128::from(holds), f64::from(u8::from(holds)));
    // Floats in these tests are whole numbers below 2^24.
    let chosen = |holds: bool| if holds { (o, fo) } else { (v, fv) };
    use AtomicOp as Op;
    let result = match op {
        Op::Min => chosen(fo < fv || fo == fv && o < v),
        Op::Max => chosen(fo > fv || fo == fv && o > v),
        Op::Sum => (v + o, fv + fo),
        Op::LogicalOr => truth(fv != 0.0 || fo != 0.0),
        Op::LogicalAnd => truth(fv != 0.0 && fo != 0.0),
        Op::LogicalXor => truth((fv != 0.0) ^ (fo != 0.0)),
        Op::BitOr => (v | o, 0.0),
        Op::BitAnd => (v & o, 0.0),
        Op::BitXor => (v ^ o, 0.0),
        Op::Read => (v, fv),
        Op::Write => (o, fo),
        Op::SwapIfEqual => chosen(c == v),
        Op::SwapIfNotEqual => chosen(c != v),
        Op::SwapIfLessOrEqual => chosen(c <= v),
        Op::SwapIfLess => chosen(c < v),
        Op::SwapIfGreaterOrEqual => chosen(c >= v),
        Op::SwapIfGreater => chosen(c > v),
        Op::MaskedSwap => ((o & c) | (v & !c), 0.0),
    };
    encode(kind, result)
}

/// Oracle 23: every type and operation in every form, on three values at a time.
#[test]
fn every_atomic_does_what_the_model_does() {
    let mut world = World::new(2, Config::default(), 5);
    let (there, _) = open(&mut world, &[0; 64], Access::ReadWrite, RegionEvents::None);
    for kind in AtomicType::ALL {
        for op in AtomicOp::ALL {
            for form in [AtomicForm::Plain, AtomicForm::Fetch, AtomicForm::Compare] {
                let size = kind.size();
                let count = 3;
                let len = count * size;
                let [values, operands, compares] = [0, 1, 2].map(|_| {
                    let mut all = Vec::new();
                    for _ in 0..count {
                        // The values are few, so that equal ones occur, and include negative ones and large integers.
                        let small = world.below(4) as i128 - 1;
                        let large = if world.below(3) == 0 { 1 << (8 * size - 2) } else { 0 };
                        all.extend(encode(kind, (small + large, small as f64)));
                    }
                    all
                });
                world.nodes[1].ram.set(there.part(0, len as u64).expect("within"), &values);
                let operand = world.buffer(0, &operands);
                let compare = world.buffer(0, &compares);
                let result = world.buffer(0, &vec![0xee; len]);
                let fetch = match form {
                    AtomicForm::Plain => Fetch::Nothing,
                    AtomicForm::Fetch => Fetch::Old { result },
                    AtomicForm::Compare => Fetch::Compared { compare, result },
                };
                let posted = Atomic { fetch, ..atomic(op, kind, 0, count as u32, operand) };
                let answer = world.at(0, |e, ram| e.post_atomic(posted, ram));
                if !op.is_valid(kind, form) {
                    assert_eq!(answer, Err(PostError::NotSupported));
                    continue;
                }
                answer.expect("room");
                world.run();
                assert_eq!(world.take_completions(0)[0].result, Ok(()));
                let expected: Vec<u8> = (0..count)
                    .flat_map(|i| {
                        let at = i * size..(i + 1) * size;
                        model(op, kind, &values[at.clone()], &operands[at.clone()], &compares[at])
                    })
                    .collect();
                let after = &world.nodes[1].ram.bytes(there)[..len];
                assert_eq!(after, expected, "{op:?} {kind:?} {values:?} {operands:?} {compares:?}");
                if form != AtomicForm::Plain {
                    assert_eq!(world.nodes[0].ram.bytes(result), values);
                }
            }
        }
    }
}

/// Oracle 23: four ranks use a lock by compare and swap. It is never held twice.
#[test]
fn a_lock_of_compare_and_swap_is_held_once() {
    let mut world = World::new(5, Config::default(), 9);
    let ranks = [0, 2, 3, 4];
    open(&mut world, &[0; 4], Access::ReadWrite, RegionEvents::None);
    let mut turns = vec![0; 5];
    let mut holder: Option<usize> = None;
    let words: Vec<_> = (0..5)
        .map(|at| {
            let one = world.buffer(at, &1u32.to_ne_bytes());
            let zero = world.buffer(at, &0u32.to_ne_bytes());
            let result = world.buffer(at, &[9; 4]);
            (one, zero, result)
        })
        .collect();
    let try_lock = |world: &mut World, at: usize| {
        let (one, zero, result) = words[at];
        let fetch = Fetch::Compared { compare: zero, result };
        let posted = Atomic { fetch, ..atomic(AtomicOp::SwapIfEqual, AtomicType::U32, 0, 1, one) };
        world.at(at, |e, ram| e.post_atomic(posted, ram)).expect("room");
    };
    for at in ranks {
        try_lock(&mut world, at);
    }
    while turns.iter().sum::<u32>() < 400 {
        assert!(world.step(), "somebody gets it");
        for at in ranks {
            for done in world.take_completions(at) {
                let (_, zero, result) = words[at];
                match done.kind {
                    Kind::FetchAtomic if world.nodes[at].ram.bytes(result) == 0u32.to_ne_bytes() => {
                        assert_eq!(holder.replace(at), None, "two hold it");
                        turns[at] += 1;
                        holder = None;
                        let unlock = atomic(AtomicOp::Write, AtomicType::U32, 0, 1, zero);
                        world.at(at, |e, ram| e.post_atomic(unlock, ram)).expect("room");
                    }
                    _ => try_lock(&mut world, at),
                }
            }
        }
    }
    assert!(ranks.iter().all(|at| turns[*at] > 10), "{turns:?}");
}

#[test]
fn atomics_that_do_not_fit_are_refused() {
    let mut world = World::new(2, Config::default(), 5);
    let operand = world.buffer(0, &[0; 968]);
    let post = |world: &mut World, posted| world.at(0, |e, ram| e.post_atomic(posted, ram));
    let long = atomic(AtomicOp::Sum, AtomicType::U64, 0, 121, operand);
    assert_eq!(post(&mut world, long), Err(PostError::TooLong { len: 968, most: MAX_ATOMIC_BYTES }));
    let none = atomic(AtomicOp::Sum, AtomicType::U64, 0, 0, Piece::NONE);
    assert_eq!(post(&mut world, none), Err(PostError::Lengths));
    let short = atomic(AtomicOp::Sum, AtomicType::U64, 0, 1, operand);
    assert_eq!(post(&mut world, short), Err(PostError::Lengths));
    let fits = atomic(AtomicOp::Sum, AtomicType::U64, 0, 120, operand.part(0, 960).expect("within"));
    assert_eq!(post(&mut world, fits), Ok(()));
}

/// Peers die during all kinds of operations. Each operation ends once, and no buffer or key is leaked.
#[test]
fn remote_memory_of_a_dead_peer_fails_once_each() {
    for seed in 1..100 {
        let mut world = World::new(2, Config::default(), seed);
        open(&mut world, &vec![0; 2 << 20], Access::ReadWrite, RegionEvents::All);
        let local = world.buffer(0, &vec![0; 2 << 20]);
        let word = local.part(0, 8).expect("within");
        for number in 0..20 {
            let fetch = if number % 2 == 0 { Fetch::Nothing } else { Fetch::Old { result: word } };
            let posted = Atomic {
                fetch,
                context: 300 + number,
                done: DoneWhen::Delivered,
                ..atomic(AtomicOp::Sum, AtomicType::U64, 0, 1, word)
            };
            let inject =
                Write { hold: BufferLifetime::ThisCall, data: Some(1), ..write(1, 0, word, 200 + number) };
            let long = write(1, 0, local, 100 + number);
            world.at(0, |e, ram| e.post_write(long, ram)).expect("room");
            world.at(0, |e, ram| e.post_read(read(1, 0, local, number), ram)).expect("room");
            world.at(0, |e, ram| e.post_write(inject, ram)).expect("room");
            world.at(0, |e, ram| e.post_atomic(posted, ram)).expect("room");
        }
        for _ in 0..world.below(600) {
            world.step();
        }
        let killer = world.below(2);
        world.kill(killer, 1 - killer, Failure::Reset);
        world.run();
        let done = world.take_completions(0);
        let mut contexts: Vec<_> = done.iter().map(|c| c.context).collect();
        contexts.sort_unstable();
        let expected: Vec<_> = [0, 100, 200, 300].iter().flat_map(|from| *from..from + 20).collect();
        assert_eq!(contexts, expected, "seed {seed}");
        assert!(done.iter().all(|c| matches!(c.result, Ok(()) | Err(Failure::Reset))));
        assert_eq!(world.nodes[0].ram.kept(), 0);
        assert_eq!(world.nodes[0].engine.room(), Config::default().operations);
    }
}
