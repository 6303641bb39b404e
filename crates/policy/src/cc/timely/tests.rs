use super::*;
use crate::MeasuredSection;
use crate::testing::{ACK, ENV, Host, REQUEST, SENT};
use alloc::string::ToString;

const US: fn(u64) -> Duration = Duration::from_us;
const GBPS: f64 = 1e9;

fn timely(config: TimelyConfig) -> Timely {
    let env = PolicyEnv {
        base_rtt: US(8),
        mtu_wire_bytes: 1_048,
        mtu_payload_bytes: 1_000,
        paths: 1,
        measured: MeasuredSection { base_rtt: US(8), links: 4 },
        ..ENV
    };
    Timely::new(&config, &env)
}

fn feed(timely: &mut Timely, kind: FeedbackKind, at_us: u64, rtt: Duration) {
    let feedback = Feedback { kind, wire_bytes: 1_048, rtt, ..ACK };
    timely.on_feedback(Time::from_us(at_us), &feedback, &mut Host::new(1).cx());
}

fn ack(timely: &mut Timely, at_us: u64, rtt_us: u64) {
    feed(timely, FeedbackKind::Ack { timed: true, marked: false }, at_us, US(rtt_us));
}

/// Returns the state after two round-trip times with this average difference, in microseconds.
fn with_difference(us: f64) -> Timely {
    let mut timely = timely(TimelyConfig::default());
    timely.difference_ps = us * 1e6;
    timely
}

#[test]
fn factors_by_hand() {
    // 1 - 0.8 x (1 - 500 / 1012) = 0.5953
    let Verdict::Decrease(factor) = with_difference(0.0).verdict(US(1_012)) else { panic!() };
    assert!((factor - 0.595_257).abs() < 1e-6, "{factor}");
    // A gradient of 0.5 is a difference of 10 us over 20: 1 - 0.8 x 0.5
    let Verdict::Decrease(factor) = with_difference(10.0).verdict(US(499)) else { panic!() };
    assert!((factor - 0.6).abs() < 1e-12);
    assert_eq!(with_difference(10.0).verdict(US(49)), Verdict::Increase);
    assert_eq!(with_difference(0.0).verdict(US(499)), Verdict::Increase);
    // A gradient of 2 would make the rate negative: the factor is limited to 0, and the rate to its minimum.
    assert_eq!(with_difference(40.0).verdict(US(499)), Verdict::Decrease(0.0));
}

#[test]
fn the_sixth_increase_in_a_row_is_hyperactive() {
    let mut timely = timely(TimelyConfig::default());
    timely.bps = 50.0 * GBPS;
    ack(&mut timely, 100, 40); // Nothing to compare it with.
    assert_eq!(timely.bps, 50.0 * GBPS);
    for n in 1..=5u32 {
        ack(&mut timely, 100 + u64::from(n) * 50, 40);
        // 10 Mb/s for each 10 Gb/s of line rate.
        assert_eq!(timely.bps, 50.0 * GBPS + f64::from(n) * 1e8);
    }
    ack(&mut timely, 400, 40);
    assert_eq!(timely.bps, 51.0 * GBPS, "five more steps at once");
    ack(&mut timely, 1_000, 600);
    ack(&mut timely, 1_100, 40);
    assert_eq!(timely.increases, 1, "a decrease ends the row");
}

#[test]
fn the_gradient_is_an_average_of_differences() {
    let mut timely = timely(TimelyConfig::default());
    ack(&mut timely, 100, 60);
    ack(&mut timely, 200, 68);
    // 0.875 x 8 = 7 us, a gradient of 0.35: 1 - 0.8 x 0.35 = 0.72.
    assert!((timely.bps - 72.0 * GBPS).abs() < 1.0);
    ack(&mut timely, 300, 60);
    // 0.125 x 7 - 0.875 x 8 is negative: 100 Mb/s more.
    assert!((timely.bps - 72.1 * GBPS).abs() < 1.0);
}

