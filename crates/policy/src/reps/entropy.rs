//! Path selection with recycled entropies (Bonato et al., "REPS: Recycled Entropy Packet Spraying for Adaptive Load
//! Balancing and Failure Mitigation", arXiv 2407.21625, algorithms 1 and 2).

use pathweave_units::{Duration, PathId, Rng, Time};

use crate::picker::{PathRing, PathSet};
use crate::{Egress, PathView};

/// Number of entropies stored: eight suffice (section 3.2 of the paper).
const ENTRIES: usize = 8;

/// Source of a path.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// A random path.
    Anywhere,
    /// A fresh entry of the ring.
    Fresh,
    /// The ring entry at this index, used before.
    Frozen(usize),
}

/// Cache of the paths that returned unmarked.
#[derive(Clone, Debug)]
pub(super) struct Entropies {
    paths: PathSet,
    ring: PathRing<[PathId; ENTRIES]>,
    /// Number of entries ever written, at most all.
    filled: u8,
    /// Number of packets that still explore, at the start and after a failure.
    exploring: u32,
    explore_packets: u32,
    freeze_for: Duration,
    frozen_until: Option<Time>,
    /// Random path. Drawn ahead, so that reading it does not change the state.
    spray: PathId,
}

impl Entropies {
    pub(super) fn new(paths: u16, explore_packets: u32, freeze_for: Duration, rng: &mut Rng) -> Self {
        let paths = PathSet::all(paths);
        let spray = paths.draw(rng);
        Entropies {
            paths,
            ring: PathRing::new([PathId(0); ENTRIES]),
            filled: 0,
            exploring: explore_packets,
            explore_packets,
            freeze_for,
            frozen_until: None,
            spray,
        }
    }

    /// Returns the source of the next packet's path.
    #[inline]
    fn source(&self) -> Source {
        if self.exploring > 0 || self.filled == 0 {
            return Source::Anywhere;
        }
        if self.ring.fresh() > 0 {
            return Source::Fresh;
        }
        // While paths fail, a path that worked before is better than a random one.
        let frozen = |_| Source::Frozen(usize::from(self.ring.head() % self.filled));
        self.frozen_until.map_or(Source::Anywhere, frozen)
    }
    /// Returns the path of the next packet: the oldest fresh path whose NIC port is free, or else a random path.
    #[inline]
    pub(super) fn next(&self, egress: Egress) -> PathId {
        let path = match self.source() {
            Source::Anywhere => self.spray,
            Source::Frozen(at) => self.ring.at(at),
            Source::Fresh => self.ring.oldest_free(egress).unwrap_or(self.spray),
        };
        self.paths.move_to_free_port(path, egress)
    }
    /// Records that the packet of [`Entropies::next`] has left on this path.
    #[inline]
    pub(super) fn sent(&mut self, path: PathId, rng: &mut Rng) {
        match self.source() {
            Source::Anywhere => {
                self.exploring = self.exploring.saturating_sub(1);
                self.spray = self.paths.draw(rng);
            }
            Source::Fresh => match self.ring.take(path) {
                // The path stays as one that worked before, for use while paths fail.
                Some(place) => self.ring.all_mut()[place] = path,
                None => self.spray = self.paths.draw(rng),
            },
            Source::Frozen(_) => self.ring.skip(),
        }
    }
    /// Processes the acknowledgement of a packet of `path`.
    #[inline]
    pub(super) fn on_ack(&mut self, now: Time, path: PathId, marked: bool) {
        if self.frozen_until.is_some_and(|until| now > until) {
            self.frozen_until = None;
            self.exploring = self.explore_packets;
        }
        if marked || !self.paths.contains(path) {
            return;
        }
        self.filled = self.filled.max(self.ring.head() + 1);
        self.ring.push(path);
    }
    /// Freezes exploration for a while after a timeout: some path has failed.
    pub(super) fn on_failure(&mut self, now: Time) {
        if self.frozen_until.is_none() && self.exploring == 0 {
            self.frozen_until = Some(now.saturating_add(self.freeze_for));
        }
    }
    pub(super) fn on_paths(&mut self, paths: &[PathView], rng: &mut Rng) {
        self.paths = PathSet::usable(paths);
        self.spray = self.paths.keep_or_draw(self.spray, rng);
        for path in self.ring.all_mut() {
            *path = self.paths.keep_or_draw(*path, rng);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PortSet;

    fn cache(explore: u32) -> (Entropies, Rng) {
        let mut rng = Rng::for_component(1, "test", 0);
        (Entropies::new(16_384, explore, Duration::from_us(100), &mut rng), rng)
    }

    #[test]
    fn unmarked_paths_are_used_again_once_and_in_order() {
        let (mut cache, mut rng) = cache(2);
        (0..2).for_each(|_| cache.sent(cache.next(Egress::ONE), &mut rng));
        for path in [11, 12, 13] {
            cache.on_ack(Time::ZERO, PathId(path), path == 12);
        }
        let mut next = || {
            let path = cache.next(Egress::ONE);
            cache.sent(path, &mut rng);
            path.0
        };
        assert_eq!((next(), next()), (11, 13));
        let (a, b, c) = (next(), next(), next());
        assert!(a != b && b != c && ![11, 13].contains(&a)); // random of 16,384
    }

    #[test]
    fn the_oldest_whose_port_is_free_is_taken() {
        let (mut cache, mut rng) = cache(0);
        (4..8).for_each(|path| cache.on_ack(Time::ZERO, PathId(path), false));
        let port = |port: u32| Egress::new(PortSet::first(4), 1 << port);
        for (free, taken) in [(2, 6), (0, 4), (3, 7)] {
            assert_eq!(cache.next(port(free)), PathId(taken));
            cache.sent(PathId(taken), &mut rng);
        }
        // One fresh path of port 1 is left; for other ports a random path is used.
        let elsewhere = cache.next(port(0));
        assert_eq!(elsewhere.0 % 4, 0);
        cache.sent(elsewhere, &mut rng);
        assert_eq!((cache.next(port(1)), cache.ring.fresh()), (PathId(5), 1));
    }

    #[test]
    fn the_newest_eight_are_kept() {
        let (mut cache, mut rng) = cache(0);
        (0..11).for_each(|path| cache.on_ack(Time::ZERO, PathId(path), false));
        for expected in 3..11 {
            assert_eq!(cache.next(Egress::ONE), PathId(expected));
            cache.sent(PathId(expected), &mut rng);
        }
        assert_eq!(cache.ring.fresh(), 0);
    }

    #[test]
    fn after_a_failure_old_paths_go_round_until_the_freeze_ends() {
        let (mut cache, mut rng) = cache(0);
        (0..3).for_each(|path| cache.on_ack(Time::ZERO, PathId(path), false));
        (0..3).for_each(|_| cache.sent(cache.next(Egress::ONE), &mut rng));
        cache.on_failure(Time::from_us(1));
        let mut used = [0; 3];
        for _ in 0..30 {
            let path = cache.next(Egress::ONE);
            used[path.index()] += 1;
            cache.sent(path, &mut rng);
        }
        assert!(used.iter().all(|&count| count > 0), "{used:?}");
        cache.on_ack(Time::from_us(102), PathId(2), true);
        assert_eq!(cache.frozen_until, None);
    }
}
