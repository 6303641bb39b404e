//! Fat tree of three tiers: ToRs and aggregation switches in pods, and core switches above them.

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

/// Three-tier fat tree. Specify `k`, or `pods`, `tors_per_pod`, `hosts_per_tor`, `aggs_per_pod` and `cores`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FatTree {
    /// Size of a k-ary fat tree (Al-Fares et al., SIGCOMM 2008, section 3): k pods with k/2 ToRs of k/2 hosts each
    /// and k/2 aggregation switches, and (k/2)^2 cores. Must be even. Excludes the five counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k: Option<u32>,
    /// Number of pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<u32>,
    /// Number of ToR switches in each pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tors_per_pod: Option<u32>,
    /// Number of hosts at each ToR switch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts_per_tor: Option<u32>,
    /// Number of aggregation switches in each pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggs_per_pod: Option<u32>,
    /// Total number of core switches. With `core_wiring = "planes"` a multiple of `aggs_per_pod`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<u32>,
    /// Core switches to which an aggregation switch connects. Default "planes".
    #[serde(default)]
    pub core_wiring: CoreWiring,
    /// Number of parallel links between each ToR and each aggregation switch of its pod. Default 1.
    #[serde(default = "default_one")]
    pub tor_agg_links: u32,
    /// Number of parallel links between each aggregation switch and each of its cores. Default 1.
    #[serde(default = "default_one")]
    pub agg_core_links: u32,
    /// Rate of the links between hosts and ToRs. Default 100 Gb/s (UDMP, section V-A).
    #[serde(default = "default_rate")]
    pub host_rate: Rate,
    /// Rate of the links between ToRs and aggregation switches. Default: `host_rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tor_agg_rate: Option<Rate>,
    /// Rate of the links between aggregation switches and cores. Default: `tor_agg_rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agg_core_rate: Option<Rate>,
    /// Ratio of an aggregation switch's capacity towards its ToRs to that towards its cores, at least 1, where 1
    /// means no oversubscription. Sets `agg_core_rate` and therefore excludes it. Fewer `cores` oversubscribe by
    /// fewer paths instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oversubscription: Option<f64>,
    /// One-way propagation delay of the links between hosts and ToRs. Default 1 us (UDMP, section V-A).
    #[serde(default = "default_delay")]
    pub host_delay: Duration,
    /// One-way propagation delay between ToRs and aggregation switches. Default: `host_delay`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tor_agg_delay: Option<Duration>,
    /// One-way propagation delay between aggregation switches and cores. Default: `tor_agg_delay`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agg_core_delay: Option<Duration>,
    /// Probability that a link loses a packet, for every link, 0 to 1. Default 0.
    #[serde(default)]
    pub error_rate: f64,
}

/// Core switches to which an aggregation switch connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CoreWiring {
    /// The j-th aggregation switch of every pod connects to the j-th plane of `cores / aggs_per_pod` cores.
    #[default]
    Planes,
    /// Every aggregation switch connects to every core.
    FullMesh,
}

impl Default for FatTree {
    fn default() -> Self {
        FatTree {
            k: None,
            pods: None,
            tors_per_pod: None,
            hosts_per_tor: None,
            aggs_per_pod: None,
            cores: None,
            core_wiring: CoreWiring::Planes,
            tor_agg_links: 1,
            agg_core_links: 1,
            host_rate: default_rate(),
            tor_agg_rate: None,
            agg_core_rate: None,
            oversubscription: None,
            host_delay: default_delay(),
            tor_agg_delay: None,
            agg_core_delay: None,
            error_rate: 0.0,
        }
    }
}

impl FatTree {
    /// Creates the k-ary fat tree with links of the default rate and delay.
    pub fn k_ary(k: u32) -> Self {
        FatTree { k: Some(k), ..FatTree::default() }
    }

    /// Creates a fat tree of 1,048,576 hosts without oversubscription. ToRs have 128 ports, half of them to hosts,
    /// aggregation switches 256 ports and cores 128 ports.
    pub fn million() -> Self {
        FatTree {
            pods: Some(128),
            tors_per_pod: Some(128),
            hosts_per_tor: Some(64),
            aggs_per_pod: Some(64),
            cores: Some(64 * 128),
            ..FatTree::default()
        }
    }

    /// Creates the network of 320 hosts of the UDMP evaluation (section V-A), with `cores` cores on links of
    /// `agg_core_rate`. 16 cores at 400 Gb/s give no oversubscription.
    pub fn udmp_320(cores: u32, agg_core_rate: Rate) -> Self {
        FatTree {
            pods: Some(5),
            tors_per_pod: Some(4),
            hosts_per_tor: Some(16),
            aggs_per_pod: Some(4),
            cores: Some(cores),
            tor_agg_rate: Some(Rate::from_gbps(400)),
            agg_core_rate: Some(agg_core_rate),
            ..FatTree::default()
        }
    }

