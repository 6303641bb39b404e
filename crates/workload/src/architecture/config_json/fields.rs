//! Fields of the file: names, types, ranges, and errors in terms of the file.

use pathweave_units::{closest_name, suggestion};
use serde_json::{Map, Value};

use super::super::limits;
use crate::error::{FileError, shorten};

/// Field of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    /// Names in files. The first that is present counts.
    names: &'static [&'static str],
    /// Name of the size in `Architecture::problem`; empty if that does not name it.
    size: &'static str,
    kind: Kind,
}

/// Type of a field. `null` is an absent field.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Whole number of this range.
    Number { least: u32, most: u32 },
    /// True or false.
    Flag,
    /// List of whole numbers.
    Numbers,
    /// List of texts.
    Texts,
}

impl Kind {
    /// Returns the text for errors.
    fn allowed(self) -> String {
        match self {
            Kind::Number { least, most } => format!("a whole number from {least} to {most}"),
            Kind::Flag => "true or false".to_owned(),
            Kind::Numbers => "a list of whole numbers".to_owned(),
            Kind::Texts => "a list of texts".to_owned(),
        }
    }

    /// Returns true if a value has the type, in range or not.
    fn is_of(self, value: &Value) -> bool {
        let all = |is: fn(&Value) -> bool| value.as_array().is_some_and(|list| list.iter().all(is));
        match self {
            Kind::Number { .. } => value.is_u64(),
            Kind::Flag => value.is_boolean(),
            Kind::Numbers => all(Value::is_u64),
            Kind::Texts => all(Value::is_string),
        }
    }
}

/// Makes a constant of each field, and a table of all.
macro_rules! fields {
    ($($name:ident: $size:literal, $kind:expr, $names:expr;)*) => {
        $(pub(super) const $name: Field = Field { names: &$names, size: $size, kind: $kind };)*
        const ALL: &[Field] = &[$($name),*];
    };
}

const fn number(least: u32, most: u32) -> Kind {
    Kind::Number { least, most }
}

fields! {
    HIDDEN: "hidden", number(1, limits::HIDDEN), ["hidden_size"];
    LAYERS: "layers", number(1, limits::LAYERS), ["num_hidden_layers"];
    VOCABULARY: "vocabulary", number(1, limits::VOCABULARY), ["vocab_size"];
    INSIDE: "feed_forward_hidden", number(0, limits::INSIDE), ["intermediate_size"];
    INSIDE_DENSE: "feed_forward_hidden", number(0, limits::INSIDE), ["intermediate_size_mlp", "intermediate_size"];
    HEADS: "heads", number(1, limits::HEADS), ["num_attention_heads"];
    KV_HEADS: "kv_heads", number(1, limits::HEADS), ["num_key_value_heads"];
    HEAD_DIM: "head_dim", number(1, limits::HEAD_DIM), ["head_dim"];
    QUERY_RANK: "query_rank", number(0, limits::RANK), ["q_lora_rank"];
    KV_RANK: "kv_rank", number(1, limits::RANK), ["kv_lora_rank"];
    NOPE_DIM: "nope_dim", number(0, limits::HEAD_DIM), ["qk_nope_head_dim"];
    ROPE_DIM: "rope_dim", number(0, limits::HEAD_DIM), ["qk_rope_head_dim"];
    VALUE_DIM: "value_dim", number(1, limits::HEAD_DIM), ["v_head_dim"];
    EXPERTS: "experts", number(0, limits::EXPERTS), ["num_local_experts", "num_experts", "n_routed_experts"];
    TOP_K: "top_k", number(1, limits::EXPERTS), ["num_experts_per_tok", "num_experts_per_token"];
    EXPERT_HIDDEN: "expert_hidden", number(1, limits::INSIDE), ["moe_intermediate_size", "intermediate_size"];
    SHARED_HIDDEN: "shared_hidden", number(0, limits::INSIDE), ["shared_expert_intermediate_size"];
    SHARED_EXPERTS: "", number(0, limits::EXPERTS), ["n_shared_experts"];
    DENSE_LAYERS: "dense_layers", number(0, u32::MAX), ["first_k_dense_replace"];
    MOE_EVERY: "moe_every", number(1, limits::LAYERS),
        ["interleave_moe_layer_step", "decoder_sparse_step", "moe_layer_freq"];
    MLP_ONLY_LAYERS: "", Kind::Numbers, ["mlp_only_layers"];
    MOE_LAYERS: "", Kind::Numbers, ["moe_layers"];
    MTP_LAYERS: "mtp_layers", number(0, limits::MTP_LAYERS), ["num_nextn_predict_layers"];
    TIED: "", Kind::Flag, ["tie_word_embeddings"];
    WINDOW: "", number(0, u32::MAX), ["sliding_window"];
    WINDOW_USED: "", Kind::Flag, ["use_sliding_window"];
    WINDOW_PATTERN: "", number(1, u32::MAX), ["sliding_window_pattern", "_sliding_window_pattern"];
    FULL_FIRST: "", number(0, u32::MAX), ["max_window_layers"];
    CHUNK: "", number(1, u32::MAX), ["attention_chunk_size"];
    LAYER_TYPES: "", Kind::Texts, ["layer_types"];
    NO_ROPE_LAYERS: "", Kind::Numbers, ["no_rope_layers"];
    NO_ROPE_EVERY: "", number(1, u32::MAX), ["no_rope_layer_interval"];
}

