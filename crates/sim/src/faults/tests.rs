//! Tests of faults that overlap, against the state of each instant by hand.

use std::path::Path;

use pathweave_topo::{Build, Star};

use super::*;

fn us(us: u64) -> Duration {
    Duration::from_us(us)
}

fn gbps(gbps: u64) -> Rate {
    Rate::from_gbps(gbps)
}

fn rate(link: &str, of: u64, at: u64, until: u64) -> FaultConfig {
    FaultConfig::LinkRate { link: link.into(), at: us(at), rate: gbps(of), until: Some(us(until)) }
}

fn delay(of: u64, at: u64, until: u64) -> FaultConfig {
    FaultConfig::LinkDelay { link: BOTH.into(), at: us(at), delay: us(of), until: Some(us(until)) }
}

fn loss(link: &str, probability: f64, at: u64, until: u64) -> FaultConfig {
    FaultConfig::LinkLoss { link: link.into(), at: us(at), probability, until: Some(us(until)) }
}

fn down(at: u64, up_at: u64) -> FaultConfig {
    FaultConfig::LinkDown { link: BOTH.into(), at: us(at), up_at: Some(us(up_at)) }
}

fn storm(at: u64, until: u64) -> FaultConfig {
    FaultConfig::PauseStorm { host: "host0".into(), at: us(at), until: Some(us(until)) }
}

const BOTH: &str = "host0-switch0";
const FORTH: &str = "host0->switch0";

/// Returns the actions of faults at a star of two hosts, with their times in microseconds. Checks that they are the same in the
/// reverse order of the faults, but for the numbers of the faults.
fn actions(faults: &[FaultConfig]) -> Vec<(u64, Action)> {
    let star = Star::new(2).build(Path::new(".")).unwrap();
    let map = PortMap::of_ends(star.nodes(), star.links().iter().map(|link| (link.a.0, link.b.0)));
    let of = |faults: &[FaultConfig]| -> Vec<(u64, Action)> {
        let turns = turns(&star, Some(&map), faults).unwrap();
        entries(&turns).iter().map(|entry| (entry.at.as_ps() / 1_000_000, entry.action)).collect()
    };
    let given = of(faults);
    let reversed: Vec<FaultConfig> = faults.iter().rev().cloned().collect();
    assert_eq!(of(&reversed), given, "the order of the faults has no effect");
    given
}

fn rates(faults: &[FaultConfig]) -> Vec<(u64, Ways, Option<u64>)> {
    let rate = |(at, action)| match action {
        Action::Rate(LinkId(0), ways, rate) => {
            (at, ways, rate.map(|rate: Rate| rate.as_bps() / 1_000_000_000))
        }
        other => panic!("{other:?}"),
    };
    actions(faults).into_iter().map(rate).collect()
}

#[test]
fn a_rate_follows_another_without_a_gap() {
    let all = rates(&[rate(FORTH, 50, 0, 200), rate(FORTH, 10, 200, 5_000)]);
    let way = Ways::FromA;
    let expected = [(0, way, Some(50)), (200, way, Some(10)), (200, way, Some(10)), (5_000, way, None)];
    assert_eq!(all, expected);
}

#[test]
fn the_smallest_rate_and_the_longest_delay_hold() {
    let b = Ways::Both;
    let nested = rates(&[rate(BOTH, 10, 100, 500), rate(BOTH, 20, 200, 300)]);
    assert_eq!(nested, [(100, b, Some(10)), (200, b, Some(10)), (300, b, Some(10)), (500, b, None)]);
    let partial = rates(&[rate(BOTH, 20, 100, 300), rate(BOTH, 10, 200, 500)]);
    assert_eq!(partial, [(100, b, Some(20)), (200, b, Some(10)), (300, b, Some(10)), (500, b, None)]);
    let other_end = rates(&[rate(BOTH, 10, 100, 300), rate(BOTH, 20, 200, 500)]);
    assert_eq!(other_end, [(100, b, Some(10)), (200, b, Some(10)), (300, b, Some(20)), (500, b, None)]);
    let delays = actions(&[delay(7, 100, 300), delay(3, 200, 500)]);
    let at = |at, of: Option<u64>| (at, Action::Delay(LinkId(0), b, of.map(us)));
    assert_eq!(delays, [at(100, Some(7)), at(200, Some(7)), at(300, Some(3)), at(500, None)]);
}

/// While one direction alone has a second fault, the directions differ.
#[test]
fn a_fault_of_one_direction_overlaps_with_one_of_the_link() {
    let all = rates(&[rate(BOTH, 20, 100, 300), rate(FORTH, 10, 200, 400)]);
    let (both, forth, back) = (Ways::Both, Ways::FromA, Ways::FromB);
    let end = [(300, forth, Some(10)), (300, back, None), (400, forth, None)];
    assert_eq!(all, [&[(100, both, Some(20)), (200, forth, Some(10))][..], &end].concat());
}

#[test]
fn losses_are_independent() {
    let all = actions(&[loss(FORTH, 0.2, 0, 1_000), loss(FORTH, 0.1, 20, 30)]);
    let near = |(at, action), (expected_at, expected): (u64, f64)| match action {
        Action::Loss(LinkId(0), Ways::FromA, p) => at == expected_at && f64::abs(p - expected) < 1e-12,
        _ => false,
    };
    let expected = [(0, 0.2), (20, 0.28), (30, 0.2), (1_000, 0.0)];
    assert_eq!(all.len(), 4);
    assert!(all.iter().zip(expected).all(|(&is, expected)| near(is, expected)), "{all:?}");
}

#[test]
fn a_storm_lasts_until_the_last_one_ends() {
    let calm = |faults: &[FaultConfig]| -> Vec<(u64, bool)> {
        let is_storm = |(at, action)| (at, matches!(action, Action::StormStart(_)));
        actions(faults).into_iter().map(is_storm).collect()
    };
    assert_eq!(calm(&[storm(10, 90), storm(20, 30)]), [(10, true), (20, true), (30, true), (90, false)]);
    assert_eq!(calm(&[storm(10, 20), storm(20, 30)]), [(10, true), (20, true), (20, true), (30, false)]);
}

/// The second failure begins before the first ends, so that the link is not up in between.
#[test]
fn a_link_that_fails_again_at_once_stays_down() {
    let (begin, end) = (Action::Down(LinkId(0), Ways::Both), Action::Up(LinkId(0), Ways::Both));
    assert_eq!(actions(&[down(10, 20), down(20, 30)]), [(10, begin), (20, begin), (20, end), (30, end)]);
}

#[test]
fn events_of_faults_keep_the_edge_and_are_not_doubled() {
    let star = Star::new(2).build(Path::new(".")).unwrap();
    let faults = [rate(BOTH, 20, 100, 300), rate(FORTH, 10, 200, 400)];
    let entries = entries(&turns(&star, None, &faults).unwrap());
    let edges: Vec<_> = entries.iter().filter_map(|entry| entry.fault).collect();
    assert_eq!(edges, [(0, Edge::Begin), (1, Edge::Begin), (0, Edge::End), (1, Edge::End)]);
}
