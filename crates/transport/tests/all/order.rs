//! Packets out of order: reports of gaps, effects of notices, and copies of late packets.

use std::collections::VecDeque;
use std::ops::Range;

use pathweave_policy::{
    CnpPolicy, ControlClass, ControlFeedback, Feedback, FeedbackKind, Grant, Memo, Outgoing, PathView,
    Policy, PolicyCx, Reordering, ReportPolicy, SendRequest, Sent,
};
use pathweave_transport::{
    Buffer, Endpoint, EndpointConfig, Event, FreePorts, Op, QpConfig, ReceiveMode, Transmit, WorkRequest,
};
use pathweave_units::{Bytes, Duration, HostId, PathId, QpNum, Rate, Time, TrimmedAt};
use pathweave_wire::{
    Ack, Body, Control, Data, Missing, MissingCause, Nack, NackReason, NoticePermission, Operation, Segment,
};

const MTU: u16 = 1_000;

/// A policy that returns the scripted grants, then sends everything on path 0.
#[derive(Debug, Default)]
struct Scripted {
    grants: VecDeque<Grant>,
    sent: Vec<(u64, PathId)>,
    copied: Vec<(u64, PathId)>,
    notices: Vec<PathId>,
    log: Vec<(FeedbackKind, PathId, u64)>,
    told: Vec<(Control, PathId)>,
}