/// Fields of a file, of the types in the table.
pub(super) struct Fields<'a> {
    file: &'a str,
    map: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    /// Returns the fields of a file.
    ///
    /// # Errors
    ///
    /// Returns an error if one of the table has another type.
    pub(super) fn new(file: &'a str, map: &'a Map<String, Value>) -> Result<Self, FileError> {
        let fields = Fields { file, map };
        for field in ALL {
            for name in field.names {
                if fields.value(name).is_some_and(|value| !field.kind.is_of(value)) {
                    return fields.wrong_value(name, field.kind.allowed());
                }
            }
        }
        Ok(fields)
    }

    pub(super) fn wrong<T>(&self, message: impl Into<String>) -> Result<T, FileError> {
        Err(FileError::whole(self.file, message))
    }

    /// Refuses the value of a field.
    fn wrong_value<T>(&self, name: &str, allowed: String) -> Result<T, FileError> {
        let shown = self.map.get(name).map_or_else(String::new, Value::to_string);
        self.wrong(format!("{name} = {}: expected {allowed}", shorten(&shown)))
    }

    /// Refuses the value of a field for a reason beyond its own range.
    pub(super) fn refuse<T>(&self, field: &Field, allowed: impl Into<String>) -> Result<T, FileError> {
        self.wrong_value(self.name(field), allowed.into())
    }

    /// Returns the value under a name, or `None` if it is absent or null.
    fn value(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    /// Returns the name under which the file has a field, with a value if possible, or its usual one.
    pub(super) fn name(&self, field: &Field) -> &'static str {
        let mut names = field.names.iter();
        let stated = names.clone().find(|name| self.value(name).is_some());
        stated.or_else(|| names.find(|name| self.map.contains_key(**name))).unwrap_or(&field.names[0])
    }

    /// Returns true if a field is there, if only as null.
    pub(super) fn mentions(&self, field: &Field) -> bool {
        field.names.iter().any(|name| self.map.contains_key(*name))
    }

    /// Returns the name that the file has for a size of `Architecture::problem` with this value.
    pub(super) fn name_of_size(&self, size: &str, value: u32) -> String {
        let of_one = |size: &str| {
            let mut fields = ALL.iter().filter(|field| field.size == size);
            let states = |field: &&Field| matches!(self.number(field), Ok(Some(found)) if found == value);
            let first = fields.clone().next();
            let found = fields.find(states).or(first).map(|field| self.name(field));
            found.unwrap_or(size).to_owned()
        };
        size.split(" + ").map(of_one).collect::<Vec<_>>().join(" + ")
    }

    /// Returns a number, or `None` if the field is absent or null.
    pub(super) fn number(&self, field: &Field) -> Result<Option<u32>, FileError> {
        let Kind::Number { least, most } = field.kind else { unreachable!("the field is a number") };
        let name = self.name(field);
        let Some(value) = self.value(name) else { return Ok(None) };
        let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
        match number.filter(|number| (least..=most).contains(number)) {
            Some(number) => Ok(Some(number)),
            None => self.wrong_value(name, field.kind.allowed()),
        }
    }

    /// Returns a number that the file must have.
    pub(super) fn required(&self, field: &Field) -> Result<u32, FileError> {
        match self.number(field)? {
            Some(number) => Ok(number),
            None if self.mentions(field) => self.refuse(field, field.kind.allowed()),
            None => {
                let near = closest_name(field.names[0], self.map.keys().map(String::as_str));
                self.wrong(format!("it has no field {}{}", field.names.join(" or "), suggestion(near)))
            }
        }
    }

    /// Returns true or false, or `None` if the field is absent or null.
    pub(super) fn flag(&self, field: &Field) -> Option<bool> {
        self.value(self.name(field)).and_then(Value::as_bool)
    }

    /// Returns a list of numbers, empty if the field is absent or null.
    pub(super) fn numbers(&self, field: &Field) -> Vec<u64> {
        let list = self.value(self.name(field)).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_u64).collect()
    }

    /// Returns a list of texts, or `None` if the field is absent or null.
    pub(super) fn texts(&self, field: &Field) -> Option<Vec<&'a str>> {
        let list = self.value(self.name(field))?.as_array()?;
        Some(list.iter().filter_map(Value::as_str).collect())
    }
}
