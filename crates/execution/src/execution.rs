//! State of a workload in execution.

use std::sync::Arc;

use pathweave_policy::Awaited;
use pathweave_records::{
    ActivityLabel, ActivityRecord, CriticalStep, FlowRecord, FlowStatus, JobRecord, Role,
};
use pathweave_transport::Status;
use pathweave_units::{Bytes, Duration, HostId, Time};
use pathweave_workload::{MessageGraph, TaskId};

use crate::activities;
use crate::chunks::ChunkedVec;
use crate::connections::{ConnId, Connection, Connections};
use crate::flow::{Receiving, Sending};
use crate::part::Part;
use crate::pending::Outstanding;
use crate::shares::shares;
use crate::tally::{ReceiverCounters, SenderCounters};
use crate::tasks::{ScheduledStep, Step, Tasks};

/// Transport of the messages of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupSpec {
    /// Index of the group's scheme.
    pub scheme: u16,
    /// Data class of its packets, from 1.
    pub class: u8,
    /// Foreground if the run waits for the group, background otherwise.
    pub role: Role,
    /// Unit of its messages for whose end the application waits.
    pub awaited: Awaited,
}

impl GroupSpec {
    /// Creates a foreground group in the first data class, whose messages are awaited one by one.
    pub const fn new(scheme: u16) -> Self {
        GroupSpec { scheme, class: 1, role: Role::Foreground, awaited: Awaited::Message }
    }
}

/// State of a message after a part of it has completed at its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum PartCompletion {
    /// Other parts have not completed.
    NotYet,
    /// The whole message was acknowledged. Its successors are free.
    Acknowledged,
    /// All parts have completed, at least one of them with an error.
    Failed,
}

/// A workload in execution. `Q` is the caller's identifier of a queue pair, for both of its ends.
///
/// # Knowledge of hosts
///
/// Each host knows only its own events. A successor of a message begins at the receiver when the message is
/// delivered, and at the sender when it is completed. At any other host it begins one notification after the event
/// that it waits for, delivery or completion. The same holds for computations, whose end their own host knows. A
/// barrier belongs to no host: it ends when the last of its predecessors does, and its successors begin one
/// notification later.
///
/// # Calls
///
/// Nothing happens without a call. The caller takes the tasks without predecessors when their time comes
/// ([`Execution::root_before`]), and the steps that become known ([`Execution::next_step`]). It runs each step at its host
/// and time with [`Execution::step`]. It posts the messages that begin, and reports their progress:
///
/// 1. At the sender: [`Execution::posted`], with the record as far as it is known and the number of parts
///    ([`crate::shares()`]), or [`Execution::unreachable`]. At the receiver: [`Execution::expected`], before anything
///    arrives.
/// 2. At the receiver: [`Execution::part_delivered`] for each part that has arrived. After the last part:
///    [`Execution::received`], with the receiver's counters if there are any.
/// 3. At the sender: [`Execution::part_completed`] for each part that has completed. A part that could not be posted
///    completes with [`Status::Flushed`]. After the last part: [`Execution::ended`] and, for messages with queue
///    pairs of their own connection, [`Execution::release_connection`], with the sender's counters.
///
/// Each of these calls may add steps to [`Execution::next_step`]. A host can be driven alone for as long as a notification
/// takes: within that time no event of one host affects another, so the order in which hosts are driven does not
/// matter. When all hosts have been driven up to the same instant, [`Execution::settle_barriers`] runs the steps that
/// concern several of them.
///
/// ```
/// # use std::sync::Arc;
/// # use pathweave_execution::{Connections, Execution, GroupSpec, PartCompletion, ReceiverCounters, SenderCounters, shares};
/// # use pathweave_policy::Service;
/// # use pathweave_transport::Status;
/// # use pathweave_units::{Bytes, Duration, HostId, Time};
/// # use pathweave_workload::{GraphBuilder, NewMessage, Stream};
/// # let mut builder = GraphBuilder::new(2);
/// # let group = builder.group("group", None)?;
/// # let (src, dst, size) = (HostId(0), HostId(1), Bytes::new(3));
/// # let start = Time::from_us(5);
/// # builder.message(NewMessage { src, dst, size, start, group, stream: Stream::Own, job: None })?;
/// # let graph = Arc::new(builder.finish()?);
/// let connections = Connections::<()>::new(&graph, |_| &Service::Connection);
/// let notification = Duration::from_us(1);
/// let mut execution = Execution::new(graph, &[GroupSpec::new(0)], connections, notification);
/// let due = execution.root_before(Time::MAX).expect("a message of three bytes at 5 us");
/// if let Some(flow) = execution.step(due.at, due.host, due.step) {
///     let parts = shares(3, 1).len() as u16;
///     execution.posted(execution.record(flow), parts);
///     execution.expected(flow, parts);
/// }
/// assert!(execution.part_delivered(Time::from_us(8), 0, 3));
/// execution.received(0, ReceiverCounters::default());
/// assert_eq!(execution.part_completed(Time::from_us(9), 0, Status::Success), PartCompletion::Acknowledged);
/// execution.ended(Time::from_us(9), 0);
/// assert!(execution.release_connection(0, SenderCounters::default()), "it was the last of its connection");
/// assert_eq!(execution.over_since(), Some(Time::from_us(9)));
/// assert_eq!(execution.flow_records()[0].finish_ps, Some(8_000_000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Execution<Q> {
    /// Connections, and the messages that share them.
    pub connections: Connections<Q>,
    groups: Vec<GroupSpec>,
    pub(crate) tasks: Tasks,
    /// State of messages at their senders; `None` until posted.
    pub(crate) sending: ChunkedVec<Option<Sending>>,
    /// State of messages at their receivers.
    pub(crate) receiving: ChunkedVec<Receiving>,
    /// Number of messages of each chunk whose sender is in this part and knows that they have arrived. They do not
    /// change any more.
    acked_in_chunk: Vec<u32>,
    pub(crate) bytes_done: u128,
    pub(crate) flows_done: usize,
    /// Payload of a full packet, if all connections have the same.
    payload: Option<Bytes>,
}

