use super::*;

pub(super) fn model(name: &str) -> Architecture {
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
        let whole = Architecture { window: None, mtp_layers: 0, ..*architecture };
        let found = whole.training_flops(4_096) / 1e9;
        assert!(near(found, gflops, 0.005), "{name}: {found} of {gflops}");
    }
}

/// Megatron-Bridge states 2,521 GFLOP per token for Llama 3 405B at 8,192 tokens, 449.5 for 70B and 148.0 for Qwen3
/// 235B at 4,096. On 256 GB200 it has 4,912 tokens/s and 1,276 TFLOP/s for DeepSeek-V3, which predicts two tokens.
#[test]
fn operations_are_those_that_others_count() {
    for (name, sequence, expected) in [
        ("llama-3-405b", 8_192, 2521.0),
        ("llama-3-70b", 8_192, 449.5),
        ("qwen3-235b-a22b", 4_096, 148.0),
        ("deepseek-v3", 4_096, 1_276e3 / 4_912.0),
    ] {
        let found = model(name).training_flops(sequence) / 1e9;
        assert!((found / expected - 1.0).abs() < 0.005, "{name}: {found} of {expected}");
    }
}

/// The further layer of DeepSeek-V3 has latent attention, nine experts of three matrices, a router, a matrix from two
/// vectors to one, and logits; its scores have 2,048 tokens on average.
#[test]
fn a_further_token_takes_a_layer_and_logits() {
    let with = model("deepseek-v3");
    let without = Architecture { mtp_layers: 0, ..with };
    let attention = 7_168 * 1_536 + 1_536 * 128 * 192 + 7_168 * 576 + 512 * 128 * 256 + 128 * 128 * 7_168;
    let experts = 9 * 3 * 7_168 * 2_048 + 7_168 * 256;
    let matrices = attention + experts + 2 * 7_168 * 7_168 + 129_280 * 7_168;
    let more = 6.0 * f64::from(matrices) + 6.0 * 128.0 * (192.0 + 128.0) * 2_048.0;
    let found = with.training_flops(4_096) - without.training_flops(4_096);
    assert!((found - more).abs() < 1e3, "{found}, {more}");
    assert_eq!(with.parameters(), without.parameters());
}

/// In gpt-oss-20b, 12 of 24 layers have a window of 128 tokens. The first 128 of 4,096 tokens attend to 64 on average,
/// the others to 128: 126 together. 6 x 12 x 64 heads x (64 + 64) x (2,048 - 126) fewer operations per token.
#[test]
fn windows_shorten_the_attention_of_their_layers() {
    let with = model("gpt-oss-20b");
    let whole = Architecture { window: None, ..with };
    let fewer = whole.training_flops(4_096) - with.training_flops(4_096);
    assert!((fewer - 6.0 * 12.0 * 64.0 * 128.0 * 1_922.0).abs() < 1.0, "{fewer}");
    assert_eq!((with.context(0, 4_096), with.context(1, 4_096)), (126.0, 2_048.0));
    assert_eq!(with.context(0, 100), 50.0, "a sequence shorter than the window");
    assert_eq!(with.context(0, 128), 64.0, "a sequence as long as the window");
}

/// In a chunk, tokens attend to half of it on average. 20,480 tokens are two chunks of 8,192 and one of 4,096:
/// (2 x 8,192^2 + 4,096^2) / (2 x 20,480). A sliding window of as many tokens is longer.
#[test]
fn chunks_shorten_the_attention_of_their_layers() {
    let scout = model("llama-4-scout");
    let context = |layer, sequence| scout.context(layer, sequence);
    assert_eq!(
        [0, 1, 2, 3, 4, 7, 47].map(|layer| context(layer, 65_536)),
        [4_096.0, 4_096.0, 4_096.0, 32_768.0, 4_096.0, 32_768.0, 32_768.0]
    );
    assert_eq!([8_192, 4_096].map(|sequence| context(0, sequence)), [4_096.0, 2_048.0]);
    assert_eq!(context(0, 20_480), 3_686.4);
    let counted = (0..20_480_u32).map(|token| f64::from(token % 8_192) + 0.5).sum::<f64>() / 20_480.0;
    assert_eq!(context(0, 20_480), counted);
    let slides = Window { kind: WindowKind::Sliding, ..scout.window.unwrap() };
    assert_eq!(Architecture { window: Some(slides), ..scout }.context(0, 65_536), 7_680.0);
}

