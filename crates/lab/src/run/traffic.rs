//! Execution of a workload on real hosts: posts messages when they are due and records their end.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use pathweave_datapath::{PostError, Status};
use pathweave_execution::{
    ConnId, Connection, Connections, Execution, PartCompletion, ReceiverCounters, ScheduledStep,
    SenderCounters, shares,
};
use pathweave_records::{ActivityLabel, ActivityRecord, CriticalStep, EndReason, FlowRecord, JobRecord};
use pathweave_sim::{PathProfile, PathUse, SimSpec, Verb, ideal_fct, profiles};
use pathweave_topo::Routing;
use pathweave_units::{Forwarding, Time};

use super::ends::{Hosts, Pair};
use super::{Clock, RunProgress};
use crate::error::LabError;

/// Interval between checks of the connections.
const POLL_INTERVAL: Duration = Duration::from_micros(50);
/// Time without any completion or due task after which a run has stalled.
const PATIENCE: Duration = Duration::from_secs(30);

/// State of a run.
pub(super) struct Traffic<'a> {
    spec: &'a SimSpec,
    ends: &'a Hosts,
    clock: Clock,
    routing: Routing,
    /// Tasks, messages and their connections.
    execution: Execution<Pair>,
    /// Pending steps of tasks, by time.
    steps: BTreeSet<ScheduledStep>,
    /// Connections with messages in progress, and the number of messages on each connection.
    busy: BTreeSet<ConnId>,
    under_way: Vec<u32>,
    last_end: Instant,
    /// Number of naps, and their total delay beyond the requested time.
    naps: u32,
    sleep_excess: Duration,
}

/// Results of a finished run.
pub(super) struct Done {
    pub(super) flows: Vec<FlowRecord>,
    pub(super) jobs: Vec<JobRecord>,
    pub(super) labels: Vec<ActivityLabel>,
    pub(super) activities: Vec<ActivityRecord>,
    pub(super) critical: Vec<CriticalStep>,
    /// Keeps the connections open, so that packets that close them are not counted for the workload.
    _connections: Connections<Pair>,
}

impl<'a> Traffic<'a> {
    pub(super) fn new(
        spec: &'a SimSpec,
        ends: &'a Hosts,
        connections: Connections<Pair>,
        clock: Clock,
    ) -> Result<Self, LabError> {
        let notification = spec.task_notification().map_err(|error| LabError::Run(error.to_string()))?;
        Ok(Traffic {
            spec,
            ends,
            clock,
            routing: Routing::all_links_up(&spec.topology),
            busy: BTreeSet::new(),
            under_way: vec![0; connections.len()],
            execution: Execution::new(spec.graph.clone(), &spec.groups, connections, notification),
            steps: BTreeSet::new(),
            last_end: Instant::now(),
            naps: 0,
            sleep_excess: Duration::ZERO,
        })
    }

    /// Runs until everything is done, or until a limit, a stall or the caller ends the run.
    pub(super) fn run(&mut self, look: &mut dyn FnMut(RunProgress) -> bool) -> Result<EndReason, LabError> {
        let until = self.spec.run.until.map(|until| Time::ZERO + until);
        let bytes_total = self.spec.graph.total_bytes();
        loop {
            let now = self.clock.now();
            self.begin_due(now)?;
            let ended = self.poll()?;
            if self.execution.over_since().is_some() {
                let complete = self.execution.tasks_left() == 0 || self.spec.has_background();
                return Ok(if complete { EndReason::Completed } else { EndReason::Stalled });
            }
            if until.is_some_and(|until| now >= until) {
                return Ok(EndReason::TimeLimit);
            }
            if ended {
                self.last_end = Instant::now();
                continue;
            }
            if !look(RunProgress { now, bytes_done: self.execution.bytes_done(), bytes_total }) {
                return Ok(EndReason::Interrupted);
            }
            let wait = self.until_next(now);
            if self.last_end.elapsed() > PATIENCE && wait > POLL_INTERVAL {
                return Ok(EndReason::Stalled);
            }
            self.sleep();
        }
    }

