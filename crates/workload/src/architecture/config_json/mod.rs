//! The file `config.json` that comes with published weights (Hugging Face transformers).

mod fields;
#[cfg(test)]
mod tests;
mod windows;

use pathweave_units::{closest_name, suggestion};
use serde_json::{Map, Value};

use self::fields::{Field, Fields};
use super::{Architecture, Attention, Embeddings, Experts, limits};
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

/// Models in which input and output share a matrix unless the file says otherwise.
const TIED: [&str; 3] = ["gemma", "gemma2", "gemma3_text"];

/// Architecture that a file names.
#[derive(Clone, Copy, Debug)]
struct Model {
    name: &'static str,
    family: Family,
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
    let map = match map.get("text_config") {
        None | Some(Value::Null) => map,
        Some(Value::Object(text)) => text,
        Some(other) => {
            let other = shorten(&other.to_string());
            return Err(FileError::whole(file, format!("text_config = {other}: expected a JSON object")));
        }
    };
    let model = model(map).map_err(|message| FileError::whole(file, message))?;
    let fields = Fields::new(file, map)?;
    let architecture = architecture(&fields, model)?;
    match architecture.problem() {
        Some((size, value, allowed)) => {
            fields.wrong(format!("{} = {value}: {allowed}", fields.name_of_size(size, value)))
        }
        None => Ok(architecture),
    }
}

/// Returns the architecture that a file names.
fn model(map: &Map<String, Value>) -> Result<Model, String> {
    let name = match map.get("model_type") {
        Some(Value::String(name)) => name.as_str(),
        Some(other) => return Err(format!("model_type = {}: expected a text", shorten(&other.to_string()))),
        None => return Err("it has no field model_type, the name of an architecture".to_owned()),
    };
    if let Some(&(name, family)) = FAMILIES.iter().find(|(known, _)| *known == name) {
        return Ok(Model { name, family });
    }
    let known: Vec<&str> = FAMILIES.iter().map(|(name, _)| *name).collect();
    let near = suggestion(closest_name(name, known.iter().copied()));
    let known = known.join(", ");
    Err(format!("model_type = \"{}\": expected one of {known}{near}", shorten(name)))
}

fn architecture(fields: &Fields<'_>, model: Model) -> Result<Architecture, FileError> {
    let hidden = fields.required(&fields::HIDDEN)?;
    let layers = fields.required(&fields::LAYERS)?;
    let inside = fields.required(&fields::INSIDE)?;
    let experts = experts(fields, model.family, layers)?;
    let dense = match model.family {
        Family::Llama4 => fields.required(&fields::INSIDE_DENSE)?,
        _ => inside,
    };
    let tied = fields.flag(&fields::TIED).unwrap_or(TIED.contains(&model.name));
    Ok(Architecture {
        layers,
        hidden,
        attention: attention(fields, model.family, hidden)?,
        feed_forward_hidden: dense,
        matrices: if model.family == Family::Plain { 2 } else { 3 },
        experts,
        vocabulary: fields.required(&fields::VOCABULARY)?,
        embeddings: if tied { Embeddings::Tied } else { Embeddings::Separate },
        sequence: 0,
        window: windows::window(fields, model, layers)?,
        mtp_layers: fields.number(&fields::MTP_LAYERS)?.unwrap_or(0),
    })
}

fn attention(fields: &Fields<'_>, family: Family, hidden: u32) -> Result<Attention, FileError> {
    let heads = fields.required(&fields::HEADS)?;
    if family == Family::Latent {
        return Ok(Attention::Latent {
            heads,
            query_rank: fields.number(&fields::QUERY_RANK)?.unwrap_or(0),
            kv_rank: fields.required(&fields::KV_RANK)?,
            nope_dim: fields.required(&fields::NOPE_DIM)?,
            rope_dim: fields.required(&fields::ROPE_DIM)?,
            value_dim: fields.required(&fields::VALUE_DIM)?,
        });
    }
    let head_dim = match fields.number(&fields::HEAD_DIM)? {
        Some(head_dim) => head_dim,
        None if hidden.is_multiple_of(heads) && hidden / heads <= limits::HEAD_DIM => hidden / heads,
        None => {
            let most = limits::HEAD_DIM;
            return fields.wrong(format!(
                "it has no field head_dim, and hidden_size = {hidden} is no multiple of num_attention_heads = {heads} by 1 to {most}"
            ));
        }
    };
    let kv_heads = fields.number(&fields::KV_HEADS)?.unwrap_or(heads);
    Ok(Attention::Grouped { heads, kv_heads, head_dim })
}

