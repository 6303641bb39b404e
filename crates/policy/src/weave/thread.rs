//! Path selection: paths whose packets returned in time, once each, oldest first; a random path if there is none. The
//! ring is that of REPS (Bonato et al., arXiv 2407.21625), without its exploring and freezing phases.
//!
//! A path from which nothing has returned may be dead, and a lost packet delays its message by the time of loss
//! recovery, however short the message. The flow therefore remembers how often such paths have lost packets, its
//! *distrust*. The higher it is, the more packets take a path that is vouched for instead of a new one. A retransmission
//! takes the path that returned last.
//!
//! While all packets return in time, each takes the path of another, and no new path is tried: links that are back after
//! a fault would stay idle. So one packet of 64 is a *scout* on a random path. Its path enters the ring if the packet
//! returns earlier than usual.

use alloc::boxed::Box;

use pathweave_units::{PathId, Rng};

use super::noise::Arrival;
use crate::picker::{PathRing, Shares};
use crate::{Egress, Memo, PathView};

/// Number of paths kept. In a longer ring the oldest path is outdated, as REPS found (section 3.2).
const ENTRIES: usize = 8;

/// Distrust that a lost packet on a new path adds: new paths are tried half as often. A packet that returns takes back 1.
/// So distrust lasts if more than one new path of 65 is dead, as beside a dead one of 64 spines.
const LOST: u16 = 64;
/// Largest number of halvings. One packet of 64 then still tries a new path, so a link that is back is in use again after
/// 8,000 packets, of which all but 400 took paths that work.
const MOST_HALVINGS: u16 = 6;

/// Number of packets on paths from the ring after which one is a scout. A flow whose paths all lead over one of two spines
/// has half of them on the other after about 2,000 packets.
const SCOUT_AFTER: u8 = 64;

/// Number of paths that a flow with distrust keeps: about as many as it has packets in flight on short paths, so that
/// their shares of the links are as even as those of random paths.
const VOUCHED: usize = 64;

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
    /// Number of places of the ring that hold a path, fresh or not.
    known: u8,
    /// Lost packets on new paths in 64ths of a halving, less those that returned.
    distrust: u16,
    /// Paths for packets that take no new one; only while there is distrust.
    vouched: Option<Box<Vouched>>,
    /// Number of packets on paths from the ring since the last scout. At [`SCOUT_AFTER`] the next random path is a scout's.
    reused: u8,
}

/// Different paths whose packets returned in time, and on which none was late or lost since. If the paths in the ring
/// were used again instead, each packet that returns would bring its path once more, and few different ones would be
/// left.
#[derive(Clone, Debug)]
struct Vouched {
    paths: [PathId; VOUCHED],
    len: u8,
    /// Place that the next path takes if there is no room.
    oldest: u8,
}

impl Default for Vouched {
    fn default() -> Self {
        Vouched { paths: [PathId(0); VOUCHED], len: 0, oldest: 0 }
    }
}

impl Vouched {
    fn place(&self, path: PathId) -> Option<usize> {
        self.paths[..usize::from(self.len)].iter().position(|known| *known == path)
    }
    fn add(&mut self, path: PathId) {
        if self.place(path).is_some() {
            return;
        }
        if usize::from(self.len) < VOUCHED {
            self.paths[usize::from(self.len)] = path;
            self.len += 1;
        } else {
            self.paths[usize::from(self.oldest)] = path;
            self.oldest = ((usize::from(self.oldest) + 1) % VOUCHED) as u8;
        }
    }
    fn remove(&mut self, path: PathId) {
        if let Some(place) = self.place(path) {
            self.len -= 1;
            self.paths[place] = self.paths[usize::from(self.len)];
        }
    }
    fn draw(&self, rng: &mut Rng) -> Option<PathId> {
        (self.len > 0).then(|| self.paths[rng.below(u32::from(self.len)) as usize])
    }
}

/// A loss of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// Nothing has come back. The path may be dead.
    Silent,
    /// A queue was full. The path works.
    Trimmed,
}

/// State of a path before a packet takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// A packet on it returned in time, and none was lost since.
    Known,
    /// Nothing is known of it any more.
    New,
    /// A random path, taken instead of one from the ring.
    Scouted,
}

impl Standing {
    /// Returns the memo of a packet on such a path.
    pub(super) const fn memo(self) -> Memo {
        Memo(match self {
            Standing::Known => 0,
            Standing::New => 1,
            Standing::Scouted => 2,
        })
    }
    pub(super) fn of(memo: Memo) -> Self {
        let known = [Standing::New, Standing::Scouted].into_iter().find(|standing| standing.memo() == memo);
        known.unwrap_or(Standing::Known)
    }
}

