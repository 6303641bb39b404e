//! Execution of collectives by ranks that hold blocks, with the set of contributors to each block.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::algorithm::Algorithm;

/// All transfers that an algorithm declared, with the predecessors of each.
#[derive(Default)]
struct Recorder {
    transfers: Vec<(Transfer, Vec<usize>)>,
}

impl Medium for Recorder {
    type Sent = usize;
    fn send(&mut self, transfer: Transfer, after: &[usize]) -> Result<usize, WorkloadError> {
        assert_ne!(transfer.src, transfer.dst);
        self.transfers.push((transfer, after.to_vec()));
        Ok(self.transfers.len() - 1)
    }
}

/// A block: its number in a vector, or (source, destination) in an all-to-all.
type Block = (usize, usize);
/// Ranks whose input a block contains, by holding rank and block.
type Held = Vec<BTreeMap<Block, BTreeSet<usize>>>;

fn blocks_of(blocks: Blocks) -> Vec<Block> {
    match blocks {
        Blocks::Range { first, count } => (first..first + count).map(|b| (b, 0)).collect(),
        pairs => pairs.pairs().collect(),
    }
}

fn plan(operation: Operation, algorithm: Algorithm, ranks: usize) -> Plan {
    let local = (1..ranks).rev().find(|local| ranks.is_multiple_of(*local)).unwrap_or(1);
    Plan { operation, algorithm, ranks, size: 8000, chunk: 700, ranks_per_server: local }
}

fn record(plan: Plan) -> Vec<(Transfer, Vec<usize>)> {
    plan.check().unwrap();
    let mut recorder = Recorder::default();
    plan.run(&mut recorder).unwrap();
    recorder.transfers
}

/// Returns the input of each rank.
fn inputs(plan: Plan) -> Held {
    let Plan { operation, ranks, .. } = plan;
    let parts = match plan.sizes() {
        Sizes::Vector(cut) => cut.parts,
        _ => ranks,
    };
    let of = |rank: usize| {
        let blocks: Vec<Block> = match operation {
            Operation::AllReduce | Operation::ReduceScatter | Operation::Reduce => {
                (0..parts).map(|b| (b, 0)).collect()
            }
            Operation::AllGather => vec![(rank, 0)],
            Operation::Broadcast if rank == 0 => (0..parts).map(|b| (b, 0)).collect(),
            Operation::Broadcast => Vec::new(),
            Operation::AllToAll => (0..ranks).map(|dst| (rank, dst)).collect(),
        };
        blocks.into_iter().map(|block| (block, BTreeSet::from([rank]))).collect()
    };
    (0..ranks).map(of).collect()
}

/// Returns the blocks that each rank must have at the end.
fn outputs(plan: Plan) -> Held {
    let all: BTreeSet<usize> = (0..plan.ranks).collect();
    let inputs = inputs(plan);
    let blocks: BTreeSet<Block> = inputs.iter().flat_map(|of| of.keys().copied()).collect();
    let of = |rank: usize| {
        let wanted = |&&(block, dst): &&Block| match plan.operation {
            Operation::AllReduce | Operation::AllGather | Operation::Broadcast => true,
            Operation::ReduceScatter => block == rank,
            Operation::Reduce => rank == 0,
            Operation::AllToAll => dst == rank,
        };
        let whose = |&(block, dst): &Block| match plan.operation {
            Operation::AllReduce | Operation::ReduceScatter | Operation::Reduce => all.clone(),
            Operation::AllGather | Operation::AllToAll => BTreeSet::from([block]),
            Operation::Broadcast => BTreeSet::from([dst]),
        };
        blocks.iter().filter(wanted).map(|block| (*block, whose(block))).collect()
    };
    (0..plan.ranks).map(of).collect()
}

/// Merges an arrived block. It either adds new contributions, or is the sum that replaces the present block.
/// No contribution is counted twice.
fn merge(held: &mut BTreeSet<usize>, arrived: &BTreeSet<usize>) {
    assert!(
        held.is_disjoint(arrived) || held.is_subset(arrived),
        "{held:?} and {arrived:?} overlap: something would be added twice"
    );
    held.extend(arrived);
}

