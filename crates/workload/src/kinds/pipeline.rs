//! Pipeline-parallel training: stages forward activations to the next stage, and gradients to the previous
//! one.

use pathweave_units::{Bytes, Duration};
use serde::{Deserialize, Serialize};

use super::placement::{GroupSize, Placement, configured_groups};
use crate::builder::{Draft, Stream};
use crate::error::WorkloadError;
use crate::graph::{JobId, Parallelism};
use crate::hosts::HostList;
use crate::sink::{Generate, WorkloadBuilder};

/// Groups of hosts that each hold a model, one stage per host. Each iteration of each group is a job.
///
/// An iteration processes each microbatch forward through all stages, and then backward. A stage does one
/// computation at a time, in the order of its schedule, each once its input has arrived from the adjacent
/// stage. A stage begins the next iteration when it has finished the current one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pipeline {
    /// Number of stages in a pipeline, 2 or more, one host each. Default: one pipeline of all hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stages: Option<u32>,
    /// Assignment of hosts to pipelines.
    #[serde(default)]
    pub placement: Placement,
    /// Hosts of each pipeline in the order of its stages: a list of numbers, names and patterns, or a pattern
    /// such as "srv*.gpu0". Replaces `stages` and `placement`. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<HostList>,
    /// Number of microbatches in an iteration.
    pub microbatches: u32,
    /// Size of a message between stages for one microbatch, forward and backward: microbatch x sequence x
    /// hidden size x bytes per value.
    pub activation: Bytes,
    /// Duration of a stage's forward computation for one microbatch (default 0).
    #[serde(default)]
    pub forward: Duration,
    /// Duration of a stage's backward computation for one microbatch (default 0). It is about twice
    /// `forward`, because it has twice the multiplications.
    #[serde(default)]
    pub backward: Duration,
    /// Order of a stage's computations.
    #[serde(default)]
    pub schedule: Schedule,
    /// Number of iterations, one after another (default 1).
    #[serde(default = "one")]
    pub repetitions: u32,
}

/// Order of the computations of a pipeline stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub enum Schedule {
    /// One forward, one backward. Stage s of S first does S - 1 - s microbatches forward, and then alternates
    /// between one forward and one backward (Narayanan et al., "PipeDream", SOSP 2019, with a flush after
    /// each iteration).
    #[default]
    #[serde(rename = "1f1b")]
    OneForwardOneBackward,
    /// All microbatches forward, then all backward (Huang et al., "GPipe", 2019).
    #[serde(rename = "gpipe")]
    GPipe,
}

/// Next computation of a stage, with the index of its microbatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Forward(usize),
    Backward(usize),
}

fn one() -> u32 {
    1
}

impl Schedule {
    fn acts(self, stage: usize, stages: usize, microbatches: usize) -> Vec<Act> {
        let ahead = match self {
            Schedule::OneForwardOneBackward => (stages - 1 - stage).min(microbatches),
            Schedule::GPipe => microbatches,
        };
        let mut acts: Vec<Act> = (0..ahead).map(Act::Forward).collect();
        for batch in 0..microbatches {
            if batch + ahead < microbatches {
                acts.push(Act::Forward(batch + ahead));
            }
            acts.push(Act::Backward(batch));
        }
        acts
    }
}

impl Generate for Pipeline {
    fn generate(&self, out: &mut WorkloadBuilder<'_>) -> Result<(), WorkloadError> {
        for (field, value) in [("microbatches", self.microbatches), ("repetitions", self.repetitions)] {
            if value == 0 {
                return out.field_error(field, 0, "expected 1 or more");
            }
        }
        let hosts = out.env.hosts;
        if let Some(stages) = self.stages.filter(|&s| s < 2 || s > hosts) {
            return out.field_error("stages", stages, format!("expected 2 to {hosts}, the number of hosts"));
        }
        let stages = self.stages.map(GroupSize::from);
        let groups = configured_groups(out, &self.groups, stages.as_ref(), self.placement)?;
        let stages: usize = groups.iter().map(Vec::len).sum();
        out.check_count(4.0 * stages as f64 * f64::from(self.microbatches) * f64::from(self.repetitions))?;
        for (number, members) in groups.iter().enumerate() {
            let mut last: Vec<Option<Draft>> = vec![None; members.len()];
            let mut before = None;
            for iteration in 0..self.repetitions {
                let name = format_args!("pipeline {number}, iteration {iteration}");
                let job = out.next_job(name, &mut before)?;
                self.iteration(out, members, &mut last, job)?;
            }
        }
        Ok(())
    }
}

