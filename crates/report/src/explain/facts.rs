//! Links and slow flows of a run, read from its tables.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use pathweave_records::{Direction, WaitKind, idle_latency_ns};

use super::settings::{Fault, Settings};
use super::table::Table;

pub(super) const LINK_COLUMNS: &[&str] = &[
    "from",
    "to",
    "from_node",
    "to_node",
    "tier",
    "direction",
    "rate_bps",
    "tx_bytes",
    "busy_ns",
    "utilisation_ratio",
    "ecn_marked_packets",
    "tx_packets",
    "pfc_pauses",
    "paused_ns",
    "dropped_packets",
    "trimmed_packets",
    "max_queue_bytes",
];
pub(super) const WAIT_COLUMNS: &[&str] = &[
    "flow",
    "group",
    "src_host",
    "dst_host",
    "size_bytes",
    "start_ns",
    "flow_ns",
    "ideal_fct_ns",
    "ideal_acked_fct_ns",
    "sent_packets",
    "retransmitted_packets",
    "timeouts",
    "kind",
    "link",
    "time_ns",
    "link_senders",
    "link_group",
    "link_group_share",
];

/// A directed link and its totals. Unknown values are NaN.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Link {
    pub(super) from: String,
    pub(super) to: String,
    /// Number among the parallel links from `from` to `to`, as in names of links: "leaf0-spine0#1".
    pub(super) number: usize,
    pub(super) from_node: u32,
    pub(super) to_node: u32,
    pub(super) tier: u32,
    pub(super) direction: Direction,
    /// Rate without faults.
    pub(super) rate_bps: f64,
    /// Share of the run during which the link was sending.
    pub(super) busy: f64,
    pub(super) tx_bytes: f64,
    pub(super) tx_packets: f64,
    pub(super) marked: f64,
    pub(super) paused_ns: f64,
    pub(super) dropped: f64,
    pub(super) trimmed: f64,
    pub(super) max_queue_bytes: f64,
}

impl Link {
    /// Returns true if the link has a host at one end.
    pub(super) fn is_of_host(&self) -> bool {
        self.tier == 0 && self.direction != Direction::Level
    }
    pub(super) fn is_from_host(&self) -> bool {
        self.is_of_host() && self.direction == Direction::Up
    }
    pub(super) fn is_to_host(&self) -> bool {
        self.is_of_host() && self.direction == Direction::Down
    }
    pub(super) fn name(&self) -> String {
        let number = if self.number > 0 { format!("#{}", self.number) } else { String::new() };
        format!("{} to {}{number}", self.from, self.to)
    }

    /// Returns the host at one end of the link.
    pub(super) fn host(&self) -> Option<u32> {
        let end = if self.direction == Direction::Up { self.from_node } else { self.to_node };
        self.is_of_host().then_some(end)
    }

    fn has(&self, fault: &Fault) -> bool {
        fault.is_on(&self.from, &self.to, self.number)
    }
}

/// A part of the time of a flow.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) kind: WaitKind,
    pub(super) link: Option<usize>,
    pub(super) time_ns: f64,
    /// Largest number of hosts that waited there at once.
    pub(super) senders: f64,
    /// The group with most packets there, and its share.
    pub(super) group: String,
    pub(super) group_share: f64,
}

/// One of the slowest flows.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub(super) group: String,
    pub(super) start_ns: f64,
    pub(super) src_host: u32,
    pub(super) dst_host: u32,
    pub(super) size_bytes: f64,
    pub(super) took_ns: f64,
    pub(super) ideal_ns: f64,
    /// Time to the last acknowledgement on an idle network; NaN without acknowledgements.
    pub(super) ideal_acked_ns: f64,
    pub(super) sent: f64,
    pub(super) sent_again: f64,
    pub(super) timeouts: f64,
    pub(super) parts: Vec<Part>,
}

impl Flow {
    /// Returns true if a fault was in force while the flow was on its way.
    pub(super) fn meets(&self, fault: &Fault) -> bool {
        fault.meets(self.start_ns, self.start_ns + self.took_ns)
    }

    pub(super) fn slowdown(&self) -> f64 {
        self.took_ns / self.ideal_ns.max(1e-3)
    }
}

/// All data from which causes are derived.
pub(super) struct Facts {
    pub(super) links: Vec<Link>,
    /// Flows, the slowest first.
    pub(super) flows: Vec<Flow>,
    pub(super) settings: Settings,
    pub(super) faults: Vec<Fault>,
    /// Number of dropped packets by reason and link.
    pub(super) drops: BTreeMap<(String, usize), u64>,
    pub(super) run_ns: f64,
    neighbours: OnceCell<Neighbours>,
}

fn direction(name: &str) -> Direction {
    Direction::ALL.iter().copied().find(|direction| direction.name() == name).unwrap_or_default()
}

