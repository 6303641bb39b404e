//! Kinds of topology that a scenario can use.
//!
//! To add a kind, write a file here with a struct that holds its fields and implements [`Build`], and name it below,
//! once as a module and once in the registry. Configuration, JSON Schema, `list topologies`, presets and error texts
//! are derived from it.

mod astra;
mod bcube;
mod cluster;
mod cross_dc;
mod dragonfly;
mod dumbbell;
mod fat_tree;
mod file;
mod full_mesh;
mod grid;
mod hpcc;
mod htsim;
mod jellyfish;
mod laps;
mod leaf_spine;
mod preset;
mod rail;
mod simai;
mod star;
mod torus;
mod word_lines;

pub use astra::{AstraNetwork, parse_astra_network};
pub use bcube::BCube;
pub use cluster::{
    Attach, AttachRule, Cluster, EqualLinks, LinkList, ListedLink, ScaleUpConfig, Server, SwitchLinks,
    TorusLinks, server_models,
};
pub use cross_dc::CrossDc;
pub use dragonfly::Dragonfly;
pub use dumbbell::Dumbbell;
pub use fat_tree::{CoreWiring, FatTree};
pub use file::{TopologyFile, parse_topology_file};
pub use full_mesh::FullMesh;
pub use hpcc::{HpccFile, parse_hpcc_topology};
pub use htsim::{HtsimFile, parse_htsim_topology};
pub use jellyfish::Jellyfish;
pub use laps::{LapsTopology, parse_laps_topology};
pub use leaf_spine::LeafSpine;
pub use preset::PresetName;
pub use rail::{GpuQueues, Rail};
pub use simai::{SimAiTopology, parse_simai_topology};
pub use star::Star;
pub use torus::{Torus, TorusEnds};
pub use word_lines::header_words;

use std::ops::Range;
use std::path::{Path, PathBuf};

use pathweave_units::{Duration, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::TopoError;
pub(crate) use crate::error::refuse;
use crate::graph::{Link, NodeId, Switch, Topology};
use crate::sites::Sites;

/// Kind of topology. The struct's fields are the fields of the configuration, and its documentation is their help.
pub trait Build: JsonSchema {
    /// Builds the topology. Paths of files are relative to `base_dir`.
    fn build(&self, base_dir: &Path) -> Result<Topology, TopoError>;

    /// Returns the file that the topology is read from, if there is one.
    fn file(&mut self) -> Option<&mut PathBuf> {
        None
    }

    /// Returns true if flow lists made for the topology number hosts as its file does. The names of hosts keep those
    /// numbers.
    fn has_node_ids(&self) -> bool {
        false
    }

    /// Returns the presets of this kind: name, description with source, and settings.
    fn presets() -> Vec<(&'static str, &'static str, Self)>
    where
        Self: Sized,
    {
        Vec::new()
    }
}

macro_rules! registry {
    ($($name:literal => $variant:ident,)*) => {
        /// Network of a scenario: `kind` and the fields of that kind.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "kind")]
        pub enum TopologyConfig {
            $(
                #[allow(missing_docs)] // Documented at the struct.
                #[serde(rename = $name)]
                $variant($variant),
            )*
        }

        impl TopologyConfig {
            /// Returns the kind as written in a scenario.
            pub fn kind(&self) -> &'static str {
                match self { $(TopologyConfig::$variant(_) => $name,)* }
            }
            /// Builds the topology. Paths of files are relative to `base_dir`.
            pub fn build(&self, base_dir: &Path) -> Result<Topology, TopoError> {
                match self { $(TopologyConfig::$variant(config) => config.build(base_dir),)* }
            }
            /// Returns the file that the topology is read from, if there is one.
            pub fn file(&mut self) -> Option<&mut PathBuf> {
                match self { $(TopologyConfig::$variant(config) => config.file(),)* }
            }
            /// Returns true if flow lists made for the topology number hosts as its file does. The names of hosts
            /// keep those numbers.
            pub fn has_node_ids(&self) -> bool {
                match self { $(TopologyConfig::$variant(config) => config.has_node_ids(),)* }
            }
        }

        pub(crate) fn kinds() -> Vec<(&'static str, schemars::Schema)> {
            vec![$(($name, schemars::schema_for!($variant)),)*]
        }
        pub(crate) fn all_presets() -> Vec<(&'static str, &'static str, TopologyConfig)> {
            let mut all = Vec::new();
            $(all.extend(<$variant as Build>::presets().into_iter()
                .map(|(name, help, config)| (name, help, TopologyConfig::$variant(config))));)*
            all
        }
    };
}

