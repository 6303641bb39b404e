//! Attribution of the time of flows to the causes that they wait for. At a sample, each sender in progress reports
//! its cause, and the packets of its messages are located in queues and on links. The time since the previous
//! examination (a *look*) is divided in proportion to the packets at each link.
//!
//! Looks take place outside the packet path. They are skipped if they would take more than a small fraction of
//! the run.

use std::collections::{BTreeMap, BTreeSet};

use borsh::{BorshDeserialize, BorshSerialize};
use pathweave_fabric::{Header, Held, Stopped};
use pathweave_records::{FlowRecord, Role, WaitKind, WaitRecord};
use pathweave_transport::Waiting;
use pathweave_units::{Duration, Time};
use pathweave_wire::{Body, Segment};

use crate::locked_shards::LockedShards;
use crate::spec::SimSpec;

/// Fraction of an interval that a link must be sending to count as busy.
pub(crate) const BUSY: f64 = 0.8;
/// Number of packets and queue pairs that may be examined at no charge, and number of packet-hops that permit the
/// examination of one more.
const FREE_LOOKS: u64 = 2_000_000;
const HOPS_A_LOOK: u64 = 32;
/// Number of messages of a queue pair that are examined at a look. Those behind them wait for these.
const MESSAGES: u32 = 4;
/// Largest number of queue pairs of a host that are examined at a look.
const QUEUE_PAIRS: usize = 64;
/// Number of flows with records, and number of flows in memory above which the least delayed are dropped.
const SLOWEST: usize = 256;
const REMEMBERED: usize = 1 << 14;
/// Largest number of links remembered for a flow.
const LINKS: usize = 256;

/// Key of a queue pair: its host and number.
type Key = (u32, u32);

/// Location of packets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
enum PacketLocation {
    Queued,
    Paused,
    Travelling,
    /// Acknowledgements that travel back to the sender.
    Answering,
}

/// Packets and queue pairs of this process's nodes at one instant.
#[derive(Default, BorshSerialize, BorshDeserialize)]
pub(crate) struct Observation {
    senders: Vec<Sender>,
    /// Number of packets of each queue pair by location and link.
    packets: BTreeMap<(Key, PacketLocation, u32), u32>,
    busy: Vec<u32>,
    looked_at: u64,
}

/// Queue pair with messages in progress.
#[derive(BorshSerialize, BorshDeserialize)]
struct Sender {
    key: Key,
    /// The messages.
    flows: Vec<u32>,
    /// Kind of wait, unless the packets determine another.
    kind: u8,
    /// Stopped port of the host, or its first port.
    port: u32,
    /// End of the host's range of ports.
    ports_end: u32,
}

