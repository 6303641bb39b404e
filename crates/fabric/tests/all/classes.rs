//! Switches whose settings differ, and links whose directions differ.

use crate::support::{Net, cable, classes, data, lossless, plain, ps, star};
use pathweave_fabric::config::{
    Asic, ClassError, EcnChange, PfcChange, SwitchClasses, SwitchConfig, SwitchFor, SwitchRole, Thresholds,
};
use pathweave_fabric::{BuildError, Cable, DropReason, Fabric, PortMap};
use pathweave_units::{Bytes, Duration, Rate, Time};

/// Two hosts on each of two switches, s0 and s1, which one cable joins.
fn dumbbell() -> Vec<Cable> {
    vec![
        cable(0, 4, 100, 1_000),
        cable(1, 4, 100, 1_000),
        cable(2, 5, 100, 1_000),
        cable(3, 5, 100, 1_000),
        cable(4, 5, 100, 1_000),
    ]
}

fn with_tables(config: SwitchConfig, tables: &[SwitchFor]) -> SwitchConfig {
    SwitchConfig { tables: tables.to_vec(), ..config }
}

fn named(names: &str) -> SwitchFor {
    SwitchFor { names: Some(names.to_owned()), ..SwitchFor::default() }
}

#[test]
fn later_tables_win_field_by_field() {
    let first = SwitchFor { asic: Some(Asic::Tomahawk5), egress_alpha: Some(2.0), ..named("s*") };
    let second = SwitchFor { tier: Some(1), buffer: Some(Bytes::from_mb(7)), ..SwitchFor::default() };
    let third = SwitchFor { latency: Some(Duration::from_ns(600)), ..named("s?") };
    let classes = classes(&with_tables(plain(), &[first, second, third]), 3);
    let of = |switch| {
        let config = classes.of(switch);
        (config.buffer, config.egress_alpha, config.latency)
    };
    let latency = Duration::from_ns(600);
    assert_eq!(of(0), (Bytes::from_mb(165), 2.0, latency));
    assert_eq!(of(1), (Bytes::from_mb(7), 2.0, latency));
    assert_eq!((classes.class_of(1), classes.class_of(2)), (2, 2), "s1 and s2 are alike");
    assert_eq!(classes.each().count(), 2, "no switch has the general settings");
    assert_eq!(classes.general().buffer, plain().buffer);
}

#[test]
fn tables_that_repeat_the_general_settings_make_no_class() {
    let pfc = PfcChange { enabled: Some(false), ..PfcChange::default() };
    let table = SwitchFor { buffer: Some(plain().buffer), pfc: Some(pfc), ..named("*") };
    assert_eq!(classes(&with_tables(plain(), &[table]), 3), SwitchClasses::uniform(&plain()));
}

#[test]
fn tables_that_select_nothing_or_set_nonsense_are_refused() {
    let names = ["p0.leaf0", "p0.leaf1", "p1.leaf0", "p0.spine0"];
    let places = names.iter().map(|name| pathweave_fabric::config::SwitchPlace {
        name,
        tier: u8::from(name.contains("spine")),
        group: name.contains("leaf").then_some(4),
        role: SwitchRole::Local,
    });
    let refused = |table: SwitchFor| {
        let all = SwitchFor { egress_alpha: Some(0.5), ..named("*") };
        SwitchClasses::new(&with_tables(plain(), &[all, table]), places.clone()).unwrap_err()
    };
    let no_match = |field, selection: &str, allowed: &str, nearest: Option<&str>| ClassError::NoMatch {
        table: 1,
        field,
        selection: selection.to_owned(),
        allowed: allowed.to_owned(),
        nearest: nearest.map(str::to_owned),
    };
    let like = "names like p*.leaf*, p*.spine*";
    assert_eq!(refused(named("p0.laef*")), no_match("match", "\"p0.laef*\"", like, Some("p*.leaf*")));
    let open = "\"[\" has no \"]\"";
    assert_eq!(refused(named("p0.leaf[0-")), no_match("match", "\"p0.leaf[0-\"", open, None));
    let of_tier = |tier| SwitchFor { tier: Some(tier), ..SwitchFor::default() };
    assert_eq!(refused(of_tier(2)), no_match("tier", "2", "0 to 1", None));
    let of_group = SwitchFor { group: Some(5), ..SwitchFor::default() };
    assert_eq!(refused(of_group), no_match("group", "5", "4 to 4", None));
    let both = SwitchFor { tier: Some(1), ..named("*leaf*") };
    let together = "values that apply to one switch together";
    assert_eq!(refused(both), no_match("match", "match = \"*leaf*\", tier = 1", together, None));
    assert_eq!(refused(SwitchFor::default()), ClassError::NothingSelected { table: 1 });
    for (idle, field) in [(named("*leaf0"), "match"), (of_tier(1), "tier")] {
        assert_eq!(refused(idle), ClassError::ChangesNothing { table: 1, field });
    }
    let empty = SwitchFor { ecn: Some(EcnChange::default()), ..named("*leaf0") };
    assert_eq!(refused(empty), ClassError::ChangesNothing { table: 1, field: "match" });
    let ecn = EcnChange { kmin: Some(Bytes::from_mb(3)), ..EcnChange::default() };
    let ClassError::Value { table: 1, error } = refused(SwitchFor { ecn: Some(ecn), ..named("*leaf0") })
    else {
        panic!("kmin is above kmax")
    };
    assert_eq!((error.field, error.allowed.as_str()), ("ecn.kmin", "at most kmax, 1600KB"));
}

