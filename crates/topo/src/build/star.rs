//! Star: hosts at a single switch.

use std::path::Path;

use pathweave_units::{Duration, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Build, LinkSpec, TopologyBuilder, at_least_one, default_delay, default_rate, positive, probability,
};
use crate::error::TopoError;
use crate::graph::{NodeId, Topology};

/// Hosts at one switch. Every path has two hops.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Star {
    /// Number of hosts.
    pub hosts: u32,
    /// Rate of every link. Default 100 Gb/s (UDMP, section V-A).
    #[serde(default = "default_rate")]
    pub rate: Rate,
    /// One-way propagation delay of every link. Default 1 us (UDMP, section V-A).
    #[serde(default = "default_delay")]
    pub delay: Duration,
    /// Probability that a link loses a packet, for every link, 0 to 1. Default 0.
    #[serde(default)]
    pub error_rate: f64,
}

impl Star {
    /// Creates a star of `hosts` hosts with links of the default rate and delay.
    pub fn new(hosts: u32) -> Self {
        Star { hosts, rate: default_rate(), delay: default_delay(), error_rate: 0.0 }
    }
}

impl Build for Star {
    fn build(&self, _: &Path) -> Result<Topology, TopoError> {
        let error_rate = probability("error_rate", self.error_rate)?;
        at_least_one("hosts", self.hosts)?;
        super::within_limits("star", &[self.hosts, 1], &[])?;
        let spec = LinkSpec { rate: positive("rate", self.rate)?, delay: self.delay, error_rate };
        let mut parts = TopologyBuilder::new(self.hosts);
        let switch = parts.switch("switch0".into(), 0, None);
        for host in 0..self.hosts {
            parts.links(NodeId(host), switch, spec, 1);
        }
        parts.regular_clos(format!("star of {} hosts", self.hosts))
    }
}
