//! Kinds of scale-up network that a server can have.

use pathweave_units::{Duration, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::build::{positive, refuse};
use crate::error::TopoError;
use crate::scale_up::{ScaleUp, ScaleUpLink, usable_rate};

/// Largest number of GPUs of a full mesh, which has a link for each pair.
const MOST_IN_MESH: u32 = 256;
/// Largest number of chips of a switch.
const MOST_CHIPS: u32 = 256;
/// Largest number of GPUs of a domain.
const MOST_IN_DOMAIN: u32 = 16_384;

/// Scale-up network of a server or rack, such as NVLink or Infinity Fabric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ScaleUpConfig {
    /// Switches join all GPUs (NVSwitch). Only the two directions of each GPU limit. `rate` is that of all links of a
    /// GPU together.
    Switch(SwitchLinks),
    /// Each pair of GPUs has a link (MI300X).
    FullMesh(EqualLinks),
    /// Eight GPUs with six links each, as in DGX-1 with V100: two quads, of which each GPU has a partner in the
    /// other.
    HybridCubeMesh(EqualLinks),
    /// Each GPU has a link to the next and to the previous one.
    Ring(EqualLinks),
    /// Torus: links to both neighbours in each dimension.
    Torus(TorusLinks),
    /// Links as listed.
    List(LinkList),
    /// No network, in place of that of the server's `preset`: all traffic takes the NICs.
    None {},
}

/// Links with one rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EqualLinks {
    /// Rate of a link in one direction.
    pub rate: Rate,
    /// Latency of a message in addition to the time of its bytes. Default 250 ns.
    #[serde(default = "default_delay", skip_serializing_if = "is_default_delay")]
    pub delay: Duration,
    /// Usable part of the rate, above 0 to 1: payload that a program can move at most. Default 1.
    #[serde(default = "default_efficiency", skip_serializing_if = "is_one")]
    pub efficiency: f64,
    /// Simulates messages as packets over these links, which are links of the network, with the scheme of the workload:
    /// for scale-up Ethernet. Default false: messages are fluid.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub packets: bool,
}

/// Links to the chips of a switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SwitchLinks {
    /// Rate of all links of a GPU together in one direction.
    pub rate: Rate,
    /// Number of chips, among which the links of each GPU are divided evenly. A fault of one of k takes 1/k of the
    /// rate. Default 1.
    #[serde(default = "one_chip", skip_serializing_if = "is_one_chip")]
    pub chips: u32,
    /// Latency of a message in addition to the time of its bytes. Default 250 ns.
    #[serde(default = "default_delay", skip_serializing_if = "is_default_delay")]
    pub delay: Duration,
    /// Usable part of the rate, above 0 to 1: payload that a program can move at most. Default 1.
    #[serde(default = "default_efficiency", skip_serializing_if = "is_one")]
    pub efficiency: f64,
    /// Simulates messages as packets over these links, which are links of the network, with the scheme of the workload:
    /// for scale-up Ethernet. Default false: messages are fluid.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub packets: bool,
}

/// Links of a torus.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TorusLinks {
    /// GPUs in each dimension. The product is the number of GPUs of the domain. The first dimension varies fastest.
    pub dims: Vec<u32>,
    /// Rate of a link in one direction.
    pub rate: Rate,
    /// Latency of a message in addition to the time of its bytes. Default 250 ns.
    #[serde(default = "default_delay", skip_serializing_if = "is_default_delay")]
    pub delay: Duration,
    /// Usable part of the rate, above 0 to 1: payload that a program can move at most. Default 1.
    #[serde(default = "default_efficiency", skip_serializing_if = "is_one")]
    pub efficiency: f64,
    /// Simulates messages as packets over these links, which are links of the network, with the scheme of the workload:
    /// for scale-up Ethernet. Default false: messages are fluid.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub packets: bool,
}

/// List of links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkList {
    /// Links with both directions.
    pub links: Vec<ListedLink>,
    /// Latency of a message in addition to the time of its bytes. Default 250 ns.
    #[serde(default = "default_delay", skip_serializing_if = "is_default_delay")]
    pub delay: Duration,
    /// Usable part of the rates, above 0 to 1: payload that a program can move at most. Default 1.
    #[serde(default = "default_efficiency", skip_serializing_if = "is_one")]
    pub efficiency: f64,
    /// Simulates messages as packets over these links, which are links of the network, with the scheme of the workload:
    /// for scale-up Ethernet. Default false: messages are fluid.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub packets: bool,
}

