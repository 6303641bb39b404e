//! Symmetric ranks of a staged job.
//!
//! Two kinds of permutation are tried: one moves each GPU to the next ranks of its tensor-parallel group, the other
//! moves data-parallel replicas. A permutation is a symmetry if the network is unchanged by it. It must map each group
//! to a group with its ranks in the same order around a ring, and collectives must be unchanged by such a rotation.

use pathweave_topo::{Automorphism, Topology};

use super::axes::{Axes, Place, Span};
use super::layers::Comm;
use crate::collective::{Algorithms, Library};
use crate::fold::{Folding, NOTHING_SYMMETRIC, Representatives, smallest_step, symmetry_of};

/// Groups of a job by span and stage.
pub(super) type Groups = Vec<(Span, Vec<Vec<Vec<usize>>>)>;

/// Numbers of stages that are tried for one with which ranks are alike.
const OTHER_STAGES: usize = 8;

pub(super) fn groups(axes: &Axes) -> Groups {
    Span::ALL.into_iter().map(|span| (span, axes.groups(span))).collect()
}

/// The job, as far as its symmetries depend on it.
pub(super) struct Job<'a> {
    pub(super) axes: &'a Axes,
    pub(super) groups: &'a Groups,
    /// All collectives, each once.
    pub(super) comms: &'a [Comm],
    pub(super) algorithms: &'a Algorithms,
    pub(super) hosts: &'a [u32],
}

impl Job<'_> {
    /// Returns true if a permutation of the GPUs leaves groups and collectives unchanged.
    fn is_unchanged_by(&self, permutation: &dyn Fn(usize) -> usize) -> bool {
        // The channels of NCCL tell ranks apart.
        if self.algorithms.library == Library::Nccl {
            return false;
        }
        self.groups.iter().all(|(span, stages)| {
            let mut group_of = vec![(0, 0); self.axes.gpus()];
            for (number, members) in stages.iter().flatten().enumerate() {
                members.iter().enumerate().for_each(|(rank, &gpu)| group_of[gpu] = (number, rank));
            }
            let unchanged = |members: &Vec<usize>| {
                let (number, by) = group_of[permutation(members[0])];
                let around = |rank: usize| (number, (rank + by) % members.len());
                let ordered =
                    members.iter().enumerate().all(|(rank, &gpu)| group_of[permutation(gpu)] == around(rank));
                let of_span = self.comms.iter().filter(|comm| comm.over == *span);
                ordered
                    && of_span.into_iter().all(|comm| {
                        let plan = self.algorithms.plan(comm.operation, members.len(), comm.bytes);
                        plan.is_unchanged_by_rotation(by)
                    })
            };
            stages.iter().flatten().filter(|members| members.len() > 1).all(unchanged)
        })
    }

    /// Returns true if the ranks of every group with simulated ranks are represented within it.
    fn represents(&self, of: &[usize]) -> bool {
        let within = |members: &Vec<usize>| {
            !members.iter().any(|&gpu| of[gpu] == gpu)
                || members.iter().all(|&gpu| members.binary_search(&of[gpu]).is_ok())
        };
        self.groups.iter().flat_map(|(_, stages)| stages.iter().flatten()).all(within)
    }

    /// Returns the largest set of symmetries and the representatives they give. The error is the reason why nothing
    /// is symmetric.
    pub(super) fn symmetric(&self, topology: &Topology) -> Result<(Representatives, Folding), String> {
        let Axes { tp, dp, .. } = *self.axes;
        let moved = |gpu: usize, tensor: usize, data: usize| {
            let place = self.axes.outside(gpu);
            self.axes.gpu(Place {
                tensor: (place.tensor + tensor) % tp,
                data: (place.data + data) % dp,
                ..place
            })
        };
        let symmetry = |tensor: usize, data: usize| {
            if !self.is_unchanged_by(&|gpu| moved(gpu, tensor, data)) {
                return None;
            }
            symmetry_of(topology, self.hosts, |gpu| moved(gpu, tensor, data))
        };
        let tensor = smallest_step(tp, |by| symmetry(by, 0));
        let data = smallest_step(dp, |by| symmetry(0, by));
        let least = |found: &Option<(usize, Automorphism)>, all| found.as_ref().map_or(all, |(by, _)| *by);
        let of_gpus = |tensor: usize, data: usize| -> Vec<usize> {
            let of = |gpu: usize| {
                let place = self.axes.outside(gpu);
                self.axes.gpu(Place { tensor: place.tensor % tensor, data: place.data % data, ..place })
            };
            (0..self.axes.gpus()).map(of).collect()
        };
        let candidates = [
            (tensor.is_some() && data.is_some()).then_some((tensor.clone(), data.clone())),
            data.is_some().then_some((None, data)),
            tensor.is_some().then_some((tensor, None)),
        ];
        for (tensor, data) in candidates.into_iter().flatten() {
            let (tensor_ranks, replicas) = (least(&tensor, tp), least(&data, dp));
            let representative = of_gpus(tensor_ranks, replicas);
            if !self.represents(&representative) {
                continue;
            }
            let alike = Representatives::new(representative, tp / tensor_ranks * (dp / replicas));
            let symmetries = [tensor, data].into_iter().flatten().map(|(_, symmetry)| symmetry).collect();
            let folding = alike.folding(topology, self.hosts, symmetries);
            return Ok((alike, folding));
        }
        Err(NOTHING_SYMMETRIC.to_owned())
    }

    /// Returns the number of stages next to that of the job, at most `most`, with which at least `order` ranks are alike,
    /// and the number of replicas then.
    pub(super) fn stages_with_symmetry(
        &self,
        topology: &Topology,
        most: usize,
        order: f64,
    ) -> Option<(usize, usize)> {
        let mut other: Vec<Axes> = (1..=most).filter_map(|pp| self.axes.with_stages(pp)).collect();
        let apart = |axes: &Axes| (axes.pp as f64 / self.axes.pp as f64).ln().abs();
        other.retain(|axes| axes.pp != self.axes.pp && axes.stages_agree());
        other.sort_by(|a, b| apart(a).total_cmp(&apart(b)));
        other.iter().take(OTHER_STAGES).find_map(|axes| {
            let job = Job { axes, groups: &groups(axes), ..*self };
            let (alike, _) = job.symmetric(topology).ok()?;
            (alike.order() as f64 >= order).then_some((axes.pp, axes.dp))
        })
    }
}

