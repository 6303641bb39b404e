//! Writer of pathweave's own topology file.

use std::collections::BTreeMap;
use std::fmt::Write;

use pathweave_units::{Duration, Rate};

use super::lost_of_generated;
use crate::graph::{Link, NodeId, Topology};
use crate::import::find_tiers;
use crate::names::HostNames;

/// Writes a topology file. The most frequent rate, delay and error rate are written once at the top.
pub(crate) fn write_own(topology: &Topology, lost: &mut Vec<String>) -> String {
    lost_of_generated(topology, lost);
    let mut text = format!("name = {}\n", quoted(topology.name()));
    match &topology.names().hosts {
        HostNames::Counted => text += &format!("hosts = {}\n", topology.hosts()),
        HostNames::OfServers { .. } | HostNames::Listed(_) => {
            let hosts = (0..topology.hosts()).map(NodeId);
            let names: Vec<String> = hosts.map(|host| quoted(&topology.node_name(host))).collect();
            text += &format!("host_names = [{}]\n", names.join(", "));
        }
    }
    let rate: Rate = most_frequent(topology, |link| link.rate.as_bps()).map_or(Rate::ZERO, Rate::from_bps);
    let delay: Duration =
        most_frequent(topology, |link| link.delay.as_ps()).map_or(Duration::ZERO, Duration::from_ps);
    let error_rate = most_frequent(topology, |link| link.error_rate.to_bits()).map_or(0.0, f64::from_bits);
    text += &format!("rate = \"{rate}\"\ndelay = \"{delay}\"\n");
    if error_rate > 0.0 {
        text += &format!("error_rate = {}\n", float(error_rate));
    }
    if !topology.switches().is_empty() {
        text += "\nswitch = [\n";
        for (switch, tier) in topology.switches().iter().zip(find_tiers(topology)) {
            let _ = write!(text, "    {{ name = {}", quoted(&switch.name));
            if switch.tier != tier {
                let _ = write!(text, ", tier = {}", switch.tier);
            }
            if let Some(group) = switch.group {
                let _ = write!(text, ", group = {group}");
            }
            text += " },\n";
        }
        text += "]\n";
    }
    text += "\nlink = [\n";
    // Consecutive parallel links form one entry.
    for same in topology.links().chunk_by(|a, b| a == b) {
        let link = &same[0];
        let name = |node: NodeId| quoted(&topology.node_name(node));
        let _ = write!(text, "    {{ a = {}, b = {}", name(link.a), name(link.b));
        if link.rate != rate {
            let _ = write!(text, ", rate = \"{}\"", link.rate);
        }
        if link.delay != delay {
            let _ = write!(text, ", delay = \"{}\"", link.delay);
        }
        if link.error_rate.to_bits() != error_rate.to_bits() {
            let _ = write!(text, ", error_rate = {}", float(link.error_rate));
        }
        if same.len() > 1 {
            let _ = write!(text, ", count = {}", same.len());
        }
        text += " },\n";
    }
    text + "]\n"
}

/// Returns the value that most links have; of several, the smallest.
fn most_frequent(topology: &Topology, value: impl Fn(&Link) -> u64) -> Option<u64> {
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    topology.links().iter().for_each(|link| *counts.entry(value(link)).or_default() += 1);
    counts.into_iter().rev().max_by_key(|&(_, count)| count).map(|(value, _)| value)
}

/// Formats a string as TOML.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// Formats a number as TOML, with a decimal point.
fn float(value: f64) -> String {
    toml::Value::Float(value).to_string()
}