impl EqualLinks {
    /// Creates links with the default delay and their full rate.
    pub fn new(rate: Rate) -> Self {
        EqualLinks { rate, delay: default_delay(), efficiency: default_efficiency(), packets: false }
    }
}

impl SwitchLinks {
    /// Creates the links to a switch of one chip, with the default delay and their full rate.
    pub fn new(rate: Rate) -> Self {
        let (delay, efficiency) = (default_delay(), default_efficiency());
        SwitchLinks { rate, chips: one_chip(), delay, efficiency, packets: false }
    }
}

/// Link of a scale-up network that is given as a list.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListedLink {
    /// The two GPUs, counted within the domain from 0.
    pub gpus: [u32; 2],
    /// Rate in each direction.
    pub rate: Rate,
}

fn one_chip() -> u32 {
    1
}
fn is_one_chip(chips: &u32) -> bool {
    *chips == 1
}
fn default_delay() -> Duration {
    Duration::from_ns(250)
}
fn is_default_delay(delay: &Duration) -> bool {
    *delay == default_delay()
}
fn default_efficiency() -> f64 {
    1.0
}
fn is_one(efficiency: &f64) -> bool {
    *efficiency == 1.0
}

/// NVLinks between the GPUs of a DGX-1 with V100, as `nvidia-smi topo --matrix` prints them: GPUs and number of links.
const DGX_1: [(u32, u32, u64); 16] = [
    (0, 1, 1),
    (0, 2, 1),
    (0, 3, 2),
    (0, 4, 2),
    (1, 2, 2),
    (1, 3, 1),
    (1, 5, 2),
    (2, 3, 2),
    (2, 6, 1),
    (3, 7, 1),
    (4, 5, 1),
    (4, 6, 1),
    (4, 7, 2),
    (5, 6, 2),
    (5, 7, 1),
    (6, 7, 2),
];

impl ScaleUpConfig {
    /// Returns true if messages are packets on these links.
    pub(super) fn has_packets(&self) -> bool {
        match self {
            ScaleUpConfig::Switch(links) => links.packets,
            ScaleUpConfig::FullMesh(links)
            | ScaleUpConfig::HybridCubeMesh(links)
            | ScaleUpConfig::Ring(links) => links.packets,
            ScaleUpConfig::Torus(links) => links.packets,
            ScaleUpConfig::List(links) => links.packets,
            ScaleUpConfig::None {} => false,
        }
    }

    fn delay_and_efficiency(&self) -> (Duration, f64) {
        match self {
            ScaleUpConfig::Switch(links) => (links.delay, links.efficiency),
            ScaleUpConfig::FullMesh(links)
            | ScaleUpConfig::HybridCubeMesh(links)
            | ScaleUpConfig::Ring(links) => (links.delay, links.efficiency),
            ScaleUpConfig::Torus(links) => (links.delay, links.efficiency),
            ScaleUpConfig::List(links) => (links.delay, links.efficiency),
            ScaleUpConfig::None {} => (default_delay(), default_efficiency()),
        }
    }

    /// Builds the network of domains of `gpus` GPUs.
    pub(super) fn build(&self, gpus: u32) -> Result<ScaleUp, TopoError> {
        let (delay, part) = self.delay_and_efficiency();
        if !(part > 0.0 && part <= 1.0) {
            return Err(refuse("server.scale_up.efficiency", part, "must be above 0, at most 1"));
        }
        if delay == Duration::ZERO {
            return Err(refuse("server.scale_up.delay", delay, "must be above 0"));
        }
        if gpus > MOST_IN_DOMAIN {
            return Err(refuse("server.domain", gpus, format!("must be at most {MOST_IN_DOMAIN}")));
        }
        let usable = |rate: Rate| Ok(usable_rate(positive("server.scale_up.rate", rate)?, part));
        let mut chips = 0;
        let (nodes, links) = match self {
            ScaleUpConfig::Switch(SwitchLinks { rate, chips: given, .. }) => {
                if *given == 0 || *given > MOST_CHIPS {
                    let allowed = format!("must be 1 to {MOST_CHIPS}");
                    return Err(refuse("server.scale_up.chips", given, allowed));
                }
                chips = *given;
                let rate = usable(*rate)?;
                let both = |gpu| {
                    [ScaleUpLink { from: gpu, to: gpus, rate }, ScaleUpLink { from: gpus, to: gpu, rate }]
                };
                (gpus + 1, (0..gpus).flat_map(both).collect())
            }
            _ => {
                let pairs = self.pairs(gpus)?;
                let mut links = Vec::with_capacity(2 * pairs.len());
                for (a, b, rate) in pairs {
                    let rate = usable(rate)?;
                    links
                        .extend([ScaleUpLink { from: a, to: b, rate }, ScaleUpLink { from: b, to: a, rate }]);
                }
                (gpus, links)
            }
        };
        let network = ScaleUp::new(gpus, nodes, links, delay).with_parts(chips, part);
        match network.unreachable() {
            None => Ok(network),
            Some(gpu) => Err(refuse(
                "server.scale_up.links",
                format!("links that leave GPU {gpu} apart"),
                "must join all GPUs of a domain",
            )),
        }
    }

