//! Worked examples for a network of 100 Gb/s and 12 us (150,000 bytes) with packets of 4,096 and 4,160 bytes, where
//! the target is 12 us, too; and for that of uet-htsim at 100 Gb/s.

use pathweave_units::{Rate, TrimmedAt};

use super::*;
use crate::testing::{ACK, Host, Scenario, random_operations};
use crate::{Awaited, MeasuredSection};

const US: fn(u64) -> Duration = Duration::from_us;

fn env(base_rtt: Duration, mtu_payload_bytes: u32) -> PolicyEnv {
    PolicyEnv {
        line_rate: Rate::from_gbps(100),
        base_rtt,
        measured: MeasuredSection::with_rtt(base_rtt),
        mtu_payload_bytes,
        mtu_wire_bytes: mtu_payload_bytes + 64,
        ..Scenario::steady().env
    }
}

fn law() -> Controller {
    Controller::new(&NsccConfig::default(), &env(US(12), 4_096))
}

/// Returns the state in uet-htsim's network at 100 Gb/s: 14.0227 us.
fn htsim() -> Controller {
    let config = NsccConfig { delay_target: Some(TARGET_WITH_TRIMS), ..NsccConfig::default() };
    Controller::new(&config, &env(Duration::from_ps(14_022_720), 4_086))
}

/// Returns an acknowledgement of `bytes` bytes whose packet met a queue of this delay.
fn acked(bytes: u64, queue: Duration, marked: bool) -> Acked {
    Acked { bytes, rtt: Some(US(12) + queue), timed_bytes: 4_160, marked }
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-6 * expected.abs().max(1.0), "{found}, expected {expected}");
}

#[test]
fn the_largest_window_of_the_reference_simulator() {
    assert_eq!(htsim().max_window_bytes(), 262_926);
    assert_eq!(htsim().window_bytes(), 262_926);
}

#[test]
fn a_window_of_acknowledgements_at_half_the_target_earns_two_packets() {
    let mut law = law().at(100_000, Time::from_us(1_000));
    // Eight packets would apply the increase.
    law.on_ack(Time::from_us(1_001), &acked(20_000, US(6), false));
    close(law.earned_bytes() * 5.0, 4.0 * 4_096.0 * 0.5);
}

#[test]
fn at_the_target_it_earns_the_fair_step() {
    let mut law = law().at(100_000, Time::from_us(1_000));
    law.on_ack(Time::from_us(1_001), &acked(20_000, US(12), false));
    close(law.earned_bytes() * 5.0, 20_480.0);
    // More than eight packets have arrived: the increase is applied.
    law.on_ack(Time::from_us(1_002), &acked(20_000, US(12), false));
    assert_eq!(law.window_bytes(), 100_000 + 2 * 4_096);
}

#[test]
fn a_constant_step_a_round_trip() {
    close(law().constant_bytes(), 614.4);
    assert!((716.15..716.25).contains(&htsim().constant_bytes()));
    let mut law = law().at(100_000, Time::from_us(1_000));
    law.on_ack(Time::from_us(1_012), &acked(0, US(13), true));
    assert_eq!(law.window_bytes(), 100_000);
    law.on_ack(Time::from_us(1_013), &acked(0, US(13), true));
    assert_eq!(law.window_bytes(), 100_614);
}

#[test]
fn where_nothing_queues_for_a_window_it_grows_by_a_quarter() {
    let mut law = law().at(100_000, Time::from_us(1_000));
    let now = Time::from_us(1_001);
    law.on_ack(now, &acked(100_000, Duration::ZERO, false));
    let before = law.window_bytes();
    // The first window earned a proportional increase; now more than a window has met no queue.
    law.on_ack(now, &acked(20_000, Duration::ZERO, false));
    assert_eq!(law.window_bytes(), before + 5_000);
    law.on_ack(now, &acked(4_000, Duration::from_ns(999), false));
    assert_eq!(law.window_bytes(), before + 6_000);
    // A delay of a microsecond counts as a queue.
    law.on_ack(now, &acked(4_000, US(1), false));
    law.on_ack(now, &acked(4_000, Duration::ZERO, false));
    assert_eq!(law.window_bytes(), before + 6_000);
}

