//! Two switches with a bottleneck between them.

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

/// Hosts at two switches, "left" and "right", that share a bottleneck. A path from one side to the other has three
/// hops.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dumbbell {
    /// Number of hosts at the left switch, numbered from 0.
    pub left_hosts: u32,
    /// Number of hosts at the right switch, numbered after the left ones. Default: `left_hosts`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub right_hosts: Option<u32>,
    /// Rate of the links of hosts. Default 100 Gb/s (UDMP, section V-A).
    #[serde(default = "default_rate")]
    pub host_rate: Rate,
    /// Rate of each link of the bottleneck. Default: `host_rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bottleneck_rate: Option<Rate>,
    /// Number of parallel links of the bottleneck. Default 1.
    #[serde(default = "default_one")]
    pub bottleneck_links: u32,
    /// One-way propagation delay of the links of hosts. Default 1 us (UDMP, section V-A).
    #[serde(default = "default_delay")]
    pub host_delay: Duration,
    /// One-way propagation delay of the bottleneck. Default: `host_delay`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bottleneck_delay: Option<Duration>,
    /// Probability that a link loses a packet, for every link, 0 to 1. Default 0.
    #[serde(default)]
    pub error_rate: f64,
}

impl Dumbbell {
    /// Creates a dumbbell with `hosts` hosts on each side and links of the default rate and delay.
    pub fn new(hosts: u32) -> Self {
        Dumbbell {
            left_hosts: hosts,
            right_hosts: None,
            host_rate: default_rate(),
            bottleneck_rate: None,
            bottleneck_links: 1,
            host_delay: default_delay(),
            bottleneck_delay: None,
            error_rate: 0.0,
        }
    }
}

impl Build for Dumbbell {
    fn build(&self, _: &Path) -> Result<Topology, TopoError> {
        let error_rate = probability("error_rate", self.error_rate)?;
        let left_hosts = at_least_one("left_hosts", self.left_hosts)?;
        let right_hosts = at_least_one("right_hosts", self.right_hosts.unwrap_or(left_hosts))?;
        let between = at_least_one("bottleneck_links", self.bottleneck_links)?;
        super::within_limits("dumbbell", &[left_hosts, right_hosts, 2], &[&[between]])?;
        let spec = |rate, delay| LinkSpec { rate, delay, error_rate };
        let host = spec(positive("host_rate", self.host_rate)?, self.host_delay);
        let bottleneck = spec(
            positive("bottleneck_rate", self.bottleneck_rate.unwrap_or(self.host_rate))?,
            self.bottleneck_delay.unwrap_or(self.host_delay),
        );
        let hosts = left_hosts + right_hosts;
        let mut parts = TopologyBuilder::new(hosts);
        let left = parts.switch("left".into(), 0, Some(0));
        let right = parts.switch("right".into(), 0, Some(1));
        for id in 0..hosts {
            parts.links(NodeId(id), if id < left_hosts { left } else { right }, host, 1);
        }
        parts.links(left, right, bottleneck, between);
        parts.regular_clos(format!("dumbbell of {left_hosts} and {right_hosts} hosts"))
    }
}
