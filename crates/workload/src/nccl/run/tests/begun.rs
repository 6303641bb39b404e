//! Begins of ranks in the graph: every message follows that of its sender.

use std::sync::Arc;

use pathweave_units::{Bytes, Duration, HostId, Rate, Time};

use super::super::graph_wires::duration;
use super::{CASES, Joined, NcclAlgorithm, NcclProtocol, team, topology};
use crate::collective::Operation;
use crate::config::{WorkloadConfig, build};
use crate::env::WorkloadEnv;
use crate::graph::{Compute, JobId, Message, MessageGraph, TaskId};
use crate::kinds::{Nccl, Traffic};
use crate::nccl::gpu::Gpu;
use crate::nccl::run::{MOST_MESSAGES, Plan};
use crate::nccl::{Fitted, Wanted};
use crate::testing::{job_ends, run};

const ROUNDS: u32 = 3;
/// Number of messages above which the loops of most of these collectives are merged.
const FEW_MESSAGES: u64 = 1 << 10;
const PROTOCOLS: [NcclProtocol; 3] = [NcclProtocol::Ll, NcclProtocol::Ll128, NcclProtocol::Simple];

/// Rounds of a collective.
struct Rounds {
    name: String,
    ranks: u32,
    plan: Plan,
    graph: MessageGraph,
}

/// Settings of a collective.
struct Settings {
    protocol: NcclProtocol,
    channels: Option<u32>,
    size: u64,
    most_messages: u64,
}

/// Returns rounds of a collective over all hosts. `None` if these servers do not execute it so.
fn rounds(
    (operation, algorithm, servers, gpus, joined): (Operation, NcclAlgorithm, u32, u32, Joined),
    Settings { protocol, channels, size, most_messages }: Settings,
) -> Option<Rounds> {
    let wanted = Wanted { algorithm, protocol, channels, ..Wanted::defaults(Fitted::NONE, most_messages) };
    let plan = Plan::new(team(servers, gpus, joined), operation, size, &wanted).ok()?;
    let gpu = if joined == Joined::Mesh { Gpu::Mi300x } else { Gpu::H100 };
    let config = Nccl {
        algorithm,
        protocol,
        channels,
        latency: Some(1.0),
        bandwidth: Some(1.0),
        most_messages,
        repetitions: ROUNDS,
        ..Nccl::new(operation, Bytes::new(size))
    };
    let ranks = servers * gpus;
    let topology = Some(Arc::new(topology(servers, gpus, joined)));
    let env = WorkloadEnv { topology, gpu: Some(gpu), ..WorkloadEnv::new(ranks, Rate::from_gbps(400)) };
    let graph = build(&[WorkloadConfig::new(Traffic::Nccl(config))], &env).unwrap().graph;
    let name = format!("{operation:?} {algorithm:?} {protocol:?} {servers} x {gpus}, {size} bytes");
    Some(Rounds { name, ranks, plan, graph })
}

/// Returns rounds of all collectives that the servers execute, with all channels and with one.
fn all_rounds() -> impl Iterator<Item = Rounds> {
    CASES.into_iter().flat_map(|case| {
        PROTOCOLS.into_iter().flat_map(move |protocol| {
            let sizes = [(None, 100_000), (None, 30 << 20), (Some(1), 30 << 20)];
            sizes.into_iter().filter_map(move |(channels, size)| {
                rounds(case, Settings { protocol, channels, size, most_messages: FEW_MESSAGES })
            })
        })
    })
}

impl Rounds {
    /// Returns the bit of a rank in a round.
    fn bit(&self, job: JobId, host: HostId) -> u64 {
        1 << (job.0 * self.ranks + host.0)
    }

    /// Returns the bit of the sender of a message in its round.
    fn bit_of(&self, sent: &Message) -> u64 {
        self.bit(sent.job.unwrap(), sent.src)
    }

    /// Returns the tasks with which ranks begin, each with its bit.
    fn begins(&self) -> Vec<(TaskId, u64)> {
        let base = duration(self.plan.base_us());
        let mut found = Vec::new();
        for (index, &Compute { host, duration, job, .. }) in self.graph.computes().iter().enumerate() {
            let bit = self.bit(job.unwrap(), host.unwrap());
            // The first computation of a rank in a round is its begin.
            if duration == base && found.iter().all(|&(_, other)| other != bit) {
                found.push((self.graph.compute_id(index), bit));
            }
        }
        found
    }

