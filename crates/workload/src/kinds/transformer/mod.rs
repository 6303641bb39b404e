//! Training of a transformer, dense or with experts, from a few parameters.

mod axes;
mod bound;
mod fold;
mod gpu;
mod kept;
mod layers;
mod memory;
mod models;
mod names;
mod outlook;
mod parallel;
mod plan;
mod schedule;
mod sizes;
mod staged;
#[cfg(test)]
mod staged_tests;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use self::gpu::{GpuData, GpuModel, Precision};
pub use self::models::FeedForward;
pub use self::names::{ModelChoice, ModelFile, TransformerModel};
pub use self::schedule::PipelineSchedule;

use self::plan::LayerBuilder;
use super::simai::play_file;
use crate::architecture::{Architecture, Attention, Embeddings, Experts, nearest_divisor, parse_config_json};
use crate::collective::Algorithms;
use crate::error::WorkloadError;
use crate::hosts::HostList;
use crate::sink::{Generate, NamedFile, WorkloadBuilder};

/// Values of a number that no model gives.
const NUMBER_OR_MODEL: &str =
    "a number of 1 or more, or model = \"llama-3-8b\" or model = { file = \"config.json\" }, which have it";

/// Training of a transformer with tensor, context, expert, data and pipeline parallelism. Each iteration is a job.
///
/// A published model, its `config.json` or the fields give the model's parameters. Each layer has an attention and a
/// feed-forward part. A tensor-parallel group all-gathers the input of each part and reduce-scatters its output.
/// Experts receive their tokens by an all-to-all, and return them by another. A GPU sends its part of the activations
/// to its counterpart in the next stage. The gradients of a layer's weights are reduced among data-parallel ranks
/// while later work still computes. Experts are equally popular.
///
/// Without `gpu`, `schedule` and the other fields of stages, all stages have the same layers; embedding and logits are
/// divided evenly among them, without the sum of a tied matrix's gradients over both ends; all microbatches go forward, then all backward; and the number of a GPU is
/// (stage x DP + data rank) x TP + tensor rank. With one of these fields, each stage has layers and an order of its
/// own: embeddings are at the first, logits at the last stage. A matrix that both use has a copy at either, and its
/// gradients are all-reduced between them at the end of the iteration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Transformer {
    /// Model whose numbers are the defaults of `layers` to `feed_forward`: the name of a published one, or its file,
    /// `{ file = "config.json" }`. Without it these fields are required, except `kv_heads`, `head_dim`, `experts`,
    /// `top_k` and `feed_forward`. A file needs `sequence`, too, and a `model_type` of llama, llama4_text, mistral,
    /// mixtral, qwen2, qwen2_moe, qwen3, qwen3_moe, gemma, gemma2, gemma3_text, gpt_oss, glm4_moe, minimax_m2, nemotron,
    /// deepseek_v2, deepseek_v3 or kimi_k2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelChoice>,
    /// Number of layers. Default: that of `model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layers: Option<u32>,
    /// Size of the vector of a token, in values. Default: that of `model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden: Option<u32>,
    /// Size of the vector inside the feed-forward part, or inside an expert, in values. Default: that of
    /// `model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feed_forward_hidden: Option<u32>,
    /// Number of attention heads. Default: that of `model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heads: Option<u32>,
    /// Number of heads of keys and values. Default: that of `model`, otherwise `heads`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_heads: Option<u32>,
    /// Values of an attention head. Default: that of `model`, otherwise `hidden` / `heads`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_dim: Option<u32>,
    /// Number of tokens in the vocabulary. Default: that of `model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vocabulary: Option<u32>,
    /// Number of tokens in a sequence. Default: that of `model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u32>,
    /// Number of experts in each layer. Default: that of `model`, otherwise 1, a dense model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experts: Option<u32>,
    /// Number of experts to which a token is sent. Default: that of `model`, otherwise 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_k: Option<u32>,
    /// Matrices of the feed-forward part. Default: those of `model`, otherwise gated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feed_forward: Option<FeedForward>,
    /// Number of sequences in a microbatch (default 1).
    #[serde(default = "one")]
    pub micro_batch: u32,
    /// Number of microbatches in an iteration, for each replica (default 1).
    #[serde(default = "one")]
    pub microbatches: u32,
    /// Number of sequences in an iteration, over all replicas, in place of `microbatches`: a multiple of the replicas
    /// times `micro_batch`. Jobs with other parallelism then do the same work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub global_batch: Option<u32>,
    /// Number of GPUs, a multiple of TP x PP. It determines the number of data-parallel replicas. Default:
    /// all hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<u32>,
    /// Number of GPUs in a tensor-parallel group (default 1).
    #[serde(default = "one")]
    pub tp: u32,
    /// Number of GPUs in an expert-parallel group; it must divide the number of replicas and the number of
    /// experts (default 1).
    #[serde(default = "one")]
    pub ep: u32,
    /// Number of pipeline stages (default 1). Without fields of stages it must divide the number of layers.
    #[serde(default = "one")]
    pub pp: u32,
    /// Fields of stages: number of GPUs that share each sequence, for context parallelism (default 1).
    #[serde(default = "one")]
    pub cp: u32,
    /// Fields of stages: way in which these GPUs get the keys and values of other tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cp_kind: Option<ContextParallelism>,
    /// Fields of stages: number of GPUs that share the matrices of an expert (default: `tp`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etp: Option<u32>,
    /// Fields of stages: number of chunks of layers of a stage, for `schedule = "interleaved"` (default 1).
    #[serde(default = "one")]
    pub vp: u32,
    /// Fields of stages: order in which a stage processes microbatches. Default: "interleaved" if `vp` is above 1,
    /// "1f1b" if other fields of stages are given, otherwise "gpipe".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<PipelineSchedule>,
    /// Fields of stages: number of layers of each chunk, in the order of the model: PP x VP numbers. Default: as equal
    /// as possible, with fewer at both ends of the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stage_layers: Vec<u32>,
    /// Fields of stages: order in which GPUs are numbered along the axes, fastest first (default "tp-cp-ep-dp-pp").
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
    /// Fields of stages: activations that the backward pass computes again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recompute: Option<Recomputation>,
    /// Fields of stages: GPU, whose data sheet gives times of computations, and its memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuModel>,
    /// Precision of matrix products of `gpu` (default "bf16").
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<Precision>,
    /// Part of the peak rate of `gpu` that large matrix products reach, above 0 and at most 1. Default: 0.72 with 16
    /// bits, 0.6 with 8 bits. Products of experts reach 0.45 by default, and change in the same proportion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub efficiency: Option<f64>,
    /// Computing rate that a GPU achieves, in 10^12 multiplications and additions per second, in place of the times of
    /// `gpu`. Default without `gpu`: 400, which is 40 % of the peak of an H100, and the rate at which Llama 3 was
    /// trained (Grattafiori et al., 2024, table 4).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tflops: Option<f64>,
    /// Bytes of one value of activations and weights, 1 to 8 (default 2).
    #[serde(default = "two")]
    pub bytes_per_value: u32,
    /// Bytes of the gradient of one parameter, 1 to 8 (default 2).
    #[serde(default = "two")]
    pub bytes_per_gradient: u32,
    /// Distribution of the optimizer's state among ranks.
    #[serde(default)]
    pub optimizer: Optimizer,
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

