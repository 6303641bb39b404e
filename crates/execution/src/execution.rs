//! The state of a workload in execution.

use std::sync::Arc;

use pathweave_results::{FlowRecord, FlowStatus, JobRecord, Role};
use pathweave_transport::Status;
use pathweave_units::Time;
use pathweave_workload::{MessageGraph, TaskId};

use crate::connections::{ConnId, Connection, Connections};
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

    /// The run is over: messages that did not end take the counters of their connections, as `tally` tells them.
    pub fn settle_open(&mut self, tally: impl Fn(&Connection<Q>) -> Tally) {
        for flow in 0..self.flows.len() as u32 {
            // Those that ended were settled when they did.
            if self.is_open(flow) {
                self.settle(flow, tally(&self.connections[self.connections.of(flow)]));
            }
        }
    }

    /// Takes the counters of a message's connection into its record.
    fn settle(&mut self, flow: u32, now: Tally) {
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

#[cfg(test)]
mod tests {
    use pathweave_policy::Service;
    use pathweave_units::{Bytes, Duration, HostId};
    use pathweave_workload::{Compute, GraphBuilder, NewMessage, Stream};

    use super::*;

    /// Host 0 to 1; 2 us after its delivery 1 to 2. Beside them 2 to 0 in a group of its own.
    fn execution(other: Role) -> Execution<()> {
        let mut builder = GraphBuilder::new(3);
        let groups = ["chain", "other"].map(|name| builder.group(name, None).unwrap());
        let job = Some(builder.job("chain".to_owned(), groups[0]).unwrap());
        let message = |src, dst, group, job| NewMessage {
            src: HostId(src),
            dst: HostId(dst),
            size: Bytes::new(100),
            start: Time::ZERO,
            group,
            stream: Stream::Own,
            job,
        };
        let first = builder.message(message(0, 1, groups[0], job)).unwrap();
        let duration = Duration::from_us(2);
        let compute = Compute { host: Some(HostId(1)), duration, start: Time::ZERO, job, core: None };
        let compute = builder.compute(compute).unwrap();
        let second = builder.message(message(1, 2, groups[0], job)).unwrap();
        builder.message(message(2, 0, groups[1], None)).unwrap();
        builder.after(compute, first).unwrap();
        builder.after(second, compute).unwrap();
        let graph = Arc::new(builder.finish().unwrap());
        let connections = Connections::new(&graph, |_| &Service::Connection);
        let groups = [GroupSpec::new(0), GroupSpec { role: other, ..GroupSpec::new(0) }];
        Execution::new(graph, &groups, connections)
    }

    /// The message from this host.
    fn from(execution: &Execution<()>, host: u32) -> u32 {
        let of = |flow: &u32| execution.record(*flow).src_host == host;
        (0..execution.flows() as u32).find(of).expect("each host sends one")
    }

    /// Posts, in two parts, what begins.
    fn post(execution: &mut Execution<()>, now: Time) -> Vec<u32> {
        let mut posted = Vec::new();
        while let Some(begin) = execution.begin(now) {
            let Begin::Message(flow) = begin else { continue };
            execution.posted(FlowRecord { start_ps: now.as_ps(), ..execution.record(flow) }, 2);
            posted.push(flow);
        }
        posted
    }

    fn complete(execution: &mut Execution<()>, now: Time, flow: u32, status: Status) -> Completed {
        assert_eq!(execution.part_completed(now, flow, Status::Success), Completed::NotYet);
        let completed = execution.part_completed(now, flow, status);
        execution.ended(flow);
        execution.ended(flow);
        assert!(execution.done_with(flow, Tally::default()), "each has a connection of its own");
        completed
    }

    #[test]
    fn what_waits_for_a_delivery_begins_with_it() {
        let mut execution = execution(Role::Background);
        let [first, second, other] = [0, 1, 2].map(|host| from(&execution, host));
        let mut posted = post(&mut execution, Time::ZERO);
        posted.sort_unstable();
        let mut expected = [first, other];
        expected.sort_unstable();
        assert_eq!(posted, expected);
        assert_eq!(execution.next(), None);
        assert!(!execution.part_delivered(Time::from_us(3), first, 50));
        assert!(execution.part_delivered(Time::from_us(5), first, 50));
        assert_eq!((execution.bytes_done(), execution.flows_done()), (100, 1));
        // The computation is due when it is over.
        assert_eq!(execution.next(), Some(Time::from_us(7)));
        assert_eq!(execution.due_before(Time::from_us(7)).count(), 0);
        assert_eq!(execution.due_before(Time::from_us(8)).count(), 1);
        assert_eq!(post(&mut execution, Time::from_us(7)), [second]);
        assert_eq!(
            complete(&mut execution, Time::from_us(6), first, Status::Success),
            Completed::Acknowledged
        );
        assert!(!execution.part_delivered(Time::from_us(9), second, 50));
        assert!(execution.part_delivered(Time::from_us(9), second, 50));
        assert!(!execution.is_over(), "its sender does not know");
        let at = Time::from_us(10);
        assert_eq!(complete(&mut execution, at, second, Status::Success), Completed::Acknowledged);
        assert!(execution.is_over(), "nobody waits for the background");
        assert_eq!(execution.tasks_left(), 1);
        let job = &execution.job_records()[0];
        assert_eq!((job.start_ps, job.finish_ps), (0, Some(9_000_000)));
        let record = execution.flow_records().swap_remove(second as usize);
        assert_eq!((record.start_ps, record.finish_ps), (7_000_000, Some(9_000_000)));
        assert_eq!(record.acked_ps, Some(10_000_000));
    }

    #[test]
    fn a_run_is_over_when_what_is_left_waits_for_what_failed() {
        let mut execution = execution(Role::Foreground);
        let [first, second, other] = [0, 1, 2].map(|host| from(&execution, host));
        post(&mut execution, Time::ZERO);
        let failed = complete(&mut execution, Time::from_us(1), first, Status::RetryExceeded);
        assert_eq!(failed, Completed::Failed);
        assert!(!execution.is_over());
        let _ = complete(&mut execution, Time::from_us(2), other, Status::Flushed);
        assert!(execution.is_over());
        assert_eq!(execution.tasks_left(), 4);
        let records = execution.flow_records();
        let status = |flow: u32| records[flow as usize].status;
        assert_eq!((status(first), status(second)), (FlowStatus::RetriesExceeded, FlowStatus::Unfinished));
    }

    #[test]
    fn a_message_without_a_way_ends_at_once() {
        let mut execution = execution(Role::Background);
        let first = from(&execution, 0);
        assert!(matches!(execution.begin(Time::ZERO), Some(Begin::Message(_))));
        execution.unreachable(execution.record(first));
        assert!(execution.is_over());
        assert!(!execution.is_open(first) && !execution.is_arriving(first));
        assert_eq!(execution.flow_records()[first as usize].status, FlowStatus::Unreachable);
    }
}
