//! Which path: those that came back well, once each, oldest first; a random one where there is none (the ring of REPS,
//! Bonato et al., arXiv 2407.21625, without its phases of exploring and freezing).

use pathweave_units::{PathId, Rng};

use crate::picker::Shares;
use crate::{Egress, PathView};

/// Paths kept: with more the oldest news is too old, as REPS found (section 3.2).
const ENTRIES: usize = 8;

/// The usable paths, by the links that a packet takes: what goes a long way round takes room of others on each of them. A path
/// half as long again as the shortest is drawn a fifth as often, one of twice its links a sixteenth. Powers of 2 to 8 serve:
/// with higher ones the mean is better still, and the slowest flow worse.
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
pub(super) struct Thread {
    /// Paths that came back well and have not been used since: the `fresh` entries before `head`.
    ring: [PathId; ENTRIES],
    head: u8,
    fresh: u8,
    /// The next random path, drawn ahead, so that asking changes nothing.
    spray: PathId,
    paths: Shares,
}

impl Thread {
    pub(super) fn new(paths: u16, rng: &mut Rng) -> Self {
        let paths = Shares::all(paths);
        let spray = paths.draw(rng);
        Thread { ring: [PathId(0); ENTRIES], head: 0, fresh: 0, spray, paths }
    }

    /// The path of the next packet: of those kept the oldest whose NIC port is free; without one a random path.
    #[inline]
    pub(super) fn next(&self, egress: Egress) -> PathId {
        let kept = self.kept().map(|at| self.ring[at]).find(|path| egress.is_free(*path));
        kept.unwrap_or_else(|| self.paths.settle(self.spray, egress))
    }
    /// Places in the ring of the paths kept, oldest first.
    #[inline]
    fn kept(&self) -> impl Iterator<Item = usize> + use<> {
        let first = usize::from(self.head) + ENTRIES - usize::from(self.fresh);
        (0..usize::from(self.fresh)).map(move |age| (first + age) % ENTRIES)
    }
    /// Paths in the ring.
    #[cfg(test)]
    pub(super) fn fresh(&self) -> u8 {
        self.fresh
    }
    /// The packet of [`Thread::next`] has left on this path.
    #[inline]
    pub(super) fn sent(&mut self, path: PathId, rng: &mut Rng) {
        let Some(taken) = self.kept().position(|at| self.ring[at] == path) else {
            self.spray = self.paths.draw(rng);
            return;
        };
        // Those before it are kept.
        let first = usize::from(self.head) + ENTRIES - usize::from(self.fresh);
        for age in (0..taken).rev() {
            self.ring[(first + age + 1) % ENTRIES] = self.ring[(first + age) % ENTRIES];
        }
        self.fresh -= 1;
    }
    /// A packet came back over `path`, and not late.
    #[inline]
    pub(super) fn came_back_well(&mut self, path: PathId) {
        if self.paths.contains(path) {
            self.ring[usize::from(self.head)] = path;
            self.head = (self.head + 1) % ENTRIES as u8;
            self.fresh = (self.fresh + 1).min(ENTRIES as u8);
        }
    }
    /// A packet is lost: its path is not taken again, unless by chance.
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
    /// Only these can be used from now on.
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
        let mut thread = Thread::new(64, &mut rng);
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
