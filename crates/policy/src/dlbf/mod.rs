//! DLBF: a queue pair keeps its path until a packet on it is marked. Packets that would arrive late after a switch
//! are copied onto the new path ahead of its data (Dynamic Load Balancing for RDMA networks without reordering,
//! section III).
//!
//! Selection is event-driven, as in section III-B: a path is selected when a message begins, after a pause, and when
//! an acknowledgement of the path in use is marked. The receiver's part is [`Reordering`](crate::Reordering). The
//! repaired variant measures a path of unknown delay before it uses it; see [`DlbfVariant`].

mod config;
mod history;
mod marks;
mod paths;
mod store;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::ops::Range;

use pathweave_units::{Duration, PathId, Rng, Time};
use pathweave_wire::{Control, NoticePermission};

use crate::cc::{AnyCc, CongestionControl, Permit};
use crate::picker::PathSet;
use crate::{
    ControlClass, ControlFeedback, Feedback, FeedbackKind, Grant, Memo, Outgoing, PathView, Policy, PolicyCx,
    PolicyEnv, QueuePairId, SendRequest, Sent,
};

pub use config::{DlbfConfig, DlbfScope, DlbfVariant, MarkedRate, OnSwitch};
pub use history::{History, Sending};
use marks::RevertibleCnps;
pub use paths::{PathStatus, PathTable};
pub use store::DlbfHost;
use store::PathStateLocation;

/// Policy of one direction of one queue pair.
#[derive(Clone, Debug)]
pub struct Dlbf {
    cc: AnyCc,
    state: Box<State>,
}

/// State that DLBF adds to the congestion control.
#[derive(Clone, Debug)]
struct State {
    config: Box<DlbfConfig>,
    env: PolicyEnv,
    place: PathStateLocation,
    /// First path if no path is known. Drawn as ECMP draws its path, so that the two schemes compare.
    first: PathId,
    current: Option<PathId>,
    /// Message of the last new packet.
    msn: Option<u32>,
    sent_at: Time,
    history: History,
    /// Packets that must leave on the current path before data.
    ahead: Option<BeforeData>,
    /// PSNs to copy onto the current path.
    copies: VecDeque<u64>,
    notices: NoticePermission,
    rtt: Duration,
    /// Last round-trip time on the path in use.
    rtt_in_use: Duration,
    switched_at: Option<Time>,
    /// Path that is being measured before it is used.
    probed: Option<ProbedPath>,
    /// True if packets may be in flight on paths that were left. New data then waits until it can no longer overtake
    /// them. A copy takes the place of new data and arrives when the new data would have arrived. Unless the rate has
    /// risen, copying therefore takes as long as waiting, and costs bytes besides.
    left_behind: bool,
    /// Notifications that may be reverted.
    marks: RevertibleCnps,
    counts: DlbfCounts,
}

/// A path of unknown delay that is being measured. The queue pair moves to it if the reply is unmarked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ProbedPath {
    path: PathId,
    since: Time,
}

/// Packets that must leave on a new path before data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BeforeData {
    /// Copies of the packets that would arrive late, given the delay of the new path. `left` is the path left, which
    /// the published variant uses.
    Copies { left: PathId, one_way_ps: i64 },
    /// A notice, on this path.
    Notice(PathId),
}

/// Measurement of a path by a packet or a notice that has arrived at the receiver.
struct Arrival {
    path: PathId,
    rtt: Duration,
    one_way_ps: i64,
    marked: bool,
}

impl Arrival {
    fn from_feedback(feedback: &Feedback, marked: bool) -> Self {
        let &Feedback { path, rtt, one_way_ps, .. } = feedback;
        Arrival { path, rtt, one_way_ps, marked }
    }
}

/// Counters of a queue pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DlbfCounts {
    /// Number of changes of path.
    pub switches: u64,
    /// Number of times the queue pair stayed on a congested path because every other one was congested too.
    pub saturated: u64,
    /// Number of copies sent.
    pub copies: u64,
    /// Number of notices sent.
    pub notices: u64,
}