impl Pipeline {
    /// Declares one iteration. `last` holds the last task of each stage.
    fn iteration(
        &self,
        out: &mut WorkloadBuilder<'_>,
        members: &[u32],
        last: &mut [Option<Draft>],
        job: JobId,
    ) -> Result<(), WorkloadError> {
        let (stages, batches) = (members.len(), self.microbatches as usize);
        let mut forward: Vec<Vec<Draft>> = Vec::with_capacity(stages);
        let mut backward: Vec<Vec<Draft>> = Vec::with_capacity(stages);
        for (stage, &host) in members.iter().enumerate() {
            let (mut ahead, mut back) = (Vec::with_capacity(batches), Vec::with_capacity(batches));
            for act in self.schedule.acts(stage, stages, batches) {
                // A stage processes microbatches in order, in both directions.
                let (list, duration, activity, batch) = match act {
                    Act::Forward(batch) => (&mut ahead, self.forward, "forward", batch),
                    Act::Backward(batch) => (&mut back, self.backward, "backward", batch),
                };
                out.doing(activity, format_args!("microbatch {batch}"));
                let task = out.compute(host, duration, job)?;
                if let Some(before) = last[stage].replace(task) {
                    out.after(task, before)?;
                }
                list.push(task);
            }
            forward.push(ahead);
            backward.push(back);
        }
        for stage in 1..stages {
            for batch in 0..batches {
                let (up, down) = (members[stage - 1], members[stage]);
                out.label_parallelism(
                    Parallelism::Pipeline,
                    "activations",
                    format_args!("microbatch {batch}"),
                );
                self.pass(out, (up, down), [forward[stage - 1][batch], forward[stage][batch]], job)?;
                out.label_parallelism(Parallelism::Pipeline, "gradients", format_args!("microbatch {batch}"));
                self.pass(out, (down, up), [backward[stage][batch], backward[stage - 1][batch]], job)?;
            }
        }
        Ok(())
    }

    /// Declares a message from one task to another.
    fn pass(
        &self,
        out: &mut WorkloadBuilder<'_>,
        pair: (u32, u32),
        [from, to]: [Draft; 2],
        job: JobId,
    ) -> Result<(), WorkloadError> {
        let message = out.message(pair, self.activation, Duration::ZERO, Stream::Shared(0), Some(job))?;
        out.after(message, from)?;
        out.after(to, message)
    }
}

#[cfg(test)]
mod tests {
    use pathweave_units::Time;

    use super::*;
    use crate::bounds::JobSpans;
    use crate::kinds::Traffic;
    use crate::testing::{error_of, graph_of, job_ends};

    fn pipeline(schedule: Schedule, microbatches: u32) -> Pipeline {
        Pipeline {
            stages: None,
            placement: Placement::Consecutive,
            groups: Vec::new(),
            microbatches,
            activation: Bytes::new(1000),
            forward: Duration::from_us(10),
            backward: Duration::from_us(20),
            schedule,
            repetitions: 1,
        }
    }

    #[test]
    fn schedules_by_hand() {
        use Act::{Backward as B, Forward as F};
        let turns = |stage| Schedule::OneForwardOneBackward.acts(stage, 3, 4);
        assert_eq!(turns(0), [F(0), F(1), F(2), B(0), F(3), B(1), B(2), B(3)]);
        assert_eq!(turns(1), [F(0), F(1), B(0), F(2), B(1), F(3), B(2), B(3)]);
        assert_eq!(turns(2), [F(0), B(0), F(1), B(1), F(2), B(2), F(3), B(3)]);
        assert_eq!(Schedule::OneForwardOneBackward.acts(0, 9, 2), [F(0), F(1), B(0), B(1)]);
        assert_eq!(Schedule::GPipe.acts(1, 3, 2), [F(0), F(1), B(0), B(1)]);
    }

    #[test]
    fn two_stages_by_hand() {
        // A message takes a microsecond. Stage 1: F0 11-21, B0 21-41, F1 41-51, B1 51-71. Stage 0: F0 0-10,
        // F1 10-20, B0 42-62, B1 72-92.
        let graph = graph_of(2, Traffic::Pipeline(pipeline(Schedule::OneForwardOneBackward, 2)));
        assert_eq!((graph.messages().len(), graph.computes().len()), (4, 8));
        assert_eq!(job_ends(&graph), [Time::from_us(92)]);
        // Without a network, the time is (S - 1 + m) (f + b).
        assert_eq!(JobSpans::from_graph(&graph).span(JobId(0)), Duration::from_us(3 * 30));
        // Four microbatches: GPipe does everything forward while stage 1 computes. The last B ends one
        // message later. Stage 1: F 11-51, B 51-131. Stage 0: B3 132-152.
        let graph = graph_of(2, Traffic::Pipeline(pipeline(Schedule::GPipe, 4)));
        assert_eq!(job_ends(&graph), [Time::from_us(152)]);
    }

    #[test]
    fn iterations_follow_each_other_with_a_flush() {
        let config = Pipeline { repetitions: 2, stages: Some(2), ..pipeline(Schedule::GPipe, 2) };
        let graph = graph_of(4, Traffic::Pipeline(config));
        let (once, twice) = (Time::from_us(92), Time::from_us(184));
        assert_eq!(job_ends(&graph), [once, twice, once, twice]);
    }

    #[test]
    fn fields_out_of_range_are_named() {
        let error = |config: Pipeline| error_of(4, Traffic::Pipeline(config));
        let good = pipeline(Schedule::GPipe, 2);
        assert!(error(pipeline(Schedule::GPipe, 0)).contains("microbatches = 0: expected 1 or more"));
        assert!(error(Pipeline { stages: Some(5), ..good.clone() }).contains("stages = 5: expected 2 to 4"));
        assert!(error(Pipeline { activation: Bytes::ZERO, ..good }).contains("message of 0 bytes"));
    }
}
