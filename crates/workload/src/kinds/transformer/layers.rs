//! Work of a GPU for the layers of a chunk: computations and collectives, forward and backward.

use std::ops::Range;

use pathweave_units::Duration;

use super::axes::{Axes, Span};
use super::gpu::{Precision, Products, Speed};
use super::{ContextParallelism, Optimizer, Recomputation};
use crate::architecture::{Architecture, Attention, Embeddings};
use crate::collective::Operation;

/// Collective of all groups of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Comm {
    pub(super) operation: Operation,
    pub(super) over: Span,
    pub(super) bytes: u64,
    /// Object in results: "attention input".
    pub(super) part: &'static str,
}

/// Step of every GPU of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A computation.
    Compute { activity: &'static str, part: &'static str, time: Duration },
    /// A collective begins. Steps after it do not wait.
    Start { slot: u32, comm: Comm },
    /// The next steps wait for the collective of the slot.
    Await { slot: u32 },
    /// A collective that the end of the iteration waits for.
    Beside(Comm),
    /// The same, but only after the last microbatch.
    Last(Comm),
}

impl Step {
    /// Returns the collective of the step.
    pub(super) const fn comm(&self) -> Option<Comm> {
        match *self {
            Step::Start { comm, .. } | Step::Beside(comm) | Step::Last(comm) => Some(comm),
            Step::Compute { .. } | Step::Await { .. } => None,
        }
    }
}

/// Bytes of the optimizer's state for a parameter: a copy of it, and Adam's two moments, in 32 bits each.
pub(super) const STATE_BYTES: f64 = 12.0;
/// Slot of a collective that is awaited at once.
const AT_ONCE: u32 = 0;
/// Slot of a collective that passes beside a computation.
const BESIDE: u32 = 1;
/// Slots of gathered weights of layers and of the vocabulary's matrices, which take turns.
const UNIT_WEIGHTS: [u32; 2] = [2, 3];

/// Work of a chunk for a microbatch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ChunkWork {
    pub(super) forward: Vec<Step>,
    /// Backward, with gradients of weights unless the schedule has them apart.
    pub(super) backward: Vec<Step>,
    pub(super) weights: Vec<Step>,
}

impl ChunkWork {
    /// Iterates over the steps of all passes.
    pub(super) fn steps(&self) -> impl Iterator<Item = &Step> {
        self.forward.iter().chain(&self.backward).chain(&self.weights)
    }
}

/// Parameters of a GPU in a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ChunkParameters {
    pub(super) dense: u64,
    pub(super) experts: u64,
}

/// Numbers that all layers have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layers {
    pub(super) architecture: Architecture,
    pub(super) axes: Axes,
    pub(super) speed: Speed,
    pub(super) precision: Precision,
    pub(super) sequence: u32,
    pub(super) micro_batch: u32,
    pub(super) bytes_per_value: u32,
    pub(super) bytes_per_gradient: u32,
    pub(super) recompute: Recomputation,
    pub(super) optimizer: Optimizer,
    pub(super) context: ContextParallelism,
    /// True if gradients of weights are work of their own.
    pub(super) splits_backward: bool,
}

/// A part of a layer: its collectives before and after, and its computation.
#[derive(Clone, Debug, Default)]
struct Part {
    before: Vec<Comm>,
    /// Collective beside the computation.
    beside: Option<Comm>,
    name: &'static str,
    time: Duration,
    /// Time of the scores in `time`, which have no weights.
    scores: Duration,
    after: Vec<Comm>,
}

impl Layers {
    /// Returns the tokens of a microbatch that a context-parallel rank has.
    pub(super) fn tokens(&self) -> u64 {
        u64::from(self.sequence) * u64::from(self.micro_batch) / self.axes.cp as u64
    }
    fn tp(&self) -> u64 {
        self.axes.tp as u64
    }
    /// Returns the activations between layers for a microbatch over a whole tensor-parallel group, bytes.
    pub(super) fn activations(&self) -> u64 {
        self.tokens() * u64::from(self.architecture.hidden) * u64::from(self.bytes_per_value)
    }
    /// Returns the bytes of a weight in a collective or in a product.
    pub(super) fn weight_bytes(&self) -> u64 {
        match self.precision {
            Precision::Bf16 => u64::from(self.bytes_per_value),
            Precision::Fp8 => 1,
        }
    }