impl<Q> Execution<Q> {
    /// Memory of one message in bytes: its state at both ends, and the number of its connection.
    pub const MESSAGE_BYTES: usize =
        size_of::<Option<Sending>>() + size_of::<Receiving>() + size_of::<ConnId>();

    /// Creates the state before any task has begun. `groups` are those of the graph. `notification` is the delay
    /// until a host knows that a task at another host has ended.
    pub fn new(
        graph: Arc<MessageGraph>,
        groups: &[GroupSpec],
        connections: Connections<Q>,
        notification: Duration,
    ) -> Self {
        let messages = graph.messages().len();
        let sending = ChunkedVec::new(messages, None);
        Execution {
            connections,
            groups: groups.to_vec(),
            acked_in_chunk: vec![0; sending.chunks()],
            sending,
            receiving: ChunkedVec::new(messages, Receiving::UNKNOWN),
            tasks: Tasks::new(graph, groups, notification),
            bytes_done: 0,
            flows_done: 0,
            payload: None,
        }
    }

    /// Sets the payload of a full packet. It tells how many of a connection's packets belong to which of its messages. The
    /// driver then reports each packet that is sent again ([`sent_again`](Self::sent_again)).
    #[must_use]
    pub fn with_payload(mut self, payload: Bytes) -> Self {
        self.payload = Some(payload);
        self
    }

    /// Restricts the execution to the hosts of `part`. Several executions then run the same workload side by side.
    ///
    /// Each host is driven in the execution of its part, with [`Execution::step`] for steps that become known in
    /// another part. When all parts have been driven up to the same instant, the first takes the barriers of the
    /// others ([`Execution::take_barriers`], [`Execution::add_barrier`]) and settles them. At the end the first
    /// merges the state of the others ([`Execution::merge`]).
    #[must_use]
    pub fn with_part(mut self, part: Part) -> Self {
        self.tasks.restrict_to(part);
        self
    }

    /// Removes and returns the steps of barriers that are due. They belong to the first part.
    pub fn take_barriers(&mut self) -> impl Iterator<Item = (Time, Step)> {
        self.tasks.take_barriers()
    }

    /// Returns the time of the next step of a barrier in this part, if there is one.
    pub fn barrier(&self) -> Option<Time> {
        self.tasks.barrier()
    }

    /// Adds a step of a barrier from another part.
    pub fn add_barrier(&mut self, barrier: (Time, Step)) {
        self.tasks.add_barrier(barrier);
    }

    /// Merges the state of another part, for records.
    pub fn merge(&mut self, other: &mut Self) {
        self.tasks.join(&other.tasks);
        self.bytes_done += other.bytes_done;
        self.flows_done += other.flows_done;
        (0..self.sending.chunks()).for_each(|chunk| self.join_chunk(other, chunk));
    }

    /// Merges the state that another part has of the messages of a chunk.
    fn join_chunk(&mut self, other: &mut Self, chunk: usize) {
        let range = self.sending.range(chunk);
        for (flow, sending) in range.clone().zip(other.sending.take(chunk).into_iter().flatten()) {
            if sending.is_some() {
                *self.sending.get_or_allocate(flow) = sending;
            }
        }
        for (flow, receiving) in range.zip(other.receiving.take(chunk).into_iter().flatten()) {
            let dst = self.tasks.graph.messages()[flow as usize].dst;
            if other.tasks.part.as_ref().is_some_and(|part| part.owns(dst)) {
                *self.receiving.get_or_allocate(flow) = receiving;
            }
        }
    }

    /// Returns the number of chunks of messages. Chunks leave one by one, in order ([`Execution::retire_chunk`]).
    pub fn chunks(&self) -> usize {
        self.sending.chunks()
    }