#[test]
fn marked_above_the_target_it_shrinks_once_a_round_trip() {
    for (average_us, left) in [(24, 60_000), (48, 50_000)] {
        let config = NsccConfig { delay_gain: 1e-12, ..NsccConfig::default() };
        let mut law = Controller::new(&config, &env(US(12), 4_096)).at(100_000, Time::from_us(1_000));
        law.set_average(US(average_us));
        law.on_ack(Time::from_us(1_001), &acked(4_160, US(13), true));
        // 1 - 0.8 x 12/24; 1 - 0.8 x 36/48 would be less than half.
        assert!((left - 1..=left).contains(&law.window_bytes()), "{}", law.window_bytes());
        let window = law.window_bytes();
        law.on_ack(Time::from_us(1_010), &acked(4_160, US(13), true));
        assert_eq!(law.window_bytes(), window);
        // Below the target a mark changes the path, not the window.
        law.on_ack(Time::from_us(1_011), &acked(4_160, US(11), true));
        assert_eq!(law.window_bytes(), window);
    }
}

#[test]
fn the_average_follows_slowly_and_falls_where_nothing_is_marked() {
    let mut law = law().at(100_000, Time::from_us(1_000));
    law.on_ack(Time::from_us(1_001), &acked(0, US(10), true));
    close(law.average_ps(), 125_000.0);
    let mut law = self::law().at(100_000, Time::from_us(1_000));
    law.on_ack(Time::from_us(1_001), &acked(0, US(13), false));
    close(law.average_ps(), 0.0125 * 3e6);
}

/// The largest window here is 225,000; an eighth of it is 28,125.
#[test]
fn where_little_came_through_the_window_becomes_that() {
    let collapses = |achieved: u64| {
        let mut law = law().at(100_000, Time::from_us(1_000));
        assert_eq!(law.max_window_bytes(), 225_000);
        law.set_achieved(achieved, 60_000);
        // The check is due after 1,024 us, not at it.
        law.on_ack(Time::from_us(1_025), &acked(0, US(49), true));
        law.window_bytes()
    };
    assert_eq!((collapses(28_124), collapses(100)), (28_124, 4_160));
    assert!(collapses(28_125) > 90_000);
    // The first check only starts the clock.
    let mut law = law();
    law.on_trim(Time::from_us(3), 4_160, TrimmedAt::OnTheWay);
    assert_eq!(law.window_bytes(), 225_000 - 4_160);
}

#[test]
fn marks_of_what_was_in_flight_then_are_ignored() {
    let mut law = law().at(100_000, Time::from_us(1_000));
    law.set_achieved(20_000, 60_000);
    law.on_ack(Time::from_us(1_025), &acked(0, US(49), true));
    assert_eq!(law.window_bytes(), 20_000);
    law.set_average(US(100));
    for at in 0..5 {
        law.on_ack(Time::from_us(1_026 + 20 * at), &acked(10_000, US(40), true));
        assert_eq!(law.window_bytes(), 20_000, "after {at}");
    }
    // An unmarked acknowledgement counts, and after 60,000 bytes marked ones count again.
    law.on_ack(Time::from_us(1_127), &acked(10_000, US(6), false));
    let window = law.window_bytes();
    assert!(window > 20_000);
    law.on_ack(Time::from_us(1_128), &acked(10_000, US(40), true));
    assert!(law.window_bytes() < window);
}

#[test]
fn a_trim_costs_its_bytes() {
    let mut law = law().at(100_000, Time::from_us(1_000));
    law.on_sent(4_150);
    law.on_trim(Time::from_us(1_001), 4_150, TrimmedAt::LastHop);
    assert_eq!((law.window_bytes(), law.in_flight_bytes()), (95_850, 0));
}

#[test]
fn a_trim_at_the_last_hop_may_be_left_to_the_receiver() {
    let config = NsccConfig { last_hop_trims: LastHopTrims::Spare, ..NsccConfig::default() };
    for (at, window) in [(TrimmedAt::LastHop, 100_000), (TrimmedAt::OnTheWay, 95_850)] {
        let mut law = Controller::new(&config, &env(US(12), 4_096)).at(100_000, Time::from_us(1_000));
        law.on_sent(4_150);
        law.on_trim(Time::from_us(1_001), 4_150, at);
        assert_eq!((law.window_bytes(), law.in_flight_bytes()), (window, 0), "{at:?}");
    }
}

#[test]
fn profiles_differ_in_losses_and_in_what_was_not_measured() {
    for (profile, window) in [(NsccProfile::Htsim, 100_000), (NsccProfile::Ue10, 95_850)] {
        let config = NsccConfig { profile, ..NsccConfig::default() };
        let mut law = Controller::new(&config, &env(US(12), 4_096)).at(100_000, Time::from_us(1_000));
        law.on_loss(4_150);
        assert_eq!(law.window_bytes(), window);
        law.on_ack(Time::from_us(1_001), &Acked { bytes: 40_000, ..Acked::default() });
        // It counts as an acknowledgement of average delay, which is zero.
        assert_eq!(law.window_bytes() > window, profile == NsccProfile::Htsim);
    }
}

