//! Tests of the tables with values computed by hand.

use std::vec::Vec;

use super::*;
use pathweave_units::Rate;

const US: fn(u64) -> Duration = Duration::from_us;
const RATE: Rate = Rate::from_gbps(100);

fn env(paths: u16) -> PolicyEnv {
    PolicyEnv {
        line_rate: RATE,
        base_rtt: US(10),
        mtu_wire_bytes: 1_048,
        mtu_payload_bytes: 1_000,
        paths,
        ..crate::testing::Scenario::steady().env
    }
}
/// Returns paths of 100 Gb/s and 1 us per link: 1.08384 us per link for a packet of 1,048 bytes.
fn views(links: &[u8]) -> Vec<PathView> {
    let view = |(id, &links): (usize, &u8)| PathView {
        base_one_way: Some(Duration::from_ps(1_083_840) * u64::from(links)),
        rate: Some(RATE),
        links: Some(links),
        ..PathView::new(PathId(id as u16), PathState::Up)
    };
    links.iter().enumerate().map(view).collect()
}
fn pair(config: &LapsConfig, links: &[u8]) -> PeerPaths {
    let mut pair = PeerPaths::new(Time::ZERO, config, &env(links.len() as u16));
    pair.on_paths(Time::ZERO, &views(links));
    pair
}
/// Returns such paths, with unknown idle delays.
fn unknown(links: &[u8]) -> PeerPaths {
    let mut pair = PeerPaths::new(Time::ZERO, &LapsConfig::default(), &env(links.len() as u16));
    let views = views(links).into_iter().map(|view| PathView { base_one_way: None, ..view });
    pair.on_paths(Time::ZERO, &views.collect::<Vec<_>>());
    pair
}
/// Returns two paths of which data takes only the second. 24 us more with alpha 2.5 and a unit of 7.096 us is a
/// weight of exp(-8.5).
fn avoided(config: &LapsConfig) -> PeerPaths {
    let mut pair = pair(config, &[5, 5]);
    pair.measured(at(0), PathId(0), 30_000_000);
    pair.measured(at(0), PathId(1), 6_000_000);
    pair
}
/// Returns the path that is probed now, if any.
fn probe(pair: &mut PeerPaths, now: Time) -> Option<u16> {
    let path = pair.silent(now, 0.5);
    path.into_iter().for_each(|path| pair.probed(now, path));
    path.map(|path| path.0)
}
fn at(us: u64) -> Time {
    Time::from_us(us)
}

#[test]
fn bases_of_the_paper_and_of_its_code() {
    let base = |config: &LapsConfig| pair(config, &[5]).threshold().as_ps();
    assert_eq!(base(&LapsConfig::default()), 5_419_200 + 4 * 5 * 83_840);
    assert_eq!(base(&LapsConfig::code_2025()), 5_838_400);
    assert_eq!(base(&LapsConfig { margin_packets: 0.0, ..LapsConfig::default() }), 5_419_200);
}

#[test]
fn bases_over_rails_where_hosts_have_twice_the_rate_of_the_fabric() {
    // 4, 6 and 8 links, the first and the last of 200 Gb/s: 41,920 ps per packet there, 83,840 ps on the others.
    let base = |config: &LapsConfig, links: u64| {
        let transmission = Duration::from_ps((links - 2) * 83_840 + 2 * 41_920);
        let view = PathView {
            base_one_way: Some(transmission + Duration::from_us(links)),
            transmission: Some(transmission),
            rate: Some(RATE),
            links: Some(links as u8),
            ..PathView::new(PathId(0), PathState::Up)
        };
        let env = PolicyEnv { line_rate: Rate::from_gbps(200), ..env(1) };
        let mut pair = PeerPaths::new(Time::ZERO, config, &env);
        pair.on_paths(Time::ZERO, &[view]);
        (pair.threshold().as_ps() + 500) / 1_000
    };
    let (paper, code) = (LapsConfig::default(), LapsConfig::code_2025());
    assert_eq!([4, 6, 8].map(|links| base(&paper, links)), [5_300, 8_306, 11_312]);
    assert_eq!([4, 6, 8].map(|links| base(&code, links)), [4_587, 6_922, 9_258]);
}

