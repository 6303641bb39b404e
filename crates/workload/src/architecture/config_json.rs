//! The file `config.json` that comes with published weights (Hugging Face transformers).

use pathweave_units::{closest_name, suggestion};
use serde_json::{Map, Value};

use super::{Architecture, Attention, Embeddings, Experts, Window};
use crate::error::{FileError, shorten};

/// Way in which an architecture states its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    /// Gated feed-forward parts, all dense or all with experts.
    Gated,
    /// Feed-forward parts of two matrices.
    Plain,
    /// Latent attention, and dense layers before those with experts.
    Latent,
    /// Experts as wide as `intermediate_size`, and one of them beside for every token.
    Llama4,
}

/// Known values of `model_type`.
const FAMILIES: &[(&str, Family)] = &[
    ("llama", Family::Gated),
    ("llama4_text", Family::Llama4),
    ("mistral", Family::Gated),
    ("mixtral", Family::Gated),
    ("qwen2", Family::Gated),
    ("qwen2_moe", Family::Gated),
    ("qwen3", Family::Gated),
    ("qwen3_moe", Family::Gated),
    ("gemma", Family::Gated),
    ("gemma2", Family::Gated),
    ("gemma3_text", Family::Gated),
    ("gpt_oss", Family::Gated),
    ("glm4_moe", Family::Gated),
    ("minimax_m2", Family::Gated),
    ("nemotron", Family::Plain),
    ("deepseek_v2", Family::Latent),
    ("deepseek_v3", Family::Latent),
    ("kimi_k2", Family::Latent),
];

/// Models whose layers with a window alternate with others unless the file says otherwise: every so many layers, the
/// last one attends to the whole sequence.
const FULL_EVERY: [(&str, u32); 3] = [("gemma2", 2), ("gemma3_text", 6), ("gpt_oss", 2)];

/// Number of first layers of Qwen without a window, where layers have one, unless the file says otherwise.
const QWEN_FULL_FIRST: u32 = 28;

/// Models in which input and output share a matrix unless the file says otherwise.
const TIED: [&str; 3] = ["gemma", "gemma2", "gemma3_text"];

/// Fields of a file.
struct Fields<'a> {
    file: &'a str,
    map: &'a Map<String, Value>,
}

