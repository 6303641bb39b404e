//! Where a generator puts its messages: a builder, seen from one workload.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use pathweave_topo::Topology;
use pathweave_units::{Bytes, Duration, Rng, Time, derive_seed};

use crate::algorithm::Algorithm;
use crate::builder::{Draft, GraphBuilder, NewMessage, Stream};
use crate::config::MessageConnections;
use crate::counts::Counts;
use crate::env::WorkloadEnv;
use crate::error::{FileError, GraphError, WorkloadError};
use crate::fold::{Fold, Folding};
use crate::graph::{CollectiveLabel, Compute, CoreId, GroupId, JobId, Label, Measure, Moment, Parallelism};
use crate::stragglers::{Pace, Stragglers, parse_trace};

/// Files beyond this size are refused, so that a wrong path cannot fill the memory.
pub(crate) const MAX_FILE_BYTES: u64 = 4 << 30;

/// Makes the messages of one kind of workload.
pub(crate) trait Generate {
    /// Declares every message, relative to the start of the workload.
    fn generate(&self, out: &mut Sink<'_>) -> Result<(), WorkloadError>;

    /// The files it names, with the field that does.
    fn files(&mut self) -> Vec<NamedFile<'_>> {
        Vec::new()
    }
}

/// A field of the configuration and the file it names.
pub(crate) type NamedFile<'a> = (&'static str, &'a mut String);

/// The name under which what goes between data centres is reported, where the messages of group `name` have a scheme of
/// their own there.
pub fn between_name(name: &str) -> String {
    format!("{name} between sites")
}

/// What the messages of a collective are steps of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steps<'a> {
    /// Its kind: "all-reduce", "dispatch".
    pub(crate) kind: &'a str,
    /// How many ranks take part.
    pub(crate) ranks: usize,
    pub(crate) algorithm: Algorithm,
    /// What its bandwidth counts, if all ranks send alike.
    pub(crate) measure: Option<Measure>,
    /// What its ranks have in common.
    pub(crate) parallelism: Option<Parallelism>,
}

/// A builder seen from one workload: adds its group and start, and puts its name on errors.
pub(crate) struct Sink<'a> {
    pub(crate) env: &'a WorkloadEnv,
    builder: &'a mut GraphBuilder,
    pub(crate) name: &'a str,
    group: GroupId,
    /// Of messages between data centres, where that is another one.
    between: Option<GroupId>,
    start: Duration,
    /// How many workloads have used the group before.
    nth: u64,
    /// Collectives so far.
    collectives: u32,
    /// How long computations take at each host, where that differs.
    pace: Option<Pace>,
    pub(crate) connections: MessageConnections,
}

