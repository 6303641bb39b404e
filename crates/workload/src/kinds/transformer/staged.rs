//! Conversion of a staged job to messages and computations.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use pathweave_units::{Bytes, Duration};

use super::axes::{Axes, Span};
use super::fold::{Groups, Job, groups};
use super::layers::{ChunkParameters, ChunkWork, Comm, Ends, Layers, Step};
use super::schedule::{Act, Pass, Pipeline};
use crate::builder::{Draft, MAX_DEPENDENCIES, Stream};
use crate::collective::{Algorithms, BadPlan, Planned, Ranks, Through};
use crate::env::WorkloadEnv;
use crate::error::WorkloadError;
use crate::fold::{Fold, Representatives};
use crate::graph::{JobId, Moment, Parallelism};
use crate::sink::WorkloadBuilder;

/// Label of connections between stages. Those of collectives have the number of their span.
const STAGES: u32 = 16;
/// First slot of the weights of chunks.
const CHUNK_WEIGHTS: u32 = 16;

/// Job whose stages have their own work.
pub(super) struct Staged<'a> {
    pub(super) layers: Layers,
    pub(super) pipeline: Pipeline,
    /// Layers of each chunk, in the order of the model.
    pub(super) chunks: Vec<Range<u32>>,
    pub(super) algorithms: &'a Algorithms,
    /// Host of each GPU.
    pub(super) hosts: Vec<u32>,
    pub(super) scale: f64,
    pub(super) iterations: u32,
}

/// Everything that a stage does, apart from microbatches.
pub(super) struct Program {
    /// Work of each chunk, in the order of the model.
    pub(super) chunks: Vec<ChunkWork>,
    pub(super) gathers: Vec<Vec<Comm>>,
    /// Sum of the gradients of a matrix that both ends use, before the optimizer.
    tie: Option<Comm>,
    /// Time of a stage's optimizer.
    pub(super) updates: Vec<Duration>,
}