fn links(table: &Table) -> Vec<Link> {
    let link = |row: usize| {
        let number = |column: &str| table.number(column, row);
        Link {
            from: table.text("from", row).to_owned(),
            to: table.text("to", row).to_owned(),
            number: 0,
            from_node: number("from_node") as u32,
            to_node: number("to_node") as u32,
            tier: number("tier") as u32,
            direction: direction(table.text("direction", row)),
            rate_bps: number("rate_bps"),
            busy: number("utilisation_ratio"),
            tx_bytes: number("tx_bytes"),
            tx_packets: number("tx_packets"),
            marked: number("ecn_marked_packets"),
            paused_ns: number("paused_ns"),
            dropped: number("dropped_packets"),
            trimmed: number("trimmed_packets"),
            max_queue_bytes: number("max_queue_bytes"),
        }
    };
    let mut links: Vec<Link> = (0..table.rows).map(link).collect();
    let mut parallel: BTreeMap<(u32, u32), usize> = BTreeMap::new();
    for link in &mut links {
        let next = parallel.entry((link.from_node, link.to_node)).or_default();
        link.number = *next;
        *next += 1;
    }
    links
}

fn flows(table: &Table) -> Vec<Flow> {
    let mut flows: Vec<Flow> = Vec::new();
    let mut last = f64::NAN;
    for row in 0..table.rows {
        let number = |column: &str| table.number(column, row);
        if number("flow") != last || flows.is_empty() {
            last = number("flow");
            flows.push(Flow {
                group: table.text("group", row).to_owned(),
                start_ns: number("start_ns"),
                src_host: number("src_host") as u32,
                dst_host: number("dst_host") as u32,
                size_bytes: number("size_bytes"),
                took_ns: number("flow_ns"),
                ideal_ns: number("ideal_fct_ns"),
                ideal_acked_ns: number("ideal_acked_fct_ns"),
                sent: number("sent_packets"),
                sent_again: number("retransmitted_packets"),
                timeouts: number("timeouts"),
                parts: Vec::new(),
            });
        }
        let name = table.text("kind", row);
        let kind = WaitKind::ALL.iter().copied().find(|kind| kind.name() == name);
        let part = Part {
            kind: kind.unwrap_or_default(),
            link: Some(number("link")).filter(|link| link.is_finite()).map(|link| link as usize),
            time_ns: number("time_ns"),
            senders: number("link_senders"),
            group: table.text("link_group", row).to_owned(),
            group_share: number("link_group_share"),
        };
        if let Some(flow) = flows.last_mut() {
            flow.parts.push(part);
        }
    }
    flows
}

impl Facts {
    pub(super) fn new(
        link_table: &Table,
        wait_table: &Table,
        event_table: &Table,
        settings: Settings,
    ) -> Self {
        let mut drops = BTreeMap::new();
        for row in (0..event_table.rows).filter(|&row| event_table.text("kind", row) == "drop") {
            let link = event_table.number("link", row);
            if link.is_finite() {
                *drops.entry((event_table.text("reason", row).to_owned(), link as usize)).or_default() += 1;
            }
        }
        let links = links(link_table);
        let faults = settings.faults();
        count_unrecorded(&mut drops, &links, &faults);
        let spans = (0..links.len()).map(|row| link_table.number("busy_ns", row) / links[row].busy);
        let run_ns = spans.filter(|span| span.is_finite()).fold(0.0, f64::max);
        Facts {
            run_ns,
            flows: flows(wait_table),
            faults,
            settings,
            drops,
            links,
            neighbours: OnceCell::new(),
        }
    }

    /// Returns the number of packets dropped for these reasons, and the link that dropped most of them.
    pub(super) fn dropped(&self, reasons: &[&str]) -> (u64, Option<usize>) {
        let of = || self.drops.iter().filter(|((reason, _), _)| reasons.contains(&reason.as_str()));
        let mut by_link: BTreeMap<usize, u64> = BTreeMap::new();
        of().for_each(|((_, link), n)| *by_link.entry(*link).or_default() += n);
        let most = by_link.iter().max_by_key(|(link, n)| (**n, usize::MAX - **link)).map(|(link, _)| *link);
        (of().map(|(_, n)| n).sum(), most)
    }

    /// Returns the faults that concern a link.
    pub(super) fn faults_of(&self, link: usize) -> impl Iterator<Item = &Fault> {
        self.faults.iter().filter(move |fault| self.links[link].has(fault))
    }

    /// Returns true if a fault was in force during the run. The length of a run that used no link is not known.
    pub(super) fn was_in_force(&self, fault: &Fault) -> bool {
        fault.meets(0.0, if self.run_ns > 0.0 { self.run_ns } else { f64::INFINITY })
    }

