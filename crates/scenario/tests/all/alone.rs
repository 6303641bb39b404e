//! A message alone on the network takes its ideal time, on every known network, with packets and with flows.

use std::collections::BTreeSet;

use pathweave_records::RunResult;
use pathweave_scenario::{Changes, Loaded, run};
use pathweave_sim::NoMonitor;
use pathweave_topo::{presets, topologies};

/// Instance of each kind of topology that is not read from a file.
const KINDS: [(&str, &str); 18] = [
    ("star", "hosts = 4"),
    ("dumbbell", "left_hosts = 2\nhost_rate = \"200Gbps\"\nbottleneck_rate = \"40Gbps\""),
    ("leaf-spine", "leaves = 2\nspines = 4\nhosts_per_leaf = 2\nspine_rate = \"40Gbps\""),
    ("fat-tree", "k = 4"),
    ("cross-dc", "sites = 2\nsite = [{ kind = \"leaf-spine\", leaves = 2, spines = 2, hosts_per_leaf = 2 }]"),
    (
        "cluster",
        "servers = 2\nunit = 2\nserver = { gpus = 4, scale_up = { kind = \"switch\", rate = \"3600Gbps\" } }\n\
         scale_out = { kind = \"leaf-spine\", leaves = 4, spines = 4, hosts_per_leaf = 2 }",
    ),
    (
        "cluster",
        "servers = 4\nplanes = true\nattach = \"server\"\nserver = { gpus = 2, nic_ports = 2, pcie_rate = \"150Gbps\" }\n\
         scale_out = { kind = \"leaf-spine\", leaves = 2, spines = 4, hosts_per_leaf = 4 }",
    ),
    (
        "cluster",
        "servers = 2\nserver = { gpus = 4, nics = 2, pcie_rate = \"100Gbps\", scale_up = { kind = \"ring\", rate = \"200Gbps\" } }\n\
         scale_out = { kind = \"leaf-spine\", leaves = 2, spines = 4, hosts_per_leaf = 2 }",
    ),
    (
        "cluster",
        "servers = 2\nattach = \"server\"\n\
         server = { gpus = 4, scale_up = { kind = \"switch\", rate = \"1600Gbps\", chips = 2, packets = true } }\n\
         scale_out = { kind = \"leaf-spine\", leaves = 4, spines = 4, hosts_per_leaf = 2 }",
    ),
    (
        "cluster",
        "servers = 2\nserver = { gpus = 4, nics = 2, pcie_rate = \"100Gbps\", \
         scale_up = { kind = \"full-mesh\", rate = \"400Gbps\", packets = true } }\n\
         scale_out = { kind = \"leaf-spine\", leaves = 2, spines = 4, hosts_per_leaf = 2 }",
    ),
    (
        "cluster",
        "servers = 2\nattach = \"server\"\n\
         server = { gpus = 6, scale_up = { kind = \"ring\", rate = \"400Gbps\", packets = true } }\n\
         scale_out = { kind = \"leaf-spine\", leaves = 2, spines = 4, hosts_per_leaf = 6 }",
    ),
    (
        "cluster",
        "servers = 4\nserver = { gpus = 4, nics = 2, domain = 16, pcie_rate = \"100Gbps\", \
         scale_up = { kind = \"torus\", dims = [8, 2], rate = \"800Gbps\", packets = true } }\n\
         scale_out = { kind = \"leaf-spine\", leaves = 2, spines = 4, hosts_per_leaf = 4 }",
    ),
    ("dragonfly", "groups = 5\nswitches_per_group = 4\nhosts_per_switch = 2\nlinks_between_groups = 1"),
    ("rail", "clusters = 2\ngpus_per_cluster = 4\nrail_rate = \"400Gbps\"\nscale_up_rate = \"3600Gbps\""),
    ("torus", "size = [3, 3]"),
    ("full-mesh", "size = [3, 3]"),
    ("bcube", "switch_ports = 4"),
    ("jellyfish", "switches = 10\nlinks_per_switch = 4\nhosts_per_switch = 2\nwiring_seed = 1"),
];

/// File of each format that is read. In each of them all paths between two hosts are equal.
const FILES: [(&str, &str); 10] = [
    ("astra", "astra-hgx.yml"),
    ("hpcc", "hpcc-star-65.txt"),
    ("hpcc", "hpcc-fat-320.txt"),
    ("hpcc", "conweave-leaf-spine-128.txt"),
    ("hpcc", "conweave-fat-k8.txt"),
    ("simai", "simai-4gpu.txt"),
    ("htsim", "htsim-8.topo"),
    ("laps", "laps-rail.txt"),
    ("laps", "laps-dragonfly.txt"),
    ("file", "two-nics.toml"),
];

/// File whose paths differ. Schemes that treat paths alike are slower on it than schemes that know them.
const UNLIKE: (&str, &str) = ("file", "two-racks.toml");

/// File of two hosts with ports of unlike rates.
const UNEQUAL_PORTS: (&str, &str) = ("file", "unequal-ports.toml");

/// Schemes that begin at line rate and that only congestion slows down.
const AT_ONCE: [&str; 9] =
    ["rps-nocc", "reps", "weave", "laps", "strack", "smartt", "uet-nscc", "swift-rps", "mrc"];
/// Single-path schemes, for networks whose links between switches are no slower than those of hosts.
const ONE_PATH: [&str; 3] = ["ecmp", "per-message", "dctcp"];

