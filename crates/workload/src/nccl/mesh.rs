//! Rings and paths over a full mesh: each direction of each link carries at most one.
//!
//! GPUs but one stand on a circle. A path to and fro across the circle, `i, i + 1, i - 1, i + 2, ...`, and the GPU apart
//! make a ring; turning the path makes further ones without a common link (Walecki). Both directions together are
//! `n - 1` rings of `n` GPUs for odd `n`, which are all links, and `n - 2` for even `n`. No more exist for four and six
//! GPUs (Tillson 1980). Eight have seven rings, in a table.

/// Rings of eight GPUs that use each direction of each link once.
const RINGS_OF_EIGHT: [[usize; 8]; 7] = [
    [0, 5, 6, 3, 7, 2, 1, 4],
    [0, 4, 2, 3, 5, 7, 1, 6],
    [0, 3, 2, 7, 5, 4, 6, 1],
    [0, 7, 6, 2, 4, 1, 5, 3],
    [0, 6, 7, 4, 3, 1, 2, 5],
    [0, 2, 6, 5, 1, 3, 4, 7],
    [0, 1, 7, 3, 6, 4, 5, 2],
];

/// Returns the rings of `gpus` GPUs, each as the order of the GPUs from GPU 0. No two rings send over the same link in the
/// same direction.
pub(super) fn rings(gpus: usize) -> Vec<Vec<usize>> {
    match gpus {
        0..=2 => vec![(0..gpus).collect()],
        8 => RINGS_OF_EIGHT.iter().map(|ring| ring.to_vec()).collect(),
        _ => (0..(gpus - 1) / 2).flat_map(|turn| there_and_back(gpus, turn)).collect(),
    }
}

/// Returns the paths through `gpus` GPUs that no two send over the same link in the same direction. Each begins at another
/// GPU, ends at another, and begins where one ends.
///
/// A ring of one GPU more, which stands for the network, is a path of the others.
pub(super) fn paths(gpus: usize) -> Vec<Vec<usize>> {
    let without_network = |ring: Vec<usize>| ring[1..].iter().map(|gpu| gpu - 1).collect();
    let mut paths: Vec<Vec<usize>> = rings(gpus + 1).into_iter().map(without_network).collect();
    paths.sort_unstable();
    paths
}

/// Returns a ring from GPU 0 to and fro across the circle of the others, and the same ring backwards.
fn there_and_back(gpus: usize, turn: usize) -> [Vec<usize>; 2] {
    let circle = gpus - 1;
    let across = |step: usize| {
        let forwards = if step.is_multiple_of(2) { circle - step / 2 } else { step.div_ceil(2) };
        1 + (turn + forwards) % circle
    };
    let there = std::iter::once(0).chain((0..circle).map(across)).collect();
    let back = std::iter::once(0).chain((0..circle).rev().map(across)).collect();
    [there, back]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Returns the links that walks use, each with its direction. Fails if one is used twice.
    fn links(walks: &[Vec<usize>], closed: bool) -> usize {
        let mut used = BTreeSet::new();
        for walk in walks {
            let mut sorted = walk.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..walk.len()), "{walk:?} passes each GPU once");
            let back = closed.then(|| (walk[walk.len() - 1], walk[0]));
            for link in walk.windows(2).map(|pair| (pair[0], pair[1])).chain(back) {
                assert!(used.insert(link), "{link:?} carries two of {walks:?}");
            }
        }
        used.len()
    }

    /// Seven rings of eight GPUs use all 56 directions of links. Four GPUs have two rings, and six have four.
    #[test]
    fn rings_share_no_link() {
        let expected = [(2, 1), (3, 2), (4, 2), (5, 4), (6, 4), (7, 6), (8, 7), (9, 8), (16, 14)];
        for (gpus, count) in expected {
            let rings = rings(gpus);
            assert_eq!(rings.len(), count, "{gpus} GPUs");
            assert_eq!(links(&rings, true), gpus * count, "{gpus} GPUs");
            assert!(rings.iter().all(|ring| ring[0] == 0), "{rings:?}");
        }
    }

    /// Counts the rings from `first` on that `n` GPUs can have at most, by trying all.
    fn most(all: &[u64], first: usize, used: u64) -> usize {
        let rest = (first..all.len()).filter(|&at| all[at] & used == 0);
        rest.map(|at| 1 + most(all, at + 1, used | all[at])).max().unwrap_or(0)
    }

    /// Returns all rings of GPUs as sets of links, a bit each.
    fn all_rings(gpus: usize) -> Vec<u64> {
        fn extend(walk: &mut Vec<usize>, gpus: usize, found: &mut Vec<u64>) {
            if walk.len() == gpus {
                let next = walk.iter().cycle().skip(1);
                found.push(walk.iter().zip(next).fold(0, |bits, (a, b)| bits | 1 << (a * gpus + b)));
                return;
            }
            for gpu in 1..gpus {
                if !walk.contains(&gpu) {
                    walk.push(gpu);
                    extend(walk, gpus, found);
                    walk.pop();
                }
            }
        }
        let mut found = Vec::new();
        extend(&mut vec![0], gpus, &mut found);
        found
    }

    /// Every choice of rings of up to six GPUs has at most as many.
    #[test]
    fn no_more_rings_exist() {
        for gpus in 2..=6 {
            assert_eq!(most(&all_rings(gpus), 0, 0), rings(gpus).len(), "{gpus} GPUs");
        }
    }

    /// With NICs there is a path for each GPU, except for three and five.
    #[test]
    fn paths_share_no_link_and_no_end() {
        for (gpus, count) in [(1, 1), (2, 2), (3, 2), (4, 4), (5, 4), (6, 6), (7, 7), (8, 8)] {
            let paths = paths(gpus);
            assert_eq!((paths.len(), links(&paths, false)), (count, count * (gpus - 1)), "{gpus} GPUs");
            let firsts: BTreeSet<usize> = paths.iter().map(|path| path[0]).collect();
            let lasts: BTreeSet<usize> = paths.iter().map(|path| path[gpus - 1]).collect();
            assert_eq!((firsts.len(), &firsts), (count, &lasts), "{paths:?}");
        }
    }
}
