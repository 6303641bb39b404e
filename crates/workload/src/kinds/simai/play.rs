//! Conversion of layers to messages and computations.

use std::collections::BTreeMap;
use std::ops::Range;

use pathweave_units::{Bytes, Duration};

use super::count::Counter;
use super::layout::GroupLayout;
use super::order::{self, Phase, Step, Until, Work};
use super::{SimAi, count, fold};
use crate::builder::{Draft, Stream};
use crate::collective::{BadPlan, Planned, Ranks, Through};
use crate::env::WorkloadEnv;
use crate::error::{FileError, WorkloadError};
use crate::files::{SimAiComm, SimAiFile, Span};
use crate::fold::Representatives;
use crate::graph::{JobId, Moment, Parallelism};
use crate::sink::WorkloadBuilder;

/// Label of connections between stages. Connections of collectives have the number of their span.
const STAGES: u32 = 4;

/// State of the conversion of one iteration.
struct Play<'a, 's> {
    config: &'a SimAi,
    out: &'a mut WorkloadBuilder<'s>,
    file: &'a SimAiFile,
    layout: &'a GroupLayout,
    hosts: &'a [u32],
    alike: &'a Representatives,
    job: JobId,
    /// Last task of each GPU; `None` at the begin.
    last: Vec<Option<Draft>>,
    /// Overlapping work of each GPU that the end of the iteration waits for.
    overlapping: Vec<Vec<Draft>>,
}

pub(super) fn play(
    config: &SimAi,
    out: &mut WorkloadBuilder<'_>,
    file: &SimAiFile,
    layout: &GroupLayout,
    hosts: &[u32],
    batches: &[Range<usize>],
) -> Result<(), WorkloadError> {
    let mut counter = Counter::new(config, layout, hosts);
    let alike = alike(config, out, (file, layout, &mut counter), hosts, batches)?;
    let counts = count::check(counter, out, file, (batches, alike.order()))?;
    out.reserve(counts);
    let mut last: Vec<Option<Draft>> = vec![None; layout.gpus()];
    let mut before = None;
    for number in 0..config.iterations {
        let job = out.next_job(format_args!("iteration {number}"), &mut before)?;
        let beside = vec![Vec::new(); layout.gpus()];
        let mut play = Play {
            config,
            out: &mut *out,
            file,
            layout,
            hosts,
            alike: &alike,
            job,
            last,
            overlapping: beside,
        };
        play.iteration(batches)?;
        last = play.last;
    }
    Ok(())
}

