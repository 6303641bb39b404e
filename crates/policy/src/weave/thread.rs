//! Path selection: paths whose packets returned in time, once each, oldest first; a random path if there is none. The
//! ring is that of REPS (Bonato et al., arXiv 2407.21625), without its exploring and freezing phases.

use pathweave_units::{PathId, Rng};

use crate::picker::{PathRing, Shares};
use crate::{Egress, PathView};

/// Number of paths kept. In a longer ring the oldest path is outdated, as REPS found (section 3.2).
const ENTRIES: usize = 8;

/// Returns the usable paths, weighted by their number of links: a long path takes capacity from others on each of its
/// links. A path half as long again as the shortest is drawn a fifth as often, a path of twice its links a sixteenth.
/// Powers of 2 to 8 work; with higher ones the mean is better still, and the slowest flow worse.
fn by_length(views: &[PathView]) -> Shares {
    const POWER: u32 = 4;
    let shortest = views.iter().filter_map(|view| view.links).min().unwrap_or(1).max(1);
    let share = |links: u8| {
        let (shortest, links) = (u64::from(shortest).pow(POWER), u64::from(links.max(shortest)).pow(POWER));
        ((shortest << 24) / links).max(1)
    };
    Shares::usable(views, |view| view.links.map(share))
}

#[derive(Clone, Debug)]
pub(super) struct RecycledPaths {
    /// Paths whose packets returned in time.
    ring: PathRing<[PathId; ENTRIES]>,
    /// Next random path. Drawn ahead, so that [`RecycledPaths::next`] does not change the state.
    spray: PathId,
    paths: Shares,
}

impl RecycledPaths {
    pub(super) fn new(paths: u16, rng: &mut Rng) -> Self {
        let paths = Shares::all(paths);
        let spray = paths.draw(rng);
        RecycledPaths { ring: PathRing::new([PathId(0); ENTRIES]), spray, paths }
    }

    /// Returns the path of the next packet: the oldest path in the ring whose NIC port is free, or else a random
    /// path.
    #[inline]
    pub(super) fn next(&self, egress: Egress) -> PathId {
        self.ring.oldest_free(egress).unwrap_or_else(|| self.paths.settle(self.spray, egress))
    }
    /// Returns the number of paths in the ring.
    #[cfg(test)]
    pub(super) fn fresh(&self) -> u8 {
        self.ring.fresh()
    }
    /// Records that the packet of [`RecycledPaths::next`] has left on this path.
    #[inline]
    pub(super) fn sent(&mut self, path: PathId, rng: &mut Rng) {
        if self.ring.take(path).is_none() {
            self.spray = self.paths.draw(rng);
        }
    }
    /// Adds the path of a packet that returned in time to the ring.
    #[inline]
    pub(super) fn came_back_well(&mut self, path: PathId) {
        if self.paths.contains(path) {
            self.ring.push(path);
        }
    }
    /// Replaces a path on which a packet was lost. The path is used again only by chance.
    pub(super) fn on_loss(&mut self, path: PathId, rng: &mut Rng) {
        for kept in self.ring.all_mut() {
            if *kept == path {
                *kept = self.paths.draw(rng);
            }
        }
        if self.spray == path {
            self.spray = self.paths.draw(rng);
        }
    }
    /// Replaces the set of usable paths.
    pub(super) fn on_paths(&mut self, paths: &[PathView], rng: &mut Rng) {
        self.paths = by_length(paths);
        self.spray = self.paths.keep_or_draw(self.spray, rng);
        for kept in self.ring.all_mut() {
            *kept = self.paths.keep_or_draw(*kept, rng);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PortSet;

    #[test]
    fn of_the_paths_kept_the_oldest_whose_port_is_free_is_taken() {
        let mut rng = Rng::for_component(1, "test", 0);
        let mut thread = RecycledPaths::new(64, &mut rng);
        (4..8).for_each(|path| thread.came_back_well(PathId(path)));
        let port = |port: u32| Egress::new(PortSet::first(4), 1 << port);
        for (free, taken) in [(2, 6), (0, 4), (3, 7)] {
            assert_eq!(thread.next(port(free)), PathId(taken));
            thread.sent(PathId(taken), &mut rng);
        }
        let elsewhere = thread.next(port(0));
        assert_eq!(elsewhere.0 % 4, 0, "a random path, at the port that is free");
        thread.sent(elsewhere, &mut rng);
        assert_eq!((thread.next(port(1)), thread.fresh()), (PathId(5), 1));
    }
}