    fn sleep(&mut self) {
        let begin = Instant::now();
        std::thread::sleep(POLL_INTERVAL);
        self.naps += 1;
        self.sleep_excess += begin.elapsed().saturating_sub(POLL_INTERVAL);
    }

    /// Returns the average delay of naps beyond the requested time.
    pub(super) fn late(&self) -> Duration {
        self.sleep_excess / self.naps.max(1)
    }

    /// Returns the time until the next task is due, in the lab's time, or a long time if none is known.
    fn until_next(&mut self, now: Time) -> Duration {
        let step = self.steps.first().map(|due| due.at);
        let next = self.execution.next().into_iter().chain(step).min();
        if next.is_some() {
            // A task that waits for time to pass is not a stall.
            self.last_end = Instant::now();
        }
        next.map_or(PATIENCE, |at| self.clock.real(at.saturating_since(now)))
    }

    fn begin_due(&mut self, now: Time) -> Result<(), LabError> {
        let end = now + pathweave_units::Duration::from_ps(1);
        self.steps.extend(std::iter::from_fn(|| self.execution.root_before(end)));
        loop {
            self.execution.settle_barriers(end);
            self.steps.extend(std::iter::from_fn(|| self.execution.next_step()));
            let Some(due) = self.steps.first().copied().filter(|due| due.at <= now) else { return Ok(()) };
            self.steps.remove(&due);
            if let Some(number) = self.execution.step(due.at, due.host, due.step) {
                self.post(number)?;
            }
        }
    }

    fn post(&mut self, number: u32) -> Result<(), LabError> {
        let message = self.spec.graph.messages()[number as usize];
        let id = self.execution.connections.of(number);
        let size = message.size.get();
        let queue_pairs = self.execution.connections[id].queue_pairs.len();
        let parts = shares(size, queue_pairs);
        let scheme = &self.spec.scheme_of(message.group).scheme;
        let used = PathUse::of(scheme, Forwarding::Ecmp);
        let mut record = self.execution.record(number);
        let host = &self.spec.network;
        let paths = profiles(&self.spec.topology, &self.routing, message.src, message.dst);
        let ideals = paths.into_iter().map(|mut path| {
            // A lab has no delays, so they must not be part of the ideal time.
            path.hops.iter_mut().for_each(|(_, delay)| *delay = pathweave_units::Duration::ZERO);
            let path = PathProfile { mean_delay: None, ..path.used(used) };
            ideal_fct(&path, size, queue_pairs, host.mtu.get() as u16, host.framing, host.verb).as_ps()
        });
        record.ideal_fct_ps = ideals.min().unwrap_or(0);
        record.start_ps = self.clock.now().as_ps();
        self.execution.posted(record, parts.len() as u16);
        self.execution.expected(number, parts.len() as u16);
        self.under_way[id as usize] += 1;
        self.busy.insert(id);
        for (part, share) in parts.enumerate() {
            let (from, to) = self.ends.memory(number, message.dst, share);
            let sender = &self.execution.connections[id].queue_pairs[part].sender;
            let posted = match self.spec.network.verb {
                Verb::Write => sender.write_imm(u64::from(number), from, to, number),
                Verb::Send => sender.send_imm(u64::from(number), from, number),
            };
            match posted {
                Ok(()) => {}
                Err(PostError::Closed) => self.acknowledged(number, Status::Flushed),
                Err(why) => return Err(LabError::Run(format!("message {number} cannot be posted: {why}"))),
            }
        }
        Ok(())
    }

