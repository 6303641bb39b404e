//! Tests of UDMP, with values computed by hand and on the test bench.

use std::vec::Vec;

use super::*;
use crate::PolicyConfig;
use crate::testing::{ACK, ENV, Host, REQUEST, Report, SENT, Scenario, random_operations};

const US: fn(u64) -> Duration = Duration::from_us;

/// Returns an environment with packets of 1,250 bytes at 100 Gb/s: 100 ns each; 100 of them are a BDP.
fn env() -> PolicyEnv {
    PolicyEnv { paths: 16, ..ENV }
}

/// A queue pair with unlimited data, driven step by step.
struct Driver {
    udmp: Udmp,
    host: Host,
    now: Time,
    psn: u64,
    inflight: u32,
}

impl Driver {
    fn new(algorithm: Algorithm<'_>, env: &PolicyEnv) -> Self {
        let mut host = Host::new(1);
        let udmp = Udmp::new(algorithm, env, &mut host.rng);
        Driver { udmp, host, now: Time::ZERO, psn: 0, inflight: 0 }
    }
    fn poll(&mut self) -> Grant {
        let want = SendRequest {
            psn: self.psn,
            inflight_packets: self.inflight,
            inflight_bytes: u64::from(self.inflight) * 1_250,
            ..REQUEST
        };
        self.udmp.poll_send(self.now, &want, &mut self.host.cx())
    }
    /// Sends everything that may leave now. Returns the paths.
    fn send(&mut self) -> Vec<u16> {
        let mut paths = Vec::new();
        while let Grant::Send(path) = self.poll() {
            self.inflight += 1;
            let sent = Sent { path, psn: self.psn, inflight_packets: self.inflight, ..SENT };
            self.udmp.on_sent(self.now, &sent, &mut self.host.cx());
            self.psn += 1;
            paths.push(path.0);
        }
        paths
    }
    fn ack_of(&mut self, path: u16, psn: u64, rtt: Duration, backlogged: bool) {
        self.inflight -= 1;
        let feedback =
            Feedback { path: PathId(path), psn, rtt, inflight_packets: self.inflight, backlogged, ..ACK };
        self.udmp.on_feedback(self.now, &feedback, &mut self.host.cx());
    }
    /// Feeds an acknowledgement over `path` with `rtt`. Returns the paths of the packets that leave then.
    fn ack(&mut self, path: u16, rtt: Duration) -> Vec<u16> {
        self.ack_of(path, self.psn, rtt, true);
        self.send()
    }
}

/// Both algorithms without exploration.
fn plain() -> (UdmpPublishedConfig, UdmpConfig) {
    (
        UdmpPublishedConfig { explore: 0.0, ..UdmpPublishedConfig::default() },
        UdmpConfig { explore: 0.0, ..UdmpConfig::default() },
    )
}

fn published(env: &PolicyEnv) -> Driver {
    Driver::new(Algorithm::Published(&plain().0), env)
}

fn repaired(env: &PolicyEnv) -> Driver {
    Driver::new(Algorithm::Repaired(&plain().1), env)
}

#[test]
fn it_starts_with_a_bdp_on_random_paths() {
    for mut driver in [repaired(&env()), published(&env())] {
        let paths = driver.send();
        assert_eq!(paths.len(), 100);
        let mut seen = [0; 16];
        paths.iter().for_each(|&path| seen[usize::from(path)] += 1);
        assert!(seen.iter().all(|&count| count < 20), "{seen:?}");
    }
}

