//! ACK clocking on the acknowledgement's own path without state per path, shared by MP-RDMA and UDMP.

use pathweave_units::{PathId, Rng};

use crate::picker::PathSet;
use crate::{Egress, PathView};

/// Entries of the queue of releases. Eight suffice for the round-robin of a NIC port: a single queue pair on a port
/// drains its releases as fast as acknowledgements arrive.
const ENTRIES: usize = 8;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Release {
    path: PathId,
    packets: u16,
}

/// Packets that acknowledgements have released and that have not left yet. Each takes the path of its
/// acknowledgement, except the few that explore another.
///
/// The queue is short. While it is full an acknowledgement releases nothing: the queue pair has packets to send
/// anyway. Unused releases stay in the pool or the window for a later acknowledgement, whose path is more recent.
/// This happens when several queue pairs share a NIC port, and keeps them from hoarding grants.
#[derive(Clone, Debug)]
pub struct AckClock {
    paths: PathSet,
    /// Probability that a released packet explores a random path.
    explore: f64,
    ring: [Release; ENTRIES],
    head: u8,
    len: u8,
    pending: u16,
    /// Random path. Drawn ahead, so that reading it does not change the state.
    spray: PathId,
}

impl AckClock {
    /// Creates an empty clock. `explore`: probability that a packet takes a random path instead of the
    /// acknowledgement's.
    pub fn new(paths: u16, explore: f64, rng: &mut Rng) -> Self {
        let paths = PathSet::all(paths);
        let spray = paths.draw(rng);
        AckClock { paths, explore, ring: [Release::default(); ENTRIES], head: 0, len: 0, pending: 0, spray }
    }
    /// Returns the number of packets released and not yet sent.
    #[inline]
    pub fn pending(&self) -> u32 {
        u32::from(self.pending)
    }
    /// Returns the path of the next released packet: the oldest release whose NIC port is free. If no such port is
    /// free, the oldest release moves to the equivalent path at a free port ([`PathSet::move_to_free_port`]).
    #[inline]
    pub fn next(&self, egress: Egress) -> Option<PathId> {
        let oldest = (self.pending > 0).then(|| self.ring[usize::from(self.head)].path)?;
        if egress.is_free(oldest) {
            return Some(oldest);
        }
        let free = self.released().map(|at| self.ring[at].path).find(|path| egress.is_free(*path));
        Some(free.unwrap_or_else(|| self.move_to_free_port(oldest, egress)))
    }
    /// Returns the positions in the ring of the releases, oldest first.
    fn released(&self) -> impl Iterator<Item = usize> + use<> {
        let (head, len) = (usize::from(self.head), usize::from(self.len));
        (0..len).map(move |age| (head + age) % ENTRIES)
    }
    /// Returns the path of the next packet that may take any path.
    #[inline]
    pub fn random_path(&self) -> PathId {
        self.spray
    }
    /// Records that the packet that took [`AckClock::spray`] has left.
    #[inline]
    pub fn commit_random_path(&mut self, rng: &mut Rng) {
        self.spray = self.paths.draw(rng);
    }
    /// Returns the path, moved to a free NIC port if possible ([`PathSet::move_to_free_port`]).
    #[inline]
    pub fn move_to_free_port(&self, path: PathId, egress: Egress) -> PathId {
        self.paths.move_to_free_port(path, egress)
    }
    /// Excludes `path` from the choice for the next packet that may take any path, if there is another.
    pub fn avoid(&mut self, path: PathId, rng: &mut Rng) {
        self.spray = self.paths.draw_other(path, rng);
    }
    /// Returns true if the path is usable.
    pub fn is_up(&self, path: PathId) -> bool {
        self.paths.contains(path)
    }
    /// Releases `packets` on an acknowledgement that arrived over `path`. Returns the number released.
    #[inline]
    pub fn release(&mut self, path: PathId, packets: u32, rng: &mut Rng) -> u32 {
        let mut taken = 0;
        for _ in 0..packets {
            let to = if rng.bernoulli(self.explore) {
                self.paths.draw(rng)
            } else {
                self.paths.keep_or_draw(path, rng)
            };
            taken += u32::from(self.push(to));
        }
        taken
    }
    /// Releases a packet for a random path. Returns the number released.
    #[inline]
    pub fn release_anywhere(&mut self, rng: &mut Rng) -> u32 {
        let path = self.paths.draw(rng);
        u32::from(self.push(path))
    }
    #[inline]
    fn push(&mut self, path: PathId) -> bool {
        let at = |n: u8| usize::from(n) % ENTRIES;
        if self.len > 0 {
            let last = &mut self.ring[at(self.head + self.len - 1)];
            if last.path == path && last.packets < u16::MAX / 16 {
                last.packets += 1;
                self.pending += 1;
                return true;
            }
        }
        if usize::from(self.len) == ENTRIES {
            return false;
        }
        self.ring[at(self.head + self.len)] = Release { path, packets: 1 };
        self.len += 1;
        self.pending += 1;
        true
    }
    /// Records that the packet of [`AckClock::next`] has left on this path.
    #[inline]
    pub fn pop(&mut self, path: PathId) {
        debug_assert!(self.pending > 0, "a packet left that was not released");
        let head = usize::from(self.head);
        let is_oldest = self.ring[head].path == path;
        let age = if is_oldest { 0 } else { self.age_of(path).unwrap_or(0) };
        let taken = &mut self.ring[(head + age) % ENTRIES];
        taken.packets -= 1;
        self.pending -= 1;
        if taken.packets == 0 {
            // Older releases move up.
            for age in (0..age).rev() {
                self.ring[(head + age + 1) % ENTRIES] = self.ring[(head + age) % ENTRIES];
            }
            self.head = (self.head + 1) % ENTRIES as u8;
            self.len -= 1;
        }
    }
    fn age_of(&self, path: PathId) -> Option<usize> {
        self.released().position(|at| self.ring[at].path == path)
    }
    /// Replaces the set of paths. Releases for a path that is gone take a random one.
    pub fn on_paths(&mut self, paths: &[PathView], rng: &mut Rng) {
        self.paths = PathSet::usable(paths);
        self.spray = self.paths.keep_or_draw(self.spray, rng);
        for release in &mut self.ring {
            release.path = self.paths.keep_or_draw(release.path, rng);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PathState;
    use std::vec::Vec;

    fn rng() -> Rng {
        Rng::for_component(1, "test", 0)
    }
    fn drain(clock: &mut AckClock) -> Vec<u16> {
        let mut paths = Vec::new();
        while let Some(path) = clock.next(Egress::ONE) {
            clock.pop(path);
            paths.push(path.0);
        }
        assert_eq!((clock.pending(), clock.len), (0, 0));
        paths
    }

    #[test]
    fn packets_leave_in_the_order_of_their_acknowledgements() {
        let mut rng = rng();
        let mut clock = AckClock::new(16, 0.0, &mut rng);
        for round in 0..5 {
            assert_eq!(clock.release(PathId(3), 2, &mut rng), 2, "round {round}");
            assert_eq!(clock.release(PathId(5), 1, &mut rng), 1);
            assert_eq!(clock.release(PathId(3), 1, &mut rng), 1);
            assert_eq!(drain(&mut clock), [3, 3, 5, 3]);
        }
    }

    #[test]
    fn a_full_queue_takes_no_more_but_merges() {
        let mut rng = rng();
        let mut clock = AckClock::new(16, 0.0, &mut rng);
        (0..8).for_each(|path| assert_eq!(clock.release(PathId(path), 1, &mut rng), 1));
        assert_eq!(clock.release(PathId(9), 2, &mut rng), 0);
        assert_eq!(clock.release(PathId(7), 2, &mut rng), 2);
        assert_eq!(drain(&mut clock), [0, 1, 2, 3, 4, 5, 6, 7, 7, 7]);
    }

    #[test]
    fn a_share_of_the_packets_explores() {
        let mut rng = rng();
        let mut clock = AckClock::new(16_384, 0.01, &mut rng);
        let mut strayed = 0;
        for _ in 0..10_000 {
            clock.release(PathId(1), 1, &mut rng);
            strayed += drain(&mut clock).iter().filter(|&&path| path != 1).count();
        }
        assert!((50..150).contains(&strayed), "{strayed}"); // 100, standard deviation 10
    }

    #[test]
    fn packets_for_a_path_that_goes_down_take_another() {
        let mut rng = rng();
        let mut clock = AckClock::new(4, 0.0, &mut rng);
        (0..4).for_each(|path| assert_eq!(clock.release(PathId(path), 1, &mut rng), 1));
        let views: Vec<PathView> = (0..4)
            .map(|id| PathView::new(PathId(id), if id == 2 { PathState::Down } else { PathState::Up }))
            .collect();
        clock.on_paths(&views, &mut rng);
        assert!(clock.random_path() != PathId(2));
        clock.release(PathId(2), 1, &mut rng);
        let paths = drain(&mut clock);
        assert!(paths.len() == 5 && !paths.contains(&2), "{paths:?}");
        for _ in 0..50 {
            clock.avoid(PathId(1), &mut rng);
            assert!(![1, 2].contains(&clock.random_path().0));
        }
    }
}
