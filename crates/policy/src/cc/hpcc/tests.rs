//! Updates by hand, at 100 Gb/s and a round trip of 10 us: W0 is 125,000 B. The steps are 40 Mb/s.

use pathweave_units::{HostId, TelemetryUnits};

use super::*;
use crate::testing::{ACK, ENV, Host, REQUEST, SENT};

const LINE: f64 = 100e9;
const STEP: f64 = 40e6;

/// A queue pair on one path with one port, whose counters the test moves.
struct Flow {
    hpcc: Hpcc,
    host: Host,
    now: Time,
    sent_bytes: u64,
}

impl Flow {
    fn new(config: &HpccConfig) -> Self {
        let mut flow =
            Flow { hpcc: Hpcc::new(config, &ENV), host: Host::new(1), now: Time::ZERO, sent_bytes: 0 };
        let member = QueuePairId { qp: QpNum(7), peer: HostId(1) };
        flow.hpcc.on_open(Time::ZERO, &member, &mut flow.host.cx());
        flow.sends(10);
        flow.acks(0, Duration::ZERO, 0, 0);
        flow
    }
    /// Sends packets up to this PSN, exclusively.
    fn sends(&mut self, end: u64) {
        (self.hpcc.next_psn..end).for_each(|psn| {
            self.hpcc.on_sent(self.now, &Sent { psn, ..SENT }, &mut self.host.cx());
        });
    }
    /// Acknowledges a packet that the port sent `span` after the last one, `sent_bytes` later, with this queue.
    fn acks(&mut self, psn: u64, span: Duration, sent_bytes: u64, queue_bytes: u64) -> f64 {
        self.hears(ACK.kind, psn, span, sent_bytes, queue_bytes)
    }
    fn hears(
        &mut self,
        kind: FeedbackKind,
        psn: u64,
        span: Duration,
        sent_bytes: u64,
        queue_bytes: u64,
    ) -> f64 {
        self.now += span;
        self.sent_bytes += sent_bytes;
        let mut telemetry = Telemetry::new(TelemetryUnits::for_hosts(Rate::from_gbps(100)));
        telemetry.push(self.now, self.sent_bytes, queue_bytes, Rate::from_gbps(100));
        self.host.shared.put_telemetry(QpNum(7), psn, telemetry);
        self.hpcc.on_feedback(self.now, &Feedback { kind, psn, ..ACK }, &mut self.host.cx());
        self.hpcc.rate
    }
}

fn is_near(value: f64, expected: f64) {
    assert!((value / expected - 1.0).abs() < 1e-9, "{value} is not {expected}");
}

#[test]
fn the_rate_follows_the_utilisation_of_a_whole_round_trip() {
    let mut flow = Flow::new(&HpccConfig::default());
    // 102,400 B in 10 us are .8192; 32,000 B of queue are .256 of W0. U is their sum, since the whole T has passed.
    flow.acks(5, Duration::from_us(0), 0, 32_000);
    let rate = flow.acks(10, Duration::from_us(10), 102_400, 32_000);
    is_near(flow.hpcc.utilisation, 1.0752);
    is_near(rate, LINE / (1.0752 / 0.95) + STEP);
    is_near(flow.hpcc.reference, rate);
    assert_eq!((flow.hpcc.stage, flow.hpcc.round_end), (0, Some(10)));
}

/// The same telemetry has the same effect in a NACK, of a trimmed packet or of one behind a gap.
#[test]
fn negative_acknowledgements_return_telemetry_too() {
    let trimmed = FeedbackKind::Trimmed { at: pathweave_units::TrimmedAt::OnTheWay, marked: false };
    for kind in [ACK.kind, trimmed, FeedbackKind::Lost] {
        let mut flow = Flow::new(&HpccConfig::default());
        flow.hears(kind, 5, Duration::from_us(0), 0, 32_000);
        let rate = flow.hears(kind, 10, Duration::from_us(10), 102_400, 32_000);
        is_near(rate, LINE / (1.0752 / 0.95) + STEP);
    }
}

#[test]
fn the_smaller_of_two_queues_counts_and_time_weighs_the_average() {
    let mut flow = Flow::new(&HpccConfig::default());
    // 25,600 B in 2.5 us are .8192; the queue was empty before. A quarter of T: U = 1 - .25 (1 - .8192) = .9548.
    let rate = flow.acks(10, Duration::from_ns(2_500), 25_600, 64_000);
    is_near(flow.hpcc.utilisation, 0.9548);
    is_near(rate, LINE / (0.9548 / 0.95) + STEP);
}

#[test]
fn below_eta_the_rate_grows_by_steps_and_then_follows_again() {
    let mut flow = Flow::new(&HpccConfig { max_stage: 2, ..HpccConfig::default() });
    (flow.hpcc.rate, flow.hpcc.reference) = (40e9, 40e9);
    // .4096 of the line all the time.
    let mut round = |psn| {
        flow.sends(psn + 1);
        let rate = flow.acks(psn, Duration::from_us(10), 51_200, 0);
        (rate, flow.hpcc.stage)
    };
    let (rates, stages): (Vec<f64>, Vec<u32>) = [10, 20, 30].map(&mut round).into_iter().unzip();
    is_near(rates[0], 40e9 + STEP);
    is_near(rates[1], 40e9 + 2.0 * STEP);
    is_near(rates[2], (40e9 + 2.0 * STEP) / (0.4096 / 0.95) + STEP);
    assert_eq!(stages, [1, 2, 0]);
}

