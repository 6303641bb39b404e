//! Writers of topology files. Features that a format cannot express are appended to `lost`, for the user.

mod hpcc;
mod native;

pub(crate) use hpcc::write_hpcc;
pub(crate) use native::write_own;

use crate::graph::Topology;

/// Lists the features that only generated topologies have.
fn lost_of_generated(topology: &Topology, lost: &mut Vec<String>) {
    if topology.own_paths().0.is_some() {
        lost.push("the paths that its sources are meant to choose from".to_owned());
    }
    if topology.sites().is_some() {
        lost.push("which nodes are in which data centre".to_owned());
    }
    if topology.has_directions() {
        lost.push("directions of links that differ, and latencies of switches".to_owned());
    }
    if topology.scale_up().is_some() {
        lost.push(
            "the scale-up networks of servers: messages inside a server would take the NICs".to_owned(),
        );
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pathweave_units::{Duration, Rate};
    use proptest::prelude::*;

    use super::*;
    use crate::build::*;
    use crate::graph::{Link, NodeId, Switch};
    use crate::import::ParsedTopology;

    fn own(topology: &Topology) -> (String, Vec<String>) {
        let mut lost = Vec::new();
        (write_own(topology, &mut lost), lost)
    }

    fn data(name: &str) -> String {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/topology").join(name);
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn our_example_is_written_as_it_stands() {
        let example = parse_topology_file("two-racks.toml", &data("two-racks.toml")).unwrap();
        let (text, lost) = own(&example);
        assert_eq!(parse_topology_file("x", &text), Ok(example));
        assert!(lost.is_empty());
        let expected = "name = \"two racks\"\nhosts = 4\nrate = \"40Gbps\"\ndelay = \"1us\"\n\nswitch = [\n    \
                        { name = \"tor0\" },\n    { name = \"tor1\" },\n    { name = \"spine0\" },\n    \
                        { name = \"spine1\" },\n]\n\nlink = [\n    { a = \"host0\", b = \"tor0\", rate = \"100Gbps\" },\n";
        assert!(text.starts_with(expected), "{text}");
        assert!(text.contains("{ a = \"tor0\", b = \"spine0\", count = 2 },\n"), "{text}");
        let last = "{ a = \"tor1\", b = \"spine1\", delay = \"5us\", error_rate = 0.000001 },\n]\n";
        assert!(text.ends_with(last), "{text}");
    }

    #[test]
    fn every_import_survives_our_format() {
        let simai = parse_simai_topology("s", &data("simai-4gpu.txt")).unwrap();
        let htsim = parse_htsim_topology("h", &data("htsim-8.topo")).unwrap();
        let hpcc = |name: &str| parse_hpcc_topology("p", &data(name)).unwrap();
        let files =
            ["hpcc-star-65.txt", "hpcc-fat-320.txt", "conweave-leaf-spine-128.txt", "conweave-fat-k8.txt"];
        for topology in files.into_iter().map(hpcc).chain([simai, htsim]) {
            let (text, lost) = own(&topology);
            assert_eq!(parse_topology_file("x", &text).as_ref(), Ok(&topology));
            assert!(lost.is_empty(), "{lost:?}");
        }
    }

    #[test]
    fn hpcc_and_back() {
        for name in
            ["hpcc-star-65.txt", "hpcc-fat-320.txt", "conweave-leaf-spine-128.txt", "conweave-fat-k8.txt"]
        {
            let topology = parse_hpcc_topology("p", &data(name)).unwrap();
            let mut lost = Vec::new();
            let text = write_hpcc(&topology, &mut lost);
            assert_eq!(parse_hpcc_topology("x", &text), Ok(topology), "{name}");
            assert!(lost.is_empty(), "{name}: {lost:?}");
        }
    }

    #[test]
    fn hpcc_names_what_it_cannot_say() {
        let ours = "
            hosts = 2
            rate = '1Gbps'
            delay = '500ps'
            switch = [{ name = 'left', tier = 1 }, { name = 'right', group = 7 }]
            link = [{ a = 'host0', b = 'left' }, { a = 'left', b = 'right' }, { a = 'right', b = 'host1' }]";
        let topology = parse_topology_file("x", ours).unwrap();
        let mut lost = Vec::new();
        let text = write_hpcc(&topology, &mut lost);
        assert_eq!(text, "4 2 3\n2 3\n0 2 1Gbps 500ps 0\n2 3 1Gbps 500ps 0\n3 1 1Gbps 500ps 0\n");
        let expected = [
            "names, such as \"left\": nodes have numbers",
            "groups of switches",
            "tiers other than the distance from the hosts",
            "delays finer than a nanosecond, which these simulators round",
        ];
        assert_eq!(lost, expected);
    }

    #[test]
    fn writers_report_losses_of_generated_topologies() {
        let lost = |topology: &dyn Fn() -> Result<Topology, crate::TopoError>| own(&topology().unwrap()).1;
        let here = Path::new(".");
        assert!(lost(&|| LeafSpine::new(2, 2, 2).build(here)).is_empty());
        let paths = lost(&|| Rail::new(2, 4).build(here));
        assert_eq!(paths, ["the paths that its sources are meant to choose from"]);
        let site = TopologyConfig::LeafSpine(LeafSpine::new(2, 2, 2));
        let sites = lost(&|| CrossDc::new(site.clone(), 2).build(here));
        assert_eq!(sites, ["which nodes are in which data centre"]);
    }

    /// Generates a tree of switches with hosts, some additional links, and arbitrary numbers.
    fn any_topology() -> impl Strategy<Value = Topology> {
        let links = prop::collection::vec((0u32..64, 1u64..1 << 42, 0u64..1 << 45, 0u32..1000), 1..24);
        (1u32..5, links, any::<bool>(), any::<bool>()).prop_map(|(switches, links, named, tiered)| {
            let hosts = links.len() as u32;
            let link = |a: u32, b: u32, (rate, delay, error): (u64, u64, u32)| Link {
                a: NodeId(a),
                b: NodeId(b),
                rate: Rate::from_bps(rate),
                delay: Duration::from_ps(delay),
                error_rate: f64::from(error) / 1e6,
            };
            let mut all: Vec<Link> = Vec::new();
            for (host, &(at, rate, delay, error)) in (0..).zip(&links) {
                all.push(link(host, hosts + at % switches, (rate, delay, error)));
            }
            for switch in 1..switches {
                let (at, rate, delay, error) = links[switch as usize % links.len()];
                for _ in 0..1 + at % 3 {
                    all.push(link(hosts + switch, hosts + at % switch, (rate, delay, error)));
                }
            }
            let switch =
                |i: u32| Switch { name: format!("s-{i}"), tier: 0, group: i.is_multiple_of(2).then_some(i) };
            let host_names = named.then(|| (0..hosts).map(|i| format!("gpu{}:{i}", i / 8)).collect());
            let tiers = (0..switches).map(|i| tiered.then_some(i as u8)).collect();
            let switches = (0..switches).map(switch).collect();
            let name = "a \"name\"\n".to_owned();
            ParsedTopology { file: "x", name, hosts, host_names, switches, tiers, links: all }
                .finish()
                .unwrap()
        })
    }

    proptest! {
        #[test]
        fn written_files_are_read_again(topology in any_topology()) {
            let (text, lost) = own(&topology);
            prop_assert_eq!(lost, Vec::<String>::new());
            prop_assert_eq!(parse_topology_file("x", &text), Ok(topology.clone()));
            let mut lost = Vec::new();
            let hpcc = parse_hpcc_topology("x", &write_hpcc(&topology, &mut lost)).unwrap();
            prop_assert_eq!(hpcc.links(), topology.links());
        }
    }
}