impl<const C: usize> LockedShards<'_, '_, C> {
    /// Examines all messages in progress and all packets. `busy` holds the links that were busy since the last
    /// sample.
    pub(crate) fn observe(&self, busy: Vec<u32>) -> Observation {
        let mut sight = Observation { busy, ..Observation::default() };
        for host in self.hosts() {
            sight.looked_at += host.outgoing.len() as u64;
            let Some(shard) = self.shard_of_node_ref(host.nic.host.0) else { continue };
            let (ports, numbers) = (host.nic.ports(), shard.network.fabric.numbers());
            let busy = host.outgoing.iter().filter_map(|(&qp, flows)| {
                let waiting = host.endpoint.waiting(qp)?;
                Some((qp, flows, waiting))
            });
            for (qp, flows, waiting) in busy.take(QUEUE_PAIRS) {
                let open = host.endpoint.under_way(qp);
                let last = open.end.min(open.start + MESSAGES).min(flows.len() as u32);
                let first = open.start.min(last);
                let stopped =
                    || ports.clone().find_map(|port| Some((port, shard.network.fabric.stopped(port)?)));
                let stopped = if waiting == Waiting::Port { stopped() } else { None };
                sight.senders.push(Sender {
                    key: (host.nic.host.0, qp.0),
                    flows: flows[first as usize..last as usize].to_vec(),
                    kind: kind_of(waiting, stopped.map(|(_, why)| why)) as u8,
                    port: numbers.global(stopped.map_or(ports.start, |(port, _)| port)),
                    ports_end: numbers.global(ports.end - 1) + 1,
                });
            }
        }
        for shard in &self.shards {
            let fabric = &shard.network.fabric;
            let numbers = fabric.numbers();
            for port in 0..numbers.held() as u32 {
                let mut add = |header: &Header, segment: &Segment, place, link| {
                    let (key, place) = match segment.body {
                        Body::Data(_) => ((header.src().0, segment.src_qp.0), place),
                        Body::Rd(_) => return,
                        _ => ((header.dst().0, segment.dst_qp.0), PacketLocation::Answering),
                    };
                    *sight.packets.entry((key, place, numbers.global(link))).or_default() += 1;
                    sight.looked_at += 1;
                };
                // Packets that have just left may not have been transferred to the shard where they arrive.
                for (header, segment) in fabric.in_flight_to(port) {
                    add(header, segment, PacketLocation::Travelling, fabric.peer(port));
                }
                if !shard.place.has(fabric.ends(port).0) {
                    continue;
                }
                for (header, segment, held) in fabric.waiting_at(port) {
                    let place =
                        if held == Held::Paused { PacketLocation::Paused } else { PacketLocation::Queued };
                    add(header, segment, place, port);
                }
            }
        }
        sight
    }
}

/// Returns the kind of wait of a sender without regard to its packets. `stopped` is the reason why a port of its host
/// is stopped.
fn kind_of(waiting: Waiting, stopped: Option<Stopped>) -> WaitKind {
    match waiting {
        Waiting::Port => match stopped {
            Some(Stopped::Down) => WaitKind::Down,
            Some(Stopped::Paused) => WaitKind::Pause,
            None => WaitKind::Port,
        },
        Waiting::Pacing | Waiting::Policy => WaitKind::Control,
        Waiting::Credit => WaitKind::Credit,
        Waiting::Window => WaitKind::Window,
        Waiting::Receiver => WaitKind::Receiver,
        Waiting::Answers => WaitKind::Travel,
    }
}

/// Time of a flow so far, by kind of wait.
#[derive(Default)]
struct Spent {
    parts: BTreeMap<(WaitKind, Option<u32>), u64>,
    /// Links at which packets of the flow were found.
    links: BTreeSet<u32>,
    /// Number of the last look at which the flow was in progress.
    last_look: u64,
    record: Option<FlowRecord>,
}

impl Spent {
    fn delay_ps(&self) -> u64 {
        let delays = |kind: WaitKind| !matches!(kind, WaitKind::Travel | WaitKind::Port);
        self.parts.iter().filter(|((kind, _), _)| delays(*kind)).map(|(_, ps)| ps).sum()
    }
}

/// Packets that were found at a link.
#[derive(Default)]
struct AtLink {
    most_senders: u32,
    /// Number of packets found on the link, by group.
    of_group: BTreeMap<u16, u64>,
}

/// Time of all flows so far, by kind of wait. Kept at the lead.
#[derive(Default)]
pub(crate) struct Waits {
    flows: BTreeMap<u32, Spent>,
    links: BTreeMap<u32, AtLink>,
    since: Duration,
    looks: u64,
    looked_at: u64,
}

impl Waits {
    /// Adds an interval that has passed, after `packet_hops` in all. Returns true if a look is due.
    pub(crate) fn is_due(&mut self, since: Duration, packet_hops: u64) -> bool {
        self.since += since;
        self.looked_at <= FREE_LOOKS + packet_hops / HOPS_A_LOOK
    }

