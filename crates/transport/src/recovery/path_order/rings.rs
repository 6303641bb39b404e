//! Packets outstanding on each path, whose order shows losses. A path delivers in order, and so does the
//! return path. When the acknowledgement of a packet arrives, packets that left before it on the same path and are
//! unacknowledged are lost. The last packets on a path are found lost by the path's own timer.
//!
//! The packets outstanding on a path form one list for all queue pairs to a host, because they share one order:
//! acknowledgements of one flow show the losses of another. The lists therefore belong to the endpoint ([`Rings`]).
//! Their findings go as [`Suspect`]s to the queue pairs, which know if the packet was acknowledged otherwise.
//!
//! The departure time, which the acknowledgement echoes, distinguishes the transmissions of one packet.

use alloc::collections::{BTreeMap, BinaryHeap, VecDeque};
use alloc::vec::Vec;
use core::cmp::Reverse;

use pathweave_policy::{FeedbackKind, PathRto, PeerKind, RingScope};
use pathweave_units::{Duration, HostId, PathId, QpNum, Time};

use crate::send::echoes::Echo;

/// Largest number of doublings of a path's time after successive timeouts.
const MOST_DOUBLINGS: u32 = 6;

/// Rule for the time that a path may be silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SilenceRule {
    pub(crate) rto: PathRto,
    pub(crate) min: Duration,
    pub(crate) slack: Duration,
    /// Upper bound of the time that follows from one measurement, at least `min`. If an end pauses, packets measure
    /// its pause.
    pub(crate) longest: Duration,
}

/// A transmission of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transmission {
    pub(crate) sent_at: Time,
    pub(crate) psn: u64,
    pub(crate) qp: QpNum,
}

/// A transmission that counts as lost unless its queue pair knows better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Suspect {
    pub(crate) of: Transmission,
    /// [`FeedbackKind::Lost`] or [`FeedbackKind::Timeout`].
    pub(crate) kind: FeedbackKind,
}

/// Measurement of an acknowledgement for its own packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heard {
    pub(crate) of: Transmission,
    pub(crate) rtt: Duration,
    pub(crate) one_way_ps: i64,
}

/// Packets outstanding on a path, in the order in which they left.
#[derive(Debug)]
struct Ring {
    outstanding: VecDeque<Transmission>,
    /// Time of the latest arrival from the path.
    heard_at: Time,
    /// Round trip and one-way delay of the latest acknowledgement, if any.
    measured: Option<(Duration, i64)>,
    shortest_rtt: Duration,
    /// Number of timeouts since the latest measurement.
    timeouts: u32,
    /// Time at which the timer checks this ring. Timer entries with another time belong to a removed ring.
    armed: Option<Time>,
}

impl Ring {
    const fn new() -> Self {
        Ring {
            outstanding: VecDeque::new(),
            heard_at: Time::ZERO,
            measured: None,
            shortest_rtt: Duration::MAX,
            timeouts: 0,
            armed: None,
        }
    }

    fn patience(&self, rule: &SilenceRule) -> Duration {
        let doubled = if rule.rto == PathRto::Guarded { self.timeouts } else { 0 };
        let Some((rtt, one_way_ps)) = self.measured else { return rule.min * (1 << doubled) };
        let once = match rule.rto {
            PathRto::Fixed => rule.min,
            PathRto::Published => Duration::from_ps(2 * one_way_ps.max(0) as u64),
            // Twice the forward delay: the round trip, plus once more its excess over an idle one, which is the
            // forward queue. In this form it needs no synchronized clocks.
            PathRto::Guarded => {
                let queued = rtt.saturating_sub(self.shortest_rtt);
                (rtt + queued + rule.slack).max(rule.min)
            }
        };
        once.min(rule.longest) * (1 << doubled)
    }

    /// Time at which the path has been silent for too long, if nothing arrives. Silence counts from the latest
    /// arrival, and from the first outstanding packet or, as in the paper and its code, from the last one.
    fn deadline(&self, rule: &SilenceRule) -> Option<Time> {
        let from = match rule.rto {
            PathRto::Guarded => self.outstanding.front()?,
            PathRto::Published | PathRto::Fixed => self.outstanding.back()?,
        };
        Some(from.sent_at.max(self.heard_at).saturating_add(self.patience(rule)))
    }

