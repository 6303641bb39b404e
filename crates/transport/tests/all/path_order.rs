//! Recovery by the order of packets on each path, over paths of different delay.

use crate::pair::{Channel, Fixed, MTU, Pair};
use pathweave_policy::{FeedbackKind, PathRto, PathState, PathView, Recovery, RingScope};
use pathweave_transport::{
    Buffer, Endpoint, EndpointConfig, FreePorts, Op, QpConfig, ReceiveMode, Status, Transmit, WorkRequest,
};
use pathweave_units::{Duration, HostId, PathId, QpNum, Time};
use pathweave_wire::Body;

const LIMIT: Duration = Duration::from_ms(100);
const RTO_US: u64 = 300;

fn by_path(scope: RingScope) -> Recovery {
    Recovery::PathOrder {
        window_packets: Some(256),
        scope,
        rto: PathRto::Guarded,
        rto_min: Duration::from_us(RTO_US),
        rto_slack: Duration::ZERO,
    }
}

/// Three paths in round robin; the second is 7 us longer in each direction, the third 20 us. First transmissions of
/// `drops` are lost. Sends 40 packets and checks them.
fn run(drops: &'static [u64]) -> Pair {
    let mut channel = Channel::new(1);
    channel.by_path = [0, 7, 20].map(Duration::from_us).to_vec();
    channel.script = Some(Box::new(move |packet| match packet.segment.body {
        Body::Data(data) => Some(data.retransmit || !drops.contains(&data.psn)),
        _ => None,
    }));
    let mut pair = Pair::new(channel, 100_000, |config| {
        config.recovery = by_path(RingScope::Host);
        config.policy.paths = 3;
        config.policy.window = 64;
    });
    pair.post_recv(1, 1, 50_000, 50_000);
    pair.post(0, 1, Op::Send, 0, 40 * u64::from(MTU));
    pair.run(LIMIT);
    assert_eq!(pair.hosts[1].memory[50_000..90_960], pair.hosts[0].memory[..40_960]);
    assert_eq!(pair.statuses(0), [(1, Status::Success)]);
    pair
}

/// Retransmitted PSNs in order, with their times.
fn resent(pair: &Pair) -> Vec<(Time, u64)> {
    let data = pair.trace.iter().filter_map(|(at, host, segment)| match segment.body {
        Body::Data(data) if *host == 0 && data.retransmit => Some((*at, data.psn)),
        _ => None,
    });
    data.collect()
}

#[test]
fn paths_may_overtake_each_other_as_they_like() {
    let pair = run(&[]);
    assert!(pair.counters(1).out_of_order_max > 20, "the paths differ by more than 20 packets");
    let sender = pair.counters(0);
    assert_eq!((sender.retransmitted_packets, sender.timeouts, sender.lost), (0, 0, 0));
}

#[test]
fn every_path_is_measured_though_faster_ones_tell_of_its_packets_first() {
    let mut channel = Channel::new(1);
    channel.by_path = [0, 7, 20].map(Duration::from_us).to_vec();
    let mut pair = Pair::new(channel, 10, |config| {
        config.recovery = by_path(RingScope::Host);
        config.receive = ReceiveMode::Discard;
        (config.policy.paths, config.policy.window) = (3, 32);
    });
    (0..300).for_each(|wr_id| pair.post(0, wr_id, Op::Send, 0, 10));
    pair.run(LIMIT);
    assert_eq!(pair.counters(0).retransmitted_packets, 0);
    let policy = pair.hosts[0].endpoint.policy(pair.qps[0]).unwrap();
    for rtt_us in [2, 16, 42] {
        let measured = policy.log.iter().filter(|(.., rtt)| *rtt == Duration::from_us(rtt_us)).count();
        assert_eq!(measured, 100, "packets of a path measured");
    }
    assert!(policy.log.iter().any(|(_, kind, _)| *kind == FeedbackKind::PathSample));
}

