//! Writer of HPCC's `topology.txt`.

use std::fmt::Write;

use pathweave_units::{Duration, Rate};

use super::lost_of_generated;
use crate::graph::{NodeId, Topology};
use crate::import::find_tiers;

/// Writes a `topology.txt`. Nodes keep the numbers in their names if these come from such a file. Otherwise hosts
/// come first, then switches.
pub(crate) fn write_hpcc(topology: &Topology, lost: &mut Vec<String>) -> String {
    let nodes = || (0..topology.nodes()).map(NodeId);
    let kept = ids_in_names(topology);
    if kept.is_none() {
        let is_plain = |node: &NodeId| topology.node_name(*node) == format!("host{}", node.0);
        let other = nodes().find(|node| !(topology.is_host(*node) && is_plain(node)));
        if let Some(other) = other {
            lost.push(format!("names, such as \"{}\": nodes have numbers", topology.node_name(other)));
        }
    }
    if topology.switches().iter().any(|switch| switch.group.is_some()) {
        lost.push("groups of switches".to_owned());
    }
    if topology.switches().iter().zip(find_tiers(topology)).any(|(switch, tier)| switch.tier != tier) {
        lost.push("tiers other than the distance from the hosts".to_owned());
    }
    if topology.links().iter().any(|link| !link.delay.as_ps().is_multiple_of(1_000)) {
        lost.push("delays finer than a nanosecond, which these simulators round".to_owned());
    }
    lost_of_generated(topology, lost);
    let ids = kept.unwrap_or_else(|| (0..topology.nodes()).collect());
    let mut switches: Vec<u32> = ids[topology.hosts() as usize..].to_vec();
    switches.sort_unstable();
    let switches: Vec<String> = switches.iter().map(u32::to_string).collect();
    let mut text = format!("{} {} {}\n", topology.nodes(), switches.len(), topology.links().len());
    let _ = writeln!(text, "{}", switches.join(" "));
    for link in topology.links() {
        let (a, b) = (ids[link.a.index()], ids[link.b.index()]);
        let _ = writeln!(text, "{a} {b} {} {} {}", rate(link.rate), delay(link.delay), link.error_rate);
    }
    text
}

/// Returns the numbers of nodes from their names, which must all be "host" or "switch" with a number. The numbers
/// must be consecutive from 0, and ascending both for hosts and for switches.
fn ids_in_names(topology: &Topology) -> Option<Vec<u32>> {
    let id_of = |node: NodeId| -> Option<u32> {
        let kind = if topology.is_host(node) { "host" } else { "switch" };
        topology.node_name(node).strip_prefix(kind)?.parse().ok()
    };
    let ids = (0..topology.nodes()).map(|node| id_of(NodeId(node))).collect::<Option<Vec<u32>>>()?;
    let hosts = topology.hosts() as usize;
    let ascends = |ids: &[u32]| ids.windows(2).all(|pair| pair[0] < pair[1]);
    let mut sorted = ids.clone();
    sorted.sort_unstable();
    let is_all = sorted.iter().zip(0..).all(|(&id, expected)| id == expected);
    (is_all && ascends(&ids[..hosts]) && ascends(&ids[hosts..])).then_some(ids)
}

/// Formats a rate without Tbps, which ns-3 does not know.
fn rate(rate: Rate) -> String {
    match rate.as_bps() {
        bps if bps.is_multiple_of(1_000_000_000_000) => format!("{}Gbps", bps / 1_000_000_000),
        _ => rate.to_string(),
    }
}

/// Formats a delay in nanoseconds, as these files do, or in picoseconds if it is not a whole number of nanoseconds.
fn delay(delay: Duration) -> String {
    match delay.as_ps() {
        ps if ps.is_multiple_of(1_000) => format!("{}ns", ps / 1_000),
        ps => format!("{ps}ps"),
    }
}
