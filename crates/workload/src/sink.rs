//! Interface through which a generator declares tasks: a builder, restricted to one workload.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use pathweave_topo::Topology;
use pathweave_units::{Bytes, Duration, Rng, Time, derive_seed};

use crate::builder::{
    DEPENDENCIES, Draft, GraphBuilder, MAX_DEPENDENCIES, MAX_TASKS, NewMessage, Stream, TASKS,
};
use crate::config::MessageConnections;
use crate::counts::Counts;
use crate::env::WorkloadEnv;
use crate::error::{FileError, GraphError, WorkloadError};
use crate::fold::{Fold, Folding};
use crate::graph::{
    BandwidthBytes, CollectiveLabel, Compute, CoreId, GroupId, JobId, Label, Moment, Parallelism,
    TrainingWork,
};
use crate::hosts::{HostList, UnknownHosts};
use crate::stragglers::{Pace, Stragglers, parse_trace};
use crate::training_memory::TrainingMemory;

/// Largest size of a file, bytes. Larger files are rejected, so that a wrong path cannot fill the memory.
pub(crate) const MAX_FILE_BYTES: u64 = 4 << 30;

/// Generator of one kind of workload.
pub(crate) trait Generate {
    /// Declares all tasks, relative to the start of the workload.
    fn generate(&self, out: &mut WorkloadBuilder<'_>) -> Result<(), WorkloadError>;

    /// Returns the files that the configuration names, each with its field.
    fn files(&mut self) -> Vec<NamedFile<'_>> {
        Vec::new()
    }
}

/// A field of the configuration, and the file it names.
pub(crate) type NamedFile<'a> = (&'static str, &'a mut String);

/// Returns the group name of traffic between data centres, if the messages of group `name` have a separate
/// scheme there.
pub fn between_name(name: &str) -> String {
    format!("{name} between sites")
}

/// Description of the collective of which messages are steps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steps<'a> {
    /// Kind, such as "all-reduce" or "dispatch".
    pub(crate) kind: &'a str,
    /// Number of ranks that take part.
    pub(crate) ranks: usize,
    pub(crate) algorithm: &'static str,
    /// Bytes from which its bandwidth is computed, if all ranks send the same amount.
    pub(crate) measure: Option<BandwidthBytes>,
    /// Parallelism dimension that its ranks have in common.
    pub(crate) parallelism: Option<Parallelism>,
}

/// A builder restricted to one workload. It adds the workload's group and start, and puts its name on errors.
pub(crate) struct WorkloadBuilder<'a> {
    pub(crate) env: &'a WorkloadEnv,
    builder: &'a mut GraphBuilder,
    pub(crate) name: &'a str,
    group: GroupId,
    /// Group of messages between data centres, if it is a separate one.
    between: Option<GroupId>,
    start: Duration,
    /// Number of earlier workloads that use the group.
    nth: u64,
    /// Number of collectives so far.
    collectives: u32,
    /// Kinds of collectives so far, each with an algorithm.
    algorithms_used: Vec<(String, &'static str)>,
    /// Work of the next jobs of a series, if they are iterations of training.
    training: Option<TrainingWork>,
    /// Durations of computations by host, if hosts differ.
    pace: Option<Pace>,
    /// Reason why no ranks are alike, or no more, if symmetric ranks were looked for.
    obstacle: Option<String>,
    pub(crate) connections: MessageConnections,
}

