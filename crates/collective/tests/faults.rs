//! Messages between ranks, and what happens when ranks disagree or go.

mod world;

use pathweave_collective::{Call, Dtype, Kind, OpId, ReduceOp, Reduction, Span, plans};
use world::{GROUP, World};

fn call(kind: Kind, dtype: Dtype, elements: usize) -> Call {
    let op = (kind == Kind::AllReduce).then_some(ReduceOp::Sum);
    Call { kind, op, dtype, root: None, elements: elements as u64 }
}

fn all_reduce(world: &mut World, rank: usize, dtype: Dtype, elements: usize) -> OpId {
    let call = call(Kind::AllReduce, dtype, elements);
    let bytes = elements * dtype.bytes();
    let how = Reduction { dtype, op: ReduceOp::Sum };
    let plan = plans::all_reduce(world.place(rank), how, Span::whole(0, bytes));
    world.begin(rank, call, vec![vec![1; bytes]], 0, |engine| engine.collective(GROUP, call, plan))
}

fn send(world: &mut World, rank: usize, to: u32, tag: u64, bytes: Vec<u8>) -> OpId {
    let (call, span) = (call(Kind::Message, Dtype::U8, bytes.len()), Span::whole(0, bytes.len()));
    world.begin(rank, call, vec![bytes], 0, |engine| engine.send(GROUP, to, tag, call, span))
}

fn receive(world: &mut World, rank: usize, from: Option<u32>, tag: u64, bytes: usize) -> OpId {
    let (call, span) = (call(Kind::Message, Dtype::U8, bytes), Span::whole(0, bytes));
    world.begin(rank, call, vec![vec![0; bytes]], 0, |engine| engine.receive(GROUP, from, tag, call, span))
}

#[test]
fn sizes_types_and_kinds_that_differ_are_errors_at_all_ranks() {
    for ranks in [2, 3, 4, 5] {
        for (dtype, elements) in
            [(Dtype::U8, 11), (Dtype::U8, 1_000_000), (Dtype::I8, 10), (Dtype::I8, 40_000)]
        {
            let mut world = World::new(ranks as u32, 4);
            let mut ops = vec![all_reduce(&mut world, 0, dtype, elements)];
            ops.extend((1..ranks).map(|rank| all_reduce(&mut world, rank, Dtype::U8, 10)));
            world.run();
            for (rank, op) in ops.iter().enumerate() {
                let error = world.ranks[rank].done[op].clone().unwrap_err();
                let named = format!("{elements} x {dtype}");
                assert!(error.contains(&named) && error.contains("10 x uint8"), "{error}");
                assert!(error.contains("rank 0") && error.contains("operation 0"), "{error}");
                assert!(world.ranks[rank].engine.begun(GROUP) == 1);
            }
        }
    }
}

#[test]
fn a_group_that_has_failed_begins_nothing_and_others_go_on() {
    let mut world = World::new(2, 8);
    for rank in 0..2 {
        let place = world.place(rank);
        world.ranks[rank].engine.join(7, place, vec![0, 1]);
    }
    world.ranks[0].engine.fail(7, "rank 0 has aborted");
    world.obey(0);
    world.run();
    let tried = world.ranks[1].engine.send(7, 0, 0, call(Kind::Message, Dtype::U8, 0), Span::whole(0, 0));
    assert_eq!(tried, Err("rank 0 has aborted".to_owned()));
    let ops = [0, 1].map(|rank| all_reduce(&mut world, rank, Dtype::F32, 100_000));
    world.run();
    assert!((0..2).all(|rank| world.ranks[rank].done[&ops[rank]] == Ok(None)));
}

#[test]
fn messages_match_by_rank_and_tag_in_order() {
    for length in [3, 16 << 10, 40_000, 600_000] {
        let mut world = World::new(3, length as u64);
        let of = |value: u8| vec![value; length];
        let sent = [
            send(&mut world, 1, 0, 5, of(1)),
            send(&mut world, 1, 0, 5, of(2)),
            send(&mut world, 1, 0, 6, of(3)),
            send(&mut world, 2, 0, 5, of(4)),
        ];
        world.run();
        let other_tag = receive(&mut world, 0, Some(1), 6, length);
        let other_rank = receive(&mut world, 0, Some(2), 5, length);
        let first = receive(&mut world, 0, Some(1), 5, length);
        let any = receive(&mut world, 0, None, 5, length);
        world.run();
        for (op, value) in [(other_tag, 3), (other_rank, 4), (first, 1), (any, 2)] {
            assert!(world.buffers(0, op)[0] == of(value), "{length} bytes, {value}");
        }
        assert_eq!(world.ranks[0].done[&any], Ok(Some(1)));
        assert!(sent[..3].iter().all(|op| world.ranks[1].done[op] == Ok(None)));
        let posted = receive(&mut world, 1, None, 9, length);
        send(&mut world, 0, 1, 9, of(8));
        world.run();
        assert!(world.buffers(1, posted)[0] == of(8) && world.ranks[1].done[&posted] == Ok(Some(0)));
    }
}

