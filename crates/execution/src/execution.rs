//! The state of a workload in execution.

use std::sync::Arc;

use pathweave_results::{FlowRecord, FlowStatus, JobRecord, Role};
use pathweave_transport::Status;
use pathweave_units::Time;
use pathweave_workload::{MessageGraph, TaskId};

use crate::connections::{ConnId, Connections};
use crate::flow::Flow;
use crate::tally::Tally;
use crate::tasks::Tasks;

/// How the messages of a group are carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupSpec {
    /// Index of its scheme.
    pub scheme: u16,
    /// Its data class, 1 and up.
    pub class: u8,
    /// Whether the run waits for it.
    pub role: Role,
}

impl GroupSpec {
    /// Foreground in the first data class.
    pub const fn new(scheme: u16) -> Self {
        GroupSpec { scheme, class: 1, role: Role::Foreground }
    }
}

/// What begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// This message is to be posted.
    Message(u32),
    /// Nothing is to be done: a computation was over, and what waited for it is free.
    Computed,
}

/// What it means for a message that its sender learnt how a part of it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Completed {
    /// Other parts have not ended.
    NotYet,
    /// All of it was acknowledged. What waited for that is free.
    Acknowledged,
    /// All parts have ended, one of them with an error.
    Failed,
}

/// A workload in execution. `Q` is how the caller names both ends of a queue pair.
///
/// # How it is driven
///
/// Nothing happens by itself. At [`Execution::next`] or later, the caller takes what begins until there is nothing more,
/// and posts the messages; then it reports what becomes of them:
///
/// 1. [`Execution::posted`], with the record as far as it is known and the number of parts ([`crate::shares`]), or
///    [`Execution::unreachable`].
/// 2. For each part, [`Execution::part_delivered`] when it has arrived and [`Execution::part_completed`] when its sender
///    knows how it ended, in either order. A part that could not be posted completes with [`Status::Flushed`].
/// 3. When all parts have completed: [`Execution::ended`] and, for messages with queue pairs of their own connection,
///    [`Execution::done_with`], which takes the counters.
///
/// After each of these calls tasks may have become free, so [`Execution::next`] may be earlier.
///
/// ```
/// # use std::sync::Arc;
/// # use pathweave_execution::{Begin, Completed, Connections, Execution, GroupSpec, Tally, shares};
/// # use pathweave_policy::Service;
/// # use pathweave_transport::Status;
/// # use pathweave_units::{Bytes, HostId, Time};
/// # use pathweave_workload::{GraphBuilder, NewMessage, Stream};
/// # let mut builder = GraphBuilder::new(2);
/// # let group = builder.group("group", None)?;
/// # let (src, dst, size) = (HostId(0), HostId(1), Bytes::new(3));
/// # let start = Time::from_us(5);
/// # builder.message(NewMessage { src, dst, size, start, group, stream: Stream::Own, job: None })?;
/// # let graph = Arc::new(builder.finish()?);
/// let connections = Connections::<()>::new(&graph, |_| &Service::Connection);
/// let mut execution = Execution::new(graph, &[GroupSpec::new(0)], connections);
/// let now = execution.next().expect("a message of three bytes at 5 us");
/// while let Some(begin) = execution.begin(now) {
///     let Begin::Message(flow) = begin else { continue };
///     let parts = shares(3, 1).len();
///     execution.posted(execution.record(flow), parts as u16);
/// }
/// assert!(execution.part_delivered(Time::from_us(8), 0, 3));
/// assert_eq!(execution.part_completed(Time::from_us(9), 0, Status::Success), Completed::Acknowledged);
/// execution.ended(0);
/// assert!(execution.done_with(0, Tally::default()), "it was the last of its connection");
/// assert!(execution.is_over());
/// assert_eq!(execution.flow_records()[0].finish_ps, Some(8_000_000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Execution<Q> {
    /// Which messages share queue pairs.
    pub connections: Connections<Q>,
    groups: Vec<GroupSpec>,
    tasks: Tasks,
    /// By message; `None` until posted.
    flows: Vec<Option<Flow>>,
    bytes_done: u128,
    flows_done: usize,
}

impl<Q> Execution<Q> {
    /// Bytes for each message: its state, and which connection it has.
    pub const MESSAGE_BYTES: usize = size_of::<Option<Flow>>() + size_of::<ConnId>();

    /// Nothing has begun. `groups` are those of the graph.
    pub fn new(graph: Arc<MessageGraph>, groups: &[GroupSpec], connections: Connections<Q>) -> Self {
        Execution {
            connections,
            groups: groups.to_vec(),
            flows: graph.messages().iter().map(|_| None).collect(),
            tasks: Tasks::new(graph, groups),
            bytes_done: 0,
            flows_done: 0,
        }
    }

    /// When the next task begins, of those that are known to.
    pub fn next(&self) -> Option<Time> {
        self.tasks.next()
    }

    /// Whether any task that waited for others is free and has not begun.
    pub fn any_freed(&self) -> bool {
        self.tasks.any_freed()
    }

    /// The tasks that begin before `end`, as far as is known, in order.
    pub fn due_before(&mut self, end: Time) -> impl Iterator<Item = TaskId> {
        self.tasks.due_before(end)
    }

    /// Begins the next task that is due. A computation is due when it is over.
    pub fn begin(&mut self, now: Time) -> Option<Begin> {
        let task = self.tasks.pop(now)?;
        if task.index() < self.flows.len() {
            return Some(Begin::Message(task.0));
        }
        self.tasks.ended(task);
        self.tasks.complete(now, task);
        Some(Begin::Computed)
    }

