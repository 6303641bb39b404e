//! What an iteration takes, counted before anything is made.

use std::ops::Range;

use super::SimAi;
use super::layout::Layout;
use super::order::{self, Step, Until};
use super::play::plan;
use crate::builder::{MAX_DEPENDENCIES, MAX_TASKS};
use crate::counts::Counts;
use crate::error::{FileError, WorkloadError};
use crate::files::{SimAiComm, SimAiFile, SimAiLayer};
use crate::fold::Fold;
use crate::sink::Sink;

/// What collectives take that were counted: which, among how many ranks, what they put on the graph, and the transfers that
/// are waited for behind them. Layers repeat a few of them.
type Known = Vec<(SimAiComm, usize, Counts, u64)>;

/// What has been counted of a job, for as many GPUs as are played.
pub(super) struct Counter<'a> {
    config: &'a SimAi,
    layout: &'a Layout,
    /// How many GPUs each one that is played stands for.
    order: u64,
    known: Known,
}

/// Whether all iterations take more than [`Fold::LARGE`] if every GPU does what it does itself. They may take more than a graph can
/// have.
pub(super) fn is_large(
    counter: &mut Counter<'_>,
    out: &Sink<'_>,
    file: &SimAiFile,
    batches: &[Range<usize>],
) -> Result<bool, WorkloadError> {
    let mut each = counter.around();
    each.add(counter.passes().times(batches.len() as u64 - 1));
    for step in batches.iter().flat_map(|layers| both_ways(file, layers)) {
        if let Step::Start(work, _) = step
            && let Some(comm) = work.of(file).comm
            // Before they are counted one by one.
            && counter.messages(comm) > Fold::LARGE as f64
        {
            return Ok(true);
        }
        each.add(counter.step(out, file, step)?);
        if counter.all(each).tasks() > Fold::LARGE {
            return Ok(true);
        }
    }
    Ok(counter.all(each).tasks() > Fold::LARGE)
}

/// What all iterations take where each GPU that is played stands for so many. Refuses what cannot be, or is more than a graph
/// may have, with what to reduce.
pub(super) fn check(
    mut counter: Counter<'_>,
    out: &Sink<'_>,
    file: &SimAiFile,
    (batches, order): (&[Range<usize>], usize),
) -> Result<Counts, WorkloadError> {
    let Counter { config, layout, .. } = counter;
    counter.order = order as u64;
    let mut fitting = None;
    let mut each = counter.around();
    for (number, layers) in batches.iter().enumerate() {
        for step in both_ways(file, layers) {
            each.add(counter.step(out, file, step)?);
        }
        if number > 0 {
            each.add(counter.passes());
            if fits(counter.all(each)) {
                fitting = Some(number);
            }
        }
    }
    let all = counter.all(each);
    let microbatches = batches.len() - 1;
    if fits(all) {
        return Ok(all);
    }
    let Counts { messages, computations, dependencies } = all;
    let hint = match &out.env.fold {
        Fold::Never(why) => format!("; ranks that are alike are not run once: {why}"),
        Fold::Large(_) | Fold::Always(_) if order == 1 => {
            "; no ranks are alike, so that each has to be run".to_owned()
        }
        Fold::Large(_) | Fold::Always(_) => String::new(),
    };
    let found = format!(
        "{microbatches} microbatches on {} GPUs in {} iterations take {messages} messages, {computations} computations and \
         {dependencies} dependencies, of {MAX_TASKS} messages and computations and {MAX_DEPENDENCIES} dependencies allowed{hint}",
        layout.gpus(),
        config.iterations
    );
    match fitting {
        Some(most) => out.bad("microbatches", microbatches, format!("expected at most {most}: {found}")),
        None => out.bad("gpus", layout.gpus(), format!("expected fewer, or fewer iterations: {found}")),
    }
}

/// Steps of a microbatch, forward and backward.
fn both_ways<'a>(file: &'a SimAiFile, layers: &Range<usize>) -> impl Iterator<Item = Step> + use<'a> {
    order::forward(file, layers.clone()).into_iter().chain(order::backward(file, layers.clone()))
}