fn experts(fields: &Fields<'_>, family: Family, layers: u32) -> Result<Option<Experts>, FileError> {
    let count = fields.number(&fields::EXPERTS)?.unwrap_or(0);
    if count < 2 {
        return Ok(None);
    }
    let hidden = fields.required(&fields::EXPERT_HIDDEN)?;
    let experts = Experts {
        count,
        top_k: fields.required(&fields::TOP_K)?,
        hidden,
        shared_hidden: shared_hidden(fields, family, hidden)?,
        dense_layers: fields.number(&fields::DENSE_LAYERS)?.unwrap_or(0).min(layers),
        every: fields.number(&fields::MOE_EVERY)?.unwrap_or(1),
    };
    match family {
        Family::Llama4 => listed(fields, experts, layers).map(Some),
        _ => without_dense(fields, experts, layers).map(Some),
    }
}

/// Returns the size of the vector inside the part that every token passes beside its experts.
fn shared_hidden(fields: &Fields<'_>, family: Family, hidden: u32) -> Result<u32, FileError> {
    if family == Family::Llama4 {
        return Ok(hidden);
    }
    if let Some(shared) = fields.number(&fields::SHARED_HIDDEN)? {
        return Ok(shared);
    }
    let count = fields.number(&fields::SHARED_EXPERTS)?.unwrap_or(0);
    let all = count.saturating_mul(hidden);
    if all > limits::INSIDE {
        let name = fields.name(&fields::EXPERT_HIDDEN);
        let most = limits::INSIDE / hidden;
        return fields.refuse(&fields::SHARED_EXPERTS, format!("at most {most} with {name} = {hidden}"));
    }
    Ok(all)
}

/// Returns the experts of a model without those of the layers that `mlp_only_layers` makes dense. These have to be such
/// that layers with experts follow the dense ones regularly.
fn without_dense(fields: &Fields<'_>, experts: Experts, layers: u32) -> Result<Experts, FileError> {
    let dense = layer_numbers(fields, &fields::MLP_ONLY_LAYERS, layers)?;
    if dense.is_empty() {
        return Ok(experts);
    }
    let wanted = |layer: u32| experts.are_at(layer) && !dense.contains(&layer);
    match regular(experts, layers, &wanted) {
        Some(found) => Ok(found),
        None => fields.refuse(
            &fields::MLP_ONLY_LAYERS,
            "the first layers only, with experts in every n-th layer after them",
        ),
    }
}

/// Returns the experts of a model in the layers that `moe_layers` lists, if it lists any.
fn listed(fields: &Fields<'_>, experts: Experts, layers: u32) -> Result<Experts, FileError> {
    let mut with = layer_numbers(fields, &fields::MOE_LAYERS, layers)?;
    if with.is_empty() {
        return Ok(experts);
    }
    with.sort_unstable();
    with.dedup();
    let every = match with[..] {
        [first, second, ..] => second - first,
        // The only layer with experts is the last one of so many.
        _ => with[0] + 1,
    };
    let wanted = |layer: u32| with.contains(&layer);
    match regular(Experts { every, ..experts }, layers, &wanted) {
        Some(found) => Ok(found),
        None => fields.refuse(&fields::MOE_LAYERS, "every n-th layer, from one on"),
    }
}

/// Returns experts that are at the wanted layers, with as many dense layers at the begin as that takes.
fn regular(experts: Experts, layers: u32, wanted: &dyn Fn(u32) -> bool) -> Option<Experts> {
    let before = |first: u32| (first + 1).saturating_sub(experts.every);
    let dense_layers = (0..layers).find(|&layer| wanted(layer)).map_or(layers, before);
    let found = Experts { dense_layers, ..experts };
    (0..layers).all(|layer| found.are_at(layer) == wanted(layer)).then_some(found)
}

/// Returns a list of numbers of layers.
fn layer_numbers(fields: &Fields<'_>, field: &Field, layers: u32) -> Result<Vec<u32>, FileError> {
    let number = |layer: u64| u32::try_from(layer).ok().filter(|&layer| layer < layers);
    let found: Option<Vec<u32>> = fields.numbers(field).into_iter().map(number).collect();
    match found {
        Some(found) => Ok(found),
        None => fields.refuse(field, format!("numbers of layers, from 0 to {}", layers - 1)),
    }
}
