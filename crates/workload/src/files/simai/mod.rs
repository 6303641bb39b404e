//! Workload files of SimAI, in the layout of ASTRA-sim 1.0 that AICB writes: a line of settings, the number of layers, and a
//! layer a line.

use pathweave_units::{Duration, did_you_mean, nearest};

use crate::collective::Operation;
use crate::error::FileError;

/// Policies whose order of work is known: forward through all layers, then backward.
const POLICIES: [&str; 2] = ["HYBRID_TRANSFORMER", "HYBRID_TRANSFORMER_FWD_IN_BCKWD"];
/// Columns of a layer.
const COLUMNS: [&str; 12] = [
    "name",
    "dep",
    "fwd_ns",
    "fwd_comm",
    "fwd_bytes",
    "ig_ns",
    "ig_comm",
    "ig_bytes",
    "wg_ns",
    "wg_comm",
    "wg_bytes",
    "wg_update_ns",
];

/// A workload file of SimAI.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SimAiFile {
    /// GPUs of a tensor-parallel group.
    pub tp: u32,
    /// GPUs of an expert-parallel group.
    pub ep: u32,
    /// Stages of the pipeline.
    pub pp: u32,
    /// Microbatches of an iteration.
    pub ga: u32,
    /// GPUs there are.
    pub all_gpus: u32,
    /// What a GPU passes to the next stage for a microbatch, bytes.
    pub pp_comm: u64,
    /// Layers whose forward pass is done again in the backward pass.
    pub checkpoints: u32,
    /// The layers, those of every microbatch one after the other.
    pub layers: Vec<SimAiLayer>,
}

/// A layer: three phases.
#[derive(Clone, Debug, PartialEq)]
pub struct SimAiLayer {
    /// Its line, from 1.
    pub line: u64,
    /// Its name.
    pub name: String,
    /// Forward.
    pub forward: SimAiPhase,
    /// Gradients of its input.
    pub input_grad: SimAiPhase,
    /// Gradients of its weights.
    pub weight_grad: SimAiPhase,
    /// Time to update the weights once their gradients are reduced.
    pub update: Duration,
}

/// A computation, and the communication behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimAiPhase {
    /// How long the computation takes.
    pub compute: Duration,
    /// What is communicated.
    pub comm: Option<SimAiComm>,
}

/// A collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimAiComm {
    /// Which.
    pub operation: Operation,
    /// Among whom.
    pub over: Span,
    /// Its size as nccl-tests count it, bytes.
    pub bytes: u64,
}

/// Which GPUs communicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Span {
    /// Tensor-parallel.
    Tp,
    /// Data-parallel.
    Dp,
    /// Expert-parallel.
    Ep,
    /// Data-parallel, of the same experts.
    DpEp,
}

