//! Collectives, each with the algorithms that libraries offer.

mod fold;

use pathweave_units::{Bytes, Duration};
use serde::{Deserialize, Serialize};

use self::fold::Alike;
use super::placement::{GroupSize, Placement, configured_groups};
use crate::algorithm::Algorithm;
use crate::builder::Draft;
use crate::collective::{Operation, Plan, Ranks, Through, chunk, eight, note_ineffective_pieces};
use crate::counts::Counts;
use crate::error::WorkloadError;
use crate::fold::Fold;
use crate::graph::JobId;
use crate::hosts::HostList;
use crate::sink::{Generate, WorkloadBuilder};

/// Groups of hosts that run a collective, as NCCL and MPI do. Each round of each group is a job. Results
/// state its algorithm bandwidth and bus bandwidth as nccl-tests define them.
///
/// A host sends a block once all its contents have arrived. A host has finished a round when all it receives
/// is delivered and all it sends is acknowledged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Collective {
    /// Operation of the collective.
    pub operation: Operation,
    /// Algorithm of the collective. Default: `direct` for an all-to-all, otherwise `ring`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<Algorithm>,
    /// Size as nccl-tests define it, see `operation`. At least one byte for each part into which the
    /// algorithm divides the vector.
    pub size: Bytes,
    /// Number of hosts in a group, or a list of numbers, one for each group. Default: one group of all
    /// hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_size: Option<GroupSize>,
    /// Assignment of hosts to groups and ranks.
    #[serde(default)]
    pub placement: Placement,
    /// Hosts of each group in the order of their ranks: a list of numbers, names and patterns, or a pattern
    /// such as "srv[0-3].gpu*". Replaces `group_size` and `placement`. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<HostList>,
    /// Number of consecutive ranks that form a server, for the hierarchical all-reduce (default 8, the GPUs
    /// of an HGX board).
    #[serde(default = "eight")]
    pub local_size: u32,
    /// Largest piece that double binary trees and chains send, bytes (default 512 KiB: NCCL's buffer of 4 MiB
    /// has 8 steps).
    #[serde(default = "chunk")]
    pub chunk: Bytes,
    /// Number of rounds, one after another (default 1). A host begins the next round when its part of the
    /// previous one has ended.
    #[serde(default = "one")]
    pub repetitions: u32,
    /// Duration of a computation at each host in each round, as part of the round's job (default 0).
    #[serde(default)]
    pub compute: Duration,
    /// Time of the computation within the round.
    #[serde(default)]
    pub compute_when: ComputeWhen,
}

/// Time of a host's computation within a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ComputeWhen {
    /// The host computes after its part of the collective.
    #[default]
    After,
    /// The host computes while it communicates. The round ends when both have ended.
    Beside,
}

fn one() -> u32 {
    1
}

