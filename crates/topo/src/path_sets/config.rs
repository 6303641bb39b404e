//! Configuration of routing: the choice of routes, and explicit paths.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Choice of the route of a packet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum RoutingConfig {
    /// Switches choose among shortest routes by a hash of header fields. A path is a value that the source sets in
    /// these fields (ECMP).
    #[default]
    Ecmp,
    /// The source chooses among explicit paths and so determines every hop. Acknowledgements return over the same
    /// links. A path with a link that is down loses its packets, and is reported as down to the schemes after
    /// `switch.reroute_after`.
    Source(SourceRouting),
    /// The sender's switch chooses among explicit paths, according to `switch.forwarding`: "letflow", "conga" or
    /// "conweave". The other switches follow its choice. Packets that these methods do not balance take a shortest
    /// path, selected by a hash. Paths with a link that is down are excluded after `switch.reroute_after`.
    SenderSwitch(SourceRouting),
    /// Each switch chooses among next hops, as with "ecmp", but from those that the explicit paths of the packet's
    /// two hosts take there, detours included. A next hop counts once even if several paths take it.
    /// `switch.forwarding` may be "ecmp", "rps" or "letflow". The study of LAPS routes ECMP, LetFlow and PLB in this
    /// way. Paths with a link that is down are excluded after `switch.reroute_after`.
    NextHops(SourceRouting),
}

impl RoutingConfig {
    /// Returns the explicit paths, if there are any.
    pub fn explicit(&self) -> Option<&SourceRouting> {
        match self {
            RoutingConfig::Ecmp => None,
            RoutingConfig::Source(source)
            | RoutingConfig::SenderSwitch(source)
            | RoutingConfig::NextHops(source) => Some(source),
        }
    }

    /// Returns the explicit paths for modification, if there are any.
    pub fn explicit_mut(&mut self) -> Option<&mut SourceRouting> {
        match self {
            RoutingConfig::Ecmp => None,
            RoutingConfig::Source(source)
            | RoutingConfig::SenderSwitch(source)
            | RoutingConfig::NextHops(source) => Some(source),
        }
    }
}

/// Explicit paths, which determine every hop.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SourceRouting {
    /// Paths of each pair of hosts. Default: the paths that the topology provides for sources.
    pub paths: PathSetConfig,
}

/// Paths of each pair of hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum PathSetConfig {
    /// The paths that the topology provides for its sources. In a Dragonfly and in rail networks these are the
    /// minimal path and the detours that LAPS uses (IEEE ToN 2026). In a torus and a full mesh they follow its
    /// dimensions. In other topologies they are all shortest paths.
    Own(OwnPathsConfig),
    /// All paths with the fewest hops. Parallel links count as different paths.
    AllShortest(AllShortest),
    /// The `k` paths with the fewest hops that visit no switch twice, for irregular networks. Parallel links count
    /// once.
    KShortest(KShortest),
    /// Paths from a file; see `docs/explicit-paths.md`.
    File(PathFile),
    /// Paths of LAPS's simulator, from its `laps-PIT.txt`, with a topology of `kind = "laps"`; see
    /// `docs/explicit-paths.md`.
    Laps(LapsPathFile),
}

impl PathSetConfig {
    /// Returns the file that the paths are read from, if there is one.
    pub fn file(&mut self) -> Option<&mut PathBuf> {
        match self {
            PathSetConfig::File(file) => Some(&mut file.path),
            PathSetConfig::Laps(file) => Some(&mut file.path),
            _ => None,
        }
    }
    /// Returns true if the paths are read from a file.
    pub fn is_file(&self) -> bool {
        matches!(self, PathSetConfig::File(_) | PathSetConfig::Laps(_))
    }
}

impl Default for PathSetConfig {
    fn default() -> Self {
        PathSetConfig::Own(OwnPathsConfig::default())
    }
}

/// The paths that the topology provides for sources.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OwnPathsConfig {
    /// Largest number of paths of a pair, 1 to 65535. If there are more, evenly spaced ones are selected. Default
    /// 256.
    pub max_paths: u32,
}

/// All paths with the fewest hops.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AllShortest {
    /// Largest number of paths of a pair, 1 to 65535. If there are more, evenly spaced ones are selected. Default
    /// 256.
    pub max_paths: u32,
}

impl Default for OwnPathsConfig {
    fn default() -> Self {
        OwnPathsConfig { max_paths: 256 }
    }
}

impl Default for AllShortest {
    fn default() -> Self {
        AllShortest { max_paths: 256 }
    }
}

/// The `k` paths with the fewest hops that visit no switch twice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct KShortest {
    /// Number of paths of a pair, 1 to 256; fewer if there are no more. Default 8, as in Jellyfish (NSDI 2012,
    /// section 4).
    pub k: u32,
    /// Largest number of hops that a path may have beyond the shortest one, 0 to 62. Default 4.
    pub max_extra_hops: u32,
}

impl Default for KShortest {
    fn default() -> Self {
        KShortest { k: 8, max_extra_hops: 4 }
    }
}

/// Paths of LAPS's simulator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LapsPathFile {
    /// The file, relative to the scenario file.
    pub path: PathBuf,
}

/// Paths from a file; see `docs/explicit-paths.md`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathFile {
    /// The file, relative to the scenario file.
    pub path: PathBuf,
}