impl Staged<'_> {
    fn axes(&self) -> &Axes {
        &self.layers.axes
    }

    fn place(&self, stage: usize, chunk: u32) -> usize {
        chunk as usize * self.axes().pp + stage
    }

    pub(super) fn ends(&self, place: usize) -> Ends {
        Ends { input: place == 0, output: place + 1 == self.chunks.len() }
    }

    /// Returns the parameters of a GPU in a chunk.
    pub(super) fn parameters(&self, place: usize) -> ChunkParameters {
        let mut parameters = self.layers.parameters(self.chunks[place].clone());
        let ends = self.ends(place);
        let embedding = self.layers.embedding().dense;
        let matrices = match (ends.input && ends.output, ends.input || ends.output) {
            (true, _) => self.layers.architecture.ends(),
            (false, true) => 1,
            (false, false) => 0,
        };
        parameters.dense += matrices * embedding;
        parameters
    }

    pub(super) fn program(&self) -> Program {
        let places = 0..self.chunks.len();
        let parameters: Vec<ChunkParameters> = places.clone().map(|place| self.parameters(place)).collect();
        let updates = (0..self.axes().pp).map(|stage| {
            let of_stage = parameters.iter().skip(stage).step_by(self.axes().pp);
            self.layers.update(of_stage.copied())
        });
        Program {
            chunks: places
                .map(|place| self.layers.chunk(self.chunks[place].clone(), self.ends(place)))
                .collect(),
            gathers: parameters.iter().map(|of| self.layers.gathers(*of)).collect(),
            tie: self.layers.tie(),
            updates: updates.collect(),
        }
    }

    /// Returns the plan of a collective among hosts.
    fn plan(&self, env: &WorkloadEnv, comm: Comm, members: &[u32]) -> Result<Planned, BadPlan> {
        let bytes = (comm.bytes as f64 * self.scale + 0.5) as u64;
        self.algorithms.planned(env, comm.operation, members, bytes)
    }

    /// Returns the plan of the first group that does a collective. Those of other groups have as many messages.
    fn plan_of_first(
        &self,
        out: &WorkloadBuilder<'_>,
        groups: &Groups,
        comm: Comm,
    ) -> Result<Planned, WorkloadError> {
        let members: Vec<u32> =
            groups_over(groups, comm.over)[0][0].iter().map(|&gpu| self.hosts[gpu]).collect();
        self.plan(out.env, comm, &members).or_else(|why| refused(out, comm, why))
    }

    /// Returns the number of messages and computations of an iteration of all GPUs.
    fn tasks(
        &self,
        out: &WorkloadBuilder<'_>,
        program: &Program,
        groups: &Groups,
    ) -> Result<(f64, f64), WorkloadError> {
        let stage = (self.axes().gpus() / self.axes().pp) as f64;
        let (mut messages, mut computations) = (0.0, 0.0);
        let mut add = |comm: Comm, times: f64| {
            let each = self.plan_of_first(out, groups, comm)?.messages();
            let ranks = if comm.over == Span::Ends { 1 } else { self.axes().ranks(comm.over) };
            messages += times * each * (stage / ranks as f64);
            Ok::<(), WorkloadError>(())
        };
        let batches = f64::from(self.pipeline.microbatches);
        for place in 0..self.chunks.len() {
            let work = &program.chunks[place];
            for step in work.steps() {
                match *step {
                    Step::Start { comm, .. } | Step::Beside(comm) => add(comm, batches)?,
                    Step::Last(comm) => add(comm, 1.0)?,
                    Step::Compute { .. } | Step::Await { .. } => computations += batches * stage,
                }
            }
            program.gathers[place].iter().try_for_each(|comm| add(*comm, 1.0))?;
        }
        program.tie.map_or(Ok(()), |comm| add(comm, 1.0))?;
        messages += 2.0 * batches * stage * (self.chunks.len() - 1) as f64;
        Ok((messages, computations + self.axes().gpus() as f64))
    }

    /// Declares all iterations.
    pub(super) fn play(&self, out: &mut WorkloadBuilder<'_>) -> Result<(), WorkloadError> {
        let program = self.program();
        let iterations = f64::from(self.iterations);
        let groups = groups(self.axes());
        let (messages, computations) = self.tasks(out, &program, &groups)?;
        let all = (messages + computations) * iterations;
        // Each waits for one other at least, and those of collectives for about three.
        let dependencies = all.max(3.0 * messages * iterations);
        let alike = match out.may_fold(|| Ok(all > Fold::LARGE as f64))? {
            None => None,
            Some(topology) => {
                let comms: Vec<Comm> = program.comms();
                let job = Job {
                    axes: self.axes(),
                    groups: &groups,
                    comms: &comms,
                    algorithms: self.algorithms,
                    hosts: &self.hosts,
                };
                let gpus = self.axes().gpus();
                let found = out.fold(job.symmetric(&topology), gpus, ("gpus", gpus))?;
                let needed = dependencies / MAX_DEPENDENCIES as f64;
                if (found.as_ref().map_or(1, Representatives::order) as f64) < needed {
                    let most = self.layers.architecture.layers as usize;
                    if let Some((pp, dp)) = job.stages_with_symmetry(&topology, most, needed) {
                        out.more_would_be_alike(format_args!("pp = {pp}, and so dp = {dp}"));
                    }
                }
                found
            }
        };
        let alike = alike.unwrap_or_else(|| Representatives::none(self.axes().gpus()));
        let order = alike.order() as f64;
        out.check_count(all / order)?;
        out.check_dependencies(dependencies / order)?;
        let gpus = self.axes().gpus();
        let mut play = Play {
            job: self,
            program: &program,
            groups: &groups,
            stages: (0..self.axes().pp).map(|stage| self.axes().stage(stage)).collect(),
            alike,
            number: JobId(0),
            out,
            last: vec![None; gpus],
            waits: vec![Vec::new(); gpus],
            beside: vec![Vec::new(); gpus],
            slots: BTreeMap::new(),
            passed: BTreeMap::new(),
        };
        let mut before = None;
        for iteration in 0..self.iterations {
            play.number = play.out.next_job(format_args!("iteration {iteration}"), &mut before)?;
            play.iteration()?;
        }
        Ok(())
    }
}