#[cfg(test)]
mod tests {
    use pathweave_units::Rate;

    use super::super::axes::{ORDER, parse_order};
    use super::*;
    use crate::config::{WorkloadConfig, build};
    use crate::env::WorkloadEnv;
    use crate::fold::Fold;

    /// 24 GPUs on leaves of four. The six GPUs of a stage of four fill a leaf and a half, so that no rotation of
    /// replicas keeps leaves together. Stages of eight fill two leaves, stages of four fill one.
    #[test]
    fn stages_that_fill_leaves_have_ranks_that_are_alike() {
        let topology = crate::testing::leaf_spine(6, 2, 4);
        let order = parse_order(ORDER).unwrap();
        let axes = Axes { tp: 1, cp: 1, dp: 6, pp: 4, etp: 1, ep: 1, edp: 6, order };
        let hosts: Vec<u32> = (0..24).collect();
        let (groups, algorithms) = (groups(&axes), Algorithms::default());
        let job = Job { axes: &axes, groups: &groups, comms: &[], algorithms: &algorithms, hosts: &hosts };
        assert!(job.symmetric(&topology).is_err());
        assert_eq!(job.stages_with_symmetry(&topology, 12, 2.0), Some((3, 8)));
        assert_eq!(job.stages_with_symmetry(&topology, 12, 3.0), Some((6, 4)));
        assert_eq!(job.stages_with_symmetry(&topology, 3, 4.0), Some((1, 24)));
        assert_eq!(job.stages_with_symmetry(&topology, 12, 7.0), None);
    }
    /// Iterations are so many that one of two GPUs has to be run, or one of four. With too many for that,
    /// no number of stages helps.
    #[test]
    fn a_job_that_is_too_large_names_stages_with_which_it_is_not() {
        let error = |iterations: u32| {
            let traffic = serde_json::json!({
                "kind": "transformer", "layers": 12, "hidden": 512, "heads": 8, "vocabulary": 32_000, "sequence": 512,
                "feed_forward_hidden": 2_048, "gpu": "h100", "microbatches": 8, "pp": 4, "iterations": iterations,
            });
            let topology = std::sync::Arc::new(crate::testing::leaf_spine(6, 2, 4));
            let env =
                WorkloadEnv { fold: Fold::Large(topology), ..WorkloadEnv::new(24, Rate::from_gbps(100)) };
            let traffic = serde_json::from_value(traffic).unwrap();
            build(&[WorkloadConfig::new(traffic)], &env).unwrap_err().to_string()
        };
        let most = [100_000, 200_000, 100_000_000].map(error);
        assert!(most[0].contains("with pp = 3, and so dp = 8, more are alike"), "{}", most[0]);
        assert!(most[1].contains("with pp = 6, and so dp = 4, more are alike"), "{}", most[1]);
        assert!(most[2].contains(NOTHING_SYMMETRIC) && !most[2].contains("with pp"), "{}", most[2]);
    }
}
