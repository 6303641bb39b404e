//! Full mesh of several dimensions: switches that differ in only one coordinate are linked directly.

use std::path::Path;

use pathweave_units::{Duration, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::grid::{Grid, orders};
use super::{
    Build, LinkSpec, TopologyBuilder, at_least_one, default_delay, default_one, default_rate, positive,
    probability,
};
use crate::error::TopoError;
use crate::graph::Topology;
use crate::own_paths::PathGenerator;

/// Full mesh of one to three dimensions, as UB-Mesh builds its racks (Liao et al., Hot Chips 2025). Every two
/// switches that differ in exactly one coordinate are linked. A path takes one hop in each dimension that differs, in
/// any order of dimensions, or makes one detour over another switch in one of these dimensions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FullMesh {
    /// Number of switches along each dimension, one to three numbers, such as [8, 8].
    pub size: Vec<u32>,
    /// Number of hosts at each switch. Default 1.
    #[serde(default = "default_one")]
    pub hosts_per_switch: u32,
    /// Rate of the links between hosts and switches. Default 100 Gb/s (UDMP, section V-A).
    #[serde(default = "default_rate")]
    pub host_rate: Rate,
    /// Rate of the links between switches. Default: `host_rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch_rate: Option<Rate>,
    /// One-way propagation delay between hosts and switches. Default 1 us (UDMP, section V-A).
    #[serde(default = "default_delay")]
    pub host_delay: Duration,
    /// One-way propagation delay between switches. Default: `host_delay`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch_delay: Option<Duration>,
    /// Probability that a link loses a packet, for every link, 0 to 1. Default 0.
    #[serde(default)]
    pub error_rate: f64,
}

impl FullMesh {
    /// Creates a full mesh with one host at each switch and links of the default rate and delay.
    pub fn new(size: Vec<u32>) -> Self {
        FullMesh {
            size,
            hosts_per_switch: 1,
            host_rate: default_rate(),
            switch_rate: None,
            host_delay: default_delay(),
            switch_delay: None,
            error_rate: 0.0,
        }
    }
}

impl PathGenerator for Grid {
    fn emit(&self, src: u32, dst: u32, path: &mut dyn FnMut(&[u32])) {
        let [from, to] = [src, dst].map(|switch| self.coordinates(switch));
        let moving: Vec<usize> = (0..from.len()).filter(|&d| from[d] != to[d]).collect();
        // A detour is a dimension and a coordinate that the path visits first.
        let mut walk = |order: &[usize], detour: Option<(usize, u32)>| {
            let (mut at, mut switches) = (from.clone(), vec![src]);
            for &d in order {
                if let Some((_, via)) = detour.filter(|(dimension, _)| *dimension == d) {
                    at[d] = via;
                    switches.push(self.index(&at));
                }
                at[d] = to[d];
                switches.push(self.index(&at));
            }
            path(&switches);
        };
        orders(&moving, &mut |order| walk(order, None));
        for &d in &moving {
            for via in (0..self.size[d]).filter(|&via| via != from[d] && via != to[d]) {
                orders(&moving, &mut |order| walk(order, Some((d, via))));
            }
        }
    }
}

impl Build for FullMesh {
    fn build(&self, _: &Path) -> Result<Topology, TopoError> {
        let error_rate = probability("error_rate", self.error_rate)?;
        let grid = Grid::new(&self.size)?;
        let per_switch = at_least_one("hosts_per_switch", self.hosts_per_switch)?;
        let switches = grid.len();
        let hosts = switches.saturating_mul(per_switch);
        let widest = self.size.iter().max().copied().unwrap_or(0);
        super::within_limits("full mesh", &[hosts, switches], &[&[hosts], &[switches, (widest - 1) / 2]])?;
        let host_rate = positive("host_rate", self.host_rate)?;
        let switch_rate = positive("switch_rate", self.switch_rate.unwrap_or(host_rate))?;
        let spec = |rate, delay| LinkSpec { rate, delay, error_rate };
        let between = spec(switch_rate, self.switch_delay.unwrap_or(self.host_delay));

        let mut parts = TopologyBuilder::new(hosts);
        let node = grid.add(&mut parts, per_switch, spec(host_rate, self.host_delay));
        for switch in 0..switches {
            let at = grid.coordinates(switch);
            for (d, &size) in grid.size.iter().enumerate() {
                for other in at[d] + 1..size {
                    let mut peer = at.clone();
                    peer[d] = other;
                    parts.links(node(switch), node(grid.index(&peer)), between, 1);
                }
            }
        }
        Ok(parts.finish(format!("{grid} full mesh of {hosts} hosts"))?.with_own_paths(grid))
    }
}
