use super::*;

fn model(name: &str) -> Architecture {
    published().into_iter().find(|(known, _)| known == name).expect("it is in the table").1
}

/// Published totals and active parameters in 10^9, bytes of keys and values of a token in BF16, and 10^9 operations
/// of training per token at 4,096 tokens with whole attention, from `oracles/models.py`.
const EXPECTED: &[(&str, f64, f64, u64, f64)] = &[
    ("gpt-3-175b", 175.0, 174.56, 4_718_592, 1076.4),
    ("llama-3-8b", 8.03, 8.03, 131_072, 48.2),
    ("llama-3-70b", 70.6, 70.55, 327_680, 433.1),
    ("llama-3-405b", 405.9, 405.85, 516_096, 2473.2),
    ("llama-4-scout", 109.0, 17.17, 196_608, 102.9),
    ("llama-4-maverick", 400.0, 17.18, 196_608, 102.9),
    ("qwen3-8b", 8.2, 8.19, 147_456, 49.0),
    ("qwen3-32b", 32.8, 32.76, 262_144, 204.8),
    ("qwen3-30b-a3b", 30.5, 3.35, 98_304, 23.1),
    ("qwen3-235b-a22b", 235.0, 22.19, 192_512, 148.3),
    ("qwen3-coder-480b", 480.0, 35.47, 253_952, 226.0),
    ("deepseek-v3", 671.0, 37.55, 70_272, 250.4),
    ("kimi-k2", 1043.0, 32.86, 70_272, 205.5),
    ("gpt-oss-20b", 20.9, 4.19, 49_152, 24.1),
    ("gpt-oss-120b", 116.8, 5.71, 73_728, 34.4),
    ("glm-4.5-air", 106.0, 13.42, 188_416, 90.7),
    ("glm-4.5", 355.0, 33.63, 376_832, 224.9),
    ("minimax-m2", 230.0, 11.03, 253_952, 71.9),
    ("mixtral-8x7b", 46.7, 12.88, 131_072, 79.7),
    ("mixtral-8x22b", 141.0, 39.16, 229_376, 242.2),
    ("nemotron-4-340b", 340.0, 341.02, 589_824, 2061.3),
    ("mistral-large-2", 123.0, 122.61, 360_448, 759.8),
    ("gemma-3-27b", 27.0, 27.01, 507_904, 168.3),
];

#[test]
fn published_models_have_the_parameters_and_operations_of_the_oracle() {
    let table = published();
    assert_eq!(table.len(), EXPECTED.len());
    for ((name, architecture), &(expected, total, active, kv_bytes, gflops)) in table.iter().zip(EXPECTED) {
        assert_eq!(name, expected);
        assert_eq!(architecture.problem(), None, "{name}");
        let near = |found: f64, wanted: f64, part: f64| (found / wanted - 1.0).abs() < part;
        let found = architecture.parameters() as f64 / 1e9;
        assert!(near(found, total, 0.02), "{name}: {found} of {total}");
        let found = architecture.active_parameters() as f64 / 1e9;
        assert!(near(found, active, 0.002), "{name}: {found} of {active}");
        assert_eq!(2 * architecture.cached_values(), kv_bytes, "{name}");
        let whole = Architecture { window: None, ..*architecture };
        let found = whole.training_flops(4_096) / 1e9;
        assert!(near(found, gflops, 0.005), "{name}: {found} of {gflops}");
    }
}

/// Megatron-Bridge states 2,521 GFLOP per token for Llama 3 405B at 8,192 tokens, 449.5 for 70B and 148.0 for Qwen3
/// 235B at 4,096.
#[test]
fn operations_are_those_that_others_count() {
    for (name, sequence, expected) in
        [("llama-3-405b", 8_192, 2521.0), ("llama-3-70b", 8_192, 449.5), ("qwen3-235b-a22b", 4_096, 148.0)]
    {
        let found = model(name).training_flops(sequence) / 1e9;
        assert!((found / expected - 1.0).abs() < 0.005, "{name}: {found} of {expected}");
    }
}

/// In gpt-oss-20b, 12 of 24 layers have a window of 128 tokens: 6 x 12 x 64 heads x (64 + 64) x (2,048 - 128) fewer
/// operations per token at 4,096 tokens.
#[test]
fn windows_shorten_the_attention_of_their_layers() {
    let with = model("gpt-oss-20b");
    let whole = Architecture { window: None, ..with };
    let fewer = whole.training_flops(4_096) - with.training_flops(4_096);
    assert!((fewer - 6.0 * 12.0 * 64.0 * 128.0 * 1_920.0).abs() < 1.0, "{fewer}");
    assert_eq!((with.context(0, 4_096), with.context(1, 4_096)), (128.0, 2_048.0));
    assert_eq!(with.context(0, 100), 50.0, "a sequence shorter than the window");
}

#[test]
fn layers_with_experts_are_those_of_the_model() {
    let layers = |name| {
        let model = model(name);
        (0..model.layers).filter(|&layer| model.experts_of(layer).is_some()).collect::<Vec<_>>()
    };
    assert_eq!(layers("deepseek-v3"), (3..61).collect::<Vec<_>>());
    assert_eq!(layers("llama-4-maverick"), (1..48).step_by(2).collect::<Vec<_>>());
    assert_eq!(layers("llama-3-8b"), Vec::<u32>::new());
    assert_eq!(model("llama-4-maverick").expert_layers(), 24);
}

