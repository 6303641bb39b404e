//! Lower bounds on the completion of a workload, as a perfect fabric would reach them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pathweave_topo::{HostRates, Servers, Topology};
use pathweave_units::{Duration, HostId, Rate, Time};

use crate::graph::{GroupId, Job, JobId, Message, MessageGraph, Moment, Notice, Task, TaskId};
use crate::progress::Progress;

/// Lower bounds on completion. They count payload (no headers, no propagation) and notifications between
/// hosts; the chain also counts idle times that are given to it. No run that completes can be faster, whatever its scheme
/// and framing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Payload that each host sends, bytes, of the messages that the run waits for.
    pub sent_bytes: Vec<u64>,
    /// Payload that each host receives, bytes, of the messages that the run waits for.
    pub received_bytes: Vec<u64>,
    /// Bound from the busiest host link, given the earliest starts of its messages.
    pub links: Time,
    /// Bound from the longest chain of dependencies, each message alone on its links, with the notifications
    /// that the chain takes.
    pub chain: Time,
}

/// Link of a host, or of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct HostLink {
    /// Index of the link.
    index: usize,
    rate: Rate,
}

/// End of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Sender,
    Receiver,
}

impl End {
    fn of(self, rates: HostRates) -> Rate {
        match self {
            End::Sender => rates.send,
            End::Receiver => rates.receive,
        }
    }
}

/// Messages and computations that a run waits for.
#[derive(Clone, Copy)]
pub struct Awaited<'a>(&'a dyn Fn(GroupId) -> bool);

impl Awaited<'_> {
    /// Every message and computation.
    pub const ALL: Awaited<'static> = Awaited(&|_| true);

    fn has(self, graph: &MessageGraph, task: TaskId) -> bool {
        let group = match graph.task(task) {
            Task::Message(message) => Some(message.group),
            Task::Compute(compute) => compute.job.map(|job| graph.jobs()[job.index()].group),
        };
        group.is_none_or(self.0)
    }
}

impl<'a> Awaited<'a> {
    /// Messages and computations of the groups for which `group` returns true, and computations without a group.
    pub fn of_groups(group: &'a dyn Fn(GroupId) -> bool) -> Self {
        Awaited(group)
    }
}

/// Links that a message loads at one of its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct EndLinks {
    /// All ports of the host that lead to the other end.
    own: HostLink,
    /// NIC that the host shares with others.
    nic: Option<HostLink>,
}

impl Bounds {
    /// Returns the bounds of `graph`. `rate` gives the rate at which a host sends and receives. A host learns
    /// of a task that ended at another host after `notification`.
    pub fn from_graph(graph: &MessageGraph, notification: Duration, rate: impl Fn(HostId) -> Rate) -> Self {
        let rates: Vec<Rate> = (0..graph.hosts()).map(|h| rate(HostId(h))).collect();
        Self::new((graph, Awaited::ALL), notification, |_, host, _| EndLinks {
            own: HostLink { index: host.index(), rate: rates[host.index()] },
            nic: None,
        })
    }