    /// Adds the observations of all ranks. Ranks other than the lead only count how much was examined.
    pub(crate) fn add(&mut self, spec: &SimSpec, sights: Vec<Observation>, is_lead: bool) {
        let since_ps = std::mem::take(&mut self.since).as_ps();
        self.looked_at += sights.iter().map(|sight| sight.looked_at).sum::<u64>();
        self.looks += 1;
        if !is_lead {
            return;
        }
        let mut packets: BTreeMap<Key, Vec<(PacketLocation, u32, u32)>> = BTreeMap::new();
        let mut busy = BTreeSet::new();
        let mut senders = Vec::new();
        for sight in sights {
            for ((key, place, link), count) in sight.packets {
                packets.entry(key).or_default().push((place, link, count));
            }
            busy.extend(sight.busy);
            senders.extend(sight.senders);
        }
        let mut at_link: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for sender in &senders {
            let of_qp = packets.get(&sender.key).map_or(&[][..], Vec::as_slice);
            let Some(&first) = sender.flows.first() else { continue };
            let group = spec.graph.messages()[first as usize].group.0;
            for &(place, link, count) in of_qp {
                if place == PacketLocation::Answering {
                    continue;
                }
                if place == PacketLocation::Travelling {
                    *self.links.entry(link).or_default().of_group.entry(group).or_default() +=
                        u64::from(count);
                } else {
                    at_link.entry(link).or_default().insert(sender.key.0);
                }
            }
            for &flow in &sender.flows {
                let spent = self.flows.entry(flow).or_default();
                spent.last_look = self.looks;
                spent.spend(sender, of_qp, &busy, since_ps);
            }
        }
        for (link, hosts) in at_link {
            let at = self.links.entry(link).or_default();
            at.most_senders = at.most_senders.max(hosts.len() as u32);
        }
        if self.flows.len() > REMEMBERED {
            self.forget();
        }
    }

    /// Drops up to `REMEMBERED / 2` flows that are over, the ones with the least delay relative to their duration.
    fn forget(&mut self) {
        let looks = self.looks;
        let mut over: Vec<(u64, u32)> = Vec::new();
        for (&flow, spent) in &self.flows {
            if spent.last_look < looks {
                let took: u64 = spent.parts.values().sum();
                over.push((spent.delay_ps().saturating_mul(1_000) / took.max(1), flow));
            }
        }
        over.sort_unstable();
        for (_, flow) in over.into_iter().take(REMEMBERED / 2) {
            self.flows.remove(&flow);
        }
    }

    /// Stores the records of flows that are remembered.
    pub(crate) fn store_records(&mut self, records: &[FlowRecord]) {
        for record in records {
            if let Some(spent) = self.flows.get_mut(&record.flow) {
                spent.record = Some(*record);
            }
        }
    }

    /// Returns the records of the slowest flows, the slowest first.
    pub(crate) fn into_records(self, spec: &SimSpec, end: Time) -> Vec<WaitRecord> {
        let mut flows: Vec<(f64, WaitRecord, Spent)> = Vec::new();
        for (flow, spent) in self.flows {
            let Some(record) = spent.record else { continue };
            if spec.groups[usize::from(record.group)].role == Role::Background {
                continue;
            }
            let until = record.finish_ps.unwrap_or(end.as_ps());
            let of_flow = WaitRecord {
                flow,
                group: record.group,
                src_host: record.src_host,
                dst_host: record.dst_host,
                size_bytes: record.size_bytes,
                start_ps: record.start_ps,
                flow_ps: until.saturating_sub(record.start_ps),
                ideal_fct_ps: record.ideal_fct_ps,
                ideal_acked_ps: record.ideal_acked_ps,
                sent_packets: record.sent_packets,
                retransmitted_packets: record.retransmitted_packets,
                timeouts: record.timeouts,
                ..WaitRecord::default()
            };
            flows.push((of_flow.slowdown(), of_flow, spent));
        }
        flows.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.flow.cmp(&b.1.flow)));
        let mut records = Vec::new();
        for (_, of_flow, spent) in flows.into_iter().take(SLOWEST) {
            let all: u64 = spent.parts.values().sum();
            for ((kind, link), ps) in spent.parts {
                let at = link.and_then(|link| self.links.get(&link));
                let most =
                    at.and_then(|at| at.of_group.iter().max_by_key(|(group, n)| (**n, u16::MAX - **group)));
                let packets = at.map_or(0, |at| at.of_group.values().sum::<u64>());
                records.push(WaitRecord {
                    kind,
                    link,
                    time_ps: (u128::from(ps) * u128::from(of_flow.flow_ps) / u128::from(all.max(1))) as u64,
                    link_senders: at.map(|at| at.most_senders),
                    link_group: most.map(|(group, _)| *group),
                    link_group_share: most.map(|(_, n)| *n as f64 / packets.max(1) as f64),
                    ..of_flow
                });
            }
        }
        records
    }
}