#[test]
fn a_message_of_another_size_is_an_error_at_both_ends() {
    for (sent, wanted) in [(10, 11), (50_000, 10), (10, 50_000)] {
        let mut world = World::new(2, 2);
        let receive = receive(&mut world, 1, Some(0), 0, wanted);
        send(&mut world, 0, 1, 0, vec![1; sent]);
        world.run();
        let error = world.ranks[1].done[&receive].clone().unwrap_err();
        let named = format!("rank 0 sends {sent} x uint8 with tag 0, rank 1 receives {wanted} x uint8");
        assert_eq!(error, named);
        let next =
            world.ranks[0].engine.send(GROUP, 1, 0, call(Kind::Message, Dtype::U8, 0), Span::whole(0, 0));
        assert_eq!(next, Err(named));
    }
}

#[test]
fn a_lost_peer_fails_what_needs_it_and_nothing_else() {
    let mut world = World::new(3, 6);
    let waiting = receive(&mut world, 0, Some(1), 1, 8);
    world.ranks[0].engine.lost(2, "no answer");
    world.obey(0);
    assert!(world.ranks[0].done.is_empty());
    send(&mut world, 1, 0, 1, vec![9; 8]);
    world.run();
    assert_eq!(world.ranks[0].done[&waiting], Ok(Some(1)));
    let call = call(Kind::Barrier, Dtype::U8, 0);
    let plan = plans::barrier(world.place(0));
    let begun = world.ranks[0].engine.collective(GROUP, call, plan);
    assert_eq!(begun, Err("rank 2 has left the group: no answer".to_owned()));

    let mut world = World::new(3, 6);
    let op = all_reduce(&mut world, 0, Dtype::F32, 1_000_000);
    let other = all_reduce(&mut world, 1, Dtype::F32, 1_000_000);
    world.run();
    let overdue = world.ranks[0].engine.overdue(op).unwrap();
    assert_eq!((overdue.call.as_str(), overdue.absent), ("all_reduce(sum, 1000000 x float32)", vec![2]));
    world.ranks[0].engine.lost(2, "no answer");
    world.obey(0);
    world.run();
    for (rank, op) in [(0, op), (1, other)] {
        let error = world.ranks[rank].done[&op].clone().unwrap_err();
        assert_eq!(error, "rank 2 is lost: no answer");
    }
}

#[test]
fn a_rank_that_waits_itself_is_not_named_as_absent() {
    let mut world = World::new(3, 6);
    // Rank 2 gives its values to rank 0, for which rank 1 waits.
    let ops = [0, 1].map(|rank| all_reduce(&mut world, rank, Dtype::F32, 16));
    world.run();
    for (rank, op) in [0, 1].into_iter().zip(ops) {
        assert!(world.ranks[rank].engine.ask(op));
        world.obey(rank);
    }
    world.run();
    let [first, second] = [0, 1].map(|rank| world.ranks[rank].engine.overdue(ops[rank]).unwrap());
    assert_eq!((first.awaited, first.absent), (vec![2], vec![2]));
    assert_eq!((second.awaited, second.absent), (vec![0], vec![]));
    assert!(!world.ranks[1].engine.ask(ops[1]), "nobody is left to be asked");
}

#[test]
fn a_receive_without_a_message_can_be_taken_back() {
    let mut world = World::new(2, 6);
    let early = receive(&mut world, 0, Some(1), 1, 8);
    assert!(world.ranks[0].engine.withdraw(early, "too late"));
    world.obey(0);
    assert_eq!(world.ranks[0].done[&early], Err("too late".to_owned()));
    send(&mut world, 1, 0, 1, vec![9; 8]);
    let later = receive(&mut world, 0, Some(1), 1, 8);
    world.run();
    assert_eq!(world.ranks[0].done[&later], Ok(Some(1)));
    assert!(!world.ranks[0].engine.withdraw(later, "done"));
}

#[test]
fn frames_of_a_group_that_is_joined_later_are_kept() {
    let mut world = World::new(2, 6);
    let place = world.place(0);
    world.ranks[0].engine.join(9, place, vec![0, 1]);
    let barrier = call(Kind::Barrier, Dtype::U8, 0);
    let plan = plans::barrier(place);
    let op = world.begin(0, barrier, Vec::new(), 0, |engine| engine.collective(9, barrier, plan));
    world.run();
    let place = world.place(1);
    world.ranks[1].engine.join(9, place, vec![0, 1]);
    let plan = plans::barrier(place);
    let other = world.begin(1, barrier, Vec::new(), 0, |engine| engine.collective(9, barrier, plan));
    world.run();
    assert_eq!((&world.ranks[0].done[&op], &world.ranks[1].done[&other]), (&Ok(None), &Ok(None)));
    world.ranks[0].engine.leave(9);
    world.obey(0);
    let plan = plans::barrier(place);
    assert!(world.ranks[0].engine.collective(9, barrier, plan).unwrap_err().contains("destroyed"));
}
