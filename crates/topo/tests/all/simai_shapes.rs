//! Networks of SimAI's topology generator (`gen_Topo_Template.py` of SimAI, commit cef83f9), and the same networks as
//! `cluster`: equal links between equal nodes.
//!
//! The files here are written by rules that were read from the generator: the order of ids is GPUs, NVSwitches, leaves,
//! spines; of two ToRs or planes, all leaves of the first precede those of the second.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use pathweave_topo::{Link, NodeId, Topology, TopologyConfig, parse_simai_topology};
use pathweave_units::HostId;

/// Attachment of the NICs of a server in SimAI's generator.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Leaves {
    /// A leaf for each rail of a segment (Spectrum-X).
    Rails,
    /// Two leaves for each rail, below all spines (AlibabaHPN, one plane).
    RailsOfTwoTors,
    /// Two leaves for each rail, each with spines of its plane (AlibabaHPN, two planes).
    RailsOfTwoPlanes,
    /// A leaf for all NICs of a segment (DCN+).
    Shared,
    /// Two leaves for all NICs of a segment (DCN+, dual ToR).
    SharedTwoTors,
}

/// Network in the parameters of the generator.
#[derive(Clone, Copy, Debug)]
struct Shape {
    leaves: Leaves,
    gpus: u32,
    of_server: u32,
    nvswitches_of_server: u32,
    nics_per_leaf: u32,
    spines: u32,
}

/// Ids of the nodes of a file.
struct Ids {
    /// Leaves of each side (ToR or plane).
    leaves: Vec<Vec<u32>>,
    /// Spines of each plane.
    spines: Vec<Vec<u32>>,
    nvswitches: Vec<u32>,
    nodes: u32,
}

impl Shape {
    fn has_rails(&self) -> bool {
        !matches!(self.leaves, Leaves::Shared | Leaves::SharedTwoTors)
    }

    fn sides(&self) -> u32 {
        if matches!(self.leaves, Leaves::Rails | Leaves::Shared) { 1 } else { 2 }
    }

    fn planes(&self) -> u32 {
        if self.leaves == Leaves::RailsOfTwoPlanes { 2 } else { 1 }
    }

    /// Returns the number of leaves of a side.
    fn leaves_of_side(&self) -> u32 {
        match self.has_rails() {
            true => self.gpus.div_ceil(self.nics_per_leaf * self.of_server) * self.of_server,
            false => self.gpus.div_ceil(self.nics_per_leaf),
        }
    }

    /// Returns the leaf of a GPU among those of a side.
    fn leaf_of(&self, gpu: u32) -> u32 {
        match self.has_rails() {
            true => gpu / (self.nics_per_leaf * self.of_server) * self.of_server + gpu % self.of_server,
            false => gpu / self.nics_per_leaf,
        }
    }

    fn ids(&self) -> Ids {
        let mut next = self.gpus;
        let mut take = |count: u32| {
            next += count;
            (next - count..next).collect::<Vec<_>>()
        };
        let nvswitches = take(self.gpus / self.of_server * self.nvswitches_of_server);
        let leaves = (0..self.sides()).map(|_| take(self.leaves_of_side())).collect();
        let spines = (0..self.planes()).map(|_| take(self.spines / self.planes())).collect();
        Ids { leaves, spines, nvswitches, nodes: next }
    }

    /// Writes the file.
    fn file(&self) -> String {
        let ids = self.ids();
        let mut links = Vec::new();
        for gpu in 0..self.gpus {
            let first = gpu / self.of_server * self.nvswitches_of_server;
            for nvswitch in first..first + self.nvswitches_of_server {
                links.push(format!("{gpu} {} 2880Gbps 0.000025ms 0", ids.nvswitches[nvswitch as usize]));
            }
            for side in &ids.leaves {
                links.push(format!("{gpu} {} 200Gbps 0.0005ms 0", side[self.leaf_of(gpu) as usize]));
            }
        }
        for (side, leaves) in ids.leaves.iter().enumerate() {
            let spines = &ids.spines[side % ids.spines.len()];
            let pairs = leaves.iter().flat_map(|leaf| spines.iter().map(move |spine| (leaf, spine)));
            links.extend(pairs.map(|(leaf, spine)| format!("{leaf} {spine} 400Gbps 0.0005ms 0")));
        }
        let nvswitches = ids.nvswitches.len() as u32;
        let switches = ids.nodes - self.gpus - nvswitches;
        let mut text =
            format!("{} {} {nvswitches} {switches} {} H100\n", ids.nodes, self.of_server, links.len());
        (self.gpus..ids.nodes).for_each(|id| write!(text, "{id} ").unwrap());
        format!("{text}\n{}\n", links.join("\n"))
    }