#[test]
fn one_update_a_round_trip_but_one_for_each_echo() {
    let mut timely = timely(TimelyConfig::default());
    ack(&mut timely, 2_000, 1_000);
    ack(&mut timely, 3_000, 1_000); // Sent at 2,000: just after the update.
    let once = timely.bps;
    assert!((once - 60.0 * GBPS).abs() < 1.0); // 1 - 0.8 x (1 - 500 / 1000)
    ack(&mut timely, 3_999, 1_000);
    assert_eq!(timely.bps, once, "sent before the last update");
    feed(&mut timely, FeedbackKind::EdgeRtt, 4_000, US(1_000));
    feed(&mut timely, FeedbackKind::EdgeRtt, 4_005, US(1_000));
    assert!((timely.bps - once * 0.6 * 0.6).abs() < 1.0);
}

#[test]
fn answers_of_the_edge_may_update_once_a_round_trip() {
    let per_round_trip =
        TimelyConfig { edge_updates: Some(EdgeUpdates::PerRoundTrip), ..TimelyConfig::default() };
    let mut timely = timely(per_round_trip);
    // 5 us apart, of 1,000 us each: those for packets that left before the last update do not count.
    for at in (4_000..=5_000).step_by(5) {
        feed(&mut timely, FeedbackKind::EdgeRtt, at, US(1_000));
    }
    // The first has no predecessor, and the last left with the update at 4,000: 1 - 0.8 x (1 - 500 / 1000)
    assert!((timely.bps - 60.0 * GBPS).abs() < 1.0);
}

#[test]
fn the_rate_has_a_floor_and_paces() {
    let mut timely = timely(TimelyConfig::default());
    for n in 0..200 {
        feed(&mut timely, FeedbackKind::EdgeRtt, n, US(5_000));
    }
    assert_eq!(timely.rate(Time::ZERO), Some(Rate::from_gbps(1)));
    let sent = Sent { payload_bytes: 1_000, wire_bytes: 1_048, ..SENT };
    let want = SendRequest {
        psn: 1,
        payload_bytes: 1_000,
        wire_bytes: 1_048,
        inflight_packets: 1,
        inflight_bytes: 1_048,
        ..REQUEST
    };
    let now = Time::from_us(1_000);
    timely.on_sent(now, &sent, &mut Host::new(1).cx());
    // 1,048 B at 1 Gb/s
    assert_eq!(timely.permit(now, &want, &mut Host::new(1).cx()), Permit::At(now + Duration::from_ns(8_384)));
}

#[test]
fn presets_differ_where_they_say() {
    let step = |preset| timely(TimelyConfig::preset(preset)).step_bps;
    assert_eq!((step(TimelyPreset::Hpcc), step(TimelyPreset::Paper)), (1e8, 1e7));
    let near = TimelyPreset::Near.params();
    assert_eq!((near.t_low, near.t_high, near.min_rtt), (US(10), US(100), US(6)));
    let crossed = TimelyConfig { t_high: Some(US(40)), ..TimelyConfig::default() };
    assert_eq!(crossed.validate().unwrap_err().to_string(), "t_high = 40us is not allowed: more than t_low");
}

/// At 100 Mb/s a packet takes a hundred times as long as at 10 Gb/s. A round-trip time of 50 us is 2.5 times the base
/// of 20 us.
#[test]
fn slow_lines_have_long_delays() {
    let of = |mbps, us| {
        let config = TimelyConfig::default().scaled_to(Rate::from_mbps(mbps), US(us));
        assert_eq!(config.validate(), Ok(()));
        let p = config.params();
        (p.t_low, p.t_high, p.min_rtt, p.min_rate)
    };
    assert_eq!(of(100, 50), (US(5_000), US(50_000), US(2_000), Rate::from_mbps(1)));
    assert_eq!(of(100_000, 50), (US(125), US(1_250), US(50), Rate::from_gbps(1)));
    assert_eq!(of(100_000, 10), (US(50), US(500), US(20), Rate::from_gbps(1)));
    let slow = TimelyConfig::preset(TimelyPreset::Paper).scaled_to(Rate::from_mbps(100), US(50)).params();
    assert_eq!(slow.step_scale, Rate::from_gbps(10));
}
