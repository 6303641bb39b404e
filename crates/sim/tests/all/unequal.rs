//! Parallel paths that differ: ideal times and idle round trips are those of the best path, whatever its number.

use crate::support::{finish, spec};
use pathweave_sim::{NamedScheme, PathProfile, PathUse, SimSpec, Verb, ideal_fct, profiles};
use pathweave_topo::{Link, NodeId, Routing, Switch, Topology};
use pathweave_units::{Duration, Forwarding, HostId, Rate};
use pathweave_wire::Framing;

/// Rate in Gb/s and delay in microseconds of both links of a spine.
type Spine = (u64, u64);

/// Returns two leaves of two hosts each, with links of 100 Gb/s and 1 us, joined by these spines.
fn fabric(spines: &[Spine]) -> Topology {
    let link = |a, b, (gbps, us)| Link {
        a: NodeId(a),
        b: NodeId(b),
        rate: Rate::from_gbps(gbps),
        delay: Duration::from_us(us),
        error_rate: 0.0,
    };
    let switch = |name: String, tier| Switch { name, tier, group: None };
    let leaves = (0..2).map(|leaf| switch(format!("leaf{leaf}"), 0));
    let switches = leaves.chain((0..spines.len()).map(|spine| switch(format!("spine{spine}"), 1)));
    let hosts = (0..4).map(|host| link(host, 4 + host / 2, (100, 1)));
    let up = (4..6).flat_map(|leaf| (6..).zip(spines).map(move |(spine, is)| link(leaf, spine, *is)));
    Topology::new("unequal", 4, switches.collect(), hosts.chain(up).collect()).expect("a leaf-spine")
}

fn paths(spines: &[Spine]) -> Vec<PathProfile> {
    let topology = fabric(spines);
    profiles(&topology, &Routing::all_links_up(&topology), HostId(0), HostId(2))
}

/// Returns the ideal time of a SEND in RoCEv2 frames, in picoseconds.
fn ideal(spines: &[Spine], used: PathUse, size: u64) -> u64 {
    let of = |path: PathProfile| ideal_fct(&path.used(used), size, 1, 4_096, Framing::Rocev2, Verb::Send);
    paths(spines).into_iter().map(of).min().expect("a route").as_ps()
}

/// Returns the numberings of three spines.
fn numberings([a, b, c]: [Spine; 3]) -> [[Spine; 3]; 6] {
    [[a, b, c], [a, c, b], [b, a, c], [b, c, a], [c, a, b], [c, b, a]]
}

const SLOW_LONG_AND_NARROW: [[Spine; 3]; 5] = [
    [(100, 20), (100, 1), (100, 1)],
    [(10, 1), (100, 1), (100, 1)],
    [(10, 1), (40, 1), (40, 20)],
    [(100, 20), (10, 1), (10, 1)],
    [(1, 1), (10, 10), (40, 30)],
];

#[test]
fn numbers_of_spines_change_nothing() {
    for spines in SLOW_LONG_AND_NARROW {
        let expected = paths(&spines);
        for numbering in numberings(spines) {
            assert_eq!(paths(&numbering), expected, "{numbering:?}");
        }
    }
}

#[test]
fn a_long_path_beside_a_short_one_by_hand() {
    // 1 B: 86 B on the wire, 6.88 ns on each of four hops, and four times 1 us by the short spine.
    for spines in [[(100, 20), (100, 1)], [(100, 1), (100, 20)]] {
        for used in [PathUse::One, PathUse::All] {
            assert_eq!(ideal(&spines, used, 1), 4 * 6_880 + 4_000_000, "{spines:?} {used:?}");
        }
        let nearest = &paths(&spines)[0];
        assert_eq!(nearest.round_trip(1_000, 100), Duration::from_ps(8_000_000 + 4 * 88_000));
    }
}

#[test]
fn a_slow_path_beside_a_fast_one_by_hand() {
    // 1 MB: 244 packets of 4,178 B, 334.24 ns each, and one of 658 B, 52.64 ns. The first takes four hops.
    let expected = (244 + 3) * 334_240 + 52_640 + 4_000_000;
    for spines in [[(10, 1), (100, 1)], [(100, 1), (10, 1)]] {
        assert_eq!(ideal(&spines, PathUse::One, 1_000_000), expected, "{spines:?}");
    }
}

#[test]
fn the_size_decides_between_a_long_fast_path_and_a_short_slow_one() {
    for spines in [[(100, 20), (10, 1)], [(10, 1), (100, 20)]] {
        // 86 B: 68.8 ns on each slow hop, and 4 us in all, not 42.
        assert_eq!(ideal(&spines, PathUse::One, 1), 2 * 6_880 + 2 * 68_800 + 4_000_000);
        // 1 MB takes 816 us on the slow path.
        let long = (244 + 3) * 334_240 + 52_640 + 42_000_000;
        assert_eq!(ideal(&spines, PathUse::One, 1_000_000), long);
    }
}

