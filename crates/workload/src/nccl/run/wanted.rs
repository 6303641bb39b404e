//! Settings of executed collectives.

use serde::{Deserialize, Serialize};

use crate::collective::Operation;
use crate::nccl::algorithm::{Algorithm, Protocol};
use crate::nccl::fitted::Fitted;

/// Algorithm of NCCL for a collective.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NcclAlgorithm {
    /// The choice of NCCL's tuner for the size and the servers.
    #[default]
    Auto,
    /// Rings through all GPUs. A broadcast or reduction passes along them as a chain.
    Ring,
    /// Two binary trees of servers, each with half of the channels, and a chain inside each server.
    Tree,
    /// Switches of the scale-up network reduce (NVLink SHARP), on one server.
    Nvls,
    /// NVLS inside each server, and two trees of its heads between servers.
    NvlsTree,
    /// Gather or scatter in logarithmic steps with aggregated messages, for servers with one GPU.
    Pat,
    /// Sends and receives of all pairs, for an all-to-all.
    Direct,
}

/// Protocol of NCCL for a collective.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NcclProtocol {
    /// The choice of NCCL's tuner for the size and the servers.
    #[default]
    Auto,
    /// Low latency: a flag for each 4 bytes, so that links carry twice the bytes.
    Ll,
    /// Low latency with 120 bytes of data in 128.
    Ll128,
    /// Slots of a buffer with a barrier each.
    Simple,
}

impl NcclAlgorithm {
    /// Returns the name in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            NcclAlgorithm::Auto => "auto",
            NcclAlgorithm::Ring => "ring",
            NcclAlgorithm::Tree => "tree",
            NcclAlgorithm::Nvls => "nvls",
            NcclAlgorithm::NvlsTree => "nvls-tree",
            NcclAlgorithm::Pat => "pat",
            NcclAlgorithm::Direct => "direct",
        }
    }
    /// Returns the algorithm of the tuner's choice. `None` if switches of the network reduce (CollNet), which is not
    /// executed.
    pub const fn of(algorithm: Algorithm) -> Option<Self> {
        match algorithm {
            Algorithm::Tree => Some(NcclAlgorithm::Tree),
            Algorithm::Ring => Some(NcclAlgorithm::Ring),
            Algorithm::Nvls => Some(NcclAlgorithm::Nvls),
            Algorithm::NvlsTree => Some(NcclAlgorithm::NvlsTree),
            Algorithm::Pat => Some(NcclAlgorithm::Pat),
            Algorithm::CollNetDirect | Algorithm::CollNetChain => None,
        }
    }
    pub(super) const fn of_tuner(self) -> Option<Algorithm> {
        match self {
            NcclAlgorithm::Auto | NcclAlgorithm::Direct => None,
            NcclAlgorithm::Ring => Some(Algorithm::Ring),
            NcclAlgorithm::Tree => Some(Algorithm::Tree),
            NcclAlgorithm::Nvls => Some(Algorithm::Nvls),
            NcclAlgorithm::NvlsTree => Some(Algorithm::NvlsTree),
            NcclAlgorithm::Pat => Some(Algorithm::Pat),
        }
    }
    pub(super) const fn is_for_pairs(self) -> bool {
        matches!(self, NcclAlgorithm::Direct)
    }
}

impl NcclProtocol {
    /// Returns the name in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            NcclProtocol::Auto => "auto",
            NcclProtocol::Ll => "ll",
            NcclProtocol::Ll128 => "ll128",
            NcclProtocol::Simple => "simple",
        }
    }
    /// Returns the protocol of the tuner's choice.
    pub const fn of(protocol: Protocol) -> Self {
        match protocol {
            Protocol::Ll => NcclProtocol::Ll,
            Protocol::Ll128 => NcclProtocol::Ll128,
            Protocol::Simple => NcclProtocol::Simple,
        }
    }
    pub(super) const fn of_tuner(self) -> Option<Protocol> {
        match self {
            NcclProtocol::Auto => None,
            NcclProtocol::Ll => Some(Protocol::Ll),
            NcclProtocol::Ll128 => Some(Protocol::Ll128),
            NcclProtocol::Simple => Some(Protocol::Simple),
        }
    }
}

/// Settings of an executed collective.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Wanted {
    pub(crate) algorithm: NcclAlgorithm,
    pub(crate) protocol: NcclProtocol,
    pub(crate) channels: Option<u32>,
    pub(crate) qps: u32,
    pub(crate) pxn: Option<bool>,
    pub(crate) fitted: Fitted,
    /// Number of messages above which loops are merged.
    pub(crate) most_messages: u64,
}

impl Wanted {
    /// Returns the library's own choices.
    pub(crate) fn defaults(fitted: Fitted, most_messages: u64) -> Self {
        Wanted {
            algorithm: NcclAlgorithm::Auto,
            protocol: NcclProtocol::Auto,
            channels: None,
            qps: 1,
            pxn: None,
            fitted,
            most_messages,
        }
    }
}

/// Way in which a collective is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Ring,
    /// A chain along a ring, for a broadcast or a reduction.
    Chain,
    Tree,
    Nvls,
    NvlsTree,
    Pat,
    Direct,
}

impl Method {
    /// Returns the method of an algorithm. CollNet is never chosen, because the servers of a scenario do not have it.
    pub(crate) fn of(algorithm: Algorithm, operation: Operation) -> Self {
        match (algorithm, operation) {
            (Algorithm::Ring, Operation::Broadcast | Operation::Reduce) => Method::Chain,
            (Algorithm::Ring | Algorithm::CollNetDirect | Algorithm::CollNetChain, _) => Method::Ring,
            (Algorithm::Tree, _) => Method::Tree,
            (Algorithm::Nvls, _) => Method::Nvls,
            (Algorithm::NvlsTree, _) => Method::NvlsTree,
            (Algorithm::Pat, _) => Method::Pat,
        }
    }

    /// Returns true if each loop passes through many GPUs while the next one begins. Merged loops then are a stream.
    pub(super) const fn streams(self) -> bool {
        !matches!(self, Method::Ring | Method::Pat)
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Method::Ring | Method::Chain => "ring",
            Method::Tree => "tree",
            Method::Nvls => "nvls",
            Method::NvlsTree => "nvls-tree",
            Method::Pat => "pat",
            Method::Direct => "direct",
        }
    }

    /// Returns the name of the algorithm with that of the protocol.
    pub(crate) const fn label(self, protocol: Protocol) -> &'static str {
        let names = match self {
            Method::Ring | Method::Chain => ["ring/LL", "ring/LL128", "ring/Simple"],
            Method::Tree => ["tree/LL", "tree/LL128", "tree/Simple"],
            Method::Nvls => ["nvls/LL", "nvls/LL128", "nvls/Simple"],
            Method::NvlsTree => ["nvls-tree/LL", "nvls-tree/LL128", "nvls-tree/Simple"],
            Method::Pat => ["pat/LL", "pat/LL128", "pat/Simple"],
            Method::Direct => ["direct/LL", "direct/LL128", "direct/Simple"],
        };
        names[protocol as usize]
    }
}