fn fits(counts: Counts) -> bool {
    counts.tasks() <= MAX_TASKS as u64 && counts.dependencies <= MAX_DEPENDENCIES as u64
}

impl<'a> Counter<'a> {
    /// Nothing has been counted; every GPU does what it does itself.
    pub(super) fn new(config: &'a SimAi, layout: &'a Layout) -> Self {
        Counter { config, layout, order: 1, known: Known::new() }
    }

    /// About how many messages a collective takes in all groups that has not been counted yet; none of one that cannot be.
    fn messages(&self, comm: SimAiComm) -> f64 {
        let ranks = self.layout.ranks(comm.over);
        if ranks < 2 || self.known.iter().any(|known| (known.0, known.1) == (comm, ranks)) {
            return 0.0;
        }
        let plan = plan(self.config, comm, ranks);
        if plan.check().is_ok() { plan.messages() * (self.layout.gpus() / ranks) as f64 } else { 0.0 }
    }

    /// GPUs that are played.
    fn gpus(&self) -> u64 {
        self.layout.gpus() as u64 / self.order
    }

    /// All iterations, of which `each` is one. What a GPU does first waits for nothing.
    fn all(&self, each: Counts) -> Counts {
        let mut all = each.times(u64::from(self.config.iterations));
        all.dependencies = all.dependencies.saturating_sub(self.gpus());
        all
    }

    /// So many computations for each GPU, each behind what the GPU did before.
    fn steps(&self, each: u64) -> Counts {
        let all = each * self.gpus();
        Counts { messages: 0, computations: all, dependencies: all }
    }

    /// What an iteration ends with.
    fn around(&self) -> Counts {
        self.steps(1)
    }

    /// A microbatch forward and backward between stages: a message for each GPU of a stage, behind what its sender did and
    /// before what its receiver does next.
    fn passes(&self) -> Counts {
        let stages = self.layout.pp as u64;
        Counts { messages: 1, computations: 1, dependencies: 3 }
            .times(2 * (stages - 1) * self.gpus() / stages)
    }

    fn step(&mut self, out: &Sink<'_>, file: &SimAiFile, step: Step) -> Result<Counts, WorkloadError> {
        let (work, mut counts) = match step {
            Step::Compute(_) => return Ok(self.steps(1)),
            Step::Start(work, _) | Step::Await(work) => (work, Counts::default()),
        };
        let Some(comm) = work.of(file).comm else { return Ok(counts) };
        let Some((made, through)) = self.collective(out, &file.layers[work.layer], comm)? else {
            return Ok(counts);
        };
        if matches!(step, Step::Start(..)) {
            counts.add(made);
        }
        // A computation waits: the next one, or the update of the weights, for which the end of the iteration waits.
        if matches!(step, Step::Await(_) | Step::Start(_, Until::TheEnd)) {
            counts.add(self.steps(1));
            counts.dependencies += through;
        }
        Ok(counts)
    }

    /// A collective in all groups of all stages; `None` where every group has one member.
    fn collective(
        &mut self,
        out: &Sink<'_>,
        layer: &SimAiLayer,
        comm: SimAiComm,
    ) -> Result<Option<(Counts, u64)>, WorkloadError> {
        let ranks = self.layout.ranks(comm.over);
        if ranks < 2 {
            return Ok(None);
        }
        let groups = self.layout.gpus() as u64 / ranks as u64;
        // All ranks of a collective that is unchanged by rotation take alike.
        let of = |counts: Counts| counts.times(groups).over(self.order);
        if let Some((.., counts, through)) =
            self.known.iter().find(|known| (known.0, known.1) == (comm, ranks))
        {
            return Ok(Some((of(*counts), through * groups / self.order)));
        }
        let plan = plan(self.config, comm, ranks);
        if let Err((field, value, allowed)) = plan.check() {
            let what = format!("algorithms.{field} = {value}: {allowed}");
            return Err(FileError::at(&self.config.file, layer.line, what).into());
        }
        // Before they are counted one by one.
        out.check_count(plan.messages() * groups as f64 / self.order as f64)?;
        let (counts, through) = plan.count()?;
        self.known.push((comm, ranks, counts, through));
        Ok(Some((of(counts), through * groups / self.order)))
    }
}
