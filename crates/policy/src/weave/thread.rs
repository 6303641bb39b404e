//! Path selection: paths whose packets returned in time, once each, oldest first; a random path if there is none. The
//! ring is that of REPS (Bonato et al., arXiv 2407.21625), without its exploring and freezing phases.

use pathweave_units::{PathId, Rng};

use crate::picker::Shares;
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
pub(super) struct PathRing {
    /// Paths whose packets returned in time and that have not been reused since: the `fresh` entries before `head`.
    ring: [PathId; ENTRIES],
    head: u8,
    fresh: u8,
    /// Next random path. Drawn ahead, so that [`PathRing::next`] does not change the state.
    spray: PathId,
    paths: Shares,
}

impl PathRing {
    pub(super) fn new(paths: u16, rng: &mut Rng) -> Self {
        let paths = Shares::all(paths);
        let spray = paths.draw(rng);
        PathRing { ring: [PathId(0); ENTRIES], head: 0, fresh: 0, spray, paths }
    }

    /// Returns the path of the next packet: the oldest path in the ring whose NIC port is free, or else a random
    /// path.
    #[inline]
    pub(super) fn next(&self, egress: Egress) -> PathId {
        let kept = self.kept().map(|at| self.ring[at]).find(|path| egress.is_free(*path));
        kept.unwrap_or_else(|| self.paths.settle(self.spray, egress))
    }
    /// Returns the positions in the ring of the paths kept, oldest first.
    #[inline]
    fn kept(&self) -> impl Iterator<Item = usize> + use<> {
        let first = usize::from(self.head) + ENTRIES - usize::from(self.fresh);
        (0..usize::from(self.fresh)).map(move |age| (first + age) % ENTRIES)
    }
    /// Returns the number of paths in the ring.
    #[cfg(test)]
    pub(super) fn fresh(&self) -> u8 {
        self.fresh
    }
    /// Records that the packet of [`PathRing::next`] has left on this path.
    #[inline]
    pub(super) fn sent(&mut self, path: PathId, rng: &mut Rng) {
        let Some(taken) = self.kept().position(|at| self.ring[at] == path) else {
            self.spray = self.paths.draw(rng);
            return;
        };
        // The older paths are kept.
        let first = usize::from(self.head) + ENTRIES - usize::from(self.fresh);
        for age in (0..taken).rev() {
            self.ring[(first + age + 1) % ENTRIES] = self.ring[(first + age) % ENTRIES];
        }
        self.fresh -= 1;
    }
    /// Adds the path of a packet that returned in time to the ring.
    #[inline]
    pub(super) fn came_back_well(&mut self, path: PathId) {
        if self.paths.contains(path) {
            self.ring[usize::from(self.head)] = path;
            self.head = (self.head + 1) % ENTRIES as u8;
            self.fresh = (self.fresh + 1).min(ENTRIES as u8);
        }
    }
    /// Replaces a path on which a packet was lost. The path is used again only by chance.
    pub(super) fn on_loss(&mut self, path: PathId, rng: &mut Rng) {
        for kept in &mut self.ring {
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
        for kept in &mut self.ring {
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
        let mut thread = PathRing::new(64, &mut rng);
        (4..8).for_each(|path| thread.came_back_well(PathId(path)));
        let port = |port: u32| Egress::new(PortSet::first(4), 1 << port);
        for (free, taken) in [(2, 6), (0, 4), (3, 7)] {
            assert_eq!(thread.next(port(free)), PathId(taken));
            thread.sent(PathId(taken), &mut rng);
        }
        let elsewhere = thread.next(port(0));
        assert_eq!(elsewhere.0 % 4, 0, "a random path, at the port that is free");
        thread.sent(elsewhere, &mut rng);
        assert_eq!((thread.next(port(1)), thread.fresh), (PathId(5), 1));
    }
}
