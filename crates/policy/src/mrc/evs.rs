//! The entropy values (EVs) of a connection and their states.

use alloc::vec::Vec;

use pathweave_units::{Duration, PathId, Rng, Time};

use super::MrcConfig;
use crate::picker::PathSet;
use crate::{Egress, PathView};

/// State of an EV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Used in its turn.
    Good,
    /// Skipped at its next turn, and then good again.
    Skip,
    /// Good and not in use: replaces an EV that goes out of use.
    Backup,
    /// Lost a packet without a trim: out of use, and probed.
    AssumedBad,
    /// Reported unusable by the network.
    Denied,
}

/// Probes of an EV that is assumed bad.
#[derive(Clone, Copy, Debug)]
struct Probing {
    path: PathId,
    /// Number of probes in a row with a reply.
    good: u8,
    /// Send time of the probe that has no reply yet.
    asked_at: Option<Time>,
    /// Time at which the next probe may leave.
    next_at: Time,
}

/// All EVs by number, and those in use.
#[derive(Clone, Debug)]
pub(super) struct Evs {
    states: Vec<State>,
    /// EVs in use, in the order of their turns.
    active: Vec<PathId>,
    /// Index in `active` of the EV whose turn it is.
    turn: usize,
    /// Number of EVs in use if enough are good; and the minimum.
    wanted: usize,
    floor: usize,
    planes: u16,
    good_probes: u8,
    probe_every: Duration,
    /// One entry for each EV that is assumed bad.
    probing: Vec<Probing>,
}

impl Evs {
    /// Creates `paths` EVs, the first of which are in use. The plane of an EV is its number modulo the number of
    /// planes, so EVs in use are spread evenly over the planes.
    pub(super) fn new(config: &MrcConfig, paths: u16, base_rtt: Duration, rng: &mut Rng) -> Self {
        let wanted = config.active_evs.min(paths);
        let state = |path| if path < wanted { State::Good } else { State::Backup };
        Evs {
            states: (0..paths).map(state).collect(),
            active: (0..wanted).map(PathId).collect(),
            turn: rng.below(u32::from(wanted)) as usize,
            wanted: usize::from(wanted),
            floor: usize::from(config.floor_evs.min(wanted)),
            planes: config.planes,
            good_probes: config.good_probes,
            probe_every: Duration::from_ps((base_rtt.as_ps() as f64 * config.probe_rtts) as u64),
            probing: Vec::new(),
        }
    }

    #[inline]
    fn state(&self, path: PathId) -> State {
        self.states[path.index()]
    }

    fn set(&mut self, path: PathId, state: State) {
        self.states[path.index()] = state;
    }

    /// Returns the indices in `active`, starting with the one whose turn it is.
    fn in_turn(&self) -> impl Iterator<Item = usize> {
        let (turn, len) = (self.turn, self.active.len());
        (0..len).map(move |offset| (turn + offset) % len)
    }

    /// Returns the path of the next packet: the first EV in turn that is not to be skipped and whose NIC port is
    /// free. If no such port is free, the first EV that is not to be skipped. If all are to be skipped, the EV whose
    /// turn it is.
    pub(super) fn next(&self, egress: Egress) -> PathId {
        let good = || {
            let paths = self.in_turn().map(|place| self.active[place]);
            paths.filter(|path| self.state(*path) != State::Skip)
        };
        good().find(|path| egress.is_free(*path)).or_else(|| good().next()).unwrap_or(self.active[self.turn])
    }

    /// Records that a packet has left on this path. The first EV that was skipped for it is good again.
    pub(super) fn sent(&mut self, path: PathId) {
        let Some(taken) = self.in_turn().find(|place| self.active[*place] == path) else { return };
        let passed = self.in_turn().take_while(|place| *place != taken);
        let returned = passed.chain([taken]).find(|place| self.state(self.active[*place]) == State::Skip);
        if let Some(returned) = returned {
            self.set(self.active[returned], State::Good);
        }
        self.turn = (taken + 1) % self.active.len();
    }

    /// Marks an EV to be skipped, after congestion before the last hop. Has no effect on an EV that is out of use.
    pub(super) fn congested(&mut self, path: PathId) {
        if let Some(state @ State::Good) = self.states.get_mut(path.index()) {
            *state = State::Skip;
        }
    }

    /// Takes the EV of a packet that was lost without a trim out of use, and replaces it. Without a replacement, and
    /// with too few EVs in use, it stays in use and is skipped once.
    pub(super) fn lost(&mut self, now: Time, path: PathId) {
        match self.states.get(path.index()).copied() {
            Some(State::Good | State::Skip) if !self.replace(path, self.floor) => self.set(path, State::Skip),
            Some(State::Good | State::Skip | State::Backup) => {
                self.set(path, State::AssumedBad);
                self.probing.push(Probing { path, good: 0, asked_at: None, next_at: now });
            }
            _ => {}
        }
    }

