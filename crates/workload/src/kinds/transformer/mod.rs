//! Training of a transformer, dense or with experts, from a few parameters.

mod models;
mod plan;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use self::models::{FeedForward, TransformerModel};

use self::models::Shape;
use self::plan::LayerBuilder;
use super::simai::{SimAi, play_file};
use crate::collective::Algorithms;
use crate::error::WorkloadError;
use crate::hosts::HostList;
use crate::sink::{Generate, WorkloadBuilder};

/// Training of a transformer with tensor, expert, data and pipeline parallelism. Each iteration is a job.
///
/// A published model or the fields give the model's parameters. GPU = tensor rank + TP x (data rank + DP x
/// stage). Each layer has an attention and a feed-forward part. A tensor-parallel group all-gathers the input
/// of each part and reduce-scatters its output. Experts receive their tokens by an all-to-all, and return
/// them by another. A GPU sends its part of the activations to its counterpart in the next stage.
///
/// All microbatches go forward, then all backward. The gradients of a layer's weights are reduced among
/// data-parallel ranks while the last microbatch still goes backward. All stages have the same layers;
/// embedding and logits are divided evenly among them. Experts are equally popular.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Transformer {
    /// Published model whose numbers are the defaults of `layers` to `feed_forward`. Without it these fields
    /// are required, except `kv_heads`, `experts`, `top_k` and `feed_forward`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<TransformerModel>,
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
    /// Number of attention heads; it divides `hidden`. Default: that of `model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heads: Option<u32>,
    /// Number of heads of keys and values. Default: that of `model`, otherwise `heads`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_heads: Option<u32>,
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
    /// Number of pipeline stages; it must divide the number of layers (default 1).
    #[serde(default = "one")]
    pub pp: u32,
    /// Computing rate that a GPU achieves, in 10^12 multiplications and additions per second. Default 400,
    /// which is 40 % of the peak of an H100, and the rate at which Llama 3 was trained (Grattafiori et al.,
    /// 2024, table 4).
    #[serde(default = "tflops")]
    pub tflops: f64,
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
fn tflops() -> f64 {
    400.0
}

impl Generate for Transformer {
    fn generate(&self, out: &mut WorkloadBuilder<'_>) -> Result<(), WorkloadError> {
        let shape = self.shape(out)?;
        self.check(out, &shape)?;
        let played = SimAi {
            file: "transformer".to_owned(),
            gpus: Some(self.gpus.unwrap_or(out.env.hosts)),
            tp: Some(self.tp),
            ep: Some(self.ep),
            pp: Some(self.pp),
            microbatches: None,
            hosts: self.hosts.clone(),
            algorithms: self.algorithms.clone(),
            scale: self.scale,
            iterations: self.iterations,
        };
        play_file(&played, out, |layout| LayerBuilder { config: self, shape, layout }.file())
    }
}

impl Transformer {
    /// Returns the parameters of the model, overridden by the fields that are set.
    fn shape(&self, out: &WorkloadBuilder<'_>) -> Result<Shape, WorkloadError> {
        let model = self.model.map(TransformerModel::shape);
        let number = |field, own: Option<u32>, of_model: fn(&Shape) -> u32, default: Option<u32>| match own
            .or(model.as_ref().map(of_model))
            .or(default)
        {
            Some(0) => out.field_error(field, 0, "expected 1 or more"),
            Some(number) => Ok(number),
            None => {
                out.field_error(field, "nothing", "say it, or name a published model: model = \"llama-3-8b\"")
            }
        };
        let heads = number("heads", self.heads, |s| s.heads, None)?;
        Ok(Shape {
            layers: number("layers", self.layers, |s| s.layers, None)?,
            hidden: number("hidden", self.hidden, |s| s.hidden, None)?,
            feed_forward_hidden: number(
                "feed_forward_hidden",
                self.feed_forward_hidden,
                |s| s.feed_forward_hidden,
                None,
            )?,
            heads,
            kv_heads: number("kv_heads", self.kv_heads, |s| s.kv_heads, Some(heads))?,
            vocabulary: number("vocabulary", self.vocabulary, |s| s.vocabulary, None)?,
            sequence: number("sequence", self.sequence, |s| s.sequence, None)?,
            experts: number("experts", self.experts, |s| s.experts, Some(1))?,
            top_k: number("top_k", self.top_k, |s| s.top_k, Some(1))?,
            feed_forward: self.feed_forward.or(model.map(|m| m.feed_forward)).unwrap_or_default(),
        })
    }

    fn check(&self, out: &WorkloadBuilder<'_>, shape: &Shape) -> Result<(), WorkloadError> {
        for (field, value) in [
            ("micro_batch", self.micro_batch),
            ("microbatches", self.microbatches),
            ("tp", self.tp),
            ("ep", self.ep),
            ("pp", self.pp),
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
        if !(self.tflops > 0.0 && self.tflops <= 1e6) {
            return out.field_error("tflops", self.tflops, "expected a number above 0 and at most 1000000");
        }
        if shape.top_k > shape.experts {
            return out.field_error(
                "top_k",
                shape.top_k,
                format!("expected 1 to {}, the experts", shape.experts),
            );
        }
        for (field, value, whole, of) in [
            ("heads", shape.heads, shape.hidden, "hidden size"),
            ("pp", self.pp, shape.layers, "layers"),
            ("tp", self.tp, shape.heads, "heads"),
            ("tp", self.tp, shape.sequence, "tokens of a sequence"),
            ("ep", self.ep, shape.experts, "experts of a layer"),
        ] {
            if !whole.is_multiple_of(value) {
                let near = nearest_divisor(whole, value);
                let allowed = format!("expected a divisor of the {whole} {of}, such as {near}");
                return out.field_error(field, value, allowed);
            }
        }
        Ok(())
    }
}

/// Returns the divisor of `number` that is nearest to `value`. On a tie, it returns the smaller one.
fn nearest_divisor(number: u32, value: u32) -> u32 {
    let divides = |&one: &u32| number.is_multiple_of(one);
    (1..=number.min(value.saturating_mul(2)))
        .filter(divides)
        .min_by_key(|one| one.abs_diff(value))
        .unwrap_or(1)
}