#[test]
fn an_entry_with_what_the_choice_needs_takes_at_most_64_bytes() {
    for paths in 1..200u16 {
        let mut host = LapsHost::new(LapsConfig::default());
        host.join(Time::ZERO, HostId(1), &env(paths));
        host.join(Time::ZERO, HostId(1), &env(paths));
        host.join(Time::ZERO, HostId(2), &env(paths));
        let sizes = host.sizes();
        assert_eq!((sizes.destinations, sizes.paths), (2, 2 * usize::from(paths)));
        assert!(sizes.bytes <= 64 * sizes.paths, "{paths} paths: {sizes:?}");
    }
}

#[test]
fn the_tables_of_the_prototype() {
    // Section IV-C: 1,024 servers of 8 paths, 1,024 flows. Its block RAM of 36 Kb: 112 for paths, 8 for destinations,
    // 8 for rates.
    let mut host = LapsHost::new(LapsConfig::default());
    for peer in 0..1_024 {
        host.join(Time::ZERO, HostId(peer), &env(8));
    }
    let sizes = host.sizes();
    assert_eq!((sizes.destinations, sizes.paths), (1_024, 8_192));
    // 32 bytes of table and 16 of weights per path.
    assert_eq!(sizes.bytes, 8_192 * 48);
    assert!(sizes.bytes < 112 * 36 * 1_024 / 8);
    // State of a destination besides its paths, and of a flow.
    assert!(
        size_of::<PeerPaths>() <= 256 && size_of::<crate::laps::Laps>() <= 256,
        "{} {}",
        size_of::<PeerPaths>(),
        size_of::<crate::laps::Laps>()
    );
}

#[test]
fn alpha_is_in_units_of_the_shortest_delay_once_that_is_long() {
    let config = LapsConfig { alpha: 2.0, ..LapsConfig::default() };
    let share = |config: &LapsConfig, delays_us: [u64; 2]| {
        let mut pair = pair(config, &[5, 5]);
        for (path, us) in delays_us.into_iter().enumerate() {
            pair.measured(at(1), PathId(path as u16), 1_000_000 * us as i64);
        }
        let seen = pair.delays().expect("both are measured");
        pair.update_alpha_unit(&seen);
        pair.view(0).1
    };
    let logistic = |x: f64| 1.0 / (1.0 + libm::exp(-x));
    let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    // T is 7.096 us, and the path of 6 us is below it.
    near(share(&config, [6, 9]), logistic(2.0 * 3.0 / 7.096));
    // Above T, 3 ms and 4.5 ms give the same shares as 30 us and 45 us.
    near(share(&config, [30, 45]), logistic(1.0));
    near(share(&config, [3_000, 4_500]), logistic(1.0));
    // With the unit of the code a difference of milliseconds leaves the slower path without share.
    let code = LapsConfig { alpha_unit: AlphaUnit::Threshold, ..config };
    assert!(share(&code, [3_000, 4_500]) > 1.0 - 1e-12);
}

#[test]
fn alpha_is_in_units_of_forty_times_the_noise_where_that_is_longer() {
    let share = |alpha_unit| {
        let mut pair = pair(&LapsConfig { alpha: 2.0, alpha_unit, ..LapsConfig::default() }, &[5, 5]);
        // First measurements are no differences. Then 32 us with weight 1/64: an average of 0.5 us, a unit of 20 us.
        for (path, us) in [(0, 6), (1, 9), (1, 41)] {
            pair.measured(at(1), PathId(path), us * 1_000_000);
        }
        let seen = pair.delays().expect("both are measured");
        pair.update_alpha_unit(&seen);
        pair.view(0).1
    };
    let near =
        |found: f64, x: f64| assert!((found - 1.0 / (1.0 + libm::exp(-x))).abs() < 1e-9, "{found} {x}");
    near(share(AlphaUnit::Noise), 2.0 * 35.0 / 20.0);
    // With the other two units it is T, because the shortest delay is below T.
    near(share(AlphaUnit::Delay), 2.0 * 35.0 / 7.096);
    near(share(AlphaUnit::Threshold), 2.0 * 35.0 / 7.096);
}

