//! Topologies, their files, routing and path sets.
//!
//! A [`TopologyConfig`] (from a scenario) builds a [`Topology`]. [`Routing`] returns the ports that lead to a host.
//! [`PathFinder`] counts paths and gives ideal bounds. [`topologies`] and [`presets`] list the available kinds.
//! `build/mod.rs` describes how to add a kind of topology.
//!
//! ```
//! use pathweave_topo::{Build, FatTree, PathFinder, Routing};
//! use pathweave_units::HostId;
//!
//! let topology = FatTree::k_ary(4).build(".".as_ref())?;
//! let routing = Routing::all_links_up(&topology);
//! let tor = topology.node_by_name("tor0")?;
//! // Port 0 and 1 lead to its own hosts, 2 and 3 to the aggregation switches.
//! assert_eq!(routing.next_hops(tor, HostId(15)).iter().collect::<Vec<_>>(), [2, 3]);
//!
//! let pair = PathFinder::new(&topology, &routing).pair(HostId(0), HostId(15), 1_500).unwrap();
//! assert_eq!((pair.hops, pair.paths), (6, 4));
//! # Ok::<(), pathweave_topo::TopoError>(())
//! ```

mod alike;
mod bfs;
mod build;
mod cables;
mod capacity;
mod directions;
mod error;
mod formats;
mod graph;
mod host_ports;
mod ids;
mod import;
mod info;
mod known_regular;
mod link_settings;
mod max_flow;
mod names;
mod own_paths;
mod partition_file;
mod path_sets;
mod paths;
mod read;
mod routing;
mod scale_up;
mod scale_up_ports;
mod servers;
mod sites;
mod symmetry;
mod write;

pub use build::*;
pub use cables::Cable;
pub use capacity::{HostRates, SwitchRatio, TierCapacity};
pub use directions::{Direction, Ways};
pub use error::{Location, TopoError};
pub use formats::{
    TOPOLOGY_FORMATS, TopologyFormat, WriteTopology, is_topology_file, topology_format_of_header,
};
pub use graph::{
    HostAttachment, Link, LinkId, MAX_HOST_PORTS, MAX_LINKS, MAX_NODES, MAX_PORTS, NodeId, PortRef, Switch,
    Topology,
};
pub use host_ports::{leading_ports, rate_of_ports, receiving_rate};
pub use info::{FieldInfo, Preset, TopologyInfo, presets, topologies};
pub use link_settings::{LinkFor, LinkForError};
pub use max_flow::max_flow;
pub use partition_file::{parse_partition, read_partition};
pub use path_sets::{
    AllShortest, Hop, KShortest, LapsPathFile, LinkProfile, OwnPathsConfig, PathFile, PathSetConfig,
    PathSets, RequestedPairs, RoutingConfig, SourceRouting, parse_laps_paths, parse_path_file,
};
pub use paths::{PairPaths, PathDistribution, PathFinder, PathGroup};
pub use read::read_text_file;
pub use routing::{Arithmetic, NextHops, Routing};
pub use scale_up::{
    LinkShare, NamedLink, NamedNode, PartState, ScaleUp, ScaleUpLink, ScaleUpPart, ScaleUpPartKind,
};
pub use scale_up_ports::scale_up_ports;
pub use servers::Servers;
pub use sites::Sites;
pub use symmetry::Automorphism;
