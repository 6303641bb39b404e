use proptest::prelude::*;

use super::*;

const MICRO: &str = include_str!("../../../../../tests/data/simai/micro-allreduce-8gpu.txt");
const HEAD: &str = "HYBRID_TRANSFORMER model_parallel_NPU_group: 2 ep: 1 pp: 1 all_gpus: 4\n";

#[test]
fn the_small_file_of_simai() {
    let file = parse_simai(MICRO, "micro").unwrap();
    assert_eq!(
        (file.tp, file.ep, file.pp, file.ga, file.all_gpus, file.layers.len()),
        (Some(8), Some(1), Some(1), Some(1), Some(8), 2)
    );
    let forward = &file.layers[1].forward;
    assert_eq!(forward.compute, Duration::from_us(556));
    let comm = SimAiComm { operation: Operation::AllReduce, over: Span::Tp, bytes: 67_108_864 };
    assert_eq!(forward.comm, Some(comm));
    assert_eq!(file.layers[1].weight_grad, SimAiPhase { compute: Duration::from_ns(1), comm: None });
}

#[test]
fn the_name_has_the_communicating_group() {
    let text = format!("{HEAD}1\nmoe -1 5 ALLTOALL_EP 10 6 ALLGATHER 20 7 REDUCESCATTER_DP_EP 30 8\n");
    let layer = parse_simai(&text, "f").unwrap().layers.remove(0);
    let of = |phase: SimAiPhase| phase.comm.map(|c| (c.operation, c.over, c.bytes)).unwrap();
    assert_eq!(of(layer.forward), (Operation::AllToAll, Span::Ep, 10));
    assert_eq!(of(layer.input_grad), (Operation::AllGather, Span::Tp, 20));
    assert_eq!(of(layer.weight_grad), (Operation::ReduceScatter, Span::DpEp, 30));
    assert_eq!(layer.update, Duration::from_ns(8));
}

#[test]
fn errors_name_line_field_value_and_what_is_allowed() {
    let error = |text: &str| parse_simai(text, "f").unwrap_err().to_string();
    let body = |layer: &str| error(&format!("{HEAD}1\n{layer}\n"));
    assert!(error("").starts_with("f: empty"));
    assert!(
        error("HYBRID_TRANSFORMERS\n")
            .ends_with("MICRO, DISTRIBUTED_INFERENCE; did you mean \"HYBRID_TRANSFORMER\"?")
    );
    assert_eq!(error("HYBRID_TRANSFORMER epp: 3\n"), "f:1: unknown setting \"epp\"; did you mean \"ep\"?");
    assert_eq!(error("HYBRID_TRANSFORMER ep: x\n"), "f:1: ep = x: expected a whole number");
    assert_eq!(error("HYBRID_TRANSFORMER ep: 0\n"), "f:1: ep = 0: expected 1 or more");
    assert_eq!(error(&format!("{HEAD}two\n")), "f:2: number of layers = two: expected a whole number");
    assert_eq!(
        error(&format!("{HEAD}2\na -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n")),
        "f:3: ends after 1 of 2 layers; truncated?"
    );
    assert!(body("a -1 1 NONE 0").starts_with("f:3: 5 columns; a layer has 12: name dep fwd_ns"));
    assert!(
        body("a -1 1 ALLSUM 0 1 NONE 0 1 NONE 0 1")
            .starts_with("f:3: fwd_comm = ALLSUM: expected NONE, ALLREDUCE")
    );
    assert_eq!(
        body("a -1 1 NONE 0 1 NONE -4 1 NONE 0 1"),
        "f:3: ig_bytes = -4: expected a whole number at or above 0"
    );
    let more = "a -1 1 NONE 0 1 NONE 0 1 NONE 0 1";
    assert_eq!(body(&format!("{more}\n{more}")), "f:4: a further layer; line 2 announces 1");
}

