//! Execution of one window of simulated time: first the hosts, then the fabric.

use pathweave_fabric::{ARRIVALS_AHEAD, prefetch_line};
use pathweave_transport::Prefetch;
use pathweave_units::{HostId, QpNum, Time};
use pathweave_wire::Body;

use crate::agenda::{Item, Rank};
use crate::host::Nic;
use crate::mailbox::Mailboxes;
use crate::partition::ShardLayout;
use crate::shard::Shard;
use crate::transfer::RemoteItem;

/// Number of packets of a port that are prefetched ahead of a host's window. Packets behind them are loaded during
/// the window.
const PACKETS: usize = ARRIVALS_AHEAD as usize;

/// Prefetcher of the processor's caches, for endpoints.
struct Cache;

impl Prefetch for Cache {
    #[inline(always)]
    fn warm<T>(&mut self, place: &T, line: usize) {
        prefetch_line(place, line);
    }
}

impl<const C: usize> Shard<'_, C> {
    /// Simulates window number `window`, which ends at `end`. Takes the events that others sent in the window before,
    /// and sends its own.
    pub(crate) fn round(&mut self, end: Time, boxes: &Mailboxes, window: usize) {
        self.take_in(boxes, window + 1);
        self.run_window(end);
        self.send_out(boxes, window);
        self.look_ahead();
    }

    /// Takes the events that other shards sent in a window.
    pub(crate) fn take_in(&mut self, boxes: &Mailboxes, window: usize) {
        let ShardLayout { number, parts, .. } = self.place;
        for from in (0..parts).filter(|from| *from != number) {
            let mut post = boxes.slot(window, from, number);
            post.unpack();
            self.network.fabric.take_over(&mut post.packets);
            for RemoteItem { at, to, rank, item } in post.items.drain(..) {
                self.deliver_due(at, to, rank, item);
            }
        }
    }

    /// Sends events to other shards.
    pub(crate) fn send_out(&mut self, boxes: &Mailboxes, window: usize) {
        if !self.place.is_all() {
            self.sent_due = self.outbox.send(self.place.number, boxes, window, &mut self.network.fabric);
        }
    }

    /// Recomputes the time of the next event of this shard.
    pub(crate) fn look_ahead(&mut self) {
        let execution = &self.traffic.execution;
        self.next =
            execution.next().unwrap_or(Time::MAX).min(self.network.fabric.next_due()).min(self.sent_due);
        if let Some(carrier) = &self.scale_up {
            // Hosts learn of an arrival with the window that ends no earlier than one latency before it.
            self.next = self.next.min(carrier.next().saturating_sub(carrier.delay()));
        }
    }

    /// Simulates everything before `end`, hosts first and one by one. The actions of a host cannot reach another host
    /// in the same window, because packets and all other effects take longer than a window.
    fn run_window(&mut self, end: Time) {
        self.windows.end = end;
        while let Some(due) = self.traffic.execution.root_before(end) {
            self.deliver_due(due.at, due.host, Rank::Step(due.step), Item::Step(due.step));
        }
        self.run_hosts(end);
        self.run_scale_up(end);
        self.network.fabric.run_until(end);
    }

    fn run_hosts(&mut self, end: Time) {
        let Some(last) = end.as_ps().checked_sub(1).map(Time::from_ps) else { return };
        let mut active = std::mem::take(&mut self.windows.active);
        active.clear();
        active.extend(self.network.fabric.hosts_due(end));
        #[cfg(test)]
        if let Some(rng) = &mut self.windows.shuffle {
            rng.shuffle(&mut active);
        }
        for (turn, host) in active.iter().enumerate() {
            let ahead = |turns: usize| active.get(turn + turns).copied();
            ahead(5).into_iter().for_each(|host| self.load_host(host));
            ahead(4).into_iter().for_each(|host| self.load_packets(host));
            ahead(3).into_iter().for_each(|host| self.load_contents(host, PACKETS));
            ahead(2).into_iter().for_each(|host| self.load_queue_pairs(host, PACKETS));
            ahead(1).into_iter().for_each(|host| self.load_depths(host, PACKETS));
            self.run_host(host.index(), last);
        }
        self.windows.active = active;
    }

    /// Executes the events of a host up to `last`, in order of time. At one instant, arrivals come first, then the
    /// transmitter, then timers.
    #[inline]
    fn run_host(&mut self, host: usize, last: Time) {
        let place = self.hosts.place_of(host);
        let ports = self.hosts.at(place).nic.ports();
        let due = loop {
            let Nic { wake, alarm, .. } = self.hosts.at(place).nic;
            let (arrival, port) = self.network.fabric.next_arrival(ports.clone());
            let now = arrival.min(wake).min(alarm);
            if now > last {
                break now;
            }
            self.host_events += 1;
            self.latest = self.latest.max(now);
            if arrival == now {
                let step = self.network.fabric.on_arrival(now, port);
                self.on_step_at(now, place, step);
            } else if wake == now {
                self.hosts.at_mut(place).on_wake();
                self.transmit_at(now, place);
            } else {
                self.hosts.at_mut(place).on_alarm(now);
                self.on_agenda(now, host);
                self.after_input(now, host);
            }
        };
        self.network.fabric.set_host_due(HostId(host as u32), due);
    }

    /// Prefetches the endpoint, NIC and ports of a host.
    #[inline(always)]
    fn load_host(&self, host: HostId) {
        self.hosts[host.index()].warm(&mut Cache);
        self.network.fabric.prefetch_host(self.network.fabric.numbers().ports(host.0));
    }

    /// Prefetches the arriving packets and the queue pair that sends next.
    #[inline(always)]
    fn load_packets(&self, host: HostId) {
        self.network.fabric.prefetch_arrivals(self.network.fabric.numbers().ports(host.0));
        self.hosts[host.index()].endpoint.warm_next(&mut Cache);
    }

    /// Prefetches the contents of arriving packets.
    #[inline(always)]
    fn load_contents(&self, host: HostId, packets: usize) {
        self.network.fabric.prefetch_contents(self.network.fabric.numbers().ports(host.0), packets);
    }

    /// Prefetches the queue pairs of arriving packets. Successive packets are mostly for the same ones: one that
    /// receives data, and one that receives acknowledgements.
    #[inline(always)]
    fn load_queue_pairs(&self, host: HostId, packets: usize) {
        let endpoint = &self.hosts[host.index()].endpoint;
        let mut loaded = [QpNum(u32::MAX); 2];
        for port in self.network.fabric.numbers().ports(host.0) {
            for segment in self.network.fabric.coming(port).take(packets) {
                let loaded = &mut loaded[usize::from(matches!(segment.body, Body::Data(_)))];
                if *loaded != segment.dst_qp {
                    *loaded = segment.dst_qp;
                    endpoint.warm_packet(segment, &mut Cache);
                }
            }
        }
    }

    /// Prefetches the state that these queue pairs hold for each packet.
    #[inline(always)]
    fn load_depths(&self, host: HostId, packets: usize) {
        let endpoint = &self.hosts[host.index()].endpoint;
        endpoint.warm_next_depths(&mut Cache);
        for port in self.network.fabric.numbers().ports(host.0) {
            for segment in self.network.fabric.coming(port).take(packets) {
                endpoint.prefetch_packet_state(segment, &mut Cache);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use pathweave_fabric::config::FaultConfig;
    use pathweave_records::{EndReason, RunResult};
    use pathweave_topo::{Build, LeafSpine};
    use pathweave_units::{Bytes, Duration, Rate, Rng};
    use pathweave_workload::{
        MessageGraph, Pattern, Permutation, Placement, RingAllReduce, Traffic, WorkloadConfig, WorkloadEnv,
        build,
    };

    use crate::division::Division;
    use crate::footprint::Weight;
    use crate::monitor::NoMonitor;
    use crate::partition::Partition;
    use crate::ranks::{InProcess, RankExchange};
    use crate::runner::Runner;
    use crate::spec::{NamedScheme, SimSpec};

    /// Sets queue limits of a few packets, at which switches trim.
    fn trimming(mut spec: SimSpec) -> SimSpec {
        spec.switch.pfc.enabled = false;
        spec.switch.trim.enabled = true;
        spec.switch.trim.queue = Bytes::new(12_000);
        spec
    }

    fn spec(scheme: &str, traffic: Traffic, faults: Vec<FaultConfig>) -> SimSpec {
        let fabric = LeafSpine { host_rate: Rate::from_gbps(100), ..LeafSpine::new(4, 4, 4) };
        let env = WorkloadEnv::new(16, Rate::from_gbps(100));
        let graph: MessageGraph = build(&[WorkloadConfig::new(traffic)], &env).expect("it fits").graph;
        let topology = fabric.build(".".as_ref()).expect("a leaf-spine");
        let scheme = NamedScheme::find(scheme).expect("it exists");
        SimSpec { faults, ..SimSpec::new("test", topology, graph, scheme) }
    }

    /// Runs one rank. Returns its state at the end.
    fn play<'a>(
        spec: &'a SimSpec,
        seed: Option<u64>,
        division: &Division,
        meeting: RankExchange<'a>,
    ) -> Option<(RunResult, Weight)> {
        let mut runner = Runner::<2>::new(spec, division, meeting).expect("a sound spec");
        runner.shuffle = seed.map(|seed| Rng::for_component(seed, "windows", 0));
        for shard in runner.shards() {
            shard.windows.shuffle = seed.map(|seed| Rng::for_component(seed, "hosts", 0));
        }
        runner.run(&mut NoMonitor)
    }

    /// Returns the outcome of a run. With `seed`, hosts run in random order, in windows of random length. Without it
    /// they run in the order of their numbers, in the longest windows. Nodes are divided at random among `parts`
    /// shards, with a thread each, and the shards among `ranks`.
    fn outcome(spec: &SimSpec, seed: Option<u64>, parts: u16, ranks: u16) -> (u64, String) {
        let mut rng = Rng::for_component(seed.unwrap_or(0), "parts", u64::from(parts));
        let nodes = spec.topology.nodes();
        let of_node = (0..nodes).map(|_| rng.below(u32::from(parts)) as u16).collect();
        let partition = Partition::of_nodes(of_node);
        let result = if ranks == 1 {
            play(spec, seed, &Division::of(partition, &[parts], nodes), RankExchange::alone())
        } else {
            let threads = vec![parts.div_ceil(ranks); usize::from(ranks)];
            let division = Division::of(partition, &threads, nodes);
            std::thread::scope(|scope| {
                let start = |mut own: InProcess| {
                    let division = &division;
                    scope.spawn(move || play(spec, seed, division, RankExchange::of(&mut own)))
                };
                let running: Vec<_> = InProcess::ranks(ranks).into_iter().map(start).collect();
                let results: Vec<_> =
                    running.into_iter().map(|rank| rank.join().expect("no panic")).collect();
                assert!(results[1..].iter().all(Option::is_none), "rank 0 has the result");
                results.into_iter().next().flatten()
            })
        };
        let (result, _) = result.expect("it is at hand");
        assert_eq!(result.info.ended, EndReason::Completed, "{}", result.info.ended_detail);
        (result.info.digest, format!("{:?}", (result.flows, result.jobs)))
    }

    /// Actions of a host reach no other host in the same window. Results therefore depend neither on the order of
    /// hosts, nor on the ends of windows, nor on the assignment of nodes to threads and ranks.
    #[test]
    fn neither_the_order_of_hosts_nor_windows_nor_threads_nor_ranks_show() {
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
        const TRIMMED: [&str; 3] = ["rps", "uet-nscc", "udmp"];
        let schemes = [
            "rps",
            "udmp",
            "uet-nscc",
            "qp-scaling",
            "ecmp",
            "dlbf",
            "laps",
            "erd-uncontrolled",
            "rd",
            "xrc",
        ];
        for scheme in schemes {
            let rings = Traffic::RingAllReduce(RingAllReduce {
                size: Bytes::new(400_000),
                group_size: Some(8.into()),
                placement: Placement::default(),
                repetitions: 2,
                compute: Duration::from_us(3),
            });
            for traffic in [permutation(300_000, 1), permutation(20_000, 3), rings] {
                let trims =
                    TRIMMED.contains(&scheme).then(|| trimming(spec(scheme, traffic.clone(), vec![])));
                let lossy = [vec![], vec![loss.clone()]].map(|faults| spec(scheme, traffic.clone(), faults));
                for spec in lossy.into_iter().chain(trims) {
                    let expected = outcome(&spec, None, 1, 1);
                    for (seed, parts, ranks) in
                        [(Some(1), 1, 1), (Some(2), 3, 1), (None, 2, 1), (Some(3), 4, 2), (None, 3, 3)]
                    {
                        let found = outcome(&spec, seed, parts, ranks);
                        assert_eq!(
                            found, expected,
                            "{scheme} {traffic:?} seed {seed:?}, {parts} parts, {ranks} ranks"
                        );
                    }
                }
            }
        }
    }
}
