//! Which pairs of classes of hosts talk.

use std::collections::hash_map::Entry;

use pathweave_units::{HostId, Spread};
use pathweave_workload::MessageGraph;

/// Two classes whose hosts talk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PairOfClasses {
    /// How their messages are spread, as [`of_pairs`] has it.
    pub(crate) spread: Spread,
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// Two of their hosts.
    pub(crate) ends: (HostId, HostId),
}

/// Pairs of classes that talk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    /// Ascending.
    pub(crate) list: Vec<PairOfClasses>,
    /// Where each is in the list. Only looked up, never iterated: its order cannot leak.
    index: foldhash::HashMap<u64, u32>,
}

impl Wanted {
    /// Those of a workload, of whose groups `spread` tells how messages are spread: also those that are not on the
    /// graph, where hosts stand for others.
    pub(crate) fn new(graph: &MessageGraph, class_of: &[u32], spread: &[Spread]) -> Self {
        let mut wanted = Wanted::default();
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

    /// Adds the classes of two hosts. Returns them if they are new.
    fn add(&mut self, class_of: &[u32], spread: Spread, ends: (HostId, HostId)) -> Option<PairOfClasses> {
        let (from, to) = (class_of[ends.0.index()], class_of[ends.1.index()]);
        let spread = of_pairs(spread);
        let Entry::Vacant(new) = self.index.entry(key(spread, (from, to))) else { return None };
        let pair = PairOfClasses { spread, from, to, ends };
        new.insert(self.list.len() as u32);
        self.list.push(pair);
        Some(pair)
    }

    /// Where the pair of two classes is in the list. They talk.
    pub(crate) fn index(&self, spread: Spread, (from, to): (u32, u32)) -> u32 {
        self.index[&key(of_pairs(spread), (from, to))]
    }
}

/// A pair in a number. Classes are of hosts, of which there are fewer than 2^31.
fn key(spread: Spread, (from, to): (u32, u32)) -> u64 {
    u64::from(spread.is_by_capacity()) << 63 | u64::from(from) << 32 | u64::from(to)
}

/// Messages that are spread alike, whether their packets collide or not. Single paths have of this what they need to
/// know: which hops a path has.
fn of_pairs(spread: Spread) -> Spread {
    if spread.is_by_capacity() { Spread::Balanced } else { Spread::Even }
}
