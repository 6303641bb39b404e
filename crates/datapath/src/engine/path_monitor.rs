//! Per-path statistics and detection of dead paths: a wrapper around the scheme's policy that counts the packets of
//! each path and reports dead paths to the scheme.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pathweave_policy::{
    AnyPolicy, ControlFeedback, Feedback, FeedbackKind, Grant, Memo, PathState, PathView, Policy, PolicyCx,
    QueuePairId, SendRequest, Sent,
};
use pathweave_units::{Duration, PathId, Rate, Time};
use pathweave_wire::Measurement;

#[cfg(test)]
use super::fault_injection;
use super::fit::RttCheck;

/// A path is dead if packets that left later than its first unanswered one have been answered on other paths. "Later"
/// means by more than its round-trip time and this many deviations. Times of departure are compared, not times of
/// answers, so that a host that stops for a while kills no path: packets that left during the stop are not answered
/// before those that left earlier.
const DEAD_AFTER_DEVIATIONS: u64 = 4;
/// Smallest difference in departure time at which a path is declared dead.
const DEAD_AFTER_LEAST: Duration = Duration::from_ms(2);
/// Number of unanswered packets from which this difference applies. With fewer it doubles, since a single loss does
/// not mean that the path is dead. A path that is declared dead by mistake is up again with the first answered probe.
const DEAD_AFTER_PACKETS: u32 = 3;
/// Interval between two checks for dead paths.
const LOOK_EVERY: Duration = Duration::from_us(500);

/// Set when a path dies, so that dead paths are probed.
pub(crate) type Deaths = Arc<AtomicBool>;

/// Statistics and state of a path of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathRecord {
    /// Data packets sent, retransmissions included.
    pub(crate) packets: u64,
    /// Payload of these packets, in bytes.
    pub(crate) payload_bytes: u64,
    /// Number of these packets that were declared lost.
    pub(crate) lost: u64,
    /// Number of packets acknowledged as marked Congestion Experienced.
    pub(crate) marked: u64,
    /// Smoothed round-trip time (gain 1/8); zero before the first measurement.
    pub(crate) rtt: Duration,
    /// Smoothed deviation of single measurements from it (gain 1/4).
    deviation: Duration,
    /// Shortest measured round-trip time; [`Duration::MAX`] before the first measurement.
    pub(crate) shortest_rtt: Duration,
    /// State of the path: whether it carries packets.
    pub(crate) state: PathState,
    /// Packets sent since the last answer on this path.
    unanswered: u32,
    /// Time at which the first of them left.
    silent_since: Time,
}

impl PathRecord {
    const NEW: PathRecord = PathRecord {
        packets: 0,
        payload_bytes: 0,
        lost: 0,
        marked: 0,
        rtt: Duration::ZERO,
        deviation: Duration::ZERO,
        shortest_rtt: Duration::MAX,
        state: PathState::Up,
        unanswered: 0,
        silent_since: Time::ZERO,
    };

    fn measured(&mut self, rtt: Duration) {
        self.shortest_rtt = self.shortest_rtt.min(rtt);
        let (old, new) = (self.rtt.as_ps(), rtt.as_ps());
        if old == 0 {
            (self.rtt, self.deviation) = (rtt, Duration::from_ps(new / 2));
            return;
        }
        let deviation = self.deviation.as_ps();
        self.deviation = Duration::from_ps(deviation - deviation / 4 + old.abs_diff(new) / 4);
        self.rtt = Duration::from_ps(old - old / 8 + new / 8);
    }

    /// Returns the largest time by which a packet on another path may leave later and still be answered earlier.
    fn silence_threshold(&self, usual: Duration) -> Duration {
        // A path that has never answered is assumed to be like the average of all paths.
        let (rtt, deviation) = if self.rtt == Duration::ZERO {
            (usual, Duration::from_ps(usual.as_ps() / 2))
        } else {
            (self.rtt, self.deviation)
        };
        let patience = rtt.as_ps().saturating_add(DEAD_AFTER_DEVIATIONS.saturating_mul(deviation.as_ps()));
        let factor = if self.unanswered >= DEAD_AFTER_PACKETS { 1 } else { 2 };
        Duration::from_ps(factor * patience.max(DEAD_AFTER_LEAST.as_ps()))
    }

