//! Workload files of SimAI as a workload.

mod builtin;
mod count;
mod fold;
mod layout;
mod order;
mod play;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::ranks::hosts_of_ranks;
use crate::collective::Algorithms;
use crate::error::{FileError, WorkloadError};
use crate::files::{Groups, Policy, SimAiFile, parse_simai};
use crate::hosts::HostList;
use crate::sink::{Generate, NamedFile, WorkloadBuilder};

pub use self::builtin::{BuiltinSimAi, builtin_simai};
pub(super) use self::layout::GroupLayout;

/// Training as SimAI and ASTRA-sim 1.0 describe it: layers with computations and collectives among tensor-,
/// expert- and data-parallel groups. Each iteration is a job.
///
/// The policy of the file determines the order in which every GPU processes the layers, and which steps wait
/// for which collective, as in ASTRA-sim. Collectives of weight gradients overlap later steps. The iteration
/// ends when all of them have ended.
///
/// GPU = tensor rank + TP x (data rank + DP x stage); an expert-parallel group consists of EP consecutive
/// data ranks. A microbatch begins with a layer "embedding_layer". With several stages, a microbatch begins
/// at a stage once the previous stage has sent its activations, and goes backward once the next stage has
/// sent its gradients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SimAi {
    /// Workload file, relative to the scenario, or the name of a built-in one: "moe-9216gpu".
    pub file: String,
    /// Number of GPUs, a multiple of TP x PP. It determines the number of data-parallel replicas. Default:
    /// the number in the file, otherwise all hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<u32>,
    /// Number of GPUs in a tensor-parallel or model-parallel group. Default: the number in the file. The
    /// sizes of collectives are those of the file, whatever the groups are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tp: Option<u32>,
    /// Number of GPUs in an expert-parallel group; it must divide the number of replicas. Default: the number
    /// in the file, otherwise 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ep: Option<u32>,
    /// Number of pipeline stages. Default: the number in the file, otherwise 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pp: Option<u32>,
    /// Number of microbatches, at most that of the file. Default: all of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub microbatches: Option<u32>,
    /// Host of each GPU in order: a list of numbers, names and patterns, or a pattern such as "srv[0-3].gpu*".
    /// Default: GPU g is on host g.
    #[serde(default, skip_serializing_if = "HostList::is_empty")]
    pub hosts: HostList,
    /// Algorithms of collectives.
    #[serde(default)]
    pub algorithms: Algorithms,
    /// Factor on all sizes and durations, above 0 and at most 1, for quick runs (default 1). The ratio of
    /// computation to communication stays the same; the ratio to latency does not.
    #[serde(default = "whole")]
    pub scale: f64,
    /// Number of iterations, one after another (default 1).
    #[serde(default = "one")]
    pub iterations: u32,
}

/// Remedy for a workload whose number of GPUs can be reduced.
const FEWER_GPUS: &str = "expected a `topology` with as many hosts, or fewer `gpus`";

fn one() -> u32 {
    1
}
fn whole() -> f64 {
    1.0
}

impl Generate for SimAi {
    fn generate(&self, out: &mut WorkloadBuilder<'_>) -> Result<(), WorkloadError> {
        self.check(out)?;
        let file = if builtin::is_name(&self.file) {
            parse_simai(builtin::text(&self.file)?, &self.file)?
        } else {
            parse_simai(&out.read(&self.file)?, &self.file)?
        };
        for note in &file.notes {
            out.note(format_args!("{}: {note}", self.file));
        }
        let layout = self.layout(out, &file)?;
        self.play(out, &file, &layout)?;
        self.algorithms.note_ineffective(out);
        Ok(())
    }

    fn files(&mut self) -> Vec<NamedFile<'_>> {
        if builtin::is_name(&self.file) { Vec::new() } else { vec![("file", &mut self.file)] }
    }
}

/// Declares the workload that `file` returns for the layout. `config` must state all groups and GPUs itself.
pub(super) fn play_file(
    config: &SimAi,
    out: &mut WorkloadBuilder<'_>,
    file: impl FnOnce(GroupLayout) -> SimAiFile,
) -> Result<(), WorkloadError> {
    let layout = layout_of(config, out)?;
    config.play(out, &file(layout), &layout)
}

/// Returns the sizes of the groups of a workload without a file. `config` must state all groups and GPUs itself.
pub(super) fn layout_of(config: &SimAi, out: &WorkloadBuilder<'_>) -> Result<GroupLayout, WorkloadError> {
    config.check(out)?;
    config.layout(out, &SimAiFile { policy: Policy::WeightsFirst, ..SimAiFile::default() })
}

impl SimAi {
    fn check(&self, out: &WorkloadBuilder<'_>) -> Result<(), WorkloadError> {
        if self.iterations == 0 {
            return out.field_error("iterations", 0, "expected 1 or more");
        }
        if !(self.scale > 0.0 && self.scale <= 1.0) {
            return out.field_error("scale", self.scale, "expected a factor above 0 and at most 1");
        }
        Ok(())
    }

