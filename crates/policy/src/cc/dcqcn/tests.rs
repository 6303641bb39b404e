use pathweave_units::{Bytes, Duration, Rate, Time};
use proptest::prelude::*;

use super::eager::Eager;
use super::*;
use crate::cc::Window;
use crate::testing::{ACK, ENV, Host, REQUEST, SENT};

const GBPS: u64 = 1_000_000_000;

fn env() -> PolicyEnv {
    PolicyEnv { ..ENV }
}

/// Returns a configuration of round numbers, so that a trajectory can be computed by hand.
fn round() -> DcqcnConfig {
    DcqcnConfig {
        gain: Some(0.5),
        alpha_timer: Some(Duration::from_us(100)),
        decrease_interval: Some(Duration::from_us(40)),
        rate_timer: Some(Duration::from_us(100)),
        fast_recovery_stages: Some(2),
        additive_increase: Some(Rate::from_gbps(1)),
        hyper_increase: Some(Rate::from_gbps(4)),
        increase_scale: Some(Rate::ZERO),
        min_rate: Some(Rate::from_gbps(1)),
        ..DcqcnConfig::preset(DcqcnPreset::Laps)
    }
}

fn cnp() -> Feedback {
    Feedback { kind: FeedbackKind::Cnp, wire_bytes: 0, rtt: Duration::ZERO, ..ACK }
}

fn sent(wire_bytes: u32) -> Sent {
    Sent { payload_bytes: wire_bytes - 78, wire_bytes, ..SENT }
}

fn want(inflight_packets: u32) -> SendRequest {
    SendRequest { inflight_packets, inflight_bytes: u64::from(inflight_packets) * 1_250, ..REQUEST }
}

pub(super) fn notify(cc: &mut Dcqcn, at: Time) {
    cc.on_feedback(at, &cnp(), &mut Host::new(1).cx());
}
fn send(cc: &mut Dcqcn, at: Time, wire_bytes: u32) {
    cc.on_sent(at, &sent(wire_bytes), &mut Host::new(1).cx());
}
fn permit(cc: &mut Dcqcn, at: Time, inflight_packets: u32) -> Permit {
    cc.permit(at, &want(inflight_packets), &mut Host::new(1).cx())
}

fn rate_bps(cc: &Dcqcn, us: u64) -> u64 {
    cc.rate(Time::from_us(us)).expect("DCQCN has a rate").as_bps()
}

#[test]
fn sampled_trajectory_through_three_cuts_and_the_three_phases() {
    let mut cc = Dcqcn::new(&round(), &env());
    assert_eq!(rate_bps(&cc, 0), 100 * GBPS);
    notify(&mut cc, Time::ZERO); // starts both clocks; the rate falls when that of decreases is due, at 40
    notify(&mut cc, Time::from_us(10)); // merged with the first
    notify(&mut cc, Time::from_us(20)); // merged, too
    assert_eq!(rate_bps(&cc, 39), 100 * GBPS);
    assert_eq!(rate_bps(&cc, 40), 50 * GBPS); // alpha 1, half
    notify(&mut cc, Time::from_us(50)); // waits for the decrease clock at 80
    assert_eq!(rate_bps(&cc, 79), 50 * GBPS);
    assert_eq!(rate_bps(&cc, 80), 25 * GBPS); // alpha still 1
    assert_eq!(cc.target(Time::from_us(80)), Rate::from_gbps(100)); // no step since the last cut: target kept
    assert_eq!(rate_bps(&cc, 180), 62_500_000_000); // fast recovery 1
    notify(&mut cc, Time::from_us(250));
    assert_eq!(cc.alpha(Time::from_us(279)), 0.5); // 100: notified, stays 1; 200: halves
    // At 280 the rate timer comes first (81.25), then the cut by a quarter.
    assert_eq!(rate_bps(&cc, 280), 60_937_500_000);
    assert_eq!(cc.target(Time::from_us(280)).as_bps(), 81_250_000_000);
    let recovery = [
        (380, 71_093_750_000), // fast recovery 1
        (480, 76_171_875_000), // fast recovery 2
        (580, 79_210_937_500), // additive: target 82.25
        (680, 82_730_468_750), // hyper: target 86.25
        (780, 86_490_234_375), // hyper: target 90.25
    ];
    for (us, bps) in recovery {
        assert_eq!(rate_bps(&cc, us), bps, "at {us} us");
        assert_ne!(rate_bps(&cc, us - 1), bps, "before {us} us");
    }
    assert_eq!(cc.alpha(Time::from_us(640)), 0.09375); // 300: 0.75, then halved at 400, 500, 600
    assert_eq!(cc.next_timer(), None);
}

