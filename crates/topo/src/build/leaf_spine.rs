//! Leaf-spine network of two tiers: leaves with hosts, and spines above them.

use std::path::Path;

use pathweave_units::{Duration, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Build, LinkSpec, TopologyBuilder, at_least_one, default_delay, default_one, default_rate, positive,
    probability,
};
use crate::error::TopoError;
use crate::graph::{NodeId, Topology};

/// Two-tier Clos: every leaf connects to every spine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeafSpine {
    /// Number of leaf switches.
    pub leaves: u32,
    /// Number of spine switches.
    pub spines: u32,
    /// Number of hosts at each leaf.
    pub hosts_per_leaf: u32,
    /// Number of parallel links between each leaf and each spine. Default 1.
    #[serde(default = "default_one")]
    pub leaf_spine_links: u32,
    /// Rate of the links between hosts and leaves. Default 100 Gb/s (UDMP, section V-A).
    #[serde(default = "default_rate")]
    pub host_rate: Rate,
    /// Rate of the links between leaves and spines. Default: `host_rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spine_rate: Option<Rate>,
    /// One-way propagation delay between hosts and leaves. Default 1 us (UDMP, section V-A).
    #[serde(default = "default_delay")]
    pub host_delay: Duration,
    /// One-way propagation delay between leaves and spines. Default: `host_delay`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spine_delay: Option<Duration>,
    /// Probability that a link loses a packet, for every link, 0 to 1. Default 0.
    #[serde(default)]
    pub error_rate: f64,
}

impl LeafSpine {
    /// Creates a leaf-spine network with links of the default rate and delay.
    pub fn new(leaves: u32, spines: u32, hosts_per_leaf: u32) -> Self {
        LeafSpine {
            leaves,
            spines,
            hosts_per_leaf,
            leaf_spine_links: 1,
            host_rate: default_rate(),
            spine_rate: None,
            host_delay: default_delay(),
            spine_delay: None,
            error_rate: 0.0,
        }
    }
}

impl Build for LeafSpine {
    fn build(&self, _: &Path) -> Result<Topology, TopoError> {
        let error_rate = probability("error_rate", self.error_rate)?;
        let leaves = at_least_one("leaves", self.leaves)?;
        let spines = at_least_one("spines", self.spines)?;
        let per_leaf = at_least_one("hosts_per_leaf", self.hosts_per_leaf)?;
        let bundle = at_least_one("leaf_spine_links", self.leaf_spine_links)?;
        let hosts = leaves.saturating_mul(per_leaf);
        super::within_limits("leaf-spine", &[hosts, leaves, spines], &[&[hosts], &[leaves, spines, bundle]])?;
        let spec = |rate, delay| LinkSpec { rate, delay, error_rate };
        let host = spec(positive("host_rate", self.host_rate)?, self.host_delay);
        let up = spec(
            positive("spine_rate", self.spine_rate.unwrap_or(self.host_rate))?,
            self.spine_delay.unwrap_or(self.host_delay),
        );
        let mut parts = TopologyBuilder::new(hosts);
        let leaf: Vec<_> = (0..leaves).map(|i| parts.switch(format!("leaf{i}"), 0, Some(i))).collect();
        let spine: Vec<_> = (0..spines).map(|i| parts.switch(format!("spine{i}"), 1, None)).collect();
        for id in 0..hosts {
            parts.links(NodeId(id), leaf[(id / per_leaf) as usize], host, 1);
        }
        for &leaf in &leaf {
            for &spine in &spine {
                parts.links(leaf, spine, up, bundle);
            }
        }
        parts.regular_clos(format!("leaf-spine of {hosts} hosts"))
    }
}
