//! Collectives of 1 to 9 ranks against results that are computed from all values at once.

mod world;

use pathweave_collective::{Call, Dtype, Kind, OpId, Plan, ReduceOp, Reduction, Span, plans};
use world::{Dice, GROUP, World};

const SUM: Reduction = Reduction { dtype: Dtype::U64, op: ReduceOp::Sum };
/// Elements of 8 bytes: none, one, primes around the limits of the algorithms, and several segments.
const SIZES: [usize; 7] = [0, 1, 7, 2_053, 5_003, 65_521, 300_007];

fn call(kind: Kind, op: Option<ReduceOp>, root: Option<u32>, elements: usize) -> Call {
    Call { kind, op, dtype: Dtype::U64, root, elements: elements as u64 }
}

/// Returns the value of an element before an operation.
fn value(rank: usize, index: usize) -> u64 {
    (rank as u64 + 1) * 1_000_003 + index as u64 * 7
}

fn values(rank: usize, elements: usize) -> Vec<u8> {
    (0..elements).flat_map(|index| value(rank, index).to_ne_bytes()).collect()
}

fn sum(ranks: usize, index: usize) -> u64 {
    (0..ranks).map(|rank| value(rank, index)).sum()
}

fn numbers(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks(8).map(|raw| u64::from_ne_bytes(raw.try_into().unwrap())).collect()
}

/// Runs a collective of all ranks, begun in a random order while others are already exchanging.
fn run(
    ranks: usize,
    seed: u64,
    call: Call,
    plan: impl Fn(plans::Place) -> Plan,
    buffers: impl Fn(usize) -> Vec<Vec<u8>>,
) -> (World, Vec<OpId>) {
    let mut world = World::new(ranks as u32, seed);
    let mut dice = Dice::new(seed + 1);
    let mut waiting: Vec<usize> = (0..ranks).collect();
    let mut ops = vec![0; ranks];
    while !waiting.is_empty() {
        let rank = waiting.swap_remove(dice.below(waiting.len()));
        let plan = plan(world.place(rank));
        let temporary = plan.temporary_bytes;
        ops[rank] =
            world.begin(rank, call, buffers(rank), temporary, |engine| engine.collective(GROUP, call, plan));
        for _ in 0..dice.below(20) {
            world.step();
        }
    }
    world.run();
    for (rank, op) in ops.iter().enumerate() {
        assert_eq!(
            world.ranks[rank].done.get(op),
            Some(&Ok(None)),
            "{call} at rank {rank} of {ranks}, seed {seed}"
        );
    }
    (world, ops)
}

/// Calls a check with each number of ranks and each size, with seeds of their own.
fn each(check: impl Fn(usize, usize, u64)) {
    for ranks in 1..=9 {
        for (index, elements) in SIZES.into_iter().enumerate() {
            check(ranks, elements, (ranks * 100 + index) as u64);
        }
    }
}

#[test]
fn all_reduce_gives_all_the_sum() {
    each(|ranks, elements, seed| {
        let whole = Span::whole(0, elements * 8);
        let call = call(Kind::AllReduce, Some(ReduceOp::Sum), None, elements);
        let (world, ops) = run(
            ranks,
            seed,
            call,
            |at| plans::all_reduce(at, SUM, whole),
            |rank| vec![values(rank, elements)],
        );
        let expected: Vec<u64> = (0..elements).map(|index| sum(ranks, index)).collect();
        for (rank, op) in ops.into_iter().enumerate() {
            assert!(
                numbers(&world.buffers(rank, op)[0]) == expected,
                "{ranks} ranks, {elements}, rank {rank}"
            );
        }
    });
}

#[test]
fn an_average_is_the_sum_divided_once() {
    for ranks in 1..=6 {
        for elements in [3, 5_003, 70_001] {
            let how = Reduction { dtype: Dtype::U64, op: ReduceOp::Avg };
            let whole = Span::whole(0, elements * 8);
            let call = call(Kind::AllReduce, Some(ReduceOp::Avg), None, elements);
            let (world, ops) = run(
                ranks,
                5,
                call,
                |at| plans::all_reduce(at, how, whole),
                |rank| vec![values(rank, elements)],
            );
            let expected: Vec<u64> = (0..elements).map(|index| sum(ranks, index) / ranks as u64).collect();
            for (rank, op) in ops.into_iter().enumerate() {
                assert!(
                    numbers(&world.buffers(rank, op)[0]) == expected,
                    "{ranks} ranks, {elements}, rank {rank}"
                );
            }
        }
    }
}