    /// Returns the parameters of a GPU in these layers, without embeddings.
    pub(super) fn parameters(&self, layers: Range<u32>) -> ChunkParameters {
        let (mut dense, mut experts) = (0, 0);
        for layer in layers {
            let (shared, expert) = self.architecture.feed_forward_of(layer);
            let count = self.architecture.experts_of(layer).map_or(0, |experts| u64::from(experts.count));
            dense += (self.architecture.attention_parameters() + shared) / self.tp();
            dense += self.projection(layer) / self.tp();
            experts += count / self.axes.ep as u64 * expert / self.axes.etp as u64;
        }
        ChunkParameters { dense, experts }
    }

    /// Returns the parameters of the matrix before a layer that predicts a further token; 0 before others.
    fn projection(&self, layer: u32) -> u64 {
        match layer < self.architecture.layers {
            true => 0,
            false => self.architecture.mtp_projection(),
        }
    }

    /// Returns the parameters of a GPU in one of the vocabulary's matrices.
    pub(super) fn embedding(&self) -> ChunkParameters {
        ChunkParameters { dense: self.architecture.embedding() / self.tp(), experts: 0 }
    }

    /// Returns the parameters of a chunk in the order of its forward pass, by what is gathered at once: a layer, or one
    /// of the vocabulary's matrices.
    pub(super) fn units(&self, layers: impl Iterator<Item = u32>, ends: Ends) -> Vec<ChunkParameters> {
        let end = |has: bool| has.then(|| self.embedding());
        let of_layers = layers.map(|layer| self.parameters(layer..layer + 1));
        end(ends.input).into_iter().chain(of_layers).chain(end(ends.output)).collect()
    }

    /// Returns true if gradients are added up after each microbatch, since no rank keeps all of them.
    pub(super) const fn reduces_each_microbatch(&self) -> bool {
        matches!(self.optimizer, Optimizer::ShardedWeights | Optimizer::ShardedGradients)
    }

    /// Returns the number of parameters whose optimizer state a GPU has, of these that it has itself.
    pub(super) fn optimized(&self, parameters: ChunkParameters) -> f64 {
        let (data, experts) = match self.optimizer {
            Optimizer::Replicated => (1, 1),
            _ => (self.axes.ranks(Span::Data), self.axes.ranks(Span::ExpertData)),
        };
        parameters.dense as f64 / data as f64 + parameters.experts as f64 / experts as f64
    }

    /// Returns the time of the optimizer of a stage's chunks. It reads and writes its state and reads gradients.
    pub(super) fn update(&self, chunks: impl Iterator<Item = ChunkParameters>) -> Duration {
        let parameters: f64 = chunks.map(|of| self.optimized(of)).sum();
        let bytes = 2.0 * STATE_BYTES + f64::from(self.bytes_per_gradient) + self.weight_bytes() as f64;
        match self.speed {
            Speed::Achieved(_) => Duration::ZERO,
            Speed::Gpu(..) => self.speed.time(Products::Dense, 0.0, parameters * bytes),
        }
    }

    /// Returns a collective, or nothing if its groups have one rank or no bytes.
    fn comm(&self, operation: Operation, over: Span, bytes: u64, part: &'static str) -> Option<Comm> {
        (bytes > 0 && self.axes.ranks(over) > 1).then_some(Comm { operation, over, bytes, part })
    }

    /// Returns the time of products with so many parameters for so many tokens.
    fn products(&self, kind: Products, parameters: f64, tokens: f64) -> Duration {
        let hidden = f64::from(self.architecture.hidden);
        let bytes = parameters * self.weight_bytes() as f64
            + 2.0 * tokens * hidden * f64::from(self.bytes_per_value) / self.axes.tp as f64;
        self.speed.time(kind, 2.0 * parameters * tokens, if parameters > 0.0 { bytes } else { 0.0 })
    }