#[test]
fn the_example_of_figure_3() {
    // One packet per time unit (10 us); path 1 takes 2 units, path 2 takes 3; the average stays 2.5.
    let env = PolicyEnv { line_rate: Rate::from_gbps(1), base_rtt: US(20), ..env() };
    let mut driver = published(&env);
    driver.udmp.tokens = 0;
    driver.udmp.law = driver.udmp.law.at(Time::ZERO, US(25), 1.0);
    driver.inflight = 2; // one on each path at 0
    let mut at = |units: u64, path: u16| {
        driver.now = Time::from_us(10 * units);
        driver.udmp.law.set_smooth(US(25));
        driver.ack(path, US(if path == 1 { 20 } else { 30 }))
    };
    assert_eq!(at(2, 1), [1, 1]);
    assert_eq!(at(3, 2), [2]);
    assert_eq!((at(4, 1), at(4, 1)), ([1].to_vec(), [].to_vec()));
    assert_eq!((at(6, 2), at(6, 1)), ([2].to_vec(), [1].to_vec()));
}

#[test]
fn repaired_a_short_round_trip_releases_two_a_long_one_none() {
    let mut driver = repaired(&env());
    driver.send();
    driver.now = Time::from_us(10);
    // The pool starts with the first acknowledgement, so paths 3 and 8 are good and get nothing.
    assert!(driver.ack(3, US(10)).is_empty() && driver.ack(8, US(10)).is_empty());
    driver.now += Duration::from_ns(200);
    assert_eq!(driver.ack(4, US(10)), [4, 3]);
    driver.now += Duration::from_ns(300);
    assert_eq!(driver.ack(5, US(15)), [5]); // longer than the average, within a base
    driver.udmp.law.set_smooth(US(10));
    assert!(driver.ack(6, US(25)).is_empty()); // far longer
    driver.udmp.law.set_smooth(US(10));
    assert_eq!(driver.ack(7, Duration::from_ns(10_400)), [7, 8]); // within 5 % of the base above the average
}

/// Returns a queue pair whose next acknowledgements of 10 us release two packets each.
fn with_a_pool() -> Driver {
    let mut driver = repaired(&env());
    driver.send();
    driver.now = Time::from_us(10);
    driver.ack(3, US(10));
    assert_eq!(driver.udmp.spares.take(), Some(PathId(3)));
    driver.now += US(2);
    driver
}

#[test]
fn without_a_spare_path_the_second_packet_takes_any() {
    let mut driver = with_a_pool();
    let mut seen = [0; 16];
    for _ in 0..320 {
        driver.now += Duration::from_ns(200);
        let [own, other] = driver.ack(7, US(10))[..] else { panic!("two packets") };
        assert_eq!(own, 7);
        seen[usize::from(other)] += 1;
        driver.inflight = 99;
    }
    // 20 each, standard deviation 4.3.
    assert!(seen.iter().all(|&count| (3..=37).contains(&count)), "{seen:?}");
}

#[test]
fn published_both_packets_take_the_acknowledgements_path() {
    let mut driver = published(&env());
    driver.send();
    driver.now = Time::from_us(10);
    driver.ack(3, US(10));
    driver.now += Duration::from_ns(200);
    driver.udmp.law.set_smooth(US(12));
    assert_eq!(driver.ack(4, US(10)), [4, 4]);
}

#[test]
fn a_path_is_spare_if_it_is_good_and_got_nothing_and_until_it_loses_a_packet() {
    let spares = |driver: &Driver| {
        let mut spares = driver.udmp.spares.clone();
        core::iter::from_fn(|| spares.take()).map(|path| path.0).collect::<Vec<_>>()
    };
    let mut driver = with_a_pool();
    driver.ack(4, US(25)); // got nothing, but is late: 25 us against 11.9 and 10
    driver.ack(5, US(15)); // got a packet
    assert!(spares(&driver).is_empty());
    driver.udmp.pool = 0.0;
    for path in [6, 7, 6] {
        assert!(driver.ack(path, US(15)).is_empty());
    }
    assert_eq!(spares(&driver), [6, 7, 6]);
    let lost =
        |kind, path| Feedback { kind, path: PathId(path), rtt: Duration::ZERO, inflight_packets: 90, ..ACK };
    driver.udmp.on_feedback(driver.now, &lost(FeedbackKind::Lost, 6), &mut driver.host.cx());
    assert_eq!(spares(&driver), [7]);
    driver.udmp.on_feedback(driver.now, &lost(FeedbackKind::Timeout, 7), &mut driver.host.cx());
    assert!(spares(&driver).is_empty());
}