    /// Returns true if the path should have answered by now, given that a packet that left at `answered` has been
    /// answered.
    fn is_silent(&self, answered: Time, usual: Duration) -> bool {
        self.unanswered > 0 && answered > self.silent_since.saturating_add(self.silence_threshold(usual))
    }
}

/// Probe results of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PathProbe {
    /// Number of probes answered.
    pub(crate) replies: u64,
    /// Round-trip time of the latest answered probe.
    pub(crate) latest: Duration,
    /// Shortest round-trip time of all answered probes.
    pub(crate) shortest: Duration,
    /// Time at which the newest answered probe left.
    newest: Time,
}

impl PathProbe {
    /// Records an answer to a probe that left at `sent_at`. An answer that is no newer than the last is a duplicate
    /// or was overtaken, and contains no information about the path's present state.
    pub(crate) fn note(&mut self, now: Time, sent_at: Time) -> Verdict {
        if self.replies > 0 && sent_at <= self.newest {
            return Verdict::Old;
        }
        let rtt = now.saturating_since(sent_at);
        self.replies += 1;
        (self.latest, self.newest) = (rtt, sent_at);
        self.shortest = if self.replies == 1 { rtt } else { self.shortest.min(rtt) };
        Verdict::Lives
    }
}

/// Meaning of a probe's answer for its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The path worked when the newest probe so far left.
    Lives,
    /// The answer contains no new information.
    Old,
}

/// A scheme's policy with per-path monitoring.
pub(crate) struct MonitoredPolicy {
    inner: AnyPolicy,
    /// Lower bound on the round-trip times given to the scheme. The shortest round trip that a software host
    /// occasionally achieves is not representative, and schemes measure everything in units of the shortest.
    least_rtt: Duration,
    paths: Box<[PathRecord]>,
    /// Smoothed round-trip time over all paths.
    rtt: Duration,
    /// Time of the next check for dead paths.
    next_look: Time,
    /// Time of the last acknowledgement on any path.
    heard: Time,
    /// Latest departure time of a packet that has been answered.
    answered: Time,
    dead: u16,
    deaths: Deaths,
    /// Queue pair to which the policy belongs, set when it opens.
    member: Option<QueuePairId>,
    /// Set while the policy may be built for longer round trips than are measured.
    fit: Option<Box<RttCheck>>,
    /// True if the policy is to be rebuilt as soon as nothing is in flight.
    remakes: bool,
    /// Bug injected by a test.
    #[cfg(test)]
    bomb: fault_injection::Bomb,
}

impl MonitoredPolicy {
    pub(crate) fn new(inner: AnyPolicy, paths: u16, least_rtt: Duration, deaths: Deaths) -> Self {
        let paths = vec![PathRecord::NEW; usize::from(paths)].into_boxed_slice();
        MonitoredPolicy {
            inner,
            least_rtt,
            paths,
            rtt: Duration::ZERO,
            next_look: Time::ZERO,
            heard: Time::ZERO,
            answered: Time::ZERO,
            dead: 0,
            deaths,
            member: None,
            fit: None,
            remakes: false,
            #[cfg(test)]
            bomb: fault_injection::Bomb::default(),
        }
    }

    /// Adds a comparison that lets the policy be rebuilt if round trips prove shorter than assumed.
    pub(crate) fn fitted(self, fit: Option<Box<RttCheck>>) -> Self {
        MonitoredPolicy { fit, ..self }
    }

    /// Rebuilds the policy. Nothing is in flight, so the new policy gets no feedback on packets of the old one.
    #[cold]
    fn remake(&mut self, now: Time, cx: &mut PolicyCx<'_>) {
        self.remakes = false;
        let (Some(fit), Some(member)) = (&mut self.fit, &self.member) else { return };
        self.inner.on_close(cx);
        self.inner = fit.remake();
        self.inner.on_open(now, member, cx);
        if self.dead > 0 {
            self.inner.on_paths(now, &self.views(None), cx);
        }
    }

    pub(crate) fn paths(&self) -> &[PathRecord] {
        &self.paths
    }

    /// Returns the number of paths that are down.
    pub(crate) fn dead(&self) -> u16 {
        self.dead
    }