    /// Replaces an EV by a backup. Without a backup, removes it if more than `least` are in use. Returns true if it
    /// is out of use.
    fn replace(&mut self, path: PathId, least: usize) -> bool {
        let Some(place) = self.active.iter().position(|&active| active == path) else { return true };
        if let Some(backup) = self.backup(path) {
            self.active[place] = backup;
            self.set(backup, State::Good);
            return true;
        }
        if self.active.len() <= least {
            return false;
        }
        self.active.remove(place);
        self.turn -= usize::from(self.turn > place);
        self.turn %= self.active.len().max(1);
        true
    }

    /// Returns a backup, on the same plane if there is one.
    fn backup(&self, path: PathId) -> Option<PathId> {
        let backups =
            || (0..self.states.len() as u16).map(PathId).filter(|path| self.state(*path) == State::Backup);
        backups().find(|other| other.0 % self.planes == path.0 % self.planes).or_else(|| backups().next())
    }

    /// Makes an EV usable again: in use if fewer are in use than wanted, otherwise as a backup.
    fn put_back(&mut self, path: PathId) {
        let is_wanted = self.active.len() < self.wanted;
        self.set(path, if is_wanted { State::Good } else { State::Backup });
        if is_wanted {
            self.active.push(path);
        }
    }

    /// Returns the EV to probe now.
    pub(super) fn to_probe(&self, now: Time) -> Option<PathId> {
        self.probing.iter().find(|probing| probing.next_at <= now).map(|probing| probing.path)
    }

    /// Records that a probe leaves. A previous probe without reply counts as failed.
    pub(super) fn probed(&mut self, now: Time, path: PathId) {
        if let Some(probing) = self.probing.iter_mut().find(|probing| probing.path == path) {
            if probing.asked_at.is_some() {
                probing.good = 0;
            }
            (probing.asked_at, probing.next_at) = (Some(now), now.saturating_add(self.probe_every));
        }
    }

    /// Processes the reply to the probe that left at `sent_at`.
    pub(super) fn answered(&mut self, path: PathId, sent_at: Time) {
        let is_this = |probing: &Probing| probing.path == path && probing.asked_at == Some(sent_at);
        let Some(place) = self.probing.iter().position(is_this) else { return };
        let probing = &mut self.probing[place];
        (probing.asked_at, probing.good) = (None, probing.good + 1);
        if probing.good >= self.good_probes {
            self.probing.remove(place);
            self.put_back(path);
        }
    }

    /// Replaces the set of usable paths: an EV whose path is down or missing is denied. With all paths down, all are
    /// tried.
    pub(super) fn on_paths(&mut self, paths: &[PathView]) {
        let usable = PathSet::usable(paths);
        for path in (0..self.states.len() as u16).map(PathId) {
            match (usable.contains(path), self.state(path)) {
                (true, State::Denied) => self.put_back(path),
                (false, State::Good | State::Skip | State::Backup | State::AssumedBad) => self.deny(path),
                _ => {}
            }
        }
        self.drop_denied();
    }

    fn deny(&mut self, path: PathId) {
        self.probing.retain(|probing| probing.path != path);
        self.set(path, State::Denied);
    }