    /// Returns the begins before each task, in the order of dependencies, as a sum of bits.
    fn before(&self) -> Vec<u64> {
        let tasks = (0..self.graph.task_count() as u32).map(TaskId);
        let mut open: Vec<u32> = tasks.clone().map(|task| self.graph.predecessors(task)).collect();
        let mut before = vec![0; open.len()];
        let mut own = before.clone();
        self.begins().into_iter().for_each(|(task, bit)| own[task.index()] = bit);
        let mut due: Vec<TaskId> = tasks.filter(|task| open[task.index()] == 0).collect();
        while let Some(task) = due.pop() {
            for next in self.graph.all_dependents(task) {
                before[next.index()] |= before[task.index()] | own[task.index()];
                open[next.index()] -= 1;
                if open[next.index()] == 0 {
                    due.push(next);
                }
            }
        }
        assert!(open.iter().all(|&open| open == 0), "{}: tasks wait for each other", self.name);
        before
    }

    /// Returns the bits of the ranks that send, in all rounds. Others only receive what the chain has for them.
    fn senders(&self) -> u64 {
        self.graph.messages().iter().fold(0, |bits, sent| bits | self.bit_of(sent))
    }

    /// Returns the number of dependencies of the tasks of a round.
    fn dependencies(&self, round: u32) -> u64 {
        let tasks = (0..self.graph.task_count() as u32).map(TaskId);
        let of_round = tasks.filter(|&task| self.graph.job(task) == Some(JobId(round)));
        of_round.map(|task| u64::from(self.graph.predecessors(task))).sum()
    }
}

/// A message follows the begin of its sender in its own round, which follows the sender's begin in the round before.
#[test]
fn every_message_follows_the_begin_of_its_sender() {
    let (mut all, mut early, mut checked) = (0, 0, 0);
    for rounds in all_rounds() {
        let (before, begins, senders) = (rounds.before(), rounds.begins(), rounds.senders());
        assert_eq!(begins.len() as u32, ROUNDS * rounds.ranks, "{}", rounds.name);
        for (begin, bit) in begins {
            let last = bit >> rounds.ranks & senders;
            assert_eq!(before[begin.index()] & last, last, "{}: {begin:?}", rounds.name);
        }
        let sent = rounds.graph.messages().iter().zip(before);
        early += sent.filter(|(sent, before)| before & rounds.bit_of(sent) == 0).count();
        all += rounds.graph.messages().len();
        checked += 1;
    }
    assert_eq!(early, 0, "of {all} messages of {checked} collectives");
    assert!(checked > 150, "{checked} collectives are executed");
}

/// Every round waits for as much as the others. Only the first one has no round before: each rank of another one waits for
/// its messages there, and begins after that wait.
#[test]
fn rounds_have_equal_dependencies() {
    for rounds in all_rounds() {
        let (counts, through) = rounds.plan.count().unwrap();
        let [first, second, last] = [0, 1, 2].map(|round| rounds.dependencies(round));
        assert_eq!(first + through + u64::from(rounds.ranks), second, "{}", rounds.name);
        assert_eq!(last, second, "{}", rounds.name);
        assert!(last - through <= counts.dependencies, "{}: {last} of {}", rounds.name, counts.dependencies);
    }
}

/// No message of a ring on one server begins before its round, and rounds take equally long.
#[test]
fn rounds_take_equal_times() {
    let ring = (Operation::AllReduce, NcclAlgorithm::Ring, 1, 8, Joined::Switch);
    let (protocol, size) = (NcclProtocol::Simple, 256 << 20);
    let settings = Settings { protocol, channels: None, size, most_messages: MOST_MESSAGES };
    let rounds = rounds(ring, settings).unwrap();
    let ends = job_ends(&rounds.graph);
    let taken: Vec<Duration> =
        ends.iter().scan(Time::ZERO, |last, &end| Some(end - std::mem::replace(last, end))).collect();
    assert!(taken.iter().all(|&one| one == taken[0]), "{taken:?}");
    let (tasks, _) = run(&rounds.graph);
    for (message, end) in rounds.graph.messages().iter().zip(tasks) {
        let round = message.job.unwrap().0.checked_sub(1).map_or(Time::ZERO, |last| ends[last as usize]);
        let taken = Duration::from_ns(message.size.get());
        assert!(end >= round + taken, "a message of {:?} ends at {end:?}", message.job);
    }
}
