//! The state of a workload in execution.

use std::sync::Arc;

use pathweave_results::{
    ActivityLabel, ActivityRecord, CriticalStep, FlowRecord, FlowStatus, JobRecord, Role,
};
use pathweave_transport::Status;
use pathweave_units::{Duration, HostId, Time};
use pathweave_workload::{MessageGraph, TaskId};

use crate::activities;
use crate::chunks::Chunks;
use crate::connections::{ConnId, Connection, Connections};
use crate::flow::{Receiving, Sending};
use crate::part::Part;
use crate::pending::Outstanding;
use crate::tally::{ReceiverTally, SenderTally};
use crate::tasks::{Due, Step, Tasks};

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
/// # Who knows what
///
/// Each host knows what happens to it and nothing else. What waits for a message begins at the receiver when it is
/// delivered, at the sender when it is completed, and at any other host a notification later, by whichever of the two it
/// waits for. The same holds for computations, whose end their host knows. A barrier is at no host: it happens when the last
/// of what it waits for does, and what waits for it begins a notification later.
///
/// # How it is driven
///
/// Nothing happens by itself. The caller takes the tasks that wait for nothing as their time comes
/// ([`Execution::root_before`]), and makes their steps, and those that become known on the way ([`Execution::news`]), each
/// at its host and time with [`Execution::step`]. It posts the messages that begin, and reports what becomes of them:
///
/// 1. At the sender [`Execution::posted`], with the record as far as it is known and the number of parts
///    ([`crate::shares`]), or [`Execution::unreachable`]; at the receiver [`Execution::expected`], before anything arrives.
/// 2. At the receiver, for each part, [`Execution::part_delivered`] when it has arrived, and after the last of them
///    [`Execution::received`], which takes the receiver's counters where there are any.
/// 3. At the sender, for each part, [`Execution::part_completed`] when it is known how it ended. A part that could not be
///    posted completes with [`Status::Flushed`]. After the last of them [`Execution::ended`] and, for messages with queue
///    pairs of their own connection, [`Execution::done_with`], which takes the sender's counters.
///
/// After each of these calls there may be news. A host can be run by itself for as long as a notification takes: nothing
/// else in here tells one host of another, whatever the order in which they are run. When all have been, up to the same
/// instant, [`Execution::settle_barriers`] does what concerns several.
///
/// ```
/// # use std::sync::Arc;
/// # use pathweave_execution::{Completed, Connections, Execution, GroupSpec, ReceiverTally, SenderTally, shares};
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
/// execution.received(0, ReceiverTally::default());
/// assert_eq!(execution.part_completed(Time::from_us(9), 0, Status::Success), Completed::Acknowledged);
/// execution.ended(Time::from_us(9), 0);
/// assert!(execution.done_with(0, SenderTally::default()), "it was the last of its connection");
/// assert_eq!(execution.over_since(), Some(Time::from_us(9)));
/// assert_eq!(execution.flow_records()[0].finish_ps, Some(8_000_000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Execution<Q> {
    /// Which messages share queue pairs.
    pub connections: Connections<Q>,
    groups: Vec<GroupSpec>,
    pub(crate) tasks: Tasks,
    /// What senders know, by message; `None` until posted.
    pub(crate) sending: Chunks<Option<Sending>>,
    /// What receivers know, by message.
    pub(crate) receiving: Chunks<Receiving>,
    /// By chunk: messages whose sender is here and knows that they have arrived. Nothing changes of them any more.
    settled: Vec<u32>,
    pub(crate) bytes_done: u128,
    pub(crate) flows_done: usize,
}

impl<Q> Execution<Q> {
    /// Bytes for each message: its state at both ends, and which connection it has.
    pub const MESSAGE_BYTES: usize =
        size_of::<Option<Sending>>() + size_of::<Receiving>() + size_of::<ConnId>();

    /// Nothing has begun. `groups` are those of the graph; a host knows after `notification` what has ended at another.
    pub fn new(
        graph: Arc<MessageGraph>,
        groups: &[GroupSpec],
        connections: Connections<Q>,
        notification: Duration,
    ) -> Self {
        let messages = graph.messages().len();
        let sending = Chunks::new(messages, None);
        Execution {
            connections,
            groups: groups.to_vec(),
            settled: vec![0; sending.chunks()],
            sending,
            receiving: Chunks::new(messages, Receiving::UNKNOWN),
            tasks: Tasks::new(graph, groups, notification),
            bytes_done: 0,
            flows_done: 0,
        }
    }