/// Returns the groups of GPUs over a span, by stage.
fn groups_over(groups: &Groups, over: Span) -> &[Vec<Vec<usize>>] {
    let (_, stages) = groups.iter().find(|(span, _)| *span == over).expect("every span has groups");
    stages
}

/// Returns the error of a collective that cannot be planned.
fn refused<T>(
    out: &WorkloadBuilder<'_>,
    comm: Comm,
    (field, value, allowed): BadPlan,
) -> Result<T, WorkloadError> {
    let allowed = format!("{field} = {value} for {}: {allowed}", comm.part);
    out.field_error("algorithms", comm.operation.name(), allowed)
}

impl Program {
    /// Returns all collectives, each once.
    fn comms(&self) -> Vec<Comm> {
        let mut seen = BTreeSet::new();
        let of_steps = self.chunks.iter().flat_map(ChunkWork::steps).filter_map(Step::comm);
        let all = of_steps.chain(self.gathers.iter().flatten().copied()).chain(self.tie);
        all.filter(|comm| seen.insert((comm.operation.name(), comm.over, comm.bytes))).collect()
    }
}

/// State of the conversion.
struct Play<'a, 'o, 'e> {
    job: &'a Staged<'a>,
    program: &'a Program,
    groups: &'a Groups,
    stages: Vec<Vec<usize>>,
    alike: Representatives,
    number: JobId,
    out: &'o mut WorkloadBuilder<'e>,
    /// Last computation of each GPU.
    last: Vec<Option<Draft>>,
    /// Further tasks that the next computation of a GPU waits for.
    waits: Vec<Through>,
    /// Messages that the end of the iteration waits for.
    beside: Vec<Through>,
    /// Messages of collectives by stage and slot.
    slots: BTreeMap<(usize, u32), Vec<(usize, Through)>>,
    /// Messages from one chunk to the next, by direction, microbatch and place of the chunk they are for.
    passed: BTreeMap<(Pass, u32, usize), Vec<(usize, Draft)>>,
}

