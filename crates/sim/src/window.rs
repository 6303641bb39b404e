//! A window of simulated time: first the hosts, then the fabric.

use pathweave_fabric::prefetch_line;
use pathweave_transport::Warm;
use pathweave_units::{Duration, HostId, Rate, Time};

use crate::coupling::SentWhole;
use crate::host::Nic;
use crate::runner::Runner;

/// Packets of a port that are loaded ahead of a host's window: about as many as reach it in one.
const PACKETS: usize = 6;

/// The processor's caches, for endpoints.
struct Cache;

impl Warm for Cache {
    #[inline(always)]
    fn warm<T>(&mut self, place: &T, line: usize) {
        prefetch_line(place, line);
    }
}

impl<const C: usize> Runner<'_, C> {
    /// Simulates everything from `start` to before `end`, hosts first: what they do in a window reaches no switch in it,
    /// nor the other way round. Returns when the last flow finished, if it did.
    pub(crate) fn run_window(&mut self, start: Time, end: Time) -> Option<Time> {
        self.couple_tasks(end);
        self.couple_ends(start, end);
        let over = self.run_together(end);
        // So that what is recorded does not depend on where the window would have ended.
        let end = over.unwrap_or(end);
        let over = self.run_apart(end).or(over);
        self.fabric.run_until(end);
        if over.is_none() && self.fabric.has_log() {
            self.record_log();
        }
        over
    }

    /// Finds the tasks that begin before `end`.
    fn couple_tasks(&mut self, end: Time) {
        self.coupling.begin_window(&self.spec.graph, self.execution.due_before(end));
    }

    /// Finds the messages that may end before `end`.
    fn couple_ends(&mut self, start: Time, end: Time) {
        while let Some(sent) = self.coupling.pop_sent_whole(end) {
            let not_before = start + self.shortest_rest(sent).unwrap_or(Duration::ZERO);
            if not_before >= end {
                self.coupling.sent_whole(not_before, sent);
            } else {
                self.coupling.may_end(&self.spec.graph, sent.message);
            }
        }
    }

    /// What it takes at least until all of a message has arrived.
    fn shortest_rest(&self, sent: SentWhole) -> Option<Duration> {
        let connection = &self.execution.connections[self.execution.connections.of(sent.message.0)];
        let (src, dst) = (&self.hosts[connection.src.index()], &self.hosts[connection.dst.index()]);
        let (_, at_dst) = *connection.queue_pairs.iter().find(|(at_src, _)| *at_src == sent.qp)?;
        let missing = dst.endpoint.missing_of(at_dst, src.endpoint.psns_of(sent.qp, sent.msn)?)?;
        // Packets arrive one after the other. The first may be there at once, and the last one be short.
        let full_packets = missing.saturating_sub(2);
        let rate: u64 = dst.nic.ports().map(|port| self.fabric.link(port).0.as_bps()).sum();
        Some(Rate::from_bps(rate).time_for(full_packets * self.spec.host.mtu.get()))
    }

    /// Takes the hosts between which something may pass through the window, in order of time. Returns when the last flow
    /// finished, if it did.
    fn run_together(&mut self, end: Time) -> Option<Time> {
        self.together_until = end;
        let (fabric, queue) = (&self.fabric, &mut self.queue);
        let mut schedule = |host: HostId| {
            let due = fabric.host_due(host);
            if due < end {
                queue.schedule_no_later(host.0, due);
            }
        };
        match self.coupling.together() {
            // Datagrams have side channels, by which hosts reach each other.
            Some(hosts) if self.beyond.is_none() => hosts.for_each(schedule),
            _ => (0..self.hosts.len() as u32).for_each(|host| schedule(HostId(host))),
        }
        let mut over = None;
        while let Some((now, source)) = self.queue.pop_before(end) {
            self.look_ahead();
            self.latest = now;
            if source < self.work_source() {
                self.run_host(source as usize, now);
                let due = self.fabric.host_due(HostId(source));
                if due < end {
                    self.queue.schedule_no_later(source, due);
                }
            } else if source == self.work_source() {
                self.host_events += 1;
                self.on_work(now);
            } else {
                self.host_events += 1;
                self.on_later(now);
            }
            if self.execution.is_over() {
                over = Some(now);
                break;
            }
        }
        self.together_until = Time::ZERO;
        over
    }

    /// Takes every other host through the window, one by one. Returns when the last flow finished, if it did: in failure,
    /// which [`Coupling`](crate::coupling::Coupling) does not foresee.
    fn run_apart(&mut self, end: Time) -> Option<Time> {
        let last = Time::from_ps(end.as_ps().checked_sub(1)?);
        self.apart_until = end;
        let was_over = self.execution.is_over();
        let mut active = std::mem::take(&mut self.active);
        active.clear();
        active.extend(self.fabric.hosts_due(end));
        for (turn, host) in active.iter().enumerate() {
            let ahead = |turns: usize| active.get(turn + turns).copied();
            ahead(5).into_iter().for_each(|host| self.load_host(host));
            ahead(4).into_iter().for_each(|host| self.load_packets(host));
            ahead(3).into_iter().for_each(|host| self.load_contents(host, PACKETS));
            ahead(2).into_iter().for_each(|host| self.load_queue_pairs(host, PACKETS));
            ahead(1).into_iter().for_each(|host| self.load_depths(host, PACKETS));
            self.run_host(host.index(), last);
        }
        self.active = active;
        self.apart_until = Time::ZERO;
        (self.execution.is_over() && !was_over).then_some(last)
    }

    /// Executes what happens at a host up to `last`, in order of time; at one instant arrivals, then the transmitter, then
    /// timers.
    #[inline]
    fn run_host(&mut self, host: usize, last: Time) {
        let due = loop {
            let Nic { wake, alarm, .. } = self.hosts[host].nic;
            let (arrival, port) = self.fabric.next_arrival(self.hosts[host].nic.ports());
            let now = arrival.min(wake).min(alarm);
            if now > last {
                break now;
            }
            self.host_events += 1;
            self.latest = self.latest.max(now);
            if arrival == now {
                let step = self.fabric.on_arrival(now, port);
                self.on_step(now, step);
            } else if wake == now {
                self.hosts[host].on_wake();
                self.transmit(now, host);
            } else {
                self.hosts[host].on_alarm(now);
                self.after_input(now, host);
            }
        };
        self.fabric.set_host_due(HostId(host as u32), due);
    }

    /// Loads what the next events will touch while this one is executed: memory is what they wait for. Each stage needs
    /// what the one before it has loaded.
    #[inline(always)]
    fn look_ahead(&self) {
        let Some(upcoming) = self.queue.upcoming([2, 4, 8, 12, 16]) else { return };
        let [depths, queue_pairs, contents, packets, host] = upcoming.map(|source| {
            // Something else than a host is as good as any host.
            HostId(if source < self.work_source() { source } else { 0 })
        });
        self.load_host(host);
        self.load_packets(packets);
        self.load_contents(contents, 1);
        self.load_queue_pairs(queue_pairs, 1);
        self.load_depths(depths, 1);
    }

    /// Begins to load endpoint, NIC and ports of a host.
    #[inline(always)]
    fn load_host(&self, host: HostId) {
        self.hosts[host.index()].warm(&mut Cache);
        self.fabric.prefetch_host(self.map.ports(host.0));
    }

    /// Then the packets that arrive, and the queue pair that sends next.
    #[inline(always)]
    fn load_packets(&self, host: HostId) {
        self.fabric.prefetch_arrivals(self.map.ports(host.0));
        self.hosts[host.index()].endpoint.warm_next(&mut Cache);
    }

    /// Then what they carry.
    #[inline(always)]
    fn load_contents(&self, host: HostId, packets: usize) {
        self.fabric.prefetch_contents(self.map.ports(host.0), packets);
    }

    /// Then the queue pairs they belong to.
    #[inline(always)]
    fn load_queue_pairs(&self, host: HostId, packets: usize) {
        for port in self.map.ports(host.0) {
            for segment in self.fabric.coming(port).take(packets) {
                self.hosts[host.index()].endpoint.warm_packet(segment, &mut Cache);
            }
        }
    }

    /// Then what those keep of each packet.
    #[inline(always)]
    fn load_depths(&self, host: HostId, packets: usize) {
        let endpoint = &self.hosts[host.index()].endpoint;
        endpoint.warm_next_depths(&mut Cache);
        for port in self.map.ports(host.0) {
            for segment in self.fabric.coming(port).take(packets) {
                endpoint.warm_depths(segment, &mut Cache);
            }
        }
    }
}

