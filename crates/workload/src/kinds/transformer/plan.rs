//! Conversion of a transformer to layers with collectives.

use pathweave_units::Duration;

use super::models::Shape;
use super::{Optimizer, TFLOPS, Transformer};
use crate::collective::Operation;
use crate::files::{Policy, SimAiComm, SimAiFile, SimAiLayer, SimAiPhase, Span};
use crate::kinds::simai::GroupLayout;

/// Properties that all layers have in common.
pub(super) struct LayerBuilder<'a> {
    pub(super) config: &'a Transformer,
    pub(super) shape: Shape,
    pub(super) layout: GroupLayout,
}

/// Returns a collective, or `None` if it has no bytes.
fn comm(operation: Operation, over: Span, bytes: u64) -> Option<SimAiComm> {
    (bytes > 0).then_some(SimAiComm { operation, over, bytes })
}

const NOTHING: SimAiPhase = SimAiPhase { compute: Duration::ZERO, comm: None };

impl LayerBuilder<'_> {
    fn tokens(&self) -> u64 {
        u64::from(self.shape.sequence) * u64::from(self.config.micro_batch)
    }
    /// Returns the activations that a layer outputs for a microbatch, over a whole tensor-parallel group,
    /// bytes.
    fn activations(&self) -> u64 {
        self.tokens() * u64::from(self.shape.hidden) * u64::from(self.config.bytes_per_value)
    }
    fn tp(&self) -> u64 {
        self.layout.tp as u64
    }
    /// Returns the time that one GPU of a tensor-parallel group takes for its share.
    fn time(&self, flops: f64) -> Duration {
        let seconds = flops / self.layout.tp as f64 / (self.config.tflops.unwrap_or(TFLOPS) * 1e12);
        Duration::from_ps((seconds * 1e12 + 0.5) as u64)
    }

    /// Returns the iteration in the form of a workload file.
    pub(super) fn file(&self) -> SimAiFile {
        let batches = self.config.microbatches;
        let mut layers = self.outer_layers();
        for batch in 0..batches {
            layers.push(layer("embedding_layer", NOTHING, NOTHING));
            for _ in 0..self.shape.layers / self.layout.pp as u32 {
                // The backward pass processes microbatches from the last to the first, so gradients are
                // complete after the first one.
                self.layer(batch == 0, &mut layers);
            }
            layers.push(self.compute("logits", self.logits_flops()));
        }
        (1..).zip(&mut layers).for_each(|(line, layer)| layer.line = line);
        SimAiFile {
            policy: Policy::WeightsFirst,
            ga: Some(batches),
            pp_comm: self.activations() / self.tp(),
            layers,
            ..SimAiFile::default()
        }
    }

    /// In the real model, the last stage has the logits. Here each stage has a share, because all stages have
    /// the same layers.
    fn logits_flops(&self) -> f64 {
        2.0 * self.shape.embedding() as f64 * self.tokens() as f64 / self.layout.pp as f64
    }

    /// Returns the layers before the first microbatch, which the backward pass reaches last. Forward they
    /// gather the weights, and backward they reduce the gradients of the embedding.
    fn outer_layers(&self) -> Vec<SimAiLayer> {
        let (shape, stages) = (&self.shape, self.layout.pp as u64);
        let of_stage = |each: u64| each * u64::from(shape.layers) / stages / self.tp();
        let embedding = self.embeddings() * shape.embedding() / stages / self.tp();
        let mut dense = shape.attention();
        let mut layers = Vec::new();
        let bytes = u64::from(self.config.bytes_per_value);
        let gather = |over, parameters: u64| match self.config.optimizer {
            Optimizer::Replicated => None,
            _ => comm(Operation::AllGather, over, parameters * bytes),
        };
        if shape.experts == 1 {
            dense += shape.expert();
        } else {
            let experts = shape.expert() * u64::from(shape.experts) / self.layout.ep as u64;
            let forward = SimAiPhase { comm: gather(Span::DpEp, of_stage(experts)), ..NOTHING };
            layers.push(layer("expert weights", forward, NOTHING));
        }
        let forward = SimAiPhase { comm: gather(Span::Dp, of_stage(dense) + embedding), ..NOTHING };
        let reduced = self.reduction(Span::Dp, embedding);
        layers.push(layer("weights", forward, SimAiPhase { comm: reduced, ..NOTHING }));
        layers
    }

    /// Returns the number of matrices between tokens and vectors. A matrix that both ends use has a copy at either end of a
    /// pipeline.
    fn embeddings(&self) -> u64 {
        if self.layout.pp > 1 { 2 } else { self.shape.ends() }
    }

    fn reduction(&self, over: Span, parameters: u64) -> Option<SimAiComm> {
        let operation = match self.config.optimizer {
            Optimizer::Replicated => Operation::AllReduce,
            _ => Operation::ReduceScatter,
        };
        comm(operation, over, parameters * u64::from(self.config.bytes_per_gradient))
    }

    /// Adds one layer of the model. `reduces` is true if the gradients of its weights are complete after this
    /// microbatch.
    fn layer(&self, reduces: bool, out: &mut Vec<SimAiLayer>) {
        let tokens = self.tokens() as f64;
        let gradients = |over, parameters: u64| {
            if reduces { self.reduction(over, parameters / self.tp()) } else { None }
        };
        let mut attention = self.compute("attention", self.shape.attention_flops() * tokens);
        attention.weight_grad.comm = gradients(Span::Dp, self.shape.attention());
        self.tensor_parallel("attention", attention, self.activations(), out);
        let mut feed_forward = self.compute("feed-forward", self.shape.feed_forward_flops() * tokens);
        if self.shape.experts == 1 {
            feed_forward.weight_grad.comm = gradients(Span::Dp, self.shape.expert());
            self.tensor_parallel("feed-forward", feed_forward, self.activations(), out);
            return;
        }
        let experts = u64::from(self.shape.experts) / self.layout.ep as u64;
        feed_forward.name = "experts".to_owned();
        feed_forward.weight_grad.comm = gradients(Span::DpEp, self.shape.expert() * experts);
        let copies = self.activations() * u64::from(self.shape.top_k);
        let exchanged = SimAiPhase {
            comm: comm(Operation::AllToAll, Span::Ep, copies / self.tp()).filter(|_| self.layout.ep > 1),
            ..NOTHING
        };
        out.push(layer("dispatch", exchanged, exchanged));
        self.tensor_parallel("experts", feed_forward, copies, out);
        out.push(layer("combine", exchanged, exchanged));
    }

    /// Adds a computation that a tensor-parallel group shares. Its input is all-gathered and its output
    /// reduce-scattered, and their gradients take the opposite operations (Korthikanti et al., "Reducing
    /// activation recomputation in large transformer models", 2022, section 4.2.2).
    fn tensor_parallel(&self, name: &str, computed: SimAiLayer, bytes: u64, out: &mut Vec<SimAiLayer>) {
        if self.layout.tp == 1 {
            out.push(computed);
            return;
        }
        let phase = |operation| SimAiPhase { comm: comm(operation, Span::Tp, bytes), ..NOTHING };
        let (gather, scatter) = (phase(Operation::AllGather), phase(Operation::ReduceScatter));
        out.push(layer(&format!("{name} input"), gather, scatter));
        out.push(computed);
        out.push(layer(&format!("{name} output"), scatter, gather));
    }

    /// Returns a layer with a computation. The backward pass takes as long for the gradients of the input,
    /// and again for those of the weights.
    fn compute(&self, name: &str, flops: f64) -> SimAiLayer {
        let phase = SimAiPhase { compute: self.time(flops), comm: None };
        SimAiLayer { weight_grad: phase, ..layer(name, phase, phase) }
    }
}

fn layer(name: &str, forward: SimAiPhase, input_grad: SimAiPhase) -> SimAiLayer {
    SimAiLayer {
        line: 0,
        name: name.to_owned(),
        forward,
        input_grad,
        weight_grad: NOTHING,
        update: Duration::ZERO,
    }
}