impl Dlbf {
    pub(crate) fn new(config: Box<DlbfConfig>, env: &PolicyEnv, rng: &mut Rng) -> Self {
        let table = PathTable::new(env.paths, config.available_for, config.unavailable_for);
        Dlbf {
            cc: config.cc.build(env),
            state: Box::new(State {
                config,
                env: *env,
                place: PathStateLocation::Own(table),
                first: PathSet::all(env.paths).draw(rng),
                current: None,
                msn: None,
                sent_at: Time::ZERO,
                history: History::default(),
                ahead: None,
                copies: VecDeque::new(),
                notices: NoticePermission::Welcome,
                rtt: env.base_rtt,
                rtt_in_use: env.base_rtt,
                switched_at: None,
                probed: None,
                left_behind: false,
                marks: RevertibleCnps::default(),
                counts: DlbfCounts::default(),
            }),
        }
    }
    /// Reverts the effect of marks of a path that has been left.
    #[inline]
    fn settle(&mut self) {
        if let Some(before) = self.state.marks.settle(self.state.probed.is_some()) {
            self.cc = before;
        }
    }
    /// Returns the counters.
    pub fn counts(&self) -> DlbfCounts {
        self.state.counts
    }
    /// Returns the path in use; `None` before the first packet.
    pub fn path(&self) -> Option<PathId> {
        self.state.current
    }
}

impl State {
    /// Selects the path for what follows (algorithm 1). `queue`: queueing delay of the path in use, if a mark asks
    /// for another path.
    fn choose(&mut self, now: Time, queue: Option<Duration>, cx: &mut PolicyCx<'_>) -> PathId {
        if let (Some(old), true) = (self.current, self.awaits_answer(now)) {
            return old;
        }
        let table = self.place.table(cx.shared);
        if let Some(silent) = self.probed.take() {
            table.on_timeout(now, silent.path);
        }
        let mut new = table.select(now, self.current, cx.rng);
        let unknown = |path| table.is_usable(path) && table.knowledge(path, now) == PathStatus::Unprobed;
        let Some(old) = self.current else {
            if unknown(new) && unknown(self.first) {
                new = self.first;
            }
            (self.current, self.ahead) = (Some(new), None);
            self.copies.clear();
            return new;
        };
        if old == new {
            return old;
        }
        let ahead = before_data(&self.config, self.notices, table, now, old, new);
        let measures = ahead == Some(BeforeData::Notice(new)) && self.config.variant == DlbfVariant::Repaired;
        if measures && !self.history.is_empty() {
            // A notice or copies of an earlier move leave first. The next mark tries again.
            if self.ahead.is_none() {
                (self.probed, self.ahead) = (Some(ProbedPath { path: new, since: now }), ahead);
            }
            return old;
        }
        let table = self.place.table(cx.shared);
        if queue.is_some_and(|queue| !shortens_queue(table, old, new, queue / 2)) {
            return old;
        }
        self.switch_to(now, new, ahead);
        new
    }

    /// Moves from the path in use to another one.
    fn switch_to(&mut self, now: Time, new: PathId, ahead: Option<BeforeData>) {
        self.copies.clear();
        self.left_behind = self.config.on_switch == OnSwitch::Wait;
        (self.current, self.ahead, self.probed, self.switched_at) = (Some(new), ahead, None, Some(now));
        self.marks.left();
        self.counts.switches += 1;
    }

    /// Returns true if a path is being measured and its reply would still be recent enough to be used.
    fn awaits_answer(&self, now: Time) -> bool {
        self.probed.is_some_and(|asked| now - asked.since <= self.config.available_for)
    }

    /// Moves to a path that has just been measured, if it is better. The move was deferred until now, because packets
    /// in flight keep their order only if the gap is known before data leaves on the new path.
    fn on_probe_reply(&mut self, now: Time, path: PathId, cx: &mut PolicyCx<'_>) {
        self.probed = None;
        self.ahead.take_if(|ahead| matches!(ahead, BeforeData::Notice(_)));
        let Some(old) = self.current else { return };
        let queue = self.queue();
        let table = self.place.table(cx.shared);
        let is_better = table.knowledge(old, now) == PathStatus::Unavailable
            && table.knowledge(path, now) == PathStatus::Available;
        if is_better && queue.is_none_or(|queue| shortens_queue(table, old, path, queue / 2)) {
            let ahead = before_data(&self.config, self.notices, table, now, old, path);
            self.switch_to(now, path, ahead);
        }
    }