    /// Returns true if a fault has begun before the end of the run.
    pub(super) fn has_begun(&self, fault: &Fault) -> bool {
        self.run_ns <= 0.0 || fault.at_ns <= self.run_ns
    }

    /// Returns true if a fault concerns one of these links.
    pub(super) fn is_on_a_link(&self, fault: &Fault) -> bool {
        self.links.iter().any(|link| link.has(fault))
    }

    /// Returns the number of packets that a fault took on its links.
    pub(super) fn lost_on(&self, fault: &Fault) -> u64 {
        let by_fault = |reason: &str| matches!(reason, "link_down" | "random_loss" | "corrupted");
        let on = self.drops.iter().filter(|((_, link), _)| self.links[*link].has(fault));
        on.filter(|((reason, _), _)| by_fault(reason)).map(|(_, count)| count).sum()
    }

    /// Returns the links beside a link: for a link up or level all links of its switch, for a link down all links into
    /// its switch, of the same tier and direction. The link itself is included.
    fn links_beside(&self, link: usize) -> Vec<usize> {
        let at = &self.links[link];
        let alike = |other: &Link| {
            let shares_end = match at.direction {
                Direction::Down => other.to_node == at.to_node,
                _ => other.from_node == at.from_node,
            };
            other.tier == at.tier && other.direction == at.direction && shares_end
        };
        (0..self.links.len()).filter(|&other| alike(&self.links[other])).collect()
    }

    fn hops_from(&self, host: u32) -> Vec<Option<u32>> {
        self.neighbours.get_or_init(|| Neighbours::new(&self.links)).hops_from(host)
    }

    /// Returns the links beside a link over which this flow has paths of the same length. The link itself is included.
    pub(super) fn parallel_links(&self, link: usize, flow: Option<&Flow>) -> Vec<usize> {
        let mut beside = self.links_beside(link);
        let Some(flow) = flow.filter(|_| beside.len() > 1) else { return beside };
        let (end, host): (fn(&Link) -> u32, u32) = match self.links[link].direction {
            Direction::Down => (|link| link.from_node, flow.src_host),
            _ => (|link| link.to_node, flow.dst_host),
        };
        // Every cable has two directions, so it is as far back.
        let hops = self.hops_from(host);
        let own = hops[end(&self.links[link]) as usize];
        beside.retain(|&other| hops[end(&self.links[other]) as usize] == own);
        beside
    }

    /// Returns the links of the shortest paths of a flow by their distance from its sender, as if none was down.
    pub(super) fn layers_of_paths(&self, flow: &Flow) -> Vec<Vec<usize>> {
        let (from, to) = (self.hops_from(flow.src_host), self.hops_from(flow.dst_host));
        let all = from.get(flow.dst_host as usize).copied().flatten().unwrap_or(0);
        let mut layers = vec![Vec::new(); all as usize];
        for (index, link) in self.links.iter().enumerate() {
            if let (Some(before), Some(after)) = (from[link.from_node as usize], to[link.to_node as usize])
                && before + 1 + after == all
            {
                layers[before as usize].push(index);
            }
        }
        layers
    }

    /// Returns true if a link is slower than similar ones as the fabric is built, by a fault of nobody.
    pub(super) fn is_slow_by_design(&self, link: usize) -> bool {
        let at = &self.links[link];
        if at.is_of_host() {
            // A port is no bottleneck of a host that has at least the rate of others over all its ports.
            let mut totals: BTreeMap<u32, f64> = BTreeMap::new();
            for other in self.links.iter().filter(|other| other.direction == at.direction) {
                if let Some(host) = other.host() {
                    *totals.entry(host).or_default() += other.rate_bps;
                }
            }
            let own = at.host().and_then(|host| totals.get(&host).copied());
            let usual = median(totals.into_values().collect());
            return at.rate_bps < usual && own.is_some_and(|own| own >= usual);
        }
        // Links of groups to each other may be slower than those within a group: most switches have both.
        let level = |other: &&Link| other.tier == at.tier && other.direction == Direction::Level;
        let switches = |slow: bool| {
            let of = self.links.iter().filter(level).filter(|other| !slow || other.rate_bps <= at.rate_bps);
            of.map(|other| other.from_node).collect::<BTreeSet<u32>>().len()
        };
        at.direction == Direction::Level && 4 * switches(true) > 3 * switches(false)
    }

    /// Returns the median rate of links of the same tier and direction.
    pub(super) fn usual_rate_bps(&self, link: usize) -> f64 {
        let at = &self.links[link];
        let alike = |other: &&Link| other.tier == at.tier && other.direction == at.direction;
        median(self.links.iter().filter(alike).map(|other| other.rate_bps).collect())
    }