    /// Removes a chunk of messages from all parts of a run, if none of its messages can change any more. Appends
    /// their records to `records`, in the order of message numbers, and returns true. Afterwards the execution has no
    /// state of these messages, so no job and no activity may need them.
    pub fn retire_chunk(parts: &mut [&mut Self], chunk: usize, records: &mut Vec<FlowRecord>) -> bool {
        let settled: u32 = parts.iter().map(|part| part.acked_in_chunk[chunk]).sum();
        let Some((first, others)) = parts.split_first_mut() else { return false };
        if (settled as usize) < first.sending.range(chunk).len() {
            return false;
        }
        others.iter_mut().for_each(|other| first.join_chunk(other, chunk));
        first.take_records(chunk, records);
        true
    }

    /// Returns the time of the next step that the caller cannot take from [`Execution::next_step`]: a task without
    /// predecessors, or a barrier.
    #[inline]
    pub fn next(&self) -> Option<Time> {
        self.tasks.next()
    }

    /// Returns the next task without predecessors that begins before `end`, as a step.
    #[inline]
    pub fn root_before(&mut self, end: Time) -> Option<ScheduledStep> {
        self.tasks.root_before(end)
    }

    /// Removes and returns the next step that has become known, in the order in which they became known.
    #[inline]
    pub fn next_step(&mut self) -> Option<ScheduledStep> {
        self.tasks.ready_steps()
    }

    /// Runs a step that is due. Returns the message to post, if one begins.
    #[inline]
    pub fn step(&mut self, now: Time, host: HostId, step: Step) -> Option<u32> {
        self.tasks.step(now, Some(host), step)
    }

    /// Runs the steps of barriers that are due before `end`. All hosts must have been driven up to `end`.
    pub fn settle_barriers(&mut self, end: Time) {
        self.tasks.settle_barriers(end);
    }

    /// Returns the record of a message that has not been posted. Its start is the earliest time at which it could
    /// have been posted.
    pub fn record(&self, flow: u32) -> FlowRecord {
        let message = &self.tasks.graph.messages()[flow as usize];
        FlowRecord {
            flow,
            group: message.group.0,
            scheme: self.groups[message.group.index()].scheme,
            job: message.job.map(|job| job.0),
            label: self.tasks.graph.label(TaskId(flow)),
            src_host: message.src.0,
            dst_host: message.dst.0,
            size_bytes: message.size.get(),
            start_ps: message.start.as_ps(),
            status: FlowStatus::Unfinished,
            ..FlowRecord::default()
        }
    }

    /// At the sender: the message of this record was posted in `parts` parts.
    pub fn posted(&mut self, record: FlowRecord, parts: u16) {
        *self.sending.get_or_allocate(record.flow) = Some(Sending::new(&record, parts));
    }

    /// At the sender: the message of this record has no path to its receiver.
    pub fn unreachable(&mut self, now: Time, record: FlowRecord) {
        let flow = record.flow;
        self.posted(FlowRecord { status: FlowStatus::Unreachable, ..record }, 0);
        let conn = self.connections.of(flow);
        self.connections[conn].messages_left -= 1;
        self.ended(now, flow);
    }

    /// At the receiver: a message will arrive in `parts` parts.
    pub fn expected(&mut self, flow: u32, parts: u16) {
        self.receiving.get_or_allocate(flow).parts_to_deliver = parts;
    }

    /// At the receiver: a part of a message, of `bytes` bytes, has arrived whole. Returns true if it was the last.
    pub fn part_delivered(&mut self, now: Time, flow: u32, bytes: u64) -> bool {
        self.bytes_done += u128::from(bytes);
        let whole = self.receiving.get_or_allocate(flow).part_delivered(now);
        if whole {
            self.flows_done += 1;
            self.tasks.task_ended(now, TaskId(flow));
        }
        whole
    }

    /// At the receiver: a message has arrived whole. `now` are the counters of its connection.
    pub fn received(&mut self, flow: u32, now: ReceiverCounters) {
        let conn = self.connections.of(flow);
        let taken = self.connections[conn].replace_receiver_count(&now);
        self.receiving.get_or_allocate(flow).settle(&now, taken);
    }

    /// At the receiver: a packet of a message came out of order. Only for connections that do not count such packets.
    pub fn note_out_of_order(&mut self, flow: u32) {
        self.receiving.get_or_allocate(flow).note_out_of_order();
    }

    /// At the receiver: a packet of a message was lost there.
    pub fn note_lost(&mut self, flow: u32) {
        self.receiving.get_or_allocate(flow).note_lost();
    }

    /// At the sender: a part of a message has completed.
    pub fn part_completed(&mut self, now: Time, flow: u32, status: Status) -> PartCompletion {
        let sending = self.sending_mut(flow).expect("a part completes after it was posted");
        if !sending.part_completed(now, status) {
            return PartCompletion::NotYet;
        }
        if sending.acked().is_none() {
            return PartCompletion::Failed;
        }
        self.tasks.acknowledged(now, TaskId(flow));
        PartCompletion::Acknowledged
    }