    /// Responds to a marked acknowledgement of the path in use.
    fn respond_to_mark(&mut self, now: Time, cx: &mut PolicyCx<'_>) {
        let recent = self.switched_at.is_some_and(|at| now - at < self.rtt);
        if recent && self.config.variant == DlbfVariant::Repaired {
            return;
        }
        let (old, queue) = (self.current, self.queue());
        if old == Some(self.choose(now, queue, cx)) && self.probed.is_none() {
            self.counts.saturated += 1;
        }
    }

    /// Returns true if new data might overtake a packet that left on another path. This ends only when the packet is
    /// acknowledged or retransmitted on the path in use: a queue may grow in steps, and a switch may pause.
    #[inline]
    fn overtakes(&mut self) -> bool {
        let elsewhere = |(_, sending): (u64, Sending)| Some(sending.path) != self.current;
        self.left_behind = self.left_behind && self.history.iter().any(elsewhere);
        self.left_behind
    }

    /// Returns the queueing delay of the last packet acknowledged on the path in use, under
    /// [`MarkedRate::OfItsPath`]. A queue that another path does not avoid is no reason to leave.
    fn queue(&self) -> Option<Duration> {
        let waited = self.rtt_in_use.saturating_sub(self.env.base_rtt);
        (self.config.marked_rate == MarkedRate::OfItsPath).then_some(waited)
    }

    /// Lists the packets that would arrive late (equations 1 to 3), in order of PSN.
    fn list_copies(&mut self, now: Time, left: PathId, new_ps: i64, cx: &mut PolicyCx<'_>) {
        let table = self.place.table(cx.shared);
        let left_ps = table.one_way_ps(left);
        for (psn, sending) in self.history.iter() {
            let old_ps = match self.config.variant {
                DlbfVariant::Repaired => table.one_way_ps(sending.path),
                DlbfVariant::Published => left_ps,
            };
            let on_new = Some(sending.path) == self.current;
            if !on_new && is_late(now, sending.at, old_ps, new_ps) {
                self.copies.push_back(psn);
            }
        }
    }

    /// Copies a packet that the receiver misses and that a notice announced, if it is late.
    fn on_late(&mut self, now: Time, psn: u64, cx: &mut PolicyCx<'_>) {
        let table = self.place.table(cx.shared);
        let (Some(sending), Some(current)) = (self.history.get(psn), self.current) else { return };
        let Some(new_ps) = table.one_way_ps(current).filter(|_| sending.path != current) else { return };
        let old_ps = table.one_way_ps(sending.path);
        let late = is_late(now, sending.at, old_ps, new_ps);
        if late && self.config.on_switch.copies() && !self.copies.contains(&psn) {
            self.copies.push_back(psn);
        }
    }

    fn on_arrival(&mut self, now: Time, arrival: &Arrival, cx: &mut PolicyCx<'_>) {
        let &Arrival { path, rtt, one_way_ps, marked } = arrival;
        self.rtt = rtt;
        if self.current == Some(path) {
            self.rtt_in_use = rtt;
        }
        self.place.table(cx.shared).on_ack(now, path, marked, one_way_ps);
        if self.probed.is_some_and(|asked| asked.path == path) {
            self.on_probe_reply(now, path, cx);
        }
        if marked && self.current == Some(path) {
            self.respond_to_mark(now, cx);
        }
    }
}

/// Returns true if the delay of the new path is shorter than that of the old one by at least `queue`, or if either is
/// unknown. A delay that is not shorter indicates that both paths share the queue, perhaps the receiver's.
fn shortens_queue(table: &PathTable, old: PathId, new: PathId, queue: Duration) -> bool {
    let (Some(old_ps), Some(new_ps)) = (table.one_way_ps(old), table.one_way_ps(new)) else { return true };
    i128::from(old_ps) - i128::from(new_ps) >= i128::from(queue.as_ps())
}

/// Returns true if a packet sent at `at` on a path of delay `old_ps` arrives after one sent now on a path of delay
/// `new_ps`. This holds if its time in flight is less than the gap of the delays. Delays may contain a clock offset,
/// and so be negative; their difference does not.
fn is_late(now: Time, at: Time, old_ps: Option<i64>, new_ps: i64) -> bool {
    let Some(old_ps) = old_ps else { return false };
    let gap = i128::from(old_ps) - i128::from(new_ps);
    i128::from((now - at).as_ps()) < gap
}

