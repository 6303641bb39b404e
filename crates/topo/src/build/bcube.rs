//! BCube: servers with several ports that forward for each other.

use std::path::Path;

use pathweave_units::{Duration, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::grid::{Grid, orders};
use super::{Build, LinkSpec, TopologyBuilder, default_delay, default_rate, positive, probability, refuse};
use crate::error::TopoError;
use crate::graph::{HostAttachment, NodeId, Topology};
use crate::own_paths::PathGenerator;

/// BCube (Guo et al., SIGCOMM 2009): each server has a port and a digit for each level, and servers that differ in one
/// digit share a switch of that level. Servers forward packets: a host is at a switch of its own, which marks no
/// packets. A path corrects one digit after the other, in any order, or goes over a neighbour at another level. Lossless
/// traffic can deadlock, because a server forwards between all its ports; the PFC watch then reports the cycle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BCube {
    /// Number of ports of a switch, the n of BCube(n, k). There are n servers for one level, n x n for two.
    pub switch_ports: u32,
    /// Number of levels, 1 to 3: the ports of a server, the k + 1 of BCube(n, k). Default 2.
    #[serde(default = "two")]
    pub levels: u32,
    /// Rate of the links between servers and switches. Default 100 Gb/s (UDMP, section V-A).
    #[serde(default = "default_rate")]
    pub port_rate: Rate,
    /// Rate between a host and its ports. Default: that of all its ports together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_rate: Option<Rate>,
    /// One-way propagation delay between servers and switches. Default 1 us (UDMP, section V-A).
    #[serde(default = "default_delay")]
    pub port_delay: Duration,
    /// One-way delay between a host and its ports. Default 300 ns.
    #[serde(default = "default_host_delay")]
    pub host_delay: Duration,
    /// Probability that a link between a server and a switch loses a packet, 0 to 1. Default 0.
    #[serde(default)]
    pub error_rate: f64,
}

fn two() -> u32 {
    2
}
fn default_host_delay() -> Duration {
    Duration::from_ns(300)
}

impl BCube {
    /// Creates a BCube with links of the default rate and delay.
    pub fn new(switch_ports: u32, levels: u32) -> Self {
        BCube {
            switch_ports,
            levels,
            port_rate: default_rate(),
            host_rate: None,
            port_delay: default_delay(),
            host_delay: default_host_delay(),
            error_rate: 0.0,
        }
    }
}

/// Numbering of switches: the servers, then the switches level by level.
#[derive(Clone, Debug)]
struct Wiring {
    /// Servers by their digits. Level 0 is the last one.
    servers: Grid,
}

impl Wiring {
    fn levels(&self) -> usize {
        self.servers.size.len()
    }
    /// Returns the dimension of the grid for a level.
    fn dimension(&self, level: usize) -> usize {
        self.levels() - 1 - level
    }
    fn switches_of_level(&self) -> u32 {
        self.servers.len() / self.servers.size[0]
    }
    /// Returns the number of the switch of a level to which a server with these digits is attached, within its level.
    fn position(&self, level: usize, at: &[u32]) -> u32 {
        let skipped = self.dimension(level);
        let others = self.servers.size.iter().zip(at).enumerate().filter(|(d, _)| *d != skipped);
        others.fold(0, |number, (_, (size, digit))| number * size + digit)
    }
    fn switch(&self, level: usize, at: &[u32]) -> u32 {
        self.servers.len() + level as u32 * self.switches_of_level() + self.position(level, at)
    }
}

impl PathGenerator for Wiring {
    fn emit(&self, src: u32, dst: u32, path: &mut dyn FnMut(&[u32])) {
        let [from, to] = [src, dst].map(|server| self.servers.coordinates(server));
        let differing: Vec<usize> = (0..self.levels())
            .filter(|&level| from[self.dimension(level)] != to[self.dimension(level)])
            .collect();
        // Each step moves along a level to a digit.
        let mut walk = |steps: &[(usize, u32)]| {
            let (mut at, mut switches) = (from.clone(), vec![src]);
            for &(level, digit) in steps {
                switches.push(self.switch(level, &at));
                at[self.dimension(level)] = digit;
                switches.push(self.servers.index(&at));
            }
            path(&switches);
        };
        let correct = |level: usize| (level, to[self.dimension(level)]);
        orders(&differing, &mut |order| walk(&order.iter().map(|&level| correct(level)).collect::<Vec<_>>()));
        for level in (0..self.levels()).filter(|level| !differing.contains(level)) {
            let home = from[self.dimension(level)];
            let away = (home + 1) % self.servers.size[0];
            let mut steps = vec![(level, away)];
            steps.extend(differing.iter().map(|&level| correct(level)));
            steps.push((level, home));
            walk(&steps);
        }
    }
}

