//! Architectures of transformers: layers, heads, experts, and the numbers that follow from them.
//!
//! Parameters are those of matrices; norms and biases are left out. A multiplication and an addition count as
//! two operations. Attention is causal: a token attends to itself and to those before it, half of a sequence on
//! average.

mod config_json;
mod limits;
mod table;
#[cfg(test)]
mod tests;

pub use self::config_json::parse_config_json;
pub(crate) use self::limits::nearest_divisor;
pub use self::table::published;

/// Architecture of a transformer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Architecture {
    /// Number of layers.
    pub layers: u32,
    /// Size of the vector of a token, in values.
    pub hidden: u32,
    /// Attention of every layer.
    pub attention: Attention,
    /// Size of the vector inside a dense feed-forward part, in values.
    pub feed_forward_hidden: u32,
    /// Number of matrices of a feed-forward part or expert: 2, or 3 if one of them gates another.
    pub matrices: u32,
    /// Experts of some layers or all.
    pub experts: Option<Experts>,
    /// Number of tokens in the vocabulary.
    pub vocabulary: u32,
    /// Matrices between tokens and vectors.
    pub embeddings: Embeddings,
    /// Number of tokens in a sequence, unless the user sets it. 0 if unknown.
    pub sequence: u32,
    /// Window of the attention of some layers.
    pub window: Option<Window>,
    /// Number of further layers at the end that predict a further token each while the model is trained (MTP).
    pub mtp_layers: u32,
}

/// Attention of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attention {
    /// Query heads share heads of keys and values (GQA). All of them have their own if the numbers are equal.
    Grouped {
        /// Number of query heads.
        heads: u32,
        /// Number of heads of keys and values.
        kv_heads: u32,
        /// Values of a head.
        head_dim: u32,
    },
    /// Keys and values of all heads are made from one small vector (MLA; DeepSeek-AI, 2024).
    Latent {
        /// Number of heads.
        heads: u32,
        /// Values of the vector that queries are made from; 0 if they are made from the token's vector.
        query_rank: u32,
        /// Values of the vector that keys and values are made from.
        kv_rank: u32,
        /// Values of a query head that carry no position.
        nope_dim: u32,
        /// Values of a query head that carry the position.
        rope_dim: u32,
        /// Values of a value head.
        value_dim: u32,
    },
}

/// Experts of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Experts {
    /// Number of experts to which tokens are sent.
    pub count: u32,
    /// Number of experts to which a token is sent.
    pub top_k: u32,
    /// Size of the vector inside an expert, in values.
    pub hidden: u32,
    /// Size of the vector inside the part that every token passes beside its experts; 0 without one.
    pub shared_hidden: u32,
    /// Number of dense layers at the begin.
    pub dense_layers: u32,
    /// After them, every so many layers the last one has experts.
    pub every: u32,
}

/// Matrices between tokens and vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Embeddings {
    /// Input and output use the same matrix.
    Tied,
    /// Input and output have a matrix each.
    Separate,
}

/// Window of attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Place of a window's begin.
    pub kind: WindowKind,
    /// Number of tokens of a window.
    pub tokens: u32,
    /// Every so many layers, the last one attends to the whole sequence; 0 if none does.
    pub full_every: u32,
    /// Number of layers at the begin that attend to the whole sequence, too.
    pub full_first: u32,
}

/// Place of a window's begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowKind {
    /// A token attends to itself and to the tokens just before it.
    Sliding,
    /// The sequence is cut into chunks. A token attends to itself and to those before it in its chunk (Llama 4).
    Chunked,
}

