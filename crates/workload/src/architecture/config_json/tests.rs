use serde_json::Value;

use super::{FAMILIES, parse_config_json};
use crate::architecture::tests::{DEEPSEEK, LLAMA4, QWEN, QWEN2, list_of, model, parsed};
use crate::architecture::{Architecture, Embeddings, Window, WindowKind};

/// Returns a file with another value of a field of the text's part. An empty value takes the field away.
fn with(text: &str, field: &str, value: &str) -> String {
    let mut file: Value = serde_json::from_str(text).unwrap();
    let map = match file.get_mut("text_config") {
        Some(part) => part.as_object_mut().unwrap(),
        None => file.as_object_mut().unwrap(),
    };
    match value {
        "" => map.remove(field),
        value => map.insert(field.to_owned(), serde_json::from_str(value).unwrap()),
    };
    file.to_string()
}

/// Returns the error about a file with another value of a field.
fn error(text: &str, field: &str, value: &str) -> String {
    let file = with(text, field, value);
    match parse_config_json(&file, "config.json") {
        Err(why) => why.to_string(),
        Ok(_) => panic!("{field} = {value} is accepted"),
    }
}

const NUMBERS: [(&str, &str); 17] = [
    (QWEN, "hidden_size"),
    (QWEN, "num_hidden_layers"),
    (QWEN, "intermediate_size"),
    (QWEN, "moe_intermediate_size"),
    (QWEN, "num_attention_heads"),
    (QWEN, "num_key_value_heads"),
    (QWEN, "head_dim"),
    (QWEN, "vocab_size"),
    (QWEN, "num_experts"),
    (QWEN, "num_experts_per_tok"),
    (QWEN, "decoder_sparse_step"),
    (QWEN, "sliding_window"),
    (QWEN2, "max_window_layers"),
    (DEEPSEEK, "kv_lora_rank"),
    (DEEPSEEK, "num_nextn_predict_layers"),
    (LLAMA4, "attention_chunk_size"),
    (LLAMA4, "no_rope_layer_interval"),
];

