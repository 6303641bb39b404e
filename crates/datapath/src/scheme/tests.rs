//! All schemes as adapted to software hosts, and the resulting parameters of some.

use pathweave_policy::cc::{CcConfig, Window};
use pathweave_policy::{PolicyConfig, ReflexConfig, SplitConfig};
use pathweave_units::Rate;

use super::*;

#[test]
fn gives_up_when_the_peer_counts_as_dead() {
    let mut config = DeviceConfig::loopback();
    for seconds in [1, 5, 60] {
        config.peer_timeout = Duration::from_secs(seconds);
        let after = timeouts(&config).give_up_after();
        assert!(after >= Span::from_ms(1_000 * seconds) && after < Span::from_ms(1_000 * seconds + 200));
    }
}

#[test]
fn schemes_that_read_telemetry_are_refused() {
    let refused = find("hpcc").unwrap_err();
    assert_eq!(refused, ConfigError::NeedsTelemetry { name: "hpcc".into() });
    assert!(refused.to_string().ends_with("the nearest scheme without them is \"swift\""), "{refused}");
    assert!(of_connections().all(|name| name != "hpcc"));
}

#[test]
fn only_delay_based_controls_ignore_host_delay() {
    let config = DeviceConfig { host_delay: Duration::from_millis(3), ..DeviceConfig::loopback() };
    let idle = DeviceConfig { host_delay: Duration::ZERO, ..config.clone() };
    let thresholds = |policy: &PolicyConfig| match policy {
        PolicyConfig::Laps(laps) => laps.host_delay,
        PolicyConfig::Split(SplitConfig { cc: CcConfig::Timely(timely), .. })
        | PolicyConfig::Reflex(ReflexConfig { cc: CcConfig::Timely(timely), .. }) => timely.params().t_low,
        PolicyConfig::Split(SplitConfig { cc: CcConfig::Swift(swift), .. })
        | PolicyConfig::Reflex(ReflexConfig { cc: CcConfig::Swift(swift), .. }) => {
            swift.queue_target.expect("hosts are given one")
        }
        _ => Span::ZERO,
    };
    let mut told = Vec::new();
    for info in schemes().iter().filter(|info| (info.make)().service.is_connection()) {
        let on = |config| for_hosts((info.make)(), config, 1, None, None);
        let (scheme, without) = (on(&config), on(&idle));
        let rtts = rtts(&scheme, &config, None);
        // The network's delay is 50 us.
        let longer = rtts.base - Span::from_us(50);
        let higher = thresholds(&scheme.policy) - thresholds(&without.policy);
        assert_eq!(rtts.base, rtts.least, "{}", info.name);
        match (longer.as_ps(), higher.as_ps()) {
            (0, 0) => {}
            (3_000_000_000, 0) | (0, 3_000_000_000) => told.push(info.name),
            _ => panic!("{}: {longer} and {higher}", info.name),
        }
    }
    for name in ["udmp", "udmp-published", "swift", "swift-rps", "timely", "reps", "laps", "reflex-swift"] {
        assert!(told.contains(&name), "{name}: {told:?}");
    }
    for name in ["ecmp", "rps", "dctcp", "plb", "mprdma", "dlbf", "qp16"] {
        assert!(!told.contains(&name), "{name}: {told:?}");
    }
}

#[test]
fn thresholds_of_delay_are_above_that_of_hosts_and_windows_are_not_as_much_longer() {
    let config = |gbps| DeviceConfig { line_rate: Rate::from_gbps(gbps), ..DeviceConfig::loopback() };
    let on = |name, gbps| for_hosts(find(name).unwrap(), &config(gbps), 1, None, None).policy;
    // The network's 50 us are 2.5 times TIMELY's 20 us, and so is T_low; hosts add 1 ms.
    let PolicyConfig::Split(SplitConfig { cc: CcConfig::Timely(timely), .. }) = on("timely", 100) else {
        panic!("TIMELY")
    };
    assert_eq!(timely.params().t_low, Span::from_us(1_125));
    assert_eq!(timely.params().window, Window::Bdp(1.0));
    let most = |policy| match policy {
        PolicyConfig::Split(SplitConfig { cc: CcConfig::Swift(swift), .. }) => swift.max_bdp,
        other => panic!("{other:?}"),
    };
    // At 100 Gb/s the bytes that leave in 50 us, as in the simulator; at 1 Gb/s three quarters of those that leave in
    // 1.05 ms.
    for (gbps, share) in [(100, 1.0), (1, 15.75)] {
        let is = most(on("swift", gbps)) / most(find("swift").unwrap().policy);
        assert!((is - share).abs() < 1e-9, "{gbps} Gb/s: {is}");
    }
}

/// Linux grants 212,992 bytes by default and reports twice as much, of which half counts: 21 packets of 8,960 + 1,024
/// bytes. That is below the lower bound of 319,488 bytes, which hold 134 packets of 1,344 + 1,024 bytes and nine of
/// 32,576 + 1,024.
#[test]
fn packets_in_flight_fit_the_socket_buffer_at_any_packet_size() {
    let most = |mtu_payload, buffer| {
        let config = DeviceConfig { mtu_payload, ..DeviceConfig::loopback() };
        for_hosts(find("weave").unwrap(), &config, 16, buffer, None).recovery.window_packets().unwrap()
    };
    let by_default = Some(425_984);
    assert_eq!([1_344, 8_960, 32_576].map(|mtu| most(mtu, by_default)), [134, 32, 9]);
    assert_eq!([1_344, 32_576].map(|mtu| most(mtu, Some(16 << 20))), [3_542, 249]);
    assert_eq!(most(32_576, Some(4_096)), 9, "whatever the system grants");
    assert!(most(32_576, None) > 249);
}