impl Window {
    /// Returns true if a layer has the window.
    const fn is_at(&self, layer: u32) -> bool {
        layer >= self.full_first && (self.full_every == 0 || layer % self.full_every != self.full_every - 1)
    }
    /// Returns the tokens that a token attends to, on average over a longer sequence. The first tokens of a sliding
    /// window of w tokens attend to fewer: w - w^2 / 2 s remain of a sequence of s. Tokens of a chunk of c attend to
    /// c / 2, and those of the remainder r at the end to r / 2.
    fn context(&self, sequence: u32) -> f64 {
        let (tokens, all) = (f64::from(self.tokens), f64::from(sequence));
        match self.kind {
            WindowKind::Sliding => tokens - tokens * tokens / (2.0 * all),
            WindowKind::Chunked => {
                let (chunks, rest) = (f64::from(sequence / self.tokens), f64::from(sequence % self.tokens));
                (chunks * tokens * tokens + rest * rest) / (2.0 * all)
            }
        }
    }
}

impl Experts {
    /// Returns true if a layer has experts.
    fn are_at(&self, layer: u32) -> bool {
        layer.checked_sub(self.dense_layers).is_some_and(|place| place % self.every == self.every - 1)
    }
}

impl Attention {
    /// Returns the number of query heads.
    pub const fn heads(&self) -> u32 {
        match *self {
            Attention::Grouped { heads, .. } | Attention::Latent { heads, .. } => heads,
        }
    }
    /// Returns the values of a token that the backward pass needs, over all of so many tensor-parallel ranks: queries,
    /// keys, values and the output. A rank has a head of keys and values at least. Latent attention needs the vectors
    /// that they are made from as well, before and after their norms.
    pub const fn kept(&self, ranks: u32) -> u64 {
        match *self {
            Attention::Grouped { heads, kv_heads, head_dim } => {
                let kv_heads = if kv_heads > ranks { kv_heads } else { ranks };
                2 * (heads as u64 + kv_heads as u64) * head_dim as u64
            }
            Attention::Latent { heads, query_rank, kv_rank, nope_dim, rope_dim, value_dim } => {
                let of_head = 2 * (nope_dim as u64 + rope_dim as u64 + value_dim as u64);
                2 * (query_rank as u64 + kv_rank as u64) + heads as u64 * of_head
            }
        }
    }
    /// Returns the values that a token's keys and values take in memory while text is generated.
    pub const fn cached(&self) -> u64 {
        match *self {
            Attention::Grouped { kv_heads, head_dim, .. } => 2 * kv_heads as u64 * head_dim as u64,
            Attention::Latent { kv_rank, rope_dim, .. } => kv_rank as u64 + rope_dim as u64,
        }
    }
    /// Returns the parameters: queries, keys, values and output.
    const fn parameters(&self, hidden: u64) -> u64 {
        match *self {
            Attention::Grouped { heads, kv_heads, head_dim } => {
                2 * hidden * heads as u64 * head_dim as u64 + 2 * hidden * kv_heads as u64 * head_dim as u64
            }
            Attention::Latent { heads, query_rank, kv_rank, nope_dim, rope_dim, value_dim } => {
                let (heads, kv, rope) = (heads as u64, kv_rank as u64, rope_dim as u64);
                let (query, nope, value) = (query_rank as u64, nope_dim as u64, value_dim as u64);
                let queries = if query == 0 {
                    hidden * heads * (nope + rope)
                } else {
                    hidden * query + query * heads * (nope + rope)
                };
                queries + hidden * (kv + rope) + kv * heads * (nope + value) + heads * value * hidden
            }
        }
    }
    /// Returns the values of all heads that enter products with another token: those of a query and of a value.
    const fn products(&self) -> u64 {
        match *self {
            Attention::Grouped { heads, head_dim, .. } => 2 * heads as u64 * head_dim as u64,
            Attention::Latent { heads, nope_dim, rope_dim, value_dim, .. } => {
                heads as u64 * (nope_dim + rope_dim + value_dim) as u64
            }
        }
    }
}

