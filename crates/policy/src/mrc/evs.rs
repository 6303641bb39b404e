//! The entropy values (EVs) of a connection and the states they are in.

use alloc::vec::Vec;

use pathweave_units::{Duration, PathId, Rng, Time};

use super::MrcConfig;
use crate::picker::PathSet;
use crate::{Egress, PathView};

/// What is held of an EV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Used in its turn.
    Good,
    /// Passed over when its turn comes, which makes it good again.
    Skip,
    /// Good and not in use: it takes the place of one that goes.
    Backup,
    /// Lost a packet that no trim told of: out of use, and probed.
    AssumedBad,
    /// Somebody who knows says that it is of no use.
    Denied,
}

/// What probes have told of an EV that is assumed to be bad.
#[derive(Clone, Copy, Debug)]
struct Probing {
    path: PathId,
    /// Probes answered in a row.
    good: u8,
    /// The probe that has not been answered.
    asked_at: Option<Time>,
    /// When the next one may leave.
    next_at: Time,
}

/// All EVs, by their numbers, and those in use.
#[derive(Clone, Debug)]
pub(super) struct Evs {
    states: Vec<State>,
    /// In the order of their turns.
    active: Vec<PathId>,
    /// Whose turn it is, in `active`.
    turn: usize,
    /// EVs in use where enough are good; and the least.
    wanted: usize,
    floor: usize,
    planes: u16,
    good_probes: u8,
    probe_every: Duration,
    /// One for each that is assumed to be bad.
    probing: Vec<Probing>,
}

impl Evs {
    /// Of `paths` EVs, the first ones are in use: an EV's plane is its number modulo the number of planes, so that they are
    /// spread evenly.
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

    /// Places in `active`, from that whose turn it is on.
    fn in_turn(&self) -> impl Iterator<Item = usize> {
        let (turn, len) = (self.turn, self.active.len());
        (0..len).map(move |offset| (turn + offset) % len)
    }

    /// The path of the next packet: the first in turn that is not to be passed over and whose NIC port is free; where no port of
    /// those is free, the first of those; where all are to be passed over, the one whose turn it is.
    pub(super) fn next(&self, egress: Egress) -> PathId {
        let good = || {
            let paths = self.in_turn().map(|place| self.active[place]);
            paths.filter(|path| self.state(*path) != State::Skip)
        };
        good().find(|path| egress.is_free(*path)).or_else(|| good().next()).unwrap_or(self.active[self.turn])
    }

    /// A packet has left on this path: the first that was passed over for it is good again.
    pub(super) fn sent(&mut self, path: PathId) {
        let Some(taken) = self.in_turn().find(|place| self.active[*place] == path) else { return };
        let passed = self.in_turn().take_while(|place| *place != taken);
        let returned = passed.chain([taken]).find(|place| self.state(self.active[*place]) == State::Skip);
        if let Some(returned) = returned {
            self.set(self.active[returned], State::Good);
        }
        self.turn = (taken + 1) % self.active.len();
    }

    /// Congestion on the way of a packet, before its last hop. The turn of one that is out of use does not come.
    pub(super) fn congested(&mut self, path: PathId) {
        if let Some(state @ State::Good) = self.states.get_mut(path.index()) {
            *state = State::Skip;
        }
    }

    /// A packet is lost that no trim told of: its EV goes out of use, another takes its place. Where none is left and too few
    /// would be in use it stays, to be passed over once.
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

    /// Takes an EV out of use for a backup; without one, only if more than `least` are in use. Whether it did.
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

    /// A backup, on the same plane if there is one.
    fn backup(&self, path: PathId) -> Option<PathId> {
        let backups =
            || (0..self.states.len() as u16).map(PathId).filter(|path| self.state(*path) == State::Backup);
        backups().find(|other| other.0 % self.planes == path.0 % self.planes).or_else(|| backups().next())
    }

    /// It is of use again: at once where fewer are in use than should be, otherwise in the place of the next one that goes.
    fn put_back(&mut self, path: PathId) {
        let is_wanted = self.active.len() < self.wanted;
        self.set(path, if is_wanted { State::Good } else { State::Backup });
        if is_wanted {
            self.active.push(path);
        }
    }

    /// The EV to probe now.
    pub(super) fn to_probe(&self, now: Time) -> Option<PathId> {
        self.probing.iter().find(|probing| probing.next_at <= now).map(|probing| probing.path)
    }

    /// A probe of it leaves. The one before that is not answered was none.
    pub(super) fn probed(&mut self, now: Time, path: PathId) {
        if let Some(probing) = self.probing.iter_mut().find(|probing| probing.path == path) {
            if probing.asked_at.is_some() {
                probing.good = 0;
            }
            (probing.asked_at, probing.next_at) = (Some(now), now.saturating_add(self.probe_every));
        }
    }

    /// A probe that left at `sent_at` was answered.
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

    /// The set of paths has changed: an EV whose path is down, or not in it, is denied. With all of them down, all are tried.
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

    /// Those denied leave for backups, then for those assumed to be bad, and whatever the floor says: nothing comes through
    /// there.
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

    /// The oracle: marked twice before its turn comes, an EV is passed over once.
    #[test]
    fn marked_twice_it_is_passed_over_once() {
        let mut evs = evs(4, 4, 1, 1);
        evs.congested(PathId(2));
        evs.congested(PathId(2));
        assert_eq!(laps(&mut evs, 8), [0, 1, 3, 0, 1, 2, 3, 0]);
    }

    /// The oracle: of two neighbours that are to be passed over, one packet makes one good again.
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
    fn what_loses_packets_leaves_for_a_backup_of_its_plane() {
        // Planes of even and of odd EVs; 4 to 7 are backups.
        let mut evs = evs(4, 8, 1, 2);
        evs.lost(Time::ZERO, PathId(1));
        assert_eq!(laps(&mut evs, 4), [0, 5, 2, 3]);
        evs.lost(Time::ZERO, PathId(3));
        evs.lost(Time::ZERO, PathId(5));
        // No odd one is left after 7.
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
        // The second one is lost: three more.
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
    fn who_knows_may_deny() {
        let view = |id, state| PathView::new(PathId(id), state);
        let states = |down: &[u16]| -> Vec<PathView> {
            (0..4)
                .map(|id| view(id, if down.contains(&id) { PathState::Down } else { PathState::Up }))
                .collect()
        };
        let mut evs = evs(3, 4, 2, 1);
        // What is not in the set is of as little use as what is down.
        evs.on_paths(&states(&[])[1..]);
        assert_eq!(laps(&mut evs, 3), [3, 1, 2]);
        evs.on_paths(&states(&[]));
        assert_eq!(laps(&mut evs, 3), [3, 1, 2]);
        let mut evs = self::evs(3, 4, 2, 1);
        evs.on_paths(&states(&[1]));
        assert_eq!(laps(&mut evs, 3), [0, 3, 2]);
        // Below the floor, and what was assumed to be bad is better than that.
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