    /// One of several executions of the same workload side by side: what happens at the hosts of this part.
    ///
    /// Each host is driven in the execution of its part, with [`Execution::step`] for what becomes known of it in another
    /// one. When all have been driven up to the same instant, the first takes the barriers of the others
    /// ([`Execution::take_barriers`], [`Execution::add_barrier`]) and settles them. At the end it takes what the others know
    /// ([`Execution::join`]).
    #[must_use]
    pub fn of_part(mut self, part: Part) -> Self {
        self.tasks.of_part(part);
        self
    }

    /// Takes the steps of barriers that are due: they belong to the first part.
    pub fn take_barriers(&mut self) -> impl Iterator<Item = (Time, Step)> {
        self.tasks.take_barriers()
    }

    /// When the next step of a barrier is due here, if there is one.
    pub fn barrier(&self) -> Option<Time> {
        self.tasks.barrier()
    }

    /// A step of a barrier from another part.
    pub fn add_barrier(&mut self, barrier: (Time, Step)) {
        self.tasks.add_barrier(barrier);
    }

    /// Takes all that is known in another part, for records.
    pub fn join(&mut self, other: &mut Self) {
        self.tasks.join(&other.tasks);
        self.bytes_done += other.bytes_done;
        self.flows_done += other.flows_done;
        (0..self.sending.chunks()).for_each(|chunk| self.join_chunk(other, chunk));
    }

    /// Takes what is known in another part of the messages of a chunk.
    fn join_chunk(&mut self, other: &mut Self, chunk: usize) {
        let range = self.sending.range(chunk);
        for (flow, sending) in range.clone().zip(other.sending.take(chunk).into_iter().flatten()) {
            if sending.is_some() {
                *self.sending.at(flow) = sending;
            }
        }
        for (flow, receiving) in range.zip(other.receiving.take(chunk).into_iter().flatten()) {
            let dst = self.tasks.graph.messages()[flow as usize].dst;
            if other.tasks.part.as_ref().is_some_and(|part| part.has(dst)) {
                *self.receiving.at(flow) = receiving;
            }
        }
    }

    /// How many chunks the messages are in that leave one by one, in order ([`Execution::leave`]).
    pub fn chunks(&self) -> usize {
        self.sending.chunks()
    }

    /// A chunk of messages leaves all parts of a run if nothing can happen to them any more: adds their records to `records`, in
    /// the order of their numbers. Nothing is known of them here afterwards, so no job and no activity may need them.
    pub fn leave(parts: &mut [&mut Self], chunk: usize, records: &mut Vec<FlowRecord>) -> bool {
        let settled: u32 = parts.iter().map(|part| part.settled[chunk]).sum();
        let Some((first, others)) = parts.split_first_mut() else { return false };
        if (settled as usize) < first.sending.range(chunk).len() {
            return false;
        }
        others.iter_mut().for_each(|other| first.join_chunk(other, chunk));
        first.take_records(chunk, records);
        true
    }

    /// When something is due next that the caller has not taken: a task that waits for nothing, or a barrier.
    #[inline]
    pub fn next(&self) -> Option<Time> {
        self.tasks.next()
    }

    /// The next task that waits for no other and begins before `end`, as a step to be made.
    #[inline]
    pub fn root_before(&mut self, end: Time) -> Option<Due> {
        self.tasks.root_before(end)
    }

    /// Takes the next of the steps that have become known, in the order in which they have.
    #[inline]
    pub fn news(&mut self) -> Option<Due> {
        self.tasks.news()
    }

    /// Makes a step that is due. Returns the message that is to be posted, if one begins.
    #[inline]
    pub fn step(&mut self, now: Time, host: HostId, step: Step) -> Option<u32> {
        self.tasks.step(now, Some(host), step)
    }

    /// Does what barriers are due to do before `end`. All hosts must have been run up to there.
    pub fn settle_barriers(&mut self, end: Time) {
        self.tasks.settle_barriers(end);
    }

    /// The record of a message that has not been posted. It starts when it could have been.
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

    /// At the sender: the message of this record was posted in so many parts.
    pub fn posted(&mut self, record: FlowRecord, parts: u16) {
        *self.sending.at(record.flow) = Some(Sending::new(&record, parts));
    }

    /// At the sender: the message of this record has nowhere to go.
    pub fn unreachable(&mut self, now: Time, record: FlowRecord) {
        let flow = record.flow;
        self.posted(FlowRecord { status: FlowStatus::Unreachable, ..record }, 0);
        let conn = self.connections.of(flow);
        self.connections[conn].messages_left -= 1;
        self.ended(now, flow);
    }