    /// Position of a transmission. Transmissions are ordered by time; on several NIC ports some may leave at the same
    /// time.
    fn position(&self, of: &Transmission) -> Option<usize> {
        let from = self.outstanding.partition_point(|other| other.sent_at < of.sent_at);
        let same_time = self.outstanding.range(from..).take_while(|other| other.sent_at == of.sent_at);
        same_time.zip(from..).find(|(other, _)| *other == of).map(|(_, index)| index)
    }
}

/// Paths to a host, or of a queue pair.
#[derive(Debug)]
struct Group {
    rule: SilenceRule,
    /// Number of queue pairs that have joined and not left.
    members: u32,
    /// Peer of these paths, if all queue pairs to a host share them.
    peer: Option<HostId>,
    /// Rings by path.
    rings: Vec<Ring>,
}

/// Rings of an endpoint.
#[derive(Debug)]
pub(crate) struct Rings {
    groups: Vec<Group>,
    by_host: BTreeMap<HostId, u32>,
    /// Indices of unused groups.
    free: Vec<u32>,
    /// Times at which rings are to be checked.
    timers: BinaryHeap<Reverse<(Time, u32, u16)>>,
    suspects: VecDeque<Suspect>,
    /// Time for which the endpoint's timer is armed to call [`Rings::expire`], or [`Time::MAX`].
    pub(crate) armed: Time,
}

impl Rings {
    pub(crate) const fn new() -> Self {
        Rings {
            groups: Vec::new(),
            by_host: BTreeMap::new(),
            free: Vec::new(),
            timers: BinaryHeap::new(),
            suspects: VecDeque::new(),
            armed: Time::MAX,
        }
    }

    /// Returns the group for a queue pair to `peer`, and creates it if necessary.
    pub(crate) fn join(&mut self, scope: RingScope, peer: HostId, rule: SilenceRule) -> u32 {
        let Rings { groups, by_host, free, .. } = self;
        let mut open = |peer| {
            let group = Group { rule, members: 0, peer, rings: Vec::new() };
            match free.pop() {
                Some(index) => {
                    groups[index as usize] = group;
                    index
                }
                None => {
                    groups.push(group);
                    groups.len() as u32 - 1
                }
            }
        };
        let group = match scope {
            RingScope::Host => *by_host.entry(peer).or_insert_with(|| open(Some(peer))),
            RingScope::QueuePair => open(None),
        };
        groups[group as usize].members += 1;
        group
    }

    /// Removes a queue pair from its group. Its outstanding packets in a shared group stay, without an owner. The
    /// group is dropped with its last member, unless peers are hosts, which come back.
    pub(crate) fn leave(&mut self, group: u32, peers: PeerKind) {
        let Group { members, peer, .. } = &mut self.groups[group as usize];
        *members -= 1;
        if *members == 0 && (peer.is_none() || peers == PeerKind::Connections) {
            self.drop_group(group);
        }
    }

    /// Drops the group of a peer with its contents.
    pub(crate) fn forget(&mut self, peer: HostId) {
        if let Some(&group) = self.by_host.get(&peer) {
            self.drop_group(group);
        }
    }

    fn drop_group(&mut self, group: u32) {
        let Group { peer, rings, .. } = &mut self.groups[group as usize];
        *rings = Vec::new();
        if let Some(peer) = peer.take() {
            self.by_host.remove(&peer);
        }
        self.free.push(group);
    }

    /// Records that a packet has left.
    #[inline]
    pub(crate) fn sent(&mut self, group: u32, path: PathId, of: Transmission) {
        let Group { rule, rings, .. } = &mut self.groups[group as usize];
        if path.index() >= rings.len() {
            rings.resize_with(path.index() + 1, Ring::new);
        }
        let ring = &mut rings[path.index()];
        ring.outstanding.push_back(of);
        if ring.armed.is_none() {
            let deadline = of.sent_at.saturating_add(ring.patience(rule));
            ring.armed = Some(deadline);
            self.timers.push(Reverse((deadline, group, path.0)));
        }
    }

