//! Multipath for real hosts: a window for each path. Between hosts there are few paths, and their links differ in
//! rate. The path of the last timely acknowledgement does not tell there which path is best next. A burst over random
//! paths waits for the slowest one, and a flow whose packets in flight are all on slow paths never leaves them. A
//! window for each path tells how much each of them takes.
//!
//! The window of a path follows that path's round-trip time by the rule of [`Window`](super::window::Window), with a
//! target of its own. A packet takes the least full path, and some packets after it take the same one, because each
//! change of path costs the host a system call.

use alloc::boxed::Box;

use pathweave_units::{PathId, Rng, Time};

use super::window::{DECREASE, LOST, MOST_DECREASE, Window};
use crate::{Egress, PathState, PathView};

/// Queueing delay at which the window of a path stays as it is: in idle round-trip times (hosts' delay included),
/// plus a number of packets. A host that is preempted for less time must not find its paths empty.
const TARGET: f32 = 2.0;
const TARGET_PACKETS: f32 = 2.0;
/// Packets that the flow grows in a round trip without a queue, on all paths together.
const INCREASE: f32 = 8.0;
/// Least growth of a path in a round trip, packets. Paths share the growth of the flow.
const LEAST_INCREASE: f32 = 2.0;
/// Smallest window of a path, packets. A path whose window is w < 1 sends one packet in 1/w of its round trips.
const LEAST: f32 = 1.0 / 16.0;
/// Largest number of paths with a window of their own. Each packet examines all of them, and no window holds as many
/// packets. Of more paths (source ports, which are interchangeable) the first are used.
const MOST_LANES: u16 = 1_024;
/// Gains of a path's average round-trip time, upwards and downwards.
const SLOWER: f32 = 0.25;
const QUICKER: f32 = 0.5;

/// State of a path. Times are in picoseconds, sizes in packets.
#[derive(Clone, Copy, Debug)]
struct PathWindow {
    window: f32,
    in_flight: u32,
    rtt: f32,
    cut_at: Time,
    sent_at: Time,
    state: PathState,
}

impl PathWindow {
    /// Returns the fraction of the window that is full with another packet; `None` if the path accepts none now.
    #[inline]
    fn load(&self, now: Time) -> Option<f32> {
        let load = (self.in_flight as f32 + 1.0) / self.window.max(1.0);
        let is_due =
            self.window >= 1.0 || now.saturating_since(self.sent_at).as_ps() as f32 * self.window >= self.rtt;
        (self.state == PathState::Up && load <= 1.0 && is_due).then_some(load)
    }
}

/// The paths of a flow.
#[derive(Clone, Debug)]
pub(super) struct PathWindows {
    lanes: Box<[PathWindow]>,
    base: f32,
    target: f32,
    first: f32,
    most: f32,
    increase: f32,
    /// Last path taken, number of packets in a row that took it, and largest such number.
    last: u16,
    row: u8,
    most_in_row: u8,
}

impl PathWindows {
    /// Creates the paths. `whole`: the window of the flow, which is divided equally among the paths at first.
    pub(super) fn new(paths: u16, whole: &Window, rng: &mut Rng) -> Self {
        let paths = paths.min(MOST_LANES);
        let count = f32::from(paths);
        let first = (whole.packets / count).max(1.0);
        let lane = PathWindow {
            window: first,
            in_flight: 0,
            rtt: whole.base,
            cut_at: Time::ZERO,
            sent_at: Time::ZERO,
            state: PathState::Up,
        };
        PathWindows {
            lanes: alloc::vec![lane; paths.into()].into_boxed_slice(),
            base: whole.base,
            target: TARGET * whole.base + TARGET_PACKETS * whole.packet(),
            first,
            most: whole.max_packets(),
            increase: (INCREASE / count).max(LEAST_INCREASE),
            last: rng.below(paths.into()) as u16,
            row: 0,
            most_in_row: whole.burst_packets(),
        }
    }