/// At 8,192 tokens, Llama 4 Scout takes 108.9 x 10^9 operations per token (`oracles/models.py`). At 65,536, one layer of
/// four attends to 32,768 tokens, others still to 4,096: 6 x 12 x 40 heads x (128 + 128) x 28,672 more.
#[test]
fn operations_of_llama_4_grow_in_a_quarter_of_its_layers() {
    for name in ["llama-4-scout", "llama-4-maverick"] {
        let [short, long] = [8_192, 65_536].map(|sequence| model(name).training_flops(sequence));
        assert!((short / 108.9e9 - 1.0).abs() < 0.001, "{name}: {short}");
        assert_eq!(long - short, 6.0 * 12.0 * 40.0 * 256.0 * 28_672.0, "{name}");
    }
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

/// Returns a list of texts in JSON.
pub(super) fn list_of(layers: u32, word: impl Fn(u32) -> &'static str) -> String {
    let words: Vec<&str> = (0..layers).map(word).collect();
    format!("{words:?}")
}

fn sliding(tokens: u32, full_every: u32, full_first: u32) -> Window {
    Window { kind: WindowKind::Sliding, tokens, full_every, full_first }
}

pub(super) const QWEN: &str = r#"{"model_type": "qwen3_moe", "hidden_size": 4096, "num_hidden_layers": 94,
    "intermediate_size": 12288, "moe_intermediate_size": 1536, "num_attention_heads": 64,
    "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 151936, "tie_word_embeddings": false,
    "num_experts": 128, "num_experts_per_tok": 8, "decoder_sparse_step": 1, "sliding_window": null}"#;

pub(super) const DEEPSEEK: &str = r#"{"model_type": "deepseek_v3", "hidden_size": 7168, "num_hidden_layers": 61,
    "intermediate_size": 18432, "moe_intermediate_size": 2048, "num_attention_heads": 128,
    "num_key_value_heads": 128, "vocab_size": 129280, "tie_word_embeddings": false, "n_routed_experts": 256,
    "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 3, "moe_layer_freq": 1,
    "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
    "v_head_dim": 128, "num_nextn_predict_layers": 1}"#;

pub(super) const LLAMA4: &str = r#"{"model_type": "llama4", "text_config": {"model_type": "llama4_text",
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
    let types = list_of(94, |layer| if layer % 2 == 0 { "sliding_attention" } else { "full_attention" });
    let every_second = QWEN
        .replace("\"sliding_window\": null", &format!("\"sliding_window\": 128, \"layer_types\": {types}"));
    assert_eq!(parsed(&every_second).window, Some(sliding(128, 2, 0)));
}

/// The file of Mistral 7B v0.1.
const MISTRAL: &str = r#"{"model_type": "mistral", "hidden_size": 4096, "num_hidden_layers": 32,
    "intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000,
    "sliding_window": 4096, "tie_word_embeddings": false}"#;

/// The file of Gemma 2 27B.
const GEMMA2: &str = r#"{"model_type": "gemma2", "hidden_size": 4608, "num_hidden_layers": 46,
    "intermediate_size": 36864, "num_attention_heads": 32, "num_key_value_heads": 16, "head_dim": 128,
    "vocab_size": 256000, "sliding_window": 4096}"#;

/// The file of Qwen2 7B.
pub(super) const QWEN2: &str = r#"{"model_type": "qwen2", "hidden_size": 3584, "num_hidden_layers": 28,
    "intermediate_size": 18944, "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152064,
    "max_window_layers": 28, "sliding_window": 131072, "tie_word_embeddings": false, "use_sliding_window": false}"#;

pub(super) fn parsed(text: &str) -> Architecture {
    parse_config_json(text, "config.json").unwrap_or_else(|why| panic!("{why}"))
}

/// 16,384 tokens have windows of 4,096: 4,096 - 4,096 / 8 tokens. 7.11 x 10^9 parameters are in products.
#[test]
fn every_layer_of_mistral_has_a_window() {
    let mistral = parsed(MISTRAL);
    assert_eq!((mistral.context(0, 16_384), mistral.context(31, 16_384)), (3_584.0, 3_584.0));
    assert_eq!(mistral.context(0, 4_096), 2_048.0);
    let layer = 2.0 * 4_096.0 * (4_096.0 + 1_024.0) + 3.0 * 4_096.0 * 14_336.0;
    let products = 32.0 * layer + 32_000.0 * 4_096.0;
    let expected = 6.0 * products + 6.0 * 32.0 * 2.0 * 4_096.0 * 3_584.0;
    assert_eq!(mistral.training_flops(16_384), expected);
}

/// Every second layer of Gemma 2 has a window of 4,096 tokens: 3,072 of 8,192 on average.
#[test]
fn windows_of_gemma_2_alternate() {
    let gemma = parsed(GEMMA2);
    assert_eq!(gemma.window, Some(sliding(4_096, 2, 0)));
    assert_eq!([0, 1, 2, 45].map(|layer| gemma.context(layer, 8_192)), [3_072.0, 4_096.0, 3_072.0, 4_096.0]);
    let layer = 2.0 * 4_608.0 * (4_096.0 + 2_048.0) + 3.0 * 4_608.0 * 36_864.0;
    let products = 46.0 * layer + 256_000.0 * 4_608.0;
    let expected = 6.0 * products + 6.0 * 23.0 * 2.0 * 4_096.0 * (3_072.0 + 4_096.0);
    assert_eq!(gemma.training_flops(8_192), expected);
    // Without a pattern, the file of Gemma 3 means every sixth layer.
    let gemma = parsed(&GEMMA.replace(", \"sliding_window_pattern\": 6", ""));
    assert_eq!(gemma.window, Some(sliding(1_024, 6, 0)));
}