    /// At the sender: all parts have completed, and the run need not wait for the message any more. Called once a
    /// message.
    pub fn ended(&mut self, now: Time, flow: u32) {
        self.tasks.forget_task(now, TaskId(flow));
    }

    /// At the receiver, in place of [`Execution::ended`]: a message without acknowledgements has arrived or is lost.
    /// Returns true on the first call for a message; later calls change nothing.
    pub fn abandon_at_receiver(&mut self, now: Time, flow: u32) -> bool {
        let first = !std::mem::replace(&mut self.receiving.get_or_allocate(flow).given_up, true);
        if first {
            self.tasks.forget_task(now, TaskId(flow));
        }
        first
    }

    /// At the sender: a message needs its connection no longer. `now` are the counters of the connection. Returns
    /// true if it was the connection's last message.
    pub fn release_connection(&mut self, flow: u32, now: SenderCounters) -> bool {
        self.settle_sender(flow, now);
        let arrived = self.sending.get(flow).is_some_and(|sending| sending.acked().is_some());
        self.acked_in_chunk[self.sending.chunk_of(flow)] += u32::from(arrived);
        let conn = self.connections.of(flow);
        let connection = &mut self.connections[conn];
        connection.messages_left -= 1;
        connection.messages_left == 0
    }

    /// The run is over: attributes the counters of connections to the messages that did not end, where `sent` and
    /// `received` return some.
    pub fn attribute_counters_at_end(
        &mut self,
        sent: impl Fn(ConnId, &Connection<Q>) -> Option<SenderCounters>,
        received: impl Fn(ConnId, &Connection<Q>) -> Option<ReceiverCounters>,
    ) {
        for flow in 0..self.flows() as u32 {
            let conn = self.connections.of(flow);
            // Messages that ended have taken their counters already.
            if self.is_open(flow)
                && let Some(tally) = sent(conn, &self.connections[conn])
            {
                self.settle_sender(flow, tally);
            }
            if self.is_arriving(flow)
                && let Some(tally) = received(conn, &self.connections[conn])
            {
                self.received(flow, tally);
            }
        }
    }

    /// Attributes the sender's counters of a message's connection to the message.
    fn settle_sender(&mut self, flow: u32, now: SenderCounters) {
        if now == SenderCounters::default() {
            return;
        }
        let packets = self.packets_of(flow).unwrap_or(u64::MAX);
        let conn = self.connections.of(flow);
        let taken = self.connections[conn].sender_counters();
        let upto = now.without_later_packets(&taken, packets);
        let upto = match self.sending.get(flow).as_ref().filter(|_| self.payload.is_some()) {
            Some(sending) => upto.without_others_again(&taken, u64::from(sending.sent_again)),
            None => upto,
        };
        self.connections[conn].set_sender_counters(upto);
        if let Some(sending) = self.sending_mut(flow) {
            sending.attribute_counters(&upto, &taken);
        }
    }

    /// Returns the number of packets into which a message is divided, if it is known.
    fn packets_of(&self, flow: u32) -> Option<u64> {
        let payload = self.payload?.get().max(1);
        let queue_pairs = self.connections[self.connections.of(flow)].queue_pairs.len();
        let size = self.tasks.graph.messages()[flow as usize].size.get();
        Some(shares(size, queue_pairs.max(1)).map(|part| part.len.div_ceil(payload).max(1)).sum())
    }

    /// At the receiver: returns true if a message is expected and parts of it have not been delivered.
    pub fn is_arriving(&self, flow: u32) -> bool {
        self.receiving.get(flow).parts_to_deliver > 0
    }

    /// At the sender: returns true if a message was posted and some of its parts have not completed.
    pub fn is_open(&self, flow: u32) -> bool {
        self.sending.get(flow).as_ref().is_some_and(|sending| sending.parts_to_complete > 0)
    }

    /// At the sender: a packet of a message was sent again.
    pub fn sent_again(&mut self, flow: u32) {
        if let Some(sending) = self.sending_mut(flow) {
            sending.sent_again += 1;
        }
    }

    /// At the sender: sets the numbers of packets of a posted message. Only for connections that do not count them.
    pub fn count_sent(&mut self, flow: u32, sent_packets: u32, retransmitted_packets: u32) {
        if let Some(sending) = self.sending_mut(flow) {
            sending.counters.sent_packets = sent_packets;
            sending.counters.retransmitted_packets = retransmitted_packets;
        }
    }

    /// At the sender: a message has been sent, and there will be no acknowledgement of it.
    pub fn mark_unacknowledged(&mut self, flow: u32) {
        if let Some(sending) = self.sending_mut(flow) {
            sending.acked = Time::MAX;
        }
    }

    /// At the sender: a packet of a message was lost in the network at the time `at`. A copy that is lost after the
    /// sender knows of the arrival of the whole message does not count for the message.
    pub fn dropped(&mut self, flow: u32, at: Time) {
        if let Some(sending) = self.sending_mut(flow).filter(|sending| at <= sending.acked) {
            sending.dropped_packets += 1;
        }
    }

