//! Windows, pacing, marks, control packets, and the turns of queue pairs.

use crate::pair::{Channel, MTU, Pair};
use crate::{LIMIT, dropping};
use pathweave_policy::{CnpPolicy, FeedbackKind, Recovery};
use pathweave_transport::{
    Buffer, Class, Endpoint, EndpointConfig, FreePorts, Op, ReceiveMode, Transmit, WorkRequest,
};
use pathweave_units::{Duration, HostId, PathId, QpNum, Time};
use pathweave_wire::{Ack, Body, Control, ControlKind, NoticePermission, Segment};

#[test]
fn marked_packets_are_reported_and_notified_once_an_interval() {
    let mut channel = Channel::new(1);
    channel.mark = 1.0;
    let mut pair = Pair::new(channel, 40_000, |config| {
        config.receive = ReceiveMode::Discard;
        config.cnp = CnpPolicy::OnMark { interval: Duration::from_us(1) };
    });
    pair.post(0, 1, Op::Send, 0, 16 * u64::from(MTU));
    pair.run(LIMIT);
    // A packet takes 91 ns at 100 Gb/s: packets 0 and 11 are a microsecond apart.
    assert_eq!((pair.counters(1).marked_received, pair.counters(1).cnps_sent), (16, 2));
    let log = &pair.hosts[0].endpoint.policy(pair.qps[0]).unwrap().log;
    let marked = log.iter().filter(|(_, kind, _)| *kind == FeedbackKind::Ack { timed: true, marked: true });
    assert_eq!(marked.count(), 16);
    assert_eq!(log.iter().filter(|(_, kind, _)| *kind == FeedbackKind::Cnp).count(), 2);
}

#[test]
fn the_sender_keeps_to_the_window_of_the_receiver() {
    let mut pair = Pair::new(dropping(&[0]), 400_000, |config| {
        config.policy.window = 1_000;
        config.recovery = Recovery::SelectiveRepeat {
            reorder_packets: 0,
            window_packets: Some(8),
            sender_window_packets: None,
        };
    });
    pair.post_recv(1, 1, 200_000, 200_000);
    pair.post(0, 1, Op::Send, 0, 100 * u64::from(MTU));
    pair.run(LIMIT);
    assert_eq!((pair.counters(1).beyond_window_drops, pair.counters(0).retransmitted_packets), (0, 1));
}

#[test]
fn a_paced_sender_keeps_its_pace() {
    let mut pair = Pair::new(Channel::new(1), 10, |config| {
        config.receive = ReceiveMode::Discard;
        config.policy.gap = Duration::from_us(3);
    });
    pair.post(0, 1, Op::Send, 0, 4);
    pair.post(0, 2, Op::Send, 0, 4);
    pair.post(0, 3, Op::Send, 0, 4);
    pair.run(LIMIT);
    let sent: Vec<_> = pair.trace.iter().filter(|(_, host, _)| *host == 0).map(|(at, ..)| *at).collect();
    assert_eq!(sent, [Time::ZERO, Time::from_us(3), Time::from_us(6)]);
}

/// Copies of the probe and of its answer that the network makes are not reported.
#[test]
fn a_probe_comes_back_once_with_its_round_trip() {
    let mut channel = Channel::new(1);
    channel.duplicate = 1.0;
    let mut pair = Pair::new(channel, 10, |config| {
        config.receive = ReceiveMode::Discard;
        config.policy.probes = 1;
    });
    pair.post(0, 1, Op::Send, 0, 4);
    pair.run(LIMIT);
    let endpoint = &pair.hosts[0].endpoint;
    let told = &endpoint.policy(pair.qps[0]).unwrap().told;
    assert_eq!(*told, [(ControlKind::ProbeReply, Duration::from_us(2))]);
    let sent = endpoint.order_counters(pair.qps[0]).unwrap().controls_sent;
    assert_eq!((sent[ControlKind::Probe], pair.counters(0).sent_packets), (1, 1));
}

#[test]
fn an_echo_of_the_edge_is_heard_and_acknowledges_nothing() {
    let mut endpoint = Endpoint::new(EndpointConfig { nic_ports: 1, ..EndpointConfig::new(HostId(0)) });
    let qp = endpoint.create_qp(Time::ZERO, crate::pair::config(1, 4));
    endpoint.connect(qp, QpNum(9)).unwrap();
    let at = Time::from_us;
    let echo = |sent_at| Segment::new(qp, QpNum(9), PathId(0), Body::Control(Control::EdgeEcho { sent_at }));
    // An echo before anything was sent, or from the future, is malformed.
    endpoint.on_packet(at(1), HostId(1), &echo(Time::ZERO), false);
    let request = WorkRequest { wr_id: 1, op: Op::Send, local: Buffer(0), len: 1 << 20 };
    endpoint.post(at(1), qp, request).unwrap();
    while endpoint.poll_transmit(at(1), FreePorts { data_ports: 1 }).is_some() {}
    endpoint.on_packet(at(2), HostId(1), &echo(at(3)), false);
    let before = (endpoint.inflight(qp), endpoint.qp_counters(qp).unwrap());
    assert_eq!((before.0.unwrap().0, before.1.malformed), (4, 2));
    endpoint.on_packet(at(8), HostId(1), &echo(at(1)), false);
    assert_eq!((endpoint.inflight(qp), endpoint.qp_counters(qp).unwrap()), before);
    assert!(endpoint.poll_transmit(at(8), FreePorts { data_ports: 1 }).is_none(), "no window opens");
    assert!(!endpoint.has_event());
    assert!(endpoint.policy(qp).unwrap().log.is_empty());
    assert_eq!(endpoint.policy(qp).unwrap().told, [(ControlKind::EdgeEcho, Duration::from_us(7))]);
    endpoint.assert_invariants();
}