#[test]
fn errors_of_policies_name_what_is_allowed() {
    let error = |text: &str| parse_simai(text, "f").unwrap_err().to_string();
    let layer = "l -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n";
    let again = |settings: &str| {
        error(&format!("HYBRID_TRANSFORMER_FWD_IN_BCKWD {settings}\n4\n{}", layer.repeat(4)))
    };
    assert_eq!(again("checkpoints: 2 1"), "f:1: checkpoints: ends after 1 of 2 layers");
    assert_eq!(again("checkpoints: 1 4"), "f:1: checkpoints has layer 4: layers are 0 to 3");
    assert_eq!(
        again("checkpoints: 1 2 checkpoint_initiates: 1 2"),
        "f:1: checkpoint_initiates has layer 2: expected a checkpoint before it"
    );
    assert_eq!(
        again("checkpoints: 1 0 checkpoint_initiates: 2 1 3"),
        "f:1: checkpoint_initiates has layers 1 and 3: expected a checkpoint at 1 or between them, not 0"
    );
    assert!(
        error(&format!("HYBRID_TRANSFORMER checkpoints: 1 0\n1\n{layer}"))
            .contains("checkpoints are of HYBRID_TRANSFORMER_FWD_IN_BCKWD, not of HYBRID_TRANSFORMER")
    );
    assert_eq!(error("DATA pp: 2\n1\n"), "f:1: pp is of HYBRID_TRANSFORMER, not of DATA");
    assert!(error("HYBRID_DLRM\n1\n").contains("DLRM_LAST_BOTTOM_LAYER is missing"));
    assert_eq!(
        error(&format!("HYBRID_DLRM 1\n1\n{layer}")),
        "f:1: DLRM_LAST_BOTTOM_LAYER = 1: layers are 0 to 0"
    );
    let experts = layer.replacen("NONE 0", "ALLTOALL_EP 4", 1);
    assert!(error(&format!("MODEL\n1\n{experts}")).contains("MODEL has no expert-parallel groups"));
    let customized = |policy: &str| error(&format!("HYBRID_CUSTOMIZED\n1\n{} {policy}\n", layer.trim()));
    assert!(customized("").contains("12 columns; a layer of HYBRID_CUSTOMIZED has 13"));
    assert!(customized("MODELS").contains(
        "policy = MODELS: expected DATA, MODEL, HYBRID_DATA_MODEL, HYBRID_MODEL_DATA; did you mean \"MODEL\"?"
    ));
}

/// The lists of gpt3.txt in the exercises of ASTRA-sim.
#[test]
fn forward_passes_are_done_again_from_the_last_checkpoint() {
    let layers = "l -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n".repeat(28);
    let head = "HYBRID_TRANSFORMER_FWD_IN_BCKWD\tmodel_parallel_NPU_group: 16 checkpoints: 3 0 9 18 checkpoint_initiates: 3 26 17 8";
    let file = parse_simai(&format!("{head}\n28\t\t\n{layers}"), "gpt3.txt").unwrap();
    let again = [(0, 8), (9, 17), (18, 26)].map(|(checkpoint, before)| Recompute { checkpoint, before });
    assert_eq!((file.tp, file.recompute.as_slice()), (Some(16), &again[..]));
}

#[test]
fn omitted_collectives_are_reported() {
    let text = "DATA\n1\na -1 1 ALLGATHER 8 1 NONE 0 1 ALLREDUCE 8 1\n";
    let file = parse_simai(text, "f").unwrap();
    let note = "1 collectives are among nobody under DATA, as in ASTRA-sim; they are left out (the first: line 3, fwd_comm)";
    assert_eq!(file.notes, [note]);
    let layer = &file.layers[0];
    assert_eq!((layer.forward.comm, layer.weight_grad.comm.map(|comm| comm.over)), (None, Some(Span::AllDp)));
    let reordered = parse_simai(&text.replace("DATA", "DATA_REORDER"), "f").unwrap();
    assert!(reordered.notes[0].starts_with("DATA_REORDER is run as DATA"));
}

/// Each setting of the first line changes the result or is rejected, except the one that does not affect the
/// work of a GPU.
#[test]
fn no_setting_is_ignored_in_silence() {
    let layers = "l -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n".repeat(4);
    let read = |policy: &str, setting: &str| {
        parse_simai(&format!("{policy} {setting}\n4\n{layers}"), "f").map_err(|error| error.to_string())
    };
    for key in policy::KEYS.into_iter().filter(|&key| key != "vpp") {
        for policy in ["HYBRID_TRANSFORMER_FWD_IN_BCKWD", "DATA", "HYBRID_DLRM 1"] {
            let more = if key == "checkpoint_initiates" { "checkpoints: 1 0 " } else { "" };
            let value = if key.starts_with("checkpoint") { "1 2" } else { "2" };
            let (with, without) = (read(policy, &format!("{more}{key}: {value}")), read(policy, more));
            let only_marks = key == "checkpoints" && policy.ends_with("BCKWD");
            assert!(with.is_err() || with != without || only_marks, "{key} of {policy} is ignored");
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_answered(text in "([A-Z_]{0,12} ?[0-9a-z:. -]{0,20}\n){0,5}") {
        for policy in ["DATA", "MODEL", "HYBRID_CUSTOMIZED", "HYBRID_DLRM 0", "MICRO"] {
            let _ = parse_simai(&format!("{policy}\n{text}"), "any");
        }
        let _ = parse_simai(&text, "any");
        let _ = parse_simai(&format!("{HEAD}{text}"), "any");
    }
}
