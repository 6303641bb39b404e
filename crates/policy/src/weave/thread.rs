//! Which path: those that came back well, once each, oldest first; a random one where there is none (the ring of REPS,
//! Bonato et al., arXiv 2407.21625, without its phases of exploring and freezing).
//!
//! Where several packets in a row may take one path, the same holds of these runs: one that came back well is an entry of
//! the ring and is used again, once, with as many packets; a random path is kept for a run.

use pathweave_units::{PathId, Rng};

use crate::PathView;
use crate::picker::Shares;

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
    /// Packets in a row that came back well over each, and that it takes again.
    packets: [u8; ENTRIES],
    head: u8,
    fresh: u8,
    /// Packets in a row that have taken the random path, of its run.
    sprayed: u8,
    /// The next random path, drawn ahead, so that asking changes nothing.
    spray: PathId,
    paths: Shares,
}

impl Thread {
    pub(super) fn new(paths: u16, rng: &mut Rng) -> Self {
        let paths = Shares::all(paths);
        let spray = paths.draw(rng);
        Thread {
            ring: [PathId(0); ENTRIES],
            packets: [0; ENTRIES],
            head: 0,
            fresh: 0,
            sprayed: 0,
            spray,
            paths,
        }
    }

    /// The path of the next packet.
    #[inline]
    pub(super) fn next(&self) -> PathId {
        if self.fresh == 0 { self.spray } else { self.ring[self.oldest()] }
    }
    #[inline]
    fn oldest(&self) -> usize {
        (usize::from(self.head) + ENTRIES - usize::from(self.fresh)) % ENTRIES
    }
    #[inline]
    fn newest(&self) -> usize {
        (usize::from(self.head) + ENTRIES - 1) % ENTRIES
    }
    /// Paths in the ring.
    #[cfg(test)]
    pub(super) fn fresh(&self) -> u8 {
        self.fresh
    }
    /// The packet of [`Thread::next`] has left. `run`: packets in a row that take a random path.
    #[inline]
    pub(super) fn sent(&mut self, run: u8, rng: &mut Rng) {
        if self.fresh > 0 {
            let oldest = self.oldest();
            self.packets[oldest] -= 1;
            self.fresh -= u8::from(self.packets[oldest] == 0);
        } else if self.sprayed + 1 < run {
            self.sprayed += 1;
        } else {
            self.sprayed = 0;
            self.spray = self.paths.draw(rng);
        }
    }
    /// A packet came back over `path`, and not late. `run`: packets in a row that are an entry at most.
    #[inline]
    pub(super) fn came_back_well(&mut self, path: PathId, run: u8) {
        if !self.paths.contains(path) {
            return;
        }
        let newest = self.newest();
        if self.fresh > 0 && self.ring[newest] == path && self.packets[newest] < run {
            self.packets[newest] += 1;
            return;
        }
        self.ring[usize::from(self.head)] = path;
        self.packets[usize::from(self.head)] = 1;
        self.head = (self.head + 1) % ENTRIES as u8;
        self.fresh = (self.fresh + 1).min(ENTRIES as u8);
    }
    /// A packet came back late over `path`, so the run that it ends, of which one answer told, did not come back well.
    #[inline]
    pub(super) fn came_back_badly(&mut self, path: PathId, run: u8) {
        let newest = self.newest();
        if run > 1 && self.fresh > 0 && self.ring[newest] == path {
            self.head = newest as u8;
            self.fresh -= 1;
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