#[test]
fn one_loss_is_found_by_the_next_packet_of_its_path_and_sent_again_once() {
    let pair = run(&[7]);
    let resent = resent(&pair);
    // Packet 10 is the next one on its path: its acknowledgement arrives 16 us after it left.
    let next = pair.trace.iter().find_map(|(at, _, segment)| match segment.body {
        Body::Data(data) if data.psn == 10 => Some(*at),
        _ => None,
    });
    assert_eq!(resent, [(next.unwrap() + Duration::from_us(16), 7)]);
    let sender = pair.counters(0);
    assert_eq!((sender.retransmitted_packets, sender.lost, sender.timeouts), (1, 1, 0));
    assert_eq!(pair.counters(1).duplicates, 0);
}

#[test]
fn losses_on_several_paths_are_found_each_on_its_own() {
    let pair = run(&[0, 1, 2, 8, 9, 10, 11, 12]);
    let mut psns: Vec<_> = resent(&pair).iter().map(|(_, psn)| *psn).collect();
    psns.sort_unstable();
    assert_eq!(psns, [0, 1, 2, 8, 9, 10, 11, 12]);
    assert_eq!((pair.counters(0).timeouts, pair.counters(1).duplicates), (0, 0));
}

#[test]
fn the_last_packet_of_a_path_waits_for_its_timer() {
    // The last three packets of path 1.
    let pair = run(&[31, 34, 37]);
    let resent = resent(&pair);
    assert_eq!(resent.iter().map(|(_, psn)| *psn).collect::<Vec<_>>(), [31, 34, 37]);
    let sender = pair.counters(0);
    assert_eq!((sender.timeouts, sender.retransmitted_packets), (1, 3));
    // Counted from the latest arrival on that path.
    let early = Time::from_us(RTO_US);
    assert!(resent.iter().all(|(at, _)| *at > early && *at < early + Duration::from_us(60)), "{resent:?}");
    let policy = pair.hosts[0].endpoint.policy(pair.qps[0]).unwrap();
    let told = policy.log.iter().filter(|(_, kind, _)| *kind == FeedbackKind::Timeout).count();
    assert_eq!(told, 3);
}

#[test]
fn a_lost_acknowledgement_costs_a_retransmission_at_most() {
    let mut channel = Channel::new(1);
    let mut dropped = false;
    channel.script = Some(Box::new(move |packet| match packet.segment.body {
        Body::Ack(ack) => {
            let drop = !dropped && ack.psn == 20;
            dropped |= drop;
            Some(!drop)
        }
        _ => None,
    }));
    let mut pair = Pair::new(channel, 100_000, |config| config.recovery = by_path(RingScope::Host));
    pair.post_recv(1, 1, 50_000, 50_000);
    pair.post(0, 1, Op::Send, 0, 40 * u64::from(MTU));
    pair.run(LIMIT);
    // The next acknowledgement reports its arrival, before its absence is taken for a loss.
    assert_eq!((pair.counters(0).retransmitted_packets, pair.statuses(0)), (0, vec![(1, Status::Success)]));
}

#[test]
fn a_dead_channel_ends_in_an_error_after_the_retries() {
    let mut channel = Channel::new(1);
    channel.dead_from = Time::from_us(5);
    let mut pair = Pair::new(channel, 100_000, |config| config.recovery = by_path(RingScope::QueuePair));
    pair.post_recv(1, 1, 50_000, 50_000);
    pair.post(0, 1, Op::Send, 0, 40 * u64::from(MTU));
    pair.run(Duration::from_ms(1_000));
    assert_eq!(pair.statuses(0), [(1, Status::RetryExceeded)]);
}

#[test]
fn a_path_reported_down_loses_what_is_on_it_at_once() {
    let mut channel = Channel::new(1);
    channel.script = Some(Box::new(|packet| match packet.segment.body {
        Body::Data(data) => Some(packet.segment.path != PathId(1) || data.retransmit),
        _ => None,
    }));
    let mut pair = Pair::new(channel, 100_000, |config| {
        config.recovery = by_path(RingScope::Host);
        config.policy.paths = 2;
    });
    pair.post_recv(1, 1, 50_000, 50_000);
    pair.post(0, 1, Op::Send, 0, 10 * u64::from(MTU));
    while pair.now < Time::from_us(20) {
        pair.step();
    }
    assert_eq!(pair.counters(0).lost, 0, "nothing on that path has been heard");
    let views = [PathView::new(PathId(0), PathState::Up), PathView::new(PathId(1), PathState::Down)];
    let (now, qp) = (pair.now, pair.qps[0]);
    pair.hosts[0].endpoint.set_paths(now, qp, &views).unwrap();
    pair.run(LIMIT);
    assert_eq!((pair.counters(0).retransmitted_packets, pair.counters(0).timeouts), (5, 0));
    assert_eq!(pair.statuses(0), [(1, Status::Success)]);
}

