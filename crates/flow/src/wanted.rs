//! Pairs of host classes that exchange messages.

use std::collections::hash_map::Entry;

use pathweave_units::{HostId, Spread};
use pathweave_workload::MessageGraph;

/// Two classes whose hosts exchange messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PairOfClasses {
    /// Spreading of their messages, reduced by [`of_pairs`].
    pub(crate) spread: Spread,
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// One host of each class.
    pub(crate) ends: (HostId, HostId),
}

/// Pairs of classes that exchange messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClassPairs {
    /// Pairs in ascending order.
    pub(crate) list: Vec<PairOfClasses>,
    /// Index of each pair in the list. Used for lookups only, so that its iteration order has no effect.
    index: foldhash::HashMap<u64, u32>,
}

impl ClassPairs {
    /// Collects the pairs of a workload. `spread` gives the spreading of each group's messages. If hosts represent
    /// others, it includes pairs that are not on the graph.
    pub(crate) fn new(graph: &MessageGraph, class_of: &[u32], spread: &[Spread]) -> Self {
        let mut wanted = ClassPairs::default();
        for message in graph.messages() {
            wanted.add(class_of, spread[message.group.index()], (message.src, message.dst));
        }
        wanted.sort();
        if let Some(folding) = graph.folding() {
            let mut new = wanted.list.clone();
            while let Some(PairOfClasses { spread, ends: (src, dst), .. }) = new.pop() {
                for symmetry in folding.symmetries() {
                    new.extend(wanted.add(class_of, spread, (symmetry.host(src), symmetry.host(dst))));
                }
            }
            wanted.sort();
        }
        for (pair, number) in wanted.list.iter().zip(0..) {
            wanted.index.insert(key(pair.spread, (pair.from, pair.to)), number);
        }
        wanted
    }

    fn sort(&mut self) {
        self.list.sort_unstable_by_key(|pair| key(pair.spread, (pair.from, pair.to)));
    }

    /// Adds the classes of two hosts. Returns them if the pair is new.
    fn add(&mut self, class_of: &[u32], spread: Spread, ends: (HostId, HostId)) -> Option<PairOfClasses> {
        let (from, to) = (class_of[ends.0.index()], class_of[ends.1.index()]);
        let spread = of_pairs(spread);
        let Entry::Vacant(new) = self.index.entry(key(spread, (from, to))) else { return None };
        let pair = PairOfClasses { spread, from, to, ends };
        new.insert(self.list.len() as u32);
        self.list.push(pair);
        Some(pair)
    }

    /// Returns the index of a pair of classes. The pair must be in the list.
    pub(crate) fn index(&self, spread: Spread, (from, to): (u32, u32)) -> u32 {
        self.index[&key(of_pairs(spread), (from, to))]
    }
}

/// Packs a pair into a number. There are fewer than 2^31 hosts, hence classes.
fn key(spread: Spread, (from, to): (u32, u32)) -> u64 {
    u64::from(spread.is_by_capacity()) << 63 | u64::from(from) << 32 | u64::from(to)
}

/// Reduces a spreading to what matters for the fractions on links: even, or by capacity. For single paths it
/// determines the hops.
fn of_pairs(spread: Spread) -> Spread {
    if spread.is_by_capacity() { Spread::Balanced } else { Spread::Even }
}
