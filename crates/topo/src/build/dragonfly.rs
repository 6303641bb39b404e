//! Dragonfly: groups of switches, with direct links between every two groups.

use std::path::Path;

use pathweave_units::{Duration, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Build, LinkSpec, TopologyBuilder, at_least_one, default_delay, default_one, default_rate, positive,
    probability, refuse,
};
use crate::error::TopoError;
use crate::graph::{NodeId, Topology};
use crate::own_paths::PathGenerator;

/// Dragonfly (Kim et al., ISCA 2008). In a group every switch is linked to every other. Every two groups are linked
/// by `links_between_groups` links, spread evenly over their switches. A path leads to the other group directly or
/// over one more group, and inside a group directly or over one more switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dragonfly {
    /// Number of groups, 2 or more.
    pub groups: u32,
    /// Number of switches in each group.
    pub switches_per_group: u32,
    /// Number of hosts at each switch.
    pub hosts_per_switch: u32,
    /// Number of links between every two groups. Default 1.
    #[serde(default = "default_one")]
    pub links_between_groups: u32,
    /// Rate of the links between hosts and switches. Default 100 Gb/s (LAPS, section IV).
    #[serde(default = "default_rate")]
    pub host_rate: Rate,
    /// Rate of the links inside a group. Default: `host_rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_rate: Option<Rate>,
    /// Rate of the links between groups. Default: `local_rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub global_rate: Option<Rate>,
    /// One-way propagation delay between hosts and switches. Default 1 us (LAPS, section IV).
    #[serde(default = "default_delay")]
    pub host_delay: Duration,
    /// One-way propagation delay inside a group. Default: `host_delay`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_delay: Option<Duration>,
    /// One-way propagation delay between groups. Default: `local_delay`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub global_delay: Option<Duration>,
    /// Probability that a link loses a packet, for every link, 0 to 1. Default 0.
    #[serde(default)]
    pub error_rate: f64,
}

impl Dragonfly {
    /// Creates a Dragonfly with one link between every two groups and links of the default rate and delay.
    pub fn new(groups: u32, switches_per_group: u32, hosts_per_switch: u32) -> Self {
        Dragonfly {
            groups,
            switches_per_group,
            hosts_per_switch,
            links_between_groups: 1,
            host_rate: default_rate(),
            local_rate: None,
            global_rate: None,
            host_delay: default_delay(),
            local_delay: None,
            global_delay: None,
            error_rate: 0.0,
        }
    }
}

/// Assignment of links between groups to switches. Switches are numbered group by group.
#[derive(Clone, Copy, Debug)]
struct Wiring {
    groups: u32,
    switches: u32,
    /// Number of links between every two groups.
    between: u32,
}

impl Wiring {
    /// Returns the switch in group `from` with the `copy`-th link to group `to`. The links of a group are numbered by
    /// the distance to the other group, once for each copy. Consecutive numbers are assigned to switches in runs of
    /// equal length.
    fn gateway(&self, from: u32, to: u32, copy: u32) -> u32 {
        let distance = (to + self.groups - from) % self.groups;
        let link = copy * (self.groups - 1) + distance - 1;
        let per_switch = (self.between * (self.groups - 1)).div_ceil(self.switches);
        from * self.switches + link / per_switch
    }
}

impl PathGenerator for Wiring {
    fn emit(&self, src: u32, dst: u32, path: &mut dyn FnMut(&[u32])) {
        let (from, to) = (src / self.switches, dst / self.switches);
        if from == to {
            path(&[src, dst]);
            let mates = from * self.switches..(from + 1) * self.switches;
            mates.filter(|&via| via != src && via != dst).for_each(|via| path(&[src, via, dst]));
            return;
        }
        let mut over = |groups: &[u32], copy: u32| {
            let mut switches = vec![src];
            for ends in groups.windows(2) {
                switches.push(self.gateway(ends[0], ends[1], copy));
                switches.push(self.gateway(ends[1], ends[0], copy));
            }
            switches.push(dst);
            switches.dedup();
            path(&switches);
        };
        for copy in 0..self.between {
            over(&[from, to], copy);
        }
        // Visits intermediate groups in order, starting after the source's group.
        for via in (1..self.groups).map(|step| (from + step) % self.groups).filter(|&via| via != to) {
            for copy in 0..self.between {
                over(&[from, via, to], copy);
            }
        }
    }
}

impl Build for Dragonfly {
    fn build(&self, _: &Path) -> Result<Topology, TopoError> {
        let error_rate = probability("error_rate", self.error_rate)?;
        if self.groups < 2 {
            return Err(refuse("groups", self.groups, "must be at least 2"));
        }
        let switches = at_least_one("switches_per_group", self.switches_per_group)?;
        let per_switch = at_least_one("hosts_per_switch", self.hosts_per_switch)?;
        let between = at_least_one("links_between_groups", self.links_between_groups)?;
        let count = self.groups.saturating_mul(switches);
        let hosts = count.saturating_mul(per_switch);
        let links: [&[u32]; 3] = [&[hosts], &[count, switches / 2], &[self.groups, self.groups / 2, between]];
        super::within_limits("dragonfly", &[hosts, count], &links)?;
        let host_rate = positive("host_rate", self.host_rate)?;
        let local_rate = positive("local_rate", self.local_rate.unwrap_or(host_rate))?;
        let global_rate = positive("global_rate", self.global_rate.unwrap_or(local_rate))?;
        let local_delay = self.local_delay.unwrap_or(self.host_delay);
        let global_delay = self.global_delay.unwrap_or(local_delay);
        let spec = |rate, delay| LinkSpec { rate, delay, error_rate };

        let mut parts = TopologyBuilder::new(hosts);
        let nodes: Vec<NodeId> = (0..count)
            .map(|s| {
                let (group, index) = (s / switches, s % switches);
                parts.switch(format!("sw{group}.{index}"), 0, Some(group))
            })
            .collect();
        for host in 0..hosts {
            parts.links(
                NodeId(host),
                nodes[(host / per_switch) as usize],
                spec(host_rate, self.host_delay),
                1,
            );
        }
        for first in 0..count {
            let end = (first / switches + 1) * switches;
            for second in first + 1..end {
                parts.links(nodes[first as usize], nodes[second as usize], spec(local_rate, local_delay), 1);
            }
        }
        let wiring = Wiring { groups: self.groups, switches, between };
        for from in 0..self.groups {
            for to in from + 1..self.groups {
                for copy in 0..between {
                    let ends = [wiring.gateway(from, to, copy), wiring.gateway(to, from, copy)];
                    let [a, b] = ends.map(|switch| nodes[switch as usize]);
                    parts.links(a, b, spec(global_rate, global_delay), 1);
                }
            }
        }
        Ok(parts.finish(format!("dragonfly of {hosts} hosts"))?.with_own_paths(wiring))
    }

    fn presets() -> Vec<(&'static str, &'static str, Self)> {
        let help = "Dragonfly of LAPS (IEEE ToN 2026), section IV: 144 hosts, 9 groups of 4 switches, 100 Gb/s, 1 us";
        vec![("laps-dragonfly", help, Dragonfly::new(9, 4, 4))]
    }
}