/// Checks the rate that `cnp_received_mlx` of the HPCC simulator gives after a lone notification. Its
/// `ScheduleDecreaseRateMlx` is 4 us later; by then alpha has been updated four times without a notification.
#[test]
fn a_lone_notification_cuts_one_decrease_interval_later() {
    for info in presets().iter().filter(|info| info.params.reaction == Reaction::Sampled) {
        let mut cc = Dcqcn::new(&DcqcnConfig::preset(info.preset), &env());
        notify(&mut cc, Time::from_us(100));
        let before = Time::from_us(104) - Duration::from_ps(1);
        assert_eq!(cc.rate(before), Some(Rate::from_gbps(100)), "{}", info.name);
        assert_eq!(cc.next_timer(), None, "the cut needs no timer of the endpoint");
        // 100 (1 - (255 / 256)^4 / 2) Gb/s.
        assert_eq!(rate_bps(&cc, 104) / 1_000, 50_776_684, "{}", info.name);
    }
}

#[test]
fn immediate_trajectory_with_timer_and_byte_counter() {
    let config = DcqcnConfig {
        byte_counter: Some(Bytes::new(1_000)),
        rate_timer: Some(Duration::from_us(100)),
        fast_recovery_stages: Some(1),
        additive_increase: Some(Rate::from_gbps(1)),
        hyper_increase: Some(Rate::from_gbps(4)),
        ..DcqcnConfig::preset(DcqcnPreset::Paper)
    };
    let mut cc = Dcqcn::new(&config, &env());
    notify(&mut cc, Time::ZERO);
    notify(&mut cc, Time::from_us(50));
    assert_eq!((rate_bps(&cc, 50), cc.target(Time::from_us(50))), (25 * GBPS, Rate::from_gbps(50)));
    let mut send = |us, bps| {
        send(&mut cc, Time::from_us(us), 1_000);
        assert_eq!(rate_bps(&cc, us), bps, "at {us} us");
    };
    send(60, 37_500_000_000); // fast recovery
    send(70, 44_250_000_000); // additive: target 51
    send(80, 48_125_000_000); // additive: target 52
    let timer = [
        (150, 50_562_500_000), // additive, the timer is at its first step: target 53
        (250, 52_281_250_000), // additive: target 54
        (350, 55_140_625_000), // hyper, both are past F: target 58
    ];
    for (us, bps) in timer {
        assert_eq!(rate_bps(&cc, us), bps, "at {us} us");
    }
}

#[test]
fn the_papers_alpha_rises_with_notifications_and_decays_without() {
    let mut cc = Dcqcn::new(&DcqcnConfig::preset(DcqcnPreset::Paper), &env());
    notify(&mut cc, Time::ZERO);
    assert_eq!(cc.alpha(Time::from_ns(54_999)), 1.0);
    assert_eq!(cc.alpha(Time::from_us(55)), 255.0 / 256.0);
    assert_eq!(cc.alpha(Time::from_us(110)), 255.0 * 255.0 / 65_536.0);
    notify(&mut cc, Time::from_us(60));
    let raised = 255.0 * 255.0 / 65_536.0 + 1.0 / 256.0;
    assert_eq!(cc.alpha(Time::from_us(114)), raised); // the timer restarted at 60
    assert_eq!(cc.alpha(Time::from_us(115)), raised * 255.0 / 256.0);
}

#[test]
fn cuts_are_gated_by_the_decrease_interval() {
    let mut cc = Dcqcn::new(&DcqcnConfig::default(), &env());
    for ns in (0..8_000).step_by(100) {
        assert_eq!(rate_bps(&cc, ns / 1_000), if ns < 4_000 { 100 * GBPS } else { 50 * GBPS });
        notify(&mut cc, Time::from_ns(ns));
    }
    assert_eq!(rate_bps(&cc, 8), 25 * GBPS); // alpha was held at 1
    assert_eq!(rate_bps(&cc, 12), 25 * GBPS);

    let config = DcqcnConfig {
        decrease_interval: Some(Duration::from_us(50)),
        ..DcqcnConfig::preset(DcqcnPreset::Paper)
    };
    let mut cc = Dcqcn::new(&config, &env());
    notify(&mut cc, Time::ZERO);
    notify(&mut cc, Time::from_us(49));
    assert_eq!(rate_bps(&cc, 49), 50 * GBPS);
    notify(&mut cc, Time::from_us(50));
    assert_eq!(rate_bps(&cc, 50), 25 * GBPS);
}