    /// Returns the paths that are down.
    pub(crate) fn dead_paths(&self) -> Vec<PathId> {
        let records = self.paths.iter().enumerate();
        let down = records.filter(|(_, path)| path.state == PathState::Down);
        down.map(|(index, _)| PathId(index as u16)).collect()
    }

    /// Returns the paths as the scheme sees them, with `changed` in another state.
    pub(crate) fn views(&self, changed: Option<(PathId, PathState)>) -> Vec<PathView> {
        let view = |(index, record): (usize, &PathRecord)| {
            let id = PathId(index as u16);
            let state = changed.filter(|(path, _)| *path == id).map_or(record.state, |(_, state)| state);
            PathView::new(id, state)
        };
        self.paths.iter().enumerate().map(view).collect()
    }

    fn look_for_dead(&mut self, now: Time, cx: &mut PolicyCx<'_>) {
        self.next_look = now + LOOK_EVERY;
        let (mut found, count) = (false, self.paths.len());
        for path in &mut self.paths {
            let last = usize::from(self.dead) + 1 >= count;
            if path.state == PathState::Up && !last && path.is_silent(self.answered, self.rtt) {
                path.state = PathState::Down;
                self.dead += 1;
                found = true;
            }
        }
        if found {
            self.deaths.store(true, Ordering::Relaxed);
            self.inner.on_paths(now, &self.views(None), cx);
        }
    }

    /// Handles a timeout on a path. The path is dead if it has not answered since while others have.
    fn on_path_timeout(&mut self, now: Time, id: PathId, cx: &mut PolicyCx<'_>) {
        let (heard, rtt) = (self.heard, self.rtt);
        let last = usize::from(self.dead) + 1 >= self.paths.len();
        let Some(path) = self.paths.get_mut(id.index()).filter(|path| path.state == PathState::Up) else {
            return;
        };
        if path.unanswered > 0 && heard > path.silent_since + rtt && !last {
            path.state = PathState::Down;
            self.dead += 1;
            self.deaths.store(true, Ordering::Relaxed);
            self.inner.on_paths(now, &self.views(None), cx);
        }
    }
}

impl Policy for MonitoredPolicy {
    pathweave_policy::forwards!({ inner } make_control, window, path_beyond_window);
    fn on_open(&mut self, now: Time, member: &QueuePairId, cx: &mut PolicyCx<'_>) {
        self.member = Some(*member);
        self.inner.on_open(now, member, cx);
    }

    fn on_close(&mut self, cx: &mut PolicyCx<'_>) {
        #[cfg(test)]
        self.bomb.closed();
        self.inner.on_close(cx);
    }

    #[inline]
    fn poll_send(&mut self, now: Time, want: &SendRequest, cx: &mut PolicyCx<'_>) -> Grant {
        #[cfg(test)]
        self.bomb.polled(want.payload_bytes);
        if self.remakes {
            if want.inflight_packets > 0 {
                return Grant::Blocked;
            }
            self.remake(now, cx);
        }
        self.inner.poll_send(now, want, cx)
    }

    #[inline]
    fn on_sent(&mut self, now: Time, sent: &Sent, cx: &mut PolicyCx<'_>) -> Memo {
        #[cfg(test)]
        self.bomb.sent(sent.payload_bytes);
        let path = &mut self.paths[sent.path.index()];
        path.packets += 1;
        path.payload_bytes += u64::from(sent.payload_bytes);
        if path.unanswered == 0 {
            path.silent_since = now;
        }
        path.unanswered += 1;
        self.inner.on_sent(now, sent, cx)
    }

    fn on_copy_sent(&mut self, now: Time, psn: u64, path: PathId, wire_bytes: u32, cx: &mut PolicyCx<'_>) {
        self.paths[path.index()].packets += 1;
        self.inner.on_copy_sent(now, psn, path, wire_bytes, cx);
    }