impl RecycledPaths {
    pub(super) fn new(paths: u16, rng: &mut Rng) -> Self {
        let paths = Shares::all(paths);
        let spray = paths.draw(rng);
        RecycledPaths {
            ring: PathRing::new([PathId(0); ENTRIES]),
            spray,
            paths,
            known: 0,
            distrust: 0,
            vouched: None,
            reused: 0,
        }
    }

    /// Returns the path of the next packet: that of a scout that is due, or the oldest fresh path in the ring, if its NIC
    /// port is free, or else a random path.
    #[inline]
    pub(super) fn next(&self, egress: Egress) -> PathId {
        let scout = (self.scout_is_due() && egress.is_free(self.spray)).then_some(self.spray);
        scout
            .or_else(|| self.ring.oldest_free(egress))
            .unwrap_or_else(|| self.paths.settle(self.spray, egress))
    }
    #[inline]
    fn scout_is_due(&self) -> bool {
        self.reused == SCOUT_AFTER
    }
    /// Drops a scout that is due. A flow that has nothing more to send gains nothing by it, and its end may wait for it.
    #[inline]
    pub(super) fn recall_scout(&mut self) {
        if self.scout_is_due() {
            self.reused = 0;
        }
    }
    /// Returns the path of a retransmission after this loss: the newest path in the ring whose NIC port is free. After a
    /// trimmed packet it is that of any packet, because queues are full then, and one path would have all
    /// retransmissions.
    pub(super) fn next_again(&self, egress: Egress, loss: Loss) -> PathId {
        let newest = self.newest().find(|path| egress.is_free(*path));
        newest.filter(|_| loss == Loss::Silent).unwrap_or_else(|| self.next(egress))
    }
    /// Iterates over the paths in the ring, fresh or not, newest first.
    fn newest(&self) -> impl Iterator<Item = PathId> {
        let head = usize::from(self.ring.head());
        (1..=usize::from(self.known)).map(move |age| self.ring.at((head + ENTRIES - age) % ENTRIES))
    }
    /// Returns the number of paths in the ring.
    #[cfg(test)]
    pub(super) fn fresh(&self) -> u8 {
        self.ring.fresh()
    }
    #[cfg(test)]
    pub(super) fn distrust(&self) -> u16 {
        self.distrust
    }
    /// Records that a packet has left on this path. Returns what was known of the path before.
    #[inline]
    pub(super) fn sent(&mut self, path: PathId, rng: &mut Rng) -> Standing {
        if self.scout_is_due() && self.spray == path {
            self.reused = 0;
            self.draw(rng);
            return Standing::Scouted;
        }
        if self.ring.take(path).is_some() {
            self.reused = (self.reused + 1).min(SCOUT_AFTER);
            if self.reused == SCOUT_AFTER {
                // Whatever the distrust: otherwise links that are back would hardly be found.
                self.spray = self.paths.draw(rng);
            }
            return Standing::Known;
        }
        let is_vouched = self.vouched.as_ref().is_some_and(|vouched| vouched.place(path).is_some());
        let is_known = is_vouched || self.newest().any(|known| known == path);
        let standing = if is_known { Standing::Known } else { Standing::New };
        self.draw(rng);
        standing
    }
    /// Draws the path for the time when no path in the ring is fresh: a new one, or with distrust mostly one that is
    /// vouched for.
    fn draw(&mut self, rng: &mut Rng) {
        let halvings = self.distrust.div_ceil(LOST);
        let tries_new = halvings == 0 || rng.below(1 << u32::from(halvings)) == 0;
        let vouched = self.vouched.as_ref().filter(|_| !tries_new).and_then(|vouched| vouched.draw(rng));
        self.spray = vouched.unwrap_or_else(|| self.paths.draw(rng));
    }
    /// Records that a packet on this path returned. The path of a scout displaces another only if it is shorter.
    #[inline]
    pub(super) fn came_back(&mut self, path: PathId, was: Standing, arrival: Arrival) {
        match (arrival, was) {
            (Arrival::Late, _) => self.came_back_late(path),
            (Arrival::Usual, Standing::Scouted) => self.vouch_for(path),
            (Arrival::Usual | Arrival::Early, _) => self.came_back_well(path),
        }
        if was != Standing::Known {
            self.new_path_works();
        }
    }
    /// Adds the path of a packet that returned in time to the ring.
    #[inline]
    fn came_back_well(&mut self, path: PathId) {
        if self.paths.contains(path) {
            self.ring.push(path);
            self.known = (self.known + 1).min(ENTRIES as u8);
            self.vouch_for(path);
        }
    }
    /// Adds a path to those that are vouched for, if there is distrust.
    fn vouch_for(&mut self, path: PathId) {
        if let Some(vouched) = &mut self.vouched
            && self.paths.contains(path)
        {
            vouched.add(path);
        }
    }
    /// Records that a packet on this path returned late.
    #[inline]
    fn came_back_late(&mut self, path: PathId) {
        if let Some(vouched) = &mut self.vouched {
            vouched.remove(path);
        }
    }
    /// Records that a packet on a new path has returned.
    #[inline]
    fn new_path_works(&mut self) {
        self.distrust = self.distrust.saturating_sub(1);
        if self.distrust == 0 {
            self.vouched = None;
        }
    }
    /// Records that a packet on a new path was lost.
    fn new_path_lost(&mut self) {
        self.distrust = (self.distrust + LOST).min(MOST_HALVINGS * LOST);
        if self.vouched.is_none() {
            let mut vouched = Vouched::default();
            self.newest().for_each(|path| vouched.add(path));
            self.vouched = Some(Box::new(vouched));
        }
    }
    /// Forgets a path on which a packet was lost. The path is used again only by chance.
    pub(super) fn on_loss(&mut self, path: PathId, was: Standing, loss: Loss, rng: &mut Rng) {
        if was != Standing::Known && loss == Loss::Silent {
            self.new_path_lost();
        }
        if let Some(vouched) = &mut self.vouched {
            vouched.remove(path);
        }
        match loss {
            Loss::Silent => self.leave_to_newest(path),
            Loss::Trimmed => {
                let kept = self.ring.all_mut().iter_mut().filter(|kept| **kept == path);
                kept.for_each(|kept| *kept = self.paths.draw(rng));
            }
        }
        if self.spray == path {
            self.draw(rng);
        }
    }
    /// Gives the places of a path in the ring to the newest other one. A random path might be dead, too.
    fn leave_to_newest(&mut self, path: PathId) {
        let heir = self.newest().find(|known| *known != path);
        match heir {
            Some(heir) => {
                self.ring.all_mut().iter_mut().filter(|kept| **kept == path).for_each(|kept| *kept = heir);
            }
            None => {
                self.ring.restart();
                self.known = 0;
            }
        }
    }
    /// Replaces the set of usable paths.
    pub(super) fn on_paths(&mut self, paths: &[PathView], rng: &mut Rng) {
        self.paths = by_length(paths);
        self.vouched = None;
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

    /// Returns a thread over 1,000 paths that knows paths 0 to 3, none of them fresh.
    fn knowing_four(rng: &mut Rng) -> RecycledPaths {
        let mut thread = RecycledPaths::new(1_000, rng);
        (0..4).for_each(|path| thread.came_back_well(PathId(path)));
        (0..4).for_each(|path| assert_eq!(thread.sent(PathId(path), rng), Standing::Known));
        thread
    }

    /// Returns the number of packets that take a new path.
    fn on_new_paths(thread: &mut RecycledPaths, packets: u32, rng: &mut Rng) -> usize {
        // The one drawn ahead.
        thread.draw(rng);
        (0..packets).filter(|_| thread.sent(thread.next(Egress::ONE), rng) == Standing::New).count()
    }

    /// New paths take 6,374 of 6,400 packets if four of 1,000 are known; a quarter after two losses; a 64th after six or
    /// more; and half until the last is made up for. Standard deviations 5, 35, 10 and 40.
    #[test]
    fn each_loss_on_a_new_path_halves_how_often_they_are_tried() {
        let mut rng = Rng::for_component(1, "test", 0);
        let mut thread = knowing_four(&mut rng);
        assert!(on_new_paths(&mut thread, 6_400, &mut rng) > 6_340);
        (0..2).for_each(|_| thread.new_path_lost());
        let quarter = on_new_paths(&mut thread, 6_400, &mut rng);
        assert!(quarter.abs_diff(1_594) < 140, "{quarter}");
        (0..10).for_each(|_| thread.new_path_lost());
        let least = on_new_paths(&mut thread, 6_400, &mut rng);
        assert!(least.abs_diff(100) < 40, "{least}");
        // Distrust is 6 x 64. The last 64 halve.
        (0..383).for_each(|_| thread.new_path_works());
        let half = on_new_paths(&mut thread, 6_400, &mut rng);
        assert!(half.abs_diff(3_187) < 160, "{half}");
        thread.new_path_works();
        assert!(on_new_paths(&mut thread, 6_400, &mut rng) > 6_340);
    }

    #[test]
    fn without_a_known_path_new_ones_are_tried_however_many_were_lost() {
        let mut rng = Rng::for_component(1, "test", 0);
        let mut thread = RecycledPaths::new(1_000, &mut rng);
        (0..10).for_each(|_| thread.new_path_lost());
        assert_eq!(on_new_paths(&mut thread, 100, &mut rng), 100);
    }

    /// With distrust, 64 different paths are vouched for; of more, the last ones. One that is late or lost is not.
    #[test]
    fn different_paths_are_vouched_for_until_one_is_late_or_lost() {
        let mut rng = Rng::for_component(1, "test", 0);
        let mut thread = knowing_four(&mut rng);
        thread.new_path_lost();
        // Paths 0 to 3 were known. With 4 to 69 twice, 0 to 5 have left.
        (4..70).for_each(|path| (0..2).for_each(|_| thread.came_back_well(PathId(path))));
        let vouched = |thread: &RecycledPaths| {
            let vouched = thread.vouched.as_ref().expect("there is distrust");
            let mut paths: alloc::vec::Vec<u16> =
                vouched.paths[..usize::from(vouched.len)].iter().map(|path| path.0).collect();
            paths.sort_unstable();
            paths
        };
        assert_eq!(vouched(&thread), (6..70).collect::<alloc::vec::Vec<u16>>());
        thread.came_back_late(PathId(6));
        thread.on_loss(PathId(69), Standing::Known, Loss::Silent, &mut rng);
        assert_eq!(vouched(&thread), (7..69).collect::<alloc::vec::Vec<u16>>());
        (0..64).for_each(|_| thread.new_path_works());
        assert!(thread.vouched.is_none(), "no distrust, no memory");
    }

    #[test]
    fn one_packet_of_64_is_a_scout_whose_path_is_kept_if_it_returns_early() {
        let mut rng = Rng::for_component(1, "test", 0);
        let mut thread = RecycledPaths::new(1_000, &mut rng);
        let send = |thread: &mut RecycledPaths, rng: &mut Rng| {
            let path = thread.next(Egress::ONE);
            (path, thread.sent(path, rng))
        };
        let reuse = |thread: &mut RecycledPaths, rng: &mut Rng| {
            (0..64).for_each(|_| {
                thread.came_back(PathId(7), Standing::Known, Arrival::Usual);
                assert_eq!(send(thread, rng), (PathId(7), Standing::Known));
            });
        };
        reuse(&mut thread, &mut rng);
        // The scout leaves the path of the packet that returned in the ring.
        thread.came_back(PathId(7), Standing::Known, Arrival::Usual);
        let (path, standing) = send(&mut thread, &mut rng);
        assert_eq!((standing, thread.fresh()), (Standing::Scouted, 1));
        thread.came_back(path, Standing::Scouted, Arrival::Usual);
        assert_eq!(thread.fresh(), 1, "no shorter than the others");
        thread.came_back(path, Standing::Scouted, Arrival::Late);
        assert_eq!(thread.fresh(), 1);
        thread.came_back(path, Standing::Scouted, Arrival::Early);
        assert_eq!(thread.fresh(), 2);
        assert_eq!([send(&mut thread, &mut rng).0, send(&mut thread, &mut rng).0], [PathId(7), path]);
        // With the two packets above these are 64 since the scout.
        (0..62).for_each(|_| {
            thread.came_back(PathId(7), Standing::Known, Arrival::Usual);
            send(&mut thread, &mut rng);
        });
        thread.recall_scout();
        thread.came_back(PathId(7), Standing::Known, Arrival::Usual);
        assert_eq!(send(&mut thread, &mut rng), (PathId(7), Standing::Known), "nothing more to send");
    }

    #[test]
    fn retransmissions_take_the_path_that_returned_last_and_lost_paths_are_forgotten() {
        let mut rng = Rng::for_component(1, "test", 0);
        let mut thread = RecycledPaths::new(1_000, &mut rng);
        (4..7).for_each(|path| thread.came_back_well(PathId(path)));
        assert_eq!(
            (thread.next(Egress::ONE), thread.next_again(Egress::ONE, Loss::Silent)),
            (PathId(4), PathId(6))
        );
        // No longer fresh, but still the newest.
        (4..7).for_each(|path| assert_eq!(thread.sent(PathId(path), &mut rng), Standing::Known));
        assert_eq!(thread.next_again(Egress::ONE, Loss::Silent), PathId(6));
        thread.on_loss(PathId(6), Standing::Known, Loss::Silent, &mut rng);
        assert_eq!(thread.next_again(Egress::ONE, Loss::Silent), PathId(5));
        thread.on_loss(PathId(5), Standing::Known, Loss::Silent, &mut rng);
        assert_eq!(thread.next_again(Egress::ONE, Loss::Silent), PathId(4));
        // After a trimmed packet, they take a random path as others do.
        let mut trimmed = thread.clone();
        trimmed.on_loss(PathId(5), Standing::Known, Loss::Trimmed, &mut rng);
        assert_eq!(trimmed.next_again(Egress::ONE, Loss::Trimmed), trimmed.next(Egress::ONE));
        thread.on_loss(PathId(4), Standing::Known, Loss::Silent, &mut rng);
        assert_eq!(thread.next_again(Egress::ONE, Loss::Silent), thread.next(Egress::ONE));
        let path = thread.next(Egress::ONE);
        assert_eq!(thread.sent(path, &mut rng), Standing::New);
    }
}