    /// Returns the median rate of the hosts' links.
    pub(super) fn host_rate_bps(&self) -> f64 {
        median(self.links.iter().filter(|link| link.is_from_host()).map(|link| link.rate_bps).collect())
    }

    /// Returns the rate of the links into a switch from below over that of its links up, or `None` if it lacks
    /// either.
    pub(super) fn oversubscription(&self, switch: u32) -> Option<f64> {
        let sum = |of: &dyn Fn(&Link) -> bool| {
            self.links.iter().filter(|link| of(link)).map(|link| link.rate_bps).sum::<f64>()
        };
        let from_below = sum(&|link| link.to_node == switch && link.direction == Direction::Up);
        let up = sum(&|link| link.from_node == switch && link.direction == Direction::Up);
        (up > 0.0 && from_below > 0.0).then_some(from_below / up)
    }

    /// Returns the approximate round-trip time of an idle network.
    pub(super) fn round_trip_ns(&self) -> f64 {
        let rate = self.host_rate_bps();
        let latency = |flow: &Flow| {
            let acked_ns = Some(flow.ideal_acked_ns).filter(|ns| ns.is_finite());
            idle_latency_ns(flow.ideal_ns, acked_ns, flow.size_bytes * 8e9 / rate)
        };
        let latency = median(self.flows.iter().map(latency).collect());
        (2.0 * latency).max(1_000.0)
    }

    /// Returns the bytes that a host has in flight in half a round trip at its rate.
    pub(super) fn bytes_in_flight(&self) -> f64 {
        0.5 * self.round_trip_ns() * self.host_rate_bps() / 8e9
    }

    /// Returns the number of hosts that send to a host among the slow flows.
    pub(super) fn senders_to(&self, host: u32) -> usize {
        let of = self.flows.iter().filter(|flow| flow.dst_host == host);
        of.map(|flow| flow.src_host).collect::<BTreeSet<u32>>().len()
    }
}

/// Adds the drops of links that no event records, because only so many are kept: for the reason of most recorded ones, or
/// else by the faults of the link.
fn count_unrecorded(drops: &mut BTreeMap<(String, usize), u64>, links: &[Link], faults: &[Fault]) {
    let mut recorded: BTreeMap<usize, (u64, u64, String)> = BTreeMap::new();
    for ((reason, link), &count) in drops.iter() {
        let (all, most, of_most) = recorded.entry(*link).or_default();
        *all += count;
        if count >= *most {
            (*most, *of_most) = (count, reason.clone());
        }
    }
    for (index, link) in links.iter().enumerate().filter(|(_, link)| link.dropped > 0.0) {
        let known = recorded.remove(&index);
        let missing = (link.dropped as u64).saturating_sub(known.as_ref().map_or(0, |(all, ..)| *all));
        let by_fault = || {
            faults.iter().filter(|fault| link.has(fault)).find_map(|fault| match fault.kind.as_str() {
                "link-loss" => Some("random_loss"),
                "link-corruption" => Some("corrupted"),
                _ if fault.takes_down() => Some("link_down"),
                _ => None,
            })
        };
        if missing > 0 {
            let reason =
                known.map_or_else(|| by_fault().unwrap_or("buffer_full").to_owned(), |(.., most)| most);
            *drops.entry((reason, index)).or_default() += missing;
        }
    }
}

/// Nodes next to each node, over links away from it. Hosts forward nothing, so that only those that begin a path have any
/// use.
struct Neighbours {
    next: Vec<Vec<u32>>,
    is_host: Vec<bool>,
}

impl Neighbours {
    fn new(links: &[Link]) -> Self {
        let nodes = links.iter().map(|link| link.from_node.max(link.to_node) + 1).max().unwrap_or(0);
        let (mut next, mut is_host) = (vec![Vec::new(); nodes as usize], vec![false; nodes as usize]);
        for link in links {
            next[link.from_node as usize].push(link.to_node);
            is_host[link.from_node as usize] |= link.is_from_host();
        }
        Neighbours { next, is_host }
    }

    /// Returns the number of links from a host to each node, or `None` where it reaches none.
    fn hops_from(&self, host: u32) -> Vec<Option<u32>> {
        let mut hops = vec![None; self.next.len()];
        let mut queue = VecDeque::new();
        if let Some(own) = hops.get_mut(host as usize) {
            *own = Some(0);
            queue.push_back((host, 0));
        }
        while let Some((node, far)) = queue.pop_front() {
            if node != host && self.is_host[node as usize] {
                continue;
            }
            for &to in &self.next[node as usize] {
                if hops[to as usize].is_none() {
                    hops[to as usize] = Some(far + 1);
                    queue.push_back((to, far + 1));
                }
            }
        }
        hops
    }
}

/// Returns the median, or NaN without values.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.retain(|value| value.is_finite());
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