#[test]
fn a_path_is_late_by_a_base_or_on_hosts_by_twice_the_queue() {
    // The base is 10 us.
    let released = |late, average_us, rtt_us| {
        let config = UdmpConfig { late, ..plain().1 };
        let mut driver = Driver::new(Algorithm::Repaired(&config), &env());
        driver.send();
        driver.now = Time::from_us(10);
        driver.ack(3, US(10));
        driver.now += US(1);
        driver.udmp.law.set_smooth(US(average_us));
        driver.ack(4, US(rtt_us)).len()
    };
    let on_hosts = |average_us, rtt_us| released(UdmpLate::ByQueue, average_us, rtt_us);
    // Each acknowledgement moves the average by an eighth of the distance before it counts.
    assert_eq!((on_hosts(15, 26), on_hosts(15, 27)), (1, 0)); // 16.4 and 10; 16.5 and 10
    assert_eq!((on_hosts(40, 79), on_hosts(40, 81)), (1, 0)); // 44.9 and 34.9; 45.1 and 35.1
    let by_base = |average_us, rtt_us| released(UdmpLate::ByBase, average_us, rtt_us);
    assert_eq!((by_base(40, 50), by_base(40, 79)), (1, 0));
}

#[test]
fn severe_congestion_caps_the_rate_at_any_acknowledgement() {
    let (mut published, mut repaired) = plain();
    (published.severe_rtt, repaired.severe_rtt) = (1.5, 1.5);
    for algorithm in [Algorithm::Published(&published), Algorithm::Repaired(&repaired)] {
        let mut driver = Driver::new(algorithm, &env());
        driver.send();
        driver.udmp.law = driver.udmp.law.at(Time::ZERO, US(20), 1.0);
        driver.now = Time::from_us(10);
        driver.ack(0, US(20));
        assert!(driver.udmp.law.share() <= 0.5, "{}", driver.udmp.law.share());
    }
}

#[test]
fn the_published_step_follows_the_gradient() {
    // 10 us after the last update the followed average has moved by the gradient times 10 us.
    let after = |gradient_us: i64, share: f64| {
        let law = Law::new(Algorithm::Published(&UdmpPublishedConfig::default()), &env()).at(
            Time::ZERO,
            US(12),
            share,
        );
        let mut law = law.due();
        law.set_smooth(Duration::from_us((12 + gradient_us) as u64));
        law.update(Time::from_us(10), 50);
        law.share()
    };
    let close = |a: f64, b: f64| (a - b).abs() < 1e-12;
    assert!(close(after(1, 0.6), 0.9 * 0.6)); // +0.1
    assert!(close(after(-1, 0.6), 0.6 + 0.1 * 0.4)); // -0.1
    assert!(close(after(0, 0.6), 0.6));
}

#[test]
fn the_repaired_step_seeks_the_queue_target_and_is_bounded() {
    let after = |from: Duration, to: Duration, share: f64| {
        let law = Law::new(Algorithm::Repaired(&UdmpConfig::default()), &env()).at(Time::ZERO, from, share);
        let mut law = law.due();
        law.set_smooth(to);
        law.update(Time::from_us(10), 50);
        law.share()
    };
    let close = |a: f64, b: f64| (a - b).abs() < 1e-12;
    // At the target only the step is added. The target is 10 us, a quarter of it, and 4 packets of 100 ns.
    let target = Duration::from_ns(12_900);
    assert!(close(after(target, target, 0.5), 0.505));
    // 7.1 us above it at 20 us: a cut by 0.15 x 7.1 / 20 of the rate, and the step shrinks by 12.9 / 20.
    assert!(close(after(US(20), US(20), 0.5), 0.5 * (1.0 - 0.05325) + 0.005 * 0.645));
    // No queue, 2.9 us below the target: an increase by 0.15 x 2.9 / 10.
    assert!(close(after(US(10), US(10), 0.5), 0.5 * 1.0435 + 0.005));
    assert!(close(after(US(10), US(19), 0.5), 0.5 * 0.5 + 0.005 * 12.9 / 19.0));
    assert!(close(after(US(29), US(10), 0.5), 0.5 * 1.5 + 0.005));
}

