//! Values of a token that a layer keeps for its backward pass.
//!
//! They are the inputs of norms, matrices and products (Korthikanti et al., "Reducing activation recomputation in large
//! transformer models", 2022). Attention in tiles keeps no scores (Dao et al., "FlashAttention", 2022). A router's
//! scores, norms of heads, and what orders tokens by their experts are small and left out.

use super::layers::Layers;

impl Layers {
    /// Returns the values that a layer has from the one before it, per token. A layer that predicts a further token has
    /// the vector of the next token, too.
    pub(super) fn inputs(&self, layer: u32) -> u64 {
        let hidden = u64::from(self.architecture.hidden);
        if layer < self.architecture.layers { hidden } else { 2 * hidden }
    }

    /// Returns the values that a layer keeps over all ranks of a tensor-parallel group, per token. Each of its two parts
    /// keeps the input of its norm, and the norm's output, which its matrices begin with.
    pub(super) fn kept(&self, layer: u32) -> u64 {
        let norms = 4 * u64::from(self.architecture.hidden);
        let attention = self.architecture.attention.kept(self.axes.tp as u32);
        self.kept_to_join(layer) + norms + attention + self.kept_inside(layer)
    }

    /// Returns the values that join the vector of the next token, before and after a norm each; 0 in other layers.
    fn kept_to_join(&self, layer: u32) -> u64 {
        if layer < self.architecture.layers { 0 } else { 2 * self.inputs(layer) }
    }

    /// Returns the values inside the feed-forward part: the outputs of its first matrices, and the input of its last one.
    ///
    /// Experts keep their input as well: a copy of the token for each of its experts, evenly distributed among ranks.
    /// Ranks that share an expert's matrices have gathered the copies of all of them. Outputs of experts are not kept: as
    /// Megatron-Core does by default (`moe_apply_probs_on_input` unset), the router's weights are applied inside of the
    /// experts, before their last matrix.
    fn kept_inside(&self, layer: u32) -> u64 {
        let architecture = &self.architecture;
        let matrices = u64::from(architecture.matrices);
        let Some(experts) = architecture.experts_of(layer) else {
            return matrices * u64::from(architecture.feed_forward_hidden);
        };
        let top_k = u64::from(experts.top_k);
        let inside = top_k * u64::from(experts.hidden) + u64::from(experts.shared_hidden);
        let copies = top_k * self.axes.etp as u64 * u64::from(architecture.hidden);
        copies + matrices * inside
    }
}

#[cfg(test)]
mod tests {
    use super::super::staged_tests::memory_of;
    use super::super::tests::tiny;
    use super::super::{GpuModel, ModelChoice, Recomputation, Transformer, TransformerModel};

    fn job(model: TransformerModel) -> Transformer {
        Transformer {
            model: Some(ModelChoice::Published(model)),
            layers: None,
            hidden: None,
            feed_forward_hidden: None,
            heads: None,
            vocabulary: None,
            sequence: None,
            feed_forward: None,
            ep: 8,
            gpu: Some(GpuModel::H100),
            tflops: None,
            ..tiny()
        }
    }

    /// A token of a layer of Qwen3-30B-A3B keeps 4 x 2,048 values around norms, 2 x 4,096 of queries and output, and 2 x 512
    /// of keys and values. Experts keep 3 x 8 x 768 inside, and 8 copies of 2,048.
    #[test]
    fn experts_keep_a_copy_of_the_token_each() {
        let qwen = Transformer { micro_batch: 2, microbatches: 2, ..job(TransformerModel::Qwen30) };
        let layer = 4 * 2_048 + 2 * 4_096 + 2 * 512 + 3 * 8 * 768 + 8 * 2_048;
        assert_eq!(layer, 52_224);
        let bytes = |values: u64| values * 2 * 2 * 4_096;
        let found = memory_of(32, &qwen);
        assert_eq!((found.activations, found.recomputed), (48 * bytes(layer), 0));
        let with = |recompute| memory_of(32, &Transformer { recompute: Some(recompute), ..qwen.clone() });
        assert_eq!(with(Recomputation::Selective).activations, 48 * bytes(layer));
        let full = with(Recomputation::Full);
        assert_eq!((full.activations, full.recomputed), (48 * bytes(2_048), bytes(layer - 2_048)));
    }

    /// Latent attention of DeepSeek-V3 keeps 2 x (1,536 + 512) values of small vectors, and for each of 128 heads 192 of
    /// a query, 192 of a key, 128 of a value and 128 of the output. 58 of 61 layers have eight experts and a shared one;
    /// a layer behind them predicts a further token.
    #[test]
    fn latent_attention_and_shared_experts_keep_what_they_compute_with() {
        let job = Transformer { tp: 2, etp: Some(1), ..job(TransformerModel::DeepSeek) };
        let attention = 2 * 7_168 + 2 * (1_536 + 512) + 128 * (192 + 192 + 128 + 128);
        let dense = 2 * 7_168 + 3 * 18_432;
        let copies = 8 * 7_168;
        let experts = 2 * 7_168 + 3 * (8 + 1) * 2_048 + copies;
        let join = 4 * 7_168;
        let all = 62 * attention + 3 * dense + 59 * experts + join;
        assert_eq!(all, 13_950_976);
        // Half of 4,096 tokens, two bytes a value.
        let bytes = |values: u64| values * 2 * 4_096 / 2;
        assert_eq!(memory_of(16, &job).activations, bytes(all));
        // Both ranks that share an expert's matrices have the copies of both.
        let shared = Transformer { etp: None, ..job.clone() };
        assert_eq!(memory_of(16, &shared).activations, bytes(all + 59 * copies));
        let full = memory_of(16, &Transformer { recompute: Some(Recomputation::Full), ..job });
        let inputs = 61 * 7_168 + 2 * 7_168;
        let last = attention + experts + join - 2 * 7_168;
        assert_eq!((full.activations, full.recomputed), (bytes(inputs), bytes(last)));
    }

    /// Eight ranks have one of four heads of keys and values each.
    #[test]
    fn a_rank_keeps_a_head_of_keys_and_values_at_least() {
        let activations = |tp| memory_of(8, &Transformer { tp, ep: 1, ..job(TransformerModel::Qwen235) });
        let more = 8 * activations(8).activations - 4 * activations(4).activations;
        // Ranks that share experts have all copies, of which each counts once for each rank.
        let copies = (8 - 4) * 8 * 4_096;
        assert_eq!(more, 94 * 2 * 4_096 * (2 * (8 - 4) * 128 + copies));
    }
}