#[test]
fn a_path_that_data_avoids_is_probed_after_twice_its_delay_which_then_doubles() {
    let mut pair = avoided(&LapsConfig::default());
    let eps = Duration::from_ps(1);
    assert_eq!(probe(&mut pair, at(60)), None);
    assert_eq!(probe(&mut pair, at(60) + eps), Some(0));
    assert_eq!(pair.view(0).0, US(60));
    // Then 120 us later and 240 us after that; 2 us of slack for the picoseconds above.
    assert_eq!([180, 181].map(|us| probe(&mut pair, at(us))), [None, Some(0)]);
    assert_eq!([420, 422].map(|us| probe(&mut pair, at(us))), [None, Some(0)]);
    assert_eq!(pair.view(0).0, US(240));
    // The reply ends the probing.
    pair.measured(at(450), PathId(0), 30_000_000);
    assert_eq!(pair.view(0).0, US(30));
    assert_eq!([510, 511].map(|us| probe(&mut pair, at(us))), [None, Some(0)]);
}

#[test]
fn a_path_is_avoided_with_less_than_half_of_an_equal_share_of_those_that_are_up() {
    // Two of four paths are down. With alpha 2.5 and a unit of 7.096 us, 2.8 us more are exp(-0.986), a share of
    // 0.272, and 3.6 us more exp(-1.268), a share of 0.220; a quarter is the limit.
    for (more_ps, probed) in [(2_800_000, None), (3_600_000, Some(1))] {
        let mut pair = pair(&LapsConfig::default(), &[5, 5, 5, 5]);
        let mut views = views(&[5, 5, 5, 5]);
        views[2..].iter_mut().for_each(|view| view.state = PathState::Down);
        pair.on_paths(at(0), &views);
        pair.measured(at(0), PathId(0), 6_000_000);
        pair.measured(at(0), PathId(1), 6_000_000 + more_ps);
        assert_eq!(probe(&mut pair, at(100)), probed, "{more_ps}: {}", pair.view(1).1);
    }
}

#[test]
fn a_path_that_data_takes_is_probed_once_data_has_no_answer_for_four_delays() {
    let mut pair = pair(&LapsConfig::default(), &[5, 5]);
    for path in 0..2 {
        pair.measured(at(0), PathId(path), 6_000_000);
    }
    // No probe, however long the path was idle: the next data measures it.
    assert_eq!(probe(&mut pair, at(1_000)), None);
    // The first packet without acknowledgement counts, not the latest.
    [1_000, 1_010, 1_020].into_iter().for_each(|us| pair.sent(at(us), PathId(0)));
    assert_eq!([1_024, 1_025].map(|us| probe(&mut pair, at(us))), [None, Some(0)]);
    // 6 us more are exp(-4.23): data avoids the path now, so the next probe is after twice 12 us.
    assert_eq!(pair.view(0).0, US(12));
    assert_eq!([1_049, 1_050].map(|us| probe(&mut pair, at(us))), [None, Some(0)]);
    // A reply ends the probing, and no packet is awaited any more.
    pair.measured(at(1_060), PathId(0), 6_000_000);
    assert_eq!(probe(&mut pair, at(2_000)), None);
}

#[test]
fn the_frozen_variants_probe_every_silent_path_after_twice_its_delay() {
    for config in [LapsConfig::published(), LapsConfig::code_2025()] {
        let mut pair = pair(&config, &[5, 5]);
        for path in 0..2 {
            pair.measured(at(0), PathId(path), 6_000_000);
        }
        pair.sent(at(10), PathId(0));
        assert_eq!(pair.silent(at(12), 0.0), None);
        assert_eq!([0.0, 0.5].map(|draw| pair.silent(at(13), draw).unwrap().0), [0, 1]);
    }
}