/// Returns the packets that must leave before data on a path just chosen (section III-D).
fn before_data(
    config: &DlbfConfig,
    notices: NoticePermission,
    table: &PathTable,
    now: Time,
    left: PathId,
    new: PathId,
) -> Option<BeforeData> {
    let known = table.one_way_ps(new);
    let unprobed = table.knowledge(new, now) == PathStatus::Unprobed;
    if unprobed && notices == NoticePermission::Welcome && config.on_switch.notices() {
        return Some(BeforeData::Notice(new));
    }
    // The least delay of any path makes the gap largest, and thus the number of copies.
    let one_way_ps = known.or_else(|| table.least_one_way_ps())?;
    config.on_switch.copies().then_some(BeforeData::Copies { left, one_way_ps })
}

impl OnSwitch {
    const fn copies(self) -> bool {
        matches!(self, OnSwitch::CopiesAndNotices | OnSwitch::Copies)
    }
    const fn notices(self) -> bool {
        matches!(self, OnSwitch::Wait | OnSwitch::CopiesAndNotices | OnSwitch::Notices)
    }
}

impl Policy for Dlbf {
    crate::forwards!({ cc } rate);
    crate::ignores!(window, path_beyond_window);
    fn on_open(&mut self, now: Time, member: &QueuePairId, cx: &mut PolicyCx<'_>) {
        self.cc.on_open(now, member, cx);
        let State { config, env, place, .. } = &mut *self.state;
        if config.scope == DlbfScope::HostPair {
            *place = PathStateLocation::join(config, env, member.peer, cx.shared);
        }
    }

    fn on_close(&mut self, cx: &mut PolicyCx<'_>) {
        self.cc.on_close(cx);
        self.state.place.leave(cx.shared);
    }

    fn poll_send(&mut self, now: Time, want: &SendRequest, cx: &mut PolicyCx<'_>) -> Grant {
        let state = &mut *self.state;
        if let Some(asked) = state.probed.filter(|_| state.history.is_empty()) {
            // No packet is left that data could overtake.
            state.switch_to(now, asked.path, None);
        }
        let begins = !want.retransmit
            && (state.msn != Some(want.msn) || now - state.sent_at > state.config.available_for);
        let path = match state.current {
            Some(path) if !begins => path,
            // The choice holds whether the packet leaves at once or not: a repeated call returns the same path.
            _ => state.choose(now, None, cx),
        };
        if !want.retransmit {
            state.msn = Some(want.msn);
        }
        match state.ahead {
            Some(_) if state.history.is_empty() => state.ahead = None,
            Some(BeforeData::Notice(path)) => return Grant::Control(path),
            Some(BeforeData::Copies { left, one_way_ps }) => {
                state.ahead = None;
                state.list_copies(now, left, one_way_ps, cx);
            }
            None => {}
        }
        while let Some(&psn) = state.copies.front()
            && state.history.get(psn).is_none()
        {
            state.copies.pop_front();
        }
        if !want.retransmit && state.overtakes() {
            return Grant::Blocked;
        }
        match (self.cc.permit(now, want, cx), state.copies.front()) {
            (Permit::At(when), _) => Grant::At(when),
            (Permit::Blocked, _) => Grant::Blocked,
            (Permit::Now, Some(&psn)) => Grant::Copy { psn, path },
            (Permit::Now, None) => Grant::Send(path),
        }
    }

    fn on_sent(&mut self, now: Time, sent: &Sent, cx: &mut PolicyCx<'_>) -> Memo {
        let cc = self.cc.on_sent(now, sent, cx);
        self.state.history.sent(sent.psn, Sending { at: now, path: sent.path });
        self.state.sent_at = now;
        Memo::of_halves(cc, 0)
    }

    fn on_copy_sent(&mut self, now: Time, psn: u64, path: PathId, wire_bytes: u32, cx: &mut PolicyCx<'_>) {
        let state = &mut *self.state;
        // A copy counts in the rate as any packet, but not in the packets in flight.
        let sent = Sent {
            path,
            psn,
            msn: state.msn.unwrap_or(0),
            payload_bytes: 0,
            wire_bytes,
            retransmit: true,
            inflight_packets: state.history.iter().count() as u32,
        };
        self.cc.on_sent(now, &sent, cx);
        state.history.sent(psn, Sending { at: now, path });
        state.copies.retain(|&other| other != psn);
        state.counts.copies += 1;
        state.sent_at = now;
    }