    #[inline]
    fn on_feedback(&mut self, now: Time, feedback: &Feedback, cx: &mut PolicyCx<'_>) {
        #[cfg(test)]
        self.bomb.heard(feedback);
        let Some(path) = self.paths.get_mut(feedback.path.index()) else { return };
        match feedback.kind {
            FeedbackKind::Ack { timed, marked } => {
                path.unanswered = 0;
                path.marked += u64::from(marked);
                self.heard = now;
                if timed {
                    if let Some(fit) = &mut self.fit {
                        self.remakes |= fit.measured(feedback.rtt);
                    }
                    path.measured(feedback.rtt);
                    let left = Time::from_ps(now.as_ps().saturating_sub(feedback.rtt.as_ps()));
                    self.answered = self.answered.max(left);
                    let (old, new) = (self.rtt.as_ps(), feedback.rtt.as_ps());
                    self.rtt = Duration::from_ps(if old == 0 { new } else { old - old / 8 + new / 8 });
                }
                if path.state == PathState::Down {
                    path.state = PathState::Up;
                    self.dead -= 1;
                    self.inner.on_paths(now, &self.views(None), cx);
                }
                if now >= self.next_look {
                    self.look_for_dead(now, cx);
                }
            }
            FeedbackKind::Lost | FeedbackKind::Trimmed { .. } => path.lost += 1,
            FeedbackKind::Timeout => {
                path.lost += 1;
                self.on_path_timeout(now, feedback.path, cx);
            }
            FeedbackKind::Duplicate { marked } => {
                path.unanswered = 0;
                path.marked += u64::from(marked);
            }
            FeedbackKind::Cnp | FeedbackKind::Late | FeedbackKind::NoticeFlow(_) => {}
            FeedbackKind::PathSample => path.measured(feedback.rtt),
            // Feedback about a part of the path does not measure the path.
            FeedbackKind::EdgeRtt => {}
        }
        if feedback.rtt < self.least_rtt && feedback.rtt > Duration::ZERO {
            self.inner.on_feedback(now, &Feedback { rtt: self.least_rtt, ..*feedback }, cx);
        } else {
            self.inner.on_feedback(now, feedback, cx);
        }
    }

    fn on_control(&mut self, now: Time, feedback: &ControlFeedback, cx: &mut PolicyCx<'_>) {
        let Some(path) = self.paths.get_mut(feedback.path.index()) else { return };
        match (feedback.control.measures(), feedback.control.marked()) {
            (Measurement::Path { .. }, Some(marked)) => {
                path.unanswered = 0;
                path.marked += u64::from(marked);
            }
            (Measurement::Path { .. }, None) => path.measured(feedback.rtt),
            (Measurement::Part { .. } | Measurement::Nothing, _) => {}
        }
        let rtt = if feedback.rtt > Duration::ZERO { feedback.rtt.max(self.least_rtt) } else { feedback.rtt };
        self.inner.on_control(now, &ControlFeedback { rtt, ..*feedback }, cx);
    }

    fn on_paths(&mut self, now: Time, paths: &[PathView], cx: &mut PolicyCx<'_>) {
        if paths.len() < self.paths.len() {
            // The peer has fewer paths.
            self.paths = self.paths[..paths.len()].into();
        }
        for view in paths {
            if let Some(path) = self.paths.get_mut(view.id.index())
                && path.state != view.state
            {
                path.state = view.state;
                path.unanswered = 0;
            }
        }
        self.dead = self.paths.iter().filter(|path| path.state == PathState::Down).count() as u16;
        self.inner.on_paths(now, paths, cx);
    }

    fn on_timer(&mut self, now: Time, cx: &mut PolicyCx<'_>) {
        #[cfg(test)]
        self.bomb.fired();
        self.inner.on_timer(now, cx);
    }

    #[inline]
    fn next_timer(&self) -> Option<Time> {
        #[cfg(test)]
        if let Some(at) = self.bomb.timer() {
            return Some(at);
        }
        self.inner.next_timer()
    }