impl Build for BCube {
    fn build(&self, _: &Path) -> Result<Topology, TopoError> {
        let error_rate = probability("error_rate", self.error_rate)?;
        if self.switch_ports < 2 {
            return Err(refuse("switch_ports", self.switch_ports, "must be at least 2"));
        }
        if !(1..=3).contains(&self.levels) {
            return Err(refuse("levels", self.levels, "must be 1 to 3"));
        }
        let servers: Vec<u32> = vec![self.switch_ports; self.levels as usize];
        let count = servers.iter().try_fold(1u32, |all, n| all.checked_mul(*n)).unwrap_or(u32::MAX);
        let of_level = count / self.switch_ports;
        let switches = of_level.saturating_mul(self.levels);
        super::within_limits("BCube", &[count, count, switches], &[&[count], &[count, self.levels]])?;
        let wiring = Wiring { servers: Grid { size: servers } };
        let port_rate = positive("port_rate", self.port_rate)?;
        let all_ports = Rate::from_bps(port_rate.as_bps().saturating_mul(u64::from(self.levels)));
        let host_rate = positive("host_rate", self.host_rate.unwrap_or(all_ports))?;
        let mut parts = TopologyBuilder::new(count);
        let digits = |at: &[u32]| at.iter().map(ToString::to_string).collect::<Vec<_>>().join(".");
        for server in 0..count {
            parts.switch(format!("srv{}", digits(&wiring.servers.coordinates(server))), 0, None);
        }
        for level in 0..self.levels {
            for number in 0..of_level {
                parts.switch(format!("sw{level}.{number}"), 1, Some(level));
            }
        }
        let node = |switch: u32| NodeId(count + switch);
        let inside = LinkSpec { rate: host_rate, delay: self.host_delay, error_rate: 0.0 };
        for server in 0..count {
            parts.links(NodeId(server), node(server), inside, 1);
        }
        let outside = LinkSpec { rate: port_rate, delay: self.port_delay, error_rate };
        for server in 0..count {
            let at = wiring.servers.coordinates(server);
            for level in 0..wiring.levels() {
                parts.links(node(server), node(wiring.switch(level, &at)), outside, 1);
            }
        }
        let name = format!("BCube of {count} servers with {} ports", self.levels);
        Ok(parts.finish(name)?.with_own_paths(wiring).with_edge(HostAttachment::Host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PathFinder, Routing};
    use pathweave_units::HostId;

    fn bcube(switch_ports: u32, levels: u32) -> Topology {
        BCube::new(switch_ports, levels).build(Path::new("")).unwrap()
    }

    fn peers(topology: &Topology, name: &str) -> Vec<String> {
        let node = topology.node_by_name(name).unwrap();
        topology.ports(node).iter().map(|port| topology.node_name(port.peer).into_owned()).collect()
    }

    /// BCube(4, 1) of the paper's figure 1: 16 servers, two levels of four switches.
    #[test]
    fn the_figure_of_the_paper() {
        let topology = bcube(4, 2);
        assert_eq!((topology.hosts(), topology.switches().len()), (16, 16 + 8));
        assert_eq!(topology.links().len(), 16 + 32);
        // Servers of one level-0 switch differ in their last digit, those of a level-1 switch in their first.
        assert_eq!(peers(&topology, "sw0.2"), ["srv2.0", "srv2.1", "srv2.2", "srv2.3"]);
        assert_eq!(peers(&topology, "sw1.2"), ["srv0.2", "srv1.2", "srv2.2", "srv3.2"]);
        assert_eq!(topology.host_rate(HostId(0)), Rate::from_gbps(200));
        let routing = Routing::all_links_up(&topology);
        let mut finder = PathFinder::new(&topology, &routing);
        let mut pair = |to| finder.pair(HostId(0), HostId(to), 0).map(|pair| (pair.hops, pair.paths));
        assert_eq!(pair(3), Some((4, 1)), "one digit");
        assert_eq!(pair(7), Some((6, 2)), "two digits, in either order, over a server that forwards");
    }

    /// The paths between 0.0 and 1.3: both orders. Between 0.0 and 0.1: the direct one, and one over 1.0 and 1.1.
    #[test]
    fn paths_correct_digits() {
        let wiring = Wiring { servers: Grid { size: vec![4, 4] } };
        let topology = bcube(4, 2);
        let paths = |to: u32| {
            let mut all = Vec::new();
            wiring.emit(0, to, &mut |path| {
                let name = |switch: &u32| topology.node_name(NodeId(16 + switch)).into_owned();
                all.push(path.iter().map(name).collect::<Vec<_>>().join(" "));
            });
            all
        };
        assert_eq!(paths(7), ["srv0.0 sw0.0 srv0.3 sw1.3 srv1.3", "srv0.0 sw1.0 srv1.0 sw0.1 srv1.3"]);
        assert_eq!(paths(1), ["srv0.0 sw0.0 srv0.1", "srv0.0 sw1.0 srv1.0 sw0.1 srv1.1 sw1.1 srv0.1"]);
        for to in 1..16 {
            wiring.emit(0, to, &mut |path| {
                for pair in path.windows(2) {
                    let [a, b] = [pair[0], pair[1]].map(|switch| NodeId(16 + switch));
                    assert!(topology.ports(a).iter().any(|port| port.peer == b), "{path:?}");
                }
            });
        }
    }

    #[test]
    fn what_cannot_be_is_named() {
        let error = |bcube: BCube| bcube.build(Path::new("")).unwrap_err().to_string();
        assert_eq!(error(BCube::new(1, 2)), "topology field `switch_ports` = 1: must be at least 2");
        assert_eq!(error(BCube::new(4, 4)), "topology field `levels` = 4: must be 1 to 3");
        assert!(error(BCube::new(100_000, 3)).contains("BCube"));
        assert!(error(BCube { port_rate: Rate::ZERO, ..BCube::new(2, 2) }).contains("`port_rate`"));
    }
}