registry! {
    "star" => Star,
    "dumbbell" => Dumbbell,
    "leaf-spine" => LeafSpine,
    "fat-tree" => FatTree,
    "cross-dc" => CrossDc,
    "cluster" => Cluster,
    "dragonfly" => Dragonfly,
    "rail" => Rail,
    "torus" => Torus,
    "full-mesh" => FullMesh,
    "jellyfish" => Jellyfish,
    "bcube" => BCube,
    "file" => TopologyFile,
    "hpcc" => HpccFile,
    "simai" => SimAiTopology,
    "htsim" => HtsimFile,
    "laps" => LapsTopology,
    "astra" => AstraNetwork,
    "preset" => PresetName,
}

/// Rate, delay and loss of the links of one tier.
#[derive(Clone, Copy)]
pub(crate) struct LinkSpec {
    pub(crate) rate: Rate,
    pub(crate) delay: Duration,
    pub(crate) error_rate: f64,
}

/// Collects switches and links of a generated topology.
pub(crate) struct TopologyBuilder {
    hosts: u32,
    switches: Vec<Switch>,
    links: Vec<Link>,
}

impl TopologyBuilder {
    pub(crate) fn new(hosts: u32) -> Self {
        TopologyBuilder { hosts, switches: Vec::new(), links: Vec::new() }
    }
    pub(crate) fn switch(&mut self, name: String, tier: u8, group: Option<u32>) -> NodeId {
        self.switches.push(Switch { name, tier, group });
        NodeId(self.hosts + self.switches.len() as u32 - 1)
    }
    /// Returns the node of the switch that will be added next.
    pub(crate) fn next_switch(&self) -> NodeId {
        NodeId(self.hosts + self.switches.len() as u32)
    }
    /// Adds `count` parallel links. Returns their numbers.
    pub(crate) fn links(&mut self, a: NodeId, b: NodeId, spec: LinkSpec, count: u32) -> Range<u32> {
        let LinkSpec { rate, delay, error_rate } = spec;
        let first = self.links.len() as u32;
        self.links.extend((0..count).map(|_| Link { a, b, rate, delay, error_rate }));
        first..first + count
    }
    /// Creates a network of several sites.
    pub(crate) fn finish_with_sites(self, name: String, sites: Sites) -> Result<Topology, TopoError> {
        Topology::new(name, self.hosts, self.switches, self.links).map(|all| all.with_sites(sites))
    }
    pub(crate) fn finish(self, name: String) -> Result<Topology, TopoError> {
        Topology::new(name, self.hosts, self.switches, self.links)
    }
    pub(crate) fn regular_clos(self, name: String) -> Result<Topology, TopoError> {
        self.finish(name).map(Topology::with_arithmetic_routing)
    }
}

/// Returns an error if the value is 0.
pub(crate) fn at_least_one(field: &'static str, value: u32) -> Result<u32, TopoError> {
    if value == 0 {
        return Err(refuse(field, value, "must be at least 1"));
    }
    Ok(value)
}

/// Returns an error if sizes exceed the limits of a topology, before memory is allocated for them. `nodes` are
/// summed; each entry of `links` is a product.
pub(crate) fn within_limits(kind: &'static str, nodes: &[u32], links: &[&[u32]]) -> Result<(), TopoError> {
    use crate::graph::{MAX_LINKS, MAX_NODES};
    let product = |factors: &&[u32]| factors.iter().fold(1u64, |p, &f| p.saturating_mul(u64::from(f)));
    let nodes: u64 = nodes.iter().map(|&n| u64::from(n)).sum();
    let links = links.iter().map(product).fold(0u64, u64::saturating_add);
    let what = if nodes > u64::from(MAX_NODES) {
        format!("at least {nodes} hosts and switches; at most {MAX_NODES} are allowed")
    } else if links > MAX_LINKS as u64 {
        format!("at least {links} links; at most {MAX_LINKS} are allowed")
    } else {
        return Ok(());
    };
    Err(TopoError::Graph { topology: kind.into(), what })
}

/// Returns an error if the value is not a probability.
pub(crate) fn probability(field: &'static str, value: f64) -> Result<f64, TopoError> {
    if (0.0..=1.0).contains(&value) {
        Ok(value)
    } else {
        Err(refuse(field, value, "must be from 0.0 to 1.0"))
    }
}

/// Returns an error if the rate is 0.
pub(crate) fn positive(field: &'static str, rate: Rate) -> Result<Rate, TopoError> {
    if rate == Rate::ZERO { Err(refuse(field, rate, "must be above 0")) } else { Ok(rate) }
}

// Defaults of the generated kinds: the links of the UDMP evaluation (section V-A).
pub(crate) fn default_rate() -> Rate {
    Rate::from_gbps(100)
}
pub(crate) fn default_delay() -> Duration {
    Duration::from_us(1)
}
pub(crate) fn default_one() -> u32 {
    1
}