#[test]
fn reduce_gives_the_root_the_sum_and_leaves_the_others_theirs() {
    each(|ranks, elements, seed| {
        let root = (elements + 1) % ranks;
        let whole = Span::whole(0, elements * 8);
        let call = call(Kind::Reduce, Some(ReduceOp::Sum), Some(root as u32), elements);
        let plan = |at| plans::reduce(at, SUM, root as u32, whole);
        let (world, ops) = run(ranks, seed, call, plan, |rank| vec![values(rank, elements)]);
        for (rank, op) in ops.into_iter().enumerate() {
            let got = numbers(&world.buffers(rank, op)[0]);
            let expected: Vec<u64> = (0..elements)
                .map(|index| if rank == root { sum(ranks, index) } else { value(rank, index) })
                .collect();
            assert!(got == expected, "{ranks} ranks, {elements}, rank {rank}, root {root}");
        }
    });
}

#[test]
fn broadcast_gives_all_the_values_of_the_root() {
    each(|ranks, elements, seed| {
        let root = elements % ranks;
        let whole = Span::whole(0, elements * 8);
        let call = call(Kind::Broadcast, None, Some(root as u32), elements);
        let plan = |at| plans::broadcast(at, root as u32, whole);
        let (world, ops) = run(ranks, seed, call, plan, |rank| vec![values(rank, elements)]);
        for (rank, op) in ops.into_iter().enumerate() {
            assert!(
                world.buffers(rank, op)[0] == values(root, elements),
                "{ranks} ranks, {elements}, rank {rank}"
            );
        }
    });
}

/// Returns the spans of equal blocks of one buffer.
fn blocks(buffer: u32, ranks: usize, bytes: usize) -> Vec<Span> {
    (0..ranks).map(|rank| Span { buffer, start: rank * bytes, len: bytes }).collect()
}

#[test]
fn all_gather_gives_all_the_blocks_of_all() {
    each(|ranks, elements, seed| {
        let bytes = elements * 8;
        let call = call(Kind::AllGather, None, None, elements);
        let plan = |at| plans::all_gather(at, Span::whole(0, bytes), &blocks(1, ranks, bytes));
        let (world, ops) =
            run(ranks, seed, call, plan, |rank| vec![values(rank, elements), vec![0; ranks * bytes]]);
        let expected: Vec<u8> = (0..ranks).flat_map(|rank| values(rank, elements)).collect();
        for (rank, op) in ops.into_iter().enumerate() {
            assert!(world.buffers(rank, op)[1] == expected, "{ranks} ranks, {elements}, rank {rank}");
        }
    });
}

#[test]
fn reduce_scatter_gives_each_its_block_of_the_sum() {
    each(|ranks, elements, seed| {
        let bytes = elements * 8;
        let call = call(Kind::ReduceScatter, Some(ReduceOp::Sum), None, elements);
        let plan = |at| plans::reduce_scatter(at, SUM, &blocks(0, ranks, bytes), Span::whole(1, bytes));
        let (world, ops) =
            run(ranks, seed, call, plan, |rank| vec![values(rank, ranks * elements), vec![0; bytes]]);
        for (rank, op) in ops.into_iter().enumerate() {
            let expected: Vec<u64> = (0..elements).map(|index| sum(ranks, rank * elements + index)).collect();
            assert!(
                numbers(&world.buffers(rank, op)[1]) == expected,
                "{ranks} ranks, {elements}, rank {rank}"
            );
            assert!(world.buffers(rank, op)[0] == values(rank, ranks * elements), "the blocks stay");
        }
    });
}

/// Elements that one rank sends to another one.
fn uneven(from: usize, to: usize, elements: usize) -> usize {
    if (from + to).is_multiple_of(3) { 0 } else { elements / (1 + from) + to }
}

