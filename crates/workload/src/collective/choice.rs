//! Choice of the algorithm for each collective of a trace.

use pathweave_units::Bytes;
use serde::{Deserialize, Serialize};

use super::library::Library;
use super::plan::{Operation, Plan};
use crate::algorithm::Algorithm;
use crate::nccl::Gpu;
use crate::sink::WorkloadBuilder;

/// Algorithms of the collectives of a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Algorithms {
    /// Library whose collectives run.
    #[serde(default, skip_serializing_if = "Library::is_default")]
    pub library: Library,
    /// Model of GPU, for library = "nccl". Default: that of the servers' model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Gpu>,
    /// Factor of the latencies of NCCL's protocol Simple. Default: the value fitted to the GPU's generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<f64>,
    /// Part of the rate of links that NCCL keeps busy. Default: the value fitted to the GPU's generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<f64>,
    /// Algorithm of all-reduces.
    #[serde(default = "ring")]
    pub all_reduce: Algorithm,
    /// Algorithm of reduce-scatters. `halving-doubling` needs a power of two of ranks.
    #[serde(default = "ring")]
    pub reduce_scatter: Algorithm,
    /// Algorithm of all-gathers. `halving-doubling` needs a power of two of ranks.
    #[serde(default = "ring")]
    pub all_gather: Algorithm,
    /// Algorithm of all-to-alls.
    #[serde(default = "direct")]
    pub all_to_all: Algorithm,
    /// Algorithm of broadcasts and reductions.
    #[serde(default = "ring")]
    pub broadcast: Algorithm,
    /// Number of consecutive ranks that form a server, for the hierarchical all-reduce (default 8, the GPUs
    /// of an HGX board).
    #[serde(default = "eight")]
    pub local_size: u32,
    /// Largest piece that double binary trees and chains send, bytes (default 512 KiB, as in NCCL).
    #[serde(default = "chunk")]
    pub chunk: Bytes,
}

fn ring() -> Algorithm {
    Algorithm::Ring
}
fn direct() -> Algorithm {
    Algorithm::Direct
}
pub(crate) fn eight() -> u32 {
    8
}
pub(crate) fn chunk() -> Bytes {
    Bytes::new(512 << 10)
}

impl Default for Algorithms {
    fn default() -> Self {
        Algorithms {
            library: Library::Blocks,
            gpu: None,
            latency: None,
            bandwidth: None,
            all_reduce: ring(),
            reduce_scatter: ring(),
            all_gather: ring(),
            all_to_all: direct(),
            broadcast: ring(),
            local_size: eight(),
            chunk: chunk(),
        }
    }
}

impl Algorithms {
    /// Returns the plan of a collective of two ranks or more. If a trace's size is too small to give each
    /// rank a part, the plan's size is one byte for each rank.
    pub(crate) fn plan(&self, operation: Operation, ranks: usize, bytes: u64) -> Plan {
        let algorithm = match operation {
            Operation::AllReduce => self.all_reduce,
            Operation::ReduceScatter => self.reduce_scatter,
            Operation::AllGather => self.all_gather,
            Operation::AllToAll => self.all_to_all,
            Operation::Broadcast | Operation::Reduce => self.broadcast,
        };
        let least = ranks.max(2) as u64;
        Plan {
            operation,
            algorithm,
            ranks,
            size: bytes.max(least),
            chunk: self.chunk.get(),
            ranks_per_server: self.local_size as usize,
        }
    }

    /// Notes the fields that differ from their defaults and that no collective of the workload uses.
    pub(crate) fn note_ineffective(&self, out: &mut WorkloadBuilder<'_>) {
        let usual = Algorithms::default();
        let nothing = !out.uses_algorithm(|_, _| true);
        let of_library = [
            ("library", self.library != usual.library),
            ("gpu", self.gpu.is_some()),
            ("latency", self.latency.is_some()),
            ("bandwidth", self.bandwidth.is_some()),
        ];
        for (field, _) in of_library.into_iter().filter(|(_, is_set)| nothing && *is_set) {
            out.note_ineffective(
                &format!("algorithms.{field}"),
                "nothing is a collective of two ranks or more",
            );
        }
        for (field, own, usual, kinds) in [
            ("all_reduce", self.all_reduce, usual.all_reduce, &["all-reduce"][..]),
            ("reduce_scatter", self.reduce_scatter, usual.reduce_scatter, &["reduce-scatter"]),
            ("all_gather", self.all_gather, usual.all_gather, &["all-gather"]),
            ("all_to_all", self.all_to_all, usual.all_to_all, &["all-to-all"]),
            ("broadcast", self.broadcast, usual.broadcast, &["broadcast", "reduce"]),
        ] {
            if own != usual && !out.uses_algorithm(|kind, _| kinds.contains(&kind)) {
                let why =
                    format!("nothing is {} {} of two ranks or more", article(kinds[0]), kinds.join(" or "));
                out.note_ineffective(&format!("algorithms.{field}"), &why);
            }
        }
        note_ineffective_pieces(out, "algorithms.", self.local_size, self.chunk);
    }
}

fn article(kind: &str) -> &'static str {
    if kind.starts_with('a') { "an" } else { "a" }
}

/// Notes sizes that differ from their defaults and that no algorithm of the workload uses. `table` is the table of
/// the fields, with a point behind it.
pub(crate) fn note_ineffective_pieces(
    out: &mut WorkloadBuilder<'_>,
    table: &str,
    local_size: u32,
    piece: Bytes,
) {
    let cuts = |kind: &str, algorithm: &str| {
        let is_chain = algorithm == Algorithm::Ring.name() && ["broadcast", "reduce"].contains(&kind);
        is_chain || algorithm == Algorithm::DoubleBinaryTree.name()
    };
    if piece != chunk() && !out.uses_algorithm(cuts) {
        out.note_ineffective(&format!("{table}chunk"), "nothing is a double binary tree or a chain");
    }
    let is_hierarchical = |_: &str, algorithm: &str| algorithm == Algorithm::Hierarchical.name();
    if local_size != eight() && !out.uses_algorithm(is_hierarchical) {
        out.note_ineffective(&format!("{table}local_size"), "nothing is a hierarchical all-reduce");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_size_can_be_cut() {
        use Algorithm::*;
        for all_reduce in [Ring, DoubleBinaryTree, HalvingDoubling, Hierarchical] {
            let algorithms = Algorithms { all_reduce, local_size: 3, ..Algorithms::default() };
            for bytes in [0, 1, 7, 1 << 40] {
                let plan = algorithms.plan(Operation::AllReduce, 6, bytes);
                assert_eq!(plan.check(), Ok(()), "{all_reduce:?}, {bytes}");
            }
        }
    }
}