    fn sending_mut(&mut self, flow: u32) -> Option<&mut Sending> {
        self.sending.get_mut(flow)?.as_mut()
    }

    /// Returns the time at which the run ended, if no foreground work is left.
    #[inline]
    pub fn over_since(&self) -> Option<Time> {
        self.outstanding().ended_at()
    }

    /// Returns the work that this part waits for, to be summed over all parts.
    #[inline]
    pub fn outstanding(&self) -> Outstanding {
        self.tasks.pending.outstanding()
    }

    /// Returns the number of tasks that are not done, including those of the background.
    pub fn tasks_left(&self) -> usize {
        self.tasks.left()
    }

    /// Returns the payload delivered so far, in bytes.
    pub fn bytes_done(&self) -> u128 {
        self.bytes_done
    }

    /// Returns the number of messages delivered so far.
    pub fn flows_done(&self) -> usize {
        self.flows_done
    }

    /// Returns the number of messages.
    pub fn flows(&self) -> usize {
        self.sending.len()
    }

    /// Returns the records of all jobs. A job whose tasks have predecessors begins when the first of its tasks is
    /// free.
    pub fn job_records(&self) -> Vec<JobRecord> {
        self.tasks.job_records()
    }

    /// Returns the labels that the workload gives to activities.
    pub fn labels(&self) -> Vec<ActivityLabel> {
        activities::labels(&self.tasks.graph)
    }

    /// Returns the activities of hosts until `end`, ordered by host, and by start at each host. To be called before
    /// the records of flows are taken.
    pub fn activity_records(&self, end: Time) -> Vec<ActivityRecord> {
        let posted = self.sending.iter().filter_map(|(flow, sending)| {
            Some((flow, sending.as_ref()?, self.receiving.get(flow).finished()))
        });
        self.tasks.activity_records(posted, end)
    }

    /// Returns the critical path of each job: the chain of tasks, each released by the end of the one before, that
    /// ends with the job's last task. Ordered by job and time. To be called before the records of flows are taken.
    pub fn critical_steps(&self) -> Vec<CriticalStep> {
        let posted = |flow: u32| {
            let sending = self.sending.get(flow).as_ref()?;
            Some((sending, self.receiving.get(flow).finished()))
        };
        self.tasks.critical_steps(posted)
    }

    /// Removes the state of all messages and returns one record for each, from the states of its sender and its
    /// receiver. A message that was never posted keeps the time at which it could have been posted as its start.
    pub fn flow_records(&mut self) -> Vec<FlowRecord> {
        let mut records = Vec::with_capacity(self.flows());
        (0..self.chunks()).for_each(|chunk| self.take_records(chunk, &mut records));
        records
    }