/// Distribution of the optimizer's state among ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Optimizer {
    /// Data-parallel ranks share the state: gradients are reduce-scattered, and weights are all-gathered when
    /// the next iteration begins (Rajbhandari et al., "ZeRO", SC 2020, stage 1).
    #[default]
    Distributed,
    /// Every rank has the whole state: gradients are all-reduced.
    Replicated,
    /// Ranks share gradients, too, and reduce-scatter those of each layer after each microbatch (ZeRO, stage 2). A
    /// field of stages.
    ShardedGradients,
    /// Ranks share weights, too. They all-gather those of a layer before its forward and its backward pass, beside the
    /// layer before, and the vocabulary's matrices before their use (FSDP; ZeRO, stage 3). A field of stages.
    ShardedWeights,
}

/// Way in which GPUs that share a sequence get the keys and values of other tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ContextParallelism {
    /// They pass them around a ring while attention computes (Liu et al., "Ring attention", 2023).
    #[default]
    Ring,
    /// They gather all of them before attention begins, as in the training of Llama 3.
    Gather,
}

/// Activations that the backward pass computes again instead of keeping them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Recomputation {
    /// None.
    #[default]
    None,
    /// Scores of attention (Korthikanti et al., "Reducing activation recomputation in large transformer models",
    /// 2022). Attention in tiles, which is assumed here, keeps none, so that this frees no memory.
    Selective,
    /// All of a layer but its input.
    Full,
}

fn one() -> u32 {
    1
}
fn two() -> u32 {
    2
}
fn whole() -> f64 {
    1.0
}
/// Rate that a GPU achieves without other settings, 10^12 operations per second.
const TFLOPS: f64 = 400.0;

impl Generate for Transformer {
    fn generate(&self, out: &mut WorkloadBuilder<'_>) -> Result<(), WorkloadError> {
        let architecture = self.architecture(out)?;
        self.check(out, &architecture)?;
        self.note_ineffective(out, &architecture);
        self.play(out, architecture)?;
        self.algorithms.note_ineffective(out);
        Ok(())
    }

    fn files(&mut self) -> Vec<NamedFile<'_>> {
        match &mut self.model {
            Some(ModelChoice::File(model)) => vec![("model", &mut model.file)],
            Some(ModelChoice::Published(_)) | None => Vec::new(),
        }
    }
}