impl Generate for Collective {
    fn generate(&self, out: &mut WorkloadBuilder<'_>) -> Result<(), WorkloadError> {
        if self.repetitions == 0 {
            return out.field_error("repetitions", 0, "expected 1 or more");
        }
        let groups = configured_groups(out, &self.groups, self.group_size.as_ref(), self.placement)?;
        let (mut expected, mut all) = (0.0, Counts::default());
        for group in &groups {
            let plan = self.plan(group.len());
            if let Err((field, value, allowed)) = plan.check() {
                return out.field_error(field, value, allowed);
            }
            expected += (plan.messages() + 2.0 * group.len() as f64) * f64::from(self.repetitions);
        }
        let alike = self.alike(out, &groups, expected)?;
        let order = alike.map_or(1, |alike| alike.order);
        out.check_count(expected / order as f64)?;
        let mut known: Vec<(usize, Counts)> = Vec::new();
        for ranks in groups.iter().map(Vec::len) {
            let counts = match known.iter().find(|(of, _)| *of == ranks) {
                Some(&(_, counts)) => counts,
                None => {
                    // The first round waits for nothing, and no round waits for the last. Neither counts
                    // here.
                    let (counts, through) = self.plan(ranks).count()?;
                    let counts = Counts { dependencies: counts.dependencies + through, ..counts };
                    known.push((ranks, counts));
                    counts
                }
            };
            all.add(counts.times(u64::from(self.repetitions - 1)));
        }
        out.check_dependencies(all.dependencies as f64 / order as f64)?;
        for (number, members) in groups.iter().take(alike.map_or(groups.len(), |of| of.groups)).enumerate() {
            let alike = alike.map(|alike| alike.ranks(members.len()));
            let (mut ready, mut before) = (vec![None; members.len()], None);
            let mut through: Vec<Through> = Vec::new();
            for round in 0..self.repetitions {
                let job = out.next_job(format_args!("group {number}, round {round}"), &mut before)?;
                let group = Group { job, members, alike: alike.as_deref() };
                if round > 0 && self.compute == Duration::ZERO {
                    ready = group.wait_for(out, &through)?;
                }
                through = self.messages(out, group, round, &ready)?;
                if self.compute > Duration::ZERO {
                    ready = self.computations(out, group, round, (&ready, &through))?;
                }
            }
        }
        note_ineffective_pieces(out, "", self.local_size, self.chunk);
        if self.compute == Duration::ZERO && self.compute_when != ComputeWhen::default() {
            out.note_ineffective("compute_when", "`compute` is 0s");
        }
        Ok(())
    }
}

/// A group that runs the collective, for one round.
#[derive(Clone, Copy)]
struct Group<'a> {
    job: JobId,
    /// Host of each rank.
    members: &'a [u32],
    /// Representative of each rank; `None` if each rank represents itself only.
    alike: Option<&'a [usize]>,
}

impl Collective {
    /// Creates one ring all-reduce of all hosts.
    pub(super) fn ring(size: Bytes) -> Self {
        Collective {
            operation: Operation::AllReduce,
            algorithm: Some(Algorithm::Ring),
            size,
            group_size: None,
            placement: Placement::default(),
            groups: Vec::new(),
            local_size: eight(),
            chunk: chunk(),
            repetitions: 1,
            compute: Duration::ZERO,
            compute_when: ComputeWhen::After,
        }
    }

    fn plan(&self, ranks: usize) -> Plan {
        Plan {
            operation: self.operation,
            algorithm: self.algorithm.unwrap_or(self.operation.algorithms()[0]),
            ranks,
            size: self.size.get(),
            chunk: self.chunk.get(),
            ranks_per_server: self.local_size as usize,
        }
    }

    /// Returns the ranks to simulate, if the workload is folded, and records the representatives in the
    /// graph. `expected` is the number of messages and computations of all ranks.
    fn alike(
        &self,
        out: &mut WorkloadBuilder<'_>,
        groups: &[Vec<u32>],
        expected: f64,
    ) -> Result<Option<Alike>, WorkloadError> {
        let Some(topology) = out.may_fold(|| Ok(expected > Fold::LARGE as f64))? else { return Ok(None) };
        let found = fold::find(&topology, groups, &self.plan(groups[0].len()));
        out.fold(found, groups.iter().map(Vec::len).sum(), ("operation", self.operation.name()))
    }

    /// Declares the messages of one round. `ready` holds the task after which each simulated rank may begin; all are
    /// `None` in the first round. Returns what each rank waits for.
    fn messages(
        &self,
        out: &mut WorkloadBuilder<'_>,
        group: Group<'_>,
        round: u32,
        ready: &[Option<Draft>],
    ) -> Result<Vec<Through>, WorkloadError> {
        let Group { job, members, alike } = group;
        let plan = self.plan(members.len());
        out.measure(job, plan.operation.measure(plan.ranks, plan.size));
        out.collective(format_args!("round {round}"), plan.steps(None));
        plan.put(out, Ranks { members, alike, ready, stream: 0, job })
    }

