//! Order of the work of a microbatch, as ASTRA-sim 1.0 defines it for each policy.

use std::ops::Range;

use crate::files::{EmbeddingGradients, Policy, SimAiFile, SimAiPhase};

/// A step of every GPU of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The computation of a phase.
    Compute(Work),
    /// Start of the collective of a phase. The next step of each GPU does not wait for it.
    Start(Work, Until),
    /// Makes the next step of each GPU wait for the collective of a phase.
    Await(Work),
}

/// A phase of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Work {
    pub(super) layer: usize,
    pub(super) phase: Phase,
}

/// Phases of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Forward,
    InputGrad,
    WeightGrad,
}

/// Point up to which a collective may overlap other steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// The matching [`Step::Await`].
    Awaited,
    /// The end of the iteration.
    TheEnd,
}

impl Work {
    pub(super) fn of(self, file: &SimAiFile) -> SimAiPhase {
        let layer = &file.layers[self.layer];
        match self.phase {
            Phase::Forward => layer.forward,
            Phase::InputGrad => layer.input_grad,
            Phase::WeightGrad => layer.weight_grad,
        }
    }
}

/// Builder of a list of steps.
struct Steps<'a> {
    file: &'a SimAiFile,
    steps: Vec<Step>,
}

impl Steps<'_> {
    fn compute(&mut self, layer: usize, phase: Phase) {
        self.steps.push(Step::Compute(Work { layer, phase }));
    }

    /// Starts the collective of a phase, if it has one.
    fn start(&mut self, layer: usize, phase: Phase, until: Until) {
        let work = Work { layer, phase };
        if work.of(self.file).comm.is_some() {
            self.steps.push(Step::Start(work, until));
        }
    }

    /// Awaits a collective that was started with [`Until::Awaited`].
    fn await_collective(&mut self, layer: usize, phase: Phase) {
        let work = Work { layer, phase };
        if self.steps.contains(&Step::Start(work, Until::Awaited)) {
            self.steps.push(Step::Await(work));
        }
    }

    /// Adds a computation, and its collective with a wait for it.
    fn compute_and_wait(&mut self, layer: usize, phase: Phase) {
        self.compute(layer, phase);
        self.collective_and_wait(layer, phase);
    }

    /// Starts the collective of a phase and waits for it at once, if it has one.
    fn collective_and_wait(&mut self, layer: usize, phase: Phase) {
        let work = Work { layer, phase };
        if work.of(self.file).comm.is_some() {
            self.steps.extend([Step::Start(work, Until::Awaited), Step::Await(work)]);
        }
    }

    fn weight_gradients(&mut self, layer: usize) {
        self.compute(layer, Phase::WeightGrad);
        self.start(layer, Phase::WeightGrad, Until::TheEnd);
    }
}

/// Returns the steps of the forward pass through these layers.
pub(super) fn forward(file: &SimAiFile, layers: Range<usize>) -> Vec<Step> {
    let mut out = Steps { file, steps: Vec::new() };
    for layer in layers {
        match file.policy {
            Policy::Micro => {}
            Policy::Dlrm { last_bottom, .. } => {
                out.compute(layer, Phase::Forward);
                let until = if layer == 0 { Until::Awaited } else { Until::TheEnd };
                out.start(layer, Phase::Forward, until);
                if layer == last_bottom {
                    out.await_collective(0, Phase::Forward);
                }
            }
            _ => out.compute_and_wait(layer, Phase::Forward),
        }
    }
    out.steps
}

/// Returns the steps of the backward pass through these layers.
pub(super) fn backward(file: &SimAiFile, layers: Range<usize>) -> Vec<Step> {
    let mut out = Steps { file, steps: Vec::new() };
    for layer in layers.rev() {
        match file.policy {
            Policy::DistributedInference => {}
            Policy::Micro => out.collective_and_wait(layer, Phase::WeightGrad),
            Policy::Transformer | Policy::TransformerAgain => {
                if let Some(again) = file.recompute.iter().find(|again| again.before == layer) {
                    (again.checkpoint..layer).for_each(|layer| out.compute_and_wait(layer, Phase::Forward));
                }
                out.compute_and_wait(layer, Phase::InputGrad);
                out.weight_gradients(layer);
            }
            Policy::WeightsFirst => {
                out.weight_gradients(layer);
                out.compute_and_wait(layer, Phase::InputGrad);
            }
            // The input of the first layer needs no gradients.
            Policy::Data => {
                out.weight_gradients(layer);
                if layer > 0 {
                    out.compute(layer, Phase::InputGrad);
                }
            }
            Policy::Model | Policy::HybridDataModel | Policy::HybridModelData | Policy::HybridCustomized => {
                out.compute(layer, Phase::InputGrad);
                if layer > 0 {
                    out.start(layer, Phase::InputGrad, Until::Awaited);
                }
                out.weight_gradients(layer);
                out.await_collective(layer, Phase::InputGrad);
            }
            Policy::Dlrm { last_bottom, gradients } => {
                out.weight_gradients(layer);
                if layer == 0 && gradients == EmbeddingGradients::Awaited {
                    out.await_collective(0, Phase::InputGrad);
                }
                if layer > 0 {
                    out.compute(layer, Phase::InputGrad);
                }
                if layer == last_bottom + 1 {
                    let until = match gradients {
                        EmbeddingGradients::Awaited => Until::Awaited,
                        EmbeddingGradients::Beside => Until::TheEnd,
                    };
                    out.start(0, Phase::InputGrad, until);
                }
            }
        }
    }
    out.steps
}