#[cfg(test)]
mod tests {

    use pathweave_fabric::config::FaultConfig;
    use pathweave_results::EndReason;
    use pathweave_topo::{Build, LeafSpine};
    use pathweave_units::Bytes;
    use pathweave_workload::{
        MessageGraph, Pattern, Permutation, Placement, RingAllReduce, Traffic, WorkloadConfig, WorkloadEnv,
        build,
    };

    use crate::monitor::Quiet;
    use crate::runner::Runner;
    use crate::spec::{NamedScheme, SimSpec};

    use super::*;

    fn spec(scheme: &str, traffic: Traffic, faults: Vec<FaultConfig>) -> SimSpec {
        let fabric = LeafSpine { host_rate: Rate::from_gbps(100), ..LeafSpine::new(4, 4, 4) };
        let env = WorkloadEnv::new(16, Rate::from_gbps(100));
        let graph: MessageGraph = build(&[WorkloadConfig::new(traffic)], &env).expect("it fits").graph;
        let topology = fabric.build(".".as_ref()).expect("a leaf-spine");
        let scheme = NamedScheme::find(scheme).expect("it exists");
        SimSpec { faults, ..SimSpec::new("test", topology, graph, scheme) }
    }

    /// The outcome, once with all hosts in order of time in every window and once with those alone that have to be.
    fn both_ways(spec: &SimSpec) -> [(u64, u64, String); 2] {
        [true, false].map(|all| {
            let mut runner = Runner::<2>::new(spec).expect("a sound spec");
            if all {
                runner.coupling.couple_all();
            }
            let result = runner.run(&mut Quiet);
            assert_eq!(result.info.ended, EndReason::Completed, "{}", result.info.ended_detail);
            (result.info.digest, result.info.events, format!("{:?}", result.flows))
        })
    }

    #[test]
    fn hosts_one_by_one_do_what_they_do_together() {
        let permutation = |size, repetitions| {
            Traffic::Permutation(Permutation {
                size: Bytes::new(size),
                pattern: Pattern::Shift,
                shift: Some(5),
                flows: None,
                repetitions,
            })
        };
        let loss = FaultConfig::LinkLoss {
            link: "leaf0-spine0".into(),
            at: Duration::from_us(10),
            probability: 0.02,
            until: None,
        };
        for scheme in ["rps", "udmp", "qp-scaling", "ecmp", "dlbf"] {
            let rings = Traffic::RingAllReduce(RingAllReduce {
                size: Bytes::new(400_000),
                group_size: Some(8),
                placement: Placement::default(),
                repetitions: 2,
                compute: Duration::from_us(3),
            });
            for traffic in [permutation(300_000, 1), permutation(20_000, 3), rings] {
                let [together, apart] = both_ways(&spec(scheme, traffic.clone(), vec![]));
                assert_eq!(together, apart, "{scheme} {traffic:?}");
                let [together, apart] = both_ways(&spec(scheme, traffic.clone(), vec![loss.clone()]));
                assert_eq!(together, apart, "{scheme} {traffic:?}, with losses");
            }
        }
    }
}