    /// The record of a message that has not been posted. It starts when it could have been.
    pub fn record(&self, flow: u32) -> FlowRecord {
        let message = &self.tasks.graph.messages()[flow as usize];
        FlowRecord {
            flow,
            group: message.group.0,
            scheme: self.groups[message.group.index()].scheme,
            job: message.job.map(|job| job.0),
            src_host: message.src.0,
            dst_host: message.dst.0,
            size_bytes: message.size.get(),
            start_ps: message.start.as_ps(),
            status: FlowStatus::Unfinished,
            ..FlowRecord::default()
        }
    }

    /// The message of this record was posted in so many parts.
    pub fn posted(&mut self, record: FlowRecord, parts: u16) {
        let flow = record.flow as usize;
        self.flows[flow] = Some(Flow::posted(record, parts));
    }

    /// The message of this record has nowhere to go.
    pub fn unreachable(&mut self, record: FlowRecord) {
        let flow = record.flow;
        self.posted(FlowRecord { status: FlowStatus::Unreachable, ..record }, 0);
        let conn = self.connections.of(flow);
        self.connections[conn].messages_left -= 1;
        self.ended(flow);
    }

    /// The last packet of a part has left its sender. True if this was the first time for the last of the parts: packets
    /// may be sent again.
    pub fn part_sent(&mut self, flow: u32) -> bool {
        let state = self.flow(flow);
        let Some(left) = state.parts_to_send.checked_sub(1) else { return false };
        state.parts_to_send = left;
        left == 0
    }

    /// A part of a message, of so many bytes, has arrived whole. True if it was the last: what waited for the message is
    /// free.
    pub fn part_delivered(&mut self, now: Time, flow: u32, bytes: u64) -> bool {
        self.bytes_done += u128::from(bytes);
        let whole = self.flow(flow).part_delivered(now);
        if whole {
            self.flows_done += 1;
            self.tasks.complete(now, TaskId(flow));
        }
        whole
    }

    /// The sender learnt how a part of a message ended.
    pub fn part_completed(&mut self, now: Time, flow: u32, status: Status) -> Completed {
        let state = self.flow(flow);
        if !state.part_completed(now, status) {
            return Completed::NotYet;
        }
        if state.record.acked_ps.is_none() {
            return Completed::Failed;
        }
        self.tasks.acknowledged(now, TaskId(flow));
        Completed::Acknowledged
    }

    /// The run need not wait for this message any more, if it was posted. Saying so twice changes nothing.
    pub fn ended(&mut self, flow: u32) {
        if let Some(state) = &mut self.flows[flow as usize]
            && !std::mem::replace(&mut state.over, true)
        {
            self.tasks.ended(TaskId(flow));
        }
    }

    /// A message is done with: `now` are the counters of its connection. True if it was the connection's last.
    pub fn done_with(&mut self, flow: u32, now: Tally) -> bool {
        self.settle(flow, now);
        let conn = self.connections.of(flow);
        let connection = &mut self.connections[conn];
        connection.messages_left -= 1;
        connection.messages_left == 0
    }

    /// Takes the counters of a message's connection into its record: those of messages that did not end, in the order of
    /// their numbers, when the run is over.
    pub fn settle(&mut self, flow: u32, now: Tally) {
        let conn = self.connections.of(flow);
        let taken = self.connections[conn].take(now);
        if let Some(state) = &mut self.flows[flow as usize] {
            state.settle(&now, &taken);
        }
    }

    /// Whether a message was posted and parts of it have not been delivered.
    pub fn is_arriving(&self, flow: u32) -> bool {
        self.state(flow).is_some_and(|state| state.parts_to_deliver > 0)
    }

    /// Whether a message was posted and its sender does not know how all its parts ended.
    pub fn is_open(&self, flow: u32) -> bool {
        self.state(flow).is_some_and(|state| state.parts_to_complete > 0)
    }

    /// The record of a message that was posted.
    pub fn record_mut(&mut self, flow: u32) -> Option<&mut FlowRecord> {
        self.flows[flow as usize].as_mut().map(|state| &mut state.record)
    }

    /// Nothing the run waits for is under way, and nothing is to come.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.tasks.is_over()
    }

    /// Tasks not yet done, of the background, too.
    pub fn tasks_left(&self) -> usize {
        self.tasks.left()
    }

    /// Payload delivered so far.
    pub fn bytes_done(&self) -> u128 {
        self.bytes_done
    }

    /// Messages delivered so far.
    pub fn flows_done(&self) -> usize {
        self.flows_done
    }

    /// All messages.
    pub fn flows(&self) -> usize {
        self.flows.len()
    }

    /// All jobs, with their ends. One whose tasks wait for others begins when the first of them is free.
    pub fn job_records(&self) -> Vec<JobRecord> {
        self.tasks.job_records()
    }

    /// One a message, which they are taken from; those never posted keep the time at which they could have been.
    pub fn flow_records(&mut self) -> Vec<FlowRecord> {
        let flows = std::mem::take(&mut self.flows).into_iter().zip(0..);
        flows.map(|(flow, id)| flow.map_or_else(|| self.record(id), |flow| flow.record)).collect()
    }

    fn state(&self, flow: u32) -> Option<&Flow> {
        self.flows.get(flow as usize)?.as_ref()
    }

    fn flow(&mut self, flow: u32) -> &mut Flow {
        self.flows[flow as usize].as_mut().expect("nothing becomes of a message before it was posted")
    }
}