    /// Declares the computations of one round. Returns the tasks after which ranks begin the next one.
    fn computations(
        &self,
        out: &mut WorkloadBuilder<'_>,
        group: Group<'_>,
        round: u32,
        (ready, through): (&[Option<Draft>], &[Through]),
    ) -> Result<Vec<Option<Draft>>, WorkloadError> {
        let job = group.job;
        out.doing("compute", format_args!("round {round}"));
        let mut done = vec![None; group.members.len()];
        for (rank, host) in group.simulated() {
            let task = match self.compute_when {
                ComputeWhen::After => out.compute(host, self.compute, job)?,
                ComputeWhen::Beside => {
                    let beside = out.compute(host, self.compute, job)?;
                    if let Some(before) = ready[rank] {
                        out.after(beside, before)?;
                    }
                    let both = out.compute(host, Duration::ZERO, job)?;
                    out.after(both, beside)?;
                    both
                }
            };
            for &(message, moment) in &through[rank] {
                out.after_moment(task, message, moment)?;
            }
            done[rank] = Some(task);
        }
        Ok(done)
    }
}

impl Group<'_> {
    /// Iterates over the simulated ranks, each with its host.
    fn simulated(&self) -> impl Iterator<Item = (usize, u32)> {
        let is_simulated = |rank: usize| self.alike.is_none_or(|alike| alike[rank] == rank);
        self.members.iter().copied().enumerate().filter(move |(rank, _)| is_simulated(*rank))
    }

    /// Declares the wait of each rank for its messages of the round before. This wait belongs to the round that it
    /// delays: the round before is over with its last message, although the sender still lacks an acknowledgement.
    fn wait_for(
        &self,
        out: &mut WorkloadBuilder<'_>,
        through: &[Through],
    ) -> Result<Vec<Option<Draft>>, WorkloadError> {
        out.label_activity("wait");
        let mut ready = vec![None; self.members.len()];
        for (rank, host) in self.simulated() {
            let task = out.compute(host, Duration::ZERO, self.job)?;
            for &(message, moment) in &through[rank] {
                out.after_moment(task, message, moment)?;
            }
            ready[rank] = Some(task);
        }
        Ok(ready)
    }
}

#[cfg(test)]
mod tests {
    use pathweave_units::Time;

    use super::*;
    use crate::bounds::JobSpans;
    use crate::graph::{JobId, MessageGraph};
    use crate::kinds::Traffic;
    use crate::testing::{error_of, graph_of, job_ends, notes_of};

    fn collective(operation: Operation, size: u64) -> Collective {
        Collective {
            operation,
            algorithm: None,
            size: Bytes::new(size),
            group_size: None,
            placement: Placement::Consecutive,
            groups: Vec::new(),
            local_size: 8,
            chunk: chunk(),
            repetitions: 1,
            compute: Duration::ZERO,
            compute_when: ComputeWhen::After,
        }
    }
    fn graph(hosts: u32, config: Collective) -> MessageGraph {
        graph_of(hosts, Traffic::Collective(config))
    }
    fn error(config: Collective) -> String {
        error_of(8, Traffic::Collective(config))
    }

    #[test]
    fn settings_without_effect_are_noted() {
        let notes = |config| notes_of(8, Traffic::Collective(config));
        let ring = collective(Operation::AllReduce, 8000);
        assert_eq!(notes(ring.clone()), [""; 0]);
        let set = Collective {
            chunk: Bytes::new(1000),
            local_size: 4,
            compute_when: ComputeWhen::Beside,
            placement: Placement::Random,
            groups: vec![(0..4).collect::<Vec<u32>>().into()],
            ..ring.clone()
        };
        assert_eq!(
            notes(set.clone()),
            [
                "`placement` has no effect: `groups` lists the hosts",
                "`chunk` has no effect: nothing is a double binary tree or a chain",
                "`local_size` has no effect: nothing is a hierarchical all-reduce",
                "`compute_when` has no effect: `compute` is 0s",
            ]
        );
        let algorithm = Some(Algorithm::DoubleBinaryTree);
        let tree = Collective { chunk: Bytes::new(1000), algorithm, ..ring.clone() };
        let chain = Collective { operation: Operation::Broadcast, chunk: Bytes::new(1000), ..ring.clone() };
        let servers = Collective { local_size: 4, algorithm: Some(Algorithm::Hierarchical), ..ring.clone() };
        let beside = Collective { compute: Duration::from_us(1), compute_when: ComputeWhen::Beside, ..ring };
        for acts in [tree, chain, servers, beside] {
            assert_eq!(notes(acts), [""; 0]);
        }
    }

