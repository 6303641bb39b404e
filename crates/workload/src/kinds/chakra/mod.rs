//! Execution traces of Chakra as a workload.

mod files;
mod groups;
mod play;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::ranks::{LARGER_TOPOLOGY, hosts_of_ranks};
use crate::collective::Algorithms;
use crate::error::WorkloadError;
use crate::sink::{Generate, NamedFile, Sink};

/// An execution trace of MLCommons Chakra (schema 0.0.4 or 1.0.0), a file a rank, as a graph of messages and computations.
///
/// A node begins when all it depends on is over. Sends and receives of a pair of ranks and tag belong together in the
/// order of their files; a send begins whether or not its receive has been reached, and is over when all is delivered. The
/// k-th collective of a process group is the k-th of each of its ranks; a rank's part begins when the rank reaches it, and
/// is over when all it sends and receives in it is delivered. The trace is a job; each of its collectives is one within it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Chakra {
    /// The folder of the trace, or the beginning PREFIX of its files PREFIX.0.et, PREFIX.1.et, ..., relative to the
    /// scenario.
    pub trace: String,
    /// A JSON file of the process groups the trace names, as ASTRA-sim has them: `{"name": [ranks], ...}`. Default: those that the
    /// trace lists itself, as PyTorch's do. A collective without a name is one of all ranks, and so is one of group "0" that
    /// nobody lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_groups: Option<String>,
    /// Sizes of the dimensions of ranks, that of neighbours first, for collectives that the trace narrows by `involved_dim`; their
    /// product is the number of ranks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dims: Vec<u32>,
    /// The host of each rank. Default: rank r is on host r.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<u32>,
    /// How collectives are done.
    #[serde(default)]
    pub algorithms: Algorithms,
    /// Operations a rank computes in a second, in units of 10^12, for computations of which the trace gives operations
    /// and no duration. Default: they take no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_tflops: Option<f64>,
}

impl Generate for Chakra {
    fn generate(&self, out: &mut Sink<'_>) -> Result<(), WorkloadError> {
        if let Some(peak) = self.peak_tflops.filter(|peak| !(*peak > 0.0 && peak.is_finite())) {
            return out.bad("peak_tflops", peak, "expected a number above 0");
        }
        let files = files::of_trace(out, &self.trace)?;
        let hosts = hosts_of_ranks(out, &self.hosts, files.len(), LARGER_TOPOLOGY)?;
        let groups = groups::Groups::new(out, self.process_groups.as_deref(), &self.dims, files.len())?;
        play::play(self, out, &files, &hosts, groups)
    }

    fn files(&mut self) -> Vec<NamedFile<'_>> {
        let groups = self.process_groups.as_mut().map(|file| ("process_groups", file));
        std::iter::once(("trace", &mut self.trace)).chain(groups).collect()
    }
}