impl Architecture {
    /// Returns the experts of a layer; `None` if it is dense.
    pub fn experts_of(&self, layer: u32) -> Option<Experts> {
        self.experts.filter(|experts| experts.are_at(layer))
    }
    /// Returns the number of layers with experts.
    pub fn expert_layers(&self) -> u32 {
        let experts =
            |experts: Experts| self.layers.saturating_sub(experts.dense_layers).checked_div(experts.every);
        self.experts.and_then(experts).unwrap_or(0)
    }
    /// Returns the parameters of the attention of a layer.
    pub const fn attention_parameters(&self) -> u64 {
        self.attention.parameters(self.hidden as u64)
    }
    /// Returns the parameters of a feed-forward part with so many values inside.
    pub const fn feed_forward_parameters(&self, inside: u32) -> u64 {
        self.matrices as u64 * self.hidden as u64 * inside as u64
    }
    /// Returns the parameters of the part of a layer after its attention that each rank has, and of one expert.
    pub fn feed_forward_of(&self, layer: u32) -> (u64, u64) {
        match self.experts_of(layer) {
            None => (self.feed_forward_parameters(self.feed_forward_hidden), 0),
            Some(experts) => {
                let router = u64::from(self.hidden) * u64::from(experts.count);
                let shared = self.feed_forward_parameters(experts.shared_hidden);
                (shared + router, self.feed_forward_parameters(experts.hidden))
            }
        }
    }
    /// Returns the parameters of one matrix between tokens and vectors.
    pub const fn embedding(&self) -> u64 {
        self.vocabulary as u64 * self.hidden as u64
    }
    /// Returns the number of matrices between tokens and vectors.
    pub const fn ends(&self) -> u64 {
        match self.embeddings {
            Embeddings::Tied => 1,
            Embeddings::Separate => 2,
        }
    }

    /// Returns the parameters of the matrix with which a further layer (MTP) joins its input and the next token.
    pub fn mtp_projection(&self) -> u64 {
        2 * u64::from(self.hidden) * u64::from(self.hidden)
    }
    /// Returns the number of tokens that are predicted from a token while the model is trained.
    pub fn predictions(&self) -> u64 {
        1 + u64::from(self.mtp_layers)
    }

    /// Returns the parameters of layers; of an expert layer, those of `experts` experts.
    fn of_layers(&self, layers: u32, experts: impl Fn(Experts) -> u32) -> u64 {
        let of = |layer| {
            let (dense, expert) = self.feed_forward_of(layer);
            let each = self.experts_of(layer).map_or(0, &experts);
            self.attention_parameters() + dense + u64::from(each) * expert
        };
        (0..layers).map(of).sum()
    }
    /// Returns the number of parameters, without those of further layers (MTP).
    pub fn parameters(&self) -> u64 {
        self.of_layers(self.layers, |experts| experts.count) + self.ends() * self.embedding()
    }
    /// Returns the number of parameters that take part for a token, without those of further layers (MTP).
    pub fn active_parameters(&self) -> u64 {
        self.of_layers(self.layers, |experts| experts.top_k) + self.ends() * self.embedding()
    }
    /// Returns the tokens that a token of a layer attends to, on average over a sequence.
    pub fn context(&self, layer: u32, sequence: u32) -> f64 {
        match self.window.filter(|window| window.is_at(layer) && window.tokens < sequence) {
            Some(window) => window.context(sequence),
            None => f64::from(sequence) / 2.0,
        }
    }
    /// Returns the operations of the scores of a layer per token, forward.
    pub fn score_flops(&self, layer: u32, sequence: u32) -> f64 {
        2.0 * self.attention.products() as f64 * self.context(layer, sequence)
    }
    /// Returns the operations of an iteration per token, forward and backward, without recomputation. Backward
    /// takes twice as many as forward. Looking up a token's vector takes none. Each further layer (MTP) has a product
    /// with the vocabulary's matrix, too.
    pub fn training_flops(&self, sequence: u32) -> f64 {
        let layers = self.layers + self.mtp_layers;
        let matrices = self.of_layers(layers, |experts| experts.top_k)
            + u64::from(self.mtp_layers) * self.mtp_projection()
            + self.predictions() * self.embedding();
        let scores: f64 = (0..layers).map(|layer| self.score_flops(layer, sequence)).sum();
        6.0 * matrices as f64 + 3.0 * scores
    }
    /// Returns the number of values of keys and values of a token over all layers.
    pub fn cached_values(&self) -> u64 {
        u64::from(self.layers) * self.attention.cached()
    }
}
