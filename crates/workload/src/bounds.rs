//! How fast a workload could be on a perfect fabric.

use pathweave_units::{Duration, HostId, Rate, Time};

use crate::graph::{MessageGraph, Task, TaskId};

/// Lower bounds on completion. They count payload only (no headers, no propagation), so that no run, whatever
/// its scheme and framing, can be faster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Payload each host sends, bytes.
    pub sent_bytes: Vec<u64>,
    /// Payload each host receives, bytes.
    pub received_bytes: Vec<u64>,
    /// No run ends before: the busiest host link, with regard to when its messages may start.
    pub links: Time,
    /// No run ends before: the longest chain of dependencies, each message alone on its links.
    pub chain: Time,
}

impl Bounds {
    /// Bounds of `graph`, where `rate` tells how fast a host can send and receive.
    pub fn of(graph: &MessageGraph, rate: impl Fn(HostId) -> Rate) -> Self {
        let hosts = graph.hosts() as usize;
        let rates: Vec<Rate> = (0..graph.hosts()).map(|h| rate(HostId(h))).collect();
        let mut bounds = Bounds {
            sent_bytes: vec![0; hosts],
            received_bytes: vec![0; hosts],
            links: Time::ZERO,
            chain: chain(graph, &rates),
        };
        // From the last to the first: what starts at or after an instant needs its time after that instant.
        for message in graph.messages().iter().rev() {
            let ends = [
                (&mut bounds.sent_bytes[message.src.index()], rates[message.src.index()]),
                (&mut bounds.received_bytes[message.dst.index()], rates[message.dst.index()]),
            ];
            for (bytes, rate) in ends {
                *bytes += message.size.get();
                bounds.links = bounds.links.max(message.start.saturating_add(rate.time_for(*bytes)));
            }
        }
        bounds
    }

    /// No run ends before this instant.
    pub fn completion(&self) -> Time {
        self.links.max(self.chain)
    }
}

/// End of the longest chain. Tasks are visited as their predecessors are done.
fn chain(graph: &MessageGraph, rates: &[Rate]) -> Time {
    let time_of = |id: TaskId| match graph.task(id) {
        Task::Compute(compute) => compute.duration,
        Task::Message(m) => {
            let rate = rates[m.src.index()].min(rates[m.dst.index()]);
            rate.time_for(m.size.get())
        }
    };
    let tasks = graph.task_count() as u32;
    let finish = |id: TaskId, ready: Time| ready.max(graph.start(id)).saturating_add(time_of(id));
    if !graph.has_dependencies() {
        return (0..tasks).map(|i| finish(TaskId(i), Time::ZERO)).max().unwrap_or_default();
    }
    let mut waiting: Vec<u32> = (0..tasks).map(|i| graph.predecessors(TaskId(i))).collect();
    let mut ready: Vec<(Time, Duration)> =
        (0..tasks).map(|i| (Time::ZERO, graph.delay_after_deps(TaskId(i)))).collect();
    let mut free: Vec<TaskId> = (0..tasks).map(TaskId).filter(|id| waiting[id.index()] == 0).collect();
    let mut last = Time::ZERO;
    while let Some(id) = free.pop() {
        let (after, delay) = ready[id.index()];
        let end = finish(id, after.saturating_add(delay));
        last = last.max(end);
        for &next in graph.dependents(id) {
            ready[next.index()].0 = ready[next.index()].0.max(end);
            waiting[next.index()] -= 1;
            if waiting[next.index()] == 0 {
                free.push(next);
            }
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use pathweave_units::Bytes;

    use super::*;
    use crate::kinds::{Flows, Placement, RingAllReduce, Traffic};
    use crate::testing::{flow_at, graph_of};

    /// A nanosecond a byte.
    fn rate(_: HostId) -> Rate {
        Rate::from_gbps(8)
    }

    #[test]
    fn the_busiest_link_with_regard_to_starts() {
        // Host 2 receives 1000 bytes from 0 us on, idles, and 3000 more from 10 us on.
        let flows = vec![flow_at(0, 2, 1000, 0), flow_at(0, 2, 1000, 10), flow_at(1, 2, 2000, 10)];
        let graph = graph_of(3, Traffic::Flows(Flows { flows, ..Flows::default() }));
        let bounds = Bounds::of(&graph, rate);
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
        let bounds = Bounds::of(&graph_of(4, Traffic::RingAllReduce(ring)), rate);
        assert_eq!((bounds.links, bounds.chain), (Time::from_us(12), Time::from_us(20)));
    }
}
