//! Jellyfish: a random graph in which every switch has the same number of links to others.

use std::path::Path;

use pathweave_units::{Duration, Rate, Rng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Build, LinkSpec, TopologyBuilder, at_least_one, default_delay, default_rate, positive, probability,
    refuse,
};
use crate::error::TopoError;
use crate::graph::{NodeId, Topology};

/// Random regular graph of switches (Singla et al., NSDI 2012): every switch has `links_per_switch` links to others
/// drawn at random. The same `wiring_seed` gives the same network. For explicit paths use `kind = "k-shortest"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Jellyfish {
    /// Number of switches.
    pub switches: u32,
    /// Number of links of each switch to other switches, 3 to 128 and below `switches`. If `switches` times
    /// `links_per_switch` is odd, one switch has one link less.
    pub links_per_switch: u32,
    /// Number of hosts at each switch.
    pub hosts_per_switch: u32,
    /// Seed of the wiring, independent of the seed of the run. Default 1.
    #[serde(default = "first_seed")]
    pub wiring_seed: u64,
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

fn first_seed() -> u64 {
    1
}

/// Largest number of links of a switch. Switches have no more ports, and random drawing does not find nearly full
/// meshes.
const MAX_LINKS_PER_SWITCH: u32 = 128;
/// Number of wirings tried until one is connected. Random regular graphs of degree three and more nearly always are.
const ATTEMPTS: u64 = 64;

impl Jellyfish {
    /// Creates a Jellyfish with links of the default rate and delay.
    pub fn new(switches: u32, links_per_switch: u32, hosts_per_switch: u32) -> Self {
        Jellyfish {
            switches,
            links_per_switch,
            hosts_per_switch,
            wiring_seed: first_seed(),
            host_rate: default_rate(),
            switch_rate: None,
            host_delay: default_delay(),
            switch_delay: None,
            error_rate: 0.0,
        }
    }
}

/// Neighbours of each switch.
struct Graph {
    neighbours: Vec<Vec<u32>>,
    degree: usize,
}

impl Graph {
    /// Joins random pairs of switches that have free ports and are not neighbours, until there are none. Then breaks
    /// up links for switches that still have two free ports (section 3 of the paper).
    fn random(switches: u32, degree: u32, rng: &mut Rng) -> Self {
        let mut graph = Graph { neighbours: vec![Vec::new(); switches as usize], degree: degree as usize };
        // Switches with free ports, and the index of each in that list.
        let mut open: Vec<u32> = (0..switches).collect();
        let mut place_of = open.clone();
        while let Some((a, b)) = graph.draw_pair(&open, rng) {
            graph.join(a, b);
            for end in [a, b].into_iter().filter(|&end| graph.free(end) == 0) {
                let place = place_of[end as usize];
                open.swap_remove(place as usize);
                if let Some(&moved) = open.get(place as usize) {
                    place_of[moved as usize] = place;
                }
            }
        }
        for switch in 0..switches {
            while graph.free(switch) >= 2 && graph.break_up(switch, rng) {}
        }
        graph.neighbours.iter_mut().for_each(|list| list.sort_unstable());
        graph
    }

    fn free(&self, switch: u32) -> usize {
        self.degree - self.neighbours[switch as usize].len()
    }
    fn linked(&self, a: u32, b: u32) -> bool {
        self.neighbours[a as usize].contains(&b)
    }
    fn join(&mut self, a: u32, b: u32) {
        self.neighbours[a as usize].push(b);
        self.neighbours[b as usize].push(a);
    }
    fn part(&mut self, a: u32, b: u32) {
        self.neighbours[a as usize].retain(|&peer| peer != b);
        self.neighbours[b as usize].retain(|&peer| peer != a);
    }