    /// Replaces denied EVs by backups, then by an EV that is assumed bad, regardless of the minimum: denied EVs carry
    /// nothing.
    fn drop_denied(&mut self) {
        let is_denied = |path: &PathId| self.state(*path) == State::Denied;
        let denied: Vec<PathId> = self.active.iter().copied().filter(is_denied).collect();
        for path in denied {
            self.replace(path, 0);
        }
        if self.active.is_empty() && !self.probing.is_empty() {
            let path = self.probing.remove(0).path;
            self.put_back(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PathState;

    fn evs(active_evs: u16, paths: u16, floor_evs: u16, planes: u16) -> Evs {
        let config = MrcConfig { active_evs, floor_evs, planes, probe_rtts: 1.0, ..MrcConfig::default() };
        let mut rng = Rng::for_component(1, "test", 0);
        Evs { turn: 0, ..Evs::new(&config, paths, Duration::from_us(10), &mut rng) }
    }
    fn send(evs: &mut Evs) -> u16 {
        let next = evs.next(Egress::ONE);
        evs.sent(next);
        next.0
    }
    fn laps(evs: &mut Evs, packets: usize) -> Vec<u16> {
        (0..packets).map(|_| send(evs)).collect()
    }

    /// Worked example: an EV that is marked twice before its turn is skipped once.
    #[test]
    fn marked_twice_it_is_passed_over_once() {
        let mut evs = evs(4, 4, 1, 1);
        evs.congested(PathId(2));
        evs.congested(PathId(2));
        assert_eq!(laps(&mut evs, 8), [0, 1, 3, 0, 1, 2, 3, 0]);
    }

    /// Worked example: of two adjacent EVs that are to be skipped, each packet makes one good again.
    #[test]
    fn two_neighbours_are_good_again_with_two_packets() {
        let mut evs = evs(4, 4, 1, 1);
        evs.congested(PathId(1));
        evs.congested(PathId(2));
        assert_eq!(laps(&mut evs, 3), [0, 3, 0]);
        assert_eq!((evs.state(PathId(1)), evs.state(PathId(2))), (State::Good, State::Skip));
        assert_eq!(laps(&mut evs, 6), [1, 3, 0, 1, 2, 3]);
    }

    #[test]
    fn with_all_to_be_passed_over_the_first_is_taken() {
        let mut evs = evs(3, 3, 1, 1);
        (0..3).for_each(|path| evs.congested(PathId(path)));
        assert_eq!(laps(&mut evs, 6), [0, 0, 1, 0, 1, 2]);
    }

    #[test]
    fn a_backup_is_not_passed_over() {
        let mut evs = evs(2, 3, 1, 1);
        evs.congested(PathId(2));
        evs.lost(Time::ZERO, PathId(0));
        assert_eq!(laps(&mut evs, 3), [2, 1, 2]);
    }

    #[test]
    fn a_path_that_loses_packets_is_replaced_by_a_backup_of_its_plane() {
        // One plane of even and one of odd EVs; 4 to 7 are backups.
        let mut evs = evs(4, 8, 1, 2);
        evs.lost(Time::ZERO, PathId(1));
        assert_eq!(laps(&mut evs, 4), [0, 5, 2, 3]);
        evs.lost(Time::ZERO, PathId(3));
        evs.lost(Time::ZERO, PathId(5));
        // No odd backup is left after 7.
        assert_eq!(laps(&mut evs, 4), [0, 4, 2, 7]);
    }

    #[test]
    fn a_floor_of_evs_stays_in_use() {
        let mut evs = evs(3, 3, 2, 1);
        (0..3).for_each(|path| evs.lost(Time::ZERO, PathId(path)));
        assert_eq!(evs.active, [PathId(1), PathId(2)]);
        assert_eq!((evs.state(PathId(2)), evs.probing.len()), (State::Skip, 1));
    }

    #[test]
    fn three_probes_in_a_row_bring_it_back() {
        let mut evs = evs(2, 2, 1, 1);
        evs.lost(Time::from_us(5), PathId(1));
        let mut at = Time::from_us(5);
        // The second probe is lost: three more are needed.
        for n in 0..5 {
            assert_eq!(evs.to_probe(at), Some(PathId(1)), "{n}");
            evs.probed(at, PathId(1));
            assert_eq!(evs.to_probe(at + Duration::from_us(9)), None);
            assert_eq!(laps(&mut evs, 2), [0, 0]);
            if n != 1 {
                evs.answered(PathId(1), Time::from_us(1));
                evs.answered(PathId(1), at);
                evs.answered(PathId(1), at);
            }
            at += Duration::from_us(10);
        }
        assert_eq!((evs.state(PathId(1)), evs.probing.len(), evs.to_probe(at)), (State::Good, 0, None));
        assert_eq!(laps(&mut evs, 2), [0, 1]);
    }

    #[test]
    fn a_known_dead_path_is_not_used() {
        let view = |id, state| PathView::new(PathId(id), state);
        let states = |down: &[u16]| -> Vec<PathView> {
            (0..4)
                .map(|id| view(id, if down.contains(&id) { PathState::Down } else { PathState::Up }))
                .collect()
        };
        let mut evs = evs(3, 4, 2, 1);
        // A path that is missing from the set counts as down.
        evs.on_paths(&states(&[])[1..]);
        assert_eq!(laps(&mut evs, 3), [3, 1, 2]);
        evs.on_paths(&states(&[]));
        assert_eq!(laps(&mut evs, 3), [3, 1, 2]);
        let mut evs = self::evs(3, 4, 2, 1);
        evs.on_paths(&states(&[1]));
        assert_eq!(laps(&mut evs, 3), [0, 3, 2]);
        // Below the minimum; an EV that is assumed bad is better than a denied one.
        evs.lost(Time::ZERO, PathId(2));
        evs.on_paths(&states(&[0, 1, 3]));
        assert_eq!(laps(&mut evs, 2), [2, 2]);
        evs.on_paths(&states(&[0, 1, 2, 3]));
        assert_eq!(evs.active.len(), 3, "all are tried");
        evs.on_paths(&states(&[]));
        let in_state = |wanted| evs.states.iter().filter(|state| **state == wanted).count();
        assert_eq!((in_state(State::Good), in_state(State::Backup)), (3, 1));
    }
}