    /// At the receiver: a message is to come in so many parts.
    pub fn expected(&mut self, flow: u32, parts: u16) {
        self.receiving.at(flow).parts_to_deliver = parts;
    }

    /// At the receiver: a part of a message, of so many bytes, has arrived whole. True if it was the last.
    pub fn part_delivered(&mut self, now: Time, flow: u32, bytes: u64) -> bool {
        self.bytes_done += u128::from(bytes);
        let whole = self.receiving.at(flow).part_delivered(now);
        if whole {
            self.flows_done += 1;
            self.tasks.over(now, TaskId(flow));
        }
        whole
    }

    /// At the receiver: a message has arrived whole; `now` are the counters of its connection.
    pub fn received(&mut self, flow: u32, now: ReceiverTally) {
        let conn = self.connections.of(flow);
        let taken = self.connections[conn].take_received(&now);
        self.receiving.at(flow).settle(&now, taken);
    }

    /// At the receiver: a packet of a message came out of order, where its connection does not count them.
    pub fn note_out_of_order(&mut self, flow: u32) {
        self.receiving.at(flow).note_out_of_order();
    }

    /// At the receiver: a packet of a message was lost there.
    pub fn note_lost(&mut self, flow: u32) {
        self.receiving.at(flow).note_lost();
    }

    /// At the sender: it is known how a part of a message ended.
    pub fn part_completed(&mut self, now: Time, flow: u32, status: Status) -> Completed {
        let sending = self.sending_mut(flow).expect("a part completes after it was posted");
        if !sending.part_completed(now, status) {
            return Completed::NotYet;
        }
        if sending.acked().is_none() {
            return Completed::Failed;
        }
        self.tasks.acknowledged(now, TaskId(flow));
        Completed::Acknowledged
    }

    /// At the sender: all parts have completed, and the run need not wait for the message any more. To be said once.
    pub fn ended(&mut self, now: Time, flow: u32) {
        self.tasks.ended(now, TaskId(flow));
    }

    /// At the receiver, in place of [`Execution::ended`], for messages whose sender hears nothing of them: they are there,
    /// or lost. True if it was said for the first time; again, it changes nothing.
    pub fn gave_up(&mut self, now: Time, flow: u32) -> bool {
        let first = !std::mem::replace(&mut self.receiving.at(flow).given_up, true);
        if first {
            self.tasks.ended(now, TaskId(flow));
        }
        first
    }

    /// At the sender: a message is done with; `now` are the counters of its connection. True if it was the connection's
    /// last.
    pub fn done_with(&mut self, flow: u32, now: SenderTally) -> bool {
        self.settle_sender(flow, now);
        let arrived = self.sending.get(flow).is_some_and(|sending| sending.acked().is_some());
        self.settled[self.sending.chunk_of(flow)] += u32::from(arrived);
        let conn = self.connections.of(flow);
        let connection = &mut self.connections[conn];
        connection.messages_left -= 1;
        connection.messages_left == 0
    }

