//! A flow alone on the network takes exactly the ideal time.

use crate::support::{back_to_back, fat_tree, fat_tree_of, finish, leaf_spine, spec, star};
use pathweave_sim::Verb::{self, Send, Write};
use pathweave_topo::Topology;
use pathweave_units::{Bytes, Duration, Rate};
use pathweave_wire::Framing::{self, Ns3, Pathweave, Rocev2};

/// Returns the measured and the ideal completion time in picoseconds.
fn fct(topology: Topology, to: u32, size: u64, verb: Verb, framing: Framing, scheme: &str) -> (u64, u64) {
    let mut spec = spec(topology, &[(0, to, size, 0)], scheme);
    spec.network.verb = verb;
    spec.network.framing = framing;
    let result = finish(&spec);
    let flow = &result.flows[0];
    (flow.fct_ps().unwrap(), flow.ideal_fct_ps)
}

#[test]
fn by_hand_on_two_hops() {
    for (size, verb, framing, expected) in [
        // 1 B fills a word: 4 + 82 + 16 (RETH) = 102 B, 8.16 ns on each hop.
        (1, Write, Rocev2, 2 * 8_160 + 2_000_000),
        (1, Send, Rocev2, 2 * 6_880 + 2_000_000),
        // 4096 + 98 = 4194 B: 335.52 ns.
        (4_096, Write, Rocev2, 2 * 335_520 + 2_000_000),
        // 4097: a second packet of 86 B, 6.88 ns, behind the first on the second hop.
        (4_097, Write, Rocev2, 2 * 335_520 + 6_880 + 2_000_000),
        // 1 MB: 244 x 4096 + 576 B. ns-3 counts 48 B for each header: 331.52 ns, and 49.92 ns for the last.
        (1_000_000, Send, Ns3, 245 * 331_520 + 49_920 + 2_000_000),
        (1_000_000, Write, Ns3, 245 * 331_520 + 49_920 + 2_000_000),
        // RoCEv2 WRITE: the first packet has 4194 B (335.52 ns), the others 4178 B (334.24 ns), the last 658 B (52.64
        // ns). On the second hop all packets follow the first without a gap.
        (1_000_000, Write, Rocev2, 2 * 335_520 + 243 * 334_240 + 52_640 + 2_000_000),
    ] {
        let case = format!("{size} B as {verb:?} in {framing:?}");
        assert_eq!(fct(star(2), 1, size, verb, framing, "ecmp"), (expected, expected), "{case}");
    }
}

#[test]
fn by_hand_on_one_hop() {
    // No switch: 244 packets of 331.52 ns and a last one, and 500 ns of cable.
    let pair = back_to_back(Rate::from_gbps(100), Duration::from_ns(500));
    let expected = 244 * 331_520 + 49_920 + 500_000;
    assert_eq!(fct(pair, 1, 1_000_000, Send, Ns3, "ecmp"), (expected, expected));
    // 3 Gb/s: 102 B are 272,000 ps; 4194 B are 11,184,000 ps; 86 B are 229,333.3 ps, rounded up.
    let slow = || back_to_back(Rate::from_gbps(3), Duration::from_ns(500));
    assert_eq!(fct(slow(), 1, 1, Write, Rocev2, "ecmp").0, 272_000 + 500_000);
    assert_eq!(fct(slow(), 1, 4_097, Write, Rocev2, "ecmp").0, 11_184_000 + 229_334 + 500_000);
}

#[test]
fn by_hand_on_six_hops() {
    // Through five switches: 4194 B six times.
    let expected = 6 * 335_520 + 6_000_000;
    assert_eq!(fct(fat_tree(), 15, 4_096, Write, Rocev2, "ecmp"), (expected, expected));
    // 1 MB of SEND: the sender transmits 244 full packets, the last of which needs five more hops, followed by the
    // short packet.
    let expected = (244 + 5) * 334_240 + 52_640 + 6_000_000;
    assert_eq!(fct(fat_tree(), 15, 1_000_000, Send, Rocev2, "ecmp"), (expected, expected));
}

#[test]
fn one_path_attains_the_ideal() {
    let sizes = [1, 3, 4_095, 4_096, 4_097, 8_192, 12_289, 100_000, 1_000_000];
    type Make = fn() -> (Topology, u32);
    let networks: [Make; 4] = [
        || (back_to_back(Rate::from_gbps(100), Duration::from_us(1)), 1),
        || (star(4), 3),
        || (leaf_spine(), 15),
        || (fat_tree(), 15),
    ];
    for make in networks {
        for size in sizes {
            for verb in [Write, Send] {
                for framing in [Rocev2, Ns3, Pathweave] {
                    for scheme in ["ecmp", "ecmp-sr"] {
                        let (topology, to) = make();
                        let case = format!("{} {size} {verb:?} {framing:?} {scheme}", topology.name());
                        let (measured, ideal) = fct(topology, to, size, verb, framing, scheme);
                        assert_eq!(measured, ideal, "{case}");
                    }
                }
            }
        }
    }
}

#[test]
fn no_scheme_beats_the_ideal_and_none_is_far_from_it() {
    for scheme in pathweave_policy::schemes() {
        for size in [1, 17, 1_500, 4_096, 4_097, 5_349, 8_193, 20_000, 70_001, 1_000_000] {
            for verb in [Write, Send] {
                // `finish` fails if a flow is faster than the ideal.
                let (measured, ideal) = fct(fat_tree(), 15, size, verb, Rocev2, scheme.name);
                assert!(measured < ideal * 2, "{} {size} B: {measured} for {ideal}", scheme.name);
            }
        }
    }
}

/// Faster and slower links beyond the hosts let short packets overtake long ones, or spread over slow links.
#[test]
fn no_scheme_beats_the_ideal_on_links_that_differ() {
    for rates in [(100, 400, 400), (400, 100, 100), (100, 25, 400), (100, 400, 25), (25, 100, 400)] {
        for scheme in pathweave_policy::schemes() {
            for size in [17, 5_349, 8_193, 20_000, 70_001] {
                let (hosts, pods, cores) = rates;
                let (measured, ideal) =
                    fct(fat_tree_of(hosts, pods, cores), 15, size, Write, Rocev2, scheme.name);
                assert!(measured >= ideal, "{} {size} B over {rates:?}: {measured} for {ideal}", scheme.name);
            }
        }
    }
}

#[test]
fn small_packets() {
    let mut spec = spec(star(2), &[(0, 1, 10_000, 0)], "ecmp");
    spec.network.mtu = Bytes::new(256);
    spec.network.verb = Send;
    // 39 packets of 256 + 82 B (27.04 ns) and one of 16 + 82 (7.84 ns).
    let result = finish(&spec);
    assert_eq!(result.flows[0].fct_ps(), Some(40 * 27_040 + 7_840 + 2_000_000));
    assert_eq!(result.flows[0].sent_packets, 40);
}