    /// Returns the parts of a layer in forward order.
    fn parts(&self, layer: u32) -> Vec<Part> {
        let architecture = &self.architecture;
        let tp = self.axes.tp as f64;
        let (shared, expert) = architecture.feed_forward_of(layer);
        let tokens = self.tokens() as f64;
        let mut parts = Vec::new();
        if self.projection(layer) > 0 {
            let time = self.products(Products::Dense, self.projection(layer) as f64 / tp, tokens);
            parts.push(self.tensor_parallel(["MTP input", "MTP projection", "MTP output"], time));
        }
        parts.push(self.attention(layer));
        let Some(experts) = architecture.experts_of(layer) else {
            let time = self.products(Products::Dense, shared as f64 / tp, tokens);
            parts.push(
                self.tensor_parallel(["feed-forward input", "feed-forward", "feed-forward output"], time),
            );
            return parts;
        };
        if experts.shared_hidden > 0 {
            let time = self.products(Products::Dense, shared as f64 / tp, tokens);
            parts.push(self.tensor_parallel(["shared input", "shared expert", "shared output"], time));
        }
        parts.push(self.experts(experts.top_k, experts.count, expert));
        parts
    }

    fn tensor_parallel(&self, [input, name, output]: [&'static str; 3], time: Duration) -> Part {
        let activations = self.activations();
        Part {
            before: self.comm(Operation::AllGather, Span::Tensor, activations, input).into_iter().collect(),
            name,
            time,
            after: self
                .comm(Operation::ReduceScatter, Span::Tensor, activations, output)
                .into_iter()
                .collect(),
            ..Part::default()
        }
    }

    fn attention(&self, layer: u32) -> Part {
        let architecture = &self.architecture;
        let (tp, tokens) = (self.axes.tp as f64, self.tokens() as f64);
        let parameters = architecture.attention_parameters() as f64 / tp;
        let flops = architecture.score_flops(layer, self.sequence) * tokens / tp;
        let scores = self.speed.time(Products::Scores, flops, 0.0);
        let time = self.products(Products::Dense, parameters, tokens) + scores;
        let mut part = self.tensor_parallel(["attention input", "attention", "attention output"], time);
        part.scores = scores;
        // Ranks of a sequence pass on the keys and values of all of its tokens, whatever the window.
        let width = match architecture.attention {
            Attention::Grouped { kv_heads, head_dim, .. } => {
                2 * u64::from(kv_heads).max(self.tp()) * u64::from(head_dim) / self.tp()
            }
            Attention::Latent { kv_rank, rope_dim, .. } => u64::from(kv_rank) + u64::from(rope_dim),
        };
        let bytes = self.axes.cp as u64 * self.tokens() * width * u64::from(self.bytes_per_value);
        let exchanged = self.comm(Operation::AllGather, Span::Context, bytes, "keys and values");
        match self.context {
            ContextParallelism::Ring => part.beside = exchanged,
            ContextParallelism::Gather => part.before.extend(exchanged),
        }
        part
    }

    fn experts(&self, top_k: u32, count: u32, expert: u64) -> Part {
        let Axes { tp, ep, etp, .. } = self.axes;
        // A GPU has a part of the tokens of its tensor-parallel group.
        let copies = self.tokens() * u64::from(top_k) / tp as u64;
        let hidden = u64::from(self.architecture.hidden);
        let sent = match self.precision {
            Precision::Bf16 => copies * hidden * u64::from(self.bytes_per_value),
            // A scale of 4 bytes for each 128 values.
            Precision::Fp8 => copies * (hidden + hidden.div_ceil(128) * 4),
        };
        let returned = copies * hidden * u64::from(self.bytes_per_value);
        let of_gpu = f64::from(count) / ep as f64 * expert as f64 / etp as f64;
        // Each copy passes one expert, of which the GPU has a part.
        let tokens = copies as f64 * ep as f64 * etp as f64 / f64::from(count);
        let comm = |operation, over, bytes, part| self.comm(operation, over, bytes, part);
        Part {
            before: [
                comm(Operation::AllToAll, Span::Expert, sent, "dispatch"),
                comm(Operation::AllGather, Span::ExpertTensor, sent * etp as u64, "experts input"),
            ]
            .into_iter()
            .flatten()
            .collect(),
            name: "experts",
            time: self.products(Products::Experts, of_gpu, tokens),
            after: [
                comm(Operation::ReduceScatter, Span::ExpertTensor, returned * etp as u64, "experts output"),
                comm(Operation::AllToAll, Span::Expert, returned, "combine"),
            ]
            .into_iter()
            .flatten()
            .collect(),
            ..Part::default()
        }
    }

    /// Returns the work of a chunk. `ends` says which of the model's ends it has.
    pub(super) fn chunk(&self, layers: Range<u32>, ends: Ends) -> ChunkWork {
        let mut work = ChunkWork::default();
        self.forward_pass(layers.clone(), ends, &mut work.forward);
        self.backward_pass(layers, ends, &mut work);
        work
    }

    fn forward_pass(&self, layers: Range<u32>, ends: Ends, out: &mut Vec<Step>) {
        let units = self.units(layers.clone(), ends);
        self.gather(&units, 0, out);
        if ends.input {
            self.gather_ahead(&units, 0, out);
            let looked_up =
                self.comm(Operation::ReduceScatter, Span::Tensor, self.activations(), "embedding");
            at_once(looked_up, out);
        }
        let first = usize::from(ends.input);
        for (place, layer) in (first..).zip(layers) {
            self.gather_ahead(&units, place, out);
            self.parts(layer).iter().for_each(|part| forward(part, "forward", out));
        }
        if ends.output {
            self.gather_ahead(&units, units.len() - 1, out);
            forward(&self.logits(), "forward", out);
        }
    }

    /// Adds the backward pass. The vocabulary's product, which it begins with, has the weights of the forward pass.
    fn backward_pass(&self, layers: Range<u32>, ends: Ends, work: &mut ChunkWork) {
        let units = self.units(layers.clone().rev(), Ends { input: false, output: false });
        self.gather(&units, 0, &mut work.backward);
        // Gradients of a matrix that both ends use are complete at the end only.
        let is_tied = ends.input && self.architecture.embeddings == Embeddings::Tied;
        if ends.output {
            self.backward(&self.logits(), work);
            if !is_tied {
                self.reduce(self.embedding(), Step::Last, work);
            }
        }
        let each = if self.reduces_each_microbatch() { Step::Beside } else { Step::Last };
        for (place, layer) in layers.rev().enumerate() {
            self.gather_ahead(&units, place, &mut work.backward);
            let parts = self.parts(layer);
            if self.recompute == Recomputation::Full {
                parts.iter().for_each(|part| forward(part, "recompute", &mut work.backward));
            }
            for part in parts.iter().rev() {
                self.backward(part, work);
            }
            self.reduce(self.parameters(layer..layer + 1), each, work);
        }
        if ends.input {
            let gathered = self.comm(Operation::AllGather, Span::Tensor, self.activations(), "embedding");
            at_once(gathered, &mut work.backward);
            self.reduce(self.embedding(), Step::Last, work);
        }
    }

    /// Returns the vocabulary's product at the end of the model, once for each token that is predicted.
    fn logits(&self) -> Part {
        let predictions = self.architecture.predictions();
        let parameters = self.architecture.embedding() as f64 / self.axes.tp as f64;
        let bytes = predictions * self.activations();
        Part {
            before: self.comm(Operation::AllGather, Span::Tensor, bytes, "logits").into_iter().collect(),
            name: "logits",
            time: self.products(Products::Dense, parameters, (predictions * self.tokens()) as f64),
            ..Part::default()
        }
    }

    /// Begins to gather the weights of a unit, if ranks share weights and there is such a unit.
    fn gather(&self, units: &[ChunkParameters], place: usize, out: &mut Vec<Step>) {
        let unit = units.get(place).filter(|_| self.optimizer == Optimizer::ShardedWeights);
        let slot = UNIT_WEIGHTS[place % 2];
        let comms = unit.map_or_else(Vec::new, |unit| self.gathers_of(*unit));
        out.extend(comms.into_iter().map(|comm| Step::Start { slot, comm }));
    }

    /// Awaits the weights of a unit, and begins to gather those of the next.
    fn gather_ahead(&self, units: &[ChunkParameters], place: usize, out: &mut Vec<Step>) {
        if self.optimizer == Optimizer::ShardedWeights {
            out.push(Step::Await { slot: UNIT_WEIGHTS[place % 2] });
            self.gather(units, place + 1, out);
        }
    }

    /// Adds the collectives that add up gradients of so many parameters of a GPU, once it has them.
    fn reduce(&self, parameters: ChunkParameters, step: fn(Comm) -> Step, work: &mut ChunkWork) {
        let operation = match self.optimizer {
            Optimizer::Replicated => Operation::AllReduce,
            _ => Operation::ReduceScatter,
        };
        let bytes = u64::from(self.bytes_per_gradient);
        let dense = self.comm(operation, Span::Data, parameters.dense * bytes, "gradients");
        let experts = self.comm(operation, Span::ExpertData, parameters.experts * bytes, "expert gradients");
        let out = if self.splits_backward { &mut work.weights } else { &mut work.backward };
        out.extend([dense, experts].into_iter().flatten().map(step));
    }

    /// Returns the collective that adds up the gradients of a matrix of which both ends of a pipeline have a copy, once each
    /// end has added up those of its replicas (`finalize_model_grads` of Megatron-LM). Ranks that share gradients add up
    /// their parts.
    pub(super) fn tie(&self) -> Option<Comm> {
        let sharers = match self.optimizer {
            Optimizer::Replicated | Optimizer::Distributed => 1,
            Optimizer::ShardedGradients | Optimizer::ShardedWeights => self.axes.ranks(Span::Data) as u64,
        };
        let bytes = self.embedding().dense * u64::from(self.bytes_per_gradient) / sharers;
        let tied = self.architecture.embeddings == Embeddings::Tied;
        self.comm(Operation::AllReduce, Span::Ends, bytes, "tied embedding").filter(|_| tied)
    }

    /// Returns the collectives that distribute updated weights before the first microbatch.
    pub(super) fn gathers(&self, parameters: ChunkParameters) -> Vec<Comm> {
        if !matches!(self.optimizer, Optimizer::Distributed | Optimizer::ShardedGradients) {
            return Vec::new();
        }
        self.gathers_of(parameters)
    }

    fn gathers_of(&self, parameters: ChunkParameters) -> Vec<Comm> {
        let bytes = self.weight_bytes();
        let dense = self.comm(Operation::AllGather, Span::Data, parameters.dense * bytes, "weights");
        let experts =
            self.comm(Operation::AllGather, Span::ExpertData, parameters.experts * bytes, "expert weights");
        [dense, experts].into_iter().flatten().collect()
    }

    /// Adds the backward pass of a part. It takes as long as forward for the gradients of its input, and again
    /// for those of its weights; scores have no weights and take twice as long for their inputs.
    fn backward(&self, part: &Part, work: &mut ChunkWork) {
        for comm in part.after.iter().rev() {
            at_once(Some(opposite(*comm)), &mut work.backward);
        }
        let again = match self.recompute {
            Recomputation::Selective => part.scores,
            Recomputation::None | Recomputation::Full => Duration::ZERO,
        };
        let input = part.time + part.scores + again;
        let weights = part.time.saturating_sub(part.scores);
        let compute = |activity, time| Step::Compute { activity, part: part.name, time };
        // Keys and values pass around the ring again, and their gradients take the way back.
        let around = part.beside.into_iter().flat_map(|comm| [comm, opposite(comm)]);
        work.backward.extend(around.map(|comm| Step::Start { slot: BESIDE, comm }));
        work.backward.push(compute("input gradients", input));
        match self.splits_backward {
            true => work.weights.push(compute("weight gradients", weights)),
            false => work.backward.push(compute("weight gradients", weights)),
        }
        if part.beside.is_some() {
            work.backward.push(Step::Await { slot: BESIDE });
        }
        for comm in part.before.iter().rev() {
            at_once(Some(opposite(*comm)), &mut work.backward);
        }
    }
}

/// Ends of the model that a chunk has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ends {
    pub(super) input: bool,
    pub(super) output: bool,
}

fn at_once(comm: Option<Comm>, out: &mut Vec<Step>) {
    if let Some(comm) = comm {
        out.extend([Step::Start { slot: AT_ONCE, comm }, Step::Await { slot: AT_ONCE }]);
    }
}

fn forward(part: &Part, activity: &'static str, out: &mut Vec<Step>) {
    part.before.iter().for_each(|comm| at_once(Some(*comm), out));
    out.extend(part.beside.map(|comm| Step::Start { slot: BESIDE, comm }));
    out.push(Step::Compute { activity, part: part.name, time: part.time });
    out.extend(part.beside.map(|_| Step::Await { slot: BESIDE }));
    part.after.iter().for_each(|comm| at_once(Some(*comm), out));
}

/// Returns the collective of the backward pass: gradients take the way back.
fn opposite(comm: Comm) -> Comm {
    let operation = match comm.operation {
        Operation::AllGather => Operation::ReduceScatter,
        Operation::ReduceScatter => Operation::AllGather,
        other => other,
    };
    Comm { operation, ..comm }
}