    /// The run is over: messages that did not end take the counters of their connections, where these have some.
    pub fn settle_open(
        &mut self,
        sent: impl Fn(ConnId, &Connection<Q>) -> Option<SenderTally>,
        received: impl Fn(ConnId, &Connection<Q>) -> Option<ReceiverTally>,
    ) {
        for flow in 0..self.flows() as u32 {
            let conn = self.connections.of(flow);
            // Those that ended were settled when they did.
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

    /// Takes the sender's counters of a message's connection into its record.
    fn settle_sender(&mut self, flow: u32, now: SenderTally) {
        if now == SenderTally::default() {
            return;
        }
        let conn = self.connections.of(flow);
        let taken = self.connections[conn].take_sent(now);
        if let Some(sending) = self.sending_mut(flow) {
            sending.settle(&now, &taken);
        }
    }

    /// At the receiver: whether a message is expected and parts of it have not been delivered.
    pub fn is_arriving(&self, flow: u32) -> bool {
        self.receiving.get(flow).parts_to_deliver > 0
    }

    /// At the sender: whether a message was posted and it is not known how all its parts ended.
    pub fn is_open(&self, flow: u32) -> bool {
        self.sending.get(flow).as_ref().is_some_and(|sending| sending.parts_to_complete > 0)
    }

    /// At the sender: a message that was posted and has not left took so many packets, where its connection does not
    /// count them.
    pub fn count_sent(&mut self, flow: u32, sent_packets: u32, retransmitted_packets: u32) {
        if let Some(sending) = self.sending_mut(flow) {
            sending.sent_packets = sent_packets;
            sending.retransmitted_packets = retransmitted_packets;
        }
    }

    /// At the sender: a message has been sent, and no acknowledgement will say whether it arrived.
    pub fn sent_only(&mut self, flow: u32) {
        if let Some(sending) = self.sending_mut(flow) {
            sending.acked = Time::MAX;
        }
    }

    /// At the sender: a packet of a message was lost on its way, at this time. Copies that are lost when the sender knows that
    /// all has arrived are not the message's any more.
    pub fn dropped(&mut self, flow: u32, at: Time) {
        if let Some(sending) = self.sending_mut(flow).filter(|sending| at <= sending.acked) {
            sending.dropped_packets += 1;
        }
    }

    fn sending_mut(&mut self, flow: u32) -> Option<&mut Sending> {
        self.sending.known_mut(flow)?.as_mut()
    }

    /// Nothing the run waits for is under way, and nothing is to come: since when that is so.
    #[inline]
    pub fn over_since(&self) -> Option<Time> {
        self.outstanding().over_since()
    }

    /// What this part waits for, to be added up over all parts.
    #[inline]
    pub fn outstanding(&self) -> Outstanding {
        self.tasks.pending.outstanding()
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
        self.sending.len()
    }

    /// All jobs, with their ends. One whose tasks wait for others begins when the first of them is free.
    pub fn job_records(&self) -> Vec<JobRecord> {
        self.tasks.job_records()
    }

    /// What the workload calls what hosts do.
    pub fn labels(&self) -> Vec<ActivityLabel> {
        activities::labels(&self.tasks.graph)
    }

    /// What hosts did until `end`, by host, and by start at each. Before the records of flows are taken.
    pub fn activity_records(&self, end: Time) -> Vec<ActivityRecord> {
        let posted = self.sending.iter().filter_map(|(flow, sending)| {
            Some((flow, sending.as_ref()?, self.receiving.get(flow).finished()))
        });
        self.tasks.activity_records(posted, end)
    }

    /// What each job waited for: the chain of tasks, each begun by the end of the one before, that ends with its last one. By
    /// job, in order of time. Before the records of flows are taken.
    pub fn critical_steps(&self) -> Vec<CriticalStep> {
        let posted = |flow: u32| {
            let sending = self.sending.get(flow).as_ref()?;
            Some((sending, self.receiving.get(flow).finished()))
        };
        self.tasks.critical_steps(posted)
    }

    /// One a message, which they are taken from: what its sender knew and what its receiver did. Those never posted keep
    /// the time at which they could have been.
    pub fn flow_records(&mut self) -> Vec<FlowRecord> {
        let mut records = Vec::with_capacity(self.flows());
        (0..self.chunks()).for_each(|chunk| self.take_records(chunk, &mut records));
        records
    }

    /// The same of the messages of a chunk, added to `records`.
    pub fn take_records(&mut self, chunk: usize, records: &mut Vec<FlowRecord>) {
        let mut senders = self.sending.take(chunk).into_iter().flatten();
        let receivers = self.receiving.take(chunk);
        for (index, flow) in self.sending.range(chunk).enumerate() {
            let mut record = self.record(flow);
            if let Some(sending) = senders.next().flatten() {
                sending.complete(&mut record);
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
        Execution::new(graph, &groups, connections, NOTIFICATION)
    }

    /// The message from this host.
    fn from(execution: &Execution<()>, host: u32) -> u32 {
        let of = |flow: &u32| execution.record(*flow).src_host == host;
        (0..execution.flows() as u32).find(of).expect("each host sends one")
    }

    /// Makes every step up to `end`, in order of time, and posts in two parts what begins. Returns the messages.
    fn play(execution: &mut Execution<()>, steps: &mut BTreeSet<Due>, end: Time) -> Vec<u32> {
        let mut posted = Vec::new();
        loop {
            steps.extend(std::iter::from_fn(|| execution.root_before(end)));
            steps.extend(std::iter::from_fn(|| execution.news()));
            let Some(due) = steps.first().copied().filter(|due| due.at < end) else { break };
            steps.remove(&due);
            if let Some(flow) = execution.step(due.at, due.host, due.step) {
                execution.posted(FlowRecord { start_ps: due.at.as_ps(), ..execution.record(flow) }, 2);
                execution.expected(flow, 2);
                posted.push(flow);
            }
        }
        execution.settle_barriers(end);
        steps.extend(std::iter::from_fn(|| execution.news()));
        posted
    }

    fn deliver(execution: &mut Execution<()>, now: Time, flow: u32) {
        assert!(!execution.part_delivered(now, flow, 50));
        assert!(execution.part_delivered(now, flow, 50));
        execution.received(flow, ReceiverTally::default());
    }

    fn complete(execution: &mut Execution<()>, now: Time, flow: u32, status: Status) -> Completed {
        assert_eq!(execution.part_completed(now, flow, Status::Success), Completed::NotYet);
        let completed = execution.part_completed(now, flow, status);
        execution.ended(now, flow);
        assert!(execution.done_with(flow, SenderTally::default()), "each has a connection of its own");
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
        // Behind a computation of 2 us.
        assert!(play(&mut execution, &mut steps, Time::from_us(7)).is_empty());
        assert_eq!(play(&mut execution, &mut steps, Time::from_us(8)), [second]);
        assert_eq!(
            complete(&mut execution, Time::from_us(6), first, Status::Success),
            Completed::Acknowledged
        );
        deliver(&mut execution, Time::from_us(9), second);
        assert_eq!(execution.over_since(), None, "its sender does not know");
        let at = Time::from_us(10);
        assert_eq!(complete(&mut execution, at, second, Status::Success), Completed::Acknowledged);
        assert_eq!(execution.over_since(), Some(at), "nobody waits for the background");
        assert_eq!(execution.tasks_left(), 1);
        let job = &execution.job_records()[0];
        assert_eq!((job.start_ps, job.finish_ps), (0, Some(9_000_000)));
        let record = execution.flow_records().swap_remove(second as usize);
        assert_eq!((record.start_ps, record.finish_ps), (7_000_000, Some(9_000_000)));
        assert_eq!(record.acked_ps, Some(10_000_000));
    }

    /// A message from host 0 to 1 is delivered at 5 us and completed at 6. Behind it wait, each with a message of its own:
    /// the receiver, the sender, host 2, host 2 for the completion, and host 2 for a barrier behind it.
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
        let barrier =
            Compute { host: None, duration: Duration::ZERO, start: Time::ZERO, job: None, core: None };
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
        assert_eq!(failed, Completed::Failed);
        assert_eq!(execution.over_since(), None);
        let _ = complete(&mut execution, Time::from_us(2), other, Status::Flushed);
        assert_eq!(execution.over_since(), Some(Time::from_us(2)));
        assert_eq!(execution.tasks_left(), 4);
        let records = execution.flow_records();
        let status = |flow: u32| records[flow as usize].status;
        assert_eq!((status(first), status(second)), (FlowStatus::RetriesExceeded, FlowStatus::Unfinished));
    }

    /// The first message is acknowledged at 4 us: what is lost of it until then counts, and copies after that do not. With it all
    /// of a chunk have not come to their end.
    #[test]
    fn what_is_lost_after_the_end_of_a_message_is_not_of_it() {
        let mut execution = execution(Role::Foreground);
        let first = from(&execution, 0);
        play(&mut execution, &mut BTreeSet::new(), Time::from_us(1));
        execution.dropped(first, Time::from_us(2));
        deliver(&mut execution, Time::from_us(3), first);
        assert_eq!(
            complete(&mut execution, Time::from_us(4), first, Status::Success),
            Completed::Acknowledged
        );
        execution.dropped(first, Time::from_us(4));
        execution.dropped(first, Time::from_us(5));
        assert!(!Execution::leave(&mut [&mut execution], 0, &mut Vec::new()));
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

    /// Host 0 could compute 2 us from 1 us on, on a core that is busy until 5, and sends to host 1; host 2 sends there, too, and is earlier. Behind
    /// both host 1 computes, after a delay of 1 us.
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
        // The computations of the core are over at 5 and at 7 us.
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
        // Host 0 computes for 4 us, then reduces with host 1: two messages with a gap between them. Two sends that do not
        // overlap, and one that the run ends before.
        builder.label(Some(label("forward", None)));
        let duration = Duration::from_us(4);
        let compute = Compute { host: Some(HostId(0)), duration, start: Time::ZERO, job, core: None };
        let forward = builder.compute(compute).unwrap();
        let collective = CollectiveLabel { number: 0, ranks: 2, algorithm: Algorithm::Ring, measure: None };
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
            // Each takes 3 us.
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
