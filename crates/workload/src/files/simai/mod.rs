//! Workload files of ASTRA-sim 1.0, SimAI and AICB: a line of settings, the number of layers, and one layer
//! per line.

mod policy;
#[cfg(test)]
mod tests;

use pathweave_units::Duration;

pub use self::policy::{EmbeddingGradients, Groups, Policy, Span};
use self::policy::{Settings, Spans};
use crate::collective::Operation;
use crate::error::FileError;

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

/// A workload file of ASTRA-sim 1.0, SimAI or AICB. Settings missing from its first line are `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SimAiFile {
    /// Policy: order of the work, and the groups that communicate.
    pub policy: Policy,
    /// GPUs of a tensor-parallel group.
    pub tp: Option<u32>,
    /// GPUs of an expert-parallel group.
    pub ep: Option<u32>,
    /// Stages of the pipeline.
    pub pp: Option<u32>,
    /// Microbatches of an iteration.
    pub ga: Option<u32>,
    /// Total number of GPUs.
    pub all_gpus: Option<u32>,
    /// Bytes that a GPU sends to the next stage for each microbatch.
    pub pp_comm: u64,
    /// Recomputed ranges of layers: forward passes that the backward pass repeats.
    pub recompute: Vec<Recompute>,
    /// Layers of all microbatches, one microbatch after the other.
    pub layers: Vec<SimAiLayer>,
    /// Notes for the user on parts of the file that are not used.
    pub notes: Vec<String>,
}

impl SimAiFile {
    /// Returns true if some collective is among a subset of the GPUs.
    pub fn has_groups(&self) -> bool {
        let comms = |layer: &SimAiLayer| [layer.forward.comm, layer.input_grad.comm, layer.weight_grad.comm];
        let all = |comm: SimAiComm| matches!(comm.over, Span::AllTp | Span::AllDp);
        self.layers.iter().flat_map(comms).flatten().any(|comm| !all(comm))
    }
}

/// A range of forward passes that the backward pass repeats (activation recomputation), because only the
/// input of the first one was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recompute {
    /// First layer of the range, from 0.
    pub checkpoint: usize,
    /// Layer after the last one of the range. The range is repeated before this layer's input gradients.
    pub before: usize,
}

/// A layer with three phases.
#[derive(Clone, Debug, PartialEq)]
pub struct SimAiLayer {
    /// Line of the layer, from 1.
    pub line: u64,
    /// Name of the layer.
    pub name: String,
    /// Forward pass.
    pub forward: SimAiPhase,
    /// Computation of the gradients of its input.
    pub input_grad: SimAiPhase,
    /// Computation of the gradients of its weights.
    pub weight_grad: SimAiPhase,
    /// Time to update the weights after the reduction of their gradients.
    pub update: Duration,
}

/// A computation and the collective that follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimAiPhase {
    /// Duration of the computation.
    pub compute: Duration,
    /// Collective after the computation.
    pub comm: Option<SimAiComm>,
}

/// A collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimAiComm {
    /// Operation of the collective.
    pub operation: Operation,
    /// GPUs that take part.
    pub over: Span,
    /// Size as nccl-tests define it, bytes.
    pub bytes: u64,
}

