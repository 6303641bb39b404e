//! The time of flows by what they wait for. At samples, each message under way is asked what it waits for, and its packets are looked up in
//! the queues and on the links. So much of the time since the last look as packets of it are at a link is spent there. Nothing
//! of it is on the way of packets; and looks are left out where they would take more than a small part of the run.

use std::collections::{BTreeMap, BTreeSet};

use borsh::{BorshDeserialize, BorshSerialize};
use pathweave_fabric::{Header, Held, Stopped};
use pathweave_results::{FlowRecord, Role, WaitKind, WaitRecord};
use pathweave_transport::Waiting;
use pathweave_units::{Duration, Time};
use pathweave_wire::{Body, Segment};

use crate::spec::SimSpec;
use crate::whole::Whole;

/// A link is busy that sends for this share of an interval.
pub(crate) const BUSY: f64 = 0.8;
/// Things that may be looked at for free, and of how many packet-hops another one may.
const FREE_LOOKS: u64 = 2_000_000;
const HOPS_A_LOOK: u64 = 32;
/// Messages of a queue pair that are told apart at a look: those behind wait for these.
const MESSAGES: u32 = 4;
/// Queue pairs of a host that are asked at a look.
const QUEUE_PAIRS: usize = 64;
/// Flows that records are made of, and of which something is remembered before the least delayed are dropped.
const SLOWEST: usize = 256;
const REMEMBERED: usize = 1 << 14;
/// Links of a flow that are remembered.
const LINKS: usize = 256;

/// A queue pair, by its host and number.
type Key = (u32, u32);

/// A place that packets are at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
enum Where {
    Queued,
    Paused,
    Travelling,
    /// Answers on their way back.
    Answering,
}

/// The packets and queue pairs of this process's nodes at an instant.
#[derive(Default, BorshSerialize, BorshDeserialize)]
pub(crate) struct Sight {
    senders: Vec<Sender>,
    /// Packets of each queue pair by place.
    packets: BTreeMap<(Key, Where, u32), u32>,
    busy: Vec<u32>,
    looked_at: u64,
}

/// A queue pair with messages under way.
#[derive(BorshSerialize, BorshDeserialize)]
struct Sender {
    key: Key,
    /// The messages.
    flows: Vec<u32>,
    /// The kind of wait if none of its packets says otherwise.
    kind: u8,
    /// The port of its host that is stopped, or the first one.
    port: u32,
    /// Behind the last port of its host.
    ports_end: u32,
}

impl<const C: usize> Whole<'_, '_, C> {
    /// Looks at all messages under way and at all packets. `busy`: links that were since the last sample.
    pub(crate) fn sight(&self, busy: Vec<u32>) -> Sight {
        let mut sight = Sight { busy, ..Sight::default() };
        for host in self.hosts() {
            sight.looked_at += host.outgoing.len() as u64;
            let Some(shard) = self.part_of(host.nic.host.0) else { continue };
            let ports = host.nic.ports();
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
                    port: stopped.map_or(ports.start, |(port, _)| port),
                    ports_end: ports.end,
                });
            }
        }
        for shard in &self.shards {
            let fabric = &shard.network.fabric;
            for port in 0..fabric.port_count() {
                let mut add = |header: &Header, segment: &Segment, place, link| {
                    let (key, place) = match segment.body {
                        Body::Data(_) => ((header.src().0, segment.src_qp.0), place),
                        Body::Rd(_) => return,
                        _ => ((header.dst().0, segment.dst_qp.0), Where::Answering),
                    };
                    *sight.packets.entry((key, place, link)).or_default() += 1;
                    sight.looked_at += 1;
                };
                // Those that have just left may not have been sent on to the part where they arrive.
                for (header, segment) in fabric.travelling_into(port) {
                    add(header, segment, Where::Travelling, fabric.peer(port));
                }
                if !shard.place.has(fabric.ends(port).0) {
                    continue;
                }
                for (header, segment, held) in fabric.waiting_at(port) {
                    let place = if held == Held::Paused { Where::Paused } else { Where::Queued };
                    add(header, segment, place, port);
                }
            }
        }
        sight
    }
}

/// The kind of wait of a sender, apart from where its packets are. `stopped`: the reason why a port of its host is stopped.
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