const QWEN: &str = r#"{"model_type": "qwen3_moe", "hidden_size": 4096, "num_hidden_layers": 94,
    "intermediate_size": 12288, "moe_intermediate_size": 1536, "num_attention_heads": 64,
    "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 151936, "tie_word_embeddings": false,
    "num_experts": 128, "num_experts_per_tok": 8, "decoder_sparse_step": 1, "sliding_window": null}"#;

const DEEPSEEK: &str = r#"{"model_type": "deepseek_v3", "hidden_size": 7168, "num_hidden_layers": 61,
    "intermediate_size": 18432, "moe_intermediate_size": 2048, "num_attention_heads": 128,
    "num_key_value_heads": 128, "vocab_size": 129280, "tie_word_embeddings": false, "n_routed_experts": 256,
    "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 3, "moe_layer_freq": 1,
    "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
    "v_head_dim": 128, "num_nextn_predict_layers": 1}"#;

const LLAMA4: &str = r#"{"model_type": "llama4", "text_config": {"model_type": "llama4_text",
    "hidden_size": 5120, "num_hidden_layers": 48, "intermediate_size": 8192, "intermediate_size_mlp": 16384,
    "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 202048,
    "num_local_experts": 128, "num_experts_per_tok": 1, "interleave_moe_layer_step": 2}}"#;

const GEMMA: &str = r#"{"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", "hidden_size": 5376,
    "num_hidden_layers": 62, "intermediate_size": 21504, "num_attention_heads": 32, "num_key_value_heads": 16,
    "head_dim": 128, "vocab_size": 262208, "sliding_window": 1024, "sliding_window_pattern": 6}}"#;

#[test]
fn files_give_the_architectures_of_the_table() {
    for (text, name) in [
        (QWEN, "qwen3-235b-a22b"),
        (DEEPSEEK, "deepseek-v3"),
        (LLAMA4, "llama-4-maverick"),
        (GEMMA, "gemma-3-27b"),
    ] {
        let found = parse_config_json(text, "config.json").unwrap_or_else(|why| panic!("{name}: {why}"));
        assert_eq!(Architecture { sequence: 4_096, ..found }, model(name));
    }
    // Plain feed-forward parts, and as many values of heads as of tokens.
    let text = r#"{"model_type": "nemotron", "hidden_size": 18432, "num_hidden_layers": 96,
        "intermediate_size": 73728, "num_attention_heads": 96, "num_key_value_heads": 8, "vocab_size": 256000}"#;
    let found = parse_config_json(text, "config.json").unwrap();
    assert_eq!(Architecture { sequence: 4_096, ..found }, model("nemotron-4-340b"));
    let every_second = QWEN
        .replace("\"sliding_window\": null", "\"sliding_window\": 128, \"layer_types\": [\"sliding_attention\", \"full_attention\", \"sliding_attention\", \"full_attention\"]");
    let found = parse_config_json(&every_second, "config.json").unwrap();
    assert_eq!(found.window, Some(Window { tokens: 128, full_every: 2 }));
}

#[test]
fn mistakes_in_files_are_named() {
    let error = |text: &str| parse_config_json(text, "config.json").unwrap_err().to_string();
    assert!(error("{").starts_with("config.json:1: it is not JSON"), "{}", error("{"));
    assert!(error("[]").contains("expected a JSON object"));
    assert!(error("{}").contains("no field model_type"));
    let unknown = error(&QWEN.replace("qwen3_moe", "qwen3_mo"));
    assert!(unknown.contains("model_type = \"qwen3_mo\": expected one of llama"), "{unknown}");
    assert!(unknown.contains("qwen3_moe\"?") || unknown.contains("\"qwen3_moe\""), "{unknown}");
    let missing = error(&QWEN.replace("\"hidden_size\"", "\"hiden_size\""));
    assert!(missing.contains("no field hidden_size") && missing.contains("hiden_size"), "{missing}");
    let negative = error(&QWEN.replace("\"vocab_size\": 151936", "\"vocab_size\": -1"));
    assert!(negative.contains("vocab_size = -1: expected a whole number"), "{negative}");
    let zero = error(&QWEN.replace("\"num_hidden_layers\": 94", "\"num_hidden_layers\": 0"));
    assert!(zero.contains("layers = 0: expected 1 or more"), "{zero}");
    let many = error(&QWEN.replace("\"num_experts_per_tok\": 8", "\"num_experts_per_tok\": 200"));
    assert!(many.contains("top_k = 200: expected 1 to 128"), "{many}");
    let shared = error(&QWEN.replace("\"num_key_value_heads\": 4", "\"num_key_value_heads\": 5"));
    assert!(shared.contains("kv_heads = 5: expected a divisor of the 64 heads"), "{shared}");
    let huge = error(&QWEN.replace("\"num_hidden_layers\": 94", "\"num_hidden_layers\": 4000000000"));
    assert!(huge.contains("expected at most 1024"), "{huge}");
}