impl Transformer {
    /// Declares the tasks of the job.
    fn play(&self, out: &mut WorkloadBuilder<'_>, architecture: Architecture) -> Result<(), WorkloadError> {
        let job = self.with_microbatches(out)?;
        let Some(shape) = job.equal_stages(architecture) else {
            return job.staged(out, architecture)?.play(out);
        };
        job.check_equal_stages(out, &architecture)?;
        let played = job.played(out);
        out.training(job.training(&architecture, job.gpus(out), job.replicas(out)));
        play_file(&played, out, |layout| LayerBuilder { config: &job, shape, layout }.file())
    }

    /// Notes fields that others make ineffective.
    fn note_ineffective(&self, out: &mut WorkloadBuilder<'_>, architecture: &Architecture) {
        if self.cp == 1 && self.cp_kind.is_some_and(|kind| kind != ContextParallelism::default()) {
            out.note_ineffective("cp_kind", "`cp` is 1: each GPU has whole sequences");
        }
        if self.etp.is_some() && architecture.experts.is_none() {
            out.note_ineffective("etp", "the model has no experts");
        }
        if self.gpu.is_some() && self.tflops.is_some() && self.efficiency.is_some() {
            out.note_ineffective("efficiency", "`tflops` replaces the rates of `gpu`");
        }
        if self.recompute == Some(Recomputation::Selective) {
            out.note("`recompute` = \"selective\" takes time and frees no memory: attention in tiles keeps no scores");
        }
    }

    /// Returns true if a field is given that only stages with work of their own have.
    fn has_fields_of_stages(&self) -> bool {
        self.cp > 1
            || self.vp > 1
            || self.cp_kind.is_some()
            || self.etp.is_some()
            || self.schedule.is_some()
            || !self.stage_layers.is_empty()
            || self.order.is_some()
            || self.recompute.is_some()
            || self.gpu.is_some()
            || matches!(self.optimizer, Optimizer::ShardedGradients | Optimizer::ShardedWeights)
    }

    /// Returns the architecture of the model, overridden by the fields that are set.
    pub(crate) fn architecture(&self, out: &WorkloadBuilder<'_>) -> Result<Architecture, WorkloadError> {
        let model = match &self.model {
            None => None,
            Some(ModelChoice::Published(model)) => Some(model.architecture()),
            Some(ModelChoice::File(model)) => Some(parse_config_json(&out.read(&model.file)?, &model.file)?),
        };
        let number = |field, own: Option<u32>, of_model: fn(&Architecture) -> u32| match own
            .or(model.as_ref().map(of_model))
        {
            Some(0) if own.is_none() => {
                out.field_error(field, "missing", "a number of 1 or more, which the file of the model lacks")
            }
            Some(0) => out.field_error(field, 0, "expected 1 or more"),
            Some(number) => Ok(number),
            None => out.field_error(field, "missing", NUMBER_OR_MODEL),
        };
        let hidden = number("hidden", self.hidden, |m| m.hidden)?;
        let of_experts = model.as_ref().and_then(|model| model.experts);
        let inside = number("feed_forward_hidden", self.feed_forward_hidden, |m| match m.experts {
            Some(experts) => experts.hidden,
            None => m.feed_forward_hidden,
        })?;
        let count = self.experts.or(of_experts.map(|experts| experts.count)).unwrap_or(1);
        let top_k = self.top_k.or(of_experts.filter(|_| count > 1).map(|experts| experts.top_k)).unwrap_or(1);
        for (field, value) in [("experts", count), ("top_k", top_k)] {
            if value == 0 {
                return out.field_error(field, 0, "expected 1 or more");
            }
        }
        if top_k > count {
            return out.field_error("top_k", top_k, format!("expected 1 to {count}, the experts"));
        }
        let one_kind = Experts { count, top_k, hidden: inside, shared_hidden: 0, dense_layers: 0, every: 1 };
        let experts = (count > 1).then_some(match of_experts {
            Some(experts) => Experts { count, top_k, hidden: inside, ..experts },
            None => one_kind,
        });
        let dense = match &model {
            Some(model) if of_experts.is_some() => model.feed_forward_hidden,
            _ => inside,
        };
        let layers = number("layers", self.layers, |m| m.layers)?;
        let architecture = Architecture {
            layers,
            hidden,
            attention: self.attention(out, hidden, model.as_ref())?,
            feed_forward_hidden: dense,
            matrices: match (self.feed_forward, &model) {
                (None, Some(model)) => model.matrices,
                (own, _) => own.unwrap_or_default().matrices(),
            },
            experts,
            vocabulary: number("vocabulary", self.vocabulary, |m| m.vocabulary)?,
            embeddings: model.as_ref().map_or(Embeddings::Separate, |model| model.embeddings),
            sequence: number("sequence", self.sequence, |m| m.sequence)?,
            window: model.as_ref().and_then(|model| model.window),
            mtp_layers: model.as_ref().map_or(0, |model| model.mtp_layers),
        };
        match architecture.problem() {
            None => Ok(architecture),
            Some((field, value, allowed)) => out.field_error(field, value, allowed),
        }
    }