/// Parses a workload file. `file` is its name in error messages.
pub fn parse_simai(text: &str, file: &str) -> Result<SimAiFile, FileError> {
    let mut lines = (1u64..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let Some((head_line, head)) = lines.next() else {
        return Err(FileError::whole(
            file,
            "empty; expected a policy and settings, the number of layers, and the layers",
        ));
    };
    let settings = Settings::parse(head).map_err(|what| FileError::at(file, head_line, what))?;
    let Some((line, count)) = lines.next() else {
        return Err(FileError::at(file, head_line, "ends where the number of layers is expected"));
    };
    let announced: u64 = count.trim().parse().map_err(|_| {
        let shown: String = count.trim().chars().take(40).collect();
        FileError::at(file, line, format!("number of layers = {shown}: expected a whole number"))
    })?;
    let (mut layers, mut left_out) = (Vec::new(), LeftOut::default());
    let mut end = line;
    while (layers.len() as u64) < announced {
        let Some((line, content)) = lines.next() else {
            let n = layers.len();
            return Err(FileError::at(
                file,
                end,
                format!("ends after {n} of {announced} layers; truncated?"),
            ));
        };
        let first = layers.is_empty();
        let layer = parse_layer(line, content, settings.policy, first, &mut left_out);
        layers.push(layer.map_err(|what| FileError::at(file, line, what))?);
        end = line;
    }
    if let Some((line, _)) = lines.next() {
        return Err(FileError::at(file, line, format!("a further layer; line 2 announces {announced}")));
    }
    let mut found = settings.file(&layers).map_err(|what| FileError::at(file, head_line, what))?;
    found.layers = layers;
    found.notes.extend(left_out.notes(found.policy));
    Ok(found)
}

/// Words of a file that have no effect: their number, and line and column of the first one.
#[derive(Default)]
struct Unused {
    count: u64,
    first: Option<(u64, &'static str)>,
}

impl Unused {
    fn add(&mut self, line: u64, column: &'static str) {
        self.count += 1;
        self.first.get_or_insert((line, column));
    }
    fn note(&self, are: &str) -> Option<String> {
        let (line, column) = self.first?;
        Some(format!("{} {are} (the first: line {line}, {column})", self.count))
    }
}

/// Parts of layers that are omitted.
#[derive(Default)]
struct LeftOut {
    /// Collectives that have no participants under the policy.
    among_nobody: Unused,
    /// Sizes without a collective.
    sizes: Unused,
    /// Layers with explicit dependencies on other layers.
    dependencies: Unused,
}

impl LeftOut {
    fn notes(&self, policy: Policy) -> impl Iterator<Item = String> {
        let nobody = format!(
            "collectives are among nobody under {}, as in ASTRA-sim; they are left out",
            policy.name()
        );
        let notes = [
            self.among_nobody.note(&nobody),
            self.sizes.note("sizes of NONE are not used"),
            self.dependencies.note(
                "dependencies of layers are not used, as in ASTRA-sim: a policy has an order of its own",
            ),
        ];
        notes.into_iter().flatten()
    }
}

fn parse_layer(
    line: u64,
    content: &str,
    policy: Policy,
    first: bool,
    left_out: &mut LeftOut,
) -> Result<SimAiLayer, String> {
    let mut words: Vec<&str> = content.split_whitespace().take(14).collect();
    let own = match policy {
        Policy::HybridCustomized if words.len() == COLUMNS.len() + 1 => words.pop(),
        Policy::HybridCustomized => {
            let n = words.len();
            return Err(format!(
                "{n} columns; a layer of HYBRID_CUSTOMIZED has 13: {} policy",
                COLUMNS.join(" ")
            ));
        }
        _ => None,
    };
    if words.len() != COLUMNS.len() {
        return Err(format!("{} columns; a layer has 12: {}", words.len(), COLUMNS.join(" ")));
    }
    let spans = Spans::of_layer(policy, own, first)?;
    if words[1] != "-1" {
        left_out.dependencies.add(line, COLUMNS[1]);
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
    let mut phase = |column: usize, over: Option<Span>| {
        let (name, bytes) = (COLUMNS[column + 1], number(column + 2)?);
        let found = comm(words[column + 1], policy).map_err(|what| format!("{name} = {what}"))?;
        let comm = match found.filter(|_| bytes > 0) {
            Some((operation, named)) => match named.or(over) {
                Some(over) => Some(SimAiComm { operation, over, bytes }),
                None => {
                    left_out.among_nobody.add(line, name);
                    None
                }
            },
            None => {
                if bytes > 0 {
                    left_out.sizes.add(line, COLUMNS[column + 2]);
                }
                None
            }
        };
        Ok::<_, String>(SimAiPhase { compute: time(column)?, comm })
    };
    Ok(SimAiLayer {
        line,
        name: words[0].chars().take(60).collect(),
        forward: phase(2, spans.forward)?,
        input_grad: phase(5, spans.input_grad)?,
        weight_grad: phase(8, spans.weight_grad)?,
        update: time(11)?,
    })
}

/// Parses the name of a collective. Returns its operation, and its participants if the name states them.
fn comm(word: &str, policy: Policy) -> Result<Option<(Operation, Option<Span>)>, String> {
    let (name, span) = if let Some(name) = word.strip_suffix("_DP_EP") {
        (name, Some(Span::DpEp))
    } else if let Some(name) = word.strip_suffix("_EP") {
        (name, Some(Span::Ep))
    } else {
        (word, None)
    };
    if span.is_some() && !policy.has_experts() {
        return Err(format!(
            "{word}: {} has no expert-parallel groups; expected HYBRID_TRANSFORMER or HYBRID_TRANSFORMER_FWD_IN_BCKWD",
            policy.name()
        ));
    }
    let operation = match name {
        "NONE" => return Ok(None),
        "ALLREDUCE" => Operation::AllReduce,
        "ALLGATHER" => Operation::AllGather,
        "REDUCESCATTER" => Operation::ReduceScatter,
        "ALLTOALL" => Operation::AllToAll,
        "BROADCAST" => Operation::Broadcast,
        _ => {
            let shown: String = word.chars().take(40).collect();
            let known = "NONE, ALLREDUCE, ALLGATHER, REDUCESCATTER, ALLTOALL or BROADCAST, with _EP or _DP_EP behind it";
            return Err(format!("{shown}: expected {known}"));
        }
    };
    Ok(Some((operation, span)))
}