    fn make_control(
        &mut self,
        now: Time,
        _: PathId,
        in_flight: Range<u64>,
        _: &mut PolicyCx<'_>,
    ) -> Outgoing {
        debug_assert!(!in_flight.is_empty(), "a notice of nothing");
        let state = &mut *self.state;
        state.ahead = None;
        state.counts.notices += 1;
        state.sent_at = now;
        let (first, last) = (in_flight.start, in_flight.end.saturating_sub(1).max(in_flight.start));
        Outgoing { control: Control::Notice { first, last, sent_at: now }, treatment: ControlClass::AsData }
    }

    fn on_feedback(&mut self, now: Time, feedback: &Feedback, cx: &mut PolicyCx<'_>) {
        let state = &mut *self.state;
        match feedback.kind {
            FeedbackKind::Ack { timed, marked } => {
                state.history.gone(feedback.psn);
                if timed {
                    state.on_arrival(now, &Arrival::from_feedback(feedback, marked), cx);
                }
                self.settle();
                self.cc.on_feedback(now, feedback, cx);
            }
            FeedbackKind::Duplicate { marked } => {
                state.on_arrival(now, &Arrival::from_feedback(feedback, marked), cx);
                self.settle();
            }
            FeedbackKind::Lost | FeedbackKind::Trimmed { .. } | FeedbackKind::Timeout => {
                state.history.gone(feedback.psn);
                if feedback.kind == FeedbackKind::Timeout && state.config.variant == DlbfVariant::Repaired {
                    state.place.table(cx.shared).on_timeout(now, feedback.path);
                    if state.current == Some(feedback.path) {
                        state.respond_to_mark(now, cx);
                    }
                }
                self.cc.on_feedback(now, feedback, cx);
            }
            FeedbackKind::Cnp => match state.config.marked_rate {
                MarkedRate::Reduced => self.cc.on_feedback(now, feedback, cx),
                MarkedRate::Kept if state.place.table(cx.shared).has_other(now, feedback.path) => {}
                MarkedRate::Kept => self.cc.on_feedback(now, feedback, cx),
                MarkedRate::OfItsPath if state.current != Some(feedback.path) => {}
                MarkedRate::OfItsPath => {
                    state.marks.notified(&self.cc);
                    self.cc.on_feedback(now, feedback, cx);
                }
            },
            FeedbackKind::Late => state.on_late(now, feedback.psn, cx),
            FeedbackKind::NoticeFlow(notices) => state.notices = notices,
            FeedbackKind::EdgeRtt | FeedbackKind::PathSample => {}
        }
    }

    fn on_control(&mut self, now: Time, feedback: &ControlFeedback, cx: &mut PolicyCx<'_>) {
        if let Control::NoticeReply { marked, .. } = feedback.control {
            let &ControlFeedback { path, rtt, one_way_ps, .. } = feedback;
            self.state.on_arrival(now, &Arrival { path, rtt, one_way_ps, marked }, cx);
            self.settle();
        }
    }

    fn on_paths(&mut self, _now: Time, paths: &[PathView], cx: &mut PolicyCx<'_>) {
        let state = &mut *self.state;
        let table = state.place.table(cx.shared);
        table.set(paths);
        state.first = PathSet::usable(paths).keep_or_draw(state.first, cx.rng);
        if state.probed.is_some_and(|asked| !table.is_usable(asked.path)) {
            state.probed = None;
            state.ahead.take_if(|ahead| matches!(ahead, BeforeData::Notice(_)));
        }
        if state.current.is_some_and(|path| !table.is_usable(path)) {
            // Restart as a queue pair that begins. Loss recovery handles the packets in flight on a dead path.
            (state.current, state.ahead, state.probed) = (None, None, None);
            (state.left_behind, state.marks) = (false, RevertibleCnps::default());
            state.copies.clear();
        }
    }

    fn on_timer(&mut self, now: Time, cx: &mut PolicyCx<'_>) {
        self.cc.on_timer(now, cx);
    }
    fn next_timer(&self) -> Option<Time> {
        self.cc.next_timer()
    }
}