    fn attention(
        &self,
        out: &WorkloadBuilder<'_>,
        hidden: u32,
        model: Option<&Architecture>,
    ) -> Result<Attention, WorkloadError> {
        for (field, value) in
            [("heads", self.heads), ("kv_heads", self.kv_heads), ("head_dim", self.head_dim)]
        {
            if value == Some(0) {
                return out.field_error(field, 0, "expected 1 or more");
            }
        }
        let (of_model, dim_of_model) = match model.map(|model| model.attention) {
            Some(latent @ Attention::Latent { .. }) => {
                let given = [("heads", self.heads), ("kv_heads", self.kv_heads), ("head_dim", self.head_dim)];
                return match given.into_iter().find_map(|(field, value)| Some((field, value?))) {
                    None => Ok(latent),
                    Some((field, value)) => out.field_error(
                        field,
                        value,
                        "expected no such field: the model's attention is latent",
                    ),
                };
            }
            Some(Attention::Grouped { heads, kv_heads, head_dim }) => {
                (Some((heads, kv_heads)), self.hidden.is_none().then_some(head_dim))
            }
            None => (None, None),
        };
        let Some(heads) = self.heads.or(of_model.map(|(heads, _)| heads)) else {
            return out.field_error("heads", "missing", NUMBER_OR_MODEL);
        };
        let kv_heads = self.kv_heads.or(of_model.map(|(_, kv_heads)| kv_heads)).unwrap_or(heads);
        let head_dim = match self.head_dim.or(dim_of_model.filter(|_| self.heads.is_none())) {
            Some(head_dim) => head_dim,
            None if hidden.is_multiple_of(heads) => hidden / heads,
            None => {
                let near = nearest_divisor(hidden, heads);
                let allowed = format!(
                    "expected a divisor of the {hidden} hidden size, such as {near}, or a `head_dim`"
                );
                return out.field_error("heads", heads, allowed);
            }
        };
        Ok(Attention::Grouped { heads, kv_heads, head_dim })
    }

    fn check(&self, out: &WorkloadBuilder<'_>, architecture: &Architecture) -> Result<(), WorkloadError> {
        for (field, value) in [
            ("micro_batch", self.micro_batch),
            ("microbatches", self.microbatches),
            ("tp", self.tp),
            ("ep", self.ep),
            ("pp", self.pp),
            ("cp", self.cp),
            ("vp", self.vp),
            ("etp", self.etp.unwrap_or(1)),
        ] {
            if value == 0 {
                return out.field_error(field, 0, "expected 1 or more");
            }
        }
        for (field, value) in
            [("bytes_per_value", self.bytes_per_value), ("bytes_per_gradient", self.bytes_per_gradient)]
        {
            if !(1..=8).contains(&value) {
                return out.field_error(field, value, "expected 1 to 8");
            }
        }
        if let Some(tflops) = self.tflops.filter(|tflops| !(*tflops > 0.0 && *tflops <= 1e6)) {
            return out.field_error("tflops", tflops, "expected a number above 0 and at most 1000000");
        }
        let (heads, experts) = (architecture.attention.heads(), architecture.experts.map_or(1, |e| e.count));
        for (field, value, whole, of) in [
            ("tp", self.tp, heads, "heads"),
            ("tp", self.tp, architecture.sequence, "tokens of a sequence"),
            ("ep", self.ep, experts, "experts of a layer"),
        ] {
            if !whole.is_multiple_of(value) {
                let near = nearest_divisor(whole, value);
                let allowed = format!("expected a divisor of the {whole} {of}, such as {near}");
                return out.field_error(field, value, allowed);
            }
        }
        Ok(())
    }

    fn check_equal_stages(
        &self,
        out: &WorkloadBuilder<'_>,
        architecture: &Architecture,
    ) -> Result<(), WorkloadError> {
        for (field, given) in
            [("precision", self.precision.map(|_| "set")), ("efficiency", self.efficiency.map(|_| "set"))]
        {
            if let Some(value) = given {
                return out.field_error(field, value, "expected a `gpu`, whose rates it is about");
            }
        }
        let layers = architecture.layers;
        if !layers.is_multiple_of(self.pp) {
            let near = nearest_divisor(layers, self.pp);
            let allowed = format!(
                "expected a divisor of the {layers} layers, such as {near}; stages differ with `schedule = \"1f1b\"`"
            );
            return out.field_error("pp", self.pp, allowed);
        }
        Ok(())
    }
}