#[test]
fn the_rate_never_falls_below_its_minimum() {
    let mut cc = Dcqcn::new(&DcqcnConfig::default(), &env());
    for us in 0..200 {
        notify(&mut cc, Time::from_us(us));
    }
    assert_eq!(rate_bps(&cc, 200), GBPS);
    let slow = PolicyEnv { line_rate: Rate::from_mbps(500), ..env() };
    let mut cc = Dcqcn::new(&DcqcnConfig::default(), &slow);
    notify(&mut cc, Time::ZERO);
    assert_eq!(rate_bps(&cc, 4), 500_000_000); // the line is slower than the minimum
}

#[test]
fn line_rate_is_left_to_the_nic() {
    let mut cc = Dcqcn::new(&DcqcnConfig::default(), &env());
    for _ in 0..10 {
        assert_eq!(permit(&mut cc, Time::ZERO, 0), Permit::Now);
        send(&mut cc, Time::ZERO, 1_250);
    }
}

/// Returns the default configuration with an alpha that changes so slowly that the first cut is by half.
fn halving() -> DcqcnConfig {
    DcqcnConfig { alpha_timer: Some(Duration::from_us(55)), ..DcqcnConfig::default() }
}

#[test]
fn packets_are_paced_and_idling_earns_nothing() {
    let mut cc = Dcqcn::new(&halving(), &env());
    notify(&mut cc, Time::ZERO); // 50 Gb/s from 4 us on: 1,250 bytes take 200 ns
    assert_eq!(permit(&mut cc, Time::from_ns(4_000), 0), Permit::Now);
    send(&mut cc, Time::from_ns(4_000), 1_250);
    assert_eq!(permit(&mut cc, Time::from_ns(4_080), 1), Permit::At(Time::from_ns(4_200)));
    assert_eq!(permit(&mut cc, Time::from_ns(4_200), 1), Permit::Now);
    assert_eq!(permit(&mut cc, Time::from_ns(9_000), 1), Permit::Now);
    send(&mut cc, Time::from_ns(9_000), 1_250);
    assert_eq!(permit(&mut cc, Time::from_ns(9_000), 2), Permit::At(Time::from_ns(9_200)));
}

#[test]
fn recovery_ends_at_line_rate_without_pacing() {
    let mut cc = Dcqcn::new(&halving(), &env());
    notify(&mut cc, Time::ZERO);
    send(&mut cc, Time::from_us(5), 1_250);
    // Times from the cut at 4 us on. 50 Gb/s is half of the line rate; nine halvings leave 1/1024.
    let after = |steps: u64| 4 + steps * 300;
    let last_paced = Time::from_us(after(9) - 1);
    send(&mut cc, last_paced, 1_250);
    assert!(matches!(permit(&mut cc, last_paced, 1), Permit::At(_)));
    let free = Time::from_us(after(9));
    send(&mut cc, free, 1_250);
    assert_eq!(permit(&mut cc, free, 1), Permit::Now);
    assert!(rate_bps(&cc, after(9)) < 100 * GBPS); // the published trajectory goes on
    assert_eq!(rate_bps(&cc, after(37)), 100 * GBPS);
    assert_eq!(cc.at(Time::from_us(after(40))).due, Time::MAX); // and the timers stop
}

#[test]
fn the_window_bounds_what_is_in_flight_and_can_follow_the_rate() {
    let config = DcqcnConfig {
        window: Some(Window::Bdp(1.0)), // 125,000 bytes: 100 packets
        window_follows_rate: Some(true),
        ..halving()
    };
    let mut cc = Dcqcn::new(&config, &env());
    assert_eq!(permit(&mut cc, Time::ZERO, 99), Permit::Now);
    assert_eq!(permit(&mut cc, Time::ZERO, 100), Permit::Blocked);
    notify(&mut cc, Time::ZERO);
    let cut = Time::from_us(4);
    assert_eq!(permit(&mut cc, cut, 49), Permit::Now);
    assert_eq!(permit(&mut cc, cut, 50), Permit::Blocked);
    let tiny = DcqcnConfig { window: Some(Window::Bdp(1e-3)), ..DcqcnConfig::default() };
    let mut cc = Dcqcn::new(&tiny, &env());
    assert_eq!(permit(&mut cc, Time::ZERO, 0), Permit::Now); // smaller than a packet, yet no deadlock
    assert_eq!(permit(&mut cc, Time::ZERO, 1), Permit::Blocked);
}