/// Two senders fill the queue of s1 towards host 2 or that of s0 towards host 0, at twice its rate.
fn lost(config: &SwitchConfig, to: u32) -> usize {
    let cables = [vec![cable(0, 2, 100, 0), cable(1, 3, 100, 0)], vec![cable(2, 3, 400, 0)]].concat();
    let mut cables = cables;
    cables[usize::from(to == 1)].rate = Rate::from_gbps(50);
    let mut net = Net::<2>::new(2, 2, &cables, config, 1);
    net.send_many(Time::ZERO, 200, data(1 - to, to, 1_000));
    net.run();
    net.check_conservation();
    net.drops().len()
}

#[test]
fn each_switch_has_its_own_buffer() {
    // The queue grows by half of what arrives: to 100 kB. With alpha 1 it may hold half of the buffer.
    let small = SwitchFor { buffer: Some(Bytes::from_kb(64)), ..named("s1") };
    let config = with_tables(plain(), &[small]);
    assert_eq!(lost(&config, 0), 0, "s0 has a gigabyte");
    let uniform = SwitchConfig { buffer: Bytes::from_kb(64), ..plain() };
    assert!(lost(&uniform, 0) > 0);
    assert_eq!(lost(&config, 1), lost(&uniform, 1));
}

#[test]
fn each_switch_marks_by_its_own_thresholds() {
    let ecn = EcnChange {
        enabled: Some(true),
        kmin: Some(Bytes::new(0)),
        kmax: Some(Bytes::new(0)),
        thresholds: Some(Thresholds::Fixed),
        ..EcnChange::default()
    };
    let marked = |names: &str| {
        let config = with_tables(plain(), &[SwitchFor { ecn: Some(ecn.clone()), ..named(names) }]);
        let mut cables = dumbbell();
        cables[4].rate = Rate::from_gbps(50);
        let mut net = Net::<2>::new(4, 2, &cables, &config, 1);
        net.send_many(Time::ZERO, 10, data(0, 2, 1_000));
        net.run();
        net.delivered.iter().filter(|delivery| delivery.marked).count()
    };
    // The queue is in s0, before the slow cable. Packets that leave a queue behind them are marked: all but the first,
    // which does not wait, the second, which leaves as the third arrives, and the last.
    assert_eq!((marked("s0"), marked("s1"), marked("s*")), (7, 0, 7));
}

#[test]
fn headroom_is_reserved_by_the_settings_of_the_switch() {
    let pfc = PfcChange { headroom: Some(Bytes::from_kb(100)), ..PfcChange::default() };
    let config = with_tables(
        SwitchConfig { buffer: Bytes::from_kb(200), ..lossless(0, 0.5, 10_000, 3, 1) },
        &[SwitchFor { pfc: Some(pfc), ..named("s1") }],
    );
    let cables = dumbbell();
    let map = PortMap::new(6, &cables);
    let routes = crate::support::shortest_routes(4, 2, &cables, &map, |_| true);
    let built = Fabric::<u32, 2>::new(4, 2, &cables, &map, routes, &classes(&config, 2), 1);
    let (headroom, buffer) = (Bytes::from_kb(300), Bytes::from_kb(200));
    assert_eq!(built.err(), Some(BuildError::BufferTooSmall { switch: 1, headroom, buffer }));
}

