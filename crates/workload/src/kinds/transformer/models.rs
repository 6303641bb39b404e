//! Parameters of transformers, and those of published models.

use serde::{Deserialize, Serialize};

/// A published model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub enum TransformerModel {
    /// GPT-3 with 175 billion parameters (Brown et al., "Language models are few-shot learners", 2020, table
    /// 2.1).
    #[serde(rename = "gpt-3-175b")]
    Gpt3,
    /// Llama 3 with 8 billion parameters (Grattafiori et al., "The Llama 3 herd of models", 2024, table 3).
    #[serde(rename = "llama-3-8b")]
    Llama8,
    /// Llama 3 with 70 billion parameters (same source).
    #[serde(rename = "llama-3-70b")]
    Llama70,
    /// Llama 3 with 405 billion parameters (same source).
    #[serde(rename = "llama-3-405b")]
    Llama405,
    /// Mixtral with 47 billion parameters, of which 13 billion are active for a token (Jiang et al., "Mixtral
    /// of experts", 2024, table 1).
    #[serde(rename = "mixtral-8x7b")]
    Mixtral,
}

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

/// Parameters of a transformer's architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) layers: u32,
    pub(super) hidden: u32,
    pub(super) feed_forward_hidden: u32,
    pub(super) heads: u32,
    /// Heads of keys and values. Several query heads share each of them.
    pub(super) kv_heads: u32,
    pub(super) vocabulary: u32,
    pub(super) sequence: u32,
    /// Experts in each layer; 1 if the model is dense.
    pub(super) experts: u32,
    /// Experts to which a token is sent.
    pub(super) top_k: u32,
    pub(super) feed_forward: FeedForward,
}

impl TransformerModel {
    pub(super) fn shape(self) -> Shape {
        let llama = |layers, hidden, feed_forward_hidden, heads| Shape {
            layers,
            hidden,
            feed_forward_hidden,
            heads,
            kv_heads: 8,
            vocabulary: 128_256,
            sequence: 8_192,
            experts: 1,
            top_k: 1,
            feed_forward: FeedForward::Gated,
        };
        match self {
            TransformerModel::Gpt3 => Shape {
                layers: 96,
                hidden: 12_288,
                feed_forward_hidden: 49_152,
                heads: 96,
                kv_heads: 96,
                vocabulary: 50_257,
                sequence: 2_048,
                experts: 1,
                top_k: 1,
                feed_forward: FeedForward::Plain,
            },
            TransformerModel::Llama8 => llama(32, 4_096, 14_336, 32),
            TransformerModel::Llama70 => llama(80, 8_192, 28_672, 64),
            TransformerModel::Llama405 => llama(126, 16_384, 53_248, 128),
            TransformerModel::Mixtral => Shape {
                vocabulary: 32_000,
                sequence: 32_768,
                experts: 8,
                top_k: 2,
                ..llama(32, 4_096, 14_336, 32)
            },
        }
    }
}

impl Shape {
    /// Returns the parameters of the attention of a layer: queries, keys, values and output.
    pub(super) const fn attention(&self) -> u64 {
        let (hidden, of_head) = (self.hidden as u64, (self.hidden / self.heads) as u64);
        2 * hidden * hidden + 2 * hidden * of_head * self.kv_heads as u64
    }
    /// Returns the parameters of the feed-forward part of a layer, or of one of its experts.
    pub(super) const fn expert(&self) -> u64 {
        let matrices = match self.feed_forward {
            FeedForward::Plain => 2,
            FeedForward::Gated => 3,
        };
        matrices * self.hidden as u64 * self.feed_forward_hidden as u64
    }
    /// Returns the parameters of one matrix between tokens and vectors. The model has one at its input and
    /// one at its output.
    pub(super) const fn embedding(&self) -> u64 {
        self.vocabulary as u64 * self.hidden as u64
    }
    /// Returns the multiplications and additions per token in the attention of a layer, forward. They are two
    /// for each parameter, plus those of the scores (Narayanan et al., "Efficient large-scale language model
    /// training on GPU clusters", SC 2021, appendix).
    pub(super) fn attention_flops(&self) -> f64 {
        2.0 * self.attention() as f64 + 4.0 * f64::from(self.sequence) * f64::from(self.hidden)
    }
    /// Returns the multiplications and additions per token in the feed-forward part, over all experts to
    /// which the token is sent.
    pub(super) fn feed_forward_flops(&self) -> f64 {
        2.0 * self.expert() as f64 * f64::from(self.top_k)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_models_have_the_parameters_that_their_names_say() {
        for (model, billions) in [
            (TransformerModel::Gpt3, 174.6),
            (TransformerModel::Llama8, 8.03),
            (TransformerModel::Llama70, 70.55),
            (TransformerModel::Llama405, 405.85),
            (TransformerModel::Mixtral, 46.7),
        ] {
            let shape = model.shape();
            // GPT-3 uses one matrix for both ends.
            let ends = if model == TransformerModel::Gpt3 { 1 } else { 2 };
            let of_layer = shape.attention() + shape.expert() * u64::from(shape.experts);
            let all = of_layer * u64::from(shape.layers) + ends * shape.embedding();
            let found = all as f64 / 1e9;
            assert!((found / billions - 1.0).abs() < 0.003, "{model:?}: {found} of {billions}");
        }
    }
}