/// Executes a collective in an order drawn from `choices`. Inputs become known, and messages arrive, after
/// arbitrary times. The contents of a message are read when it begins.
fn carry_out(plan: Plan, mut choose: impl FnMut(usize) -> usize) -> Held {
    enum Act {
        Input(usize),
        Begin(usize),
        End(usize, Vec<(Block, BTreeSet<usize>)>),
    }
    let transfers = record(plan);
    let inputs = inputs(plan);
    let mut held: Held = vec![BTreeMap::new(); plan.ranks];
    let mut known = vec![false; plan.ranks];
    let mut over = vec![false; transfers.len()];
    let mut waiting: Vec<usize> = (0..transfers.len()).collect();
    let mut open: Vec<Act> = (0..plan.ranks).map(Act::Input).collect();
    loop {
        waiting.retain(|&t| {
            let (transfer, after) = &transfers[t];
            let free = after.iter().all(|&a| over[a]) && (known[transfer.src] || !transfer.own);
            if free {
                open.push(Act::Begin(t));
            }
            !free
        });
        if open.is_empty() {
            break;
        }
        let next = choose(open.len());
        match open.swap_remove(next) {
            Act::Input(rank) => {
                known[rank] = true;
                for (block, whose) in &inputs[rank] {
                    merge(held[rank].entry(*block).or_default(), whose);
                }
            }
            Act::Begin(t) => {
                let (transfer, _) = &transfers[t];
                let read = |block: Block| {
                    let content = held[transfer.src].get(&block).cloned().unwrap_or_default();
                    assert!(!content.is_empty(), "{transfer:?} sends block {block:?} that is not there");
                    (block, content)
                };
                let content = blocks_of(transfer.blocks).into_iter().map(read).collect();
                open.push(Act::End(t, content));
            }
            Act::End(t, content) => {
                over[t] = true;
                for (block, arrived) in &content {
                    merge(held[transfers[t].0.dst].entry(*block).or_default(), arrived);
                }
            }
        }
    }
    assert!(waiting.is_empty(), "transfers that never became free");
    held
}

fn fulfils(plan: Plan, held: &Held) {
    for (rank, (held, wanted)) in held.iter().zip(outputs(plan)).enumerate() {
        for (block, whose) in wanted {
            assert_eq!(held.get(&block), Some(&whose), "{plan:?}: rank {rank}, block {block:?}");
        }
    }
}

fn every_plan() -> impl Strategy<Value = Plan> {
    use Operation::*;
    let all = [AllReduce, ReduceScatter, AllGather, AllToAll, Broadcast, Reduce];
    let pairs: Vec<(Operation, Algorithm)> =
        all.iter().flat_map(|&o| o.algorithms().iter().map(move |&a| (o, a))).collect();
    (prop::sample::select(pairs), 2usize..14).prop_map(|((operation, algorithm), ranks)| {
        let needs_power = algorithm == Algorithm::HalvingDoubling && operation != AllReduce;
        plan(operation, algorithm, if needs_power { halving::power_within(ranks) } else { ranks })
    })
}

proptest! {
    #[test]
    fn every_collective_moves_what_its_definition_says(
        plan in every_plan(),
        choices in proptest::collection::vec(any::<prop::sample::Index>(), 64),
    ) {
        let mut turn = 0;
        let held = carry_out(plan, |open| {
            turn += 1;
            // The order mixes the drawn one, first in first out, and last in first out.
            match turn / 64 % 3 {
                0 => choices[turn % 64].index(open),
                1 => 0,
                _ => open - 1,
            }
        });
        fulfils(plan, &held);
    }

    #[test]
    fn counts_are_foretold(plan in every_plan()) {
        let count = record(plan).len() as f64;
        // Halving and doubling over a number of ranks that is no power of two has fewer messages.
        let exact = plan.algorithm != Algorithm::HalvingDoubling || plan.ranks.is_power_of_two();
        prop_assert!(count == plan.messages() || !exact && count <= plan.messages(), "{count} {}", plan.messages());
    }
}

/// Returns the number of messages, the bytes of the busiest sender, and the length of the longest chain.
fn figures(plan: Plan) -> (usize, u64, usize) {
    let transfers = record(plan);
    let sizes = plan.sizes();
    let mut sent = vec![0; plan.ranks];
    let mut depth = vec![0; transfers.len()];
    for (t, (transfer, after)) in transfers.iter().enumerate() {
        sent[transfer.src] += sizes.bytes(transfer.blocks);
        depth[t] = 1 + after.iter().map(|&a| depth[a]).max().unwrap_or(0);
    }
    (transfers.len(), sent.into_iter().max().unwrap(), depth.into_iter().max().unwrap())
}

