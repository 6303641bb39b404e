//! Values that sizes of a transformer may have.

use super::{Architecture, Attention};

/// Largest number of layers. Sizes are computed up to this and the following values.
pub(super) const LAYERS: u32 = 1 << 10;
/// Largest size of the vector of a token.
pub(super) const HIDDEN: u32 = 1 << 17;
/// Largest size of the vector inside a feed-forward part or an expert.
pub(super) const INSIDE: u32 = 1 << 20;
/// Largest vocabulary.
pub(super) const VOCABULARY: u32 = 1 << 22;
/// Largest number of experts of a layer.
pub(super) const EXPERTS: u32 = 1 << 12;
/// Largest number of heads.
pub(super) const HEADS: u32 = 1 << 12;
/// Largest size of a head.
pub(super) const HEAD_DIM: u32 = 1 << 12;
/// Largest size of the vectors that queries, keys and values of latent attention are made from.
pub(super) const RANK: u32 = 1 << 16;
/// Largest number of further layers (MTP).
pub(super) const MTP_LAYERS: u32 = 1 << 6;

/// A wrong size: its name, the value, and what is allowed.
type Problem = (&'static str, u32, String);

impl Architecture {
    /// Returns the first value that no transformer has: its name, the value, and what is allowed.
    pub fn problem(&self) -> Option<(&'static str, u32, String)> {
        self.too_small().or_else(|| self.too_large()).or_else(|| self.unfitting())
    }

    /// Returns the first value that is 0 and must not be.
    fn too_small(&self) -> Option<Problem> {
        let mut sizes = vec![
            ("layers", self.layers),
            ("hidden", self.hidden),
            ("heads", self.attention.heads()),
            ("vocabulary", self.vocabulary),
        ];
        if self.experts.is_none() || self.expert_layers() < self.layers {
            sizes.push(("feed_forward_hidden", self.feed_forward_hidden));
        }
        sizes.extend(match self.attention {
            Attention::Grouped { kv_heads, head_dim, .. } => {
                vec![("kv_heads", kv_heads), ("head_dim", head_dim)]
            }
            Attention::Latent { kv_rank, nope_dim, rope_dim, value_dim, .. } => vec![
                ("kv_rank", kv_rank),
                ("nope_dim + rope_dim", nope_dim.saturating_add(rope_dim)),
                ("value_dim", value_dim),
            ],
        });
        if let Some(experts) = self.experts {
            sizes.extend([
                ("experts", experts.count),
                ("expert_hidden", experts.hidden),
                ("moe_every", experts.every),
            ]);
        }
        let zero = sizes.into_iter().find(|(_, value)| *value == 0);
        zero.map(|(name, value)| (name, value, "expected 1 or more".to_owned()))
    }

    /// Returns the first value beyond what sizes are computed for.
    fn too_large(&self) -> Option<Problem> {
        let mut sizes = vec![
            ("layers", self.layers, LAYERS),
            ("hidden", self.hidden, HIDDEN),
            ("feed_forward_hidden", self.feed_forward_hidden, INSIDE),
            ("vocabulary", self.vocabulary, VOCABULARY),
            ("heads", self.attention.heads(), HEADS),
            ("mtp_layers", self.mtp_layers, MTP_LAYERS),
        ];
        if let Some(experts) = self.experts {
            sizes.extend([
                ("experts", experts.count, EXPERTS),
                ("expert_hidden", experts.hidden, INSIDE),
                ("shared_hidden", experts.shared_hidden, INSIDE),
            ]);
        }
        sizes.extend(match self.attention {
            Attention::Grouped { head_dim, .. } => vec![("head_dim", head_dim, HEAD_DIM)],
            Attention::Latent { query_rank, kv_rank, nope_dim, rope_dim, value_dim, .. } => vec![
                ("query_rank", query_rank, RANK),
                ("kv_rank", kv_rank, RANK),
                ("nope_dim", nope_dim, HEAD_DIM),
                ("rope_dim", rope_dim, HEAD_DIM),
                ("value_dim", value_dim, HEAD_DIM),
            ],
        });
        let large = sizes.into_iter().find(|(_, value, most)| value > most);
        large.map(|(name, value, most)| (name, value, format!("expected at most {most}")))
    }

    /// Returns the first value that does not fit another.
    fn unfitting(&self) -> Option<Problem> {
        if let Attention::Grouped { heads, kv_heads, .. } = self.attention
            && !heads.is_multiple_of(kv_heads)
        {
            let near = nearest_divisor(heads, kv_heads);
            let allowed = format!("expected a divisor of the {heads} heads, such as {near}");
            return Some(("kv_heads", kv_heads, allowed));
        }
        let experts = self.experts?;
        if !(1..=experts.count).contains(&experts.top_k) {
            return Some(("top_k", experts.top_k, format!("expected 1 to {}, the experts", experts.count)));
        }
        let allowed = || format!("expected at most {}, the layers", self.layers);
        (experts.dense_layers > self.layers).then(|| ("dense_layers", experts.dense_layers, allowed()))
    }
}

/// Returns the divisor of `number` that is nearest to `value`. On a tie, it returns the smaller one.
pub(crate) fn nearest_divisor(number: u32, value: u32) -> u32 {
    let divides = |&one: &u32| number.is_multiple_of(one);
    (1..=number.min(value.saturating_mul(2)))
        .filter(divides)
        .min_by_key(|one| one.abs_diff(value))
        .unwrap_or(1)
}