    /// Creates the network of the ERD evaluation (table 1): ToRs of 4 hosts, two EoRs in each pod, two gateways on
    /// top, and 2:1 between EoRs and gateways.
    ///
    /// The paper assigns delays to nodes and none to links. Here each link has half of the delay of the switches at
    /// its ends, and a host's link the whole delay of the host. A virtual machine has 0.45 us and its host 0.06 us, a
    /// ToR 0.28 us, an EoR 1.01 us, a gateway 1.12 us. Every path thus has the delay that the table states.
    pub fn erd(pods: u32, tors_per_pod: u32, gateway_rate: Rate) -> Self {
        FatTree {
            pods: Some(pods),
            tors_per_pod: Some(tors_per_pod),
            hosts_per_tor: Some(4),
            aggs_per_pod: Some(2),
            cores: Some(2),
            core_wiring: CoreWiring::FullMesh,
            tor_agg_rate: Some(Rate::from_gbps(400)),
            agg_core_rate: Some(gateway_rate),
            host_delay: Duration::from_ns(450 + 60 + 140),
            tor_agg_delay: Some(Duration::from_ns(140 + 505)),
            agg_core_delay: Some(Duration::from_ns(505 + 560)),
            ..FatTree::default()
        }
    }

    fn shape(&self) -> Result<Shape, TopoError> {
        let counts = [
            ("pods", self.pods),
            ("tors_per_pod", self.tors_per_pod),
            ("hosts_per_tor", self.hosts_per_tor),
            ("aggs_per_pod", self.aggs_per_pod),
            ("cores", self.cores),
        ];
        if let Some(k) = self.k {
            if let Some((field, Some(value))) = counts.iter().find(|(_, value)| value.is_some()) {
                return Err(refuse(
                    field,
                    value,
                    "already set by `k`; give `k` or the five counts, not both",
                ));
            }
            if k < 2 || k % 2 == 1 || k > 256 {
                return Err(refuse("k", k, "must be even, from 2 to 256"));
            }
            let half = k / 2;
            return Ok(Shape { pods: k, tors: half, hosts: half, aggs: half, cores: half * half });
        }
        let need = |i: usize| match counts[i] {
            (field, Some(value)) => at_least_one(field, value),
            (field, None) => Err(refuse(field, "(missing)", "required unless `k` is given")),
        };
        Ok(Shape { pods: need(0)?, tors: need(1)?, hosts: need(2)?, aggs: need(3)?, cores: need(4)? })
    }
}

/// Counts: pods, ToRs in each pod, hosts at each ToR, aggregation switches in each pod, cores in all.
struct Shape {
    pods: u32,
    tors: u32,
    hosts: u32,
    aggs: u32,
    cores: u32,
}

impl FatTree {
    fn check_limits(&self, s: &Shape, cores_per_agg: u32) -> Result<(), TopoError> {
        let mul = |a: u32, b: u32| a.saturating_mul(b);
        let hosts = mul(mul(s.pods, s.tors), s.hosts);
        let nodes = [hosts, mul(s.pods, s.tors), mul(s.pods, s.aggs), s.cores];
        let tor_agg = [s.pods, s.tors, s.aggs, self.tor_agg_links];
        let agg_core = [s.pods, s.aggs, cores_per_agg, self.agg_core_links];
        super::within_limits("fat-tree", &nodes, &[&[hosts], &tor_agg, &agg_core])
    }

    fn core_rate(&self, s: &Shape, cores_per_agg: u32, tor_agg_rate: Rate) -> Result<Rate, TopoError> {
        match (self.oversubscription, self.agg_core_rate) {
            (Some(ratio), Some(_)) => {
                Err(refuse("oversubscription", ratio, "already set by `agg_core_rate`; give one of the two"))
            }
            (Some(ratio), None) if ratio.is_finite() && ratio >= 1.0 => {
                let down = f64::from(s.tors) * f64::from(self.tor_agg_links);
                let up = f64::from(cores_per_agg) * f64::from(self.agg_core_links);
                positive("oversubscription", tor_agg_rate.scale(down / (up * ratio)))
            }
            (Some(ratio), None) => Err(refuse("oversubscription", ratio, "must be at least 1")),
            (None, rate) => positive("agg_core_rate", rate.unwrap_or(tor_agg_rate)),
        }
    }
}

