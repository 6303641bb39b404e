//! Which path: recycled entropies (Bonato et al., "REPS: Recycled Entropy Packet Spraying for Adaptive Load Balancing and
//! Failure Mitigation", arXiv 2407.21625, algorithms 1 and 2).

use pathweave_units::{Duration, PathId, Rng, Time};

use crate::PathView;
use crate::picker::PathSet;

/// Entropies kept: eight are enough (section 3.2 of the paper).
const ENTRIES: usize = 8;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Entry {
    path: PathId,
    /// Came back unmarked and has not been used since.
    fresh: bool,
}

/// The cache of paths that came back unmarked.
#[derive(Clone, Debug)]
pub(super) struct Entropies {
    paths: PathSet,
    ring: [Entry; ENTRIES],
    head: u8,
    /// Entries ever written, at most all.
    filled: u8,
    fresh: u8,
    /// Packets that still explore, at the start and after a failure.
    exploring: u32,
    explore_packets: u32,
    freeze_for: Duration,
    frozen_until: Option<Time>,
    /// A random path, drawn ahead, so that asking changes nothing.
    spray: PathId,
}

impl Entropies {
    pub(super) fn new(paths: u16, explore_packets: u32, freeze_for: Duration, rng: &mut Rng) -> Self {
        let paths = PathSet::all(paths);
        let spray = paths.draw(rng);
        Entropies {
            paths,
            ring: [Entry::default(); ENTRIES],
            head: 0,
            filled: 0,
            fresh: 0,
            exploring: explore_packets,
            explore_packets,
            freeze_for,
            frozen_until: None,
            spray,
        }
    }

    /// Where in the ring the next packet's path is; `None`: it explores.
    #[inline]
    fn source(&self) -> Option<usize> {
        if self.exploring > 0 || self.filled == 0 {
            return None;
        }
        if self.fresh > 0 {
            // The oldest fresh one.
            return Some((usize::from(self.head) + ENTRIES - usize::from(self.fresh)) % ENTRIES);
        }
        // While paths fail, one that once worked is better than a random one.
        self.frozen_until.map(|_| usize::from(self.head) % usize::from(self.filled))
    }
    /// The path of the next packet.
    #[inline]
    pub(super) fn next(&self) -> PathId {
        self.source().map_or(self.spray, |at| self.ring[at].path)
    }
    /// The packet of [`Entropies::next`] has left.
    #[inline]
    pub(super) fn sent(&mut self, rng: &mut Rng) {
        match self.source() {
            None => {
                self.exploring = self.exploring.saturating_sub(1);
                self.spray = self.paths.draw(rng);
            }
            Some(at) if self.fresh > 0 => {
                self.ring[at].fresh = false;
                self.fresh -= 1;
            }
            Some(_) => self.head = (self.head + 1) % ENTRIES as u8,
        }
    }
    /// A packet came back over `path`.
    #[inline]
    pub(super) fn on_ack(&mut self, now: Time, path: PathId, marked: bool) {
        if self.frozen_until.is_some_and(|until| now > until) {
            self.frozen_until = None;
            self.exploring = self.explore_packets;
        }
        if marked || !self.paths.contains(path) {
            return;
        }
        let entry = &mut self.ring[usize::from(self.head)];
        self.fresh += u8::from(!entry.fresh);
        *entry = Entry { path, fresh: true };
        self.head = (self.head + 1) % ENTRIES as u8;
        self.filled = self.filled.max(if self.head == 0 { ENTRIES as u8 } else { self.head });
    }
    /// A timeout: some path has failed. No exploring for a while.
    pub(super) fn on_failure(&mut self, now: Time) {
        if self.frozen_until.is_none() && self.exploring == 0 {
            self.frozen_until = Some(now.saturating_add(self.freeze_for));
        }
    }
    pub(super) fn on_paths(&mut self, paths: &[PathView], rng: &mut Rng) {
        self.paths = PathSet::usable(paths);
        self.spray = self.paths.keep_or_draw(self.spray, rng);
        for entry in &mut self.ring {
            entry.path = self.paths.keep_or_draw(entry.path, rng);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(explore: u32) -> (Entropies, Rng) {
        let mut rng = Rng::for_component(1, "test", 0);
        (Entropies::new(16_384, explore, Duration::from_us(100), &mut rng), rng)
    }

    #[test]
    fn unmarked_paths_are_used_again_once_and_in_order() {
        let (mut cache, mut rng) = cache(2);
        (0..2).for_each(|_| cache.sent(&mut rng));
        for path in [11, 12, 13] {
            cache.on_ack(Time::ZERO, PathId(path), path == 12);
        }
        let mut next = || {
            let path = cache.next();
            cache.sent(&mut rng);
            path.0
        };
        assert_eq!((next(), next()), (11, 13));
        let (a, b, c) = (next(), next(), next());
        assert!(a != b && b != c && ![11, 13].contains(&a)); // random of 16,384
    }

    #[test]
    fn the_newest_eight_are_kept() {
        let (mut cache, mut rng) = cache(0);
        (0..11).for_each(|path| cache.on_ack(Time::ZERO, PathId(path), false));
        for expected in 3..11 {
            assert_eq!(cache.next(), PathId(expected));
            cache.sent(&mut rng);
        }
        assert_eq!(cache.fresh, 0);
    }

    #[test]
    fn after_a_failure_old_paths_go_round_until_the_freeze_ends() {
        let (mut cache, mut rng) = cache(0);
        (0..3).for_each(|path| cache.on_ack(Time::ZERO, PathId(path), false));
        (0..3).for_each(|_| cache.sent(&mut rng));
        cache.on_failure(Time::from_us(1));
        let mut used = [0; 3];
        for _ in 0..30 {
            used[cache.next().index()] += 1;
            cache.sent(&mut rng);
        }
        assert!(used.iter().all(|&count| count > 0), "{used:?}");
        cache.on_ack(Time::from_us(102), PathId(2), true);
        assert_eq!(cache.frozen_until, None);
    }
}