/// Returns the GPUs to simulate, and records the representatives in the graph if it is folded.
fn alike(
    config: &SimAi,
    out: &mut WorkloadBuilder<'_>,
    (file, layout, counter): (&SimAiFile, &GroupLayout, &mut Counter<'_>),
    hosts: &[u32],
    batches: &[Range<usize>],
) -> Result<Representatives, WorkloadError> {
    let topology = out.may_fold(|| count::is_large(counter, out, file, batches))?;
    let alike = match topology {
        Some(topology) => {
            let found = fold::find(config, out.env, &topology, (file, layout), hosts, batches);
            out.fold(found, layout.gpus(), ("gpus", layout.gpus()))?
        }
        None => None,
    };
    Ok(alike.unwrap_or_else(|| Representatives::none(layout.gpus())))
}

/// Returns the plan of a collective among hosts.
pub(super) fn plan(
    config: &SimAi,
    env: &WorkloadEnv,
    comm: SimAiComm,
    members: &[u32],
) -> Result<Planned, BadPlan> {
    let bytes = (comm.bytes as f64 * config.scale + 0.5) as u64;
    config.algorithms.planned(env, comm.operation, members, bytes)
}

/// Returns the hosts of the first group of a span, which stands for all of them.
pub(super) fn first_group(layout: &GroupLayout, span: Span, hosts: &[u32]) -> Vec<u32> {
    let groups = layout.groups(span, 0);
    groups.first().map_or(Vec::new(), |gpus| gpus.iter().map(|&gpu| hosts[gpu]).collect())
}

/// Returns the error of a collective at a line of the file.
pub(super) fn refused(config: &SimAi, line: u64, (field, value, allowed): BadPlan) -> FileError {
    FileError::at(&config.file, line, format!("algorithms.{field} = {value}: {allowed}"))
}

const fn parallelism(span: Span) -> Parallelism {
    match span {
        Span::Tp | Span::AllTp | Span::OuterTp => Parallelism::Tensor,
        Span::Dp | Span::AllDp | Span::InnerDp => Parallelism::Data,
        Span::Ep => Parallelism::Expert,
        Span::DpEp => Parallelism::ExpertData,
    }
}

impl Play<'_, '_> {
    fn iteration(&mut self, batches: &[Range<usize>]) -> Result<(), WorkloadError> {
        let stages = self.layout.pp;
        for (number, layers) in batches.iter().enumerate() {
            let steps = order::forward(self.file, layers.clone());
            for stage in 0..stages {
                if number > 0 && stage > 0 {
                    self.send_to_stage(stage - 1, stage)?;
                }
                self.steps(&steps, stage)?;
            }
        }
        for (number, layers) in batches.iter().enumerate().rev() {
            let steps = order::backward(self.file, layers.clone());
            for stage in (0..stages).rev() {
                if number > 0 && stage + 1 < stages {
                    self.send_to_stage(stage + 1, stage)?;
                }
                self.steps(&steps, stage)?;
            }
        }
        for gpu in self.played(0..self.layout.gpus()) {
            let end = self.compute(gpu, Duration::ZERO)?;
            for task in std::mem::take(&mut self.overlapping[gpu]) {
                self.out.after(end, task)?;
            }
        }
        Ok(())
    }

    fn steps(&mut self, steps: &[Step], stage: usize) -> Result<(), WorkloadError> {
        let mut started: BTreeMap<Work, Vec<(usize, Through)>> = BTreeMap::new();
        for &step in steps {
            match step {
                Step::Compute(work) => {
                    self.doing(work);
                    for gpu in self.played(self.layout.stage(stage)) {
                        self.compute(gpu, work.of(self.file).compute)?;
                    }
                }
                Step::Start(work, until) => {
                    let Some(comm) = work.of(self.file).comm else { continue };
                    let all = self.collective(&self.file.layers[work.layer].name, comm, stage)?;
                    match until {
                        Until::Awaited => _ = started.insert(work, all),
                        Until::TheEnd => self.beside(work, all)?,
                    }
                }
                Step::Await(work) => {
                    for (gpu, through) in started.remove(&work).unwrap_or_default() {
                        let next = self.compute(gpu, Duration::ZERO)?;
                        self.after_all(next, &through)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn doing(&mut self, work: Work) {
        let activity = match work.phase {
            Phase::Forward => "forward",
            Phase::InputGrad => "input gradients",
            Phase::WeightGrad => "weight gradients",
        };
        self.out.doing(activity, &self.file.layers[work.layer].name);
    }

    /// Adds work that overlaps the rest until the end of the iteration: a collective, and the update of
    /// weights after it.
    fn beside(&mut self, work: Work, all: Vec<(usize, Through)>) -> Result<(), WorkloadError> {
        let layer = &self.file.layers[work.layer];
        self.out.doing("update", &layer.name);
        let update = if work.phase == Phase::WeightGrad { layer.update } else { Duration::ZERO };
        for (gpu, reduced) in all {
            let update = self.task(gpu, update)?;
            self.after_all(update, &reduced)?;
            self.overlapping[gpu].push(update);
        }
        Ok(())
    }

    /// Returns the simulated GPUs of a range.
    fn played(&self, gpus: Range<usize>) -> Vec<usize> {
        gpus.filter(|&gpu| self.alike.is_simulated(gpu)).collect()
    }

    /// Declares a collective in every group of a stage. It starts after the last tasks of its GPUs. Returns
    /// the messages that each GPU sends and receives.
    fn collective(
        &mut self,
        layer: &str,
        comm: SimAiComm,
        stage: usize,
    ) -> Result<Vec<(usize, Through)>, WorkloadError> {
        let mut all = Vec::new();
        for gpus in self.layout.groups(comm.over, stage) {
            if gpus.len() < 2 || !gpus.iter().any(|&gpu| self.alike.is_simulated(gpu)) {
                continue;
            }
            let hosts: Vec<u32> = gpus.iter().map(|&gpu| self.hosts[gpu]).collect();
            let plan = plan(self.config, self.out.env, comm, &hosts);
            let plan = plan.map_err(|why| refused(self.config, 1, why))?;
            self.out.collective(layer, plan.steps(Some(parallelism(comm.over))));
            let stream = match comm.over {
                Span::Tp => 0,
                Span::Dp => 1,
                Span::Ep => 2,
                Span::DpEp => 3,
                Span::AllTp => STAGES + 1,
                Span::AllDp => STAGES + 2,
                Span::OuterTp => STAGES + 3,
                Span::InnerDp => STAGES + 4,
            };
            let place = |gpu: usize| gpus.binary_search(&gpu).expect("groups are carried to themselves");
            let alike: Option<Vec<usize>> = (self.alike.order() > 1)
                .then(|| gpus.iter().map(|&gpu| place(self.alike.representative(gpu))).collect());
            let ready: Vec<Option<Draft>> = gpus.iter().map(|&gpu| self.last[gpu]).collect();
            let ranks =
                Ranks { members: &hosts, alike: alike.as_deref(), ready: &ready, stream, job: self.job };
            let through = plan.put(self.out, ranks)?;
            all.extend(gpus.into_iter().zip(through).filter(|(gpu, _)| self.alike.is_simulated(*gpu)));
        }
        Ok(all)
    }

    /// Declares a message from every GPU of a stage to its counterpart in another stage. The counterpart
    /// continues after it.
    fn send_to_stage(&mut self, from: usize, to: usize) -> Result<(), WorkloadError> {
        let bytes = (self.file.pp_comm as f64 * self.config.scale + 0.5) as u64;
        self.out.label_parallelism(Parallelism::Pipeline, "send", format_args!("stage {from} to {to}"));
        for (src, dst) in self.layout.stage(from).zip(self.layout.stage(to)) {
            if !self.alike.is_simulated(src) {
                continue;
            }
            let pair = (self.hosts[src], self.hosts[dst]);
            let size = Bytes::new(bytes.max(1));
            let message =
                self.out.message(pair, size, Duration::ZERO, Stream::Shared(STAGES), Some(self.job))?;
            if let Some(before) = self.last[src] {
                self.out.after(message, before)?;
            }
            let next = self.compute(dst, Duration::ZERO)?;
            self.out.after(next, message)?;
        }
        Ok(())
    }

    /// Adds a computation after the GPU's last task.
    fn compute(&mut self, gpu: usize, duration: Duration) -> Result<Draft, WorkloadError> {
        let task = self.task(gpu, duration)?;
        if let Some(before) = self.last[gpu].replace(task) {
            self.out.after(task, before)?;
        }
        Ok(task)
    }

    fn task(&mut self, gpu: usize, duration: Duration) -> Result<Draft, WorkloadError> {
        self.out.compute(self.hosts[gpu], duration.scale(self.config.scale), self.job)
    }

    fn after_all(&mut self, task: Draft, all: &[(Draft, Moment)]) -> Result<(), WorkloadError> {
        all.iter().try_for_each(|&(before, moment)| self.out.after_moment(task, before, moment))
    }
}
