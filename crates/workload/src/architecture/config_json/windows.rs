//! Windows of attention.

use pathweave_units::{closest_name, suggestion};

use super::fields::{self, Field, Fields};
use super::{Family, Model};
use crate::architecture::{Window, WindowKind};
use crate::error::{FileError, shorten};

/// Models whose layers with a window alternate with others unless the file says otherwise: every so many layers, the
/// last one attends to the whole sequence.
const FULL_EVERY: [(&str, u32); 3] = [("gemma2", 2), ("gemma3_text", 6), ("gpt_oss", 2)];

/// Number of first layers of Qwen without a window, where layers have one, unless the file says otherwise.
const QWEN_FULL_FIRST: u32 = 28;

/// Tokens of a chunk of Llama 4 unless the file says otherwise.
const LLAMA4_CHUNK: u32 = 8192;

/// Every so many layers of Llama 4, the last one attends to the whole sequence unless the file says otherwise.
const LLAMA4_FULL_EVERY: u32 = 4;

/// Known words of `layer_types`.
const FULL: &str = "full_attention";
const SLIDING: &str = "sliding_attention";
const CHUNKED: &str = "chunked_attention";

/// Layers that attend to the whole sequence, in the terms of `Window`.
struct FullLayers {
    every: u32,
    first: u32,
}

impl FullLayers {
    /// Returns the window of the other layers, if there are any.
    fn window(self, kind: WindowKind, tokens: u32, layers: u32) -> Option<Window> {
        let others = self.every != 1 && self.first < layers;
        others.then_some(Window { kind, tokens, full_every: self.every, full_first: self.first })
    }
}

/// Returns the window of layers that have one.
pub(super) fn window(fields: &Fields<'_>, model: Model, layers: u32) -> Result<Option<Window>, FileError> {
    if let Some(types) = fields.texts(&fields::LAYER_TYPES) {
        return listed(fields, model, &types, layers);
    }
    match model.family {
        Family::Llama4 => chunks(fields, layers),
        _ => sliding(fields, model, layers),
    }
}

/// Returns the window of a model whose file lists the attention of each layer.
fn listed(
    fields: &Fields<'_>,
    model: Model,
    types: &[&str],
    layers: u32,
) -> Result<Option<Window>, FileError> {
    if types.len() != layers as usize {
        return wrong_length(fields, &fields::LAYER_TYPES, types.len(), &layers.to_string());
    }
    let known = [FULL, SLIDING, CHUNKED];
    if let Some((layer, other)) = types.iter().enumerate().find(|(_, kind)| !known.contains(kind)) {
        let near = suggestion(closest_name(other, known));
        let other = shorten(other);
        return fields.wrong(format!(
            "layer_types[{layer}] = \"{other}\": expected {FULL}, {SLIDING} or {CHUNKED}{near}"
        ));
    }
    let (kind, tokens) = match (types.contains(&SLIDING), types.contains(&CHUNKED)) {
        (false, false) => return Ok(None),
        (true, true) => {
            return fields
                .wrong(format!("layer_types: expected {SLIDING} or {CHUNKED} beside {FULL}, found both"));
        }
        (true, false) => (WindowKind::Sliding, tokens_of_window(fields)?),
        (false, true) => (WindowKind::Chunked, tokens_of_chunk(fields, model)?),
    };
    let full: Vec<bool> = types.iter().map(|kind| *kind == FULL).collect();
    Ok(full_layers(fields, &fields::LAYER_TYPES, &full)?.window(kind, tokens, layers))
}

/// Refuses a list that does not have an entry for each layer.
fn wrong_length<T>(fields: &Fields<'_>, field: &Field, found: usize, allowed: &str) -> Result<T, FileError> {
    let name = fields.name(field);
    fields.wrong(format!("{name} has {found} entries: expected {allowed}, one for each of num_hidden_layers"))
}

/// Returns the tokens of the window that listed layers have.
fn tokens_of_window(fields: &Fields<'_>) -> Result<u32, FileError> {
    if fields.flag(&fields::WINDOW_USED) == Some(false) {
        return fields.refuse(&fields::WINDOW_USED, format!("true, since layer_types has {SLIDING}"));
    }
    match fields.number(&fields::WINDOW)? {
        Some(tokens) if tokens > 0 => Ok(tokens),
        _ => absent(fields, &fields::WINDOW, SLIDING),
    }
}