    /// Returns the same network as a cluster.
    fn cluster(&self) -> Topology {
        let (planes, sides) = (self.planes(), self.sides());
        let (attach, unit) = match self.leaves {
            Leaves::Shared => ("server", String::new()),
            Leaves::SharedTwoTors => ("server", format!("unit = {}", self.nics_per_leaf / self.of_server)),
            _ => ("rail", format!("unit = {}", self.nics_per_leaf)),
        };
        let text = format!(
            "kind = 'cluster'\nservers = {}\nattach = '{attach}'\n{unit}\nplanes = {}\n\
             [server]\ngpus = {}\nnic_ports = {sides}\n\
             [server.scale_up]\nkind = 'switch'\nrate = '{}Gbps'\ndelay = '50ns'\n\
             [scale_out]\nkind = 'leaf-spine'\nleaves = {}\nspines = {}\nhosts_per_leaf = {}\n\
             host_rate = '200Gbps'\nspine_rate = '400Gbps'\nhost_delay = '500ns'\n",
            self.gpus / self.of_server,
            planes > 1,
            self.of_server,
            2_880 * self.nvswitches_of_server,
            self.leaves_of_side() * sides / planes,
            self.spines / planes,
            self.nics_per_leaf,
        );
        let config: TopologyConfig = toml::from_str(&text).unwrap();
        config.build(Path::new("")).unwrap_or_else(|why| panic!("{self:?}: {why}\n{text}"))
    }

    /// Returns the node of the cluster for each id of the file but NVSwitches.
    fn nodes_of_cluster(&self) -> BTreeMap<u32, String> {
        let ids = self.ids();
        let mut names = BTreeMap::new();
        for gpu in 0..self.gpus {
            names.insert(gpu, format!("srv{}.gpu{}", gpu / self.of_server, gpu % self.of_server));
        }
        for (side, leaves) in ids.leaves.iter().enumerate() {
            for (index, &id) in leaves.iter().enumerate() {
                let beside = match self.leaves {
                    Leaves::RailsOfTwoPlanes => format!("p{side}.leaf{index}"),
                    _ => format!("leaf{}", index * ids.leaves.len() + side),
                };
                names.insert(id, beside);
            }
        }
        for (plane, spines) in ids.spines.iter().enumerate() {
            let prefix = if ids.spines.len() > 1 { format!("p{plane}.") } else { String::new() };
            names.extend(spines.iter().enumerate().map(|(index, &id)| (id, format!("{prefix}spine{index}"))));
        }
        names
    }
}

/// Number of links by their ends, in the order of names, and by rate, delay and loss.
type Links = BTreeMap<([String; 2], String), usize>;

fn count<'a>(links: impl Iterator<Item = &'a Link>, name: impl Fn(NodeId) -> String) -> Links {
    let mut counted = Links::new();
    for link in links {
        let mut ends = [name(link.a), name(link.b)];
        ends.sort();
        *counted.entry((ends, format!("{} {} {}", link.rate, link.delay, link.error_rate))).or_default() += 1;
    }
    counted
}

/// Id of a node in the file: an imported node has the name of its kind and its id.
fn id(topology: &Topology, node: NodeId) -> u32 {
    let name = topology.node_name(node);
    name.trim_start_matches(|letter: char| !letter.is_ascii_digit()).parse().unwrap()
}