/// Parses a workload file of SimAI; `file` is its name in errors.
pub fn parse_simai(text: &str, file: &str) -> Result<SimAiFile, FileError> {
    let mut lines = (1u64..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let Some((line, head)) = lines.next() else {
        return Err(FileError::whole(
            file,
            "empty; expected a policy and settings, the number of layers, and the layers",
        ));
    };
    let mut found = parse_head(head).map_err(|what| FileError::at(file, line, what))?;
    let Some((line, count)) = lines.next() else {
        return Err(FileError::at(file, line, "ends where the number of layers is expected"));
    };
    let announced: u64 = count.trim().parse().map_err(|_| {
        let shown: String = count.trim().chars().take(40).collect();
        FileError::at(file, line, format!("number of layers = {shown}: expected a whole number"))
    })?;
    let mut end = line;
    while (found.layers.len() as u64) < announced {
        let Some((line, content)) = lines.next() else {
            let n = found.layers.len();
            return Err(FileError::at(
                file,
                end,
                format!("ends after {n} of {announced} layers; truncated?"),
            ));
        };
        found.layers.push(parse_layer(line, content).map_err(|what| FileError::at(file, line, what))?);
        end = line;
    }
    match lines.next() {
        Some((line, _)) => {
            Err(FileError::at(file, line, format!("a further layer; line 2 announces {announced}")))
        }
        None => Ok(found),
    }
}

fn parse_head(head: &str) -> Result<SimAiFile, String> {
    let mut words = head.split_whitespace();
    let policy = words.next().unwrap_or_default();
    if !POLICIES.contains(&policy) {
        let shown: String = policy.chars().take(60).collect();
        return Err(format!("policy = {shown}: expected {}", POLICIES.join(" or ")));
    }
    let mut found = SimAiFile { ga: 1, ..SimAiFile::default() };
    let mut given = Vec::new();
    while let Some(word) = words.next() {
        let key = word.trim_end_matches(':');
        let value = words.next().ok_or_else(|| format!("{key}: its value is missing"))?;
        let wrong = || format!("{key} = {value}: expected a whole number");
        let whole = || value.parse::<u32>().map_err(|_| wrong());
        match key {
            "model_parallel_NPU_group" => found.tp = whole()?,
            "ep" => found.ep = whole()?,
            "pp" => found.pp = whole()?,
            "ga" => found.ga = whole()?,
            "all_gpus" => found.all_gpus = whole()?,
            "checkpoints" => found.checkpoints = whole()?,
            "pp_comm" => found.pp_comm = value.parse().map_err(|_| wrong())?,
            // Virtual stages do not change what a GPU does in all; initiates say where checkpoints are.
            "vpp" | "checkpoint_initiates" => _ = whole()?,
            other => {
                const KNOWN: [&str; 9] = [
                    "model_parallel_NPU_group",
                    "ep",
                    "pp",
                    "vpp",
                    "ga",
                    "all_gpus",
                    "checkpoints",
                    "checkpoint_initiates",
                    "pp_comm",
                ];
                let shown: String = other.chars().take(40).collect();
                let hint = did_you_mean(nearest(&shown, KNOWN));
                return Err(format!("unknown setting \"{shown}\"{hint}"));
            }
        }
        given.push(key);
    }
    for (key, value) in [
        ("model_parallel_NPU_group", found.tp),
        ("ep", found.ep),
        ("pp", found.pp),
        ("all_gpus", found.all_gpus),
    ] {
        if value == 0 {
            let what = if given.contains(&key) { "= 0: expected 1 or more" } else { "is missing" };
            return Err(format!("{key} {what}"));
        }
    }
    if found.checkpoints > 0 {
        return Err(format!(
            "checkpoints = {}: layers computed again in the backward pass are not supported; expected 0",
            found.checkpoints
        ));
    }
    Ok(found)
}

fn parse_layer(line: u64, content: &str) -> Result<SimAiLayer, String> {
    let words: Vec<&str> = content.split_whitespace().take(14).collect();
    if words.len() != COLUMNS.len() {
        return Err(format!("{} columns; a layer has 12: {}", words.len(), COLUMNS.join(" ")));
    }
    let number = |column: usize| {
        let (name, value) = (COLUMNS[column], words[column]);
        value.parse::<u64>().map_err(|_| format!("{name} = {value}: expected a whole number at or above 0"))
    };
    let time = |column: usize| {
        let ns = number(column)?;
        let ps = ns.checked_mul(1000).ok_or_else(|| format!("{} = {ns}: too long", COLUMNS[column]))?;
        Ok::<_, String>(Duration::from_ps(ps))
    };
    let phase = |first: usize, over: Span| {
        let comm = comm(words[first + 1], over).map_err(|what| format!("{} = {what}", COLUMNS[first + 1]))?;
        let bytes = number(first + 2)?;
        let comm = comm.filter(|_| bytes > 0).map(|(operation, over)| SimAiComm { operation, over, bytes });
        Ok::<_, String>(SimAiPhase { compute: time(first)?, comm })
    };
    Ok(SimAiLayer {
        line,
        name: words[0].chars().take(60).collect(),
        forward: phase(2, Span::Tp)?,
        input_grad: phase(5, Span::Tp)?,
        weight_grad: phase(8, Span::Dp)?,
        update: time(11)?,
    })
}

/// A collective by its name; without a suffix it is among those of `over`.
fn comm(word: &str, over: Span) -> Result<Option<(Operation, Span)>, String> {
    let (name, span) = if let Some(name) = word.strip_suffix("_DP_EP") {
        (name, Span::DpEp)
    } else if let Some(name) = word.strip_suffix("_EP") {
        (name, Span::Ep)
    } else {
        (word, over)
    };
    let operation = match name {
        "NONE" => return Ok(None),
        "ALLREDUCE" => Operation::AllReduce,
        "ALLGATHER" => Operation::AllGather,
        "REDUCESCATTER" => Operation::ReduceScatter,
        "ALLTOALL" => Operation::AllToAll,
        _ => {
            let shown: String = word.chars().take(40).collect();
            let known = "NONE, ALLREDUCE, ALLGATHER, REDUCESCATTER or ALLTOALL, with _EP or _DP_EP behind it";
            return Err(format!("{shown}: expected {known}"));
        }
    };
    Ok(Some((operation, span)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MICRO: &str = include_str!("../../../../tests/data/simai/micro-allreduce-8gpu.txt");
    const HEAD: &str = "HYBRID_TRANSFORMER model_parallel_NPU_group: 2 ep: 1 pp: 1 all_gpus: 4\n";

    #[test]
    fn the_small_file_of_simai() {
        let file = parse_simai(MICRO, "micro").unwrap();
        assert_eq!(
            (file.tp, file.ep, file.pp, file.ga, file.all_gpus, file.layers.len()),
            (8, 1, 1, 1, 8, 2)
        );
        let forward = &file.layers[1].forward;
        assert_eq!(forward.compute, Duration::from_us(556));
        let comm = SimAiComm { operation: Operation::AllReduce, over: Span::Tp, bytes: 67_108_864 };
        assert_eq!(forward.comm, Some(comm));
        assert_eq!(file.layers[1].weight_grad, SimAiPhase { compute: Duration::from_ns(1), comm: None });
    }

    #[test]
    fn who_communicates_is_in_the_name() {
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
        assert_eq!(
            error("DATA\n"),
            "f:1: policy = DATA: expected HYBRID_TRANSFORMER or HYBRID_TRANSFORMER_FWD_IN_BCKWD"
        );
        assert_eq!(
            error("HYBRID_TRANSFORMER epp: 3\n"),
            "f:1: unknown setting \"epp\"; did you mean \"ep\"?"
        );
        assert_eq!(error("HYBRID_TRANSFORMER ep: x\n"), "f:1: ep = x: expected a whole number");
        assert_eq!(error("HYBRID_TRANSFORMER ep: 1\n"), "f:1: model_parallel_NPU_group is missing");
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
        assert!(
            error(&HEAD.replace("all_gpus", "checkpoints: 2 all_gpus"))
                .contains("checkpoints = 2: layers computed again")
        );
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in "([A-Z_]{0,12} ?[0-9a-z:. -]{0,20}\n){0,5}") {
            let _ = parse_simai(&text, "any");
            let _ = parse_simai(&format!("{HEAD}{text}"), "any");
        }
    }
}