/// Returns the tokens of the chunk that listed layers have.
fn tokens_of_chunk(fields: &Fields<'_>, model: Model) -> Result<u32, FileError> {
    match fields.number(&fields::CHUNK)? {
        Some(tokens) => Ok(tokens),
        None if model.family == Family::Llama4 && !fields.mentions(&fields::CHUNK) => Ok(LLAMA4_CHUNK),
        None => absent(fields, &fields::CHUNK, CHUNKED),
    }
}

/// Refuses a file without a size that a word of `layer_types` needs.
fn absent<T>(fields: &Fields<'_>, field: &Field, word: &str) -> Result<T, FileError> {
    let allowed = format!("a whole number of 1 or more, since layer_types has {word}");
    match fields.mentions(field) {
        true => fields.refuse(field, allowed),
        false => fields.wrong(format!("it has no field {}: expected {allowed}", fields.name(field))),
    }
}

/// Returns the chunks of Llama 4. Layers without positions (NoPE) attend to the whole sequence. A file in which the
/// size of a chunk is null has no chunks.
fn chunks(fields: &Fields<'_>, layers: u32) -> Result<Option<Window>, FileError> {
    let tokens = match fields.number(&fields::CHUNK)? {
        Some(tokens) => tokens,
        None if fields.mentions(&fields::CHUNK) => return Ok(None),
        None => LLAMA4_CHUNK,
    };
    let positions = fields.numbers(&fields::NO_ROPE_LAYERS);
    let full = if positions.is_empty() {
        let every = fields.number(&fields::NO_ROPE_EVERY)?.unwrap_or(LLAMA4_FULL_EVERY);
        FullLayers { every, first: 0 }
    } else {
        without_positions(fields, &positions, layers)?
    };
    Ok(full.window(WindowKind::Chunked, tokens, layers))
}

/// Returns the layers that attend to the whole sequence from a list in which they have 0, and others 1. Entries beyond
/// the layers do not count.
fn without_positions(fields: &Fields<'_>, positions: &[u64], layers: u32) -> Result<FullLayers, FileError> {
    let field = &fields::NO_ROPE_LAYERS;
    let Some(of_layers) = positions.get(..layers as usize) else {
        return wrong_length(fields, field, positions.len(), &format!("{layers} or more"));
    };
    if of_layers.iter().any(|&position| position > 1) {
        return fields.refuse(field, "0 or 1 for each layer");
    }
    let full: Vec<bool> = of_layers.iter().map(|&position| position == 0).collect();
    full_layers(fields, field, &full)
}

/// Returns the sliding window of a model whose file does not list layers.
fn sliding(fields: &Fields<'_>, model: Model, layers: u32) -> Result<Option<Window>, FileError> {
    let is_qwen = model.name.starts_with("qwen");
    // Files of Qwen have the size of a window that they do not use.
    let used = fields.flag(&fields::WINDOW_USED).unwrap_or(!is_qwen);
    let tokens = match fields.number(&fields::WINDOW)? {
        Some(tokens) if tokens > 0 && used => tokens,
        _ => return Ok(None),
    };
    let full = if is_qwen {
        let first = fields.number(&fields::FULL_FIRST)?.unwrap_or(QWEN_FULL_FIRST);
        FullLayers { every: 0, first }
    } else {
        let usual = FULL_EVERY.iter().find(|(name, _)| *name == model.name).map_or(0, |(_, every)| *every);
        let every = fields.number(&fields::WINDOW_PATTERN)?.unwrap_or(usual);
        FullLayers { every, first: 0 }
    };
    Ok(full.window(WindowKind::Sliding, tokens, layers))
}

/// Returns the layers of a list that attend to the whole sequence.
fn full_layers(fields: &Fields<'_>, field: &Field, full: &[bool]) -> Result<FullLayers, FileError> {
    let at_begin = full.iter().take_while(|&&full| full).count();
    let every = full.iter().position(|&full| full).map_or(0, |first| first + 1);
    let regular = |place: usize| every > 0 && place % every == every - 1;
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    if (0..).zip(full).all(|(place, &full)| full == regular(place)) {
        return Ok(FullLayers { every: number(every), first: 0 });
    }
    if full[at_begin..].contains(&true) {
        return fields.wrong(format!(
            "{}: expected full attention in every n-th layer, counted from the first, or in the first ones only",
            fields.name(field)
        ));
    }
    Ok(FullLayers { every: 0, first: number(at_begin) })
}