fn isomorphic(shape: Shape) {
    let imported = parse_simai_topology("topology", &shape.file()).unwrap();
    let cluster = shape.cluster();
    assert_eq!(imported.hosts(), cluster.hosts());

    // The scale-out network, link by link.
    let names = shape.nodes_of_cluster();
    let is_nvlink =
        |link: &&Link| [link.a, link.b].iter().any(|end| imported.node_name(*end).starts_with("nvswitch"));
    let expected = count(imported.links().iter().filter(|link| !is_nvlink(link)), |node| {
        names[&id(&imported, node)].clone()
    });
    let found = count(cluster.links().iter(), |node| cluster.node_name(node).into_owned());
    assert_eq!(found, expected, "{shape:?}");
    assert_eq!(cluster.switches().len() + shape.ids().nvswitches.len(), imported.switches().len());

    // GPUs with common NVSwitches are a domain, whose links have the sum of the rates.
    let scale_up = cluster.scale_up().unwrap();
    let nvswitches = |gpu: u32| {
        let ends = imported.ports(NodeId(gpu)).iter().map(|port| (port.peer, imported.link(port.link)));
        ends.filter(|(peer, _)| imported.node_name(*peer).starts_with("nvswitch")).collect::<Vec<_>>()
    };
    for gpu in 0..shape.gpus {
        let mine = nvswitches(gpu);
        let rate: u64 = mine.iter().map(|(_, link)| link.rate.as_bps()).sum();
        assert_eq!(scale_up.rate_of(HostId(gpu)).as_bps(), rate);
        assert_eq!(scale_up.delay().as_ps(), 2 * mine[0].1.delay.as_ps());
        let peers = |gpu: u32| nvswitches(gpu).into_iter().map(|(peer, _)| peer).collect::<Vec<_>>();
        for other in 0..shape.gpus {
            let shares = peers(other) == peers(gpu);
            assert_eq!(scale_up.joins(HostId(gpu), HostId(other)), shares, "{gpu} and {other}");
        }
    }
}

const BASE: Shape = Shape {
    leaves: Leaves::Rails,
    gpus: 64,
    of_server: 8,
    nvswitches_of_server: 1,
    nics_per_leaf: 4,
    spines: 6,
};

#[test]
fn spectrum_x() {
    isomorphic(BASE);
    isomorphic(Shape { gpus: 128, of_server: 4, nics_per_leaf: 16, ..BASE });
}

#[test]
fn hpn_in_one_plane() {
    isomorphic(Shape { leaves: Leaves::RailsOfTwoTors, ..BASE });
}

#[test]
fn hpn_in_two_planes() {
    isomorphic(Shape { leaves: Leaves::RailsOfTwoPlanes, ..BASE });
}

#[test]
fn dcn_with_one_tor() {
    isomorphic(Shape { leaves: Leaves::Shared, nics_per_leaf: 16, ..BASE });
    // A leaf ends within a server.
    isomorphic(Shape { leaves: Leaves::Shared, nics_per_leaf: 12, ..BASE });
}

#[test]
fn dcn_with_two_tors() {
    isomorphic(Shape { leaves: Leaves::SharedTwoTors, nics_per_leaf: 16, ..BASE });
}

#[test]
fn several_nvswitches_of_a_server() {
    isomorphic(Shape { nvswitches_of_server: 4, ..BASE });
}

/// The last segment is not full: 40 GPUs are five servers, four of them a segment of rails or two a leaf.
#[test]
fn a_last_segment_that_is_not_full() {
    for leaves in [Leaves::Rails, Leaves::RailsOfTwoTors, Leaves::RailsOfTwoPlanes] {
        isomorphic(Shape { leaves, gpus: 40, ..BASE });
    }
    for leaves in [Leaves::Shared, Leaves::SharedTwoTors] {
        isomorphic(Shape { leaves, gpus: 40, nics_per_leaf: 16, ..BASE });
    }
}

/// Counts by hand: 64 GPUs in rails of 4 NICs a leaf are 2 segments of 8 leaves, or 16 of two ToRs; with 6 spines 96 or
/// 192 links above the leaves, and 96 of two planes with 3 spines each.
#[test]
fn counts_of_the_shapes() {
    let links = |leaves| Shape { leaves, ..BASE }.cluster().links().len();
    assert_eq!(links(Leaves::Rails), 64 + 96);
    assert_eq!(links(Leaves::RailsOfTwoTors), 128 + 192);
    assert_eq!(links(Leaves::RailsOfTwoPlanes), 128 + 96);
    assert!(BASE.file().starts_with("94 8 8 22 224 H100\n64 65 "));
}
