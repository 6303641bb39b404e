//! Between which hosts something may pass in a window by another way than the network.
//!
//! No packet sent in a window arrives in it, so hosts can be simulated one by one. But where a message ends its sender's
//! record is completed with what the receiver counted, its queue pairs may be closed at both ends, and tasks that waited
//! for it begin at once, wherever they are. A message can end in a window only if its last packet was sent in an earlier
//! one, and if no more of it is missing than can reach the receiver by then. So the hosts of such messages, of the tasks
//! that wait for them, and of tasks that begin in the window are simulated together, in order of time; all others each
//! by itself.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use pathweave_units::{HostId, QpNum, Time};
use pathweave_workload::{MessageGraph, Task, TaskId};

/// Tasks behind a message that are looked at; with more, all hosts count as reached.
const MOST_TASKS: u32 = 64;

/// A message, or one queue pair's share in it, that is on its way whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SentWhole {
    pub(crate) message: TaskId,
    /// The sender's.
    pub(crate) qp: QpNum,
    /// Its number there.
    pub(crate) msn: u32,
}

/// Hosts that are to be simulated together, and why.
pub(crate) struct Coupling {
    /// Messages on their way whole, with a time before which they do not end.
    on_their_way: BinaryHeap<Reverse<(Time, SentWhole)>>,
    /// By host: messages about to end that reach it.
    messages: Vec<u32>,
    /// Hosts with such messages, and some that had.
    hosts: Vec<HostId>,
    /// Messages about to end.
    ending: BTreeSet<TaskId>,
    /// How many of them reach all hosts.
    of_all: u32,
    /// Hosts of tasks that begin in the window at hand.
    beginning: Reach,
}

/// Which hosts something reaches.
enum Reach {
    Hosts(Vec<HostId>),
    All,
}

impl Reach {
    /// The hosts where a task begins, or that of those that begin when a computation is over.
    fn add_begin(&mut self, graph: &MessageGraph, task: TaskId, tasks_left: &mut u32) {
        match graph.task(task) {
            Task::Message(message) => {
                if let Reach::Hosts(hosts) = self {
                    hosts.extend([message.src, message.dst]);
                }
            }
            Task::Compute(_) => self.add_dependents(graph, task, tasks_left),
        }
    }

    /// The hosts where tasks begin that wait for this one.
    fn add_dependents(&mut self, graph: &MessageGraph, task: TaskId, tasks_left: &mut u32) {
        for next in graph.all_dependents(task) {
            if *tasks_left == 0 {
                *self = Reach::All;
            }
            if let Reach::All = self {
                return;
            }
            *tasks_left -= 1;
            self.add_begin(graph, next, tasks_left);
        }
    }

    fn of_end(graph: &MessageGraph, message: TaskId) -> Self {
        let mut reach = Reach::Hosts(Vec::new());
        let mut tasks_left = MOST_TASKS;
        reach.add_begin(graph, message, &mut tasks_left);
        reach.add_dependents(graph, message, &mut tasks_left);
        reach
    }
}

impl Coupling {
    pub(crate) fn new(hosts: usize) -> Self {
        Coupling {
            on_their_way: BinaryHeap::new(),
            messages: vec![0; hosts],
            hosts: Vec::new(),
            ending: BTreeSet::new(),
            of_all: 0,
            beginning: Reach::Hosts(Vec::new()),
        }
    }

    /// All of a message has been sent; it does not end before this time.
    pub(crate) fn sent_whole(&mut self, not_before: Time, sent: SentWhole) {
        self.on_their_way.push(Reverse((not_before, sent)));
    }

    /// Takes a message that may end before `end`, as far as is known.
    pub(crate) fn pop_sent_whole(&mut self, end: Time) -> Option<SentWhole> {
        let Reverse((not_before, sent)) = *self.on_their_way.peek()?;
        if not_before >= end {
            return None;
        }
        self.on_their_way.pop();
        Some(sent)
    }

    /// The network has changed: messages may end at any time.
    pub(crate) fn forget_times(&mut self) {
        let all = std::mem::take(&mut self.on_their_way);
        self.on_their_way = all.into_iter().map(|Reverse((_, sent))| Reverse((Time::ZERO, sent))).collect();
    }

    /// From now on all hosts are simulated together.
    pub(crate) fn couple_all(&mut self) {
        self.of_all += 1;
    }

    /// A message may end in the window at hand, or a later one.
    pub(crate) fn may_end(&mut self, graph: &MessageGraph, message: TaskId) {
        if !self.ending.insert(message) {
            return;
        }
        match Reach::of_end(graph, message) {
            Reach::All => self.of_all += 1,
            Reach::Hosts(hosts) => {
                for host in hosts {
                    self.messages[host.index()] += 1;
                    if self.messages[host.index()] == 1 {
                        self.hosts.push(host);
                    }
                }
            }
        }
    }

    /// A message has ended for both its ends.
    pub(crate) fn has_ended(&mut self, graph: &MessageGraph, message: TaskId) {
        if !self.ending.remove(&message) {
            return;
        }
        match Reach::of_end(graph, message) {
            Reach::All => self.of_all -= 1,
            Reach::Hosts(hosts) => hosts.iter().for_each(|host| self.messages[host.index()] -= 1),
        }
    }