/// Returns the slowdown of one message to the host `shift` numbers further, or `None` if links lose packets, which flow
/// simulations refuse.
fn slowdown(topology: &str, scheme: &str, shift: u32, fidelity: &str) -> Option<f64> {
    let text = format!(
        "scheme = \"{scheme}\"\n[observe]\ninterval = \"0s\"\n[run]\nfidelity = \"{fidelity}\"\n[topology]\n{topology}\n\
         [[workload]]\nkind = \"permutation\"\npattern = \"shift\"\nshift = {shift}\nflows = 1\nsize = \"4MB\"\n"
    );
    let result = result(&text)?;
    let flow = &result.flows[0];
    let fct = flow.fct_ps().unwrap_or_else(|| panic!("{topology} {scheme}: {flow:?}"));
    Some(fct as f64 / flow.ideal_fct_ps as f64)
}

fn result(text: &str) -> Option<RunResult> {
    let loaded = Loaded::parse(text, "test.toml", "", &Changes::default());
    let loaded = loaded.unwrap_or_else(|why| panic!("{text}\n{why}"));
    match loaded.prepare() {
        Ok(prepared) => Some(run(&prepared.spec, &mut NoMonitor).expect("it was tried")),
        Err(why) if why.to_string().contains("loses packets") => None,
        Err(why) => panic!("{text}\n{why}"),
    }
}

fn hosts(topology: &str) -> u32 {
    let text = format!(
        "scheme = \"rps\"\n[topology]\n{topology}\n[[workload]]\nkind = \"permutation\"\npattern = \"shift\"\nshift = 1\n\
         flows = 1\nsize = \"1B\"\n"
    );
    let loaded = Loaded::parse(&text, "test.toml", "", &Changes::default()).expect("a scenario");
    loaded.prepare().expect("a network").spec.topology.hosts()
}

fn file((kind, name): (&str, &str)) -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/topology/");
    format!("kind = \"{kind}\"\npath = \"{path}{name}\"")
}

/// Returns all networks by name.
fn networks() -> Vec<(String, String)> {
    let kinds = KINDS.map(|(kind, fields)| (kind.to_owned(), format!("kind = \"{kind}\"\n{fields}")));
    // The two largest take minutes.
    let known =
        presets().iter().map(|preset| preset.name).filter(|name| *name != "b4-1m" && *name != "b2-8192");
    let presets = known.map(|name| (name.to_owned(), format!("preset = \"{name}\"")));
    let files = FILES.map(|of| (of.1.to_owned(), file(of)));
    kinds.into_iter().chain(presets).chain(files).collect()
}

/// Networks whose links between switches are slower than those of hosts. Randomly sprayed packets collide there, and
/// those of a single path are marked.
const THIN: [&str; 9] = [
    "astra",
    "bcube",
    "cluster",
    "dumbbell",
    "leaf-spine",
    "htsim-8.topo",
    "erd",
    "udmp-320-8to1",
    "laps-rail",
];

fn is_thin(name: &str) -> bool {
    THIN.iter().any(|thin| name.starts_with(thin))
}

#[test]
fn every_kind_of_topology_is_tried() {
    let tried: BTreeSet<&str> = KINDS.iter().map(|of| of.0).chain(FILES.iter().map(|of| of.0)).collect();
    let known: BTreeSet<&str> = topologies().iter().map(|topology| topology.name).collect();
    assert_eq!(tried, known.into_iter().filter(|name| *name != "preset").collect());
}

#[test]
fn a_message_alone_has_slowdown_1() {
    let mut wrong = Vec::new();
    for (name, topology) in networks() {
        let one_path = ONE_PATH.into_iter().filter(|_| !is_thin(&name));
        let schemes: Vec<&str> = AT_ONCE.into_iter().chain(one_path).collect();
        // One packet is a thousandth of 4 MB.
        let most = if is_thin(&name) { 1.015 } else { 1.004 };
        for shift in BTreeSet::from([1, hosts(&topology) / 2]) {
            for scheme in &schemes {
                let slowdown = slowdown(&topology, scheme, shift, "packet").expect("packets may be lost");
                if !(0.9999..most).contains(&slowdown) {
                    wrong.push(format!("{name}, {scheme}, {shift} hosts on: {slowdown}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn no_message_is_faster_than_ideal_where_paths_differ() {
    for topology in [file(UNLIKE), file(UNEQUAL_PORTS)] {
        for scheme in AT_ONCE.into_iter().chain(ONE_PATH) {
            for shift in 1..hosts(&topology) {
                let slowdown = slowdown(&topology, scheme, shift, "packet").expect("packets may be lost");
                assert!(slowdown > 0.9999, "{topology}, {scheme}, {shift} hosts on: {slowdown}");
            }
        }
    }
}

#[test]
fn flows_take_the_same_time_as_packets() {
    let mut wrong = Vec::new();
    for (name, topology) in networks() {
        for shift in BTreeSet::from([1, hosts(&topology) / 2]) {
            for scheme in ["rps-nocc", "reps", "weave", "laps", "ecmp"] {
                let slowdown = slowdown(&topology, scheme, shift, "flow").unwrap_or(1.0);
                if !(0.98..1.02).contains(&slowdown) {
                    wrong.push(format!("{name}, {scheme}, {shift} hosts on: {slowdown}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
