//! Execution traces of Chakra as a workload.

mod convert;
mod files;
mod groups;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::ranks::{LARGER_TOPOLOGY, hosts_of_ranks};
use crate::collective::Algorithms;
use crate::error::WorkloadError;
use crate::hosts::HostList;
use crate::sink::{Generate, NamedFile, WorkloadBuilder};

/// An execution trace of MLCommons Chakra (schema 0.0.4 or 1.0.0), with one file per rank, as a graph of
/// messages and computations.
///
/// A node begins when all its dependencies have ended. Sends and receives with the same pair of ranks and tag
/// match in the order of their files. A send begins even if its receive has not been reached, and ends when
/// all bytes are delivered. The k-th collective of a process group matches the k-th one of each of its ranks.
/// A rank's part of a collective begins when the rank reaches it, and ends when all its messages in both
/// directions are delivered. The trace is a job; each of its collectives is a job within it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Chakra {
    /// Folder of the trace, or the prefix PREFIX of its files PREFIX.0.et, PREFIX.1.et, ..., relative to the
    /// scenario.
    pub trace: String,
    /// JSON file of the process groups that the trace names, as in ASTRA-sim: `{"name": [ranks], ...}`.
    /// Default: the groups that the trace itself lists, as traces of PyTorch do. A collective without a group
    /// name is one of all ranks, and so is one of group "0" if no list has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_groups: Option<String>,
    /// Sizes of the dimensions of ranks, innermost first, for collectives that the trace restricts with
    /// `involved_dim`. Their product is the number of ranks. Default: none, and such collectives are an
    /// error.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dims: Vec<u32>,
    /// Host of each rank in order: a list of numbers, names and patterns, or a pattern such as
    /// "srv[0-3].gpu*". Default: rank r is on host r.
    #[serde(default, skip_serializing_if = "HostList::is_empty")]
    pub hosts: HostList,
    /// Algorithms of collectives.
    #[serde(default)]
    pub algorithms: Algorithms,
    /// Computing rate of a rank, 10^12 operations per second. It applies to computations for which the trace
    /// states operations but no duration. Default: they take no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_tflops: Option<f64>,
}

impl Generate for Chakra {
    fn generate(&self, out: &mut WorkloadBuilder<'_>) -> Result<(), WorkloadError> {
        if let Some(peak) = self.peak_tflops.filter(|peak| !(*peak > 0.0 && peak.is_finite())) {
            return out.field_error("peak_tflops", peak, "expected a number above 0");
        }
        let files = files::of_trace(out, &self.trace)?;
        let hosts = hosts_of_ranks(out, &self.hosts, files.len(), LARGER_TOPOLOGY)?;
        let groups = groups::Groups::new(out, self.process_groups.as_deref(), &self.dims, files.len())?;
        convert::play(self, out, &files, &hosts, groups)?;
        self.algorithms.note_ineffective(out);
        Ok(())
    }

    fn files(&mut self) -> Vec<NamedFile<'_>> {
        let groups = self.process_groups.as_mut().map(|file| ("process_groups", file));
        std::iter::once(("trace", &mut self.trace)).chain(groups).collect()
    }
}
