//! Choice of a model: a published one by name, or a file.

use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::architecture::{Architecture, published};

/// Model: the name of a published one, or a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum ModelChoice {
    /// Name of a published model.
    Published(TransformerModel),
    /// File that comes with a model's weights.
    File(ModelFile),
}

/// File with the architecture of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelFile {
    /// `config.json` of Hugging Face transformers, relative to the scenario.
    pub file: String,
}

impl<'de> Deserialize<'de> for ModelChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Choice;
        impl<'de> Visitor<'de> for Choice {
            type Value = ModelChoice;
            fn expecting(&self, text: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                text.write_str("the name of a model, or { file = \"config.json\" }")
            }
            fn visit_str<E: Error>(self, name: &str) -> Result<ModelChoice, E> {
                TransformerModel::deserialize(StrDeserializer::new(name)).map(ModelChoice::Published)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ModelChoice, A::Error> {
                ModelFile::deserialize(MapAccessDeserializer::new(map)).map(ModelChoice::File)
            }
        }
        deserializer.deserialize_any(Choice)
    }
}

macro_rules! models {
    ($($variant:ident $name:literal: $text:literal,)*) => {
        /// A published model. Its numbers are in `crates/workload/src/architecture/models.csv`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
        pub enum TransformerModel {
            $(#[doc = $text] #[serde(rename = $name)] $variant,)*
        }

        impl TransformerModel {
            /// All models, in the order of the table.
            pub const ALL: &'static [TransformerModel] = &[$(TransformerModel::$variant,)*];

            /// Returns the name in scenarios.
            pub const fn name(self) -> &'static str {
                match self { $(TransformerModel::$variant => $name,)* }
            }
        }
    };
}

models! {
    Gpt3 "gpt-3-175b": "GPT-3 with 175 billion parameters (Brown et al., \"Language models are few-shot learners\", 2020, table 2.1).",
    Llama8 "llama-3-8b": "Llama 3 with 8 billion parameters (Grattafiori et al., \"The Llama 3 herd of models\", 2024, table 3).",
    Llama70 "llama-3-70b": "Llama 3 with 70 billion parameters (same source).",
    Llama405 "llama-3-405b": "Llama 3 with 405 billion parameters (same source).",
    Llama4Scout "llama-4-scout": "Llama 4 Scout: 109 billion parameters, 17 billion of them active.",
    Llama4Maverick "llama-4-maverick": "Llama 4 Maverick: 400 billion parameters, 17 billion of them active.",
    Qwen8 "qwen3-8b": "Qwen3 with 8 billion parameters.",
    Qwen32 "qwen3-32b": "Qwen3 with 33 billion parameters.",
    Qwen30 "qwen3-30b-a3b": "Qwen3 with experts: 31 billion parameters, 3 billion of them active.",
    Qwen235 "qwen3-235b-a22b": "Qwen3 with experts: 235 billion parameters, 22 billion of them active.",
    Qwen480 "qwen3-coder-480b": "Qwen3-Coder: 480 billion parameters, 35 billion of them active.",
    DeepSeek "deepseek-v3": "DeepSeek-V3: 671 billion parameters, 37 billion of them active (DeepSeek-AI, 2024).",
    Kimi "kimi-k2": "Kimi K2: 1,026 billion parameters, 33 billion of them active.",
    GptOss20 "gpt-oss-20b": "gpt-oss-20b: 21 billion parameters, 4 billion of them active.",
    GptOss120 "gpt-oss-120b": "gpt-oss-120b: 117 billion parameters, 6 billion of them active.",
    GlmAir "glm-4.5-air": "GLM-4.5-Air: 107 billion parameters, 13 billion of them active.",
    Glm "glm-4.5": "GLM-4.5: 353 billion parameters, 34 billion of them active.",
    MiniMax "minimax-m2": "MiniMax-M2: 229 billion parameters, 11 billion of them active.",
    Mixtral "mixtral-8x7b": "Mixtral with 47 billion parameters, of which 13 billion are active for a token (Jiang et al., \"Mixtral of experts\", 2024, table 1).",
    Mixtral22 "mixtral-8x22b": "Mixtral with 141 billion parameters, 39 billion of them active.",
    Nemotron "nemotron-4-340b": "Nemotron-4 with 340 billion parameters.",
    Mistral "mistral-large-2": "Mistral Large 2: 123 billion parameters.",
    Gemma "gemma-3-27b": "Gemma 3 with 27 billion parameters, its text part.",
}

impl TransformerModel {
    /// Returns the architecture.
    pub fn architecture(self) -> Architecture {
        let found = published().into_iter().find(|(name, _)| name == self.name());
        found.expect("a test compares the names").1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_table() {
        let table: Vec<String> = published().into_iter().map(|(name, _)| name).collect();
        let names: Vec<&str> = TransformerModel::ALL.iter().map(|model| model.name()).collect();
        assert_eq!(names, table);
    }

    #[test]
    fn a_model_is_a_name_or_a_file() {
        let of = |text: &str| serde_json::from_str::<ModelChoice>(text).map_err(|why| why.to_string());
        assert_eq!(of("\"deepseek-v3\""), Ok(ModelChoice::Published(TransformerModel::DeepSeek)));
        let file = ModelFile { file: "a.json".to_owned() };
        assert_eq!(of("{\"file\": \"a.json\"}"), Ok(ModelChoice::File(file)));
        assert!(
            of("\"llama\"").unwrap_err().contains("unknown variant `llama`, expected one of `gpt-3-175b`")
        );
        assert!(of("{\"path\": \"a\"}").unwrap_err().contains("unknown field `path`, expected `file`"));
        assert!(of("3").unwrap_err().contains("the name of a model, or { file = \"config.json\" }"));
    }
}