impl<'a> WorkloadBuilder<'a> {
    pub(crate) fn new(
        env: &'a WorkloadEnv,
        builder: &'a mut GraphBuilder,
        name: &'a str,
        scheme: Option<&str>,
        between_sites: Option<&str>,
        start: Duration,
    ) -> Result<Self, WorkloadError> {
        let mut declare = |group: &str, scheme: Option<&str>| {
            let at_group = |error| WorkloadError::Graph { group: name.to_owned(), error };
            builder.group(group, scheme).map_err(at_group)
        };
        let group = declare(name, scheme)?;
        let between = between_sites.map(|scheme| declare(&between_name(name), Some(scheme))).transpose()?;
        let nth = builder.next_workload_index(group);
        // The label of the previous workload does not apply to this one.
        builder.label(None);
        let connections = MessageConnections::OfKind;
        let sink = WorkloadBuilder {
            env,
            builder,
            name,
            group,
            between,
            start,
            nth,
            collectives: 0,
            algorithms_used: Vec::new(),
            training: None,
            pace: None,
            obstacle: None,
            connections,
        };
        match between_sites {
            Some(scheme) if env.sites.is_empty() => sink.field_error(
                "between_sites",
                scheme,
                "a topology of several data centres, such as cross-dc",
            ),
            _ => Ok(sink),
        }
    }
    /// Applies stragglers to all computations from now on.
    pub(crate) fn apply_stragglers(&mut self, stragglers: &Stragglers) -> Result<(), WorkloadError> {
        let hosts = self.env.hosts;
        let factors = stragglers
            .check(self.env)
            .or_else(|(field, value, allowed)| self.field_error(field, value, allowed))?;
        let trace = match &stragglers.trace {
            Some(file) => parse_trace(&self.read(file)?, file, hosts)?,
            None => BTreeMap::new(),
        };
        let seed = derive_seed(self.env.seed, self.name, self.nth);
        self.pace = Some(Pace::new(factors, stragglers.jitter, trace, seed));
        Ok(())
    }
    /// Returns an error if stragglers are set but nothing computes.
    pub(crate) fn check_stragglers(&self) -> Result<(), WorkloadError> {
        match &self.pace {
            Some(pace) if pace.computations() == 0 => {
                self.field_error("stragglers", "set", "a workload that computes; nothing does in this one")
            }
            _ => Ok(()),
        }
    }
    /// Returns a random stream of this workload. It is seeded by name, so neither the order of workloads nor
    /// their schemes change the traffic.
    pub(crate) fn rng(&self, component: &str) -> Rng {
        Rng::for_component(derive_seed(self.env.seed, self.name, self.nth), component, 0)
    }
    /// Declares a message. `start` counts from the start of the workload.
    pub(crate) fn message(
        &mut self,
        (src, dst): (u32, u32),
        size: Bytes,
        start: Duration,
        stream: Stream,
        job: Option<JobId>,
    ) -> Result<Draft, WorkloadError> {
        let start = self.instant(start)?;
        let across = |_: &GroupId| self.env.site(src) != self.env.site(dst);
        let group = self.between.filter(across).unwrap_or(self.group);
        let (src, dst) = (self.env.member(src), self.env.member(dst));
        let stream = match self.connections {
            MessageConnections::OfKind => stream,
            MessageConnections::Own => Stream::Own,
        };
        let new = NewMessage { src, dst, size, start, group, stream, job };
        let result = self.builder.message(new);
        self.with_group_name(result)
    }
    /// Declares a computation.
    pub(crate) fn compute(
        &mut self,
        host: u32,
        duration: Duration,
        job: JobId,
    ) -> Result<Draft, WorkloadError> {
        self.compute_on(None, host, duration, job)
    }
    /// Declares a computation on a core. Computations of a core take turns.
    pub(crate) fn compute_on(
        &mut self,
        core: Option<CoreId>,
        host: u32,
        duration: Duration,
        job: JobId,
    ) -> Result<Draft, WorkloadError> {
        let start = self.instant(Duration::ZERO)?;
        let nominal = duration;
        let duration = self.pace.as_mut().map_or(nominal, |pace| pace.time(host, nominal));
        let result = self.builder.compute(Compute {
            host: Some(self.env.member(host)),
            duration,
            start,
            job: Some(job),
            core,
            core_taken: Duration::ZERO,
        });
        self.builder.nominal(nominal);
        self.with_group_name(result)
    }
    /// Declares a computation on a core, and its begin, a task that ends when the computation has the core. Returns the
    /// begin and the computation.
    pub(crate) fn compute_with_begin(
        &mut self,
        core: CoreId,
        host: u32,
        duration: Duration,
        job: JobId,
    ) -> Result<(Draft, Draft), WorkloadError> {
        let nominal = duration;
        let duration = self.pace.as_mut().map_or(nominal, |pace| pace.time(host, nominal));
        let start = self.instant(Duration::ZERO)?;
        let host = Some(self.env.member(host));
        let job = Some(job);
        let turn =
            Compute { host, duration: Duration::ZERO, start, job, core: Some(core), core_taken: duration };
        let begin = self.builder.unlabelled_compute(turn);
        let begin = self.with_group_name(begin)?;
        let task = self.builder.compute(Compute { duration, core: None, core_taken: Duration::ZERO, ..turn });
        self.builder.nominal(nominal);
        let task = self.with_group_name(task)?;
        self.after(task, begin)?;
        Ok((begin, task))
    }
    /// Declares a latency at a host: a computation that is no work, so that stragglers do not stretch it and results do
    /// not list it.
    pub(crate) fn latency(
        &mut self,
        host: u32,
        duration: Duration,
        job: JobId,
    ) -> Result<Draft, WorkloadError> {
        let start = self.instant(Duration::ZERO)?;
        let host = Some(self.env.member(host));
        let result = self.builder.unlabelled_compute(Compute {
            host,
            duration,
            start,
            job: Some(job),
            core: None,
            core_taken: Duration::ZERO,
        });
        self.with_group_name(result)
    }
    /// Declares a core.
    pub(crate) fn core(&mut self) -> Result<CoreId, WorkloadError> {
        let result = self.builder.core();
        self.with_group_name(result)
    }
    /// Sets the label of all tasks from now on: an activity, and the part of the workload it belongs to.
    /// Results show it.
    pub(crate) fn doing(&mut self, activity: &str, part: impl Display) {
        self.builder.label(Some(label(activity, Some(part.to_string()))));
    }
    /// Sets the label of all tasks from now on, with the parallelism dimension of the ranks that communicate.
    pub(crate) fn label_parallelism(&mut self, parallelism: Parallelism, activity: &str, part: impl Display) {
        let label = label(activity, Some(part.to_string()));
        self.builder.label(Some(Label { parallelism: Some(parallelism), ..label }));
    }
    /// Sets the label of all tasks from now on to an activity only.
    pub(crate) fn label_activity(&mut self, activity: &str) {
        self.builder.label(Some(label(activity, None)));
    }
    /// Makes all tasks from now on steps of a new collective.
    pub(crate) fn collective(&mut self, part: impl Display, steps: Steps<'_>) {
        let Steps { kind, ranks, algorithm, measure, parallelism } = steps;
        let number = self.collectives;
        self.collectives += 1;
        if !self.uses_algorithm(|of, by| of == kind && by == algorithm) {
            self.algorithms_used.push((kind.to_owned(), algorithm));
        }
        let collective = Some(CollectiveLabel { number, ranks: ranks as u32, algorithm, measure });
        self.builder.label(Some(Label { parallelism, collective, ..label(kind, Some(part.to_string())) }));
    }
    /// Returns true if any collective so far has such a kind and algorithm, by their names.
    pub(crate) fn uses_algorithm(&self, is_such: impl Fn(&str, &str) -> bool) -> bool {
        self.algorithms_used.iter().any(|(kind, algorithm)| is_such(kind, algorithm))
    }
    /// Sets the name of `task` in error messages.
    pub(crate) fn name_task(&mut self, task: Draft, name: &str) {
        self.builder.name(task, name);
    }
    /// Makes `task` wait for `predecessor`.
    pub(crate) fn after(&mut self, task: Draft, predecessor: Draft) -> Result<(), WorkloadError> {
        let result = self.builder.after(task, predecessor);
        self.with_group_name(result)
    }
    /// Makes `task` wait for this moment of `predecessor`.
    pub(crate) fn after_moment(
        &mut self,
        task: Draft,
        predecessor: Draft,
        moment: Moment,
    ) -> Result<(), WorkloadError> {
        let result = self.builder.after_moment(task, predecessor, moment);
        self.with_group_name(result)
    }
    /// Lets `task` begin once `needs` of its predecessors have ended.
    pub(crate) fn needs(&mut self, task: Draft, needs: u32) {
        self.builder.needs(task, needs);
    }
    /// Makes `task` begin this long after its predecessors.
    pub(crate) fn delay(&mut self, task: Draft, delay: Duration) {
        self.builder.delay(task, delay);
    }
    /// Declares a job. Its name begins with the group's name, and a number if several workloads share the
    /// group.
    pub(crate) fn job(&mut self, name: impl Display) -> Result<JobId, WorkloadError> {
        let number = if self.nth > 0 { format!(" #{}", self.nth + 1) } else { String::new() };
        let result = self.builder.job(format!("{}{number}: {name}", self.name), self.group);
        self.with_group_name(result)
    }
    /// Declares the next job of a series of iterations or rounds. `last` is the previous job, and becomes
    /// this one.
    pub(crate) fn next_job(
        &mut self,
        name: impl Display,
        last: &mut Option<JobId>,
    ) -> Result<JobId, WorkloadError> {
        let job = self.job(name)?;
        if let Some(before) = last.replace(job) {
            self.builder.follows(job, before);
        }
        if let Some(work) = self.training {
            self.builder.training(job, work);
        }
        Ok(job)
    }
    /// Makes the next jobs of a series iterations of training.
    pub(crate) fn training(&mut self, work: TrainingWork) {
        self.training = Some(work);
    }
    /// Records the memory that training needs on its GPUs.
    pub(crate) fn memory(&mut self, memory: TrainingMemory) {
        self.builder.memory(self.name, memory);
    }
    /// Declares a job that is a part of `whole`.
    pub(crate) fn job_within(&mut self, whole: JobId, name: impl Display) -> Result<JobId, WorkloadError> {
        let job = self.job(name)?;
        self.builder.is_part_of(job, whole);
        Ok(job)
    }
    /// Marks a job as a collective whose bandwidth is reported.
    pub(crate) fn measure(&mut self, job: JobId, measure: BandwidthBytes) {
        self.builder.measure(job, measure);
    }
    /// Adds a note for the user that is not an error.
    pub(crate) fn note(&mut self, text: impl Display) {
        self.builder.note(format!("workload \"{}\": {text}", self.name));
    }
    /// Adds a note that a field has no effect, and why.
    pub(crate) fn note_ineffective(&mut self, field: &str, why: &str) {
        self.note(format_args!("`{field}` has no effect: {why}"));
    }
    /// Returns an error if the graph would have too many tasks, before they are made.
    pub(crate) fn check_count(&self, expected: f64) -> Result<(), WorkloadError> {
        self.check_room(TASKS, expected, MAX_TASKS)
    }
    /// Returns an error if the graph would have too many dependencies, before they are made.
    pub(crate) fn check_dependencies(&self, expected: f64) -> Result<(), WorkloadError> {
        self.check_room(DEPENDENCIES, expected, MAX_DEPENDENCIES)
    }
    fn check_room(&self, what: &'static str, expected: f64, limit: usize) -> Result<(), WorkloadError> {
        if expected <= limit as f64 {
            return Ok(());
        }
        self.with_group_name(Err(GraphError::TooMany { what, limit }))
    }
    /// Returns the reason why no more ranks are alike.
    fn obstacle(&self) -> Option<&String> {
        match &self.env.fold {
            Fold::Never(why) => Some(why),
            Fold::Large(_) | Fold::Always(_) => self.obstacle.as_ref(),
        }
    }
    /// Returns the network in which to look for symmetric ranks, or `None` if the graph is not to be folded.
    pub(crate) fn may_fold(
        &self,
        is_large: impl FnOnce() -> Result<bool, WorkloadError>,
    ) -> Result<Option<Arc<Topology>>, WorkloadError> {
        match &self.env.fold {
            Fold::Never(_) => Ok(None),
            Fold::Large(topology) => Ok(is_large()?.then(|| topology.clone())),
            Fold::Always(topology) => Ok(Some(topology.clone())),
        }
    }
    /// Records the folding that was found and returns the symmetric ranks. If none was found, returns `None`,
    /// or an error about the given field if the user requires folding. `ranks` is the number of all ranks.
    pub(crate) fn fold<A>(
        &mut self,
        found: Result<(A, Folding), String>,
        ranks: usize,
        (field, value): (&'static str, impl Display),
    ) -> Result<Option<A>, WorkloadError> {
        match found {
            Ok((alike, folding)) => {
                let order = folding.order();
                let played = ranks / order as usize;
                self.note(format_args!(
                    "each of the {played} ranks that run stands for {order} that are alike"
                ));
                self.obstacle = Some(format!("each stands for {order} only"));
                self.builder.fold(folding);
                Ok(Some(alike))
            }
            Err(why) if matches!(self.env.fold, Fold::Always(_)) => self.field_error(
                field,
                value,
                format!("run.fold = \"always\" is for jobs with ranks that are alike; here {why}"),
            ),
            Err(why) => {
                self.obstacle = Some(why);
                Ok(None)
            }
        }
    }
    /// Records a change of the configuration with which more ranks are alike.
    pub(crate) fn more_would_be_alike(&mut self, change: impl Display) {
        if let Some(obstacle) = &mut self.obstacle {
            obstacle.push_str(&format!("; with {change}, more are alike"));
        }
    }
    /// Reserves memory for `counts`.
    pub(crate) fn reserve(&mut self, counts: Counts) {
        self.builder.reserve(counts);
    }
    /// Returns an error about a field of the configuration.
    pub(crate) fn field_error<T>(
        &self,
        field: &'static str,
        value: impl Display,
        allowed: impl Into<String>,
    ) -> Result<T, WorkloadError> {
        Err(WorkloadError::Field {
            group: self.name.to_owned(),
            field,
            value: value.to_string(),
            allowed: allowed.into(),
        })
    }
    /// Returns the numbers of the hosts of a list. Numbers that the list itself gives are not checked.
    pub(crate) fn hosts(&self, field: &'static str, list: &HostList) -> Result<Vec<u32>, WorkloadError> {
        list.numbers(self.env)
            .or_else(|UnknownHosts { pattern, allowed }| self.field_error(field, pattern, allowed))
    }
    /// Reads a text file named in the configuration, relative to the configuration's folder.
    pub(crate) fn read(&self, file: &str) -> Result<String, WorkloadError> {
        self.read_at_most(file, MAX_FILE_BYTES)
    }
    /// Reads the first bytes of a file, at most `most`. The file may be binary.
    pub(crate) fn read_bytes(&self, file: &str, most: u64) -> Result<Vec<u8>, WorkloadError> {
        let fail = |why: std::io::Error| FileError::whole(file, format!("cannot read it: {why}"));
        let mut bytes = Vec::new();
        let path = self.env.base_dir.join(file);
        let read = std::fs::File::open(path).and_then(|open| open.take(most).read_to_end(&mut bytes));
        read.map_err(fail)?;
        Ok(bytes)
    }
    /// Reads a text file of at most `bytes` bytes.
    pub(crate) fn read_at_most(&self, file: &str, bytes: u64) -> Result<String, WorkloadError> {
        Ok(read_text(&self.env.base_dir.join(file), file, bytes)?)
    }

    fn instant(&self, start: Duration) -> Result<Time, WorkloadError> {
        let ps = self.start.as_ps().checked_add(start.as_ps()).ok_or(GraphError::Time);
        self.with_group_name(ps.map(Time::from_ps))
    }
    fn with_group_name<T>(&self, result: Result<T, GraphError>) -> Result<T, WorkloadError> {
        result.map_err(|error| {
            let error = match (error, self.obstacle()) {
                (GraphError::TooMany { what: what @ (TASKS | DEPENDENCIES), limit }, Some(why)) => {
                    GraphError::TooLarge { what, limit, why: why.clone() }
                }
                (error, _) => error,
            };
            WorkloadError::Graph { group: self.name.to_owned(), error }
        })
    }
}

fn label(activity: &str, part: Option<String>) -> Label {
    Label { activity: activity.to_owned(), part, parallelism: None, collective: None }
}

fn read_text(path: &Path, file: &str, most: u64) -> Result<String, FileError> {
    pathweave_topo::read_text_file(path, most)
        .map_err(|why| FileError::whole(file, format!("cannot read it: {why}")))
}