    /// Returns the bounds of the `awaited` part of `graph` on a topology. Messages between hosts that a scale-up
    /// network joins take its links, all others those of the hosts' other ports, and of the NIC that a host shares.
    pub fn on_topology(
        (graph, awaited): (&MessageGraph, Awaited<'_>),
        notification: Duration,
        topology: &Topology,
    ) -> Self {
        let count = graph.hosts() as usize;
        let hosts = || (0..graph.hosts()).map(HostId);
        let ports: Vec<HostRates> = hosts()
            .map(|host| to_shared_nic(topology, host).unwrap_or_else(|| topology.scale_out_rates(host)))
            .collect();
        let nics: Vec<Option<(usize, HostRates)>> = hosts()
            .map(|host| topology.shared_nic_rates(host))
            .map(|nic| nic.map(|(nic, rates)| (2 * count + nic, rates)))
            .collect();
        let scale_up = topology.servers().and_then(Servers::any_scale_up);
        let inside: Vec<Rate> = scale_up
            .map_or_else(Vec::new, |up| (0..up.domain_size()).map(|gpu| up.rate_of(HostId(gpu))).collect());
        Self::new((graph, awaited), notification, |end, host, peer| match scale_up {
            Some(up) if up.joins(host, peer) => EndLinks {
                own: HostLink { index: count + host.index(), rate: inside[host.index() % inside.len()] },
                nic: None,
            },
            _ => {
                // What GPUs send to each other over a NIC that they share does not leave it.
                let of = |host: HostId| nics[host.index()].map(|(index, _)| index);
                let nic = nics[host.index()].filter(|_| of(host) != of(peer));
                EndLinks {
                    own: HostLink { index: host.index(), rate: end.of(ports[host.index()]) },
                    nic: nic.map(|(index, rates)| HostLink { index, rate: end.of(rates) }),
                }
            }
        })
    }

    /// Returns the bounds of `graph`. `links` gives the links that a host, as one end of a message, takes towards
    /// another one.
    fn new(
        (graph, awaited): (&MessageGraph, Awaited<'_>),
        notification: Duration,
        links: impl Fn(End, HostId, HostId) -> EndLinks,
    ) -> Self {
        let hosts = graph.hosts() as usize;
        let rate = |end, host, peer| {
            let EndLinks { own, nic } = links(end, host, peer);
            nic.map_or(own.rate, |nic| nic.rate.min(own.rate))
        };
        let of_both = |from, to| rate(End::Sender, from, to).min(rate(End::Receiver, to, from));
        let mut bounds = Bounds {
            sent_bytes: vec![0; hosts],
            received_bytes: vec![0; hosts],
            links: Time::ZERO,
            chain: chain((graph, awaited), notification, of_both),
        };
        let mut carried: [Vec<u64>; 2] = [Vec::new(), Vec::new()];
        // Messages are walked by start, from last to first: all that starts at or after an instant needs its
        // transmission time after that instant.
        for message in graph.messages().iter().rev().filter(|message| (awaited.0)(message.group)) {
            let (size, src, dst) = (message.size.get(), message.src, message.dst);
            let receiver = graph.representative(dst);
            bounds.sent_bytes[src.index()] += size;
            bounds.received_bytes[receiver.index()] += size;
            let ends = [links(End::Sender, src, dst), links(End::Receiver, receiver, src)];
            for (carried, ends) in carried.iter_mut().zip(ends) {
                for link in std::iter::once(ends.own).chain(ends.nic) {
                    carried.resize(carried.len().max(link.index + 1), 0);
                    carried[link.index] += size;
                    let end = message.start.saturating_add(link.rate.time_for(carried[link.index]));
                    bounds.links = bounds.links.max(end);
                }
            }
        }
        bounds
    }

    /// Raises the bound of the longest chain to that of the same chain with each message taking `time_of` at least, such as
    /// its time on an idle network.
    pub fn count_idle_times(
        &mut self,
        (graph, awaited): (&MessageGraph, Awaited<'_>),
        notification: Duration,
        time_of: impl Fn(&Message) -> Duration,
    ) {
        let time_of = |id: TaskId| match graph.task(id) {
            Task::Compute(compute) => compute.duration,
            Task::Message(message) => time_of(message),
        };
        let chain = end_of_chain(graph, notification, time_of, |id| awaited.has(graph, id));
        self.chain = self.chain.max(chain);
    }

    /// Returns the larger bound. No run completes before this instant.
    pub fn completion(&self) -> Time {
        self.links.max(self.chain)
    }
}

/// Returns the rates between a host and the NIC that it shares with others, if it does.
fn to_shared_nic(topology: &Topology, host: HostId) -> Option<HostRates> {
    topology.shared_nic_rates(host)?;
    let servers = topology.servers()?;
    let is_nic = |node| topology.switch_index(node).is_some_and(|switch| servers.has_part(switch));
    let port = topology.ports(host.into()).iter().find(|port| is_nic(port.peer))?;
    Some(HostRates { send: topology.egress(port).rate, receive: topology.ingress(port).rate })
}

/// Durations of jobs on an infinitely fast network. Messages take no time, so only computations, delays and
/// the starts of messages count. The rest of a job's measured time is exposed communication. The span of an
/// iteration that follows another one begins no earlier than that one ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobSpans(Vec<Duration>);

impl JobSpans {
    /// Returns the spans of all jobs of `graph`. All are zero if nothing computes.
    pub fn from_graph(graph: &MessageGraph) -> Self {
        if graph.computes().is_empty() {
            return JobSpans(vec![Duration::ZERO; graph.jobs().len()]);
        }
        let mut spans = vec![(Time::MAX, Time::ZERO); graph.jobs().len()];
        run_ideal(
            graph,
            |_| Duration::ZERO,
            |id, begin, end| {
                if let Some(job) = graph.job(id) {
                    let (first, last) = &mut spans[job.index()];
                    (*first, *last) = (begin.min(*first), end.max(*last));
                }
            },
        );
        let span = |(job, &(first, last)): (&Job, &(Time, Time))| {
            let before = job.follows.map_or(Time::ZERO, |before| spans[before.index()].1);
            let first = first.max(before);
            if last > first { last - first } else { Duration::ZERO }
        };
        JobSpans(graph.jobs().iter().zip(&spans).map(span).collect())
    }
    /// Returns the span of one job.
    pub fn span(&self, job: JobId) -> Duration {
        self.0[job.index()]
    }
}

/// Returns the end of the longest chain up to an awaited task, with each message alone on its links.
fn chain(
    (graph, awaited): (&MessageGraph, Awaited<'_>),
    notification: Duration,
    rate: impl Fn(HostId, HostId) -> Rate,
) -> Time {
    let time_of = |id: TaskId| match graph.task(id) {
        Task::Compute(compute) => compute.duration,
        Task::Message(m) => rate(m.src, m.dst).time_for(m.size.get()),
    };
    end_of_chain(graph, notification, time_of, |id| awaited.has(graph, id))
}

/// Returns the end of the longest chain of messages if each takes `latency`, whatever its size, and computations take no
/// time. A host learns of a task that ended at another host after `notification`.
pub fn latency_chain(graph: &MessageGraph, notification: Duration, latency: Duration) -> Time {
    let time_of = |id: TaskId| match graph.task(id) {
        Task::Compute(_) => Duration::ZERO,
        Task::Message(_) => latency,
    };
    end_of_chain(graph, notification, time_of, |id| graph.job(id).is_some())
}

/// Returns the end of the longest chain up to a task that counts, if each task takes `time_of`.
fn end_of_chain(
    graph: &MessageGraph,
    notification: Duration,
    time_of: impl Fn(TaskId) -> Duration,
    counts: impl Fn(TaskId) -> bool,
) -> Time {
    let mut last = Time::ZERO;
    longest_chain_visit(graph, notification, time_of, |id, _, end| {
        if counts(id) {
            last = last.max(end);
        }
    });
    last
}

/// Executes a graph on an ideal network: each message takes `time_of`, is delivered and completed at that
/// instant, and every host learns of it at once. Computations of a core take turns. Visits each task as it
/// ends, with its begin and end.
pub(crate) fn run_ideal(
    graph: &MessageGraph,
    time_of: impl Fn(&Message) -> Duration,
    mut visit: impl FnMut(TaskId, Time, Time),
) {
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    enum Step {
        End,
        Begin,
    }
    let mut progress = Progress::new(graph);
    let mut steps: BinaryHeap<Reverse<(Time, Step, TaskId)>> = BinaryHeap::new();
    loop {
        let next_step = steps.peek().map_or(Time::MAX, |Reverse((at, ..))| *at);
        if let Some((root, at)) = progress.pop_root(graph, next_step) {
            steps.push(Reverse((at, Step::Begin, root)));
        }
        let Some(Reverse((now, step, task))) = steps.pop() else { break };
        match (step, graph.task(task)) {
            (Step::Begin, Task::Message(message)) => {
                progress.begin(graph, task, now);
                steps.push(Reverse((now.saturating_add(time_of(message)), Step::End, task)));
            }
            (Step::Begin, Task::Compute(_)) => {
                let end = progress.begin(graph, task, now).expect("a computation");
                steps.push(Reverse((end, Step::End, task)));
            }
            (Step::End, of) => {
                let time = match of {
                    Task::Message(message) => time_of(message),
                    Task::Compute(compute) => compute.duration,
                };
                visit(task, Time::from_ps(now.as_ps().saturating_sub(time.as_ps())), now);
                progress.task_ended(graph, task, now);
                for next in graph.all_dependents(task) {
                    if let Some(at) = progress.predecessor_ended(graph, next, now) {
                        steps.push(Reverse((at, Step::Begin, next)));
                    }
                }
            }
        }
    }
}

/// Visits each task once its predecessors have ended, with its begin and end. Each task takes `time_of`, and
/// a host learns of a task that ended elsewhere after `notification`. A task that needs only some of its
/// predecessors begins with the first of them, which is no later than the real begin.
fn longest_chain_visit(
    graph: &MessageGraph,
    notification: Duration,
    time_of: impl Fn(TaskId) -> Duration,
    mut visit: impl FnMut(TaskId, Time, Time),
) {
    let tasks = graph.task_count() as u32;
    let mut ends_of = |id: TaskId, ready: Time| {
        let begin = ready.max(graph.start(id));
        let end = begin.saturating_add(time_of(id));
        visit(id, begin, end);
        end
    };
    if !graph.has_dependencies() {
        (0..tasks).for_each(|i| {
            ends_of(TaskId(i), Time::ZERO);
        });
        return;
    }
    let mut waiting: Vec<u32> = (0..tasks).map(|i| graph.predecessors(TaskId(i))).collect();
    let needs_all = |id: TaskId| graph.needs(id) == graph.predecessors(id);
    let mut ready: Vec<Time> =
        (0..tasks).map(|i| if needs_all(TaskId(i)) { Time::ZERO } else { Time::MAX }).collect();
    let mut free: Vec<TaskId> = (0..tasks).map(TaskId).filter(|id| waiting[id.index()] == 0).collect();
    while let Some(id) = free.pop() {
        let end = ends_of(id, ready[id.index()].saturating_add(graph.delay_after_deps(id)));
        let moments: &[Moment] = match graph.task(id) {
            Task::Message(_) => &[Moment::Delivery, Moment::Completion],
            Task::Compute(_) => &[Moment::Delivery],
        };
        for (next, learns) in moments.iter().flat_map(|&moment| graph.notified_tasks(id, moment)) {
            let end = match learns {
                Notice::ByNotification(_) => end.saturating_add(notification),
                Notice::AtOnce | Notice::AsBarrier => end,
            };
            let known = &mut ready[next.index()];
            *known = if needs_all(next) { end.max(*known) } else { end.min(*known) };
            waiting[next.index()] -= 1;
            if waiting[next.index()] == 0 {
                free.push(next);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use pathweave_units::Bytes;

    use super::*;
    use pathweave_topo::{Build, Star};

    use crate::kinds::{Flows, Placement, RingAllReduce, Traffic};
    use crate::testing::{flow_at, graph_of};
    use crate::{WorkloadConfig, WorkloadEnv, build};

    /// One nanosecond per byte.
    fn rate(_: HostId) -> Rate {
        Rate::from_gbps(8)
    }

    #[test]
    fn the_busiest_link_with_regard_to_starts() {
        // Host 2 receives 1000 bytes from 0 us on, is idle, and receives 3000 more from 10 us on.
        let flows = vec![flow_at(0, 2, 1000, 0), flow_at(0, 2, 1000, 10), flow_at(1, 2, 2000, 10)];
        let graph = graph_of(3, Traffic::Flows(Flows { flows, ..Flows::default() }));
        let bounds = Bounds::from_graph(&graph, Duration::ZERO, rate);
        assert_eq!(bounds.sent_bytes, [2000, 2000, 0]);
        assert_eq!(bounds.received_bytes, [0, 0, 4000]);
        assert_eq!(bounds.links, Time::from_us(13));
        assert_eq!(bounds.chain, Time::from_us(12));
        assert_eq!(bounds.completion(), Time::from_us(13));
    }

    #[test]
    fn the_chain_of_a_ring() {
        let ring = RingAllReduce {
            size: Bytes::new(4000),
            group_size: None,
            placement: Placement::Consecutive,
            repetitions: 2,
            compute: Duration::from_us(4),
        };
        let graph = graph_of(4, Traffic::RingAllReduce(ring));
        let bounds = Bounds::from_graph(&graph, Duration::ZERO, rate);
        assert_eq!((bounds.links, bounds.chain), (Time::from_us(12), Time::from_us(20)));
        // Twelve steps of two rounds.
        assert_eq!(latency_chain(&graph, Duration::ZERO, Duration::from_us(3)), Time::from_us(36));
    }

    /// Two servers of four GPUs; each pair of GPUs shares a NIC of 100 Gb/s.
    fn cluster(scale_up: &str) -> Topology {
        let text = format!(
            "kind = 'cluster'
             servers = 2
             attach = 'server'
             server = {{ gpus = 4, nics = 2, pcie_rate = '160Gbps'{scale_up} }}
             scale_out = {{ kind = 'leaf-spine', leaves = 2, spines = 2, hosts_per_leaf = 2, host_rate = '100Gbps' }}"
        );
        let config: pathweave_topo::TopologyConfig = toml::from_str(&text).unwrap();
        config.build(std::path::Path::new(".")).unwrap()
    }

    fn bounds(topology: &Topology, flows: Vec<crate::kinds::FlowSpec>) -> Bounds {
        let graph = graph_of(8, Traffic::Flows(Flows { flows, ..Flows::default() }));
        Bounds::on_topology((&graph, Awaited::ALL), Duration::ZERO, topology)
    }

    /// GPUs 0 and 1 send 1 MB each over their NIC: 16 Mb at 100 Gb/s. Each alone takes 80 us at the NIC's rate, not
    /// 50 us at that of PCIe.
    #[test]
    fn a_shared_nic_bounds_its_gpus_together() {
        let flows = vec![flow_at(0, 4, 1_000_000, 0), flow_at(1, 6, 1_000_000, 0)];
        let of_nic = bounds(&cluster(""), flows);
        assert_eq!((of_nic.links, of_nic.chain), (Time::from_us(160), Time::from_us(80)));
        let apart = vec![flow_at(0, 4, 1_000_000, 0), flow_at(2, 6, 1_000_000, 0)];
        assert_eq!(bounds(&cluster(""), apart).completion(), Time::from_us(80));
    }

    /// GPU 0 sends 1 MB to GPU 1 at the same NIC and 1 MB to server 1: 100 us at its 160 Gb/s to the NIC, of which one half
    /// leaves the NIC in 80 us at 100 Gb/s. GPU 2 is at the other NIC, so that both megabytes leave: 160 us.
    #[test]
    fn what_a_shared_nic_returns_does_not_leave_it() {
        let to = |near| vec![flow_at(0, near, 1_000_000, 0), flow_at(0, 4, 1_000_000, 0)];
        let of = |near| bounds(&cluster(""), to(near));
        assert_eq!((of(1).links, of(1).chain), (Time::from_us(100), Time::from_us(80)));
        assert_eq!(of(2).links, Time::from_us(160));
    }

    /// 1 MB at 8 Gb/s takes 1 ms in the awaited group. The other group would take 4 ms.
    #[test]
    fn traffic_that_is_cut_off_does_not_count() {
        let flows = |size| Traffic::Flows(Flows { flows: vec![flow_at(0, 1, size, 0)], ..Flows::default() });
        let workloads = [("first", 1_000_000), ("second", 4_000_000)].map(|(group, size)| WorkloadConfig {
            group: Some(group.to_owned()),
            ..WorkloadConfig::new(flows(size))
        });
        let graph = build(&workloads, &WorkloadEnv::new(2, rate(HostId(0)))).unwrap().graph;
        let star = Star { rate: rate(HostId(0)), ..Star::new(2) }.build(std::path::Path::new(".")).unwrap();
        let bounds = |awaited| Bounds::on_topology((&graph, awaited), Duration::ZERO, &star);
        let first = bounds(Awaited::of_groups(&|group| group.index() == 0));
        assert_eq!((first.links, first.chain), (Time::from_us(1_000), Time::from_us(1_000)));
        assert_eq!((first.sent_bytes, first.received_bytes), (vec![1_000_000, 0], vec![0, 1_000_000]));
        let all = bounds(Awaited::ALL);
        assert_eq!((all.links, all.chain), (Time::from_us(5_000), Time::from_us(4_000)));
    }

    /// Host 1 receives at 2 Gb/s and sends at 8 Gb/s: 1 MB to it takes 4 ms, and 1 MB from it 1 ms.
    #[test]
    fn each_direction_of_a_link_bounds_what_it_carries() {
        let mut star =
            Star { rate: rate(HostId(0)), ..Star::new(2) }.build(std::path::Path::new(".")).unwrap();
        let (link, ways) = star.ways_by_name("switch0->host1").unwrap();
        star.set_rate(link, ways, Rate::from_gbps(2));
        for (from, to, us) in [(0, 1, 4_000), (1, 0, 1_000)] {
            let flows = vec![flow_at(from, to, 1_000_000, 0)];
            let graph = graph_of(2, Traffic::Flows(Flows { flows, ..Flows::default() }));
            let bounds = Bounds::on_topology((&graph, Awaited::ALL), Duration::ZERO, &star);
            assert_eq!(
                (bounds.links, bounds.chain),
                (Time::from_us(us), Time::from_us(us)),
                "{from} to {to}"
            );
        }
    }

    /// 1 MB inside a server takes 10 us over scale-up links of 800 Gb/s, fluid or as packets, and does not load the NIC.
    #[test]
    fn scale_up_does_not_load_the_nic() {
        for packets in [false, true] {
            let scale_up =
                format!(", scale_up = {{ kind = 'switch', rate = '800Gbps', packets = {packets} }}");
            let flows = vec![flow_at(0, 1, 1_000_000, 0), flow_at(0, 4, 100_000, 0)];
            let both = bounds(&cluster(&scale_up), flows);
            assert_eq!(
                (both.links, both.chain),
                (Time::from_us(10), Time::from_us(10)),
                "packets = {packets}"
            );
        }
    }
}