impl Policy for Scripted {
    pathweave_policy::ignores!(on_open, on_close, window, path_beyond_window);
    fn poll_send(&mut self, _: Time, _: &SendRequest, _: &mut PolicyCx<'_>) -> Grant {
        self.grants.front().copied().unwrap_or(Grant::Send(PathId(0)))
    }
    fn on_sent(&mut self, _: Time, sent: &Sent, _: &mut PolicyCx<'_>) -> Memo {
        self.grants.pop_front();
        self.sent.push((sent.psn, sent.path));
        Memo::default()
    }
    fn on_copy_sent(&mut self, _: Time, psn: u64, path: PathId, _: u32, _: &mut PolicyCx<'_>) {
        self.grants.pop_front();
        self.copied.push((psn, path));
    }
    fn make_control(
        &mut self,
        now: Time,
        path: PathId,
        in_flight: Range<u64>,
        _: &mut PolicyCx<'_>,
    ) -> Outgoing {
        self.grants.pop_front();
        self.notices.push(path);
        let notice = Control::Notice { first: in_flight.start, last: in_flight.end - 1, sent_at: now };
        Outgoing { control: notice, treatment: ControlClass::AsData }
    }
    fn on_control(&mut self, _: Time, feedback: &ControlFeedback, _: &mut PolicyCx<'_>) {
        self.told.push((feedback.control, feedback.path));
    }
    fn on_feedback(&mut self, _: Time, feedback: &Feedback, _: &mut PolicyCx<'_>) {
        self.log.push((feedback.kind, feedback.path, feedback.psn));
    }
    fn on_paths(&mut self, _: Time, _: &[PathView], _: &mut PolicyCx<'_>) {}
    fn on_timer(&mut self, _: Time, _: &mut PolicyCx<'_>) {}
    fn next_timer(&self) -> Option<Time> {
        None
    }
    fn rate(&self, _: Time) -> Option<Rate> {
        None
    }
}

/// One end, whose peer is the test.
struct End {
    endpoint: Endpoint<Scripted>,
    qp: QpNum,
    now: Time,
}

const PEER: (HostId, QpNum) = (HostId(1), QpNum(77));

const ON_MARK: CnpPolicy = CnpPolicy::OnMark { interval: Duration::ZERO };
const ON_MARK_OR_GAP: CnpPolicy = CnpPolicy::OnMarkOrGap { interval: Duration::ZERO };

impl End {
    fn new(grants: impl IntoIterator<Item = Grant>, cnp: CnpPolicy) -> Self {
        let mut endpoint =
            Endpoint::new(EndpointConfig { mtu_payload: MTU, ..EndpointConfig::new(HostId(0)) });
        let policy = Scripted { grants: grants.into_iter().collect(), ..Scripted::default() };
        let reordering = Reordering::Reported(ReportPolicy {
            high: Bytes::new(2_500),
            low: Bytes::new(1_500),
            ..ReportPolicy::default()
        });
        let config =
            QpConfig { reordering, cnp, receive: ReceiveMode::Discard, ..QpConfig::new(PEER.0, policy, &[]) };
        let qp = endpoint.create_qp(Time::ZERO, config);
        endpoint.connect(qp, PEER.1).expect("just made");
        End { endpoint, qp, now: Time::ZERO }
    }
    fn at(&mut self, us: u64) -> &mut Self {
        self.now = Time::from_us(us);
        self.endpoint.on_timer(self.now);
        self
    }
    fn arrives(&mut self, path: u16, body: Body, ce: bool) -> Vec<Body> {
        let segment = Segment::new(self.qp, PEER.1, PathId(path), body);
        self.endpoint.on_packet(self.now, PEER.0, &segment, ce);
        self.control()
    }
    /// Delivers a data packet of a message of ten.
    fn data(&mut self, psn: u64, ce: bool) -> Vec<Body> {
        let data = Data {
            psn,
            offset: psn as u32 * u32::from(MTU),
            len: MTU,
            op: Operation::Send,
            last: psn == 9,
            ..Data::EMPTY
        };
        self.arrives(0, Body::Data(data), ce)
    }
    fn notice(&mut self, first: u64, last: u64, ce: bool) -> Vec<Body> {
        self.arrives(3, Body::Control(Control::Notice { first, last, sent_at: Time::ZERO }), ce)
    }
    fn control(&mut self) -> Vec<Body> {
        let mut list = Vec::new();
        while let Some(packet) = self.endpoint.poll_transmit(self.now, FreePorts::CONTROL) {
            list.push(packet.segment.body);
        }
        self.endpoint.assert_invariants();
        list
    }
    fn send(&mut self) -> Option<Transmit> {
        let packet = self.endpoint.poll_transmit(self.now, FreePorts::OPEN);
        self.endpoint.assert_invariants();
        packet
    }
    fn post(&mut self, packets: u64) {
        let len = packets * u64::from(MTU);
        let request = WorkRequest { wr_id: 1, op: Op::Send, local: Buffer(0), len };
        self.endpoint.post(self.now, self.qp, request).expect("room");
    }
    fn policy(&self) -> &Scripted {
        self.endpoint.policy(self.qp).expect("there")
    }
}

/// Number of acknowledgements, number of congestion notifications, and reports of missing packets.
fn told(bodies: &[Body]) -> (usize, usize, Vec<Missing>) {
    let acks = bodies.iter().filter(|body| matches!(body, Body::Ack(_))).count();
    let cnps = bodies.iter().filter(|body| matches!(body, Body::Cnp)).count();
    let missing = bodies.iter().filter_map(|body| match body {
        Body::Missing(missing) => Some(*missing),
        _ => None,
    });
    (acks, cnps, missing.collect())
}

fn lost(first: u64, missing: u64) -> Vec<Missing> {
    vec![Missing { first, missing, cause: MissingCause::Lost }]
}

#[test]
fn a_gap_is_named_as_lost_and_notifies_where_it_shall() {
    for (cnp, cnps) in [(ON_MARK, 0), (ON_MARK_OR_GAP, 1), (CnpPolicy::Off, 0)] {
        let mut end = End::new([], cnp);
        assert_eq!(told(&end.data(0, false)), (1, 0, vec![]));
        assert_eq!(told(&end.data(3, false)), (1, cnps, lost(1, 0b11)));
        // Reported once, but every packet ahead of a gap notifies.
        assert_eq!(told(&end.at(1).data(4, false)), (1, cnps, vec![]));
        assert_eq!(told(&end.at(4).data(5, false)), (1, cnps, lost(1, 0b11)));
        assert_eq!(told(&end.data(1, false)), (1, 0, vec![]));
    }
}

/// Oracle 10: a marked notice of 1 to 3, then 4, then the rest in time; and the same with 2 lost.
#[test]
fn packets_after_a_marked_notice_are_awaited() {
    for lose in [false, true] {
        let mut end = End::new([], ON_MARK_OR_GAP);
        end.data(0, false);
        let reply = end.notice(1, 3, true);
        assert!(matches!(reply[..], [Body::Control(Control::NoticeReply { marked: true, .. })]), "{reply:?}");
        assert_eq!(told(&end.at(1).data(4, false)), (1, 0, vec![]));
        for psn in [1, 2, 3].into_iter().filter(|&psn| !(lose && psn == 2)) {
            assert_eq!(told(&end.at(10 + psn).data(psn, false)), (1, 0, vec![]));
        }
        end.at(99);
        assert_eq!(told(&end.control()), (0, 0, vec![]));
        end.at(100);
        let expected = if lose { (0, 1, lost(2, 1)) } else { (0, 0, vec![]) };
        assert_eq!(told(&end.control()), expected);
        end.at(500);
        assert_eq!(told(&end.control()), (0, 0, vec![]), "once");
    }
}

/// Oracle 11, receiver.
#[test]
fn packets_after_an_unmarked_notice_are_requested() {
    let mut end = End::new([], ON_MARK_OR_GAP);
    end.data(0, false);
    end.data(1, false);
    let (_, cnps, missing) = told(&end.notice(1, 3, false));
    assert_eq!((cnps, missing), (0, vec![Missing { first: 2, missing: 0b11, cause: MissingCause::Late }]));
    assert_eq!(told(&end.data(4, false)), (1, 0, vec![]), "announced, so no loss");
}

/// Oracle 11, sender: the policy is asked, and nothing counts as lost.
#[test]
fn late_packets_are_the_policys_affair() {
    let mut end = End::new([], ON_MARK);
    end.post(5);
    for _ in 0..4 {
        end.send().expect("data");
    }
    end.arrives(3, Body::Missing(Missing { first: 2, missing: 0b1011, cause: MissingCause::Late }), false);
    // 2 and 3 are in flight; 5 was never sent.
    let late: Vec<_> = end.policy().log.iter().map(|(kind, _, psn)| (*kind, *psn)).collect();
    assert_eq!(late, [(FeedbackKind::Late, 2), (FeedbackKind::Late, 3)]);
    assert_eq!(end.endpoint.counters().lost, 0);
}

/// Oracle 12: notices are allowed with at most 1,500 bytes held, and not with more than 2,500.
#[test]
fn acknowledgements_pause_notices_while_much_is_held() {
    let mut end = End::new([], CnpPolicy::Off);
    let mut says = |psn| {
        let bodies = end.data(psn, false);
        let Some(Body::Ack(ack)) = bodies.first() else { panic!("{bodies:?}") };
        ack.notices
    };
    // Held behind the gap at 0: one, two, three packets. Each acknowledgement shows the state before.
    let ahead = [1, 2, 3, 5].map(&mut says);
    assert_eq!(
        ahead,
        [
            NoticePermission::Welcome,
            NoticePermission::Welcome,
            NoticePermission::Welcome,
            NoticePermission::Paused
        ]
    );
    // PSN 0 closes the gap up to 3; one packet is left.
    assert_eq!([says(0), says(6)], [NoticePermission::Paused, NoticePermission::Welcome]);
}

/// Oracle 13: a duplicate is acknowledged, and has no other effect.
#[test]
fn a_duplicate_is_acknowledged_and_does_not_notify() {
    let mut end = End::new([], ON_MARK_OR_GAP);
    end.data(0, false);
    end.data(1, false);
    let before = end.endpoint.counters().payload_bytes_received;
    let bodies = end.data(0, true);
    let [Body::Ack(ack)] = bodies[..] else { panic!("{bodies:?}") };
    assert_eq!((ack.cumulative, ack.psn, ack.marked), (2, 0, 1), "the mark is told, for the path's sake");
    assert_eq!(end.endpoint.counters().payload_bytes_received, before);
    assert!(end.endpoint.poll_event().is_none());
}

fn ack(psn: u64, cumulative: u64, sent_at: Time, now: Time, marked: u16) -> Body {
    Body::Ack(Ack {
        cumulative,
        psn,
        sack: 1,
        echo_sent_at: sent_at,
        received_at: now,
        packets: 1,
        marked,
        ..Ack::EMPTY
    })
}

/// Oracle 14, and the accounting of a copy: not in flight, not lost; whichever arrives first counts.
#[test]
fn a_copy_is_accounted_apart() {
    use Grant::{Control as Say, Copy, Send};
    let (old, new) = (PathId(0), PathId(4));
    let grants = [Send(old), Send(old), Say(new), Copy { psn: 1, path: new }, Send(new)];
    let mut end = End::new(grants, ON_MARK);
    end.post(3);
    let mut packets = Vec::new();
    for us in 0..5 {
        end.at(us);
        packets.push(end.send().expect("granted"));
    }
    assert!(end.send().is_none());
    let Body::Control(Control::Notice { first, last, .. }) = packets[2].segment.body else {
        panic!("{:?}", packets[2])
    };
    assert_eq!((first, last, packets[2].ecn_capable), (0, 1, true));
    let Body::Data(copy) = packets[3].segment.body else { panic!("{:?}", packets[3]) };
    let Body::Data(original) = packets[1].segment.body else { panic!("{:?}", packets[1]) };
    assert_eq!(Data { retransmit: false, sent_at: original.sent_at, ..copy }, original);
    assert!(packets[3].payload.is_some() && packets[3].segment.path == new);
    let counters = end.endpoint.counters();
    assert_eq!((counters.sent_packets, counters.copied_packets, counters.notice_packets), (3, 1, 1));
    assert_eq!((counters.payload_bytes_sent, counters.retransmitted_packets), (3_000, 0));
    assert_eq!(counters.extra_wire_bytes, u64::from(packets[2].wire_bytes + packets[3].wire_bytes));
    assert_eq!(end.endpoint.inflight(end.qp).expect("there").0, 3);

    // The copy arrives first, on the new path, marked; then the original.
    let at = Time::from_us;
    end.at(6).arrives(4, ack(1, 0, at(3), at(5), 1), false);
    end.at(7).arrives(0, ack(1, 0, at(1), at(6), 0), false);
    end.at(8).arrives(0, ack(0, 2, at(0), at(7), 0), false);
    let log = &end.policy().log;
    let untimed = FeedbackKind::Ack { timed: false, marked: true };
    assert_eq!(log[0], (untimed, old, 1), "arrived, by whatever way");
    assert_eq!(
        log[1],
        (FeedbackKind::Duplicate { marked: true }, new, 0),
        "and this is what it says of the path"
    );
    assert_eq!(log[2], (FeedbackKind::Duplicate { marked: false }, old, 0));
    assert_eq!(log[3], (FeedbackKind::Ack { timed: true, marked: false }, old, 0));
    assert_eq!(end.endpoint.inflight(end.qp).expect("there").0, 1);
    end.at(9).arrives(4, ack(2, 3, at(4), at(8), 0), false);
    let done = std::iter::from_fn(|| end.endpoint.poll_event()).filter(|e| matches!(e, Event::Completion(_)));
    assert_eq!(done.count(), 1);
}

/// Four packets on one path each, one per microsecond.
fn four_on_their_way() -> End {
    let mut end = End::new((0..4).map(|path| Grant::Send(PathId(path))), CnpPolicy::Off);
    end.post(4);
    for us in 0..4 {
        end.at(us).send().expect("granted");
    }
    end
}

/// The acknowledgement of 1 and 3 was delayed when 2 arrived late and marked. The acknowledgement looks back from 3
/// and is triggered by 2. Mark and stamps are those of 2, not of the others, about whose paths it tells nothing.
#[test]
fn the_mark_is_that_of_the_packet_that_caused_the_acknowledgement() {
    let mut end = four_on_their_way();
    let Body::Ack(of_three) = ack(3, 0, Time::from_us(2), Time::from_us(9), 1) else { unreachable!() };
    let late = Ack { back: 1, sack: 0b111, packets: 3, ..of_three };
    end.at(10).arrives(2, Body::Ack(late), false);
    let told = |timed, marked| FeedbackKind::Ack { timed, marked };
    let log = [
        (told(false, false), PathId(1), 1),
        (told(true, true), PathId(2), 2),
        (told(false, false), PathId(3), 3),
    ];
    assert_eq!(end.policy().log, log);
    // An acknowledgement triggered by 3 itself tells nothing new about 3, but measures its path.
    end.at(11).arrives(3, ack(3, 0, Time::from_us(3), Time::from_us(10), 1), false);
    assert_eq!(end.policy().log[3..], [(FeedbackKind::Duplicate { marked: true }, PathId(3), 0)]);
    // An acknowledgement of a copy that the network made, and the first to report 0: neither the mark nor the age of
    // the copy belongs to 0, and they tell nothing new about the path.
    end.at(12).arrives(3, ack(3, 4, Time::from_us(3), Time::from_us(11), 1), false);
    assert_eq!(end.policy().log[4..], [(told(false, false), PathId(0), 0)]);
}

/// The NACK of a trimmed packet acknowledges nothing: no window may grow by the arrivals that it reports. The next
/// acknowledgement reports them again.
#[test]
fn a_trimmed_packet_acknowledges_nothing() {
    let mut end = four_on_their_way();
    let reason = NackReason::Trimmed(TrimmedAt::OnTheWay);
    let nack = Nack { expected: 1, psn: 3, sack: 0b0110, reason, marked: false };
    end.at(10).arrives(3, Body::Nack(nack), false);
    let trimmed = FeedbackKind::Trimmed { at: TrimmedAt::OnTheWay, marked: false };
    assert_eq!(end.policy().log, [(trimmed, PathId(3), 3)]);
    assert_eq!(end.endpoint.inflight(end.qp).expect("there").0, 3);
    end.at(11).arrives(2, ack(2, 3, Time::from_us(2), Time::from_us(10), 0), false);
    let told = |timed| FeedbackKind::Ack { timed, marked: false };
    let log = [(told(false), PathId(0), 0), (told(false), PathId(1), 1), (told(true), PathId(2), 2)];
    assert_eq!(end.policy().log[1..], log);
}

#[test]
fn reported_losses_are_resent_unless_possibly_in_flight() {
    let mut end = End::new([], ON_MARK);
    end.post(5);
    for us in 0..4 {
        end.at(us);
        end.send().expect("data");
    }
    let at = Time::from_us;
    // 2 has arrived, so 1 was overtaken; 3 was not.
    end.at(5).arrives(0, ack(2, 1, at(2), at(4), 0), false);
    end.arrives(0, Body::Missing(Missing { first: 1, missing: 0b101, cause: MissingCause::Lost }), false);
    assert_eq!(end.endpoint.counters().lost, 1);
    let Some(Transmit { segment: Segment { body: Body::Data(again), .. }, .. }) = end.send() else {
        panic!("nothing is sent again")
    };
    assert_eq!((again.psn, again.retransmit), (1, true));
    // Reported again at once: the retransmission has had no time to arrive.
    end.arrives(0, Body::Missing(Missing { first: 1, missing: 1, cause: MissingCause::Lost }), false);
    assert_eq!(end.endpoint.counters().lost, 1);
}

#[test]
fn the_policy_hears_when_notices_are_paused_and_welcome_again() {
    let mut end = End::new([], ON_MARK);
    end.post(4);
    for us in 0..3 {
        end.at(us);
        end.send().expect("data");
    }
    let says = |psn: u64, notices| {
        let Body::Ack(ack) = ack(psn, psn + 1, Time::from_us(psn), Time::from_us(3), 0) else {
            unreachable!()
        };
        Body::Ack(Ack { notices, ..ack })
    };
    end.at(5);
    for (psn, notices) in
        [(0, NoticePermission::Paused), (1, NoticePermission::Paused), (2, NoticePermission::Welcome)]
    {
        end.arrives(0, says(psn, notices), false);
    }
    let toggles: Vec<_> = end
        .policy()
        .log
        .iter()
        .filter(|(kind, ..)| matches!(kind, FeedbackKind::NoticeFlow(_)))
        .map(|e| e.0)
        .collect();
    assert_eq!(toggles, [NoticePermission::Paused, NoticePermission::Welcome].map(FeedbackKind::NoticeFlow));
}

/// The peer may announce any range.
#[test]
fn a_notice_of_everything_makes_a_handful_of_packets() {
    let mut end = End::new([], CnpPolicy::Off);
    // The receiver accepts 1,024 packets ahead: those may be missing, 64 to a report.
    let said = end.notice(0, (1 << 23) - 1, false);
    assert_eq!(said.len(), 1 + 16);
    assert!(
        matches!(said[16], Body::Missing(Missing { first: 960, missing: u64::MAX, .. })),
        "{:?}",
        said[16]
    );
    // No packet can be in flight beyond that.
    assert_eq!(end.notice(1_024, 2_000, false), []);
    assert_eq!(end.endpoint.qp_counters(end.qp).expect("it is there").malformed, 1);
}

#[test]
fn notices_without_end_leave_a_bounded_queue() {
    let mut end = End::new([], CnpPolicy::Off);
    for n in 0..100_000 {
        let notice = Control::Notice { first: 0, last: 1_000 + n % 20, sent_at: Time::ZERO };
        let segment = Segment::new(end.qp, PEER.1, PathId(3), Body::Control(notice));
        end.endpoint.on_packet(end.now, PEER.0, &segment, false);
    }
    let said = end.control();
    let reports = said.iter().filter(|body| matches!(body, Body::Missing(_))).count();
    assert_eq!((reports, said.len()), (64, 1 << 16));
    // Once they have left, more can be queued.
    assert_eq!(end.notice(0, 1_000, false).len(), 1 + 16);
}
