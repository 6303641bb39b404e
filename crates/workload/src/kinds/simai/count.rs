//! Size of the graph of all iterations, counted before the graph is made.

use std::ops::Range;

use super::SimAi;
use super::layout::GroupLayout;
use super::order::{self, Step, Until};
use super::play::{first_group, plan, refused};
use crate::builder::{MAX_DEPENDENCIES, MAX_TASKS};
use crate::collective::{BadPlan, Planned};
use crate::counts::Counts;
use crate::error::WorkloadError;
use crate::files::{SimAiComm, SimAiFile, SimAiLayer};
use crate::fold::Fold;
use crate::sink::WorkloadBuilder;

/// Collectives that have been counted: operation, number of ranks, tasks and dependencies on the graph, and
/// the number of transfers that later tasks wait for. Layers repeat a few of them.
type Known = Vec<(SimAiComm, usize, Counts, u64)>;

/// Counter of a job's tasks, for the GPUs that are simulated.
pub(super) struct Counter<'a> {
    config: &'a SimAi,
    layout: &'a GroupLayout,
    /// Host of each GPU.
    hosts: &'a [u32],
    /// Number of GPUs that each simulated GPU represents.
    order: u64,
    known: Known,
}

/// Returns true if all iterations together exceed [`Fold::LARGE`] without folding. They may exceed the
/// largest graph.
pub(super) fn is_large(
    counter: &mut Counter<'_>,
    out: &WorkloadBuilder<'_>,
    file: &SimAiFile,
    batches: &[Range<usize>],
) -> Result<bool, WorkloadError> {
    let mut each = counter.per_iteration_extra();
    each.add(counter.stage_transfers().times(batches.len() as u64 - 1));
    for step in batches.iter().flat_map(|layers| both_ways(file, layers)) {
        if let Step::Start(work, _) = step
            && let Some(comm) = work.of(file).comm
            // This estimate avoids counting a large collective message by message.
            && counter.messages(out, comm) > Fold::LARGE as f64
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

/// Returns the counts of all iterations, if each simulated GPU represents `order` GPUs.
///
/// # Errors
///
/// Returns an error for a collective that is impossible. If the graph would be too large, the error states
/// which field to reduce.
pub(super) fn check(
    mut counter: Counter<'_>,
    out: &WorkloadBuilder<'_>,
    file: &SimAiFile,
    (batches, order): (&[Range<usize>], usize),
) -> Result<Counts, WorkloadError> {
    let Counter { config, layout, .. } = counter;
    counter.order = order as u64;
    let mut fitting = None;
    let mut each = counter.per_iteration_extra();
    for (number, layers) in batches.iter().enumerate() {
        for step in both_ways(file, layers) {
            each.add(counter.step(out, file, step)?);
        }
        if number > 0 {
            each.add(counter.stage_transfers());
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
            "; no ranks are alike, so each has to be run".to_owned()
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
        Some(most) => {
            out.field_error("microbatches", microbatches, format!("expected at most {most}: {found}"))
        }
        None => {
            out.field_error("gpus", layout.gpus(), format!("expected fewer, or fewer iterations: {found}"))
        }
    }
}

/// Returns the steps of a microbatch, forward and then backward.
fn both_ways<'a>(file: &'a SimAiFile, layers: &Range<usize>) -> impl Iterator<Item = Step> + use<'a> {
    order::forward(file, layers.clone()).into_iter().chain(order::backward(file, layers.clone()))
}

fn fits(counts: Counts) -> bool {
    counts.tasks() <= MAX_TASKS as u64 && counts.dependencies <= MAX_DEPENDENCIES as u64
}

impl<'a> Counter<'a> {
    /// Makes a counter without counts, for a workload that is not folded.
    pub(super) fn new(config: &'a SimAi, layout: &'a GroupLayout, hosts: &'a [u32]) -> Self {
        Counter { config, layout, hosts, order: 1, known: Known::new() }
    }

    /// Returns the plan of a collective in the first of its groups. Groups elsewhere may have other servers, which
    /// changes counts a little.
    fn plan(&self, out: &WorkloadBuilder<'_>, comm: SimAiComm) -> Result<Planned, BadPlan> {
        plan(self.config, out.env, comm, &first_group(self.layout, comm.over, self.hosts))
    }

    /// Returns the approximate number of messages of a collective in all groups. Returns 0 if it has been
    /// counted already or is impossible.
    fn messages(&self, out: &WorkloadBuilder<'_>, comm: SimAiComm) -> f64 {
        let ranks = self.layout.ranks(comm.over);
        if ranks < 2 || self.known.iter().any(|known| (known.0, known.1) == (comm, ranks)) {
            return 0.0;
        }
        match self.plan(out, comm) {
            Ok(plan) => plan.messages() * (self.layout.gpus() / ranks) as f64,
            Err(_) => 0.0,
        }
    }

    /// Returns the number of simulated GPUs.
    fn gpus(&self) -> u64 {
        self.layout.gpus() as u64 / self.order
    }

    /// Returns the counts of all iterations, given those of one. The first task of a GPU waits for nothing.
    fn all(&self, each: Counts) -> Counts {
        let mut all = each.times(u64::from(self.config.iterations));
        all.dependencies = all.dependencies.saturating_sub(self.gpus());
        all
    }

    /// Returns the counts of `each` computations per GPU. Each computation waits for the GPU's previous task.
    fn computations(&self, each: u64) -> Counts {
        let all = each * self.gpus();
        Counts { messages: 0, computations: all, dependencies: all }
    }

    /// Returns the counts of the task that ends an iteration at each GPU.
    fn per_iteration_extra(&self) -> Counts {
        self.computations(1)
    }

    /// Returns the counts of a microbatch's transfers between stages, forward and backward. There is one
    /// message per GPU of a stage; it waits for its sender's previous task, and its receiver's next task
    /// waits for it.
    fn stage_transfers(&self) -> Counts {
        let stages = self.layout.pp as u64;
        Counts { messages: 1, computations: 1, dependencies: 3 }
            .times(2 * (stages - 1) * self.gpus() / stages)
    }

    fn step(
        &mut self,
        out: &WorkloadBuilder<'_>,
        file: &SimAiFile,
        step: Step,
    ) -> Result<Counts, WorkloadError> {
        let (work, mut counts) = match step {
            Step::Compute(_) => return Ok(self.computations(1)),
            Step::Start(work, _) | Step::Await(work) => (work, Counts::default()),
        };
        let Some(comm) = work.of(file).comm else { return Ok(counts) };
        let Some((made, through)) = self.collective(out, &file.layers[work.layer], comm)? else {
            return Ok(counts);
        };
        if matches!(step, Step::Start(..)) {
            counts.add(made);
        }
        // A computation waits for it: either the next one, or the update of the weights, for which the end of
        // the iteration waits.
        if matches!(step, Step::Await(_) | Step::Start(_, Until::TheEnd)) {
            counts.add(self.computations(1));
            counts.dependencies += through;
        }
        Ok(counts)
    }

    /// Counts a collective in all groups of all stages. Returns `None` if every group has one member.
    fn collective(
        &mut self,
        out: &WorkloadBuilder<'_>,
        layer: &SimAiLayer,
        comm: SimAiComm,
    ) -> Result<Option<(Counts, u64)>, WorkloadError> {
        let ranks = self.layout.ranks(comm.over);
        if ranks < 2 {
            return Ok(None);
        }
        let groups = self.layout.gpus() as u64 / ranks as u64;
        // If a collective is unchanged by rotation, all its ranks have the same counts.
        let of = |counts: Counts| counts.times(groups).over(self.order);
        if let Some((.., counts, through)) =
            self.known.iter().find(|known| (known.0, known.1) == (comm, ranks))
        {
            return Ok(Some((of(*counts), through * groups / self.order)));
        }
        let plan = self.plan(out, comm).map_err(|why| refused(self.config, layer.line, why))?;
        // This estimate comes before the exact count, message by message.
        out.check_count(plan.messages() * groups as f64 / self.order as f64)?;
        let (counts, through) = plan.count()?;
        self.known.push((comm, ranks, counts, through));
        Ok(Some((of(counts), through * groups / self.order)))
    }
}
