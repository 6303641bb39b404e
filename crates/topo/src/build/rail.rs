//! Rail network: a scale-up switch joins the GPUs of a server, and a rail switch joins the GPUs of equal index in all
//! servers.

use std::path::Path;

use pathweave_units::{Duration, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Build, LinkSpec, TopologyBuilder, at_least_one, default_delay, default_rate, positive, probability,
};
use crate::error::TopoError;
use crate::graph::{HostAttachment, NodeId, Topology};
use crate::own_paths::PathGenerator;

/// Rail-only network. The GPUs of a cluster share a scale-up switch (such as NVLink's), and the GPUs of equal index
/// in all clusters share a rail switch. GPUs forward, so a GPU is modelled as a switch with one host behind it. A
/// path to another cluster takes one of the rails. If the rail is not the GPU's own, the path has a hop over the
/// scale-up switch at that end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rail {
    /// Number of clusters. The GPUs of a cluster share a scale-up switch.
    pub clusters: u32,
    /// Number of GPUs in each cluster, which equals the number of rails.
    pub gpus_per_cluster: u32,
    /// Rate between a host and its GPU's ports. Default: the sum of `rail_rate` and `scale_up_rate`, all that the GPU
    /// can send (as in the evaluation of LAPS).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_rate: Option<Rate>,
    /// Rate of the links to rail switches. Default 100 Gb/s (LAPS, section IV).
    #[serde(default = "default_rate")]
    pub rail_rate: Rate,
    /// Rate of the links to scale-up switches. Default: `rail_rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale_up_rate: Option<Rate>,
    /// One-way propagation delay between a host and its GPU's ports. Default 1 us (LAPS, section IV).
    #[serde(default = "default_delay")]
    pub host_delay: Duration,
    /// One-way propagation delay to rail switches. Default: `host_delay`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rail_delay: Option<Duration>,
    /// One-way propagation delay to scale-up switches. Default: `host_delay`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale_up_delay: Option<Duration>,
    /// Probability that a link loses a packet, for every link, 0 to 1. Default 0.
    #[serde(default)]
    pub error_rate: f64,
    /// Marking (ECN) in the queues of GPUs. Default "unmarked": a GPU holds its own traffic back, as a NIC does.
    #[serde(default, skip_serializing_if = "GpuQueues::is_unmarked")]
    pub gpu_queues: GpuQueues,
}

/// Marking in the queues of GPUs that forward.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GpuQueues {
    /// GPUs do not mark packets, and the host knows the rates of its GPU's ports.
    #[default]
    Unmarked,
    /// GPUs mark packets as all switches do, as in the evaluation of LAPS.
    Marked,
}

impl GpuQueues {
    fn is_unmarked(&self) -> bool {
        *self == GpuQueues::Unmarked
    }
}

impl Rail {
    /// Creates a rail network with links of the default rate and delay.
    pub fn new(clusters: u32, gpus_per_cluster: u32) -> Self {
        Rail {
            clusters,
            gpus_per_cluster,
            host_rate: None,
            rail_rate: default_rate(),
            scale_up_rate: None,
            host_delay: default_delay(),
            rail_delay: None,
            scale_up_delay: None,
            error_rate: 0.0,
            gpu_queues: GpuQueues::default(),
        }
    }
}

/// Numbering of switches: the GPUs, cluster by cluster, then the scale-up switches, then the rail switches.
#[derive(Clone, Copy, Debug)]
struct Wiring {
    clusters: u32,
    gpus: u32,
}

impl Wiring {
    fn gpu(&self, cluster: u32, index: u32) -> u32 {
        cluster * self.gpus + index
    }
    fn scale_up(&self, cluster: u32) -> u32 {
        self.clusters * self.gpus + cluster
    }
    fn rail(&self, index: u32) -> u32 {
        self.clusters * self.gpus + self.clusters + index
    }
}

impl PathGenerator for Wiring {
    fn emit(&self, src: u32, dst: u32, path: &mut dyn FnMut(&[u32])) {
        let [(from, i), (to, j)] = [src, dst].map(|gpu| (gpu / self.gpus, gpu % self.gpus));
        if from == to {
            return path(&[src, self.scale_up(from), dst]);
        }
        let mut over = |rail: u32| {
            let mut switches = vec![src];
            if rail != i {
                switches.extend([self.scale_up(from), self.gpu(from, rail)]);
            }
            switches.push(self.rail(rail));
            if rail != j {
                switches.extend([self.gpu(to, rail), self.scale_up(to)]);
            }
            switches.push(dst);
            path(&switches);
        };
        over(i);
        if j != i {
            over(j);
        }
        (0..self.gpus).filter(|&rail| rail != i && rail != j).for_each(over);
    }
}

impl Build for Rail {
    fn build(&self, _: &Path) -> Result<Topology, TopoError> {
        let error_rate = probability("error_rate", self.error_rate)?;
        let clusters = at_least_one("clusters", self.clusters)?;
        let gpus = at_least_one("gpus_per_cluster", self.gpus_per_cluster)?;
        let hosts = clusters.saturating_mul(gpus);
        super::within_limits("rail", &[hosts, hosts, clusters, gpus], &[&[hosts, 3]])?;
        let rail_rate = positive("rail_rate", self.rail_rate)?;
        let scale_up_rate = positive("scale_up_rate", self.scale_up_rate.unwrap_or(rail_rate))?;
        let host_rate =
            positive("host_rate", self.host_rate.unwrap_or_else(|| rail_rate.saturating_add(scale_up_rate)))?;
        let spec = |rate, delay: Option<Duration>| LinkSpec {
            rate,
            delay: delay.unwrap_or(self.host_delay),
            error_rate,
        };
        let edge = match self.gpu_queues {
            GpuQueues::Unmarked => HostAttachment::Host,
            GpuQueues::Marked => HostAttachment::Network,
        };
        let wiring = Wiring { clusters, gpus };
        let mut parts = TopologyBuilder::new(hosts);
        for gpu in 0..hosts {
            let (cluster, index) = (gpu / gpus, gpu % gpus);
            parts.switch(format!("gpu{cluster}.{index}"), 0, Some(cluster));
        }
        (0..clusters).for_each(|cluster| _ = parts.switch(format!("nvlink{cluster}"), 1, Some(cluster)));
        (0..gpus).for_each(|index| _ = parts.switch(format!("rail{index}"), 2, None));
        let node = |switch: u32| NodeId(hosts + switch);
        for gpu in 0..hosts {
            parts.links(NodeId(gpu), node(gpu), spec(host_rate, None), 1);
        }
        for gpu in 0..hosts {
            parts.links(
                node(gpu),
                node(wiring.scale_up(gpu / gpus)),
                spec(scale_up_rate, self.scale_up_delay),
                1,
            );
            parts.links(node(gpu), node(wiring.rail(gpu % gpus)), spec(rail_rate, self.rail_delay), 1);
        }
        Ok(parts.finish(format!("rails of {hosts} GPUs"))?.with_own_paths(wiring).with_edge(edge))
    }

    fn presets() -> Vec<(&'static str, &'static str, Self)> {
        let help = "Rail-only network of LAPS (IEEE ToN 2026), section IV: 64 GPUs in 8 clusters, 100 Gb/s to rails and to \
                    scale-up switches, 200 Gb/s a host, 1 us";
        vec![("laps-rail", help, Rail { gpu_queues: GpuQueues::Marked, ..Rail::new(8, 8) })]
    }
}