#[test]
fn the_queue_target_grows_with_the_round_trip_and_the_packet() {
    // 40 us, a quarter of it, and 4 packets of 4,000 bytes at 100 Gb/s, 320 ns each: 51.28 us.
    let env = PolicyEnv { base_rtt: US(40), mtu_wire_bytes: 4_000, ..env() };
    let target = Duration::from_ns(51_280);
    let mut law =
        Law::new(Algorithm::Repaired(&UdmpConfig::default()), &env).at(Time::ZERO, target, 0.5).due();
    law.measure(Time::from_us(10), Some(ps(US(40))), 4_000, 50); // the base, which is set from the start
    law.set_smooth(target);
    law.update(Time::from_us(10), 50);
    assert!((law.share() - 0.505).abs() < 1e-12, "{}", law.share());
}

#[test]
fn the_repaired_law_follows_low_round_trip_times_the_published_one_all() {
    let (published, repaired) = plain();
    let law = |algorithm| Law::new(algorithm, &env()).at(Time::ZERO, US(10), 1.0);
    let close = |found: f64, us: f64| assert!((found / 1e6 - us).abs() < 1e-9, "{found} {us}");
    let measure = |law: &mut Law, us, bytes| {
        law.measure(Time::from_us(10), Some(ps(US(us))), bytes, 50);
    };
    // 32 us above: the low average moves by a 32nd of it, the average by an eighth.
    let mut repaired = law(Algorithm::Repaired(&repaired));
    measure(&mut repaired, 42, 1_250);
    close(repaired.followed, 11.0);
    close(repaired.mean, 14.0);
    // 2 us below: the low average moves by half of it. 9 us is the new base.
    measure(&mut repaired, 9, 1_250);
    close(repaired.followed, 10.0);
    close(repaired.base, 9.0);
    // The round-trip time of a short packet is at least the base.
    measure(&mut repaired, 5, 60);
    close(repaired.followed, 9.5);
    close(repaired.base, 9.0);

    let mut published = law(Algorithm::Published(&published));
    measure(&mut published, 42, 1_250);
    close(published.followed, 14.0);
    measure(&mut published, 6, 60);
    close(published.followed, 13.0);
    close(published.base, 6.0);
}

#[test]
fn the_low_average_lies_where_what_is_below_weighs_a_sixteenth_of_what_is_above() {
    // 10 and 27 us alternate. At e us above 10: e + (17 - e) / 32, and half of that is e again: 17 / 33.
    let mut law = Law::new(Algorithm::Repaired(&UdmpConfig::default()), &env()).at(Time::ZERO, US(20), 1.0);
    for _ in 0..100 {
        for us in [27, 10] {
            law.measure(Time::from_us(10), Some(ps(US(us))), 1_250, 50);
        }
    }
    assert!((law.followed / 1e6 - (10.0 + 17.0 / 33.0)).abs() < 1e-9, "{}", law.followed);
    law.measure(Time::from_us(10), Some(ps(US(27))), 1_250, 50);
    assert!((law.followed / 1e6 - (10.0 + 34.0 / 33.0)).abs() < 1e-9, "{}", law.followed);
    // With a gain of an eighth in both directions: x = 27 / 8 + 7 / 8 (10 / 8 + 7 / 8 x).
    assert!((law.mean / 1e6 - (19.0 + 1.0 / 15.0)).abs() < 1e-6, "{}", law.mean);
}