impl Play<'_, '_, '_> {
    fn iteration(&mut self) -> Result<(), WorkloadError> {
        let pipeline = self.job.pipeline;
        let stages = self.job.axes().pp;
        let mut left: Vec<VecDeque<Act>> =
            (0..stages as u32).map(|stage| pipeline.acts(stage).into()).collect();
        let mut counts: BTreeMap<(Pass, usize), u32> = BTreeMap::new();
        for stage in 0..stages {
            self.gather(stage, 0)?;
        }
        loop {
            let mut idle = true;
            for (stage, acts) in left.iter_mut().enumerate() {
                while let Some(&act) = acts.front().filter(|act| self.is_ready(stage, **act)) {
                    acts.pop_front();
                    let place = self.job.place(stage, act.chunk);
                    let count = counts.entry((act.pass, place)).or_default();
                    *count += 1;
                    self.act(stage, act, *count)?;
                    idle = false;
                }
            }
            if idle {
                break;
            }
        }
        assert!(
            left.iter().all(VecDeque::is_empty),
            "orders of stages fit each other, as tests of schedules show"
        );
        self.tie()?;
        for stage in 0..stages {
            self.end(stage)?;
        }
        Ok(())
    }

    fn is_ready(&self, stage: usize, act: Act) -> bool {
        let place = self.job.place(stage, act.chunk);
        let first = match act.pass {
            Pass::Forward => place == 0,
            Pass::Backward => place + 1 == self.job.chunks.len(),
            Pass::Weights => true,
        };
        first || self.passed.contains_key(&(act.pass, act.microbatch, place))
    }

    /// Declares the work of a stage. `count` numbers the work of this chunk in this direction from 1.
    fn act(&mut self, stage: usize, act: Act, count: u32) -> Result<(), WorkloadError> {
        let place = self.job.place(stage, act.chunk);
        let chunks = self.job.chunks.len();
        if act.pass == Pass::Forward && count == 1 {
            self.wait_for_slot(stage, CHUNK_WEIGHTS + act.chunk);
            self.gather(stage, act.chunk + 1)?;
        }
        for (gpu, message) in self.passed.remove(&(act.pass, act.microbatch, place)).unwrap_or_default() {
            self.waits[gpu].push((message, Moment::Delivery));
        }
        let program = self.program;
        let work = &program.chunks[place];
        let steps = match act.pass {
            Pass::Forward => &work.forward,
            Pass::Backward => &work.backward,
            Pass::Weights => &work.weights,
        };
        let is_last = count == self.job.pipeline.microbatches;
        for &step in steps {
            self.step(stage, step, is_last)?;
        }
        match act.pass {
            Pass::Forward if place + 1 < chunks => self.pass(stage, act, place + 1)?,
            Pass::Backward if place > 0 => self.pass(stage, act, place - 1)?,
            _ => {}
        }
        Ok(())
    }

    /// Does a step. `is_last` is true for the last microbatch.
    fn step(&mut self, stage: usize, step: Step, is_last: bool) -> Result<(), WorkloadError> {
        match step {
            Step::Compute { activity, part, time } => {
                self.out.doing(activity, part);
                for gpu in self.played(stage) {
                    self.compute(gpu, time)?;
                }
            }
            Step::Start { slot, comm } => {
                let through = self.collective(stage, comm)?;
                self.slots.entry((stage, slot)).or_default().extend(through);
            }
            Step::Await { slot } => self.wait_for_slot(stage, slot),
            Step::Last(_) if !is_last => {}
            Step::Beside(comm) | Step::Last(comm) => {
                for (gpu, through) in self.collective(stage, comm)? {
                    self.beside[gpu].extend(through);
                }
            }
        }
        Ok(())
    }

    /// Begins to gather the weights of a stage's chunk.
    fn gather(&mut self, stage: usize, chunk: u32) -> Result<(), WorkloadError> {
        if chunk >= self.job.pipeline.chunks {
            return Ok(());
        }
        let program = self.program;
        for &comm in &program.gathers[self.job.place(stage, chunk)] {
            self.step(stage, Step::Start { slot: CHUNK_WEIGHTS + chunk, comm }, false)?;
        }
        Ok(())
    }

    fn wait_for_slot(&mut self, stage: usize, slot: u32) {
        for (gpu, through) in self.slots.remove(&(stage, slot)).unwrap_or_default() {
            self.waits[gpu].extend(through);
        }
    }

    /// Adds up the gradients of a matrix that both ends use, once those of each end are there.
    fn tie(&mut self) -> Result<(), WorkloadError> {
        let Some(comm) = self.program.tie else { return Ok(()) };
        for stage in [0, self.job.axes().pp - 1] {
            for gpu in self.played(stage) {
                let beside = std::mem::take(&mut self.beside[gpu]);
                self.waits[gpu].extend(beside);
            }
        }
        self.step(0, Step::Beside(comm), true)
    }

    /// Ends the iteration of a stage: its optimizer updates the weights once all gradients are there.
    fn end(&mut self, stage: usize) -> Result<(), WorkloadError> {
        self.out.doing("update", "optimizer");
        for gpu in self.played(stage) {
            let beside = std::mem::take(&mut self.beside[gpu]);
            self.waits[gpu].extend(beside);
            self.compute(gpu, self.program.updates[stage])?;
        }
        Ok(())
    }

    /// Returns the simulated GPUs of a stage.
    fn played(&self, stage: usize) -> Vec<usize> {
        self.stages[stage].iter().copied().filter(|&gpu| self.alike.is_simulated(gpu)).collect()
    }

    /// Declares a collective in every group of a stage, after the last tasks of its GPUs. Returns the messages that
    /// each GPU sends and receives.
    fn collective(&mut self, stage: usize, comm: Comm) -> Result<Vec<(usize, Through)>, WorkloadError> {
        let groups = self.groups;
        let mut all = Vec::new();
        for members in &groups_over(groups, comm.over)[stage] {
            if !members.iter().any(|&gpu| self.alike.is_simulated(gpu)) {
                continue;
            }
            for &gpu in members {
                self.settle(gpu)?;
            }
            let hosts: Vec<u32> = members.iter().map(|&gpu| self.job.hosts[gpu]).collect();
            let plan = self.job.plan(self.out.env, comm, &hosts);
            let plan = plan.or_else(|why| refused(self.out, comm, why))?;
            self.out.collective(comm.part, plan.steps(Some(comm.over.parallelism())));
            let place = |gpu: usize| members.binary_search(&gpu).expect("groups have their representatives");
            let alike: Option<Vec<usize>> = (self.alike.order() > 1)
                .then(|| members.iter().map(|&gpu| place(self.alike.representative(gpu))).collect());
            let ready: Vec<Option<Draft>> = members.iter().map(|&gpu| self.last[gpu]).collect();
            let stream = comm.over as u32;
            let ranks =
                Ranks { members: &hosts, alike: alike.as_deref(), ready: &ready, stream, job: self.number };
            let through = plan.put(self.out, ranks)?;
            let simulated = |gpu: &usize| self.alike.is_simulated(*gpu);
            all.extend(members.iter().copied().zip(through).filter(|(gpu, _)| simulated(gpu)));
        }
        Ok(all)
    }

    /// Sends activations or gradients from every GPU of a stage to its counterpart of the stage with another chunk.
    fn pass(&mut self, stage: usize, act: Act, to_place: usize) -> Result<(), WorkloadError> {
        let to = to_place % self.job.axes().pp;
        let bytes = self.job.layers.activations() / self.job.axes().tp as u64;
        let size = Bytes::new(((bytes as f64 * self.job.scale + 0.5) as u64).max(1));
        let pairs: Vec<(usize, usize)> =
            self.stages[stage].iter().copied().zip(self.stages[to].iter().copied()).collect();
        let mut sent = Vec::new();
        for (src, dst) in pairs {
            if !self.alike.is_simulated(src) {
                continue;
            }
            // Chunks of one stage pass on what they have at once.
            self.settle(src)?;
            if src == dst {
                continue;
            }
            self.out.label_parallelism(Parallelism::Pipeline, "send", format_args!("stage {stage} to {to}"));
            let pair = (self.job.hosts[src], self.job.hosts[dst]);
            let message =
                self.out.message(pair, size, Duration::ZERO, Stream::Shared(STAGES), Some(self.number))?;
            if let Some(before) = self.last[src] {
                self.out.after(message, before)?;
            }
            sent.push((dst, message));
        }
        self.passed.insert((act.pass, act.microbatch, to_place), sent);
        Ok(())
    }

    /// Makes the last task of a GPU one that follows everything it waits for.
    fn settle(&mut self, gpu: usize) -> Result<(), WorkloadError> {
        if self.alike.is_simulated(gpu) && !self.waits[gpu].is_empty() {
            self.out.label_activity("wait");
            self.compute(gpu, Duration::ZERO)?;
        }
        Ok(())
    }

    /// Adds a computation after the GPU's last task and all that it waits for.
    fn compute(&mut self, gpu: usize, duration: Duration) -> Result<(), WorkloadError> {
        let task = self.out.compute(self.job.hosts[gpu], duration.scale(self.job.scale), self.number)?;
        if let Some(before) = self.last[gpu].replace(task) {
            self.out.after(task, before)?;
        }
        for (before, moment) in std::mem::take(&mut self.waits[gpu]) {
            self.out.after_moment(task, before, moment)?;
        }
        Ok(())
    }
}
