//! Tests of MP-RDMA, with values computed by hand and on the test bench.

use std::vec::Vec;

use super::*;
use crate::testing::{ACK, Host, REQUEST, SENT, Scenario, random_operations};

/// Returns an environment with packets of 1,250 bytes at 100 Gb/s: 100 ns each; 100 of them are a BDP.
fn env() -> PolicyEnv {
    PolicyEnv { base_rtt: Duration::from_us(10), paths: 16, ..Scenario::steady().env }
}

fn plain() -> MpRdmaConfig {
    MpRdmaConfig { explore: 0.0, ..MpRdmaConfig::default() }
}

struct Driver {
    policy: MpRdma,
    host: Host,
    now: Time,
    psn: u64,
    inflight: u32,
}

impl Driver {
    fn new(config: &MpRdmaConfig) -> Self {
        let mut host = Host::new(1);
        let policy = config.build(&env(), &mut host.rng);
        Driver { policy, host, now: Time::ZERO, psn: 0, inflight: 0 }
    }
    fn poll(&mut self, retransmit: bool) -> Grant {
        let want = SendRequest {
            psn: self.psn,
            retransmit,
            inflight_packets: self.inflight,
            inflight_bytes: u64::from(self.inflight) * 1_250,
            ..REQUEST
        };
        self.policy.poll_send(self.now, &want, &mut self.host.cx())
    }
    fn send_one(&mut self, retransmit: bool) -> Option<u16> {
        let Grant::Send(path) = self.poll(retransmit) else { return None };
        self.inflight += 1;
        let sent = Sent { path, psn: self.psn, retransmit, inflight_packets: self.inflight, ..SENT };
        self.policy.on_sent(self.now, &sent, &mut self.host.cx());
        self.psn += u64::from(!retransmit);
        Some(path.0)
    }
    fn send(&mut self) -> Vec<u16> {
        core::iter::from_fn(|| self.send_one(false)).collect()
    }
    fn feed(&mut self, path: u16, psn: u64, kind: FeedbackKind, backlogged: bool) {
        self.inflight -= 1;
        let feedback =
            Feedback { kind, path: PathId(path), psn, inflight_packets: self.inflight, backlogged, ..ACK };
        self.policy.on_feedback(self.now, &feedback, &mut self.host.cx());
    }
    fn ack(&mut self, path: u16, marked: bool) -> Vec<u16> {
        self.feed(path, self.psn - 1, FeedbackKind::Ack { timed: true, marked }, true);
        self.send()
    }
}

#[test]
fn the_window_grows_by_a_packet_a_round_trip_and_shrinks_by_half_a_packet_a_mark() {
    let mut driver = Driver::new(&plain());
    assert_eq!(driver.send().len(), 100);
    assert_eq!(driver.ack(3, false), [3]);
    assert!((driver.policy.window_packets() - 100.01).abs() < 1e-9);
    assert!(driver.ack(4, true).is_empty()); // 99.51: the acknowledged packet is not replaced
    assert!((driver.policy.window_packets() - 99.51).abs() < 1e-9);
    assert_eq!(driver.ack(5, true), [5]); // 99.01
    assert!((driver.policy.window_packets() - 99.01).abs() < 1e-9);
    // A hundred unmarked acknowledgements release one packet more, on the path whose acknowledgement completed the
    // window.
    let sent: usize = (0..100).map(|_| driver.ack(6, false).len()).sum();
    assert_eq!(sent, 101);
    assert!((driver.policy.window_packets() - 100.0).abs() < 0.02);
}

#[test]
fn each_mark_can_halve_the_window() {
    let mut driver = Driver::new(&MpRdmaConfig { decrease: Decrease::HalfWindowEachMark, ..plain() });
    driver.send();
    let mark = FeedbackKind::Ack { timed: true, marked: true };
    let windows: Vec<f64> = (0..8)
        .map(|psn| {
            driver.feed(0, psn, mark, true);
            driver.policy.window_packets()
        })
        .collect();
    // It has at least a packet.
    assert_eq!(windows, [50.0, 25.0, 12.5, 6.25, 3.125, 1.5625, 1.0, 1.0]);
}

#[test]
fn halving_the_window_happens_once_a_round_trip() {
    let mut driver = Driver::new(&MpRdmaConfig { decrease: Decrease::HalfWindow, ..plain() });
    driver.send();
    let mark = FeedbackKind::Ack { timed: true, marked: true };
    (0..10).for_each(|psn| driver.feed(0, psn, mark, true));
    assert_eq!(driver.policy.window_packets(), 50.0);
    (10..60).for_each(|psn| driver.feed(0, psn, mark, true));
    driver.send();
    driver.feed(0, 100, mark, true); // sent after the window was halved
    assert_eq!(driver.policy.window_packets(), 25.0);
}

#[test]
fn a_late_acknowledgement_takes_a_packet_and_makes_way_for_a_retransmission_elsewhere() {
    let mut driver = Driver::new(&plain());
    driver.send();
    driver.feed(1, 99, FeedbackKind::Ack { timed: true, marked: false }, true);
    assert_eq!(driver.send(), [1]);
    let before = driver.policy.window_packets();
    driver.feed(2, 34, FeedbackKind::Ack { timed: true, marked: false }, true); // 65 behind
    assert!((driver.policy.window_packets() - (before - 1.0)).abs() < 1e-9);
    assert_eq!(driver.poll(false), Grant::Blocked);
    let path = driver.send_one(true).expect("a retransmission may leave");
    assert_ne!(path, 2);
    assert_eq!(driver.poll(true), Grant::Blocked);
}

#[test]
fn a_loss_is_resent_on_another_path() {
    let mut driver = Driver::new(&plain());
    driver.send();
    for psn in 0..20 {
        driver.feed(9, psn, FeedbackKind::Lost, true);
        assert_ne!(driver.send_one(true).expect("a retransmission may leave"), 9);
    }
    assert_eq!(driver.policy.window_packets(), 80.0);
}

#[test]
fn the_window_never_falls_below_a_packet_and_never_stops() {
    let mut driver = Driver::new(&plain());
    driver.send();
    while driver.inflight > 0 {
        driver.feed(0, 0, FeedbackKind::Timeout, true);
    }
    assert_eq!(driver.policy.window_packets(), 1.0);
    assert_eq!(driver.send().len(), 1);
    assert_eq!(driver.ack(5, false), [5, 5]);
}

#[test]
fn a_pause_longer_than_the_burst_timer_starts_anew() {
    let mut driver = Driver::new(&plain());
    driver.send();
    let clean = FeedbackKind::Ack { timed: true, marked: false };
    (0..100).for_each(|psn| driver.feed(0, psn, clean, false));
    // Releases that were kept while there was nothing to send.
    assert_eq!(driver.send().len(), 100);
    assert_eq!(driver.policy.window_packets(), 100.0, "a window that is not used does not grow");
    (100..200).for_each(|psn| driver.feed(0, psn, clean, psn < 150));
    driver.now += Duration::from_us(50);
    assert_eq!(driver.send().len(), 100);
}

#[test]
fn random_operations_break_no_invariant() {
    for seed in 0..60 {
        let decreases = [Decrease::HalfPacket, Decrease::HalfWindow, Decrease::HalfWindowEachMark];
        let decrease = decreases[(seed % 3) as usize];
        let initial_window_bdp = [1.0, 0.001, 4.0][seed as usize % 3];
        let config = MpRdmaConfig { decrease, initial_window_bdp, ..MpRdmaConfig::default() };
        assert_eq!(config.validate(), Ok(()));
        random_operations(seed, 2_000, &env(), |env, rng| config.build(env, rng));
    }
}