/// The time of a flow so far, by kind of wait.
#[derive(Default)]
struct Spent {
    parts: BTreeMap<(WaitKind, Option<u32>), u64>,
    /// Links that its packets were seen at.
    links: BTreeSet<u32>,
    /// Looks so far, to know who is still under way.
    last_look: u64,
    record: Option<FlowRecord>,
}

impl Spent {
    fn delay_ps(&self) -> u64 {
        let delays = |kind: WaitKind| !matches!(kind, WaitKind::Travel | WaitKind::Port);
        self.parts.iter().filter(|((kind, _), _)| delays(*kind)).map(|(_, ps)| ps).sum()
    }
}

/// The packets that were seen at a link.
#[derive(Default)]
struct AtLink {
    most_senders: u32,
    /// Packets seen on it, by group.
    of_group: BTreeMap<u16, u64>,
}

/// The time of all flows so far, by kind of wait; kept where the lead is.
#[derive(Default)]
pub(crate) struct Waits {
    flows: BTreeMap<u32, Spent>,
    links: BTreeMap<u32, AtLink>,
    since: Duration,
    looks: u64,
    looked_at: u64,
}

impl Waits {
    /// Another interval has passed, after so many packet-hops. Returns whether to look.
    pub(crate) fn is_due(&mut self, since: Duration, packet_hops: u64) -> bool {
        self.since += since;
        self.looked_at <= FREE_LOOKS + packet_hops / HOPS_A_LOOK
    }

    /// What all ranks have seen. Of no use but at the lead, all but how much it was.
    pub(crate) fn add(&mut self, spec: &SimSpec, sights: Vec<Sight>, is_lead: bool) {
        let since_ps = std::mem::take(&mut self.since).as_ps();
        self.looked_at += sights.iter().map(|sight| sight.looked_at).sum::<u64>();
        self.looks += 1;
        if !is_lead {
            return;
        }
        let mut packets: BTreeMap<Key, Vec<(Where, u32, u32)>> = BTreeMap::new();
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
                if place == Where::Answering {
                    continue;
                }
                if place == Where::Travelling {
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

    /// Drops half of the flows: of those that are over, the ones that were delayed least for their size.
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

    /// Records of flows: those that are remembered are to be known.
    pub(crate) fn learn(&mut self, records: &[FlowRecord]) {
        for record in records {
            if let Some(spent) = self.flows.get_mut(&record.flow) {
                spent.record = Some(*record);
            }
        }
    }

    /// The records of the slowest flows, the slowest first.
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
                flow_ps: until.saturating_sub(record.start_ps),
                ideal_fct_ps: record.ideal_fct_ps,
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

    /// So much time has passed for a message of a queue pair whose packets are there.
    fn spend(&mut self, sender: &Sender, packets: &[(Where, u32, u32)], busy: &BTreeSet<u32>, since_ps: u64) {
        let data = || packets.iter().filter(|(place, ..)| *place != Where::Answering);
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
            let answered = packets.iter().any(|(place, ..)| *place == Where::Answering);
            let kind = match kind {
                // What it has sent was lost, or its answers were.
                WaitKind::Travel | WaitKind::Window if !answered => WaitKind::Silence,
                other => other,
            };
            return self.held_back(kind, busy, since_ps);
        }
        let mut left = since_ps;
        for &(place, link, count) in data() {
            let ps = (u128::from(since_ps) * u128::from(count) / u128::from(all)) as u64;
            let kind = match place {
                Where::Queued => WaitKind::Queue,
                Where::Paused => WaitKind::Pause,
                Where::Travelling if kind == WaitKind::Travel => WaitKind::Travel,
                Where::Travelling | Where::Answering => continue,
            };
            left -= ps;
            self.add(kind, Some(link), ps);
        }
        self.held_back(kind, busy, left);
    }

    /// Time in which it may not send, with nothing of it in a queue: because of a busy link, if it crosses one.
    fn held_back(&mut self, kind: WaitKind, busy: &BTreeSet<u32>, ps: u64) {
        let by_network = matches!(kind, WaitKind::Control | WaitKind::Credit);
        // Of several, the one that it waited at longest.
        let waited = |link: u32| self.parts.get(&(WaitKind::Queue, Some(link))).copied().unwrap_or(0);
        let full = self.links.iter().copied().filter(|link| by_network && busy.contains(link));
        match full.max_by_key(|&link| (waited(link), u32::MAX - link)) {
            Some(link) => self.add(WaitKind::Full, Some(link), ps),
            None => self.add(kind, None, ps),
        }
    }
}
