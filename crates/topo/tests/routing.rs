//! Routing: both forms agree, every destination is reached, nothing loops.

use std::path::Path;

use pathweave_topo::*;
use pathweave_units::{HostId, Rate};
use proptest::prelude::*;

fn build(config: impl Build) -> Topology {
    config.build(Path::new(".")).unwrap()
}

/// Every form of regular Clos, small.
fn regular() -> impl Strategy<Value = Topology> {
    let links = 1..=3u32;
    prop_oneof![
        (1..=40u32).prop_map(|hosts| build(Star::new(hosts))),
        (1..=9u32, 1..=9u32, links.clone()).prop_map(|(left, right, between)| build(Dumbbell {
            right_hosts: Some(right),
            bottleneck_links: between,
            ..Dumbbell::new(left)
        })),
        (1..=6u32, 1..=5u32, 1..=7u32, links.clone()).prop_map(|(leaves, spines, hosts, bundle)| build(
            LeafSpine { leaf_spine_links: bundle, ..LeafSpine::new(leaves, spines, hosts) }
        )),
        fat_tree(),
    ]
}

fn fat_tree() -> impl Strategy<Value = Topology> {
    let counts = (1..=4u32, 1..=4u32, 1..=4u32, 1..=3u32, 1..=3u32);
    (counts, 1..=2u32, 1..=2u32, any::<bool>()).prop_map(|((p, t, h, a, c), up, core, mesh)| {
        build(FatTree {
            pods: Some(p),
            tors_per_pod: Some(t),
            hosts_per_tor: Some(h),
            aggs_per_pod: Some(a),
            cores: Some(if mesh { c } else { a * c }),
            core_wiring: if mesh { CoreWiring::FullMesh } else { CoreWiring::Planes },
            tor_agg_links: up,
            agg_core_links: core,
            ..FatTree::default()
        })
    })
}

fn assert_same(topology: &Topology) {
    let arithmetic = Routing::whole(topology);
    assert!(arithmetic.is_arithmetic(), "{} is regular", topology.name());
    let table = Routing::compute_table(topology, &|_| true);
    for dst in (0..topology.hosts()).map(HostId) {
        for node in (0..topology.nodes()).map(NodeId).filter(|&node| node != dst.into()) {
            assert_eq!(
                arithmetic.from_node(node, dst),
                table.from_node(node, dst),
                "{}: {} to host{dst}",
                topology.name(),
                topology.node_name(node)
            );
        }
    }
}

#[test]
fn the_udmp_fat_tree_by_hand() {
    let t = build(FatTree::udmp_320(16, Rate::from_gbps(400)));
    let r = Routing::whole(&t);
    // Host 37 is the 5th of ToR 2 of pod 0; ToR 2 sends to host 40 directly, elsewhere over its 4 uplinks.
    let tor2 = t.node_by_name("tor2").unwrap();
    assert_eq!(r.next_hops(tor2, HostId(40)), NextHops::List(&[8]));
    assert_eq!(r.next_hops(tor2, HostId(64)), NextHops::List(&[16, 17, 18, 19]));
    // Aggregation switch 1 of pod 1 has hosts 64 to 127 below: ToR 5 (80 to 95) is its second port.
    let agg = t.node_by_name("agg1.1").unwrap();
    assert_eq!(r.next_hops(agg, HostId(80)), NextHops::List(&[1]));
    assert_eq!(r.next_hops(agg, HostId(319)), NextHops::List(&[4, 5, 6, 7]));
    // Core 5 belongs to plane 1, one port a pod.
    let core = t.node_by_name("core5").unwrap();
    assert_eq!(t.ports(core).len(), 5);
    assert_eq!(t.node_name(t.ports(core)[3].peer), "agg3.1");
    assert_eq!(r.next_hops(core, HostId(319)), NextHops::List(&[4]));
    assert_same(&t);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn arithmetic_and_table_agree(topology in regular()) {
        assert_same(&topology);
    }
}
