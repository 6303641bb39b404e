//! Explicit paths, from which a source chooses if it determines whole routes.
//!
//! The paths of a pair of hosts are those of their *edges*, the switches to which they are attached. A [`PathSets`]
//! therefore holds one list for each ordered pair of edges, and none for pairs of hosts. Path `p` of a pair is the
//! packet's `PathId(p)`. Between hosts at one switch there is always exactly one path.

mod anchors;
mod config;
mod file;
mod k_shortest;
mod laps;
mod own;
mod routing_loops;
mod search;
mod shortest;

pub use config::{
    AllShortest, KShortest, LapsPathFile, OwnPathsConfig, PathFile, PathSetConfig, RoutingConfig,
    SourceRouting,
};
pub use file::parse_path_file;
pub use laps::parse_laps_paths;
pub use search::{Hop, LinkProfile, PathSets, RequestedPairs};

use search::PathSearch;

use crate::error::TopoError;
use crate::graph::Topology;

impl PathSets {
    /// Builds the paths of a topology as configured. Paths of files are relative to `base_dir`.
    pub fn build(
        config: &PathSetConfig,
        topology: &Topology,
        base_dir: &std::path::Path,
        wanted: RequestedPairs<'_>,
    ) -> Result<Self, TopoError> {
        let plan = PathSearch::new(topology, wanted)?;
        match config {
            PathSetConfig::Own(config) => own::build(config, plan),
            PathSetConfig::AllShortest(config) => shortest::build(config, plan),
            PathSetConfig::KShortest(config) => k_shortest::build(config, plan),
            PathSetConfig::File(config) => file::build(config, plan, base_dir),
            PathSetConfig::Laps(config) => laps::build(config, plan, base_dir),
        }
    }
}
