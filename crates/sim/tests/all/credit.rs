//! Receivers that grant credit, and their effect.

use crate::support::{Flow, all_to_all, finish, impair, incast, leaf_spine, permutation, spec};
use pathweave_fabric::config::{EcnConfig, SwitchConfig, TrimConfig};
use pathweave_records::RunResult;
use pathweave_sim::SimSpec;
use pathweave_units::{Bytes, Duration};

/// Schemes whose receivers grant credit.
const SCHEMES: [&str; 4] = ["uet-rccc", "uet", "eqds", "ndp"];

/// Returns a run with uet-htsim's switches, as in `trimming.rs`.
fn trimming(flows: &[Flow], scheme: &str) -> SimSpec {
    let ecn =
        EcnConfig { kmin: Bytes::new(37_350), kmax: Bytes::new(145_250), pmax: 1.0, ..EcnConfig::default() };
    let mut switch = SwitchConfig { ecn, ..SwitchConfig::default() };
    switch.pfc.enabled = false;
    switch.trim = TrimConfig { enabled: true, ..TrimConfig::default() };
    SimSpec { switch, ..spec(leaf_spine(), flows, scheme) }
}

fn last(result: &RunResult) -> Duration {
    Duration::from_ps(result.flows.iter().filter_map(|flow| flow.finish_ps).max().expect("all are done"))
}

fn trims(result: &RunResult) -> u64 {
    result.links.iter().map(|link| link.trimmed_packets).sum()
}

fn timeouts(result: &RunResult) -> u32 {
    result.flows.iter().map(|flow| flow.timeouts).sum()
}

/// Fifteen senders of 2 MB: 30 MB in 7,335 packets, which occupy the link for 2.4474 ms, or 2.472 ms at 99 % of its
/// rate. NDP spaces pulls by a packet and 64 bytes, EQDS by 4,178 bytes and 38 bytes at 1/0.99.
#[test]
fn an_incast_is_trimmed_at_first_and_then_as_fast_as_grants() {
    for (scheme, least_us, most_us) in
        [("uet-rccc", 2_447, 2_500), ("uet", 2_447, 2_500), ("eqds", 2_447, 2_520), ("ndp", 2_447, 2_540)]
    {
        let result = finish(&trimming(&incast(16, 2_000_000), scheme));
        let (done, trims) = (last(&result), trims(&result));
        let allowed = Duration::from_us(least_us)..Duration::from_us(most_us);
        assert!(allowed.contains(&done), "{scheme}: {done}, {trims} trims");
        // Trimmed packets belong to the first windows, at most 15 of 1.5 bandwidth-delay products.
        assert!(trims < 15 * 60, "{scheme}: {trims} trims");
        let senders_lost = result.links.iter().map(|link| link.dropped_packets).sum::<u64>();
        assert_eq!(senders_lost, 0, "{scheme}");
        assert!(timeouts(&result) <= 2, "{scheme}: {} timeouts", timeouts(&result));
    }
}

/// The first window is 1.5 bandwidth-delay products. A shorter message leaves without credit and arrives as early as
/// in a scheme without credit.
#[test]
fn a_short_message_does_not_wait_for_credit() {
    for scheme in ["uet-rccc", "eqds"] {
        let with = trimming(&[(0, 9, 30_000, 0)], scheme);
        let mut without = with.clone();
        without.schemes[0].scheme.credit = None;
        let [with, without] = [with, without].map(|spec| finish(&spec).flows[0].finish_ps);
        assert_eq!(with, without, "{scheme}");
    }
}

/// A single sender is granted 99 % of the link.
#[test]
fn a_long_message_keeps_the_pace_of_grants() {
    let result = finish(&trimming(&[(0, 9, 40_000_000, 0)], "uet-rccc"));
    // 9,766 packets with 800,812 bytes of headers: 40.8 MB, 3.2641 ms at 100 Gb/s and 3.297 ms at 99 Gb/s.
    let done = last(&result);
    assert!((Duration::from_us(3_272)..Duration::from_us(3_320)).contains(&done), "{done}");
    assert_eq!(trims(&result), 0);
}

/// Two receivers of one sender share its link, and each grants at its own rate. Grants of one receiver do not disturb
/// those of another.
#[test]
fn a_sender_to_several_receivers_fills_its_link() {
    let flows: Vec<Flow> = (8..12).map(|host| (0, host, 5_000_000, 0)).collect();
    let done = last(&finish(&trimming(&flows, "uet-rccc")));
    // 20.4 MB: 1.632 ms.
    assert!((Duration::from_us(1_632)..Duration::from_us(1_760)).contains(&done), "{done}");
}

/// Pulls, requests, data and their headers are lost, and every message still ends, with and without trimming.
#[test]
fn every_pattern_ends_where_packets_are_lost() {
    for scheme in SCHEMES {
        for trims in [true, false] {
            for flows in [incast(16, 300_000), permutation(16, 1_000_000), all_to_all(16, 40_000)] {
                let mut spec = trimming(&flows, scheme);
                spec.switch.trim.enabled = trims;
                spec.switch.buffer = Bytes::from_kb(500);
                impair(&mut spec, 0.005, false);
                let result = finish(&spec);
                assert!(result.flows.iter().all(|flow| flow.finish_ps.is_some()), "{scheme}");
            }
        }
    }
}