#[test]
fn presets_are_in_order_valid_and_scale_as_their_sources_say() {
    for (i, info) in presets().iter().enumerate() {
        assert_eq!((info.preset as usize, info.preset.info().name), (i, info.name));
        assert_eq!(info.params.validate(), Ok(()), "{}", info.name);
        assert_eq!(info.params.fields().len(), 15);
    }
    let steps = |preset: DcqcnPreset, gbps| {
        let env = PolicyEnv { line_rate: Rate::from_gbps(gbps), ..env() };
        let (additive, hyper) = preset.info().params.increases(&env);
        (additive.as_bps() / 1_000_000, hyper.as_bps() / 1_000_000)
    };
    assert_eq!(steps(DcqcnPreset::Hpcc, 100), (20, 200));
    assert_eq!(steps(DcqcnPreset::Hpcc, 400), (80, 800));
    assert_eq!(steps(DcqcnPreset::Conweave, 100), (40, 100));
    assert_eq!(steps(DcqcnPreset::Paper, 400), (40, 200));
    assert_eq!(steps(DcqcnPreset::Laps, 100), (5, 50));
    assert_eq!(steps(DcqcnPreset::Astra, 400), (50, 100));
}

#[test]
fn errors_name_the_field() {
    let error = |config: DcqcnConfig| config.validate().expect_err("must be refused");
    assert_eq!(error(DcqcnConfig { gain: Some(1.5), ..DcqcnConfig::default() }).field, "gain");
    assert_eq!(error(DcqcnConfig { gain: Some(f64::NAN), ..DcqcnConfig::default() }).field, "gain");
    let zero = DcqcnConfig { decrease_interval: Some(Duration::ZERO), ..DcqcnConfig::default() };
    assert_eq!(
        alloc::string::ToString::to_string(&error(zero)),
        "decrease_interval = 0s is not allowed: more than 0s when reaction is \"sampled\""
    );
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Cnp,
    Bytes(u32),
    Look,
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let step = prop_oneof![
        4 => Just(Step::Cnp),
        3 => (78u32..9_000).prop_map(Step::Bytes),
        2 => Just(Step::Look),
    ];
    // Spans of a part of a timer, of whole timers (ties), and long after all timers have stopped.
    let ps = prop_oneof![
        0u64..3_000_000,
        (0u64..80).prop_map(|n| n * 1_000_000),
        0u64..2_000_000_000,
        0u64..40_000_000_000,
    ];
    proptest::collection::vec((ps, step), 1..60)
}

fn configs() -> impl Strategy<Value = DcqcnConfig> {
    let presets = proptest::sample::select(presets().iter().map(|info| info.preset).collect::<Vec<_>>());
    (presets, any::<bool>(), 0u64..20_000, 0u32..7, 1u32..=16, 0u64..=8).prop_map(
        |(preset, clamp, byte_counter, stages, gain, interval)| {
            let params = preset.info().params;
            let interval =
                Duration::from_us(interval).max(params.decrease_interval.min(Duration::from_us(1)));
            DcqcnConfig {
                clamp_target: Some(clamp),
                byte_counter: Some(Bytes::new(byte_counter)),
                fast_recovery_stages: Some(stages),
                gain: Some(f64::from(gain) / 256.0),
                decrease_interval: Some(interval),
                ..DcqcnConfig::preset(preset)
            }
        },
    )
}

use std::vec::Vec;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn lazy_timers_follow_eager_ones_bit_for_bit(config in configs(), steps in steps()) {
        prop_assert_eq!(config.validate(), Ok(()));
        let env = env();
        let mut lazy = Dcqcn::new(&config, &env);
        let mut eager = Eager::new(config.params(), &env);
        let mut now = Time::ZERO;
        for (ps, step) in steps {
            now += Duration::from_ps(ps);
            match step {
                Step::Cnp => {
                    notify(&mut lazy, now);
                    eager.on_cnp(now);
                }
                Step::Bytes(bytes) => {
                    send(&mut lazy, now, bytes);
                    eager.on_bytes(now, bytes);
                }
                Step::Look => eager.run_until(now),
            }
            prop_assert_eq!(lazy.rate(now), Some(Rate::from_bps(eager.rate)));
            prop_assert_eq!(lazy.target(now), Rate::from_bps(eager.target));
            prop_assert!((lazy.alpha(now) - eager.alpha).abs() <= ALPHA_FLOOR);
            prop_assert!(eager.rate <= eager.target);
        }
    }
}
