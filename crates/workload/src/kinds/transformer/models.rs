//! Parameters of transformers whose layers are all alike, for plans of such layers.

use serde::{Deserialize, Serialize};

use crate::architecture::{Architecture, Attention};

/// Matrices of the feed-forward part of a layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FeedForward {
    /// Two matrices, as in GPT-3.
    Plain,
    /// Three matrices, one of which gates another (Shazeer, "GLU variants improve transformer", 2020).
    #[default]
    Gated,
}

impl FeedForward {
    pub(super) const fn matrices(self) -> u32 {
        match self {
            FeedForward::Plain => 2,
            FeedForward::Gated => 3,
        }
    }
}

/// Architecture of a transformer with layers that are all alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    architecture: Architecture,
    pub(super) layers: u32,
    pub(super) hidden: u32,
    pub(super) sequence: u32,
    /// Experts in each layer; 1 if the model is dense.
    pub(super) experts: u32,
    /// Experts to which a token is sent.
    pub(super) top_k: u32,
}

impl Shape {
    /// Returns the shape of an architecture, or `None` if its layers differ or have parts that plans of equal layers
    /// do not know.
    pub(super) fn of(architecture: Architecture) -> Option<Self> {
        let experts = architecture.experts;
        let alike = experts.is_none_or(|e| e.dense_layers == 0 && e.every == 1 && e.shared_hidden == 0);
        let grouped = matches!(architecture.attention, Attention::Grouped { .. });
        let plain = architecture.window.is_none() && architecture.mtp_layers == 0;
        (alike && grouped && plain).then_some(Shape {
            architecture,
            layers: architecture.layers,
            hidden: architecture.hidden,
            sequence: architecture.sequence,
            experts: experts.map_or(1, |experts| experts.count),
            top_k: experts.map_or(1, |experts| experts.top_k),
        })
    }
    /// Returns the parameters of the attention of a layer: queries, keys, values and output.
    pub(super) const fn attention(&self) -> u64 {
        self.architecture.attention_parameters()
    }
    /// Returns the parameters of the feed-forward part of a layer, or of one of its experts.
    pub(super) fn expert(&self) -> u64 {
        let dense = self.architecture.feed_forward_hidden;
        let inside = self.architecture.experts.map_or(dense, |experts| experts.hidden);
        self.architecture.feed_forward_parameters(inside)
    }
    /// Returns the parameters of one matrix between tokens and vectors.
    pub(super) const fn embedding(&self) -> u64 {
        self.architecture.embedding()
    }
    /// Returns the number of these matrices: one at the input and one at the output, or one for both.
    pub(super) const fn ends(&self) -> u64 {
        self.architecture.ends()
    }
    /// Returns the multiplications and additions per token in the attention of a layer, forward. They are two
    /// for each parameter, plus those of the scores. Attention is causal, so that scores take half of those that
    /// Narayanan et al. count ("Efficient large-scale language model training on GPU clusters", SC 2021, appendix).
    pub(super) fn attention_flops(&self) -> f64 {
        2.0 * self.attention() as f64 + self.architecture.score_flops(0, self.sequence)
    }
    /// Returns the multiplications and additions per token in the feed-forward part, over all experts to
    /// which the token is sent.
    pub(super) fn feed_forward_flops(&self) -> f64 {
        2.0 * self.expert() as f64 * f64::from(self.top_k)
    }
}
