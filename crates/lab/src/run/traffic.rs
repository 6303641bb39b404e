//! The workload in motion on real hosts: posting messages as they become due, noting how they end.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::time::{Duration, Instant};

use pathweave_datapath::{Connection, PostError, Status, part_bytes};
use pathweave_results::{EndReason, FlowRecord, FlowStatus};
use pathweave_sim::{Pending, SimSpec, Verb, ideal_fct, notice_wire_bytes, profile};
use pathweave_topo::Routing;
use pathweave_units::Time;
use pathweave_workload::{Due, Progress, TaskId};

use super::ends::Ends;
use super::flow::{Flow, Tally};
use super::{Clock, Seen};
use crate::error::LabError;

/// Between two looks at the connections.
const NAP: Duration = Duration::from_micros(50);
/// A run in which nothing has ended for so long, and nothing is due, has stalled.
const PATIENCE: Duration = Duration::from_secs(30);

/// The state of a run.
pub(super) struct Traffic<'a> {
    spec: &'a SimSpec,
    ends: &'a Ends,
    clock: Clock,
    routing: Routing,
    progress: Progress,
    /// Tasks by the time they are due, then in the order in which they became free.
    due: BinaryHeap<Reverse<(Time, u64, TaskId)>>,
    due_count: u64,
    /// What the run still waits for.
    pending: Pending,
    flows: Vec<Option<Flow>>,
    job_finish: Vec<Option<Time>>,
    /// Streams with messages under way, and how many.
    busy: BTreeSet<u32>,
    under_way: Vec<u32>,
    /// Counters of each stream when a message of it was last done with.
    taken: Vec<Tally>,
    bytes_done: u128,
    last_end: Instant,
    /// Naps, and how much longer than asked for they took in all.
    naps: u32,
    overslept: Duration,
}

/// What is left when a run is over.
pub(super) struct Done {
    pub(super) flows: Vec<Option<Flow>>,
    pub(super) progress: Progress,
    pub(super) job_finish: Vec<Option<Time>>,
    /// Message, receiver and size of what arrived.
    pub(super) delivered: Vec<(u32, u32, u64)>,
}

impl<'a> Traffic<'a> {
    pub(super) fn new(spec: &'a SimSpec, ends: &'a Ends, clock: Clock) -> Self {
        Traffic {
            spec,
            ends,
            clock,
            routing: Routing::whole(&spec.topology),
            progress: Progress::new(&spec.graph),
            due: BinaryHeap::new(),
            due_count: 0,
            pending: Pending::new(spec),
            flows: spec.graph.messages().iter().map(|_| None).collect(),
            job_finish: vec![None; spec.graph.jobs().len()],
            busy: BTreeSet::new(),
            under_way: vec![0; ends.streams.len()],
            taken: vec![Tally::default(); ends.streams.len()],
            bytes_done: 0,
            last_end: Instant::now(),
            naps: 0,
            overslept: Duration::ZERO,
        }
    }

    /// Runs until everything is done, or something else ends it.
    pub(super) fn run(&mut self, look: &mut dyn FnMut(Seen) -> bool) -> Result<EndReason, LabError> {
        let until = self.spec.stop.until.map(|until| Time::ZERO + until);
        let bytes_total = self.spec.graph.total_bytes();
        loop {
            let now = self.clock.now();
            self.begin_due(now)?;
            let ended = self.poll()?;
            if self.pending.is_over() {
                let complete = self.progress.left() == 0 || self.spec.has_background();
                return Ok(if complete { EndReason::Completed } else { EndReason::Stalled });
            }
            if until.is_some_and(|until| now >= until) {
                return Ok(EndReason::TimeLimit);
            }
            if ended {
                self.last_end = Instant::now();
                continue;
            }
            if !look(Seen { now, bytes_done: self.bytes_done, bytes_total }) {
                return Ok(EndReason::Interrupted);
            }
            let wait = self.until_next(now);
            if self.last_end.elapsed() > PATIENCE && wait > NAP {
                return Ok(EndReason::Stalled);
            }
            self.nap();
        }
    }

    fn nap(&mut self) {
        let begin = Instant::now();
        std::thread::sleep(NAP);
        self.naps += 1;
        self.overslept += begin.elapsed().saturating_sub(NAP);
    }

    /// How much later than asked for a nap ended on the mean.
    pub(super) fn late(&self) -> Duration {
        self.overslept / self.naps.max(1)
    }

    /// How long until the next task is due, in the lab's time; long if none is known.
    fn until_next(&mut self, now: Time) -> Duration {
        let waiting = self.due.peek().map(|Reverse((at, ..))| *at);
        let root = self.progress.next_root(&self.spec.graph);
        let next = waiting.into_iter().chain(root).min();
        if next.is_some() {
            // Somebody waits for time to pass, which is no standstill.
            self.last_end = Instant::now();
        }
        next.map_or(PATIENCE, |at| self.clock.real(at.saturating_since(now)))
    }

    fn begin_due(&mut self, now: Time) -> Result<(), LabError> {
        loop {
            if let Some(&Reverse((at, _, task))) = self.due.peek()
                && at <= now
            {
                self.due.pop();
                self.begin(task)?;
            } else if let Some(due) = self.progress.pop_root(&self.spec.graph, now) {
                self.later(due);
            } else {
                return Ok(());
            }
        }
    }