/// Quick adapt is due 24 us after the last one: at that instant in the specification, after it in uet-htsim, which
/// then adds only the constant step.
#[test]
fn profiles_differ_in_the_instant_at_which_quick_adapt_is_due() {
    for (profile, window) in [(NsccProfile::Htsim, 100_614), (NsccProfile::Ue10, 20_000)] {
        let config = NsccConfig { profile, ..NsccConfig::default() };
        let mut law = Controller::new(&config, &env(US(12), 4_096)).at(100_000, Time::from_us(1_000));
        law.set_achieved(20_000, 60_000);
        law.on_ack(Time::from_us(1_024), &acked(0, US(49), true));
        assert_eq!(law.window_bytes(), window, "{profile:?}");
    }
}

/// A queue pair that opens at 1,000 us: uet-htsim's constant step comes with the first acknowledgement, the
/// specification's a round trip after the opening.
#[test]
fn profiles_differ_in_when_time_begins() {
    for (profile, step) in [(NsccProfile::Htsim, 614), (NsccProfile::Ue10, 0)] {
        let config = NsccConfig { profile, ..NsccConfig::default() };
        let mut law = Controller::new(&config, &env(US(12), 4_096));
        law.begin(Time::from_us(1_000));
        law.on_timeout(125_000);
        assert_eq!(law.window_bytes(), 100_000);
        law.on_ack(Time::from_us(1_012), &acked(0, US(13), true));
        assert_eq!(law.window_bytes(), 100_000 + step, "{profile:?}");
        law.on_ack(Time::from_us(1_013), &acked(0, US(13), true));
        assert_eq!(law.window_bytes(), 100_614);
    }
}

/// With switches that trim, a delay of five targets triggers quick adapt in uet-htsim, and in the specification only
/// if the user configures it.
#[test]
fn profiles_differ_in_delay_alone_where_switches_trim() {
    let fabric = FabricEnv {
        when_full: FullBufferAction::Trim,
        longest_path: None,
        longest_rtt: None,
        line_rate: Rate::from_gbps(100),
        port_rate: Rate::from_gbps(100),
        nic_ports: 1,
        packet_bytes: 4_160,
        awaited: Awaited::Message,
    };
    let (htsim, ue) = (NsccProfile::Htsim, NsccProfile::Ue10);
    for (profile, delay, collapses) in
        [(htsim, None, true), (ue, None, false), (ue, Some(4.0), true), (htsim, Some(6.0), false)]
    {
        let mut config = NsccConfig { profile, collapse_delay: delay, ..NsccConfig::default() };
        config.adapt_to_fabric(&fabric);
        let mut law = Controller::new(&config, &env(US(12), 4_096)).at(100_000, Time::from_us(1_000));
        law.set_achieved(20_000, 60_000);
        // The target is 9 us.
        law.on_ack(Time::from_us(1_025), &acked(0, US(45), false));
        assert_eq!(law.window_bytes() == 20_000, collapses, "{profile:?} {delay:?}");
    }
}

/// A window of 100,000 is 24 packets, half of it 12, so the median is over at most four. For 6, 11, 1 and 8 us, in
/// this order, the medians are 6; 6 (the lower of two); 6 and 6.
#[test]
fn the_median_of_the_last_four_delays_may_count() {
    let config = NsccConfig { median_packets: Some(4), delay_gain: 1.0, ..NsccConfig::default() };
    let mut law = Controller::new(&config, &env(US(12), 4_096)).at(100_000, Time::from_us(1_000));
    for (delay_us, counts_us) in [(6, 6), (11, 6), (1, 6), (8, 6), (9, 8), (10, 8)] {
        law.on_ack(Time::from_us(1_001), &acked(0, US(delay_us), false));
        close(law.average_ps(), f64::from(counts_us) * 1e6);
    }
    // Half of a window of three packets is one packet.
    let mut law = Controller::new(&config, &env(US(12), 4_096)).at(12_500, Time::from_us(1_000));
    for delay_us in [6, 11, 1] {
        law.on_ack(Time::from_us(1_001), &acked(0, US(delay_us), false));
        close(law.average_ps(), delay_us as f64 * 1e6);
    }
}

/// 100 Gb/s and 8 us are 100,000 bytes, of which 1.5 are 150,000.
#[test]
fn a_shorter_round_trip_of_a_full_packet_is_learnt() {
    let measured = |wire_bytes| {
        let mut law = law();
        let acked = Acked { rtt: Some(US(8)), timed_bytes: wire_bytes, ..Acked::default() };
        law.on_ack(Time::from_us(10), &acked);
        (law.base_rtt(), law.max_window_bytes(), law.window_bytes())
    };
    assert_eq!(measured(4_160), (US(8), 150_000, 150_000));
    assert_eq!(measured(4_159), (US(12), 225_000, 225_000));
}