/// 65,487 bytes over 1,344 + 130 are 44, over 256 + 130 more than the 64 datagrams of a send, over 8,900 + 130 seven,
/// over 32,576 + 130 two.
#[test]
fn weave_keeps_to_a_path_for_as_much_as_one_send_holds() {
    let run = |mtu_payload| {
        let config = DeviceConfig { mtu_payload, ..DeviceConfig::loopback() };
        match for_hosts(find("weave").unwrap(), &config, 16, None, None).policy {
            PolicyConfig::Weave(weave) => weave.run_packets,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!([1_344, 256, 8_900, 32_576].map(run), [44, 64, 7, 2]);
}

#[test]
fn the_first_timeout_is_as_late_as_asked_for() {
    let mut config = DeviceConfig::loopback();
    assert_eq!(timeouts(&config).timeout, Span::from_ms(10));
    config.retransmit_after = Duration::from_millis(5);
    assert_eq!(timeouts(&config).timeout, Span::from_ms(10));
    config.retransmit_after = Duration::from_secs(2);
    config.peer_timeout = Duration::from_secs(5);
    let late = timeouts(&config);
    assert_eq!((late.timeout, late.max_timeout), (Span::from_ms(2_000), Span::from_ms(2_000)));
}

#[test]
fn udmp_takes_no_delay_of_hosts_for_a_queue_and_keeps_their_window_in_bounds() {
    let udmp = |gbps, round_trip| {
        let config = DeviceConfig { line_rate: Rate::from_gbps(gbps), ..DeviceConfig::loopback() };
        let scheme = for_hosts(find("udmp").unwrap(), &config, 16, None, round_trip);
        let rtts = rtts(&scheme, &config, round_trip);
        let PolicyConfig::Udmp(udmp) = scheme.policy else { panic!("{:?}", scheme.policy) };
        (udmp.inflight_bdp * config.line_rate.bytes_in(rtts.base) as f64, udmp.queue_target_rtts, rtts)
    };
    // The network takes 50 us and hosts 1 ms. 1 Gb/s sends 131,250 bytes meanwhile, of which three quarters are
    // permitted. 100 Gb/s sends 625,000 bytes in 50 us, more than host delay alone permits. UDMP adds half as much.
    let both = Span::from_us(1_050);
    let (window, target, rtts) = udmp(1, None);
    assert!((window - 147_656.25).abs() < 1.0 && target == 5.0, "{window} {target}");
    assert_eq!(rtts, Rtts { base: both, least: both });
    assert_eq!(udmp(100, None).0.round(), 937_500.0);
    // 10 Gb/s: three quarters of 1,312,500 bytes exceed the bound.
    assert_eq!(udmp(10, None).0.round(), 786_432.0);
    // The handshake took 10 ms: 12.5 MB at 10 Gb/s.
    let (window, target, rtts) = udmp(10, Some(Span::from_ms(10)));
    assert_eq!((window.round(), target), (18_750_000.0, 5.0));
    assert_eq!(rtts, Rtts { base: Span::from_ms(11), least: both });
}

/// A round trip of 50 us is 4.17 times HPCC's 12 us; packets take 250 times as long at 100 Mb/s as at 25 Gb/s.
#[test]
fn rates_of_slow_lines_have_slow_clocks() {
    let config = |mbps| DeviceConfig { line_rate: Rate::from_mbps(mbps), ..DeviceConfig::loopback() };
    let of = |scheme: &Scheme| {
        assert_eq!(scheme.validate(), Ok(()));
        let params = scheme.dcqcn().unwrap().params();
        (params.min_rate, params.rate_timer)
    };
    let destination = |mbps| {
        let (mut scheme, _) = find_datagrams("erd").unwrap();
        suit_datagrams(&mut scheme, &config(mbps));
        of(&scheme)
    };
    let connection =
        |name, mbps, round_trip| of(&for_hosts(find(name).unwrap(), &config(mbps), 1, None, round_trip));
    let slow = (Rate::from_mbps(1), Span::from_ms(75));
    assert_eq!((destination(100), connection("ecmp", 100, None)), (slow, slow));
    // ASTRA-sim's 900 us.
    assert_eq!(connection("dlbf-published", 100, None), (Rate::from_mbps(1), Span::from_ms(225)));
    let fast = (Rate::from_gbps(1), Span::from_us(1_250));
    assert_eq!((destination(100_000), connection("ecmp", 100_000, None)), (fast, fast));
    // The handshake took 1.2 ms.
    let far = (Rate::from_gbps(1), Span::from_ms(30));
    assert_eq!(connection("ecmp", 100_000, Some(Span::from_us(1_200))), far);
}

#[test]
fn every_scheme_stays_valid_on_hosts() {
    let config = DeviceConfig::loopback();
    for info in schemes() {
        for buffer in [None, Some(100_000), Some(16 << 20)] {
            let scheme = for_hosts((info.make)(), &config, 1, buffer, None);
            assert_eq!(scheme.validate(), Ok(()), "{}", info.name);
        }
    }
}

/// The scheme's own timer gives up after 15 timeouts, here 9 s.
#[test]
fn the_timer_of_nics_ends_no_connection_before_the_peer_timeout() {
    let scheme = for_hosts(find("mrc").unwrap(), &DeviceConfig::loopback(), 16, None, None);
    let Recovery::Timeouts { retries, .. } = scheme.recovery else { panic!("{:?}", scheme.recovery) };
    assert_eq!(retries, Recovery::RETRIES_FOR_EVER);
}