    fn later(&mut self, Due { task, at }: Due) {
        self.due_count += 1;
        self.due.push(Reverse((at, self.due_count, task)));
    }

    /// A message is posted; a computation is over (its due time is its end).
    fn begin(&mut self, task: TaskId) -> Result<(), LabError> {
        if task.index() < self.flows.len() {
            return self.post(task.0);
        }
        self.pending.ended(&self.spec.graph, task);
        self.complete(task);
        Ok(())
    }

    fn complete(&mut self, task: TaskId) {
        let mut free = Vec::new();
        let now = self.clock.now();
        if let Some(job) = self.progress.complete(&self.spec.graph, task, now, &mut free) {
            self.job_finish[job.index()] = Some(now);
        }
        self.begin_freed(free);
    }

    fn begin_freed(&mut self, free: Vec<Due>) {
        for due in free {
            self.pending.freed(&self.spec.graph, due.task);
            self.later(due);
        }
    }

    fn post(&mut self, number: u32) -> Result<(), LabError> {
        let message = self.spec.graph.messages()[number as usize];
        let id = self.ends.stream_of(number);
        let stream = &self.ends.streams[id as usize];
        let size = message.size.get();
        let parts = (stream.senders.len() as u64).min(size.max(1));
        let mut record = self.spec.flow_record(number);
        record.ideal_fct_ps =
            profile(&self.spec.topology, &self.routing, message.src, message.dst).map_or(0, |mut path| {
                // A lab has no delays, so they must not make it look better than ideal.
                path.hops.iter_mut().for_each(|(_, delay)| *delay = pathweave_units::Duration::ZERO);
                let host = &self.spec.host;
                ideal_fct(&path, size, host.mtu.get() as u16, host.framing, host.verb).as_ps()
            });
        record.start_ps = self.clock.now().as_ps();
        self.flows[number as usize] = Some(Flow::posted(record, parts as u16));
        self.under_way[id as usize] += 1;
        self.busy.insert(id);
        let mut offset = 0;
        for (part, sender) in (0..parts).zip(&stream.senders) {
            let len = part_bytes(size, part, parts);
            let (from, to) = self.ends.memory(number, stream, offset, len);
            offset += len;
            let posted = match self.spec.host.verb {
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

    /// Takes what has ended on all busy connections. Whether anything has.
    fn poll(&mut self) -> Result<bool, LabError> {
        let mut any = false;
        let busy: Vec<u32> = self.busy.iter().copied().collect();
        for id in busy {
            let stream = &self.ends.streams[id as usize];
            let of = |connections: &'a [Connection]| {
                connections
                    .iter()
                    .flat_map(|connection| std::iter::from_fn(move || Some((connection, connection.poll()?))))
            };
            let arrived: Vec<_> = of(&stream.receivers).collect();
            let heard: Vec<_> = of(&stream.senders).collect();
            any |= !arrived.is_empty() || !heard.is_empty();
            for (receiver, completion) in arrived {
                // A connection that is over returns its receives; the sender tells why.
                if let (true, Some(number)) = (completion.is_success(), completion.imm) {
                    self.arrived(number);
                    self.ends.receive(stream, receiver)?;
                }
            }
            for (_, completion) in heard {
                self.acknowledged(completion.wr_id as u32, completion.status);
            }
        }
        Ok(any)
    }

    fn arrived(&mut self, number: u32) {
        let now = self.clock.now();
        let Some(Some(flow)) = self.flows.get_mut(number as usize) else { return };
        if flow.delivered(now) {
            self.bytes_done += u128::from(flow.record.size_bytes);
            self.complete(TaskId(number));
        }
    }

    fn acknowledged(&mut self, number: u32, status: Status) {
        let now = self.clock.now();
        let id = self.ends.stream_of(number);
        let Some(Some(flow)) = self.flows.get_mut(number as usize) else { return };
        if flow.is_open() && flow.acknowledged(now, status) {
            if flow.record.acked_ps.is_some() {
                let mut free = Vec::new();
                self.progress.acknowledged(&self.spec.graph, TaskId(number), now, &mut free);
                self.begin_freed(free);
            }
            self.settle(number);
            self.pending.ended(&self.spec.graph, TaskId(number));
            let left = &mut self.under_way[id as usize];
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.busy.remove(&id);
            }
        }
    }

    /// Takes the counters of a message's stream into its record.
    fn settle(&mut self, number: u32) {
        let id = self.ends.stream_of(number) as usize;
        let notice = u64::from(notice_wire_bytes(self.spec.host.framing));
        let now = Tally::of(&self.ends.streams[id], notice);
        let taken = std::mem::replace(&mut self.taken[id], now);
        if let Some(flow) = &mut self.flows[number as usize] {
            flow.settle(&now, &taken);
        }
    }

    pub(super) fn finish(mut self) -> Done {
        let mut delivered = Vec::new();
        for number in 0..self.flows.len() as u32 {
            if self.flows[number as usize].as_ref().is_some_and(Flow::is_open) {
                self.settle(number);
            }
            let Some(flow) = &self.flows[number as usize] else { continue };
            let FlowRecord { dst_host, size_bytes, status, .. } = flow.record;
            if status == FlowStatus::Finished {
                delivered.push((number, dst_host, size_bytes));
            }
        }
        Done { flows: self.flows, progress: self.progress, job_finish: self.job_finish, delivered }
    }
}