    /// Returns the pairs of GPUs with a link, each once; none for a switch.
    fn pairs(&self, gpus: u32) -> Result<Vec<(u32, u32, Rate)>, TopoError> {
        Ok(match self {
            ScaleUpConfig::Switch(_) | ScaleUpConfig::None {} => Vec::new(),
            ScaleUpConfig::FullMesh(EqualLinks { rate, .. }) => {
                if gpus > MOST_IN_MESH {
                    let allowed = format!("must be at most {MOST_IN_MESH} for a full mesh");
                    return Err(refuse("server.domain", gpus, allowed));
                }
                (0..gpus).flat_map(|a| (a + 1..gpus).map(move |b| (a, b, *rate))).collect()
            }
            ScaleUpConfig::HybridCubeMesh(EqualLinks { rate, .. }) => {
                if gpus != 8 {
                    return Err(refuse("server.gpus", gpus, "must be 8 for a hybrid cube mesh"));
                }
                let wide = |links| Rate::from_bps(rate.as_bps().saturating_mul(links));
                DGX_1.iter().map(|&(a, b, links)| (a, b, wide(links))).collect()
            }
            ScaleUpConfig::Ring(EqualLinks { rate, .. }) => torus_pairs(&[gpus], *rate),
            ScaleUpConfig::Torus(TorusLinks { rate, dims, .. }) => {
                let product = dims.iter().try_fold(1u32, |all, &dim| all.checked_mul(dim));
                if dims.is_empty() || product != Some(gpus) {
                    let allowed = format!("must multiply to {gpus}, the GPUs of a domain");
                    return Err(refuse("server.scale_up.dims", format!("{dims:?}"), allowed));
                }
                torus_pairs(dims, *rate)
            }
            ScaleUpConfig::List(LinkList { links, .. }) => {
                for &ListedLink { gpus: [a, b], .. } in links {
                    if a == b || a >= gpus || b >= gpus {
                        let allowed = format!("must be two different GPUs from 0 to {}", gpus - 1);
                        return Err(refuse("server.scale_up.links", format!("[{a}, {b}]"), allowed));
                    }
                }
                links.iter().map(|link| (link.gpus[0], link.gpus[1], link.rate)).collect()
            }
        })
    }
}