#[test]
fn all_to_all_moves_blocks_of_any_length() {
    for ranks in 1..=9 {
        for elements in [0, 5, 3_001, 70_001] {
            let spans = |rank: usize, out: bool| {
                let mut start = 0;
                let length = |other: usize| {
                    if out { uneven(rank, other, elements) } else { uneven(other, rank, elements) }
                };
                let span = |other: usize| {
                    let len = length(other) * 8;
                    start += len;
                    Span { buffer: u32::from(!out), start: start - len, len }
                };
                (0..ranks).map(span).collect::<Vec<_>>()
            };
            let total = |rank, out| spans(rank, out).iter().map(|span| span.len).sum::<usize>();
            let call = call(Kind::AllToAll, None, None, 0);
            let plan = |at: plans::Place| {
                plans::all_to_all(at, &spans(at.rank as usize, true), &spans(at.rank as usize, false))
            };
            let (world, ops) = run(ranks, elements as u64, call, plan, |rank| {
                vec![values(rank, total(rank, true) / 8), vec![0; total(rank, false)]]
            });
            for (rank, op) in ops.into_iter().enumerate() {
                for (other, span) in spans(rank, false).into_iter().enumerate() {
                    let sent = spans(other, true)[rank];
                    let from = &values(other, total(other, true) / 8)[sent.start..sent.start + sent.len];
                    let got = &world.buffers(rank, op)[1][span.start..span.start + span.len];
                    assert!(got == from, "{ranks} ranks, {elements}, from {other} to {rank}");
                }
            }
        }
    }
}

#[test]
fn gather_and_scatter_are_opposites() {
    each(|ranks, elements, seed| {
        let (bytes, root) = (elements * 8, elements % ranks);
        let all =
            |at: plans::Place| if at.rank as usize == root { blocks(1, ranks, bytes) } else { Vec::new() };
        let gather = |at| plans::gather(at, root as u32, Span::whole(0, bytes), &all(at));
        let kind = |kind| call(kind, None, Some(root as u32), elements);
        let (world, ops) = run(ranks, seed, kind(Kind::Gather), gather, |rank| {
            vec![values(rank, elements), vec![0; ranks * bytes]]
        });
        let gathered = world.buffers(root, ops[root])[1].clone();
        assert!(gathered == (0..ranks).flat_map(|rank| values(rank, elements)).collect::<Vec<u8>>());
        let scatter = |at| plans::scatter(at, root as u32, Span::whole(0, bytes), &all(at));
        let (world, ops) =
            run(ranks, seed, kind(Kind::Scatter), scatter, |_| vec![vec![0; bytes], gathered.clone()]);
        for (rank, op) in ops.into_iter().enumerate() {
            assert!(
                world.buffers(rank, op)[0] == values(rank, elements),
                "{ranks} ranks, {elements}, rank {rank}"
            );
        }
    });
}

#[test]
fn no_rank_leaves_a_barrier_before_all_are_there() {
    let barrier = call(Kind::Barrier, None, None, 0);
    for ranks in 1..=9 {
        let mut world = World::new(ranks, 3);
        let mut ops = Vec::new();
        for rank in 0..ranks as usize {
            assert!(world.ranks.iter().all(|rank| rank.done.is_empty()));
            let plan = plans::barrier(world.place(rank));
            ops.push(
                world.begin(rank, barrier, Vec::new(), 0, |engine| engine.collective(GROUP, barrier, plan)),
            );
            if rank + 1 < ranks as usize {
                world.run();
            }
        }
        world.run();
        assert!((0..ranks as usize).all(|rank| world.ranks[rank].done[&ops[rank]] == Ok(None)), "{ranks}");
    }
}

#[test]
fn many_collectives_at_once_do_not_mix() {
    for ranks in [2, 3, 4] {
        let mut world = World::new(ranks as u32, 11);
        let mut ops = vec![Vec::new(); ranks];
        for number in 0..12 {
            let elements = SIZES[number % 6];
            let call = call(Kind::AllReduce, Some(ReduceOp::Sum), None, elements);
            for (rank, ops) in ops.iter_mut().enumerate() {
                let plan = plans::all_reduce(world.place(rank), SUM, Span::whole(0, elements * 8));
                let bytes = values(rank + number, elements);
                let op =
                    world.begin(rank, call, vec![bytes], 0, |engine| engine.collective(GROUP, call, plan));
                ops.push((op, number, elements));
            }
        }
        world.run();
        for (rank, ops) in ops.into_iter().enumerate() {
            for (op, number, elements) in ops {
                let expected: Vec<u64> = (0..elements)
                    .map(|index| (0..ranks).map(|rank| value(rank + number, index)).sum())
                    .collect();
                assert!(numbers(&world.buffers(rank, op)[0]) == expected, "{ranks} ranks, {number}");
            }
        }
    }
}