    /// Draws two switches with free ports that are not neighbours.
    fn draw_pair(&self, open: &[u32], rng: &mut Rng) -> Option<(u32, u32)> {
        const DRAWS: u32 = 64;
        if open.len() < 2 {
            return None;
        }
        for _ in 0..DRAWS {
            let [a, b] = [(); 2].map(|()| open[rng.below(open.len() as u32) as usize]);
            if a != b && !self.linked(a, b) {
                return Some((a, b));
            }
        }
        // Few switches are left, and most are neighbours: draw from the list of all remaining pairs.
        let pairs = || open.iter().flat_map(|&a| open.iter().map(move |&b| (a, b)));
        let fits = |&(a, b): &(u32, u32)| a < b && !self.linked(a, b);
        let count = pairs().filter(fits).count() as u32;
        (count > 0).then(|| pairs().filter(fits).nth(rng.below(count) as usize)).flatten()
    }

    /// Replaces a random link between two other switches by links of both to `switch`.
    fn break_up(&mut self, switch: u32, rng: &mut Rng) -> bool {
        let fits =
            |a: u32, b: u32| a < b && ![a, b].iter().any(|&end| end == switch || self.linked(end, switch));
        let links: Vec<(u32, u32)> = (0..)
            .zip(&self.neighbours)
            .flat_map(|(a, list)| list.iter().map(move |&b| (a, b)))
            .filter(|&(a, b)| fits(a, b))
            .collect();
        if links.is_empty() {
            return false;
        }
        let (a, b) = links[rng.below(links.len() as u32) as usize];
        self.part(a, b);
        self.join(switch, a);
        self.join(switch, b);
        true
    }

    fn is_connected(&self) -> bool {
        let mut seen = vec![false; self.neighbours.len()];
        let mut stack = vec![0];
        seen[0] = true;
        while let Some(switch) = stack.pop() {
            for &peer in &self.neighbours[switch as usize] {
                if !std::mem::replace(&mut seen[peer as usize], true) {
                    stack.push(peer);
                }
            }
        }
        seen.into_iter().all(|reached| reached)
    }
}

impl Build for Jellyfish {
    fn build(&self, _: &Path) -> Result<Topology, TopoError> {
        let error_rate = probability("error_rate", self.error_rate)?;
        let per_switch = at_least_one("hosts_per_switch", self.hosts_per_switch)?;
        let (switches, degree) = (self.switches, self.links_per_switch);
        if switches < 2 {
            return Err(refuse("switches", switches, "must be at least 2"));
        }
        // With fewer than three links, the graph would hardly ever be connected.
        let (least, most) = ((switches - 1).min(3), (switches - 1).min(MAX_LINKS_PER_SWITCH));
        if !(least..=most).contains(&degree) {
            let allowed = format!("must be {least} to {most}, and below `switches`");
            return Err(refuse("links_per_switch", degree, allowed));
        }
        let hosts = switches.saturating_mul(per_switch);
        super::within_limits("jellyfish", &[hosts, switches], &[&[hosts], &[switches, degree]])?;
        let host_rate = positive("host_rate", self.host_rate)?;
        let switch_rate = positive("switch_rate", self.switch_rate.unwrap_or(host_rate))?;
        let spec = |rate, delay| LinkSpec { rate, delay, error_rate };
        let between = spec(switch_rate, self.switch_delay.unwrap_or(self.host_delay));

        let attempt =
            |n| Graph::random(switches, degree, &mut Rng::for_component(self.wiring_seed, "jellyfish", n));
        let Some(graph) = (0..ATTEMPTS).map(attempt).find(Graph::is_connected) else {
            let allowed = format!(
                "{ATTEMPTS} random wirings of {switches} switches were not connected; more links make one that is"
            );
            return Err(refuse("links_per_switch", degree, allowed));
        };
        let mut parts = TopologyBuilder::new(hosts);
        let nodes: Vec<NodeId> = (0..switches).map(|s| parts.switch(format!("sw{s}"), 0, Some(s))).collect();
        for host in 0..hosts {
            parts.links(
                NodeId(host),
                nodes[(host / per_switch) as usize],
                spec(host_rate, self.host_delay),
                1,
            );
        }
        for (a, neighbours) in graph.neighbours.iter().enumerate() {
            for &b in neighbours.iter().filter(|&&b| b as usize > a) {
                parts.links(nodes[a], nodes[b as usize], between, 1);
            }
        }
        parts.finish(format!("jellyfish of {hosts} hosts"))
    }
}