#[test]
fn a_path_probed_in_vain_for_ever_stays_finite() {
    let mut pair = avoided(&LapsConfig::default());
    let mut probes = 0;
    for hour in 1..=200 {
        let now = Time::from_us(3_600_000_000 * hour);
        pair.measured(now, PathId(1), 6_000_000);
        probes += u32::from(probe(&mut pair, now) == Some(0));
    }
    let (real, share) = pair.view(0);
    // 30 us doubled 18 times are 7.86 s, and the limit 7.44 s: an hour always exceeds twice that.
    assert_eq!((probes, real), (200, Duration::from_ps(7_096_000) * MOST_BASES));
    assert!(share < 1e-9, "{share}");
    assert_eq!(pair.at(0.999_999, Egress::ONE), PathId(1));
}

#[test]
fn a_dead_path_that_data_takes_is_left() {
    // Path 0 never returned anything. A packet is drawn every 100 ns; those of path 1 are acknowledged at once.
    let mut pair = pair(&LapsConfig::default(), &[5, 5]);
    let mut rng = pathweave_units::Rng::for_component(1, "data", 0);
    let (mut lost, mut probes) = (0, 0);
    for i in 0..100_000 {
        let now = Time::from_ns(100 * i);
        probes += u32::from(probe(&mut pair, now).is_some());
        let path = pair.at(rng.unit_f64(), Egress::ONE);
        pair.sent(now, path);
        match path {
            PathId(0) => lost += 1,
            _ => pair.measured(now, path, 6_000_000),
        }
    }
    // Four delays of 5.42 us are 217 packets, of which 60 % go there. After the first probe, at 10.84 us, 3.2 % do,
    // for twice that time: 7 packets. From 21.7 us on hardly any do.
    assert!((100..180).contains(&lost), "{lost}");
    // The first probe is after 21.7 us, and each further one after twice the time: the ninth after 5.5 ms; the tenth
    // would be after 11 ms.
    assert_eq!(probes, 9);
}

#[test]
fn of_several_silent_paths_the_draw_says_which() {
    // Data takes only path 1.
    let mut pair = pair(&LapsConfig::default(), &[5, 5, 5]);
    for (path, one_way_ps) in [(0, 30_000_000), (1, 6_000_000), (2, 30_000_000)] {
        pair.measured(at(0), PathId(path), one_way_ps);
    }
    assert_eq!([0.0, 0.49, 0.5, 0.99].map(|draw| pair.silent(at(61), draw).unwrap().0), [0, 0, 2, 2]);
    pair.probed(at(61), PathId(0));
    assert_eq!(pair.silent(at(61), 0.1), Some(PathId(2)));
    pair.probed(at(61), PathId(2));
    assert_eq!(pair.silent(at(61), 0.1), None);
}

#[test]
fn congestion_is_when_the_fastest_measured_path_is_above_the_slowest_base() {
    let seen = |config: &LapsConfig| {
        let mut pair = pair(config, &[5, 8]);
        assert_eq!(pair.delays().is_none(), config.law().unmeasured == Unmeasured::Ignored);
        // Bases are 7.096 and 8.671 us with 3 and 7 switches of 5 packets; the larger one is T.
        pair.measured(at(1), PathId(0), 9_000_000);
        let alone = pair.delays().unwrap().congested;
        pair.measured(at(2), PathId(1), 20_000_000);
        let both = pair.delays().unwrap();
        assert_eq!((both.fastest, both.slowest), (US(9), US(20)));
        (alone, both.congested)
    };
    let threshold = pair(&LapsConfig::default(), &[5, 8]).threshold();
    assert_eq!(threshold.as_ps(), 8 * 1_083_840 + 7 * 5 * 83_840);
    assert_eq!(seen(&LapsConfig::default()), (false, false));
    seen(&LapsConfig::published());
    let mut pair = pair(&LapsConfig::default(), &[5]);
    pair.measured(at(1), PathId(0), 7_096_000);
    assert!(!pair.delays().unwrap().congested, "as slow as the threshold is not above it");
    pair.measured(at(2), PathId(0), 7_096_001);
    assert!(pair.delays().unwrap().congested);
}

