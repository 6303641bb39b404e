//! Drawings of the links of every kind of topology are whole: each line is inside the picture, and no two lines cover each
//! other.

use std::collections::BTreeSet;

use pathweave_records::Summary;
use pathweave_report::ResultFolder;
use pathweave_scenario::catalogue::topology_kinds;
use pathweave_scenario::{Changes, Loaded};
use pathweave_sim::NoMonitor;

/// A small topology of each kind that a scenario can write out.
const SMALL: &[&str] = &[
    "kind = \"star\", hosts = 5",
    "kind = \"dumbbell\", left_hosts = 2",
    "kind = \"leaf-spine\", leaves = 2, spines = 2, hosts_per_leaf = 2",
    "kind = \"fat-tree\", k = 4",
    "kind = \"cross-dc\", site = [{ kind = \"leaf-spine\", leaves = 2, spines = 2, hosts_per_leaf = 2 }, { kind = \"leaf-spine\", \
     leaves = 2, spines = 2, hosts_per_leaf = 2 }]",
    "kind = \"cluster\", servers = 4, server = { gpus = 2, nics = 2 }, scale_out = { kind = \"leaf-spine\", leaves = 2, \
     spines = 2, hosts_per_leaf = 4 }",
    "kind = \"dragonfly\", groups = 3, switches_per_group = 2, hosts_per_switch = 1",
    "kind = \"rail\", clusters = 4, gpus_per_cluster = 2",
    "kind = \"torus\", size = [4, 4]",
    "kind = \"full-mesh\", size = [5]",
    "kind = \"jellyfish\", switches = 8, links_per_switch = 3, hosts_per_switch = 1",
    "kind = \"bcube\", switch_ports = 2, levels = 2",
];
/// Kinds that read files or names.
const OF_FILES: &[&str] = &["file", "hpcc", "simai", "htsim", "laps", "astra", "preset"];

/// Returns the drawing of how busy links were in a report.
fn drawing(topology: &str) -> String {
    let text =
        format!("topology = {{ {topology} }}\n[[workload]]\nkind = \"permutation\"\nsize = \"20KB\"\n");
    let loaded = Loaded::parse(&text, "small.toml", "", &Changes::default());
    let prepared =
        loaded.and_then(|loaded| loaded.prepare()).unwrap_or_else(|why| panic!("{topology}: {why}"));
    let run = pathweave_scenario::run(&prepared.spec, &mut NoMonitor).expect("it was tried");
    let home = tempfile::tempdir().unwrap();
    let folder = ResultFolder::create(&home.path().join("out")).unwrap();
    folder.write_run(&run, &Summary::from_run(&run)).unwrap();
    folder.commit().unwrap();
    let page = std::fs::read_to_string(home.path().join("out/report.html")).unwrap();
    let figure = page.split("<figcaption>How busy links were</figcaption>").nth(1).expect("links are drawn");
    figure.split("</svg>").next().unwrap().to_owned()
}

fn numbers(text: &str) -> Vec<f64> {
    text.split(|c: char| !c.is_ascii_digit() && c != '.' && c != '-')
        .filter_map(|word| word.parse().ok())
        .collect()
}

#[test]
fn every_topology_is_drawn_whole() {
    let known: BTreeSet<String> =
        topology_kinds().into_iter().flat_map(|section| section.entries).map(|entry| entry.name).collect();
    let kind = |topology: &&&str| topology.split('"').nth(1).unwrap().to_owned();
    let drawn: BTreeSet<String> = SMALL.iter().map(|topology| kind(&topology)).collect();
    let all: BTreeSet<String> =
        drawn.into_iter().chain(OF_FILES.iter().map(|kind| (*kind).to_owned())).collect();
    assert_eq!(all, known, "a kind lacks a small topology above");
    for topology in SMALL {
        let svg = drawing(topology);
        let size = numbers(svg.split("viewBox=\"").nth(1).unwrap().split('"').next().unwrap());
        let paths: Vec<Vec<f64>> =
            svg.split(" d=\"").skip(1).map(|rest| numbers(rest.split('"').next().unwrap())).collect();
        assert!(!paths.is_empty(), "{topology}");
        let mut angles = BTreeSet::new();
        for path in &paths {
            for point in path.chunks(2) {
                let inside = (0.0..=size[2]).contains(&point[0]) && (0.0..=size[3]).contains(&point[1]);
                assert!(inside, "{topology}: {point:?} is not in {size:?}");
            }
            let [x, y, to_x, to_y] = path[..] else { panic!("{topology}: {path:?}") };
            assert!((to_x - x).hypot(to_y - y) > 5.0, "{topology}: {path:?} is too short to be seen");
            // Lines from a node in one direction cover each other. Parallel links have the same ends.
            let angle = ((to_y - y).atan2(to_x - x) * 500.0).round() as i64;
            angles.insert((x.to_bits(), y.to_bits(), angle));
        }
        let ends: BTreeSet<Vec<u64>> =
            paths.iter().map(|path| path.iter().map(|number| number.to_bits()).collect()).collect();
        assert_eq!(angles.len(), ends.len(), "{topology}: lines cover each other");
    }
}