/// Returns the links of a torus. A dimension of two has one link for each pair.
fn torus_pairs(dims: &[u32], rate: Rate) -> Vec<(u32, u32, Rate)> {
    let gpus: u32 = dims.iter().product();
    let mut pairs = Vec::new();
    let mut stride = 1;
    for &dim in dims {
        let links = if dim == 2 { 1 } else { dim };
        for gpu in 0..gpus {
            let at = gpu / stride % dim;
            if at < links && dim > 1 {
                pairs.push((gpu, gpu - at * stride + (at + 1) % dim * stride, rate));
            }
        }
        stride *= dim;
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_units::HostId;

    fn gbps(rate: u64) -> Rate {
        Rate::from_gbps(rate)
    }

    fn torus_of(rate: Rate, dims: Vec<u32>) -> ScaleUpConfig {
        let EqualLinks { rate, delay, efficiency, packets } = EqualLinks::new(rate);
        ScaleUpConfig::Torus(TorusLinks { dims, rate, delay, efficiency, packets })
    }

    fn list(links: Vec<ListedLink>) -> ScaleUpConfig {
        ScaleUpConfig::List(LinkList { links, delay: default_delay(), efficiency: 1.0, packets: false })
    }

    fn alone(shape: ScaleUpConfig, gpus: u32, a: u32, b: u32) -> Rate {
        shape.build(gpus).unwrap().alone(HostId(a), HostId(b))
    }

    /// Only the two GPUs' own directions limit, also in the second domain.
    #[test]
    fn a_switch_gives_each_pair_its_full_rate() {
        let network = ScaleUpConfig::Switch(SwitchLinks::new(gbps(3_600))).build(8).unwrap();
        assert_eq!(network.alone(HostId(8), HostId(15)), gbps(3_600));
        assert!(network.joins(HostId(8), HostId(15)) && !network.joins(HostId(7), HostId(8)));
        assert_eq!(network.rate_of(HostId(3)), gbps(3_600));
        let uses = network.uses(HostId(1), HostId(2));
        let ends: Vec<_> =
            uses.iter().map(|used| network.links()[used.link as usize]).map(|l| (l.from, l.to)).collect();
        assert_eq!(ends, [(8, 2), (1, 8)]);
    }

    /// MI300X: seven links of 64 GB/s, of which 48 are usable. A pair has one of them.
    #[test]
    fn a_pair_of_a_full_mesh_has_its_own_link() {
        let config = ScaleUpConfig::FullMesh(EqualLinks { efficiency: 0.75, ..EqualLinks::new(gbps(512)) });
        let network = config.build(8).unwrap();
        assert_eq!(network.alone(HostId(0), HostId(5)), gbps(384));
        assert_eq!(network.rate_of(HostId(0)), gbps(7 * 384));
    }

    /// GPU 0 of a DGX-1 has two links to GPU 4. GPUs 1 and 2 of the other quad's partners are two hops away: traffic
    /// from 0 to 5 is divided over 1 (1 link, then 2) and 4 (2 links, then 1), and 4 to 5 has one link.
    #[test]
    fn a_hybrid_cube_mesh_divides_traffic_over_its_shortest_paths() {
        let mesh = || ScaleUpConfig::HybridCubeMesh(EqualLinks::new(gbps(200)));
        assert_eq!(alone(mesh(), 8, 0, 4), gbps(400));
        let network = mesh().build(8).unwrap();
        // Over GPU 1, 200 and then 400 Gb/s, and over GPU 4, 400 and then 200, 200 Gb/s reach GPU 5: equal shares.
        assert_eq!(network.alone(HostId(0), HostId(5)), gbps(400));
        let degrees = (0..8).map(|gpu| network.rate_of(HostId(gpu)));
        assert!(degrees.into_iter().all(|rate| rate == gbps(1_200)), "six links each");
    }

    /// In a ring of four, opposite GPUs have two paths of two hops.
    #[test]
    fn opposite_gpus_of_a_ring_use_both_directions() {
        let ring = || ScaleUpConfig::Ring(EqualLinks::new(gbps(100)));
        assert_eq!(alone(ring(), 4, 0, 1), gbps(100));
        assert_eq!(alone(ring(), 4, 0, 2), gbps(200));
        assert_eq!(alone(ring(), 2, 0, 1), gbps(100), "two GPUs have one link");
    }

    /// In a torus of 4 x 4, (0, 0) reaches (1, 1) over two paths, and (2, 2) over two links in each of two
    /// dimensions.
    #[test]
    fn a_torus_has_links_in_each_dimension() {
        let torus = || torus_of(gbps(100), vec![4, 4]);
        assert_eq!(alone(torus(), 16, 0, 5), gbps(200));
        let network = torus().build(16).unwrap();
        assert_eq!(network.links().len(), 2 * 2 * 16);
        assert_eq!(alone(torus(), 16, 0, 10), gbps(400));
    }

    #[test]
    fn what_cannot_be_is_named() {
        let error = |shape: ScaleUpConfig, gpus| shape.build(gpus).unwrap_err().to_string();
        let rate = gbps(100);
        assert_eq!(
            error(torus_of(rate, vec![3, 3]), 8),
            "topology field `server.scale_up.dims` = [3, 3]: must multiply to 8, the GPUs of a domain"
        );
        assert!(error(ScaleUpConfig::HybridCubeMesh(EqualLinks::new(rate)), 4).contains("must be 8"));
        assert!(
            error(ScaleUpConfig::Switch(SwitchLinks::new(Rate::ZERO)), 4).contains("`server.scale_up.rate`")
        );
        let chips = ScaleUpConfig::Switch(SwitchLinks { chips: 0, ..SwitchLinks::new(rate) });
        assert_eq!(error(chips, 4), "topology field `server.scale_up.chips` = 0: must be 1 to 256");
        let link = |a, b| ListedLink { gpus: [a, b], rate };
        assert!(error(list(vec![link(0, 4)]), 4).contains("GPUs from 0 to 3"));
        assert!(error(list(vec![link(0, 1)]), 3).contains("leave GPU 2 apart"));
    }
}