#[test]
fn guesses_of_an_idle_sender_are_no_congestion() {
    let mut quiet = pair(&LapsConfig::default(), &[5, 5]);
    let mut literal = pair(&LapsConfig::published(), &[5, 5]);
    for pair in [&mut quiet, &mut literal] {
        pair.measured(at(0), PathId(0), 6_000_000);
        pair.measured(at(0), PathId(1), 6_000_000);
        (0..2).for_each(|path| pair.probed(at(1_000), PathId(path)));
    }
    assert_eq!(quiet.delays(), None);
    assert!(literal.delays().unwrap().congested);
    quiet.measured(at(1_001), PathId(1), 6_000_000);
    assert_eq!(quiet.delays().map(|delays| (delays.fastest, delays.congested)), Some((US(6), false)));
}

#[test]
fn a_path_that_is_down_has_no_share_and_a_new_start_when_it_is_back() {
    let mut pair = pair(&LapsConfig::default(), &[5, 5, 8]);
    pair.measured(at(1), PathId(2), 9_000_000);
    let mut views = views(&[5, 5, 8]);
    views[2].state = PathState::Down;
    pair.on_paths(at(2), &views);
    assert_eq!((pair.view(2).1, pair.threshold().as_ps()), (0.0, 7_096_000));
    // Late acknowledgements of the path do not make it usable.
    pair.measured(at(3), PathId(2), 9_000_000);
    assert_eq!((pair.view(2).1, pair.delays()), (0.0, None));
    assert_ne!(pair.silent(at(1_000), 0.99), Some(PathId(2)));
    views.iter_mut().for_each(|view| view.state = PathState::Down);
    pair.on_paths(at(4), &views);
    assert!((0..3).all(|path| pair.view(path).1 > 0.0), "with all down, all are tried");
    views.iter_mut().for_each(|view| view.state = PathState::Up);
    pair.on_paths(at(5), &views);
    assert!(pair.view(2).1 > 0.0);
}

/// Returns the samples of one flow: (path, delay in ns).
fn samples() -> impl Iterator<Item = (Time, PathId, i64)> {
    let mut rng = pathweave_units::Rng::for_component(1, "samples", 0);
    (0..400).map(move |i| {
        let path = rng.below(3) as u16;
        let queue = i64::from(rng.below(4_000_000)) * i64::from(rng.below(2));
        (Time::from_ns(500 * i), PathId(path), 5_419_200 + i64::from(path) * 1_083_840 + queue)
    })
}

#[test]
fn with_free_clocks_an_offset_changes_nothing() {
    let run = |offset_ps: i64| {
        let mut pair = unknown(&[5, 6, 7]);
        samples()
            .map(|(now, path, one_way_ps)| {
                pair.measured(now, path, one_way_ps + offset_ps);
                let shares: Vec<u64> = (0..3).map(|path| pair.view(path).1.to_bits()).collect();
                (shares, pair.delays(), pair.threshold(), pair.silent(now + US(30), 0.5))
            })
            .collect::<Vec<_>>()
    };
    let agreeing = run(0);
    // Behind by the base delay, which made every delay zero; ahead by 1 ms, which was permanent congestion (E11).
    assert_eq!(run(-5_419_200), agreeing);
    assert_eq!(run(1_000_000_000), agreeing);
}

#[test]
fn free_clocks_learn_how_much_longer_a_path_is() {
    let mut pair = unknown(&[5, 6, 7]);
    for (now, path, one_way_ps) in samples() {
        pair.measured(now, path, one_way_ps - 77_000_000);
    }
    for path in 0..3u64 {
        pair.measured(at(201), PathId(path as u16), 5_419_200 + path as i64 * 1_083_840 - 77_000_000);
        // Half the idle round trip stands for the shortest delay.
        assert_eq!(pair.view(path as u16).0, US(5) + Duration::from_ps(path * 1_083_840));
    }
    assert!(!pair.delays().unwrap().congested);
}

#[test]
fn clocks_are_free_where_nothing_is_known_of_the_paths() {
    let mut pair = PeerPaths::new(Time::ZERO, &LapsConfig::default(), &env(2));
    pair.measured(at(1), PathId(0), -3_000_000);
    assert_eq!(pair.view(0).0, US(5));
    pair.measured(at(2), PathId(1), -2_000_000);
    assert_eq!(pair.view(1).0, US(6));
    // A forged acknowledgement with a path that does not exist.
    pair.measured(at(3), PathId(9), 0);
    pair.timed_out(PathId(9));
}