#[test]
fn windows_of_qwen_2_begin_behind_the_first_layers() {
    assert_eq!(parsed(QWEN2).window, None);
    let used = QWEN2.replace("\"use_sliding_window\": false", "\"use_sliding_window\": true");
    assert_eq!(parsed(&used).window, None, "28 of 28 layers attend to all tokens");
    assert_eq!(parsed(&used.replace("\"max_window_layers\": 28, ", "")).window, None);
    let late = parsed(&used.replace("\"max_window_layers\": 28", "\"max_window_layers\": 21"));
    assert_eq!([20, 21, 27].map(|layer| late.context(layer, 262_144)), [131_072.0, 98_304.0, 98_304.0]);
    assert_eq!(parsed(&QWEN2.replace(", \"use_sliding_window\": false", "")).window, None);
    // A list says the same.
    let listed = |word: fn(u32) -> &'static str| {
        let list = format!("\"use_sliding_window\": true, \"layer_types\": {}", list_of(28, word));
        parse_config_json(&QWEN2.replace("\"use_sliding_window\": false", &list), "config.json")
    };
    let found = listed(|layer| if layer < 2 { "full_attention" } else { "sliding_attention" }).unwrap();
    assert_eq!(found.window, Some(sliding(131_072, 0, 2)));
    assert_eq!(listed(|_| "full_attention").unwrap().window, None);
    let mixed = listed(|layer| if layer % 2 == 0 { "full_attention" } else { "sliding_attention" });
    let mixed = mixed.unwrap_err().to_string();
    assert!(mixed.contains("layer_types: expected full attention in every n-th layer"), "{mixed}");
    let other = listed(|_| "linear_attention").unwrap_err().to_string();
    let known = "expected full_attention, sliding_attention or chunked_attention";
    assert!(other.contains(&format!("layer_types[0] = \"linear_attention\": {known}")), "{other}");
}

#[test]
fn dense_layers_of_a_model_with_experts_come_first() {
    let of = |list: &str, step: u32| {
        let text = QWEN.replace(
            "\"decoder_sparse_step\": 1",
            &format!("\"decoder_sparse_step\": {step}, \"mlp_only_layers\": {list}"),
        );
        parse_config_json(&text, "config.json").map_err(|why| why.to_string())
    };
    let with_experts = |list: &str, step: u32| {
        let model = of(list, step).unwrap();
        (0..8).filter(|&layer| model.experts_of(layer).is_some()).collect::<Vec<_>>()
    };
    assert_eq!(with_experts("[]", 1), (0..8).collect::<Vec<_>>());
    assert_eq!(with_experts("null", 2), [1, 3, 5, 7]);
    assert_eq!(with_experts("[1, 0]", 1), (2..8).collect::<Vec<_>>());
    assert_eq!(with_experts("[0, 1]", 2), [3, 5, 7]);
    assert_eq!(of("[0, 2]", 2).unwrap().experts, of("[]", 2).unwrap().experts, "they are dense anyway");
    let none = of("[0]", 0).unwrap_err();
    assert!(none.contains("decoder_sparse_step = 0: expected a whole number from 1 to 1024"), "{none}");
    let late = of("[93]", 1).unwrap_err();
    assert!(late.contains("mlp_only_layers = [93]: expected the first layers only"), "{late}");
    let text = of("\"0\"", 1).unwrap_err();
    assert!(text.contains("mlp_only_layers = \"0\": expected a list of whole numbers"), "{text}");
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
    assert!(zero.contains("num_hidden_layers = 0: expected a whole number from 1 to 1024"), "{zero}");
    let many = error(&QWEN.replace("\"num_experts_per_tok\": 8", "\"num_experts_per_tok\": 200"));
    assert!(many.contains("num_experts_per_tok = 200: expected 1 to 128"), "{many}");
    let shared = error(&QWEN.replace("\"num_key_value_heads\": 4", "\"num_key_value_heads\": 5"));
    assert!(
        shared.contains("num_key_value_heads = 5: expected a divisor of the 64 heads, such as 4"),
        "{shared}"
    );
    let huge = error(&QWEN.replace("\"num_hidden_layers\": 94", "\"num_hidden_layers\": 4000000000"));
    assert!(
        huge.contains("num_hidden_layers = 4000000000: expected a whole number from 1 to 1024"),
        "{huge}"
    );
}