    fn play(
        &self,
        out: &mut WorkloadBuilder<'_>,
        file: &SimAiFile,
        layout: &GroupLayout,
    ) -> Result<(), WorkloadError> {
        let hosts = hosts_of_ranks(out, &self.hosts, layout.gpus(), FEWER_GPUS)?;
        let batches = self.batches(out, file, layout)?;
        play::play(self, out, file, layout, &hosts, &batches)
    }

    /// Returns the sizes of the groups.
    fn layout(&self, out: &WorkloadBuilder<'_>, file: &SimAiFile) -> Result<GroupLayout, WorkloadError> {
        for (field, value) in [("tp", self.tp), ("ep", self.ep), ("pp", self.pp), ("gpus", self.gpus)] {
            if value == Some(0) {
                return out.field_error(field, 0, "expected 1 or more");
            }
        }
        let gpus = self.gpus.or(file.all_gpus).unwrap_or(out.env.hosts);
        let groups = file.policy.groups();
        if groups != Groups::Transformer {
            let given = [("ep", self.ep), ("pp", self.pp)]
                .into_iter()
                .find(|(_, value)| value.is_some_and(|v| v > 1));
            if let Some((field, Some(value))) = given {
                return out.field_error(
                    field,
                    value,
                    format!("expected 1: the file is {}", file.policy.name()),
                );
            }
        }
        let (ep, pp) = (self.ep.or(file.ep).unwrap_or(1), self.pp.or(file.pp).unwrap_or(1));
        let tp = self.model_parallel(out, file, gpus)?;
        let each = tp.saturating_mul(pp);
        if !gpus.is_multiple_of(each) {
            let near = gpus.checked_div(each).unwrap_or(1).max(1).saturating_mul(each);
            let allowed = format!(
                "expected a multiple of {each}, which is TP {tp} x PP {pp}, such as {near}; these may be set, too"
            );
            return out.field_error("gpus", gpus, allowed);
        }
        let dp = gpus / each;
        if !dp.is_multiple_of(ep) {
            let allowed =
                format!("expected a number that divides the {dp} data-parallel replicas of {gpus} GPUs");
            return out.field_error("ep", ep, allowed);
        }
        let (tp, dp) = if groups == Groups::Outer { (dp, tp) } else { (tp, dp) };
        Ok(GroupLayout { tp: tp as usize, ep: ep as usize, dp: dp as usize, pp: pp as usize })
    }

    /// Returns the number of GPUs in a model-parallel group.
    fn model_parallel(
        &self,
        out: &WorkloadBuilder<'_>,
        file: &SimAiFile,
        gpus: u32,
    ) -> Result<u32, WorkloadError> {
        let fixed = match file.policy.groups() {
            Groups::Data => 1,
            Groups::Model => gpus,
            Groups::Inner if !file.has_groups() => 1,
            Groups::Inner | Groups::Outer | Groups::Transformer => {
                return match self.tp.or(file.tp) {
                    Some(tp) => Ok(tp),
                    None => {
                        let what = "it does not say how many GPUs a model-parallel group has (model_parallel_NPU_group); set `tp`";
                        Err(FileError::at(&self.file, 1, what).into())
                    }
                };
            }
        };
        match self.tp {
            Some(tp) if tp != fixed => {
                out.field_error("tp", tp, format!("expected {fixed}: the file is {}", file.policy.name()))
            }
            _ => Ok(fixed),
        }
    }

    /// Returns the layers before the first microbatch, and then those of each microbatch.
    fn batches(
        &self,
        out: &WorkloadBuilder<'_>,
        file: &SimAiFile,
        layout: &GroupLayout,
    ) -> Result<Vec<std::ops::Range<usize>>, WorkloadError> {
        let mut starts: Vec<usize> =
            (0..file.layers.len()).filter(|&i| file.layers[i].name == "embedding_layer").collect();
        let found = starts.len();
        // Older files do not mark microbatches.
        if found == 0 || file.ga.is_some_and(|ga| found != ga as usize) {
            if layout.pp > 1 || self.microbatches.is_some() {
                let ga = file.ga.map_or(String::new(), |ga| format!(" where ga = {ga}"));
                let what = format!(
                    "{found} layers are named \"embedding_layer\", which begins a microbatch{ga}; without \
                     microbatches to tell apart, pp must be 1 and microbatches left out"
                );
                return Err(FileError::at(&self.file, 1, what).into());
            }
            starts = vec![0];
        }
        let wanted = self.microbatches.map_or(starts.len(), |wanted| wanted as usize);
        if wanted == 0 || wanted > starts.len() {
            let allowed = format!("expected 1 to {}, those of the file", starts.len());
            return out.field_error("microbatches", wanted, allowed);
        }
        starts.push(file.layers.len());
        let before = 0..starts[0];
        Ok(std::iter::once(before).chain(starts.windows(2).take(wanted).map(|w| w[0]..w[1])).collect())
    }
}
