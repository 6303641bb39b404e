//! Order of the work of a pipeline stage.

use serde::{Deserialize, Serialize};

/// Order in which a stage processes microbatches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub enum PipelineSchedule {
    /// All microbatches forward, then all backward (Huang et al., "GPipe", 2019).
    #[serde(rename = "gpipe")]
    GPipe,
    /// One forward, one backward, once the stages behind have work (Narayanan et al., "PipeDream", 2019).
    #[serde(rename = "1f1b")]
    OneForwardOneBackward,
    /// The same, where a stage has `vp` chunks of layers that are not adjacent (Narayanan et al., "Efficient
    /// large-scale language model training on GPU clusters", SC 2021). Needs a multiple of `pp` microbatches.
    #[serde(rename = "interleaved")]
    Interleaved,
    /// One forward, one backward; gradients of weights come later, while a stage would wait (Qi et al., "Zero
    /// bubble pipeline parallelism", ICLR 2024, ZB-H1). Activations take as much memory as with 1f1b.
    #[serde(rename = "zero-bubble")]
    ZeroBubble,
}

/// Work of a stage for one microbatch and one of its chunks of layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Act {
    pub(super) pass: Pass,
    pub(super) microbatch: u32,
    pub(super) chunk: u32,
}

/// Direction of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Pass {
    Forward,
    /// The backward pass, without gradients of weights if the schedule has them apart.
    Backward,
    /// Gradients of weights, apart from the backward pass.
    Weights,
}

/// Sizes of a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pipeline {
    pub(super) schedule: PipelineSchedule,
    pub(super) stages: u32,
    /// Chunks of layers of a stage.
    pub(super) chunks: u32,
    pub(super) microbatches: u32,
}

impl PipelineSchedule {
    /// Returns true if gradients of weights are work of their own.
    pub(super) const fn splits_backward(self) -> bool {
        matches!(self, PipelineSchedule::ZeroBubble)
    }
}

impl Pipeline {
    /// Returns the number of microbatches, counted for each chunk, that a stage has forward before its first
    /// backward.
    fn ahead(&self, stage: u32) -> u32 {
        let Pipeline { stages, chunks, microbatches, .. } = *self;
        let behind = stages - 1 - stage;
        match self.schedule {
            PipelineSchedule::GPipe => microbatches * chunks,
            PipelineSchedule::OneForwardOneBackward | PipelineSchedule::ZeroBubble => behind,
            PipelineSchedule::Interleaved => 2 * behind + (chunks - 1) * stages,
        }
        .min(microbatches * chunks)
    }

    /// Returns the largest number of microbatches whose activations a stage holds, counted for each chunk.
    pub(super) fn held(&self, stage: u32) -> u32 {
        (self.ahead(stage) + 1).min(self.microbatches * self.chunks).max(match self.schedule {
            PipelineSchedule::ZeroBubble => self.stages.min(self.microbatches),
            _ => 1,
        })
    }

    /// Returns the `index`-th work of a stage in one direction. Chunks take turns after as many microbatches as
    /// there are stages.
    fn nth(&self, pass: Pass, index: u32) -> Act {
        let Pipeline { stages, chunks, .. } = *self;
        if chunks == 1 {
            return Act { pass, microbatch: index, chunk: 0 };
        }
        let (round, place) = (index / (stages * chunks), index % (stages * chunks));
        let chunk = match pass {
            Pass::Forward => place / stages,
            Pass::Backward | Pass::Weights => chunks - 1 - place / stages,
        };
        Act { pass, microbatch: round * stages + place % stages, chunk }
    }

