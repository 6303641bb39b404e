//! Import of the topologies of SimAI, a variant of HPCC's `topology.txt`.
//!
//! The header has six words: the number of nodes, of GPUs in each server, of NVSwitches, of other switches and of
//! links, and the kind of GPU. The ids of NVSwitches and of switches follow, then links as in HPCC. All other nodes
//! are GPUs, which are hosts here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use pathweave_units::HostId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Build;
use super::word_lines::{LineReader, header_words};
use crate::error::TopoError;
use crate::graph::{MAX_NODES, NodeId, Topology};
use crate::host_ports::leading_ports;
use crate::read::read_text;
use crate::routing::Routing;

/// A topology of SimAI: GPUs with NVSwitches and a network.
///
/// A GPU is a host. Routes are shortest by number of links. Traffic between GPUs of a server therefore takes an
/// NVSwitch. If the two GPUs also share a leaf, traffic takes both, unless one is more than four times as fast as the
/// other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SimAiTopology {
    /// The file, relative to the scenario file.
    pub path: PathBuf,
}

impl Build for SimAiTopology {
    fn build(&self, base_dir: &Path) -> Result<Topology, TopoError> {
        let (file, text) = read_text(base_dir, &self.path)?;
        parse_simai_topology(&file, &text)
    }

    fn file(&mut self) -> Option<&mut PathBuf> {
        Some(&mut self.path)
    }

    fn has_node_ids(&self) -> bool {
        true
    }
}

/// Parses the text of a topology of SimAI. `file` is its name in errors.
pub fn parse_simai_topology(file: &str, text: &str) -> Result<Topology, TopoError> {
    const HEADER: [&str; 6] = ["nodes", "gpus_per_server", "nvswitches", "switches", "links", "gpu_type"];
    let mut lines = LineReader::new(file, text);
    let header =
        lines.expect("a header with the numbers of nodes, GPUs a server, NVSwitches, switches and links")?;
    if header_words(text).len() == 3 {
        let what = "the header has 3 columns, as HPCC's has, kind = \"hpcc\"; expected 6: ".to_owned()
            + &HEADER.join(" ");
        return Err(header.refuse(0, what));
    }
    header.has_columns("the header", &HEADER)?;
    let nodes = header.node_count(0)?;
    let part = |column: usize, what: &str, least: u64| {
        Ok(header.number(column, &format!("the number of {what}"), least, u64::from(MAX_NODES))? as u32)
    };
    let of_server = part(1, "GPUs a server", 1)?;
    let (nvswitches, switches) = (part(2, "NVSwitches", 0)?, part(3, "switches", 0)?);
    let gpus = i64::from(nodes) - i64::from(nvswitches) - i64::from(switches);
    if gpus < 1 {
        let what = format!(
            "{nodes} nodes are fewer than {nvswitches} NVSwitches, {switches} switches and at least one GPU; expected the \
             number of all of them"
        );
        return Err(header.refuse(0, what));
    }
    if i64::from(of_server) > gpus {
        let what = format!(
            "{of_server} GPUs a server, but {gpus} in all: that is how many of the {nodes} nodes are left beside {nvswitches} \
             NVSwitches and {switches} switches"
        );
        return Err(header.refuse(1, what));
    }
    let links = header.link_count(4)?;
    let gpu = header.word(5);
    if gpu.parse::<u64>().is_ok() {
        let what = format!(
            "the kind of GPU is \"{gpu}\"; expected a name, such as H100. The header of HPCC is three numbers, kind = \"hpcc\""
        );
        return Err(header.refuse(5, what));
    }
    let topology = lines.read_body(nodes, &[("nvswitch", nvswitches), ("switch", switches)], links)?;
    let twice = hosts_sharing_nvswitch_and_leaf(&topology).filter(|(a, b)| uses_several(&topology, *a, *b));
    Ok(match twice {
        None => topology,
        Some((a, b)) => {
            let (a, b) = (topology.node_name(a).into_owned(), topology.node_name(b).into_owned());
            let note = format!(
                "{file}: GPUs that share an NVSwitch and a leaf, such as {a} and {b}, use both for each other: routes are \
                 shortest by number of links"
            );
            topology.with_note(note)
        }
    })
}

/// Returns true if one host sends to the other over several switches.
fn uses_several(topology: &Topology, a: NodeId, b: NodeId) -> bool {
    let (a, b) = (HostId(a.0), HostId(b.0));
    let leading = leading_ports(topology, &Routing::all_links_up(topology), a, b);
    let ports = topology.ports(a.into()).iter().enumerate().filter(|(port, _)| leading >> port & 1 == 1);
    ports.map(|(_, port)| port.peer).collect::<BTreeSet<_>>().len() > 1
}

/// Returns two hosts that share an NVSwitch and another switch, if there are any.
fn hosts_sharing_nvswitch_and_leaf(topology: &Topology) -> Option<(NodeId, NodeId)> {
    let is_nvswitch = |node: NodeId| {
        topology.switch_index(node).is_some_and(|i| topology.switches()[i].name.starts_with("nvswitch"))
    };
    let hosts_at =
        |switch: NodeId| topology.ports(switch).iter().map(|port| port.peer).filter(|&n| topology.is_host(n));
    let others = (topology.hosts()..topology.nodes()).map(NodeId).filter(|&node| !is_nvswitch(node));
    // Leaf and host that last used each NVSwitch. The map is never iterated, so its order has no effect.
    let mut seen = std::collections::HashMap::new();
    for leaf in others {
        for host in hosts_at(leaf) {
            for nvswitch in
                topology.ports(host).iter().map(|port| port.peer).filter(|&node| is_nvswitch(node))
            {
                match seen.insert(nvswitch, (leaf, host)) {
                    Some((same, other)) if same == leaf && other != host => return Some((other, host)),
                    _ => {}
                }
            }
        }
    }
    None
}
