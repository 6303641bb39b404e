//! Topologies, their files, routing and path sets.
//!
//! A [`TopologyConfig`] (from a scenario) builds a [`Topology`]; [`Routing`] answers which ports lead to a
//! host; [`PathFinder`] counts paths and gives ideal bounds. [`topologies`] and [`presets`] list what there is.
//! How to add a kind of topology is told in `build/mod.rs`.

mod bfs;
mod build;
mod capacity;
mod error;
mod graph;
mod import;
mod info;
mod names;
mod paths;
mod read;
mod routing;

pub use build::*;
pub use capacity::TierCapacity;
pub use error::{Location, TopoError};
pub use graph::{Link, LinkId, MAX_LINKS, MAX_NODES, MAX_PORTS, NodeId, PortRef, Switch, Topology};
pub use info::{FieldInfo, Preset, TopologyInfo, presets, topologies};
pub use paths::{PairPaths, PathDistribution, PathFinder, PathGroup};
pub use routing::{Arithmetic, NextHops, Routing};
