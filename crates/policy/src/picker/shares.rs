//! Weighted random choice of paths.

use alloc::boxed::Box;
use alloc::vec::Vec;

use pathweave_units::{PathId, Rng};

use super::PathSet;
use crate::{Egress, PathView};

/// The usable paths with the weights by which they are drawn. Takes no heap memory in the usual case.
#[derive(Clone, Debug)]
pub(crate) enum Shares {
    /// Paths 0 to `n - 1`, all of the same weight.
    All(u16),
    /// A list of paths.
    Listed(Box<Listed>),
}

/// A subset of the paths, or paths of different weights.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    paths: PathSet,
    /// Runs of paths of the same weight: a few if the list begins with the shortest paths, none if all weights are
    /// the same.
    runs: Vec<Run>,
    sum: u64,
}

/// Consecutive paths of one weight.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Index of the first path among the usable ones.
    first: u32,
    weight: u64,
    /// Sum of the weights before it.
    before: u64,
}

impl Shares {
    /// Creates paths 0 to `count - 1`, all of the same weight.
    pub(crate) fn all(count: u16) -> Self {
        assert!(count > 0, "a queue pair needs a path");
        Shares::All(count)
    }

    /// Creates the set of the usable ones of `views`, by `weight`: at least 1, at most 2^47, so that no sum
    /// overflows. If the weight of one is unknown, all have the same weight.
    pub(crate) fn usable(views: &[PathView], weight: impl Fn(&PathView) -> Option<u64>) -> Self {
        let paths = PathSet::usable(views);
        let mut runs: Vec<Run> = Vec::new();
        let mut sum = 0;
        for n in 0..paths.len() {
            let id = paths.get(n);
            // Lists of paths are mostly in order.
            let here = views.get(id.index()).filter(|view| view.id == id);
            let view = here.or_else(|| views.iter().find(|view| view.id == id));
            let Some(weight) = view.and_then(&weight) else {
                runs.clear();
                break;
            };
            debug_assert!((1..=1 << 47).contains(&weight), "{weight}");
            if runs.last().is_none_or(|last| last.weight != weight) {
                runs.push(Run { first: n, weight, before: sum });
            }
            sum += weight;
        }
        if runs.len() < 2 {
            if let Some(count) = paths.dense_len() {
                return Shares::All(count);
            }
            runs.clear();
        }
        Shares::Listed(Box::new(Listed { paths, runs, sum }))
    }

    /// Draws a path in proportion to the weights.
    #[inline]
    pub(crate) fn draw(&self, rng: &mut Rng) -> PathId {
        match self {
            Shares::All(count) => PathId(rng.below(u32::from(*count)) as u16),
            Shares::Listed(listed) => listed.draw(rng),
        }
    }

    /// Returns the path, moved to a free NIC port if possible ([`PathSet::move_to_free_port`]).
    #[inline]
    pub(crate) fn settle(&self, path: PathId, egress: Egress) -> PathId {
        match self {
            Shares::All(count) => egress.move_to_free_port(path, |like| like.0 < *count),
            Shares::Listed(listed) => listed.paths.move_to_free_port(path, egress),
        }
    }

    /// Returns true if the path is in the set.
    #[inline]
    pub(crate) fn contains(&self, path: PathId) -> bool {
        match self {
            Shares::All(count) => path.0 < *count,
            Shares::Listed(listed) => listed.paths.contains(path),
        }
    }

    /// Returns `path` if it is usable, or else one drawn by weight.
    pub(crate) fn keep_or_draw(&self, path: PathId, rng: &mut Rng) -> PathId {
        if self.contains(path) { path } else { self.draw(rng) }
    }
}

impl Listed {
    fn draw(&self, rng: &mut Rng) -> PathId {
        if self.runs.is_empty() {
            return self.paths.draw(rng);
        }
        let at = (rng.unit_f64() * self.sum as f64) as u64;
        let run = self.runs[self.runs.partition_point(|run| run.before <= at) - 1];
        let n = run.first + ((at - run.before) / run.weight) as u32;
        // The product above may have been rounded up to the sum.
        self.paths.get(n.min(self.paths.len() - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PathState;
    use std::vec;

    /// Returns paths with these numbers of links; the one at index `down` is down.
    fn views(links: &[u8], down: Option<usize>) -> Vec<PathView> {
        let state = |id| if down == Some(id) { PathState::Down } else { PathState::Up };
        let view = |(id, links): (usize, &u8)| PathView {
            links: Some(*links),
            ..PathView::new(PathId(id as u16), state(id))
        };
        links.iter().enumerate().map(view).collect()
    }

    /// Returns the number of draws of each path.
    fn counts(shares: &Shares, paths: usize, draws: usize) -> Vec<u32> {
        let mut rng = Rng::for_component(1, "qp", 0);
        let mut counts = vec![0; paths];
        (0..draws).for_each(|_| counts[shares.draw(&mut rng).index()] += 1);
        counts
    }

    #[test]
    fn paths_are_drawn_by_weight_in_whatever_order_they_are() {
        for links in [&[4, 4, 2, 2, 2, 8][..], &[2, 4, 2, 8, 4, 2]] {
            let shares = Shares::usable(&views(links, None), |view| Some(8 / u64::from(view.links?)));
            for (count, links) in counts(&shares, 6, 17_000).into_iter().zip(links) {
                // Weights 4, 2 and 1 of 17: 4,000, 2,000 and 1,000; standard deviations 55, 42 and 31.
                let expected = 8_000 / u32::from(*links);
                assert!(count.abs_diff(expected) < 260, "{count} for {links} links");
            }
        }
    }

    #[test]
    fn dead_paths_are_never_drawn() {
        let shares = Shares::usable(&views(&[2, 2, 4, 4], Some(1)), |view| view.links.map(u64::from));
        let counts = counts(&shares, 4, 1_000);
        assert_eq!(counts[1], 0);
        assert!(counts.iter().filter(|count| **count > 0).count() == 3, "{counts:?}");
    }

    #[test]
    fn weights_that_are_equal_or_unknown_take_no_memory() {
        assert!(matches!(Shares::usable(&views(&[4, 4, 4], None), |_| Some(7)), Shares::All(3)));
        let mut some = views(&[2, 4, 8], None);
        some[1].links = None;
        assert!(matches!(Shares::usable(&some, |view| view.links.map(u64::from)), Shares::All(3)));
    }

    #[test]
    fn the_heaviest_weights_do_not_overflow() {
        let links: Vec<u8> = (0..u16::MAX).map(|n| (n % 2) as u8 + 1).collect();
        let shares = Shares::usable(&views(&links, None), |view| Some(u64::from(view.links?) << 46));
        assert_eq!(counts(&shares, links.len(), 100).iter().sum::<u32>(), 100);
    }
}