    /// Returns the work of a stage in order.
    pub(super) fn acts(&self, stage: u32) -> Vec<Act> {
        let all = self.microbatches * self.chunks;
        let ahead = self.ahead(stage);
        let mut acts: Vec<Act> = (0..ahead).map(|index| self.nth(Pass::Forward, index)).collect();
        // Stage s holds s fewer microbatches than the first one. It delays gradients of weights by as many.
        let late = stage.min(all);
        for index in 0..all {
            if index + ahead < all {
                acts.push(self.nth(Pass::Forward, index + ahead));
            }
            acts.push(self.nth(Pass::Backward, index));
            if self.schedule.splits_backward() && index >= late {
                acts.push(self.nth(Pass::Weights, index - late));
            }
        }
        if self.schedule.splits_backward() {
            acts.extend((all - late..all).map(|index| self.nth(Pass::Weights, index)));
        }
        acts
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Returns the time of an iteration and the time that each stage computes, if messages take no time.
    fn makespan(pipeline: Pipeline, forward: u64, backward: u64, weights: u64) -> (u64, u64) {
        let Pipeline { stages, chunks, microbatches, .. } = pipeline;
        let mut left: Vec<std::collections::VecDeque<Act>> =
            (0..stages).map(|stage| pipeline.acts(stage).into()).collect();
        let mut ends: BTreeMap<(Pass, u32, u32), u64> = BTreeMap::new();
        let mut free = vec![0; stages as usize];
        let mut done = 0;
        loop {
            let before = done;
            for stage in 0..stages {
                let at = &mut left[stage as usize];
                while let Some(&act) = at.front() {
                    let place = act.chunk * stages + stage;
                    let last = stages * chunks - 1;
                    let needs = match act.pass {
                        Pass::Forward if place == 0 => None,
                        Pass::Forward => Some((Pass::Forward, act.microbatch, place - 1)),
                        Pass::Backward if place == last => Some((Pass::Forward, act.microbatch, last)),
                        Pass::Backward => Some((Pass::Backward, act.microbatch, place + 1)),
                        Pass::Weights => Some((Pass::Backward, act.microbatch, place)),
                    };
                    let ready = match needs {
                        None => 0,
                        Some(key) => match ends.get(&key) {
                            Some(&end) => end,
                            None => break,
                        },
                    };
                    let time = match act.pass {
                        Pass::Forward => forward,
                        Pass::Backward => backward,
                        Pass::Weights => weights,
                    };
                    let end = ready.max(free[stage as usize]) + time;
                    free[stage as usize] = end;
                    assert_eq!(ends.insert((act.pass, act.microbatch, place), end), None, "{act:?} twice");
                    at.pop_front();
                    done += 1;
                }
            }
            if done == before {
                break;
            }
        }
        assert!(
            left.iter().all(std::collections::VecDeque::is_empty),
            "stages wait for each other: {pipeline:?}"
        );
        let busy = u64::from(microbatches * chunks) * (forward + backward + weights);
        (free.into_iter().max().unwrap_or(0), busy)
    }

    fn pipeline(schedule: PipelineSchedule, stages: u32, chunks: u32, microbatches: u32) -> Pipeline {
        Pipeline { schedule, stages, chunks, microbatches }
    }

    #[test]
    fn bubbles_are_those_of_the_closed_forms() {
        use PipelineSchedule::*;
        for (stages, microbatches) in [(1, 3), (2, 4), (4, 4), (4, 16), (8, 24), (16, 16), (16, 32)] {
            let idle = |schedule, chunks, times: (u64, u64, u64)| {
                let of = pipeline(schedule, stages, chunks, microbatches);
                let (time, busy) = makespan(of, times.0, times.1, times.2);
                time - busy
            };
            let behind = u64::from(stages - 1);
            assert_eq!(idle(GPipe, 1, (10, 23, 0)), behind * 33, "{stages}, {microbatches}");
            assert_eq!(idle(OneForwardOneBackward, 1, (10, 23, 0)), behind * 33);
            // With v chunks, each takes 1 / v of the time: the bubble is (p - 1)(f + b) / v.
            if microbatches % stages == 0 {
                for chunks in [2, 4, 8] {
                    assert_eq!(idle(Interleaved, chunks, (10, 23, 0)), behind * 33, "{stages}, {chunks}");
                }
            }
            // (p - 1)(f + b - w), where all three take as long.
            if microbatches >= stages {
                assert_eq!(idle(ZeroBubble, 1, (10, 10, 10)), behind * 10, "{stages}, {microbatches}");
            }
        }
    }

    #[test]
    fn few_microbatches_end_too() {
        use PipelineSchedule::*;
        for schedule in [GPipe, OneForwardOneBackward, ZeroBubble] {
            makespan(pipeline(schedule, 8, 1, 2), 1, 2, 1);
        }
    }

    #[test]
    fn orders_by_hand() {
        use PipelineSchedule::*;
        let text = |of: Pipeline, stage| {
            let word = |act: &Act| {
                let letter = match act.pass {
                    Pass::Forward => 'F',
                    Pass::Backward => 'B',
                    Pass::Weights => 'W',
                };
                format!("{letter}{}.{}", act.microbatch, act.chunk)
            };
            of.acts(stage).iter().map(word).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(text(pipeline(OneForwardOneBackward, 2, 1, 3), 0), "F0.0 F1.0 B0.0 F2.0 B1.0 B2.0");
        assert_eq!(text(pipeline(GPipe, 2, 1, 2), 0), "F0.0 F1.0 B0.0 B1.0");
        assert_eq!(text(pipeline(Interleaved, 2, 2, 2), 1), "F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 B0.0 B1.0",);
        assert_eq!(text(pipeline(ZeroBubble, 2, 1, 2), 1), "F0.0 B0.0 F1.0 B1.0 W0.0 W1.0");
        assert_eq!(text(pipeline(ZeroBubble, 2, 1, 2), 0), "F0.0 F1.0 B0.0 W0.0 B1.0 W1.0");
    }

    #[test]
    fn stages_hold_as_many_microbatches_as_they_are_ahead() {
        use PipelineSchedule::*;
        let held = |of: Pipeline| [of.held(0), of.held(of.stages - 1)];
        assert_eq!(held(pipeline(OneForwardOneBackward, 4, 1, 16)), [4, 1]);
        assert_eq!(held(pipeline(GPipe, 4, 1, 16)), [16, 16]);
        assert_eq!(held(pipeline(ZeroBubble, 4, 1, 16)), [4, 4]);
        // p v (1 + (p - 1) / (p v)) chunks: 4 x 2 + 3.
        assert_eq!(held(pipeline(Interleaved, 4, 2, 16)), [11, 5]);
    }
}