/// The base cannot be below the idle round trip of a path that is known, but below a longer one that is configured.
#[test]
fn no_base_below_that_of_a_known_path_is_learnt() {
    let known = PolicyEnv { measured: MeasuredSection { base_rtt: US(12), links: 2 }, ..env(US(12), 4_096) };
    for (configured_us, least_us) in [(12, 12), (20, 12), (9, 9)] {
        let config = NsccConfig { network_rtt: Some(US(configured_us)), ..NsccConfig::default() };
        let mut law = Controller::new(&config, &known);
        let acked = Acked { rtt: Some(US(8)), timed_bytes: 4_160, ..Acked::default() };
        law.on_ack(Time::from_us(10), &acked);
        assert_eq!(law.base_rtt(), US(least_us), "{configured_us}");
    }
}

/// A line of 100 Gb/s and 400 ns holds 5,000 bytes, less than two packets of 4,160: the window holds three.
#[test]
fn the_largest_window_holds_packets_enough_for_a_short_path() {
    let law = Controller::new(&NsccConfig::default(), &env(Duration::from_ns(400), 4_096));
    assert_eq!(law.max_window_bytes(), 3 * 4_160);
}

fn feedback(kind: FeedbackKind, rtt: Duration) -> Feedback {
    Feedback { kind, wire_bytes: 4_160, rtt, ..ACK }
}

/// Four packets of one acknowledgement, the third of which triggered it, are one event. Those of the next
/// acknowledgement are another.
#[test]
fn acknowledgements_of_one_instant_count_as_one() {
    let mut host = Host::new(1);
    let mut nscc = Nscc::new(&NsccConfig::default(), &env(US(12), 4_096));
    nscc.law = law().at(100_000, Time::from_us(1_000));
    for psn in 0..4 {
        let kind = FeedbackKind::Ack { timed: psn == 2, marked: psn == 2 };
        let rtt = if psn == 2 { US(18) } else { Duration::ZERO };
        nscc.on_feedback(Time::from_us(1_001), &feedback(kind, rtt), &mut host.cx());
    }
    close(nscc.law.average_ps(), 0.0);
    for _ in 0..2 {
        let kind = FeedbackKind::Ack { timed: true, marked: false };
        nscc.on_feedback(Time::from_us(1_001), &feedback(kind, US(18)), &mut host.cx());
    }
    // The first one was marked below the target and earns nothing; the second is processed; the third is pending.
    close(nscc.law.earned_bytes(), 4.0 * 4_096.0 * 0.5 * 4_160.0 / 100_000.0);
    nscc.settle();
    close(nscc.law.earned_bytes(), 2.0 * 4.0 * 4_096.0 * 0.5 * 4_160.0 / 100_000.0);
}

/// The packet that triggered the acknowledgement was reported before, others were not: one event of average delay,
/// with its mark.
#[test]
fn an_acknowledgement_of_what_was_told_before_counts_with_its_mark() {
    let mut host = Host::new(1);
    for (marked, left) in [(true, 60_614), (false, 100_614)] {
        let mut nscc = Nscc::new(&NsccConfig::default(), &env(US(12), 4_096));
        nscc.law = law().at(100_000, Time::from_us(1_000));
        nscc.law.set_average(US(24));
        let now = Time::from_us(1_013);
        nscc.on_feedback(now, &feedback(FeedbackKind::Duplicate { marked }, US(13)), &mut host.cx());
        nscc.settle();
        // Without a measurement the average stays. It is twice the target: 1 - 0.8 x 12/24, plus the constant step of
        // a round trip.
        close(nscc.law.average_ps(), 24e6);
        assert!((left - 1..=left).contains(&nscc.window_bytes()), "{marked}: {}", nscc.window_bytes());
    }
}

#[test]
fn random_operations_break_no_invariant() {
    use crate::picker::PickerConfig;
    let scenario_env = Scenario::steady().env;
    for seed in 0..60 {
        let max_bdp = [1.5, 0.01, 4.0][seed as usize % 3];
        let profile = [NsccProfile::Htsim, NsccProfile::Ue10][seed as usize % 2];
        let config = NsccConfig { max_bdp, profile, ..NsccConfig::default() };
        assert_eq!(config.validate(), Ok(()));
        random_operations(seed, 2_000, &scenario_env, |env, rng| crate::SplitPolicy {
            cc: Nscc::new(&config, env),
            picker: PickerConfig::Rps.build(env, rng),
        });
    }
}