    /// Handles all completions on busy connections. Returns true if there were any.
    fn poll(&mut self) -> Result<bool, LabError> {
        let mut any = false;
        let busy: Vec<u32> = self.busy.iter().copied().collect();
        for id in busy {
            let connection = &self.execution.connections[id];
            let dst = connection.dst;
            let pairs = || connection.queue_pairs.iter().enumerate();
            let arrived: Vec<_> = pairs()
                .flat_map(|(part, pair)| std::iter::from_fn(move || Some((part, pair.receiver.poll()?))))
                .collect();
            let heard: Vec<_> =
                pairs().flat_map(|(_, pair)| std::iter::from_fn(move || pair.sender.poll())).collect();
            any |= !arrived.is_empty() || !heard.is_empty();
            for (part, completion) in arrived {
                // A connection that has ended returns its receives; its sender reports the reason.
                if let (true, Some(number)) = (completion.is_success(), completion.imm) {
                    self.arrived(number, completion.byte_len);
                    let receiver = &self.execution.connections[id].queue_pairs[part].receiver;
                    self.ends.receive(dst, receiver)?;
                }
            }
            for completion in heard {
                self.acknowledged(completion.wr_id as u32, completion.status);
            }
        }
        Ok(any)
    }

    fn arrived(&mut self, number: u32, bytes: u64) {
        // The number comes from the other end and is not trusted.
        if self.execution.is_arriving(number)
            && self.execution.part_delivered(self.clock.now(), number, bytes)
        {
            let id = self.execution.connections.of(number);
            let tally = received(&self.execution.connections[id]);
            self.execution.received(number, tally);
        }
    }

    fn acknowledged(&mut self, number: u32, status: Status) {
        let now = self.clock.now();
        if !self.execution.is_open(number)
            || self.execution.part_completed(now, number, status) == PartCompletion::NotYet
        {
            return;
        }
        let id = self.execution.connections.of(number);
        let tally = sent(&self.execution.connections[id]);
        self.execution.release_connection(number, tally);
        self.execution.ended(now, number);
        let left = &mut self.under_way[id as usize];
        *left = left.saturating_sub(1);
        if *left == 0 {
            self.busy.remove(&id);
        }
    }

    pub(super) fn finish(mut self) -> Done {
        self.execution.attribute_counters_at_end(
            |_, connection| Some(sent(connection)),
            |_, connection| Some(received(connection)),
        );
        let (labels, activities) =
            (self.execution.labels(), self.execution.activity_records(self.clock.now()));
        let critical = self.execution.critical_steps();
        let mut flows = self.execution.flow_records();
        flows.iter_mut().for_each(arrived_when_acknowledged);
        let jobs = self.execution.job_records();
        Done { flows, jobs, labels, activities, critical, _connections: self.execution.connections }
    }
}

/// Corrects the delivery time: an acknowledged message has arrived, even if the receiver's thread learned of it later
/// because the system kept it off the cores for milliseconds.
fn arrived_when_acknowledged(record: &mut FlowRecord) {
    if let (Some(finish), Some(acked)) = (record.finish_ps, record.acked_ps) {
        record.finish_ps = Some(finish.min(acked));
    }
}

/// Returns the counters of a connection's sender.
fn sent(connection: &Connection<Pair>) -> SenderCounters {
    let mut tally = SenderCounters::default();
    for stats in connection.queue_pairs.iter().filter_map(|pair| pair.sender.stats()) {
        tally.add(&stats.counters);
    }
    tally
}

/// Returns the counters of a connection's receiver.
fn received(connection: &Connection<Pair>) -> ReceiverCounters {
    let mut tally = ReceiverCounters::default();
    for stats in connection.queue_pairs.iter().filter_map(|pair| pair.receiver.stats()) {
        tally.add(&stats.counters);
    }
    tally
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledged_messages_have_arrived() {
        let finish = |finish_ps, acked_ps| {
            let mut record = FlowRecord { finish_ps, acked_ps, ..FlowRecord::default() };
            arrived_when_acknowledged(&mut record);
            record.finish_ps
        };
        assert_eq!(finish(Some(44), Some(36)), Some(36));
        assert_eq!(finish(Some(30), Some(36)), Some(30));
        assert_eq!(finish(Some(44), None), Some(44));
        assert_eq!(finish(None, None), None);
    }
}