#[test]
fn a_late_acknowledgement_clocks_nothing_and_cuts_nothing() {
    for mut driver in [repaired(&env()), published(&env())] {
        driver.send();
        driver.now = Time::from_us(10);
        driver.ack_of(1, 90, US(10), true);
        driver.now = Time::from_us(11);
        driver.send();
        let share = driver.udmp.law.share();
        driver.ack_of(2, 25, US(10), true); // 65 behind
        assert_eq!(driver.udmp.clock.pending(), 0);
        assert!(driver.udmp.law.share() >= share);
        driver.ack_of(2, 26, Duration::from_ns(9_900), true); // 64 behind
        assert_eq!(driver.udmp.clock.pending(), 2);
    }
}

#[test]
fn tokens_are_conserved_at_every_step() {
    let (published, repaired) = (UdmpPublishedConfig::default(), UdmpConfig::default());
    for (seed, algorithm) in [(1, Algorithm::Repaired(&repaired)), (2, Algorithm::Published(&published))] {
        let mut dice = Rng::for_component(seed, "dice", 0);
        let mut driver = Driver::new(algorithm, &env());
        let packet = driver.udmp.law.packet();
        let cap = |driver: &Driver| {
            let Udmp { idle, params, .. } = &driver.udmp;
            if *idle { params.idle_pool_cap } else { params.pool_cap }
        };
        // Packets taken from the pool: those sent or released, less the grant at the start.
        let taken =
            |driver: &Driver| driver.psn + u64::from(driver.udmp.clock.pending() + driver.udmp.tokens) - 100;
        for step in 0..20_000 {
            let (pool, before) = (driver.udmp.pool_at(driver.now), taken(&driver));
            let started = driver.udmp.law.started();
            match dice.below(3) {
                0 if driver.inflight > 0 => {
                    let rtt = Duration::from_ns(10_000 + u64::from(dice.below(10_000)));
                    driver.ack_of(dice.below(16) as u16, driver.psn, rtt, dice.bernoulli(0.8));
                }
                1 => {
                    driver.send();
                }
                _ => {
                    let span = Duration::from_ns(u64::from(dice.below(400)));
                    let expected = (pool + driver.udmp.law.rate * ps(span)).min(cap(&driver));
                    driver.now += span;
                    assert!((driver.udmp.pool_at(driver.now) - expected).abs() < 1e-3);
                    continue;
                }
            }
            let (left, taken) = (driver.udmp.pool_at(driver.now), taken(&driver) - before);
            assert!(left >= 0.0 && left <= cap(&driver), "seed {seed}, step {step}: the pool holds {left}");
            if started {
                // The part of the pool above the cap is lost when idleness ends.
                let expected = (pool - taken as f64 * packet).min(cap(&driver));
                // A restart kick of the published variant is free.
                let free = !driver.udmp.law.repaired && left >= expected && taken == 1;
                assert!(
                    free || (left - expected).abs() < 1e-3,
                    "seed {seed}, step {step}: {left} {expected}"
                );
            }
        }
    }
}

/// Drains all releases and the pool with `left` packets in flight. Returns the time until the timer expires, and the
/// paths of the packets that leave then.
fn restart(mut driver: Driver, left: u32) -> (Duration, Vec<u16>) {
    driver.send();
    driver.now = Time::from_us(10);
    for _ in left..100 {
        driver.ack_of(7, driver.psn, US(10), true);
    }
    while let Some(path) = driver.udmp.clock.next(Egress::ONE) {
        driver.udmp.clock.pop(path);
    }
    (driver.udmp.pool, driver.udmp.law.rate) = (0.0, 0.1 * driver.udmp.law.rate);
    assert_eq!(driver.poll(), Grant::Blocked);
    let timer = driver.udmp.next_timer().expect("a timer");
    driver.now = timer;
    driver.udmp.on_timer(timer, &mut driver.host.cx());
    let sent = driver.send();
    (timer - Time::from_us(10), sent)
}

