//! What a scenario says about who chooses routes.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What chooses the route of a packet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum RoutingConfig {
    /// Switches choose among the shortest ways by a hash; a path is what the source puts into that hash (ECMP).
    #[default]
    Ecmp,
    /// The source chooses among explicit paths, every hop of them; acknowledgements go back over the same links. A path
    /// with a dead link loses what takes it, and is reported dead to the schemes after `switch.reroute_after`.
    Source(SourceRouting),
    /// The switch of the sender chooses among explicit paths, by `switch.forwarding`: "letflow", "conga" or "conweave".
    /// Switches beyond follow what it has chosen; what these do not balance takes a shortest way, by a hash. Paths with a
    /// dead link are left out after `switch.reroute_after`.
    SenderSwitch(SourceRouting),
    /// Each switch chooses among its next hops, as with "ecmp", but those that the explicit paths of the packet's two hosts
    /// take there, detours included; a next hop that several of them take counts once. By `switch.forwarding` "ecmp", "rps"
    /// or "letflow". So the study of LAPS routes ECMP, LetFlow and PLB. Paths with a dead link are left out after
    /// `switch.reroute_after`.
    NextHops(SourceRouting),
}

impl RoutingConfig {
    /// The explicit paths, where there are any.
    pub fn explicit(&self) -> Option<&SourceRouting> {
        match self {
            RoutingConfig::Ecmp => None,
            RoutingConfig::Source(source)
            | RoutingConfig::SenderSwitch(source)
            | RoutingConfig::NextHops(source) => Some(source),
        }
    }

    /// The same, to change them.
    pub fn explicit_mut(&mut self) -> Option<&mut SourceRouting> {
        match self {
            RoutingConfig::Ecmp => None,
            RoutingConfig::Source(source)
            | RoutingConfig::SenderSwitch(source)
            | RoutingConfig::NextHops(source) => Some(source),
        }
    }
}

/// Explicit paths, every hop of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SourceRouting {
    /// Which paths a pair of hosts has. Default: those the topology means sources to use.
    pub paths: PathSetConfig,
}

/// Which paths a pair of hosts has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum PathSetConfig {
    /// Those the topology means its sources to use: in a Dragonfly and over rails the minimal path and the detours that
    /// LAPS uses (IEEE ToN 2026), in a torus and a full mesh those of its dimensions, elsewhere all shortest ones.
    Own(OwnPathsConfig),
    /// All paths of the least number of hops; parallel links count.
    AllShortest(AllShortest),
    /// The `k` paths of fewest hops that visit no switch twice: for irregular networks.
    /// Parallel links count once.
    KShortest(KShortest),
    /// Paths from a file; see `docs/explicit-paths.md`.
    File(PathFile),
    /// Those of LAPS's simulator, its `laps-PIT.txt`, with a topology of `kind = "laps"`; see `docs/explicit-paths.md`.
    Laps(LapsPathFile),
}

impl PathSetConfig {
    /// The file they are read from, if they are.
    pub fn file(&mut self) -> Option<&mut PathBuf> {
        match self {
            PathSetConfig::File(file) => Some(&mut file.path),
            PathSetConfig::Laps(file) => Some(&mut file.path),
            _ => None,
        }
    }
    /// Whether they are read from a file.
    pub fn is_file(&self) -> bool {
        matches!(self, PathSetConfig::File(_) | PathSetConfig::Laps(_))
    }
}

impl Default for PathSetConfig {
    fn default() -> Self {
        PathSetConfig::Own(OwnPathsConfig::default())
    }
}

/// The paths the topology means its sources to use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OwnPathsConfig {
    /// Paths of a pair at most, 1 to 65535; of more, evenly spaced ones are taken. Default 256.
    pub max_paths: u32,
}

/// All paths of the least number of hops.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AllShortest {
    /// Paths of a pair at most, 1 to 65535; of more, evenly spaced ones are taken. Default 256.
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

/// The `k` paths of fewest hops that visit no switch twice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct KShortest {
    /// Paths of a pair, 1 to 256; fewer where there are no more. Default 8, as in Jellyfish (NSDI 2012, section 4).
    pub k: u32,
    /// Hops that a path may have beyond the shortest one, 0 to 62. Default 4.
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