impl Spent {
    fn add(&mut self, kind: WaitKind, link: Option<u32>, ps: u64) {
        if ps > 0 {
            *self.parts.entry((kind, link)).or_default() += ps;
        }
    }

    /// Adds `since_ps` to the time of a message of queue pair `sender`, whose packets are at these locations.
    fn spend(
        &mut self,
        sender: &Sender,
        packets: &[(PacketLocation, u32, u32)],
        busy: &BTreeSet<u32>,
        since_ps: u64,
    ) {
        let data = || packets.iter().filter(|(place, ..)| *place != PacketLocation::Answering);
        for &(_, link, _) in data() {
            if self.links.len() < LINKS {
                self.links.insert(link);
            }
        }
        let kind = WaitKind::ALL[usize::from(sender.kind)];
        if matches!(kind, WaitKind::Port | WaitKind::Down | WaitKind::Pause) {
            let own = sender.port..sender.ports_end;
            let seen = || data().map(|&(_, link, _)| link).find(|link| own.contains(link));
            let used = if kind == WaitKind::Port { seen() } else { None };
            return self.add(kind, Some(used.unwrap_or(sender.port)), since_ps);
        }
        if kind == WaitKind::Receiver {
            return self.add(kind, None, since_ps);
        }
        let all: u64 = data().map(|(.., count)| u64::from(*count)).sum();
        if all == 0 {
            let answered = packets.iter().any(|(place, ..)| *place == PacketLocation::Answering);
            let kind = match kind {
                // The packets or their acknowledgements were lost.
                WaitKind::Travel | WaitKind::Window if !answered => WaitKind::Silence,
                other => other,
            };
            return self.held_back(kind, busy, since_ps);
        }
        let mut left = since_ps;
        for &(place, link, count) in data() {
            let ps = (u128::from(since_ps) * u128::from(count) / u128::from(all)) as u64;
            let kind = match place {
                PacketLocation::Queued => WaitKind::Queue,
                PacketLocation::Paused => WaitKind::Pause,
                PacketLocation::Travelling if kind == WaitKind::Travel => WaitKind::Travel,
                PacketLocation::Travelling | PacketLocation::Answering => continue,
            };
            left -= ps;
            self.add(kind, Some(link), ps);
        }
        self.held_back(kind, busy, left);
    }

    /// Adds time in which the message may not send and has no packet in a queue. The time counts for a busy link that
    /// the message crosses, if any.
    fn held_back(&mut self, kind: WaitKind, busy: &BTreeSet<u32>, ps: u64) {
        let by_network = matches!(kind, WaitKind::Control | WaitKind::Credit);
        // Of several busy links, the one at which the message waited longest counts.
        let waited = |link: u32| self.parts.get(&(WaitKind::Queue, Some(link))).copied().unwrap_or(0);
        let full = self.links.iter().copied().filter(|link| by_network && busy.contains(link));
        match full.max_by_key(|&link| (waited(link), u32::MAX - link)) {
            Some(link) => self.add(WaitKind::Full, Some(link), ps),
            None => self.add(kind, None, ps),
        }
    }
}