impl Build for FatTree {
    fn build(&self, _: &Path) -> Result<Topology, TopoError> {
        let error_rate = probability("error_rate", self.error_rate)?;
        let s = self.shape()?;
        at_least_one("tor_agg_links", self.tor_agg_links)?;
        at_least_one("agg_core_links", self.agg_core_links)?;
        let (cores_per_agg, planes) = match self.core_wiring {
            CoreWiring::FullMesh => (s.cores, 1),
            CoreWiring::Planes if s.cores.is_multiple_of(s.aggs) => (s.cores / s.aggs, s.aggs),
            CoreWiring::Planes => {
                let allowed = format!(
                    "must be a multiple of `aggs_per_pod` = {}, or `core_wiring` be \"full-mesh\"",
                    s.aggs
                );
                return Err(refuse("cores", s.cores, allowed));
            }
        };
        self.check_limits(&s, cores_per_agg)?;
        let host_rate = positive("host_rate", self.host_rate)?;
        let tor_agg_rate = positive("tor_agg_rate", self.tor_agg_rate.unwrap_or(host_rate))?;
        let agg_core_rate = self.core_rate(&s, cores_per_agg, tor_agg_rate)?;
        let tor_agg_delay = self.tor_agg_delay.unwrap_or(self.host_delay);
        let agg_core_delay = self.agg_core_delay.unwrap_or(tor_agg_delay);
        let spec = |rate, delay| LinkSpec { rate, delay, error_rate };

        let tors = s.pods * s.tors;
        let hosts = tors * s.hosts;
        let mut parts = TopologyBuilder::new(hosts);
        let tor: Vec<_> = (0..tors).map(|t| parts.switch(format!("tor{t}"), 0, Some(t / s.tors))).collect();
        let agg: Vec<_> = (0..s.pods * s.aggs)
            .map(|a| {
                let (pod, index) = (a / s.aggs, a % s.aggs);
                parts.switch(format!("agg{pod}.{index}"), 1, Some(pod))
            })
            .collect();
        let core: Vec<_> = (0..s.cores).map(|c| parts.switch(format!("core{c}"), 2, None)).collect();

        // Pods, then ToRs, then hosts. Ports down therefore precede ports up, and hosts below a port are contiguous.
        for host in 0..hosts {
            let tor = tor[(host / s.hosts) as usize];
            parts.links(NodeId(host), tor, spec(host_rate, self.host_delay), 1);
        }
        for (t, &tor) in (0u32..).zip(&tor) {
            let pod = (t / s.tors) as usize;
            for &agg in &agg[pod * s.aggs as usize..(pod + 1) * s.aggs as usize] {
                parts.links(tor, agg, spec(tor_agg_rate, tor_agg_delay), self.tor_agg_links);
            }
        }
        for (a, &agg) in (0u32..).zip(&agg) {
            let plane = (a % planes) as usize;
            for &core in &core[plane * cores_per_agg as usize..][..cores_per_agg as usize] {
                parts.links(agg, core, spec(agg_core_rate, agg_core_delay), self.agg_core_links);
            }
        }
        parts.regular_clos(format!("fat tree of {hosts} hosts"))
    }

    fn presets() -> Vec<(&'static str, &'static str, Self)> {
        let (full, half) = (Rate::from_gbps(400), Rate::from_gbps(200));
        vec![
            ("udmp-320", "320 hosts of the UDMP evaluation (section V-A), 1:1", Self::udmp_320(16, full)),
            ("udmp-320-2to1", "udmp-320 with 2 cores for each aggregation switch", Self::udmp_320(8, full)),
            ("udmp-320-4to1", "udmp-320 with 1 core for each aggregation switch", Self::udmp_320(4, full)),
            ("udmp-320-8to1", "udmp-320-4to1 with 200 Gbps to the cores", Self::udmp_320(4, half)),
            (
                "erd-256",
                "256 hosts of the ERD evaluation (table 1): 8 pods, gateways on top, 2:1",
                Self::erd(8, 8, full),
            ),
            ("erd-64", "erd-256 scaled down: 4 pods of 16 hosts", Self::erd(4, 4, half)),
            ("erd-16", "erd-256 scaled down: 2 pods of 8 hosts", Self::erd(2, 2, Rate::from_gbps(100))),
            ("b1-1024", "benchmark B1: k = 16, 1,024 hosts at 100 Gbps", Self::k_ary(16)),
            ("b2-8192", "benchmark B2: k = 32, 8,192 hosts at 100 Gbps", Self::k_ary(32)),
            ("b3-128", "benchmark B3: k = 8, 128 hosts at 100 Gbps", Self::k_ary(8)),
            ("b4-1m", "benchmark B4: 128 pods of 128 ToRs, 1,048,576 hosts at 100 Gbps", Self::million()),
        ]
    }
}