    /// Returns the number of packets that may be in flight on all paths together.
    pub(super) fn window_packets(&self) -> f32 {
        let up = self.lanes.iter().filter(|lane| lane.state == PathState::Up);
        up.map(|lane| lane.window).sum::<f32>().clamp(1.0, self.most)
    }

    /// Returns the path of the next packet; `None` if all paths are full.
    #[inline]
    pub(super) fn next(&self, now: Time, in_flight: u32, egress: Egress) -> Option<PathId> {
        if in_flight as f32 + 1.0 > self.most {
            return None;
        }
        let goes_on = self.row > 0 && self.row < self.most_in_row;
        let last = PathId(self.last);
        if goes_on && egress.is_free(last) && self.lanes[last.index()].load(now).is_some() {
            return Some(last);
        }
        // If no path with a free port accepts a packet, it waits for the port of one that does.
        let found = self.least_full(now, |path| egress.is_free(path));
        let found = found.or_else(|| self.least_full(now, |path| !egress.is_free(path)));
        // With nothing in flight no event would trigger another attempt.
        if found.is_none() && in_flight == 0 { Some(self.quickest()) } else { found }
    }

    /// Returns the least full path; of equal ones the next in turn.
    fn least_full(&self, now: Time, allowed: impl Fn(PathId) -> bool) -> Option<PathId> {
        let (count, next) = (self.lanes.len(), usize::from(self.last) + 1);
        let in_turn = (0..count).map(|offset| PathId(((next + offset) % count) as u16));
        let loads = in_turn
            .filter(|path| allowed(*path))
            .filter_map(|path| Some((self.lanes[path.index()].load(now)?, path)));
        loads.reduce(|least, other| if other.0 < least.0 { other } else { least }).map(|(_, path)| path)
    }

    fn quickest(&self) -> PathId {
        let up = self.lanes.iter().enumerate().filter(|(_, lane)| lane.state == PathState::Up);
        let least = up.min_by(|(_, a), (_, b)| a.rtt.total_cmp(&b.rtt));
        PathId(least.map_or(0, |(index, _)| index) as u16)
    }

    #[inline]
    pub(super) fn sent(&mut self, now: Time, path: PathId) {
        let Some(lane) = self.lanes.get_mut(path.index()) else { return };
        lane.in_flight += 1;
        lane.sent_at = now;
        self.row = if self.last == path.0 { self.row.saturating_add(1) } else { 1 };
        if self.row > self.most_in_row {
            self.row = 1;
        }
        self.last = path.0;
    }

    /// Processes an acknowledgement, with the packet's round-trip time if it was measured.
    #[inline]
    pub(super) fn answered(&mut self, now: Time, path: PathId, rtt: Option<f32>, backlogged: bool) {
        let Some(lane) = self.lanes.get_mut(path.index()) else { return };
        let is_used = backlogged || lane.in_flight as f32 + 1.0 > lane.window;
        lane.in_flight = lane.in_flight.saturating_sub(1);
        let Some(rtt) = rtt else { return };
        self.base = self.base.min(rtt);
        let off = rtt - lane.rtt;
        lane.rtt += off * if off > 0.0 { SLOWER } else { QUICKER };
        let queue = lane.rtt - self.base;
        if queue < self.target {
            // A window that is not used up may be too large already, so it does not grow.
            if is_used {
                lane.window += self.increase * (1.0 - queue / self.target) / lane.window.max(1.0);
            }
        } else if now.saturating_since(lane.cut_at).as_ps() as f32 >= lane.rtt {
            let cut = DECREASE * (queue - self.target) / lane.rtt;
            lane.window *= 1.0 - cut.min(MOST_DECREASE);
            lane.cut_at = now;
        }
        lane.window = lane.window.clamp(LEAST, self.most);
    }