#[test]
fn values_of_another_type_are_refused() {
    for (text, field) in NUMBERS {
        for value in ["\"8\"", "8.0", "-8", "true", "[8]"] {
            let found = error(text, field, value);
            let expected = format!("config.json: {field} = {value}: expected a whole number from ");
            assert!(found.starts_with(&expected), "{found}");
        }
    }
    for (text, field) in [(QWEN, "tie_word_embeddings"), (QWEN2, "use_sliding_window")] {
        for value in ["\"true\"", "1", "0", "[]"] {
            let found = error(text, field, value);
            assert_eq!(found, format!("config.json: {field} = {value}: expected true or false"));
        }
    }
    for (text, field) in [(QWEN, "mlp_only_layers"), (LLAMA4, "moe_layers"), (LLAMA4, "no_rope_layers")] {
        for value in ["3", "\"3\"", "[1.5]", "[-1]"] {
            let found = error(text, field, value);
            assert_eq!(found, format!("config.json: {field} = {value}: expected a list of whole numbers"));
        }
    }
    for value in ["\"full_attention\"", "{}", "[1]"] {
        let found = error(QWEN, "layer_types", value);
        assert_eq!(found, format!("config.json: layer_types = {value}: expected a list of texts"));
    }
    let found = parse_config_json(r#"{"model_type": "llama4", "text_config": 3}"#, "a").unwrap_err();
    assert_eq!(found.to_string(), "a: text_config = 3: expected a JSON object");
}

#[test]
fn ranges_are_those_that_hold() {
    for (text, field, value, range) in [
        (QWEN, "hidden_size", "\"2048\"", "from 1 to 131072"),
        (QWEN, "hidden_size", "131073", "from 1 to 131072"),
        (QWEN, "hidden_size", "null", "from 1 to 131072"),
        (QWEN, "num_key_value_heads", "0", "from 1 to 4096"),
        (QWEN, "moe_intermediate_size", "0", "from 1 to 1048576"),
        (DEEPSEEK, "q_lora_rank", "65537", "from 0 to 65536"),
        (DEEPSEEK, "v_head_dim", "0", "from 1 to 4096"),
        (LLAMA4, "attention_chunk_size", "0", "from 1 to 4294967295"),
        (LLAMA4, "attention_chunk_size", "4294967296", "from 1 to 4294967295"),
        (LLAMA4, "no_rope_layer_interval", "0", "from 1 to 4294967295"),
    ] {
        let expected = format!("config.json: {field} = {value}: expected a whole number {range}");
        assert_eq!(error(text, field, value), expected);
    }
    assert_eq!(parsed(&with(QWEN, "hidden_size", "131072")).hidden, 131_072);
    let found = error(&with(QWEN, "num_experts_per_tok", ""), "num_experts_per_token", "null");
    assert_eq!(found, "config.json: num_experts_per_token = null: expected a whole number from 1 to 4096");
}

#[test]
fn values_that_fit_no_other_are_named_as_in_the_file() {
    let of_16 = with(&with(QWEN, "num_attention_heads", "16"), "num_key_value_heads", "3");
    let found = parse_config_json(&of_16, "a").unwrap_err().to_string();
    assert_eq!(found, "a: num_key_value_heads = 3: expected a divisor of the 16 heads, such as 2");
    let found = error(QWEN2, "intermediate_size", "0");
    assert_eq!(found, "config.json: intermediate_size = 0: expected 1 or more");
    let found = error(LLAMA4, "intermediate_size_mlp", "0");
    assert_eq!(found, "config.json: intermediate_size_mlp = 0: expected 1 or more");
    let zero = with(&with(DEEPSEEK, "qk_nope_head_dim", "0"), "qk_rope_head_dim", "0");
    let found = parse_config_json(&zero, "a").unwrap_err().to_string();
    assert_eq!(found, "a: qk_nope_head_dim + qk_rope_head_dim = 0: expected 1 or more");
    let found = error(DEEPSEEK, "n_shared_experts", "513");
    let allowed = "expected at most 512 with moe_intermediate_size = 2048";
    assert_eq!(found, format!("config.json: n_shared_experts = 513: {allowed}"));
    let found = error(QWEN, "mlp_only_layers", "[94]");
    assert_eq!(found, "config.json: mlp_only_layers = [94]: expected numbers of layers, from 0 to 93");
    let wide = with(&with(QWEN, "head_dim", ""), "num_attention_heads", "1");
    let found = parse_config_json(&with(&wide, "hidden_size", "8192"), "a").unwrap_err().to_string();
    assert!(found.contains("hidden_size = 8192 is no multiple of num_attention_heads = 1 by 1 to 4096"));
}

#[test]
fn fields_that_are_null_are_absent() {
    let nothing = |text: &str, field: &str| assert_eq!(parsed(&with(text, field, "null")), parsed(text));
    for field in ["mlp_only_layers", "layer_types", "sliding_window", "rope_scaling", "tie_word_embeddings"] {
        nothing(QWEN, field);
    }
    nothing(QWEN2, "head_dim");
    nothing(LLAMA4, "no_rope_layers");
    nothing(LLAMA4, "moe_layers");
    for (field, value) in [("mlp_only_layers", "[]"), ("rope_scaling", r#"{"type": "yarn", "factor": 4.0}"#)]
    {
        assert_eq!(parsed(&with(QWEN, field, value)), parsed(QWEN));
    }
    assert_eq!(parsed(&with(QWEN, "tie_word_embeddings", "true")).embeddings, Embeddings::Tied);
}

#[test]
fn lists_have_an_entry_for_each_layer() {
    for layers in [0, 93, 95] {
        let list = list_of(layers, |_| "full_attention");
        let found = error(QWEN, "layer_types", &list);
        let expected = "expected 94, one for each of num_hidden_layers";
        assert_eq!(found, format!("config.json: layer_types has {layers} entries: {expected}"));
    }
    let found = error(LLAMA4, "no_rope_layers", "[1, 1, 1, 0]");
    assert!(found.contains("no_rope_layers has 4 entries: expected 48 or more"), "{found}");
    let near = error(QWEN, "layer_types", &list_of(94, |_| "sliding_atention"));
    assert!(near.contains("did you mean \"sliding_attention\"?"), "{near}");
}

#[test]
fn listed_windows_need_their_size() {
    let slides = list_of(94, |_| "sliding_attention");
    let found = error(QWEN, "layer_types", &slides);
    let expected = "sliding_window = null: expected a whole number of 1 or more, since layer_types has sliding_attention";
    assert!(found.contains(expected), "{found}");
    let chunks = list_of(94, |_| "chunked_attention");
    let found = error(QWEN, "layer_types", &chunks);
    assert!(found.contains("it has no field attention_chunk_size: expected a whole number"), "{found}");
    let unused = error(QWEN2, "layer_types", &list_of(28, |_| "sliding_attention"));
    assert!(unused.contains("use_sliding_window = false: expected true, since layer_types has"), "{unused}");
    let both = list_of(94, |layer| if layer % 2 == 0 { "sliding_attention" } else { "chunked_attention" });
    let found = error(QWEN, "layer_types", &both);
    assert!(
        found.contains("expected sliding_attention or chunked_attention beside full_attention"),
        "{found}"
    );
}

fn chunked(tokens: u32, full_every: u32) -> Option<Window> {
    Some(Window { kind: WindowKind::Chunked, tokens, full_every, full_first: 0 })
}

/// Every fourth layer of Llama 4 has no positions and attends to the whole sequence.
#[test]
fn chunks_of_llama_4_are_found_in_each_form() {
    let window = |text: &str| parsed(text).window;
    assert_eq!(window(LLAMA4), chunked(8_192, 4));
    assert_eq!(model("llama-4-scout").window, chunked(8_192, 4));
    let sized = with(LLAMA4, "attention_chunk_size", "4096");
    assert_eq!(window(&sized), chunked(4_096, 4));
    assert_eq!(window(&with(LLAMA4, "attention_chunk_size", "null")), None);
    assert_eq!(window(&with(&sized, "no_rope_layer_interval", "6")), chunked(4_096, 6));
    assert_eq!(window(&with(&sized, "no_rope_layer_interval", "1")), None, "all attend to all");
    let positions = |layers: u32, every: u32| {
        let list: Vec<u32> = (1..=layers).map(|layer| u32::from(!layer.is_multiple_of(every))).collect();
        with(&sized, "no_rope_layers", &format!("{list:?}"))
    };
    assert_eq!([48, 50].map(|layers| window(&positions(layers, 3))), [chunked(4_096, 3); 2]);
    assert_eq!(window(&with(&sized, "no_rope_layers", "[]")), chunked(4_096, 4));
    let types = list_of(48, |layer| if layer % 2 == 1 { "full_attention" } else { "chunked_attention" });
    assert_eq!(window(&with(LLAMA4, "layer_types", &types)), chunked(8_192, 2));
    assert_eq!(window(&with(&sized, "layer_types", &list_of(48, |_| "full_attention"))), None);
    let found = error(LLAMA4, "no_rope_layers", &format!("{:?}", [2; 48]));
    assert!(found.contains("expected 0 or 1 for each layer"), "{found}");
}

#[test]
fn layers_of_llama_4_with_experts_may_be_listed() {
    let list = |first: u32, every: usize| {
        let layers: Vec<u32> = (first..48).step_by(every).collect();
        with(LLAMA4, "moe_layers", &format!("{layers:?}"))
    };
    assert_eq!(parsed(&list(1, 2)), parsed(LLAMA4));
    assert_eq!(Architecture { sequence: 4_096, ..parsed(&list(1, 2)) }, model("llama-4-maverick"));
    let layers = |text: &str| {
        let found = parsed(text);
        (0..48).filter(|&layer| found.experts_of(layer).is_some()).collect::<Vec<u32>>()
    };
    assert_eq!(layers(&list(0, 1)), (0..48).collect::<Vec<_>>());
    assert_eq!(layers(&list(5, 3)), (5..48).step_by(3).collect::<Vec<_>>());
    let found = error(LLAMA4, "moe_layers", "[0, 1, 5]");
    assert!(found.contains("moe_layers = [0,1,5]: expected every n-th layer, from one on"), "{found}");
}

/// The field that takes a file names the architectures, and no others are read.
#[test]
fn architectures_that_are_read_are_documented() {
    let schema = schemars::schema_for!(crate::kinds::Transformer);
    let text = schema.pointer("/properties/model/description").unwrap().as_str().unwrap().replace('\n', " ");
    let named = text.split("a `model_type` of ").nth(1).unwrap().trim_end_matches('.').replace(" or ", ", ");
    let known: Vec<&str> = FAMILIES.iter().map(|(name, _)| *name).collect();
    assert_eq!(named, known.join(", "));
}