#[test]
fn messages_bytes_and_steps_by_hand() {
    use Algorithm::*;
    use Operation::*;
    let of = |operation, algorithm, local| {
        figures(Plan { operation, algorithm, ranks: 8, size: 8000, chunk: 1000, ranks_per_server: local })
    };
    // Two times 7 steps with an eighth of the vector each.
    assert_eq!(of(AllReduce, Ring, 1), (112, 14_000, 14));
    // 3 + 3 steps: 4000 + 2000 + 1000 bytes, and back.
    assert_eq!(of(AllReduce, HalvingDoubling, 1), (48, 14_000, 6));
    // Two trees of 4 chunks of 1000 bytes each, with 7 edges up and down. The root has one child, so the path
    // up from the lowest leaf has 3 edges, and so has the path down. An inner node with two children (a leaf
    // of the other tree) sends its chunks up once and down twice, and those of the other tree up once: 4 x 4
    // x 1000 bytes.
    assert_eq!(of(AllReduce, DoubleBinaryTree, 1), (112, 16_000, 6));
    // Servers of 4: 3 steps of 2000 bytes within, 2 of 1000 between the two, and 3 of 2000 within.
    assert_eq!(of(AllReduce, Hierarchical, 4), (8 * 8, 14_000, 8));
    assert_eq!(of(ReduceScatter, Ring, 1), (56, 7000, 7));
    assert_eq!(of(ReduceScatter, HalvingDoubling, 1), (24, 7000, 3));
    assert_eq!(of(AllGather, Ring, 1), (56, 7000, 7));
    assert_eq!(of(AllGather, HalvingDoubling, 1), (24, 7000, 3));
    assert_eq!(of(AllToAll, Direct, 1), (56, 7000, 1));
    assert_eq!(of(AllToAll, Pairwise, 1), (56, 7000, 7));
    // Each of 3 steps forwards 4 of the 8 blocks.
    assert_eq!(of(AllToAll, Bruck, 1), (24, 12_000, 3));
    // Eight chunks along 7 edges.
    assert_eq!(of(Broadcast, Ring, 1), (56, 8000, 7));
    // The root sends three times, one after another.
    assert_eq!(of(Broadcast, Binomial, 1), (7, 24_000, 3));
    assert_eq!(of(Reduce, Ring, 1), (56, 8000, 7));
    assert_eq!(of(Reduce, Binomial, 1), (7, 8000, 3));
}

#[test]
fn bytes_are_counted_as_in_nccl_tests() {
    let of = |operation: Operation| {
        let measure = operation.measure(8, 8000);
        assert_eq!(measure.size.get(), 8000);
        measure.bus.get()
    };
    assert_eq!(of(Operation::AllReduce), 14_000);
    assert_eq!(of(Operation::ReduceScatter), 7000);
    assert_eq!(of(Operation::AllGather), 7000);
    assert_eq!(of(Operation::AllToAll), 7000);
    assert_eq!(of(Operation::Broadcast), 8000);
    assert_eq!(of(Operation::Reduce), 8000);
}

#[test]
fn plans_that_cannot_be() {
    let good = plan(Operation::AllReduce, Algorithm::Ring, 12);
    let error = |plan: Plan| plan.check().unwrap_err();
    assert_eq!(
        error(Plan { algorithm: Algorithm::Bruck, ..good }),
        (
            "algorithm",
            "bruck".to_owned(),
            "all-reduce is done by ring, double-binary-tree, halving-doubling, hierarchical".to_owned()
        )
    );
    let odd = Plan { operation: Operation::AllGather, algorithm: Algorithm::HalvingDoubling, ..good };
    assert!(error(odd).2.ends_with("over 12 ranks; halving and doubling needs a power of two"));
    let local = Plan { algorithm: Algorithm::Hierarchical, ranks_per_server: 5, ..good };
    assert_eq!(error(local).0, "local_size");
    assert_eq!(
        error(Plan { size: 11, ..good }).2,
        "expected at least 12 bytes, one for each part of the algorithm"
    );
}