    fn rate(&self, now: Time) -> Option<Rate> {
        #[cfg(test)]
        self.bomb.asked();
        self.inner.rate(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::DeviceConfig;
    use crate::engine::fit::PolicyInputs;
    use pathweave_policy::Outgoing;
    use pathweave_policy::{ControlClass, Egress, MeasuredSection, PeerKind, PolicyEnv, Shared, find_scheme};
    use pathweave_units::Rng;
    use std::ops::Range;

    const PATHS: u16 = 4;

    fn watched(rng: &mut Rng) -> MonitoredPolicy {
        let env = PolicyEnv {
            line_rate: Rate::from_gbps(10),
            base_rtt: Duration::from_us(50),
            mtu_wire_bytes: 1_500,
            mtu_payload_bytes: 1_344,
            paths: PATHS,
            measured: MeasuredSection::with_rtt(Duration::from_us(50)),
            edge: None,
        };
        let scheme = (find_scheme("rps-nocc").expect("a scheme").make)();
        MonitoredPolicy::new(scheme.policy.build(&env, rng), PATHS, Duration::from_us(50), Deaths::default())
    }

    /// A duplicate answer, or one that was overtaken, neither measures its path nor proves that the path works.
    #[test]
    fn the_newest_answer_counts_once() {
        let mut probe = PathProbe::default();
        let mut note = |now_us, sent_us| {
            let verdict = probe.note(Time::from_us(now_us), Time::from_us(sent_us));
            (verdict, probe.replies, probe.latest)
        };
        assert_eq!(note(300, 100), (Verdict::Lives, 1, Duration::from_us(200)));
        assert_eq!(note(5_000, 100), (Verdict::Old, 1, Duration::from_us(200)));
        assert_eq!(note(5_000, 90), (Verdict::Old, 1, Duration::from_us(200)));
        assert_eq!(note(5_500, 5_400), (Verdict::Lives, 2, Duration::from_us(100)));
    }

    fn sent(path: u16, psn: u64) -> Sent {
        Sent {
            path: PathId(path),
            psn,
            msn: 0,
            payload_bytes: 1_344,
            wire_bytes: 1_500,
            retransmit: false,
            inflight_packets: 1,
        }
    }

    fn back(kind: FeedbackKind, path: u16) -> Feedback {
        Feedback {
            kind,
            path: PathId(path),
            psn: 0,
            memo: Memo::default(),
            wire_bytes: 1_500,
            rtt: Duration::from_us(100),
            one_way_ps: 0,
            inflight_packets: 1,
            backlogged: true,
        }
    }

    /// Each step takes 1 ms and sends a packet on each path; all paths but path 2 answer.
    fn steps(watched: &mut MonitoredPolicy, rng: &mut Rng, range: Range<u64>) {
        for step in range {
            let now = Time::from_us(1_000 * step);
            let mut shared = Shared::new();
            let mut cx = PolicyCx { rng, shared: &mut shared };
            for path in 0..PATHS {
                watched.on_sent(now, &sent(path, step), &mut cx);
            }
            for path in [0, 1, 3] {
                let acked = FeedbackKind::Ack { timed: true, marked: false };
                watched.on_feedback(now + Duration::from_us(100), &back(acked, path), &mut cx);
            }
        }
    }

    #[test]
    fn how_a_scheme_wants_its_control_packets_treated_is_handed_on() {
        let scheme = (find_scheme("laps-code-2025").expect("a scheme").make)();
        let env = PolicyEnv {
            line_rate: Rate::from_gbps(1),
            base_rtt: Duration::from_us(100),
            mtu_wire_bytes: 1_500,
            mtu_payload_bytes: 1_344,
            paths: PATHS,
            measured: MeasuredSection::with_rtt(Duration::from_us(100)),
            edge: None,
        };
        let (mut rng, mut shared) = (Rng::for_component(1, "test", 0), Shared::new());
        let plain = scheme.policy.build(&env, &mut rng);
        let mut watched = MonitoredPolicy::new(plain, PATHS, Duration::ZERO, Deaths::default());
        let mut cx = PolicyCx { rng: &mut rng, shared: &mut shared };
        let member = QueuePairId { qp: pathweave_units::QpNum(2), peer: pathweave_units::HostId(1) };
        watched.on_open(Time::ZERO, &member, &mut cx);
        let now = Time::from_us(7);
        let says = watched.make_control(now, PathId(0), 0..1, &mut cx);
        let control = pathweave_wire::Control::Probe { sent_at: now };
        assert_eq!(says, Outgoing { control, treatment: ControlClass::AsAcknowledgement });
    }

    /// A handshake of 20 ms, and packets that come back in 200 us.
    #[test]
    fn a_slow_handshake_is_forgotten_once_packets_come_back_sooner() {
        let config = DeviceConfig {
            base_rtt: std::time::Duration::from_micros(100),
            host_delay: std::time::Duration::from_micros(100),
            line_rate: Rate::from_gbps(1),
            ..DeviceConfig::loopback()
        };
        for name in crate::scheme::of_connections() {
            let mut recipe = PolicyInputs {
                scheme: crate::scheme::find(name).unwrap(),
                config: Arc::new(config.clone()),
                paths: PATHS,
                mtu_payload: 1_344,
                receive_buffer_bytes: None,
                rng: Rng::for_component(1, "policy", 0),
            };
            let slow = Some(Duration::from_ms(20));
            let made = recipe.make(slow);
            let honest = recipe.clone().make(Some(Duration::from_us(200)));
            assert!(RttCheck::new(recipe.clone(), Some(Duration::from_us(200))).is_none(), "{name}");
            let watched = MonitoredPolicy::new(made.policy, PATHS, made.rtts.least, Deaths::default());
            let mut watched = watched.fitted(RttCheck::new(recipe, slow));
            let (mut rng, mut shared) =
                (Rng::for_component(1, "test", 0), Shared::for_peers(PeerKind::Connections));
            let mut cx = PolicyCx { rng: &mut rng, shared: &mut shared };
            let member = QueuePairId { qp: pathweave_units::QpNum(2), peer: pathweave_units::HostId(1) };
            watched.on_open(Time::ZERO, &member, &mut cx);
            // One packet after the other, next to one that is always in flight.
            let want = |inflight_packets| SendRequest {
                psn: 0,
                payload_bytes: 1_000,
                wire_bytes: 1_100,
                msn: 0,
                retransmit: false,
                inflight_packets,
                inflight_bytes: u64::from(inflight_packets) * 1_100,
                egress: Egress::ONE,
            };
            for step in 1..=32 {
                let now = Time::from_us(step * 1_000);
                assert!(!watched.remakes, "{name}");
                watched.poll_send(now, &want(1), &mut cx);
                watched.on_sent(now, &sent(0, step), &mut cx);
                let acked = FeedbackKind::Ack { timed: true, marked: false };
                let feedback = Feedback { rtt: Duration::from_us(200), ..back(acked, 0) };
                watched.on_feedback(now + Duration::from_us(200), &feedback, &mut cx);
            }
            let later = Time::from_us(40_000);
            assert_eq!(watched.poll_send(later, &want(1), &mut cx), Grant::Blocked, "{name}: it waits");
            assert!(
                matches!(watched.poll_send(later, &want(0), &mut cx), Grant::Send(_) | Grant::Control(_)),
                "{name}"
            );
            assert!(!watched.remakes, "{name}: once");
            // The policy equals one that was built for the real round-trip time.
            assert_eq!(watched.rate(later), honest.policy.rate(later), "{name}");
            watched.on_close(&mut cx);
            assert_eq!(shared.stores(), 0, "{name}");
        }
    }

    #[test]
    fn a_silent_path_is_dead_after_a_few_round_trips_and_lives_again_when_heard() {
        let (mut rng, mut shared) = (Rng::for_component(1, "test", 0), Shared::new());
        let mut watched = watched(&mut rng);
        steps(&mut watched, &mut rng, 1..3);
        assert_eq!(watched.dead(), 0, "two packets may be lost, and it has not been long");
        steps(&mut watched, &mut rng, 3..7);
        assert_eq!((watched.dead(), watched.paths()[2].state), (1, PathState::Down));
        let want = SendRequest {
            psn: 0,
            payload_bytes: 1_344,
            wire_bytes: 1_500,
            msn: 0,
            retransmit: false,
            inflight_packets: 0,
            inflight_bytes: 0,
            egress: Egress::ONE,
        };
        for _ in 0..100 {
            let mut cx = PolicyCx { rng: &mut rng, shared: &mut shared };
            assert_ne!(watched.poll_send(Time::from_us(8_000), &want, &mut cx), Grant::Send(PathId(2)));
        }
        let mut cx = PolicyCx { rng: &mut rng, shared: &mut shared };
        let acked = FeedbackKind::Ack { timed: false, marked: false };
        watched.on_feedback(Time::from_us(9_000), &back(acked, 2), &mut cx);
        assert_eq!((watched.dead(), watched.paths()[2].state), (0, PathState::Up));
    }

    #[test]
    fn a_timeout_kills_a_path_that_was_silent_while_others_were_not_and_never_the_last() {
        let (mut rng, mut shared) = (Rng::for_component(1, "test", 0), Shared::new());
        let mut watched = watched(&mut rng);
        let late = |path| back(FeedbackKind::Timeout, path);
        steps(&mut watched, &mut rng, 1..2);
        let mut cx = PolicyCx { rng: &mut rng, shared: &mut shared };
        // All answers came 100 us after the packet left, a round trip: its answer may have been in flight.
        watched.on_feedback(Time::from_us(1_200), &late(2), &mut cx);
        assert_eq!(watched.dead(), 0);
        let acked = FeedbackKind::Ack { timed: true, marked: false };
        watched.on_feedback(Time::from_us(1_300), &back(acked, 0), &mut cx);
        watched.on_feedback(Time::from_us(1_400), &late(0), &mut cx);
        assert_eq!(watched.dead(), 0, "path 0 has just been heard of");
        watched.on_feedback(Time::from_us(1_400), &late(2), &mut cx);
        assert_eq!((watched.dead(), watched.paths()[2].state), (1, PathState::Down));
        assert!(watched.deaths.load(Ordering::Relaxed));
        // The other paths fall silent one after the other.
        for (now_us, path) in [(2_000, 0), (3_000, 1), (4_000, 3)] {
            watched.on_sent(Time::from_us(now_us), &sent(path, 9), &mut cx);
            watched.heard = Time::from_us(now_us + 900);
            watched.on_feedback(Time::from_us(now_us + 950), &late(path), &mut cx);
        }
        assert_eq!((watched.dead(), watched.paths()[3].state), (3, PathState::Up));
    }

    #[test]
    fn a_host_that_stops_kills_no_path_and_a_single_packet_is_waited_for_twice_as_long() {
        let (mut rng, mut shared) = (Rng::for_component(1, "test", 0), Shared::new());
        let mut watched = watched(&mut rng);
        steps(&mut watched, &mut rng, 1..2);
        let mut cx = PolicyCx { rng: &mut rng, shared: &mut shared };
        let acked = FeedbackKind::Ack { timed: true, marked: false };
        // Four packets on each path; the peer stops for 50 ms before it answers, path by path.
        for path in (0..PATHS).chain(0..PATHS).chain(0..PATHS).chain(0..PATHS) {
            watched.on_sent(Time::from_us(2_000), &sent(path, 9), &mut cx);
        }
        for path in 0..PATHS {
            let late = Feedback { rtt: Duration::from_us(50_000), ..back(acked, path) };
            watched.on_feedback(Time::from_us(52_000), &late, &mut cx);
        }
        assert_eq!(watched.dead(), 0);
        // One packet on path 2, whose only answer took 50 ms: that plus four deviations of 25 ms, doubled for a
        // single packet.
        watched.on_sent(Time::from_us(60_000), &sent(2, 10), &mut cx);
        let mut answer = |us: u64| {
            let now = Time::from_us(us + 100);
            watched.on_feedback(now, &back(acked, 0), &mut cx);
            watched.dead()
        };
        assert_eq!((answer(359_000), answer(361_000)), (0, 1));
    }

    #[test]
    fn losses_and_times_are_counted_by_path() {
        let (mut rng, mut shared) = (Rng::for_component(1, "test", 0), Shared::new());
        let mut watched = watched(&mut rng);
        steps(&mut watched, &mut rng, 1..2);
        let mut cx = PolicyCx { rng: &mut rng, shared: &mut shared };
        watched.on_feedback(Time::from_us(5_000), &back(FeedbackKind::Lost, 2), &mut cx);
        let acked = FeedbackKind::Ack { timed: false, marked: true };
        watched.on_feedback(Time::from_us(5_000), &back(acked, 0), &mut cx);
        assert_eq!(watched.paths().iter().map(|path| path.marked).collect::<Vec<_>>(), [1, 0, 0, 0]);
        let path = watched.paths()[2];
        assert_eq!((path.packets, path.payload_bytes, path.lost, path.rtt), (1, 1_344, 1, Duration::ZERO));
        assert_eq!(watched.paths()[0].rtt, Duration::from_us(100));
        // A path the connection does not have is ignored.
        watched.on_feedback(Time::from_us(5_000), &back(FeedbackKind::Cnp, 99), &mut cx);
    }
}