#[test]
fn headroom_follows_both_directions_of_a_link() {
    // Packets arrive at 100 Gb/s over 3 us; the pause frame leaves at 25 Gb/s over 1 us. After the decision to pause
    // arrive: 4 us = 50,000 B; the 9,216 B before the pause frame and its 84 B take 2,976 ns = 37,200 B; the frame
    // that the peer has begun and one that has just arrived 18,432 B. Together 105,632 B.
    let slow = Cable {
        delay: Duration::from_us(3),
        back: Some((Rate::from_gbps(25), Duration::from_us(1))),
        ..cable(0, 1, 100, 0)
    };
    let config = SwitchConfig { buffer: Bytes::new(105_632), ..lossless(0, 0.5, 0, 0, 1) };
    let config =
        SwitchConfig { pfc: pathweave_fabric::config::PfcConfig { headroom: None, ..config.pfc }, ..config };
    let map = PortMap::new(2, &[slow]);
    let routes = crate::support::shortest_routes(1, 1, &[slow], &map, |_| true);
    let built = Fabric::<u32, 2>::new(1, 1, &[slow], &map, routes, &classes(&config, 1), 1);
    let (headroom, buffer) = (Bytes::new(105_632), Bytes::new(105_632));
    assert_eq!(built.err(), Some(BuildError::BufferTooSmall { switch: 0, headroom, buffer }));
}

#[test]
fn directions_have_rates_and_delays_of_their_own() {
    // There 1,000 B take 80 ns and 1 us on each cable; on the way back the second cable takes 800 ns and 5 us.
    let mut cables = star(2, 100, 1_000);
    cables[1].back = Some((Rate::from_gbps(10), Duration::from_us(5)));
    let mut net = Net::<2>::new(2, 1, &cables, &plain(), 1);
    let to = net.send(Time::ZERO, data(0, 1, 1_000));
    let from = net.send(Time::ZERO, data(1, 0, 1_000));
    net.run();
    // End a is the host, so "back" is the direction towards host 1.
    assert_eq!(net.arrival(to), ps(80_000 + 1_000_000 + 800_000 + 5_000_000));
    assert_eq!(net.arrival(from), ps(2 * (80_000 + 1_000_000)));
    let (out, into) = (net.port(1, 2), net.port(2, 1));
    assert_eq!(net.fabric.link(out), (Rate::from_gbps(100), Duration::from_us(1)));
    assert_eq!(net.fabric.link(into), (Rate::from_gbps(10), Duration::from_us(5)));
}

#[test]
fn a_direction_fails_alone() {
    let mut net = Net::<2>::new(2, 1, &star(2, 100, 1_000), &plain(), 1);
    net.at(ps(1), |net, now| {
        let port = net.port(2, 1);
        net.fabric.direction_down(now, port);
    });
    let lost = net.send(ps(2), data(0, 1, 1_000));
    let back = net.send(ps(2), data(1, 0, 1_000));
    net.at(ps(10_000_000), |net, now| {
        let port = net.port(2, 1);
        net.fabric.direction_up(now, port);
    });
    let later = net.send(ps(10_000_000), data(0, 1, 1_000));
    net.run();
    assert_eq!(net.drops(), [(ps(2 + 1_080_000), lost, DropReason::LinkDown)]);
    assert_eq!(net.arrival(back), ps(2 + 2_160_000));
    assert_eq!(net.arrival(later), ps(10_000_000 + 2_160_000));
    net.check_conservation();
}

#[test]
fn a_pause_ends_when_nothing_can_renew_it() {
    // Hosts 0 and 1 send to host 2 at twice its rate, and the switch pauses them. When the direction from the switch
    // to host 0 fails, host 0 hears no end of its pause. The pause lapses, and host 0 sends on.
    let mut net = Net::<2>::new(3, 1, &star(3, 100, 1_000), &lossless(20_000, 0.5, 80_000, 3, 1), 1);
    for host in [0, 1] {
        net.send_many(Time::ZERO, 100, data(host, 2, 1_000));
    }
    net.at(ps(5_000_000), |net, now| {
        let (nic, port) = (net.port(0, 3), net.port(3, 0));
        assert!(!net.fabric.port_ready(now, nic), "host 0 is paused");
        net.fabric.direction_down(now, port);
    });
    net.run();
    assert_eq!(net.delivered.len(), 200, "the buffer has room for what the two still send");
    assert!(!net.fabric.any_paused());
    net.check_conservation();
}