#[test]
fn when_nothing_clocks_it_restarts() {
    // Nothing in flight: as soon as the pool, at a tenth of the line rate, has a packet; on the last good path.
    let (after, sent) = restart(repaired(&env()), 0);
    assert!(after >= US(1) && after <= Duration::from_ps(1_000_002), "{after}");
    assert_eq!(sent, [7]);
    // One packet in flight: two round-trip times after the last acknowledgement.
    assert_eq!(restart(repaired(&env()), 1), (US(20), [7].to_vec()));
    let (after, sent) = restart(published(&env()), 0);
    assert_eq!((after, sent.len()), (US(100), 1));
}

#[test]
fn an_idle_queue_pair_sets_no_timer_and_resumes_with_what_its_rate_has_put_by() {
    let mut driver = repaired(&env());
    driver.send();
    driver.now = Time::from_us(10);
    (0..100).for_each(|_| driver.ack_of(7, driver.psn, US(10), false));
    assert_eq!((driver.udmp.next_timer(), driver.udmp.clock.pending()), (None, 0));
    // Three microseconds later: as many packets of 100 ns leave at once, and no more before an acknowledgement.
    driver.now = Time::from_us(13);
    assert_eq!(driver.send().len(), 30);
    assert_eq!((driver.poll(), driver.udmp.next_timer()), (Grant::Blocked, None));
    driver.now = Time::from_us(23);
    (0..30).for_each(|_| driver.ack_of(7, driver.psn, US(10), false));
    // A second later: a bandwidth-delay product.
    driver.now = Time::from_us(1_000_000);
    assert_eq!(driver.send().len(), 100);
}

/// Asserts the bound on packets in flight at every packet.
struct Bounded(Udmp, u32);
impl Policy for Bounded {
    crate::ignores!(on_open, on_close, make_control, on_copy_sent, on_control, window, path_beyond_window);
    fn poll_send(&mut self, now: Time, want: &SendRequest, cx: &mut PolicyCx<'_>) -> Grant {
        self.0.poll_send(now, want, cx)
    }
    fn on_sent(&mut self, now: Time, sent: &Sent, cx: &mut PolicyCx<'_>) -> Memo {
        assert!(sent.inflight_packets <= self.1, "{} in flight", sent.inflight_packets);
        self.0.on_sent(now, sent, cx)
    }
    fn on_feedback(&mut self, now: Time, feedback: &Feedback, cx: &mut PolicyCx<'_>) {
        self.0.on_feedback(now, feedback, cx);
    }
    fn on_paths(&mut self, now: Time, paths: &[PathView], cx: &mut PolicyCx<'_>) {
        self.0.on_paths(now, paths, cx);
    }
    fn on_timer(&mut self, now: Time, cx: &mut PolicyCx<'_>) {
        self.0.on_timer(now, cx);
    }
    fn next_timer(&self) -> Option<Time> {
        self.0.next_timer()
    }
    fn rate(&self, now: Time) -> Option<Rate> {
        self.0.rate(now)
    }
}

#[test]
fn no_more_than_one_and_a_half_bdp_is_in_flight() {
    for (_, scenario) in Scenario::all() {
        for percent in [0, 10] {
            // 102 packets are a bandwidth-delay product, or 113 if an edge adds 1,100 ns; the bound is 1.5 times
            // that, plus one.
            let most = if scenario.edge.is_some() { 169 + 1 } else { 153 + 1 };
            let make = |env: &PolicyEnv, rng: &mut Rng| Bounded(UdmpConfig::default().build(env, rng), most);
            scenario.clone().with_jitter(percent).run(make).done_at();
        }
    }
}