#[test]
fn acknowledgements_within_a_round_trip_start_from_the_same_reference() {
    for (reaction, changes) in [(HpccReaction::EveryAck, true), (HpccReaction::RoundTrip, false)] {
        let mut flow = Flow::new(&HpccConfig { reaction, ..HpccConfig::default() });
        // The first packet was acknowledged with ten sent, so PSN 10 ends the round trip. 10 % of T each, at .8192
        // and a queue of 128,000 B, 1.024 of W0: u = 1.8432, U = 1.08432 and then 1.160208.
        flow.acks(1, Duration::ZERO, 0, 128_000);
        let first = flow.acks(2, Duration::from_us(1), 10_240, 128_000);
        let second = flow.acks(3, Duration::from_us(1), 10_240, 128_000);
        let expected = |utilisation: f64| if changes { LINE * 0.95 / utilisation + STEP } else { LINE };
        is_near(first, expected(1.08432));
        is_near(second, expected(1.160_208));
        assert_eq!((flow.hpcc.reference, flow.hpcc.stage), (LINE, 0));
    }
}

#[test]
fn the_busiest_port_counts() {
    let of = |sent: [u64; 2], at_us| {
        let mut telemetry = Telemetry::new(TelemetryUnits::for_hosts(Rate::from_gbps(100)));
        telemetry.push(Time::from_us(at_us), sent[0], 0, Rate::from_gbps(400));
        telemetry.push(Time::from_us(at_us + 1), sent[1], 0, Rate::from_gbps(100));
        telemetry
    };
    // 204,800 B in 10 us are .4096 of 400 Gb/s, 102,400 B are .8192 of 100 Gb/s.
    let hpcc = Hpcc::new(&HpccConfig::default(), &ENV);
    let (utilisation, seconds) =
        hpcc.busiest(&of([0, 0], 0), &of([204_800, 102_400], 10)).expect("time has passed");
    is_near(utilisation, 0.8192);
    is_near(seconds, 10e-6);
    assert_eq!(hpcc.busiest(&of([0, 0], 0), &of([0, 0], 0)), None);
}

#[test]
fn each_path_is_compared_with_itself_and_more_than_five_ports_with_nothing() {
    let mut flow = Flow::new(&HpccConfig::default());
    let mut of_path = |path: u16, ports| {
        let mut telemetry = Telemetry::new(TelemetryUnits::for_hosts(Rate::from_gbps(100)));
        flow.now += Duration::from_us(10);
        (0..ports).for_each(|_| telemetry.push(flow.now, 0, 1 << 20, Rate::from_gbps(100)));
        flow.hpcc.on_telemetry(5, PathId(path), &telemetry);
        flow.hpcc.rate
    };
    assert_eq!(of_path(1, 6), LINE);
    assert_eq!(of_path(1, 6), LINE, "six ports");
    assert_eq!(of_path(1, 3), LINE, "another number of ports");
    assert!(of_path(1, 3) < LINE);
    (2..66).for_each(|path| {
        of_path(path, 3);
    });
    assert_eq!(flow.hpcc.seen.paths.len(), MOST_PATHS);
}

#[test]
fn the_window_counts_packets_and_the_pace_telemetry_too() {
    let mut flow = Flow::new(&HpccConfig::default());
    (flow.hpcc.rate, flow.now) = (50e9, Time::from_us(100));
    flow.sends(11);
    // 62,500 B of window and 1,250 B a packet: the 50th packet is the last that begins below the window.
    let mut ask = |packets: u32, now: Time| {
        let want =
            SendRequest { inflight_packets: packets, inflight_bytes: u64::from(packets) * 1_250, ..REQUEST };
        flow.hpcc.permit(now, &want, &mut flow.host.cx())
    };
    // 1,292 B at 50 Gb/s take 206.72 ns.
    let due = Time::from_ps(100_206_720);
    assert_eq!(ask(48, Time::from_us(100)), Permit::At(due));
    assert_eq!([ask(49, due), ask(50, due), ask(0, due)], [Permit::Now, Permit::Blocked, Permit::Now]);
}

#[test]
fn the_rate_stays_between_its_bounds() {
    let mut flow = Flow::new(&HpccConfig { max_stage: 0, ..HpccConfig::default() });
    flow.acks(1, Duration::ZERO, 0, 40_000_000);
    is_near(flow.acks(10, Duration::from_us(10), 102_400, 40_000_000), 1e9);
    // An idle port: utilisation 0, and the quotient is infinite.
    flow.sends(20);
    assert_eq!(flow.acks(19, Duration::from_us(10), 0, 0), LINE);
}

#[test]
fn bad_values_name_their_field() {
    let default = HpccConfig::default;
    for (config, field) in [
        (HpccConfig { utilisation: 0.0, ..default() }, "utilisation"),
        (HpccConfig { max_stage: 2_000_000, ..default() }, "max_stage"),
        (HpccConfig { increase: Some(Rate::ZERO), ..default() }, "increase"),
        (HpccConfig { min_rate: Some(Rate::ZERO), ..default() }, "min_rate"),
        (HpccConfig { base_rtt: Some(Duration::ZERO), ..default() }, "base_rtt"),
    ] {
        assert_eq!(config.validate().expect_err(field).field, field);
    }
}
