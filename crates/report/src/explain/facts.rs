//! Links and slow flows of a run, read from its tables.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use pathweave_records::{Direction, WaitKind, idle_latency_ns};

use super::paths::Neighbours;
use super::settings::{Effect, Fault, Settings};
use super::table::Table;

pub(super) const LINK_COLUMNS: &[&str] = &[
    "from",
    "to",
    "from_node",
    "to_node",
    "tier",
    "direction",
    "rate_bps",
    "delay_ns",
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

/// Share of the rate of similar links below which a link is slow.
const SLOW: f64 = 0.75;
/// Ratio of rates up to which ports of a host belong together.
const ALIKE: f64 = 4.0;

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
    /// Propagation delay without faults.
    pub(super) delay_ns: f64,
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

    /// Returns true if a fault concerns the link.
    pub(super) fn has(&self, fault: &Fault) -> bool {
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
    /// Time on an idle network, of what was sent before the end of the run if that cut the flow off.
    pub(super) ideal_ns: f64,
    /// True if the end of the run cut the flow off before it was late as a whole.
    pub(super) is_cut: bool,
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
        fault.meets(self.start_ns, self.end_ns())
    }

    /// Returns the time at which the flow was over, or the run if the flow did not finish.
    pub(super) fn end_ns(&self) -> f64 {
        self.start_ns + self.took_ns
    }

    /// Iterates over the links at which packets of the flow were seen.
    pub(super) fn crossed(&self) -> impl Iterator<Item = usize> {
        self.parts.iter().filter_map(|part| part.link)
    }

    /// Returns true if packets of the flow were seen at a link.
    pub(super) fn crosses(&self, link: usize) -> bool {
        self.parts.iter().any(|part| part.link == Some(link))
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
    /// Names of the schemes whose senders do not slow down for marks.
    pub(super) ignoring_marks: Vec<String>,
    pub(super) run_ns: f64,
    pub(super) neighbours: OnceCell<Neighbours>,
    /// Links that each fault takes down, as indices into `links`.
    pub(super) links_down: OnceCell<Vec<Vec<usize>>>,
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
            delay_ns: number("delay_ns"),
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
                is_cut: false,
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
        let mut faults = settings.faults();
        for fault in &mut faults {
            fault.effect = effect(fault, &links);
        }
        count_unrecorded(&mut drops, &links, &faults);
        let spans = (0..links.len()).map(|row| link_table.number("busy_ns", row) / links[row].busy);
        let run_ns = spans.filter(|span| span.is_finite()).fold(0.0, f64::max);
        let mut facts = Facts {
            run_ns,
            ignoring_marks: Vec::new(),
            flows: flows(wait_table),
            faults,
            settings,
            drops,
            links,
            neighbours: OnceCell::new(),
            links_down: OnceCell::new(),
        };
        facts.cut_at_the_end();
        facts
    }

    /// Returns the number of packets dropped for these reasons, and the link that dropped most of them.
    pub(super) fn dropped(&self, reasons: &[&str]) -> (u64, Option<usize>) {
        let of = || self.drops.iter().filter(|((reason, _), _)| reasons.contains(&reason.as_str()));
        let mut by_link: BTreeMap<usize, u64> = BTreeMap::new();
        of().for_each(|((_, link), n)| *by_link.entry(*link).or_default() += n);
        let most = by_link.iter().max_by_key(|(link, n)| (**n, usize::MAX - **link)).map(|(link, _)| *link);
        (of().map(|(_, n)| n).sum(), most)
    }

    /// Returns true if marks slow the senders of some of these flows down, or of any if none is given.
    pub(super) fn heeds_marks(&self, flows: &[usize]) -> bool {
        let heeds = |scheme: &str| !self.ignoring_marks.iter().any(|name| name == scheme);
        match flows {
            [] => self.settings.schemes().any(heeds),
            some => some.iter().any(|&flow| heeds(self.settings.scheme_of(&self.flows[flow].group))),
        }
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

    /// Returns true if a link is slower than similar ones, and the fabric is not built like this.
    pub(super) fn is_slow(&self, link: usize) -> bool {
        self.links[link].rate_bps < SLOW * self.usual_rate_bps(link) && !self.is_slow_by_design(link)
    }

    /// Returns true if a link is slower than similar ones as the fabric is built, by a fault of nobody.
    fn is_slow_by_design(&self, link: usize) -> bool {
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
        let ends = (at.from_node, at.to_node);
        let is_faster =
            |other: &Link| (other.from_node, other.to_node) == ends && other.rate_bps > at.rate_bps;
        if self.links.iter().any(is_faster) {
            return false;
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

    /// Returns the rate of the ports of a link's sender that belong together with this one. Links of scale-up networks are
    /// far faster.
    pub(super) fn rate_of_ports_bps(&self, link: usize) -> f64 {
        let at = &self.links[link];
        let alike = |other: &&Link| {
            let ratio = other.rate_bps / at.rate_bps;
            other.from_node == at.from_node && (1.0 / ALIKE..=ALIKE).contains(&ratio)
        };
        self.links.iter().filter(alike).map(|other| other.rate_bps).sum()
    }

    /// Returns the median rate of the hosts' links.
    pub(super) fn host_rate_bps(&self) -> f64 {
        median(self.links.iter().filter(|link| link.is_from_host()).map(|link| link.rate_bps).collect())
    }

    /// Returns the rate of the links into a switch from below over that of its links up. `None` if it lacks either, or if
    /// it has links to switches of its tier, which carry a part.
    pub(super) fn oversubscription(&self, switch: u32) -> Option<f64> {
        let sum = |of: &dyn Fn(&Link) -> bool| {
            self.links.iter().filter(|link| of(link)).map(|link| link.rate_bps).sum::<f64>()
        };
        let from_below = sum(&|link| link.to_node == switch && link.direction == Direction::Up);
        let up = sum(&|link| link.from_node == switch && link.direction == Direction::Up);
        let level = sum(&|link| link.from_node == switch && link.direction == Direction::Level);
        (up > 0.0 && from_below > 0.0 && level == 0.0).then_some(from_below / up)
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
}

/// Returns the effect of a fault on its links, as far as these are known.
fn effect(fault: &Fault, links: &[Link]) -> Effect {
    let mut own = links.iter().filter(|link| link.has(fault)).peekable();
    let is_known = own.peek().is_some();
    let leaves_all = match fault.kind.as_str() {
        "link-loss" | "link-corruption" => fault.probability <= 0.0,
        "link-rate" => is_known && own.all(|link| fault.rate_bps.is_some_and(|bps| bps >= link.rate_bps)),
        "link-delay" => is_known && own.all(|link| fault.delay_ns.is_some_and(|ns| ns <= link.delay_ns)),
        _ => false,
    };
    if leaves_all { Effect::None } else { Effect::Worse }
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

/// Returns the median, or NaN without values.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.retain(|value| value.is_finite());
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