#[test]
fn random_operations_break_no_invariant() {
    for seed in 0..60 {
        let extreme =
            UdmpConfig { pool_bdp: 1e-3, inflight_bdp: 0.05, explore: 1.0, ..UdmpConfig::default() };
        let config = match seed % 3 {
            0 => PolicyConfig::Udmp(UdmpConfig::default()),
            1 => PolicyConfig::UdmpPublished(UdmpPublishedConfig::default()),
            _ => PolicyConfig::Udmp(extreme),
        };
        assert_eq!(config.validate(), Ok(()));
        random_operations(seed, 2_000, &env(), |env, rng| config.build(env, rng));
    }
}

fn lone_flow_with_jitter(config: &PolicyConfig, packets: u64) -> Report {
    // 5 % of 5 us in each direction.
    let scenario = Scenario {
        packets,
        timeout: Duration::from_ms(10),
        sample_every: Duration::from_ms(1),
        end: Time::from_us(100_000),
        ..Scenario::steady().with_jitter(5)
    };
    scenario.run(|env, rng| config.build(env, rng))
}

#[test]
fn noise_does_not_slow_the_repaired_law_and_halves_the_published_one() {
    // 100 ms at line rate: 1,000,000 packets.
    let sent = |config: &PolicyConfig| lone_flow_with_jitter(config, 2_000_000).senders[0].sent.iter().sum();
    let repaired: u64 = sent(&PolicyConfig::Udmp(UdmpConfig::default()));
    let published: u64 = sent(&PolicyConfig::UdmpPublished(UdmpPublishedConfig::default()));
    assert!(repaired > 950_000, "{repaired}");
    // Erratum 1: the rate is expected to drift towards half the line rate.
    assert!((450_000..800_000).contains(&published), "{published}");
}

#[test]
#[expect(clippy::print_stdout, reason = "the sizes are the point; see them with --nocapture")]
fn the_state_does_not_grow_with_the_paths() {
    let with = |paths| {
        let mut rng = Rng::for_component(1, "qp", 0);
        Udmp::new(Algorithm::Repaired(&UdmpConfig::default()), &PolicyEnv { paths, ..env() }, &mut rng)
    };
    // No path list is stored while all paths are up, and nothing else is allocated.
    assert_eq!(size_of_val(&with(1)), size_of_val(&with(16_384)));
    let state = size_of::<Udmp>() - size_of::<Params>();
    std::println!(
        "UDMP, table I: 22 bytes a queue pair, without rate, pool, base round-trip time and packets in"
    );
    std::println!(
        "flight. Here, in full: {} bytes, of which parameters, the same for all:",
        size_of::<Udmp>()
    );
    std::println!("{} (rate law) + {}", law::PARAMETER_BYTES, size_of::<Params>());
    std::println!("the queue of released packets: {}", size_of::<AckClock>());
    assert!(state - law::PARAMETER_BYTES <= 256, "{state}");
}

#[test]
fn invalid_values_are_named() {
    let complaint = |change: fn(&mut UdmpConfig)| {
        let mut config = UdmpConfig::default();
        change(&mut config);
        std::string::ToString::to_string(&config.validate().expect_err("must be refused"))
    };
    assert_eq!(complaint(|c| c.explore = 1.5), "explore = 1.5 is not allowed: 0 to 1");
    assert_eq!(complaint(|c| c.rtt_gain = f64::NAN), "rtt_gain = NaN is not allowed: more than 0, at most 1");
    assert!(complaint(|c| c.severe_rtt = 1.0).starts_with("severe_rtt = 1 is not allowed: more than 1"));
    let published = UdmpPublishedConfig { kick_after: Duration::ZERO, ..UdmpPublishedConfig::default() };
    assert_eq!(published.validate().expect_err("it would never go on").field, "kick_after");
    assert!(complaint(|c| c.inflight_bdp = 0.0).starts_with("inflight_bdp = 0 is not allowed"));
}