    /// A window begins in which these tasks do.
    pub(crate) fn begin_window(&mut self, graph: &MessageGraph, tasks: impl Iterator<Item = TaskId>) {
        match &mut self.beginning {
            Reach::Hosts(hosts) => hosts.clear(),
            all => *all = Reach::Hosts(Vec::new()),
        }
        for task in tasks {
            let mut tasks_left = MOST_TASKS;
            self.beginning.add_begin(graph, task, &mut tasks_left);
        }
    }

    /// The hosts to be simulated together in the window at hand, some of them told twice; `None` for all.
    pub(crate) fn together(&mut self) -> Option<impl Iterator<Item = HostId>> {
        let Reach::Hosts(beginning) = &self.beginning else { return None };
        if self.of_all > 0 {
            return None;
        }
        let messages = &self.messages;
        self.hosts.retain(|host| messages[host.index()] > 0);
        Some(self.hosts.iter().chain(beginning).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_units::{Bytes, Duration};
    use pathweave_workload::{Compute, Draft, GraphBuilder, NewMessage, Stream};

    fn message(builder: &mut GraphBuilder, src: u32, dst: u32) -> Draft {
        let group = builder.group("g", None).unwrap();
        let new = NewMessage {
            src: HostId(src),
            dst: HostId(dst),
            size: Bytes::new(1),
            start: Time::ZERO,
            group,
            stream: Stream::Own,
            job: None,
        };
        builder.message(new).unwrap()
    }

    /// 0 to 1; when that is over and a computation behind it, 2 to 3.
    fn chain() -> MessageGraph {
        let mut builder = GraphBuilder::new(6);
        let first = message(&mut builder, 0, 1);
        let duration = Duration::from_ns(1);
        let pause = Compute { host: Some(HostId(1)), start: Time::ZERO, duration, job: None, core: None };
        let pause = builder.compute(pause).unwrap();
        let second = message(&mut builder, 2, 3);
        builder.after(pause, first).unwrap();
        builder.after(second, pause).unwrap();
        builder.finish().unwrap()
    }

    fn task(graph: &MessageGraph, src: u32) -> TaskId {
        let index = graph.messages().iter().position(|m| m.src == HostId(src)).unwrap();
        TaskId(index as u32)
    }

    fn together(coupling: &mut Coupling) -> Vec<u32> {
        let mut hosts: Vec<u32> = coupling.together().expect("not all").map(|host| host.0).collect();
        hosts.sort_unstable();
        hosts
    }

    #[test]
    fn a_message_that_may_end_couples_its_ends_and_who_waits_for_it() {
        let graph = chain();
        let mut coupling = Coupling::new(6);
        coupling.begin_window(&graph, std::iter::empty());
        assert!(together(&mut coupling).is_empty());
        coupling.may_end(&graph, task(&graph, 0));
        assert_eq!(together(&mut coupling), [0, 1, 2, 3]);
        coupling.may_end(&graph, task(&graph, 2));
        coupling.has_ended(&graph, task(&graph, 0));
        assert_eq!(together(&mut coupling), [2, 3]);
        coupling.has_ended(&graph, task(&graph, 2));
        assert!(together(&mut coupling).is_empty());
    }

    #[test]
    fn tasks_couple_in_the_window_in_which_they_begin() {
        let graph = chain();
        let mut coupling = Coupling::new(6);
        // The computation's end lets the second message begin.
        coupling.begin_window(&graph, [graph.compute_id(0)].into_iter());
        assert_eq!(together(&mut coupling), [2, 3]);
        coupling.begin_window(&graph, std::iter::empty());
        assert!(together(&mut coupling).is_empty());
    }

    #[test]
    fn a_message_for_which_many_wait_couples_all() {
        let mut builder = GraphBuilder::new(6);
        let first = message(&mut builder, 0, 1);
        for _ in 0..=MOST_TASKS {
            let next = message(&mut builder, 2, 3);
            builder.after(next, first).unwrap();
        }
        let graph = builder.finish().unwrap();
        let mut coupling = Coupling::new(6);
        coupling.may_end(&graph, task(&graph, 0));
        assert!(coupling.together().is_none());
        coupling.has_ended(&graph, task(&graph, 0));
        assert!(together(&mut coupling).is_empty());
    }

    #[test]
    fn times_are_kept_until_the_network_changes() {
        let sent = |message| SentWhole { message: TaskId(message), qp: QpNum(2), msn: 0 };
        let mut coupling = Coupling::new(6);
        coupling.sent_whole(Time::from_us(5), sent(0));
        coupling.sent_whole(Time::from_us(3), sent(1));
        assert_eq!(coupling.pop_sent_whole(Time::from_us(3)), None);
        assert_eq!(coupling.pop_sent_whole(Time::from_us(4)), Some(sent(1)));
        assert_eq!(coupling.pop_sent_whole(Time::from_us(4)), None);
        coupling.forget_times();
        assert_eq!(coupling.pop_sent_whole(Time::from_us(4)), Some(sent(0)));
    }
}
