//! Execution with sets of contributions, in any order that the dependencies allow.

use std::collections::{BTreeMap, BTreeSet};

use pathweave_units::Rng;

use super::super::plan::Plan;
use super::super::wires::Action;
use super::{CASES, Declared, plan, record, team, wanted};
use crate::collective::Operation;

/// Ranks whose vectors a value contains.
type Sum = BTreeSet<usize>;

/// Values of pieces at ranks, and of staged messages.
struct Execution<'a> {
    operation: Operation,
    all: &'a [Declared],
    values: BTreeMap<(usize, u32), Sum>,
    contents: BTreeMap<usize, Vec<(u32, usize, Sum)>>,
}

impl Execution<'_> {
    /// Returns what a rank has of a piece: at the begin, its own contribution.
    fn value(&self, rank: usize, (piece, owner): (u32, usize)) -> Sum {
        let begins = match self.operation {
            Operation::AllReduce | Operation::ReduceScatter | Operation::Reduce => true,
            Operation::AllGather | Operation::AllToAll => rank == owner,
            Operation::Broadcast => rank == 0,
        };
        let own = || if begins { Sum::from([rank]) } else { Sum::new() };
        self.values.get(&(rank, piece)).cloned().unwrap_or_else(own)
    }

    fn begin(&mut self, id: usize) {
        let Declared { hop, data, .. } = &self.all[id];
        let staged = data.first().filter(|&&before| self.all[before].hop.action == Action::Stage);
        let content = match staged {
            Some(before) => self.contents[before].clone(),
            None => {
                let pieces = std::iter::once((hop.piece.id, hop.piece.owner)).chain(hop.piece.more.clone());
                pieces.map(|(id, owner)| (id, owner, self.value(hop.src, (id, owner)))).collect()
            }
        };
        self.contents.insert(id, content);
    }

    fn end(&mut self, id: usize) {
        let hop = &self.all[id].hop;
        for (piece, owner, content) in self.contents[&id].clone() {
            assert!(!content.is_empty(), "message {id} carries nothing: {hop:?}");
            let before = self.value(hop.dst, (piece, owner));
            let after = match hop.action {
                Action::Stage => continue,
                Action::Copy => content,
                Action::Reduce => {
                    assert!(before.is_disjoint(&content), "message {id} adds twice: {hop:?}");
                    before.union(&content).copied().collect()
                }
            };
            self.values.insert((hop.dst, piece), after);
        }
    }
}

/// Executes the messages in a random order that the dependencies allow.
fn execute(plan: &Plan, all: &[Declared], seed: u64) -> BTreeMap<(usize, u32), Sum> {
    let mut rng = Rng::for_component(seed, "order", 0);
    let mut execution =
        Execution { operation: plan.operation, all, values: BTreeMap::new(), contents: BTreeMap::new() };
    let mut waits: Vec<usize> = all.iter().map(|one| one.data.len() + one.slots.len()).collect();
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); all.len()];
    for (id, one) in all.iter().enumerate() {
        one.data.iter().chain(&one.slots).for_each(|&before| after[before].push(id));
    }
    // Each message is in the list twice: first it begins, then it ends.
    let mut due: Vec<(usize, bool)> =
        (0..all.len()).filter(|&id| waits[id] == 0).map(|id| (id, false)).collect();
    let mut ended = 0;
    while !due.is_empty() {
        let place = rng.below(due.len() as u32) as usize;
        let (id, begun) = due.swap_remove(place);
        if !begun {
            execution.begin(id);
            due.push((id, true));
            continue;
        }
        execution.end(id);
        ended += 1;
        for &next in &after[id] {
            waits[next] -= 1;
            if waits[next] == 0 {
                due.push((next, false));
            }
        }
    }
    assert_eq!(ended, all.len(), "messages wait for each other");
    execution.values
}

fn check(plan: &Plan, all: &[Declared], values: &BTreeMap<(usize, u32), Sum>) {
    let ranks = plan.team.ranks();
    let full: Sum = (0..ranks).collect();
    let pieces: BTreeSet<(u32, usize)> = all
        .iter()
        .flat_map(|one| {
            std::iter::once((one.hop.piece.id, one.hop.piece.owner)).chain(one.hop.piece.more.clone())
        })
        .collect();
    for (piece, owner) in pieces {
        let of = |rank: usize| values.get(&(rank, piece)).cloned();
        match plan.operation {
            Operation::AllReduce => {
                (0..ranks).for_each(|rank| assert_eq!(of(rank).as_ref(), Some(&full), "{piece} at {rank}"));
            }
            Operation::ReduceScatter => assert_eq!(of(owner), Some(full.clone()), "{piece} at {owner}"),
            Operation::Reduce => assert_eq!(of(0), Some(full.clone()), "{piece}"),
            Operation::AllGather | Operation::Broadcast => {
                let source = if plan.operation == Operation::Broadcast { 0 } else { owner };
                let others = (0..ranks).filter(|&rank| rank != source);
                others.for_each(|rank| assert_eq!(of(rank), Some(Sum::from([source])), "{piece} at {rank}"));
            }
            Operation::AllToAll => {
                let dst = piece as usize / plan.loops as usize % ranks;
                assert_eq!(of(dst), Some(Sum::from([owner])), "{piece} of {owner} at {dst}");
            }
        }
    }
}

/// Every rank ends with all contributions, in every order that the dependencies allow, with one loop and with many.
#[test]
fn every_rank_ends_with_all_contributions() {
    for (number, (operation, algorithm, servers, gpus, joined)) in CASES.into_iter().enumerate() {
        for size in [100_000, 30 << 20] {
            let team = team(servers, gpus, joined);
            let plan = plan(&team, operation, size, &wanted(algorithm));
            let all = record(&plan);
            for seed in 0..3 {
                let values = execute(&plan, &all, seed + 10 * number as u64);
                check(&plan, &all, &values);
            }
        }
    }
}

/// The same collective has the same messages each time.
#[test]
fn messages_are_the_same_each_time() {
    for (operation, algorithm, servers, gpus, joined) in CASES {
        let made = || {
            let plan = plan(&team(servers, gpus, joined), operation, 1 << 20, &wanted(algorithm));
            let all = record(&plan).into_iter();
            all.map(|one| (one.hop.src, one.hop.dst, one.hop.bytes, one.data, one.slots)).collect::<Vec<_>>()
        };
        assert_eq!(made(), made(), "{operation:?} {algorithm:?}");
    }
}