    /// Processes the loss of a packet.
    pub(super) fn lost(&mut self, path: PathId) {
        let Some(lane) = self.lanes.get_mut(path.index()) else { return };
        lane.in_flight = lane.in_flight.saturating_sub(1);
        lane.window = (lane.window - LOST).max(LEAST);
    }

    /// Replaces the set of usable paths. If none is up, all are used. A path that comes up again starts with the
    /// first window.
    pub(super) fn on_paths(&mut self, paths: &[PathView]) {
        let known = self.lanes.len();
        let paths = || paths.iter().filter(|path| path.id.index() < known);
        let none_up = paths().all(|path| path.state != PathState::Up);
        let mut states = alloc::vec![PathState::Down; known];
        for path in paths().filter(|path| none_up || path.state == PathState::Up) {
            states[path.id.index()] = PathState::Up;
        }
        for (lane, state) in self.lanes.iter_mut().zip(states) {
            let is_up = state == PathState::Up;
            if lane.state != state && is_up {
                (lane.window, lane.in_flight) = (self.first, 0);
            }
            lane.state = state;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PolicyEnv;
    use crate::testing::ENV;
    use crate::weave::WeaveConfig;
    use alloc::vec::Vec;

    /// Four paths with a round-trip time of 10 us at 100 Gb/s: a window of 100 packets of 100 ns, 151 at most; a
    /// target of 20.2 us.
    fn lanes() -> PathWindows {
        let env = PolicyEnv { mtu_payload_bytes: 1_186, ..ENV };
        let whole = Window::new(&WeaveConfig::default(), &env);
        PathWindows::new(4, &whole, &mut Rng::for_component(1, "test", 0))
    }

    fn send(lanes: &mut PathWindows, at: Time, most: usize) -> Vec<u16> {
        let mut paths = Vec::new();
        while paths.len() < most {
            let in_flight = lanes.lanes.iter().map(|lane| lane.in_flight).sum();
            let Some(path) = lanes.next(at, in_flight, Egress::ONE) else { break };
            lanes.sent(at, path);
            paths.push(path.0);
        }
        paths
    }

    #[test]
    fn packets_take_the_least_full_path_in_proportion_to_windows() {
        let mut lanes = lanes();
        [40.0, 20.0, 10.0, 2.0]
            .into_iter()
            .zip(&mut lanes.lanes)
            .for_each(|(window, lane)| lane.window = window);
        let sent = send(&mut lanes, Time::ZERO, 1_000);
        let of = |path| sent.iter().filter(|at| **at == path).count();
        assert_eq!([of(0), of(1), of(2), of(3)], [40, 20, 10, 2]);
        // A burst of half the window is divided in the same proportion.
        let mut lanes = self::lanes();
        [40.0, 20.0, 10.0, 2.0]
            .into_iter()
            .zip(&mut lanes.lanes)
            .for_each(|(window, lane)| lane.window = window);
        let sent = send(&mut lanes, Time::ZERO, 36);
        let of = |path| sent.iter().filter(|at| **at == path).count();
        assert_eq!([of(0), of(1), of(2), of(3)], [20, 10, 5, 1]);
    }

    #[test]
    fn a_window_follows_the_round_trip_of_its_path() {
        let mut lanes = lanes();
        send(&mut lanes, Time::ZERO, 1_000);
        // Without a queue the window grows by 2 / 25. On path 1, half of the target: the smoothed round-trip time is
        // 10 + 40.4 / 4.
        lanes.answered(Time::from_us(100), PathId(0), Some(10e6), true);
        assert!((lanes.lanes[0].window - 25.08).abs() < 1e-4, "{:?}", lanes.lanes[0]);
        lanes.answered(Time::from_us(100), PathId(1), Some(50.4e6), true);
        assert!((lanes.lanes[1].window - 25.04).abs() < 1e-4, "{:?}", lanes.lanes[1]);
        // The smoothed round-trip time is 50 us, 19.8 us of it too many, so the window shrinks by 0.8 x 0.396, once a
        // round trip.
        for _ in 0..2 {
            lanes.lanes[2].rtt = 50e6;
            lanes.answered(Time::from_us(100), PathId(2), Some(50e6), true);
            assert!(
                (lanes.lanes[2].window - 25.0 * (1.0 - 0.8 * 0.396)).abs() < 1e-3,
                "{:?}",
                lanes.lanes[2]
            );
        }
        lanes.lost(PathId(3));
        assert_eq!((lanes.lanes[3].window, lanes.lanes[3].in_flight), (24.0, 24));
    }

    #[test]
    fn a_path_of_less_than_a_packet_is_used_now_and_then() {
        let mut lanes = lanes();
        lanes.lanes.iter_mut().for_each(|lane| lane.window = 0.5);
        // With a round-trip time of 10 us each path sends one packet in 20 us.
        assert_eq!(send(&mut lanes, Time::from_us(20), 9).len(), 4);
        for path in 0..4 {
            lanes.lanes[path].in_flight = 0;
        }
        assert!(lanes.next(Time::from_us(39), 1, Egress::ONE).is_none());
        assert!(lanes.next(Time::from_us(40), 1, Egress::ONE).is_some());
        // With nothing in flight a packet leaves at once.
        assert!(lanes.next(Time::from_us(21), 0, Egress::ONE).is_some());
    }

    #[test]
    fn dead_paths_are_left_and_begin_anew_when_they_are_back() {
        let mut lanes = lanes();
        let views = |down: &[u16]| -> Vec<PathView> {
            let state = |id| if down.contains(&id) { PathState::Down } else { PathState::Up };
            (0..4).map(|id| PathView::new(PathId(id), state(id))).collect()
        };
        send(&mut lanes, Time::ZERO, 8);
        lanes.on_paths(&views(&[1, 3]));
        let sent = send(&mut lanes, Time::ZERO, 1_000);
        assert!(sent.iter().all(|path| [0, 2].contains(path)) && sent.len() == 46, "{sent:?}");
        lanes.on_paths(&views(&[3]));
        assert_eq!(send(&mut lanes, Time::ZERO, 1_000), [1; 25]);
        // With all paths down any may be alive; the others are full.
        lanes.on_paths(&views(&[0, 1, 2, 3]));
        assert_eq!(send(&mut lanes, Time::ZERO, 1_000), [3; 25]);
    }

    #[test]
    fn of_many_source_ports_the_first_are_used() {
        let whole = {
            let env = PolicyEnv { mtu_payload_bytes: 1_186, paths: 16_384, ..ENV };
            Window::new(&WeaveConfig::default(), &env)
        };
        let mut many = PathWindows::new(16_384, &whole, &mut Rng::for_component(1, "test", 0));
        assert_eq!(many.lanes.len(), 1_024);
        let all: Vec<PathView> = (0..16_384).map(|id| PathView::new(PathId(id), PathState::Up)).collect();
        many.on_paths(&all);
        // The whole window leaves, one packet a path.
        let sent = send(&mut many, Time::ZERO, 1_000);
        assert_eq!(sent.len(), 151);
        assert!(sent.iter().all(|path| *path < 1_024));
        // Acknowledgements over a path without a window change nothing.
        many.answered(Time::from_us(10), PathId(9_000), Some(10e6), true);
    }

    #[test]
    fn a_path_keeps_as_much_as_its_documentation_says() {
        assert_eq!(size_of::<PathWindow>(), 32);
    }

    #[test]
    fn packets_in_a_row_keep_to_a_path() {
        let mut lanes = lanes();
        lanes.most_in_row = 4;
        let sent = send(&mut lanes, Time::ZERO, 32);
        assert!(sent.chunks(4).all(|row| row.iter().all(|path| *path == row[0])), "{sent:?}");
        assert!(
            sent.chunks(4).take(4).map(|row| row[0]).collect::<alloc::collections::BTreeSet<_>>().len() == 4
        );
    }
}
