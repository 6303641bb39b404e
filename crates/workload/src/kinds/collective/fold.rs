//! Symmetric ranks of collectives.
//!
//! Two kinds of permutation are tried. One moves every group onto the group a fixed number of positions
//! further, rank for rank. The other rotates the ranks of every group by a fixed number. A permutation is a
//! symmetry if the network is unchanged by it, and the algorithm distinguishes ranks only by their order
//! around a ring.

use pathweave_topo::{Automorphism, Topology};
use pathweave_units::HostId;

use crate::collective::Plan;
use crate::fold::{Folding, smallest_step};

/// Ranks that are simulated: the first `ranks` ranks of each of the first `groups` groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Alike {
    ranks: usize,
    pub(super) groups: usize,
    /// Number of ranks that each simulated rank represents.
    pub(super) order: usize,
}

impl Alike {
    /// Returns the representative of each rank of a group of `of` ranks.
    pub(super) fn ranks(self, of: usize) -> Vec<usize> {
        (0..of).map(|rank| rank % self.ranks).collect()
    }
}

/// Returns the largest set of symmetries and the representatives they give. All groups of the plan's size run
/// this plan. The error is the reason why nothing is symmetric.
pub(super) fn find(
    topology: &Topology,
    groups: &[Vec<u32>],
    plan: &Plan,
) -> Result<(Alike, Folding), String> {
    let size = plan.ranks;
    if groups.iter().any(|group| group.len() != size) {
        return Err("groups differ in size".to_owned());
    }
    let mut taken = vec![false; topology.hosts() as usize];
    if groups.iter().flatten().any(|&host| std::mem::replace(&mut taken[host as usize], true)) {
        return Err("a host is in several groups".to_owned());
    }
    let exchange = |by_groups: usize, by_ranks: usize| {
        let mut moved: Vec<u32> = (0..topology.hosts()).collect();
        for (number, group) in groups.iter().enumerate() {
            let to = &groups[(number + by_groups) % groups.len()];
            for (rank, &host) in group.iter().enumerate() {
                moved[host as usize] = to[(rank + by_ranks) % size];
            }
        }
        Automorphism::of_hosts(topology, &moved)
    };
    let of_groups = smallest_step(groups.len(), |by| exchange(by, 0));
    let of_ranks =
        smallest_step(size, |by| if plan.is_unchanged_by_rotation(by) { exchange(0, by) } else { None });
    let (played_groups, played_ranks) =
        (of_groups.as_ref().map_or(groups.len(), |of| of.0), of_ranks.as_ref().map_or(size, |of| of.0));
    let order = groups.len() / played_groups * (size / played_ranks);
    if order == 1 {
        let why =
            "no exchange of groups or of their ranks leaves both the network and the collective as it is";
        return Err(why.to_owned());
    }
    let mut representative: Vec<HostId> = (0..topology.hosts()).map(HostId).collect();
    for (number, group) in groups.iter().enumerate() {
        for (rank, &host) in group.iter().enumerate() {
            representative[host as usize] = HostId(groups[number % played_groups][rank % played_ranks]);
        }
    }
    let symmetries = [of_groups, of_ranks].into_iter().flatten().map(|(_, symmetry)| symmetry).collect();
    let alike = Alike { ranks: played_ranks, groups: played_groups, order };
    Ok((alike, Folding { representative, symmetries, order: order as u32 }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pathweave_units::{Bytes, Duration, Rate};

    use super::super::{Collective, ComputeWhen};
    use super::*;
    use crate::algorithm::Algorithm;
    use crate::collective::{Operation, chunk};
    use crate::config::{WorkloadConfig, build};
    use crate::env::WorkloadEnv;
    use crate::fold::Fold;
    use crate::graph::MessageGraph;
    use crate::kinds::{GroupSize, Placement, Traffic};
    use crate::testing::{job_ends, leaf_spine};

    /// Makes 16 hosts on four leaves.
    fn leaves() -> Arc<Topology> {
        Arc::new(leaf_spine(4, 2, 4))
    }

    fn collective(operation: Operation, group_size: Option<u32>) -> Collective {
        Collective {
            operation,
            algorithm: None,
            size: Bytes::new(16_000),
            group_size: group_size.map(GroupSize::from),
            placement: Placement::Consecutive,
            groups: Vec::new(),
            local_size: 8,
            chunk: chunk(),
            repetitions: 2,
            compute: Duration::from_us(3),
            compute_when: ComputeWhen::Beside,
        }
    }

    fn built(config: &Collective, fold: Fold) -> Result<MessageGraph, String> {
        let env = WorkloadEnv { fold, ..WorkloadEnv::new(16, Rate::from_gbps(8)) };
        let made = build(&[WorkloadConfig::new(Traffic::Collective(config.clone()))], &env);
        made.map(|made| made.graph).map_err(|why| why.to_string())
    }

    #[test]
    fn ranks_that_are_alike_take_as_long_as_all_of_them() {
        let eight = |operation| collective(operation, Some(8));
        for (config, order) in [
            // Two groups of two leaves: the groups can be exchanged, and so can the leaves of each group.
            (eight(Operation::AllReduce), 4),
            (eight(Operation::AllToAll), 4),
            // Each group has one host of each leaf.
            (Collective { placement: Placement::Strided, ..collective(Operation::AllGather, Some(4)) }, 16),
            // Trees distinguish ranks, but not groups.
            (Collective { algorithm: Some(Algorithm::DoubleBinaryTree), ..eight(Operation::AllReduce) }, 2),
            (eight(Operation::Broadcast), 2),
            (
                Collective {
                    algorithm: Some(Algorithm::Hierarchical),
                    local_size: 2,
                    ..eight(Operation::AllReduce)
                },
                4,
            ),
            (collective(Operation::ReduceScatter, None), 4),
        ] {
            let whole = built(&config, Fold::Large(leaves())).unwrap();
            assert_eq!(whole.folding(), None, "it is small");
            let folded = built(&config, Fold::Always(leaves())).unwrap();
            let folding = folded.folding().expect("ranks are alike");
            assert_eq!(folding.order(), order, "{config:?}");
            let times = order as usize;
            assert_eq!(times * folded.messages().len(), whole.messages().len(), "{config:?}");
            assert_eq!(times * folded.computes().len(), whole.computes().len());
            assert_eq!(times * folded.dependency_count(), whole.dependency_count());
            assert!(folded.messages().iter().all(|m| folding.representative(m.src) == m.src));
            // The folded graph lacks the jobs of represented groups. The other jobs take as long as in the
            // whole graph.
            let (ends, all) = (job_ends(&folded), job_ends(&whole));
            assert_eq!(ends, all[..ends.len()], "{config:?}");
        }
    }

    #[test]
    fn differences_of_ranks_are_named() {
        let why = |config: Collective| built(&config, Fold::Always(leaves())).unwrap_err();
        let listed = |groups: &[&[u32]]| Collective {
            groups: groups.iter().map(|group| group.to_vec().into()).collect(),
            ..collective(Operation::AllReduce, None)
        };
        let uneven = why(listed(&[&[0, 1, 2], &[4, 5]]));
        assert!(
            uneven.contains("run.fold = \"always\"") && uneven.contains("groups differ in size"),
            "{uneven}"
        );
        assert!(why(listed(&[&[0, 1], &[1, 2]])).contains("a host is in several groups"));
        // Host 4 is on another leaf.
        let torn = why(listed(&[&[0, 1, 4], &[8, 9, 10]]));
        assert!(torn.contains("leaves both the network and the collective as it is"), "{torn}");
    }
}
