//! Torus and mesh of one (a ring) to three dimensions.

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

/// Torus or mesh of one to three dimensions: switches on a grid, each linked to its neighbours. A path takes one
/// dimension after the other, in any order of dimensions. In a torus it may go around a dimension in both directions;
/// the shorter one comes first. Lossless traffic can deadlock around a ring with any routes, as there are no dateline
/// channels; the PFC watch then reports the cycle. A mesh does not deadlock if all paths take its dimensions in one
/// order (`max_paths` = 1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Torus {
    /// Number of switches along each dimension, one to three numbers, such as [4, 4].
    pub size: Vec<u32>,
    /// Number of hosts at each switch. Default 1.
    #[serde(default = "default_one")]
    pub hosts_per_switch: u32,
    /// Links between the ends of each dimension: "joined" for a torus, "open" for a mesh. Default "joined".
    #[serde(default)]
    pub ends: TorusEnds,
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

/// Links between the ends of a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TorusEnds {
    /// Each dimension of three or more switches is a ring: a torus.
    #[default]
    Joined,
    /// Each dimension is a chain: a mesh.
    Open,
}

impl Torus {
    /// Creates a torus with one host at each switch and links of the default rate and delay.
    pub fn new(size: Vec<u32>) -> Self {
        Torus {
            size,
            hosts_per_switch: 1,
            ends: TorusEnds::Joined,
            host_rate: default_rate(),
            switch_rate: None,
            host_delay: default_delay(),
            switch_delay: None,
            error_rate: 0.0,
        }
    }
}

#[derive(Clone, Debug)]
struct Wiring {
    grid: Grid,
    ends: TorusEnds,
}

impl Wiring {
    /// Returns true if a link joins the ends of dimension `d`.
    fn is_ring(&self, d: usize) -> bool {
        self.ends == TorusEnds::Joined && self.grid.size[d] > 2
    }

    /// Returns the steps from one coordinate to another, positive for forward and negative for backward. In a ring
    /// there are two ways, the shorter one first.
    fn steps_between(&self, d: usize, from: u32, to: u32) -> Vec<i64> {
        let direct = i64::from(to) - i64::from(from);
        if direct == 0 || !self.is_ring(d) {
            return vec![direct];
        }
        let around = direct - direct.signum() * i64::from(self.grid.size[d]);
        if around.abs() < direct.abs() { vec![around, direct] } else { vec![direct, around] }
    }

    /// Returns the switches on a path that takes the dimensions in this order, with `steps` in each.
    fn switches_on_path(&self, src: u32, order: &[usize], steps: &[i64]) -> Vec<u32> {
        let mut at = self.grid.coordinates(src);
        let mut switches = vec![src];
        for &d in order {
            let size = i64::from(self.grid.size[d]);
            for _ in 0..steps[d].abs() {
                at[d] = (i64::from(at[d]) + steps[d].signum()).rem_euclid(size) as u32;
                switches.push(self.grid.index(&at));
            }
        }
        switches
    }
}

impl PathGenerator for Wiring {
    fn emit(&self, src: u32, dst: u32, path: &mut dyn FnMut(&[u32])) {
        let [from, to] = [src, dst].map(|switch| self.grid.coordinates(switch));
        let ways: Vec<Vec<i64>> = (0..from.len()).map(|d| self.steps_between(d, from[d], to[d])).collect();
        let mut combinations: Vec<Vec<i64>> = vec![vec![]];
        for of_dimension in &ways {
            combinations = combinations
                .iter()
                .flat_map(|steps| of_dimension.iter().map(move |&way| [&steps[..], &[way]].concat()))
                .collect();
        }
        combinations.sort_by_key(|steps| steps.iter().map(|way| way.abs()).sum::<i64>());
        let moving: Vec<usize> = (0..from.len()).filter(|&d| from[d] != to[d]).collect();
        for steps in &combinations {
            orders(&moving, &mut |order| path(&self.switches_on_path(src, order, steps)));
        }
    }
}

impl Build for Torus {
    fn build(&self, _: &Path) -> Result<Topology, TopoError> {
        let error_rate = probability("error_rate", self.error_rate)?;
        let grid = Grid::new(&self.size)?;
        let per_switch = at_least_one("hosts_per_switch", self.hosts_per_switch)?;
        let (switches, dimensions) = (grid.len(), self.size.len() as u32);
        let hosts = switches.saturating_mul(per_switch);
        super::within_limits("torus", &[hosts, switches], &[&[hosts], &[switches, dimensions]])?;
        let host_rate = positive("host_rate", self.host_rate)?;
        let switch_rate = positive("switch_rate", self.switch_rate.unwrap_or(host_rate))?;
        let spec = |rate, delay| LinkSpec { rate, delay, error_rate };
        let between = spec(switch_rate, self.switch_delay.unwrap_or(self.host_delay));

        let wiring = Wiring { grid, ends: self.ends };
        let mut parts = TopologyBuilder::new(hosts);
        let node = wiring.grid.add(&mut parts, per_switch, spec(host_rate, self.host_delay));
        for switch in 0..switches {
            let at = wiring.grid.coordinates(switch);
            for (d, &size) in wiring.grid.size.iter().enumerate() {
                let last = at[d] + 1 == size;
                if last && !wiring.is_ring(d) {
                    continue;
                }
                let mut next = at.clone();
                next[d] = if last { 0 } else { at[d] + 1 };
                parts.links(node(switch), node(wiring.grid.index(&next)), between, 1);
            }
        }
        let kind = match self.ends {
            TorusEnds::Joined => "torus",
            TorusEnds::Open => "mesh",
        };
        let name = format!("{} {kind} of {hosts} hosts", wiring.grid);
        Ok(parts.finish(name)?.with_own_paths(wiring))
    }
}