/// Two queue pairs between two hosts, on one path.
struct Two {
    hosts: [Endpoint<Fixed>; 2],
    qps: [[QpNum; 2]; 2],
}

fn two(scope: RingScope) -> Two {
    let mut hosts = [0, 1].map(|host| Endpoint::new(EndpointConfig::new(HostId(host))));
    let qps = [0, 1].map(|host: usize| {
        [(); 2].map(|()| {
            let peer = HostId(1 - host as u32);
            let config = QpConfig::new(peer, Fixed::window(16), &[]);
            let config = QpConfig { recovery: by_path(scope), receive: ReceiveMode::Discard, ..config };
            hosts[host].create_qp(Time::ZERO, config)
        })
    });
    for (at_0, at_1) in qps[0].into_iter().zip(qps[1]) {
        hosts[0].connect(at_0, at_1).unwrap();
        hosts[1].connect(at_1, at_0).unwrap();
    }
    Two { hosts, qps }
}

impl Two {
    fn send(&mut self, now: Time, flow: usize) -> Transmit {
        let request = WorkRequest { wr_id: 1, op: Op::Send, local: Buffer(0), len: 100 };
        self.hosts[0].post(now, self.qps[0][flow], request).unwrap();
        self.hosts[0].poll_transmit(now, FreePorts::OPEN).expect("room in the window")
    }
    /// Delivers the packet, then its acknowledgement.
    fn deliver(&mut self, now: Time, packet: &Transmit) {
        self.hosts[1].on_packet(now, HostId(0), &packet.segment, false);
        let ack = self.hosts[1].poll_transmit(now, FreePorts::CONTROL).expect("each is acknowledged");
        self.hosts[0].on_packet(now, HostId(1), &ack.segment, false);
        self.hosts.iter().for_each(Endpoint::assert_invariants);
    }
    fn resent(&mut self, now: Time) -> Option<QpNum> {
        self.hosts[0].poll_transmit(now, FreePorts::OPEN).map(|packet| packet.segment.src_qp)
    }
}

#[test]
fn feedback_of_one_flow_shows_losses_of_another() {
    let mut two = two(RingScope::Host);
    let _lost = two.send(Time::from_us(1), 0);
    let arrives = two.send(Time::from_us(2), 1);
    assert_eq!(two.resent(Time::from_us(3)), None);
    two.deliver(Time::from_us(12), &arrives);
    assert_eq!(two.resent(Time::from_us(12)), Some(two.qps[0][0]));
}

#[test]
fn with_rings_of_their_own_flows_show_nothing_of_each_other() {
    let mut two = two(RingScope::QueuePair);
    let _lost = two.send(Time::from_us(1), 0);
    let arrives = two.send(Time::from_us(2), 1);
    two.deliver(Time::from_us(12), &arrives);
    assert_eq!(two.resent(Time::from_us(12)), None);
    // Nothing happens until the timer.
    let at = two.hosts[0].poll_timer().expect("armed");
    two.hosts[0].on_timer(at);
    assert_eq!((at, two.resent(at)), (Time::from_us(1 + RTO_US), Some(two.qps[0][0])));
}

#[test]
fn packets_of_a_closed_queue_pair_disturb_no_other() {
    let mut two = two(RingScope::Host);
    let _lost = two.send(Time::from_us(1), 0);
    let arrives = two.send(Time::from_us(2), 1);
    let gone = two.qps[0][0];
    two.hosts[0].destroy_qp(gone).unwrap();
    two.deliver(Time::from_us(12), &arrives);
    assert_eq!(two.resent(Time::from_us(12)), None);
    while let Some(at) = two.hosts[0].poll_timer() {
        two.hosts[0].on_timer(at);
    }
    assert_eq!(two.hosts[0].counters().timeouts, 0);
}