    /// Processes the acknowledgement of a packet, which came back by the packet's path. Packets that left before it
    /// become suspect. An acknowledgement of a packet that is not outstanding (a duplicate, or given up) has no such
    /// effect.
    ///
    /// `echo` is the judgement of the queue pair. The echo of an outstanding packet is the first in any case. Returns
    /// the corrected judgement.
    pub(crate) fn heard(&mut self, now: Time, group: u32, path: PathId, heard: &Heard, echo: Echo) -> Echo {
        let Group { rule, rings, .. } = &mut self.groups[group as usize];
        let Some(ring) = rings.get_mut(path.index()) else { return echo };
        ring.heard_at = now;
        let index = ring.position(&heard.of);
        if index.is_none() && echo == Echo::Again {
            return echo;
        }
        ring.measured = Some((heard.rtt, heard.one_way_ps));
        ring.shortest_rtt = ring.shortest_rtt.min(heard.rtt);
        // The path answers, although perhaps too late for the timer.
        ring.timeouts = 0;
        if let Some(index) = index {
            let before = ring.outstanding.drain(..=index).take(index);
            self.suspects.extend(before.map(|of| Suspect { of, kind: FeedbackKind::Lost }));
        }
        if rule.rto == PathRto::Published
            && let (Some(deadline), Some(armed)) = (ring.deadline(rule), ring.armed)
            && deadline < armed
        {
            // The paper resets the timer by the latest delay, which may be shorter than the one before.
            ring.armed = Some(deadline);
            self.timers.push(Reverse((deadline, group, path.0)));
        }
        Echo::First
    }

    /// Handles the failure of a path: all packets outstanding on it become suspect.
    pub(crate) fn failed(&mut self, group: u32, path: PathId) {
        if let Some(ring) = self.groups[group as usize].rings.get_mut(path.index()) {
            let all = ring.outstanding.drain(..);
            self.suspects.extend(all.map(|of| Suspect { of, kind: FeedbackKind::Lost }));
        }
    }

    /// Time at which [`Rings::expire`] must be called.
    #[inline]
    pub(crate) fn next_timer(&self) -> Option<Time> {
        self.timers.peek().map(|&Reverse((at, ..))| at)
    }

    /// Checks the paths whose time has come. `is_in_flight` shows if a transmission is still unacknowledged; its
    /// acknowledgement may have come by another path. All packets outstanding on a path that has been silent for too
    /// long become suspect.
    pub(crate) fn expire(&mut self, now: Time, is_in_flight: impl Fn(&Transmission) -> bool) {
        while let Some(&Reverse((at, group, path))) = self.timers.peek()
            && at <= now
        {
            self.timers.pop();
            let Group { rule, rings, .. } = &mut self.groups[group as usize];
            // The ring was dropped with its queue pair; another one may be in its place.
            let ring = rings.get_mut(usize::from(path)).filter(|ring| ring.armed == Some(at));
            let Some(ring) = ring else { continue };
            ring.armed = None;
            while ring.outstanding.front().is_some_and(|first| !is_in_flight(first)) {
                ring.outstanding.pop_front();
            }
            let Some(deadline) = ring.deadline(rule) else { continue };
            if deadline > now {
                ring.armed = Some(deadline);
                self.timers.push(Reverse((deadline, group, path)));
            } else {
                ring.timeouts = (ring.timeouts + 1).min(MOST_DOUBLINGS);
                let all = ring.outstanding.drain(..);
                self.suspects.extend(all.map(|of| Suspect { of, kind: FeedbackKind::Timeout }));
            }
        }
    }

    pub(crate) fn take_suspect(&mut self) -> Option<Suspect> {
        self.suspects.pop_front()
    }

