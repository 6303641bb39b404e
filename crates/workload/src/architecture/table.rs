//! Published models, from `models.csv`.

use serde::Deserialize;

use super::{Architecture, Attention, Embeddings, Experts, Window, WindowKind};

const TABLE: &str = include_str!("models.csv");

/// Row of the table. A size that a model does not have is 0.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    layers: u32,
    hidden: u32,
    feed_forward_hidden: u32,
    matrices: u32,
    heads: u32,
    kv_heads: u32,
    head_dim: u32,
    query_rank: u32,
    kv_rank: u32,
    nope_dim: u32,
    rope_dim: u32,
    value_dim: u32,
    vocabulary: u32,
    embeddings: TableEmbeddings,
    sequence: u32,
    experts: u32,
    top_k: u32,
    expert_hidden: u32,
    shared_hidden: u32,
    dense_layers: u32,
    moe_every: u32,
    window: u32,
    chunk: u32,
    full_every: u32,
    mtp_layers: u32,
    #[serde(rename = "source")]
    _source: String,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum TableEmbeddings {
    Tied,
    Separate,
}

impl Row {
    fn architecture(&self) -> Architecture {
        let attention = match self.kv_rank {
            0 => Attention::Grouped { heads: self.heads, kv_heads: self.kv_heads, head_dim: self.head_dim },
            kv_rank => Attention::Latent {
                heads: self.heads,
                query_rank: self.query_rank,
                kv_rank,
                nope_dim: self.nope_dim,
                rope_dim: self.rope_dim,
                value_dim: self.value_dim,
            },
        };
        Architecture {
            layers: self.layers,
            hidden: self.hidden,
            attention,
            feed_forward_hidden: self.feed_forward_hidden,
            matrices: self.matrices,
            experts: (self.experts > 0).then_some(Experts {
                count: self.experts,
                top_k: self.top_k,
                hidden: self.expert_hidden,
                shared_hidden: self.shared_hidden,
                dense_layers: self.dense_layers,
                every: self.moe_every,
            }),
            vocabulary: self.vocabulary,
            embeddings: match self.embeddings {
                TableEmbeddings::Tied => Embeddings::Tied,
                TableEmbeddings::Separate => Embeddings::Separate,
            },
            sequence: self.sequence,
            window: self.window(),
            mtp_layers: self.mtp_layers,
        }
    }

    fn window(&self) -> Option<Window> {
        let (kind, tokens) = match self.chunk {
            0 => (WindowKind::Sliding, self.window),
            chunk => (WindowKind::Chunked, chunk),
        };
        (tokens > 0).then_some(Window { kind, tokens, full_every: self.full_every, full_first: 0 })
    }
}

/// Returns the published models by name, in the order of the table.
pub fn published() -> Vec<(String, Architecture)> {
    let rows = csv::Reader::from_reader(TABLE.as_bytes()).into_deserialize();
    let row = |row: Result<Row, csv::Error>| {
        let row = row.expect("a test reads the table");
        let architecture = row.architecture();
        (row.name, architecture)
    };
    rows.map(row).collect()
}