#[test]
fn paths_side_by_side_wait_for_the_long_ones() {
    // Two spines of 40 Gb/s, one of 20 us. Half of the packets take 4 us and half 42 us: 23 us on average. At 80 Gb/s the
    // last full packet starts 121 x 835.6 ns after the first, takes two slow hops and a fast one, and the short one (52.64
    // ns) is behind it.
    let expected = 334_240 + 121 * 835_600 + 2 * 835_600 + 334_240 + 52_640 + 23_000_000;
    for spines in [[(40, 1), (40, 20)], [(40, 20), (40, 1)]] {
        let all = ideal(&spines, PathUse::All, 1_000_000);
        assert_eq!(all, expected, "{spines:?}");
        assert!(all < ideal(&spines, PathUse::One, 1_000_000));
        // Two packets do not wait for the long path: the second leaves 334.24 ns later at 40 Gb/s.
        let few = 2 * 334_240 + 3 * 835_600 + 4_000_000;
        assert_eq!(ideal(&spines, PathUse::One, 8_192), few);
    }
    // All paths together are never slower than the best one, and never faster than their rates allow.
    for (spines, most) in SLOW_LONG_AND_NARROW.into_iter().zip([100, 100, 90, 100, 51]) {
        for size in [1, 4_096, 4_097, 8_192, 50_000, 1_000_000, 20_000_000] {
            let [one, all] = [PathUse::One, PathUse::All].map(|used| ideal(&spines, used, size));
            assert!(all <= one, "{spines:?} {size}: {all} after {one}");
            let least = 4_000_000 + Rate::from_gbps(most).time_for(size).as_ps();
            assert!(all >= least, "{spines:?} {size}: {all} before {least}");
        }
    }
}

/// Returns the completion time and the ideal time of a message alone, in picoseconds.
fn alone(spines: &[Spine], size: u64, scheme: &str) -> (u64, u64) {
    let mut spec: SimSpec = spec(fabric(spines), &[(0, 2, size, 0)], scheme);
    spec.network.verb = Verb::Send;
    let flow = &finish(&spec).flows[0];
    (flow.fct_ps().unwrap(), flow.ideal_fct_ps)
}

#[test]
fn no_flow_undercuts_the_ideal() {
    for spines in SLOW_LONG_AND_NARROW {
        for scheme in ["ecmp", "rps", "weave"] {
            let used = PathUse::of(&NamedScheme::find(scheme).expect("a scheme").scheme, Forwarding::Ecmp);
            for size in [1, 4_097, 50_000, 1_000_000] {
                let expected = ideal(&spines, used, size);
                for numbering in [spines, [spines[2], spines[1], spines[0]]] {
                    let (fct, ideal) = alone(&numbering, size, scheme);
                    let case = format!("{numbering:?} {scheme} {size}");
                    assert_eq!(ideal, expected, "{case}");
                    assert!(fct >= ideal, "{case}: {fct} before {ideal}");
                }
            }
        }
    }
}

/// The ideal path takes 4 us there, the other one 10 us. Windows and targets by the near path would hold back a flow that
/// takes the far one: Swift to 1.6 of the ideal. HPCC leaves 5 % of the line free and sends 42 B more with each packet, and
/// 12 us are 2 % of 650 us.
#[test]
fn a_flow_fills_the_line_by_near_paths_and_by_far_ones() {
    for spines in [[(100, 1), (100, 4)], [(100, 4), (100, 1)]] {
        for (scheme, most) in
            [("swift", 1.03), ("swift-rps", 1.03), ("uet-nscc", 1.03), ("mrc", 1.03), ("hpcc", 1.1)]
        {
            let (fct, ideal) = alone(&spines, 8_000_000, scheme);
            let taken = fct as f64 / ideal as f64;
            assert!(taken < most, "{scheme} over {spines:?}: {taken:.3}");
        }
    }
}

/// Returns two hosts at two switches, whose ports differ: 400 Gb/s and 50 Gb/s at the first host, 40 Gb/s and 50 Gb/s at the
/// second one.
fn two_ports() -> Topology {
    let link = |a, b, gbps, ns| Link {
        a: NodeId(a),
        b: NodeId(b),
        rate: Rate::from_gbps(gbps),
        delay: Duration::from_ns(ns),
        error_rate: 0.0,
    };
    let switch = |name: &str| Switch { name: name.to_owned(), tier: 0, group: None };
    let links = vec![link(0, 3, 50, 300), link(0, 2, 400, 2_000), link(1, 3, 50, 600), link(1, 2, 40, 300)];
    Topology::new("two ports", 2, vec![switch("left"), switch("right")], links).expect("two switches")
}

/// The packet of 102 B takes 2.04 ns and 20.4 ns and 2,300 ns of delay by one switch. The acknowledgement of 86 B returns by
/// the other switch in 2 x 13.76 ns and 900 ns of delay.
#[test]
fn acknowledgements_may_return_by_a_shorter_way() {
    for scheme in ["ecmp", "rps"] {
        let flow = &finish(&spec(two_ports(), &[(0, 1, 1, 0)], scheme)).flows[0];
        assert_eq!((flow.fct_ps(), flow.ideal_fct_ps), (Some(2_322_440), 2_322_440), "{scheme}");
        assert_eq!(
            (flow.acked_fct_ps(), flow.ideal_acked_ps),
            (Some(3_249_960), Some(3_249_960)),
            "{scheme}"
        );
    }
}
