//! Symmetric ranks of a training job.
//!
//! Two kinds of permutation are tried. One rotates all tensor ranks of each group. The other moves all
//! data-parallel replicas by whole expert-parallel groups. A permutation is a symmetry if the network is
//! unchanged by it, and no collective distinguishes its ranks by more than their order around a ring.

use std::ops::Range;

use pathweave_topo::Topology;

use super::SimAi;
use super::layout::GroupLayout;
use super::play::{first_group, plan};
use crate::env::WorkloadEnv;
use crate::files::{SimAiComm, SimAiFile, Span};
use crate::fold::{Folding, NOTHING_SYMMETRIC, Representatives, smallest_step, symmetry_of};

/// A permutation of all GPUs.
#[derive(Clone, Copy)]
enum Rotation {
    /// Moves each tensor rank by this many ranks within its group.
    Tensor(usize),
    /// Moves each replica by this many expert-parallel groups.
    Data(usize),
}

impl Rotation {
    fn gpu(self, layout: &GroupLayout, gpu: usize) -> usize {
        let GroupLayout { tp, ep, dp, .. } = *layout;
        let (tensor, data, stage) = (gpu % tp, gpu / tp % dp, gpu / tp / dp);
        let (tensor, data) = match self {
            Rotation::Tensor(by) => ((tensor + by) % tp, data),
            Rotation::Data(by) => (tensor, (data + by * ep) % dp),
        };
        tensor + tp * (data + dp * stage)
    }

    /// Returns the number of ranks by which the move rotates those groups of a span that it maps to
    /// themselves. Returns `None` if it reorders their ranks.
    fn rotates(self, layout: &GroupLayout, span: Span) -> Option<usize> {
        match (self, span) {
            (Rotation::Tensor(by), Span::Tp | Span::InnerDp) => Some(by),
            (Rotation::Tensor(by), Span::AllTp | Span::AllDp) => (layout.dp == 1).then_some(by),
            (Rotation::Data(by), Span::Dp | Span::OuterTp) => Some(by * layout.ep),
            (Rotation::Data(by), Span::DpEp) => Some(by),
            (Rotation::Data(by), Span::AllTp | Span::AllDp) => Some(by * layout.ep * layout.tp),
            _ => Some(0),
        }
    }
}

/// Returns the largest set of symmetries and the representatives they give. The error is the reason why
/// nothing is symmetric.
pub(super) fn find(
    config: &SimAi,
    env: &WorkloadEnv,
    topology: &Topology,
    (file, layout): (&SimAiFile, &GroupLayout),
    hosts: &[u32],
    batches: &[Range<usize>],
) -> Result<(Representatives, Folding), String> {
    let comms: Vec<SimAiComm> = batches
        .iter()
        .flat_map(|layers| &file.layers[layers.clone()])
        .flat_map(|layer| [layer.forward.comm, layer.input_grad.comm, layer.weight_grad.comm])
        .flatten()
        .filter(|comm| layout.ranks(comm.over) > 1)
        .collect();
    let is_alike = |by: Rotation| {
        let unchanged = |comm: &SimAiComm| {
            let planned = plan(config, env, *comm, &first_group(layout, comm.over, hosts));
            let by = by.rotates(layout, comm.over);
            by.zip(planned.ok()).is_some_and(|(by, plan)| plan.is_unchanged_by_rotation(by))
        };
        if !comms.iter().all(unchanged) {
            return None;
        }
        symmetry_of(topology, hosts, |gpu| by.gpu(layout, gpu))
    };
    let (tp, blocks) = (layout.tp, layout.dp / layout.ep);
    let tensor = smallest_step(tp, |by| is_alike(Rotation::Tensor(by)));
    let data = smallest_step(blocks, |by| is_alike(Rotation::Data(by)));
    if tensor.is_none() && data.is_none() {
        return Err(NOTHING_SYMMETRIC.to_owned());
    }
    let by = [&tensor, &data].map(|found| found.as_ref().map(|(by, _)| *by));
    let [tensor_ranks, block_ranks] = [by[0].unwrap_or(tp), by[1].unwrap_or(blocks)];
    let order = tp / tensor_ranks * (blocks / block_ranks);
    let of_gpu = |gpu: usize| {
        let (tensor, data, stage) = (gpu % tp, gpu / tp % layout.dp, gpu / tp / layout.dp);
        tensor % tensor_ranks + tp * (data % (block_ranks * layout.ep) + layout.dp * stage)
    };
    let symmetries = [tensor, data].into_iter().flatten().map(|(_, symmetry)| symmetry).collect();
    let alike = Representatives::new((0..layout.gpus()).map(of_gpu).collect(), order);
    let folding = alike.folding(topology, hosts, symmetries);
    Ok((alike, folding))
}