    /// Removes the state of the messages of a chunk and appends their records to `records`.
    pub fn take_records(&mut self, chunk: usize, records: &mut Vec<FlowRecord>) {
        let mut senders = self.sending.take(chunk).into_iter().flatten();
        let receivers = self.receiving.take(chunk);
        for (index, flow) in self.sending.range(chunk).enumerate() {
            let mut record = self.record(flow);
            if let Some(sending) = senders.next().flatten() {
                sending.fill_record(&mut record);
            }
            if let Some(receivers) = &receivers {
                receivers[index].complete(&mut record);
            }
            records.push(record);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use pathweave_policy::Service;
    use pathweave_units::Bytes;
    use pathweave_workload::{
        Algorithm, CollectiveLabel, Compute, GraphBuilder, Label, Moment, NewMessage, Stream,
    };

    use super::*;

    const NOTIFICATION: Duration = Duration::from_us(3);

    /// Workload of two groups: host 0 sends to host 1, and 2 us after the delivery host 1 sends to host 2. Beside
    /// them host 2 sends to host 0.
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
        let compute = Compute {
            host: Some(HostId(1)),
            duration,
            start: Time::ZERO,
            job,
            core: None,
            core_taken: Duration::ZERO,
        };
        let compute = builder.compute(compute).unwrap();
        let second = builder.message(message(1, 2, groups[0], job)).unwrap();
        builder.message(message(2, 0, groups[1], None)).unwrap();
        builder.after(compute, first).unwrap();
        builder.after(second, compute).unwrap();
        let graph = Arc::new(builder.finish().unwrap());
        let connections = Connections::new(&graph, |_| &Service::Connection);
        let groups = [GroupSpec::new(0), GroupSpec { role: other, ..GroupSpec::new(0) }];
        Execution::new(graph, &groups, connections, NOTIFICATION)
    }

    /// Returns the message that `host` sends.
    fn from(execution: &Execution<()>, host: u32) -> u32 {
        let of = |flow: &u32| execution.record(*flow).src_host == host;
        (0..execution.flows() as u32).find(of).expect("each host sends one")
    }

    /// Runs every step before `end` in order of time, and posts the messages that begin in two parts. Returns these
    /// messages.
    fn play(execution: &mut Execution<()>, steps: &mut BTreeSet<ScheduledStep>, end: Time) -> Vec<u32> {
        let mut posted = Vec::new();
        loop {
            steps.extend(std::iter::from_fn(|| execution.root_before(end)));
            steps.extend(std::iter::from_fn(|| execution.next_step()));
            let Some(due) = steps.first().copied().filter(|due| due.at < end) else { break };
            steps.remove(&due);
            if let Some(flow) = execution.step(due.at, due.host, due.step) {
                execution.posted(FlowRecord { start_ps: due.at.as_ps(), ..execution.record(flow) }, 2);
                execution.expected(flow, 2);
                posted.push(flow);
            }
        }
        execution.settle_barriers(end);
        steps.extend(std::iter::from_fn(|| execution.next_step()));
        posted
    }

    fn deliver(execution: &mut Execution<()>, now: Time, flow: u32) {
        assert!(!execution.part_delivered(now, flow, 50));
        assert!(execution.part_delivered(now, flow, 50));
        execution.received(flow, ReceiverCounters::default());
    }

    fn complete(execution: &mut Execution<()>, now: Time, flow: u32, status: Status) -> PartCompletion {
        assert_eq!(execution.part_completed(now, flow, Status::Success), PartCompletion::NotYet);
        let completed = execution.part_completed(now, flow, status);
        execution.ended(now, flow);
        assert!(
            execution.release_connection(flow, SenderCounters::default()),
            "each has a connection of its own"
        );
        completed
    }

    #[test]
    fn what_waits_for_a_delivery_begins_with_it_at_the_receiver() {
        let mut execution = execution(Role::Background);
        let mut steps = BTreeSet::new();
        let [first, second, other] = [0, 1, 2].map(|host| from(&execution, host));
        let posted = play(&mut execution, &mut steps, Time::from_us(1));
        assert_eq!(BTreeSet::from_iter(posted), BTreeSet::from([first, other]));
        assert_eq!(execution.next(), None);
        deliver(&mut execution, Time::from_us(5), first);
        assert_eq!((execution.bytes_done(), execution.flows_done()), (100, 1));
        // Host 1 sends after a computation of 2 us.
        assert!(play(&mut execution, &mut steps, Time::from_us(7)).is_empty());
        assert_eq!(play(&mut execution, &mut steps, Time::from_us(8)), [second]);
        assert_eq!(
            complete(&mut execution, Time::from_us(6), first, Status::Success),
            PartCompletion::Acknowledged
        );
        deliver(&mut execution, Time::from_us(9), second);
        assert_eq!(execution.over_since(), None, "its sender does not know");
        let at = Time::from_us(10);
        assert_eq!(complete(&mut execution, at, second, Status::Success), PartCompletion::Acknowledged);
        assert_eq!(execution.over_since(), Some(at), "nobody waits for the background");
        assert_eq!(execution.tasks_left(), 1);
        let job = &execution.job_records()[0];
        assert_eq!((job.start_ps, job.finish_ps), (0, Some(9_000_000)));
        let record = execution.flow_records().swap_remove(second as usize);
        assert_eq!((record.start_ps, record.finish_ps), (7_000_000, Some(9_000_000)));
        assert_eq!(record.acked_ps, Some(10_000_000));
    }

    /// A message from host 0 to 1 is delivered at 5 us and completed at 6 us. Six messages wait for it: one at the
    /// receiver, one at the sender, and one at host 2 for the delivery; one each at host 2 and at the receiver for
    /// the completion; and one at host 2 for a barrier.
    #[test]
    fn each_host_begins_when_it_can_know() {
        let mut builder = GraphBuilder::new(4);
        let group = builder.group("group", None).unwrap();
        let message = |src, size| NewMessage {
            src: HostId(src),
            dst: HostId((src + 1) % 4),
            size: Bytes::new(size),
            start: Time::ZERO,
            group,
            stream: Stream::Own,
            job: None,
        };
        let first = builder.message(message(0, 100)).unwrap();
        let barrier = Compute {
            host: None,
            duration: Duration::ZERO,
            start: Time::ZERO,
            job: None,
            core: None,
            core_taken: Duration::ZERO,
        };
        let barrier = builder.compute(barrier).unwrap();
        builder.after(barrier, first).unwrap();
        for (host, size, behind, moment) in [
            (1, 1, first, Moment::Delivery),
            (0, 2, first, Moment::Delivery),
            (2, 3, first, Moment::Delivery),
            (2, 4, first, Moment::Completion),
            (1, 5, first, Moment::Completion),
            (2, 6, barrier, Moment::Delivery),
        ] {
            let task = builder.message(message(host, size)).unwrap();
            builder.after_moment(task, behind, moment).unwrap();
        }
        let graph = Arc::new(builder.finish().unwrap());
        let size = |flow: u32| graph.messages()[flow as usize].size.get();
        let connections = Connections::new(&graph, |_| &Service::Connection);
        let mut execution: Execution<()> =
            Execution::new(graph.clone(), &[GroupSpec::new(0)], connections, NOTIFICATION);
        let mut steps = BTreeSet::new();
        let first = play(&mut execution, &mut steps, Time::from_us(1));
        assert_eq!(first.iter().map(|&flow| size(flow)).collect::<Vec<_>>(), [100]);
        deliver(&mut execution, Time::from_us(5), first[0]);
        let _ = complete(&mut execution, Time::from_us(6), first[0], Status::Success);
        let mut begun = Vec::new();
        for us in 5..12 {
            let now = play(&mut execution, &mut steps, Time::from_us(us + 1));
            begun.extend(now.into_iter().map(|flow| (size(flow), us)));
        }
        begun.sort_unstable();
        assert_eq!(begun, [(1, 5), (2, 6), (3, 8), (4, 9), (5, 9), (6, 8)]);
    }

    #[test]
    fn a_run_is_over_when_what_is_left_waits_for_what_failed() {
        let mut execution = execution(Role::Foreground);
        let [first, second, other] = [0, 1, 2].map(|host| from(&execution, host));
        play(&mut execution, &mut BTreeSet::new(), Time::from_us(1));
        let failed = complete(&mut execution, Time::from_us(1), first, Status::RetryExceeded);
        assert_eq!(failed, PartCompletion::Failed);
        assert_eq!(execution.over_since(), None);
        let _ = complete(&mut execution, Time::from_us(2), other, Status::Flushed);
        assert_eq!(execution.over_since(), Some(Time::from_us(2)));
        assert_eq!(execution.tasks_left(), 4);
        let records = execution.flow_records();
        let status = |flow: u32| records[flow as usize].status;
        assert_eq!((status(first), status(second)), (FlowStatus::RetriesExceeded, FlowStatus::Unfinished));
    }

    /// The first message is acknowledged at 4 us. Packets lost until then count for it, and copies lost later do not.
    /// Its chunk cannot leave, because other messages of the chunk have not ended.
    #[test]
    fn what_is_lost_after_the_end_of_a_message_is_not_of_it() {
        let mut execution = execution(Role::Foreground);
        let first = from(&execution, 0);
        play(&mut execution, &mut BTreeSet::new(), Time::from_us(1));
        execution.dropped(first, Time::from_us(2));
        deliver(&mut execution, Time::from_us(3), first);
        assert_eq!(
            complete(&mut execution, Time::from_us(4), first, Status::Success),
            PartCompletion::Acknowledged
        );
        execution.dropped(first, Time::from_us(4));
        execution.dropped(first, Time::from_us(5));
        assert!(!Execution::retire_chunk(&mut [&mut execution], 0, &mut Vec::new()));
        assert_eq!(execution.flow_records()[first as usize].dropped_packets, 2);
    }

    #[test]
    fn a_message_without_a_way_ends_at_once() {
        let mut execution = execution(Role::Background);
        let first = from(&execution, 0);
        let due = execution.root_before(Time::from_us(1)).expect("it waits for nothing");
        assert_eq!(execution.step(due.at, due.host, due.step), Some(first));
        execution.unreachable(Time::ZERO, execution.record(first));
        assert_eq!(execution.over_since(), Some(Time::ZERO));
        assert!(!execution.is_open(first) && !execution.is_arriving(first));
        assert_eq!(execution.flow_records()[first as usize].status, FlowStatus::Unreachable);
    }

    /// Host 0 could begin a computation of 2 us at 1 us, but its core is busy until 5 us. Afterwards host 0 sends to
    /// host 1. Host 2 sends to host 1, too, and its message arrives earlier. After both, host 1 computes, after a
    /// delay of 1 us.
    #[test]
    fn the_critical_path_goes_back_over_what_was_last() {
        let mut builder = GraphBuilder::new(3);
        let group = builder.group("group", None).unwrap();
        let job = Some(builder.job("job".to_owned(), group).unwrap());
        let core = Some(builder.core().unwrap());
        let compute = |host, us, job, core| Compute {
            host: Some(HostId(host)),
            duration: Duration::from_us(us),
            start: Time::ZERO,
            job,
            core,
            core_taken: Duration::ZERO,
        };
        let message = |src, size| NewMessage {
            src: HostId(src),
            dst: HostId(1),
            size: Bytes::new(size),
            start: Time::ZERO,
            group,
            stream: Stream::Own,
            job,
        };
        builder.compute(compute(0, 5, None, core)).unwrap();
        let own = Compute { start: Time::from_us(1), ..compute(0, 2, job, core) };
        let own = builder.compute(own).unwrap();
        let late = builder.message(message(0, 100)).unwrap();
        let early = builder.message(message(2, 100)).unwrap();
        let last = builder.compute(compute(1, 4, job, None)).unwrap();
        builder.after(late, own).unwrap();
        builder.after(last, late).unwrap();
        builder.after(last, early).unwrap();
        builder.delay(last, Duration::from_us(1));
        let graph = Arc::new(builder.finish().unwrap());
        let connections = Connections::<()>::new(&graph, |_| &Service::Connection);
        let mut execution = Execution::new(graph, &[GroupSpec::new(0)], connections, NOTIFICATION);
        let mut steps = BTreeSet::new();
        let [late, early] = [0, 2].map(|host| from(&execution, host));
        assert_eq!(play(&mut execution, &mut steps, Time::from_us(1)), [early]);
        assert!(execution.critical_steps().is_empty(), "the job goes on");
        deliver(&mut execution, Time::from_us(3), early);
        // The computations of the core are over at 5 us and at 7 us.
        assert_eq!(play(&mut execution, &mut steps, Time::from_us(8)), [late]);
        execution.sending_mut(late).unwrap().ideal_fct_ps = 1_000_000;
        deliver(&mut execution, Time::from_us(10), late);
        play(&mut execution, &mut steps, Time::from_us(20));
        let us = |ps: u64| ps / 1_000_000;
        let path: Vec<_> = execution
            .critical_steps()
            .iter()
            .map(|s| (s.step, s.kind.name(), s.host, us(s.start_ps), us(s.finish_ps), s.lost_ps().map(us)))
            .collect();
        assert_eq!(
            path,
            [
                (0, "computation", 0, 0, 5, None),
                (1, "computation", 0, 5, 7, None),
                (2, "message", 0, 7, 10, Some(2)),
                (3, "wait", 1, 10, 11, None),
                (4, "computation", 1, 11, 15, None),
            ]
        );
    }

    #[test]
    fn activities_are_computations_and_exchanges_by_host_and_label() {
        let mut builder = GraphBuilder::new(3);
        let group = builder.group("group", None).unwrap();
        let job = Some(builder.job("job".to_owned(), group).unwrap());
        let send = |builder: &mut GraphBuilder, src, dst, start| {
            let (src, dst, size) = (HostId(src), HostId(dst), Bytes::new(100));
            let new =
                NewMessage { src, dst, size, start: Time::from_us(start), group, stream: Stream::Own, job };
            builder.message(new).unwrap()
        };
        let label = |activity: &str, collective| Label {
            activity: activity.to_owned(),
            part: None,
            parallelism: None,
            collective,
        };
        // Host 0 computes for 4 us, then reduces with host 1: two messages with a gap between them. Host 2 sends
        // three messages: two that do not overlap, and one that starts after the end of the run.
        builder.label(Some(label("forward", None)));
        let duration = Duration::from_us(4);
        let compute = Compute {
            host: Some(HostId(0)),
            duration,
            start: Time::ZERO,
            job,
            core: None,
            core_taken: Duration::ZERO,
        };
        let forward = builder.compute(compute).unwrap();
        let collective =
            CollectiveLabel { number: 0, ranks: 2, algorithm: Algorithm::Ring.name(), measure: None };
        builder.label(Some(label("all-reduce", Some(collective))));
        for start in [5, 20] {
            let message = send(&mut builder, 0, 1, start);
            builder.after(message, forward).unwrap();
        }
        builder.label(Some(label("send", None)));
        for start in [1, 30, 90] {
            send(&mut builder, 2, 1, start);
        }
        let graph = Arc::new(builder.finish().unwrap());
        let connections = Connections::<()>::new(&graph, |_| &Service::Connection);
        let mut execution = Execution::new(graph, &[GroupSpec::new(0)], connections, NOTIFICATION);
        let mut steps = BTreeSet::new();
        let end = Time::from_us(80);
        for flow in play(&mut execution, &mut steps, end) {
            // Each message takes 3 us.
            let posted = execution.sending_mut(flow).unwrap().start_ps;
            deliver(&mut execution, Time::from_ps(posted + 3_000_000), flow);
        }
        let labels = execution.labels();
        let rows: Vec<_> = execution
            .activity_records(end)
            .iter()
            .map(|a| {
                let us = |ps: u64| ps / 1_000_000;
                let name = labels[a.label as usize].activity.clone();
                (a.host, name, us(a.start_ps), a.finish_ps.map(us), a.flows, a.sent_bytes, a.received_bytes)
            })
            .collect();
        let row = |host, name: &str, from, to, flows, sent, received| {
            (host, name.to_owned(), from, Some(to), flows, sent, received)
        };
        assert_eq!(
            rows,
            [
                row(0, "forward", 0, 4, 0, 0, 0),
                row(0, "all-reduce", 5, 23, 2, 200, 0),
                row(1, "send", 1, 4, 1, 0, 100),
                row(1, "all-reduce", 5, 23, 2, 0, 200),
                row(1, "send", 30, 33, 1, 0, 100),
                row(2, "send", 1, 4, 1, 100, 0),
                row(2, "send", 30, 33, 1, 100, 0),
            ]
        );
        assert_eq!(labels.iter().filter_map(|l| l.collective).map(|c| c.ranks).collect::<Vec<_>>(), [2]);
    }
}