impl<'a> Sink<'a> {
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
        let nth = builder.next_use(group);
        // What a workload before this one did is not what this one does.
        builder.label(None);
        let connections = MessageConnections::OfKind;
        let sink =
            Sink { env, builder, name, group, between, start, nth, collectives: 0, pace: None, connections };
        match between_sites {
            Some(scheme) if env.sites.is_empty() => {
                sink.bad("between_sites", scheme, "a topology of several data centres, such as cross-dc")
            }
            _ => Ok(sink),
        }
    }
    /// Computations from now on take as long as these stragglers make them.
    pub(crate) fn slow_down(&mut self, stragglers: &Stragglers) -> Result<(), WorkloadError> {
        let hosts = self.env.hosts;
        if let Err((field, value, allowed)) = stragglers.check(hosts) {
            return self.bad(field, value, allowed);
        }
        let trace = match &stragglers.trace {
            Some(file) => parse_trace(&self.read(file)?, file, hosts)?,
            None => BTreeMap::new(),
        };
        self.pace = Some(Pace::new(stragglers, trace, derive_seed(self.env.seed, self.name, self.nth)));
        Ok(())
    }
    /// Refuses stragglers of a workload in which nothing computes.
    pub(crate) fn check_stragglers(&self) -> Result<(), WorkloadError> {
        match &self.pace {
            Some(pace) if pace.computations() == 0 => {
                self.bad("stragglers", "set", "a workload that computes; nothing does in this one")
            }
            _ => Ok(()),
        }
    }
    /// A random stream of this workload. Seeded by name, so that neither the order of workloads nor their schemes
    /// change the traffic.
    pub(crate) fn rng(&self, component: &str) -> Rng {
        Rng::for_component(derive_seed(self.env.seed, self.name, self.nth), component, 0)
    }
    /// A message; `start` counts from the start of the workload.
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
        self.name_it(result)
    }
    /// A computation after others.
    pub(crate) fn compute(
        &mut self,
        host: u32,
        duration: Duration,
        job: JobId,
    ) -> Result<Draft, WorkloadError> {
        self.compute_on(None, host, duration, job)
    }
    /// The same, in turn with others of a core.
    pub(crate) fn compute_on(
        &mut self,
        core: Option<CoreId>,
        host: u32,
        duration: Duration,
        job: JobId,
    ) -> Result<Draft, WorkloadError> {
        let start = self.instant(Duration::ZERO)?;
        let duration = self.pace.as_mut().map_or(duration, |pace| pace.time(host, duration));
        let result = self.builder.compute(Compute {
            host: Some(self.env.member(host)),
            duration,
            start,
            job: Some(job),
            core,
        });
        self.name_it(result)
    }
    /// A new core.
    pub(crate) fn core(&mut self) -> Result<CoreId, WorkloadError> {
        let result = self.builder.core();
        self.name_it(result)
    }
    /// Tasks from now on do this, to this part of the whole; results show it.
    pub(crate) fn doing(&mut self, activity: &str, part: impl Display) {
        self.builder.label(Some(label(activity, Some(part.to_string()))));
    }
    /// The same, of messages among ranks that have this in common.
    pub(crate) fn doing_among(&mut self, parallelism: Parallelism, activity: &str, part: impl Display) {
        let label = label(activity, Some(part.to_string()));
        self.builder.label(Some(Label { parallelism: Some(parallelism), ..label }));
    }
    /// Tasks from now on do this, and there is no more to say.
    pub(crate) fn doing_only(&mut self, activity: &str) {
        self.builder.label(Some(label(activity, None)));
    }
    /// Tasks from now on are steps of a new collective.
    pub(crate) fn collective(&mut self, part: impl Display, steps: Steps<'_>) {
        let Steps { kind, ranks, algorithm, measure, parallelism } = steps;
        let number = self.collectives;
        self.collectives += 1;
        let collective = Some(CollectiveLabel { number, ranks: ranks as u32, algorithm, measure });
        self.builder.label(Some(Label { parallelism, collective, ..label(kind, Some(part.to_string())) }));
    }
    /// Errors about `task` call it by this name.
    pub(crate) fn name_task(&mut self, task: Draft, name: &str) {
        self.builder.name(task, name);
    }
    /// `task` waits for `predecessor`.
    pub(crate) fn after(&mut self, task: Draft, predecessor: Draft) -> Result<(), WorkloadError> {
        let result = self.builder.after(task, predecessor);
        self.name_it(result)
    }
    /// `task` waits for this moment of `predecessor`.
    pub(crate) fn after_moment(
        &mut self,
        task: Draft,
        predecessor: Draft,
        moment: Moment,
    ) -> Result<(), WorkloadError> {
        let result = self.builder.after_moment(task, predecessor, moment);
        self.name_it(result)
    }
    /// `task` begins with so many of those it waits for.
    pub(crate) fn needs(&mut self, task: Draft, needs: u32) {
        self.builder.needs(task, needs);
    }
    /// `task` begins this long after its predecessors.
    pub(crate) fn delay(&mut self, task: Draft, delay: Duration) {
        self.builder.delay(task, delay);
    }
    /// A job; the group's name is put before its own, and a number if several workloads share the group.
    pub(crate) fn job(&mut self, name: impl Display) -> Result<JobId, WorkloadError> {
        let number = if self.nth > 0 { format!(" #{}", self.nth + 1) } else { String::new() };
        let result = self.builder.job(format!("{}{number}: {name}", self.name), self.group);
        self.name_it(result)
    }
    /// The next job of a series, each the iteration or round after the one before it. `last` is that one, and becomes this one.
    pub(crate) fn next_job(
        &mut self,
        name: impl Display,
        last: &mut Option<JobId>,
    ) -> Result<JobId, WorkloadError> {
        let job = self.job(name)?;
        if let Some(before) = last.replace(job) {
            self.builder.follows(job, before);
        }
        Ok(job)
    }
    /// A job that is a part of another one.
    pub(crate) fn job_within(&mut self, whole: JobId, name: impl Display) -> Result<JobId, WorkloadError> {
        let job = self.job(name)?;
        self.builder.is_part_of(job, whole);
        Ok(job)
    }
    /// A job is a collective, of which bandwidth is reported.
    pub(crate) fn measure(&mut self, job: JobId, measure: Measure) {
        self.builder.measure(job, measure);
    }
    /// Something the user should know and that is not an error.
    pub(crate) fn note(&mut self, text: impl Display) {
        self.builder.note(format!("workload \"{}\": {text}", self.name));
    }
    /// Fails before millions of messages are made in vain.
    pub(crate) fn check_count(&self, expected: f64) -> Result<(), WorkloadError> {
        let limit = crate::builder::MAX_TASKS;
        if expected <= limit as f64 {
            return Ok(());
        }
        self.name_it(Err(GraphError::TooMany { what: "messages and computations", limit }))
    }
    /// Fails before millions of dependencies are made in vain.
    pub(crate) fn check_dependencies(&self, expected: f64) -> Result<(), WorkloadError> {
        let limit = crate::builder::MAX_DEPENDENCIES;
        if expected <= limit as f64 {
            return Ok(());
        }
        self.name_it(Err(GraphError::TooMany { what: "dependencies", limit }))
    }
    /// The network on which to look for ranks that are alike; `None` if all are to be run.
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
    /// Of so many ranks, those that others stand for are left out, as was found; or else `why` nobody is alike, which is an error
    /// about this field where the user asks for it. Returns who is alike.
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
                self.builder.fold(folding);
                Ok(Some(alike))
            }
            Err(why) if matches!(self.env.fold, Fold::Always(_)) => self.bad(
                field,
                value,
                format!("run.fold = \"always\" is for jobs with ranks that are alike; here {why}"),
            ),
            Err(_) => Ok(None),
        }
    }
    /// Makes room for what is to come.
    pub(crate) fn reserve(&mut self, counts: Counts) {
        self.builder.reserve(counts);
    }
    /// An error about a field of the configuration.
    pub(crate) fn bad<T>(
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
    /// Reads a file named in the configuration, relative to its folder.
    pub(crate) fn read(&self, file: &str) -> Result<String, WorkloadError> {
        self.read_at_most(file, MAX_FILE_BYTES)
    }
    /// The same, of so many bytes at most.
    /// The first bytes of a file that may be no text, so many at most.
    pub(crate) fn read_bytes(&self, file: &str, most: u64) -> Result<Vec<u8>, WorkloadError> {
        let fail = |why: std::io::Error| FileError::whole(file, format!("cannot read it: {why}"));
        let mut bytes = Vec::new();
        let path = self.env.base_dir.join(file);
        let read = std::fs::File::open(path).and_then(|open| open.take(most).read_to_end(&mut bytes));
        read.map_err(fail)?;
        Ok(bytes)
    }
    pub(crate) fn read_at_most(&self, file: &str, bytes: u64) -> Result<String, WorkloadError> {
        Ok(read_text(&self.env.base_dir.join(file), file, bytes)?)
    }

    fn instant(&self, start: Duration) -> Result<Time, WorkloadError> {
        let ps = self.start.as_ps().checked_add(start.as_ps()).ok_or(GraphError::Time);
        self.name_it(ps.map(Time::from_ps))
    }
    fn name_it<T>(&self, result: Result<T, GraphError>) -> Result<T, WorkloadError> {
        result.map_err(|error| WorkloadError::Graph { group: self.name.to_owned(), error })
    }
}

fn label(activity: &str, part: Option<String>) -> Label {
    Label { activity: activity.to_owned(), part, parallelism: None, collective: None }
}

fn read_text(path: &Path, file: &str, most: u64) -> Result<String, FileError> {
    pathweave_topo::read_text_file(path, most)
        .map_err(|why| FileError::whole(file, format!("cannot read it: {why}")))
}