impl Fields<'_> {
    fn wrong<T>(&self, message: impl Into<String>) -> Result<T, FileError> {
        Err(FileError::whole(self.file, message))
    }

    /// Returns a number, or `None` if the field is absent or null.
    fn number(&self, field: &str) -> Result<Option<u32>, FileError> {
        match self.map.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_u64().and_then(|number| u32::try_from(number).ok()) {
                Some(number) => Ok(Some(number)),
                None => self.wrong(format!(
                    "{field} = {}: expected a whole number of at most {}",
                    shorten(&value.to_string()),
                    u32::MAX
                )),
            },
        }
    }

    /// Returns the number of the first field that is present.
    fn first(&self, fields: &[&str]) -> Result<Option<u32>, FileError> {
        for field in fields {
            if let Some(number) = self.number(field)? {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    fn required(&self, fields: &[&str]) -> Result<u32, FileError> {
        match self.first(fields)? {
            Some(number) => Ok(number),
            None => {
                let near = closest_name(fields[0], self.map.keys().map(String::as_str));
                self.wrong(format!("it has no field {}{}", fields.join(" or "), suggestion(near)))
            }
        }
    }

    /// Returns a list of numbers, empty if the field is absent or null.
    fn numbers(&self, field: &str) -> Result<Vec<u32>, FileError> {
        let number = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
        let found = match self.map.get(field) {
            None | Some(Value::Null) => Some(Vec::new()),
            Some(value) => value.as_array().and_then(|list| list.iter().map(number).collect()),
        };
        match found {
            Some(numbers) => Ok(numbers),
            None => self.wrong(format!("{field} = {}: expected a list of whole numbers", self.shown(field))),
        }
    }

    /// Returns the text of a field for an error.
    fn shown(&self, field: &str) -> String {
        shorten(&self.map.get(field).map_or(String::new(), Value::to_string)).to_string()
    }

    fn flag(&self, field: &str) -> Option<bool> {
        self.map.get(field).and_then(Value::as_bool)
    }
}

/// Parses a `config.json`. `file` is its name in errors.
///
/// # Errors
///
/// Returns an error if the text is not JSON, the architecture is unknown, or a field is missing or invalid.
pub fn parse_config_json(text: &str, file: &str) -> Result<Architecture, FileError> {
    let value: Value = serde_json::from_str(text)
        .map_err(|why| FileError::at(file, why.line() as u64, format!("it is not JSON: {why}")))?;
    let Some(map) = value.as_object() else {
        return Err(FileError::whole(file, "expected a JSON object, as in a config.json of transformers"));
    };
    // Models of text and images have the text's part in a table of its own.
    let map = map.get("text_config").and_then(Value::as_object).unwrap_or(map);
    let fields = Fields { file, map };
    let name = match map.get("model_type") {
        Some(Value::String(name)) => name.as_str(),
        Some(other) => {
            return fields.wrong(format!("model_type = {}: expected a text", shorten(&other.to_string())));
        }
        None => return fields.wrong("it has no field model_type, the name of an architecture"),
    };
    let Some(&(name, family)) = FAMILIES.iter().find(|(known, _)| *known == name) else {
        let known: Vec<&str> = FAMILIES.iter().map(|(name, _)| *name).collect();
        let near = suggestion(closest_name(name, known.iter().copied()));
        let known = known.join(", ");
        return fields.wrong(format!("model_type = \"{}\": expected one of {known}{near}", shorten(name)));
    };
    let architecture = architecture(&fields, name, family)?;
    match architecture.problem() {
        Some((field, value, allowed)) => fields.wrong(format!("{field} = {value}: {allowed}")),
        None => Ok(architecture),
    }
}

fn architecture(fields: &Fields<'_>, name: &str, family: Family) -> Result<Architecture, FileError> {
    let hidden = fields.required(&["hidden_size"])?;
    let layers = fields.required(&["num_hidden_layers"])?;
    let inside = fields.required(&["intermediate_size"])?;
    let experts = experts(fields, family, layers, inside)?;
    let dense = match family {
        Family::Llama4 => fields.number("intermediate_size_mlp")?.unwrap_or(inside),
        _ => inside,
    };
    let tied = fields.flag("tie_word_embeddings").unwrap_or(TIED.contains(&name));
    Ok(Architecture {
        layers,
        hidden,
        attention: attention(fields, family, hidden)?,
        feed_forward_hidden: dense,
        matrices: if family == Family::Plain { 2 } else { 3 },
        experts,
        vocabulary: fields.required(&["vocab_size"])?,
        embeddings: if tied { Embeddings::Tied } else { Embeddings::Separate },
        sequence: 0,
        window: window(fields, name, layers)?,
        mtp_layers: fields.first(&["num_nextn_predict_layers"])?.unwrap_or(0),
    })
}

fn attention(fields: &Fields<'_>, family: Family, hidden: u32) -> Result<Attention, FileError> {
    let heads = fields.required(&["num_attention_heads"])?;
    if family == Family::Latent {
        return Ok(Attention::Latent {
            heads,
            query_rank: fields.number("q_lora_rank")?.unwrap_or(0),
            kv_rank: fields.required(&["kv_lora_rank"])?,
            nope_dim: fields.required(&["qk_nope_head_dim"])?,
            rope_dim: fields.required(&["qk_rope_head_dim"])?,
            value_dim: fields.required(&["v_head_dim"])?,
        });
    }
    let head_dim = match fields.number("head_dim")? {
        Some(head_dim) => head_dim,
        None if heads > 0 && hidden.is_multiple_of(heads) => hidden / heads,
        None => {
            return fields.wrong(format!(
                "it has no field head_dim, and hidden_size = {hidden} is no multiple of num_attention_heads = {heads}"
            ));
        }
    };
    let kv_heads = fields.number("num_key_value_heads")?.unwrap_or(heads);
    Ok(Attention::Grouped { heads, kv_heads, head_dim })
}

fn experts(
    fields: &Fields<'_>,
    family: Family,
    layers: u32,
    inside: u32,
) -> Result<Option<Experts>, FileError> {
    let count = fields.first(&["num_local_experts", "num_experts", "n_routed_experts"])?.unwrap_or(0);
    if count < 2 {
        return Ok(None);
    }
    let hidden = fields.number("moe_intermediate_size")?.unwrap_or(inside);
    let shared_hidden = match (family, fields.number("shared_expert_intermediate_size")?) {
        (Family::Llama4, _) => hidden,
        (_, Some(shared)) => shared,
        (_, None) => fields.number("n_shared_experts")?.unwrap_or(0).saturating_mul(hidden),
    };
    let every =
        fields.first(&["interleave_moe_layer_step", "decoder_sparse_step", "moe_layer_freq"])?.unwrap_or(1);
    let experts = Experts {
        count,
        top_k: fields.required(&["num_experts_per_tok", "num_experts_per_token"])?,
        hidden,
        shared_hidden,
        dense_layers: fields.number("first_k_dense_replace")?.unwrap_or(0).min(layers),
        every,
    };
    without_dense(fields, experts, layers).map(Some)
}

/// Returns the experts of a model without those of the layers that `mlp_only_layers` makes dense. These have to be such
/// that layers with experts follow the dense ones regularly.
fn without_dense(fields: &Fields<'_>, experts: Experts, layers: u32) -> Result<Experts, FileError> {
    let dense = fields.numbers("mlp_only_layers")?;
    // A later check refuses more layers, and experts in every 0-th of them.
    let layers = layers.min(1 << 10);
    if dense.is_empty() || experts.every == 0 {
        return Ok(experts);
    }
    let wanted = |layer: u32| experts.are_at(layer) && !dense.contains(&layer);
    let before = |first: u32| (first + 1).saturating_sub(experts.every);
    let dense_layers = (0..layers).find(|&layer| wanted(layer)).map_or(layers, before);
    let found = Experts { dense_layers, ..experts };
    match (0..layers).all(|layer| found.are_at(layer) == wanted(layer)) {
        true => Ok(found),
        false => fields.wrong(format!(
            "mlp_only_layers = {}: expected the first layers only, with experts in every n-th layer after them",
            fields.shown("mlp_only_layers")
        )),
    }
}

/// Returns the window of layers that have one.
fn window(fields: &Fields<'_>, name: &str, layers: u32) -> Result<Option<Window>, FileError> {
    let listed = fields.map.get("layer_types").and_then(Value::as_array);
    let is_qwen = name.starts_with("qwen");
    // Files of Qwen have the size of a window that they do not use.
    let used = fields.flag("use_sliding_window").unwrap_or(!is_qwen || listed.is_some());
    let tokens = match fields.number("sliding_window")? {
        Some(tokens) if tokens > 0 && used => tokens,
        _ => return Ok(None),
    };
    let usual = FULL_EVERY.iter().find(|(model, _)| *model == name).map_or(0, |(_, every)| *every);
    let (full_every, full_first) = match listed {
        Some(types) => full_layers(fields, types)?,
        None if is_qwen => (0, fields.number("max_window_layers")?.unwrap_or(QWEN_FULL_FIRST)),
        None => {
            let pattern = fields.first(&["sliding_window_pattern", "_sliding_window_pattern"])?;
            (pattern.unwrap_or(usual), 0)
        }
    };
    let any = full_every != 1 && full_first < layers;
    Ok(any.then_some(Window { tokens, full_every, full_first }))
}

/// Returns every which of the listed layers attends to the whole sequence, 0 if none does, and how many at the begin do.
fn full_layers(fields: &Fields<'_>, types: &[Value]) -> Result<(u32, u32), FileError> {
    let kinds: Vec<&str> = types.iter().map(|kind| kind.as_str().unwrap_or_default()).collect();
    if let Some(other) = kinds.iter().find(|kind| !["full_attention", "sliding_attention"].contains(kind)) {
        return fields
            .wrong(format!("layer_types: {}: expected full_attention or sliding_attention", shorten(other)));
    }
    let full: Vec<bool> = kinds.iter().map(|kind| *kind == "full_attention").collect();
    let at_begin = full.iter().take_while(|&&full| full).count();
    let every = full.iter().position(|&full| full).map_or(0, |first| first + 1);
    let regular = |place: usize| every > 0 && place % every == every - 1;
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    if (0..).zip(&full).all(|(place, &full)| full == regular(place)) {
        return Ok((number(every), 0));
    }
    if full[at_begin..].contains(&true) {
        return fields.wrong(
            "layer_types: expected full attention in every n-th layer, counted from the first, or in the first ones only",
        );
    }
    Ok((0, number(at_begin)))
}