#[test]
fn a_stamp_renewed_on_the_way_measures_from_there() {
    let mut endpoint = Endpoint::new(EndpointConfig { nic_ports: 1, ..EndpointConfig::new(HostId(0)) });
    let qp = endpoint.create_qp(Time::ZERO, crate::pair::config(1, 4));
    endpoint.connect(qp, QpNum(9)).unwrap();
    let request = WorkRequest { wr_id: 1, op: Op::Send, local: Buffer(0), len: 4 };
    endpoint.post(Time::from_us(1), qp, request).unwrap();
    assert!(endpoint.poll_transmit(Time::from_us(1), FreePorts { data_ports: 1 }).is_some());
    let ack = Ack {
        cumulative: 1,
        psn: 0,
        back: 0,
        sack: 1,
        echo_sent_at: Time::from_us(500),
        received_at: Time::from_us(503),
        packets: 1,
        marked: 0,
        notices: NoticePermission::Welcome,
    };
    let segment = Segment::new(qp, QpNum(9), PathId(0), Body::Ack(ack));
    endpoint.on_packet(Time::from_us(1_006), HostId(1), &segment, false);
    let timed = FeedbackKind::Ack { timed: true, marked: false };
    assert_eq!(endpoint.policy(qp).unwrap().log, [(0, timed, Duration::from_us(506))]);
}

#[test]
fn a_packet_waits_for_its_port_and_control_does_not() {
    let mut endpoint = Endpoint::new(EndpointConfig { nic_ports: 2, ..EndpointConfig::new(HostId(0)) });
    let mut config = crate::pair::config(1, 16);
    config.policy.paths = 4;
    let qp = endpoint.create_qp(Time::ZERO, config);
    endpoint.connect(qp, QpNum(9)).unwrap();
    let request = WorkRequest { wr_id: 1, op: Op::Send, local: Buffer(0), len: 1 << 20 };
    endpoint.post(Time::ZERO, qp, request).unwrap();
    let path_and_port = |transmit: Option<Transmit>| transmit.map(|t| (t.segment.path.0, t.port));
    // Paths 0, 1, 2, 3 leave by ports 0, 1, 0, 1.
    assert_eq!(path_and_port(endpoint.poll_transmit(Time::ZERO, FreePorts::port(1))), None);
    assert_eq!(path_and_port(endpoint.poll_transmit(Time::ZERO, FreePorts::OPEN)), Some((0, 0)));
    assert_eq!(path_and_port(endpoint.poll_transmit(Time::ZERO, FreePorts::port(0))), None);
    let probe = Body::Control(Control::Probe { sent_at: Time::ZERO });
    let segment = Segment::new(qp, QpNum(9), PathId(0), probe);
    endpoint.on_packet(Time::ZERO, HostId(1), &segment, false);
    assert_eq!(endpoint.poll_transmit(Time::ZERO, FreePorts::CONTROL).unwrap().class, Class::Control);
    assert_eq!(path_and_port(endpoint.poll_transmit(Time::ZERO, FreePorts::port(1))), Some((1, 1)));
    endpoint.assert_invariants();
}

#[test]
fn queue_pairs_take_turns() {
    let mut endpoint = Endpoint::new(EndpointConfig::new(HostId(0)));
    let qps: Vec<QpNum> = (0..3)
        .map(|_| {
            let qp = endpoint.create_qp(Time::ZERO, crate::pair::config(1, 2));
            endpoint.connect(qp, QpNum(9)).unwrap();
            let request = WorkRequest { wr_id: 1, op: Op::Send, local: Buffer(0), len: 1 << 20 };
            endpoint.post(Time::ZERO, qp, request).unwrap();
            qp
        })
        .collect();
    let sent = core::iter::from_fn(|| endpoint.poll_transmit(Time::ZERO, FreePorts::OPEN));
    let order: Vec<QpNum> = sent.map(|transmit| transmit.segment.src_qp).collect();
    assert_eq!(order, [qps.clone(), qps].concat(), "two packets each, then the window is full");
}