    /// Returns true if a transmission is outstanding on a path with a timer. For tests.
    pub(crate) fn is_watched(&self, group: u32, path: PathId, of: &Transmission) -> bool {
        let ring = self.groups[group as usize].rings.get(path.index());
        ring.is_some_and(|ring| ring.armed.is_some() && ring.position(of).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: SilenceRule = SilenceRule {
        rto: PathRto::Guarded,
        min: Duration::from_us(100),
        slack: Duration::from_us(1),
        longest: Duration::from_ms(1),
    };
    const A: PathId = PathId(0);

    fn of(psn: u64) -> Transmission {
        Transmission { sent_at: Time::from_us(psn), psn, qp: QpNum(2) }
    }
    fn heard(psn: u64) -> Heard {
        Heard { of: of(psn), rtt: Duration::from_us(10), one_way_ps: 5_000_000 }
    }
    /// Packets 1 to 4 are outstanding on path A.
    fn four() -> (Rings, u32) {
        let mut rings = Rings::new();
        let group = rings.join(RingScope::Host, HostId(1), RULE);
        (1..=4).for_each(|psn| rings.sent(group, A, of(psn)));
        (rings, group)
    }
    fn suspects(rings: &mut Rings) -> Vec<(u64, FeedbackKind)> {
        core::iter::from_fn(|| rings.take_suspect()).map(|suspect| (suspect.of.psn, suspect.kind)).collect()
    }
    use FeedbackKind::{Lost, Timeout};

    #[test]
    fn earlier_packets_on_the_path_are_lost() {
        let (mut rings, group) = four();
        let now = Time::from_us(20);
        rings.heard(now, group, A, &heard(3), Echo::First);
        assert_eq!(suspects(&mut rings), [(1, Lost), (2, Lost)]);
        // A duplicate, a packet never sent, and one with another departure time have no effect.
        rings.heard(now, group, A, &heard(3), Echo::First);
        rings.heard(now, group, A, &heard(9), Echo::First);
        let other = Transmission { sent_at: Time::from_us(5), ..of(4) };
        rings.heard(now, group, A, &Heard { of: other, ..heard(4) }, Echo::First);
        rings.heard(now, group, PathId(7), &heard(4), Echo::First);
        assert_eq!(suspects(&mut rings), []);
        assert!(rings.is_watched(group, A, &of(4)) && !rings.is_watched(group, A, &of(3)));
    }

    /// The acknowledgement of a copy measures nothing, unless its packet is outstanding: the queue pair may have
    /// forgotten it.
    #[test]
    fn only_the_first_echo_measures() {
        let (mut rings, group) = four();
        let old = Heard { rtt: Duration::from_us(900), ..heard(9) };
        assert_eq!(rings.heard(Time::from_us(20), group, A, &old, Echo::Again), Echo::Again);
        assert_eq!(rings.groups[group as usize].rings[0].measured, None);
        assert_eq!(rings.heard(Time::from_us(20), group, A, &heard(1), Echo::Again), Echo::First);
        assert_eq!(rings.heard(Time::from_us(30), group, A, &heard(1), Echo::Again), Echo::Again);
        let measured = rings.groups[group as usize].rings[0].measured;
        assert_eq!(measured, Some((Duration::from_us(10), 5_000_000)));
    }

    #[test]
    fn the_last_of_a_path_are_found_by_its_timer_and_a_late_acknowledgement_proves_nothing() {
        let (mut rings, group) = four();
        rings.heard(Time::from_us(20), group, A, &heard(2), Echo::First);
        suspects(&mut rings);
        // Armed for 101 us by the first packet; an acknowledgement arrived at 20 us.
        let first = rings.next_timer().expect("armed");
        assert_eq!(first, Time::from_us(101));
        rings.expire(first, |_| true);
        assert_eq!((suspects(&mut rings).len(), rings.next_timer()), (0, Some(Time::from_us(120))));
        rings.expire(Time::from_us(120), |_| true);
        assert_eq!(suspects(&mut rings), [(3, Timeout), (4, Timeout)]);
        rings.heard(Time::from_us(130), group, A, &heard(4), Echo::First);
        assert_eq!((suspects(&mut rings).len(), rings.next_timer()), (0, None));
    }

    /// All packets of a path timed out while the peer paused for a second. Their acknowledgements come after that,
    /// for packets that were given up.
    #[test]
    fn the_pause_of_an_end_is_not_waited_for_again() {
        for rto in [PathRto::Guarded, PathRto::Published] {
            let mut rings = Rings::new();
            let group = rings.join(RingScope::Host, HostId(1), SilenceRule { rto, ..RULE });
            for psn in 1..=5 {
                rings.sent(group, A, of(psn));
                let timeout = rings.next_timer().expect("armed");
                rings.expire(timeout, |_| true);
            }
            let now = Time::from_us(1_000_000);
            let late = Heard { rtt: Duration::from_us(999_999), one_way_ps: 999_990_000_000, ..heard(1) };
            rings.heard(now, group, A, &late, Echo::First);
            suspects(&mut rings);
            rings.sent(group, A, of(1_000_001));
            assert_eq!(rings.next_timer(), Some(Time::from_us(1_001_001)), "{rto:?}");
        }
    }

    #[test]
    fn feedback_of_another_path_does_not_restart_the_timer() {
        let (mut rings, _) = four();
        rings.expire(Time::from_us(102), |of| of.psn > 2);
        assert_eq!((suspects(&mut rings).len(), rings.next_timer()), (0, Some(Time::from_us(103))));
        rings.expire(Time::from_us(200), |_| false);
        assert_eq!((suspects(&mut rings).len(), rings.next_timer()), (0, None));
    }

    #[test]
    fn a_group_goes_with_the_last_of_a_connection_and_stays_with_a_host() {
        for (peers, measured) in [(PeerKind::Connections, false), (PeerKind::Hosts, true)] {
            let (mut rings, group) = four();
            assert_eq!(rings.join(RingScope::Host, HostId(1), RULE), group);
            rings.heard(Time::from_us(20), group, A, &heard(4), Echo::First);
            rings.leave(group, peers);
            assert!(rings.groups[group as usize].rings[0].measured.is_some(), "one is left");
            rings.leave(group, peers);
            assert_eq!(rings.join(RingScope::Host, HostId(1), RULE), group, "kept, or taken again");
            assert_eq!(!rings.groups[group as usize].rings.is_empty(), measured);
        }
    }

    #[test]
    fn queue_pairs_that_come_and_go_leave_nothing() {
        for scope in [RingScope::Host, RingScope::QueuePair] {
            let mut rings = Rings::new();
            for n in 0..10_000 {
                let group = rings.join(scope, HostId(n), RULE);
                rings.sent(group, A, of(n.into()));
                rings.leave(group, PeerKind::Connections);
                // Timer entries of earlier rings are stale, and do not affect the rings that follow.
                rings.expire(Time::from_us(u64::from(n) + 50), |_| true);
            }
            assert_eq!((rings.groups.len(), rings.by_host.len()), (1, 0));
            assert!(rings.timers.len() <= 101, "{} timers", rings.timers.len());
            assert_eq!(suspects(&mut rings), []);
        }
    }

    #[test]
    fn a_timer_of_a_ring_that_is_gone_is_none_of_the_one_in_its_place() {
        let mut rings = Rings::new();
        let first = rings.join(RingScope::QueuePair, HostId(1), RULE);
        rings.sent(first, A, of(1));
        rings.leave(first, PeerKind::Hosts);
        let second = rings.join(RingScope::QueuePair, HostId(1), RULE);
        assert_eq!(second, first);
        rings.sent(second, A, of(50));
        for at in [101, 149, 150] {
            rings.expire(Time::from_us(at), |_| true);
            assert_eq!(
                (suspects(&mut rings).len(), rings.timers.len()),
                if at < 150 { (0, 1) } else { (1, 0) }
            );
        }
    }

    #[test]
    fn a_peer_is_forgotten_whoever_is_in_its_group() {
        let (mut rings, group) = four();
        let other = rings.join(RingScope::Host, HostId(2), RULE);
        rings.sent(other, A, of(5));
        rings.forget(HostId(1));
        assert!(rings.groups[group as usize].rings.is_empty() && rings.is_watched(other, A, &of(5)));
    }

    #[test]
    fn timeouts_in_a_row_double_the_patience_and_hearing_ends_that() {
        let (mut rings, group) = four();
        rings.expire(Time::from_us(101), |_| true);
        assert_eq!(suspects(&mut rings).len(), 4);
        rings.sent(group, A, of(200));
        assert_eq!(rings.next_timer(), Some(Time::from_us(400)));
        rings.heard(Time::from_us(210), group, A, &heard(200), Echo::First);
        rings.expire(Time::from_us(400), |_| true);
        rings.sent(group, A, of(500));
        assert_eq!(rings.next_timer(), Some(Time::from_us(600)));
    }

    /// Section III-G: a packet that is sent resets the timer, an acknowledgement resets it by the latest delay, and
    /// timeouts do not double it.
    #[test]
    fn the_timer_of_the_paper_starts_with_the_last_packet_and_does_not_double() {
        for (rto, after_ack) in [(PathRto::Published, 120), (PathRto::Fixed, 210)] {
            let mut rings = Rings::new();
            let group = rings.join(RingScope::Host, HostId(1), SilenceRule { rto, ..RULE });
            rings.sent(group, A, of(10));
            rings.sent(group, A, of(60));
            rings.expire(Time::from_us(110), |_| true);
            // 100 us after the packet that left at 60 us.
            assert_eq!((suspects(&mut rings).len(), rings.next_timer()), (0, Some(Time::from_us(160))));
            rings.sent(group, A, of(70));
            // 5 us one way: twice that after the latest acknowledgement.
            rings.heard(Time::from_us(110), group, A, &heard(60), Echo::First);
            assert_eq!(suspects(&mut rings), [(10, Lost)]);
            let mut due = || loop {
                let at = rings.next_timer().expect("armed");
                rings.expire(at, |_| true);
                if rings.take_suspect() == Some(Suspect { of: of(70), kind: Timeout }) {
                    return at;
                }
            };
            assert_eq!(due(), Time::from_us(after_ack), "{rto:?}");
            // The next timeout takes as long.
            let wait = if rto == PathRto::Published { 10 } else { 100 };
            rings.expire(Time::from_us(299), |_| true);
            rings.sent(group, A, of(300));
            assert_eq!(rings.next_timer(), Some(Time::from_us(300 + wait)), "{rto:?}");
        }
    }

    #[test]
    fn patience_covers_twice_the_delay_with_its_queue() {
        let mut ring = Ring::new();
        let us = Duration::from_us;
        (ring.measured, ring.shortest_rtt) = (Some((us(70), 65_000_000)), us(10));
        let rule = SilenceRule { min: us(20), ..RULE };
        // 5 us in each direction and 60 us of queue: twice 65 us, and the slack.
        assert_eq!(ring.patience(&rule), us(131));
        assert_eq!(ring.patience(&SilenceRule { rto: PathRto::Published, ..rule }), us(130));
        assert_eq!(ring.patience(&SilenceRule { rto: PathRto::Fixed, ..rule }), us(20));
        ring.measured = Some((us(10), -3));
        assert_eq!(ring.patience(&rule), us(20));
    }

    #[test]
    fn queue_pairs_to_a_host_share_and_by_configuration_do_not() {
        let mut rings = Rings::new();
        let join = |rings: &mut Rings, scope, host| rings.join(scope, HostId(host), RULE);
        let host: [u32; 3] = [1, 1, 2].map(|host| join(&mut rings, RingScope::Host, host));
        assert_eq!(host, [0, 0, 1]);
        let own: [u32; 2] = [1, 1].map(|host| join(&mut rings, RingScope::QueuePair, host));
        assert_eq!(own, [2, 3]);
        rings.sent(2, A, of(1));
        rings.leave(2, PeerKind::Hosts);
        rings.leave(0, PeerKind::Hosts);
        assert_eq!(join(&mut rings, RingScope::QueuePair, 5), 2);
        rings.expire(Time::from_us(1_000), |_| true);
        assert_eq!(rings.take_suspect(), None, "the ring of a queue pair goes with it");
    }

    #[test]
    fn a_failed_path_loses_all_that_is_on_it() {
        let (mut rings, group) = four();
        rings.failed(group, A);
        rings.failed(group, PathId(3));
        assert_eq!(suspects(&mut rings), [(1, Lost), (2, Lost), (3, Lost), (4, Lost)]);
    }
}