    #[test]
    fn rounds_follow_each_other_and_computation_hides_what_is_beside_it() {
        // Four hosts at a nanosecond per byte: 3 steps of 1000 bytes.
        let all_gather = Collective {
            repetitions: 2,
            compute: Duration::from_us(2),
            ..collective(Operation::AllGather, 4000)
        };
        assert_eq!(job_ends(&graph(4, all_gather.clone())), [Time::from_us(5), Time::from_us(10)]);
        let beside = graph(4, Collective { compute_when: ComputeWhen::Beside, ..all_gather.clone() });
        assert_eq!(job_ends(&beside), [Time::from_us(3), Time::from_us(6)]);
        let hidden =
            Collective { compute: Duration::from_us(7), compute_when: ComputeWhen::Beside, ..all_gather };
        let hidden = graph(4, hidden);
        assert_eq!(job_ends(&hidden), [Time::from_us(7), Time::from_us(14)]);
        // On an infinitely fast network, only the computation remains.
        assert_eq!(JobSpans::from_graph(&hidden).span(JobId(1)), Duration::from_us(7));
        assert_eq!(JobSpans::from_graph(&beside).span(JobId(0)), Duration::from_us(2));
    }

    #[test]
    fn groups_may_be_listed() {
        let listed = Collective {
            groups: vec![vec![5, 1].into(), vec![0, 2, 4].into()],
            ..collective(Operation::AllToAll, 3000)
        };
        let made = graph(6, listed.clone());
        assert_eq!(made.messages().len(), 2 + 6);
        let measures: Vec<_> = made.jobs().iter().map(|j| j.measure.unwrap().bus.get()).collect();
        assert_eq!(measures, [1500, 2000]);
        for (groups, what) in [
            (vec![vec![1, 2, 1]], "workload \"collective\": groups = [1, 2, 1]: host 1 is in it twice"),
            (vec![vec![7, 8]], "workload \"collective\": groups = [7, 8]: hosts are 0 to 7"),
            (
                vec![vec![3]],
                "workload \"collective\": groups = [3]: expected two hosts or more in each group",
            ),
        ] {
            assert_eq!(
                error(Collective {
                    groups: groups.into_iter().map(HostList::from).collect(),
                    ..listed.clone()
                }),
                what
            );
        }
        assert!(
            error(Collective { group_size: Some(2.into()), ..listed })
                .contains("group_size or groups, not both")
        );
    }

    #[test]
    fn fields_out_of_range_are_named() {
        let good = collective(Operation::AllReduce, 4000);
        assert!(error(Collective { repetitions: 0, ..good.clone() }).contains("repetitions = 0"));
        assert!(
            error(Collective { size: Bytes::new(7), ..good.clone() })
                .contains("size = 7B: expected at least 8 bytes")
        );
        assert!(error(Collective { group_size: Some(1.into()), ..good.clone() }).contains("group_size = 1"));
        let tree = Collective { algorithm: Some(Algorithm::DoubleBinaryTree), ..good.clone() };
        assert!(
            error(Collective { chunk: Bytes::ZERO, ..tree }).contains("chunk = 0B: expected 1 byte or more")
        );
        let odd = Collective { algorithm: Some(Algorithm::Hierarchical), local_size: 3, ..good.clone() };
        assert!(error(odd).contains("local_size = 3: expected a number that divides the 8 ranks"));
        let wrong = Collective { algorithm: Some(Algorithm::Bruck), ..good };
        assert!(error(wrong).contains("algorithm = bruck: all-reduce is done by ring, double-binary-tree"));
    }
}
