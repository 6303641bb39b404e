//! Named causes: the interpretation of an account of lost time, given the scenario and the links.

use pathweave_records::{Direction, Quantity};

use super::accounting::{DelayCause, LostTime};
use super::facts::{Facts, Flow};
use super::room::Room;
use super::weigh::LASTING;

/// Smallest share of the lost time from which a cause is named, the same for faults that are short beside the late
/// flows or lose packets at random, for other faults, and the largest number of causes.
pub(super) const WORTH: f64 = 0.12;
pub(super) const FAULT_WORTH: f64 = 0.08;
const LASTING_WORTH: f64 = 0.03;
const MOST: usize = 4;
/// Share of the run up to which a host's link had room while its flows waited for it.
const NIC_BUSY: f64 = 0.8;
/// Ratio from which a switch counts as oversubscribed.
const OVERSUBSCRIBED: f64 = 1.2;
/// Length from which queues count as long, in round trips and in nanoseconds.
const LONG_RTTS: f64 = 5.0;
const LONG_NS: f64 = 60_000.0;

/// A cause, and its share of the time that slow flows lost.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cause {
    /// Causes with the same key are merged.
    key: (Class, usize),
    pub(super) share: f64,
    /// Links concerned, with their shares.
    links: Vec<(usize, f64)>,
    /// Description; if several links are concerned, that of the first.
    pub(super) words: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    Fault,
    SlowLink,
    Storm,
    Receiver,
    Sender,
    Background,
    Starved,
    Collision,
    Oversubscribed,
    Fabric,
    Loss,
    Thresholds,
    Control,
    Credit,
    Window,
    NotPosted,
    Distance,
}

impl Cause {
    /// Returns true if something is broken, or slower than it should be.
    fn is_fault(&self) -> bool {
        matches!(self.key.0, Class::Fault | Class::SlowLink | Class::Storm)
    }

    /// Returns the smallest share from which the cause is named.
    fn worth(&self, facts: &Facts, account: &LostTime) -> f64 {
        let lasts = |fault: usize| {
            let mut late = account.flows.iter().map(|&flow| &facts.flows[flow]);
            facts.faults.get(fault).filter(|fault| !fault.loses()).is_some_and(|fault| {
                late.any(|flow| fault.overlap_ns(flow.start_ns, flow.end_ns()) >= LASTING * flow.took_ns)
            })
        };
        match self.key {
            (Class::Fault, fault) if !lasts(fault) => FAULT_WORTH,
            _ if self.is_fault() => LASTING_WORTH,
            _ => WORTH,
        }
    }
}

/// Returns the causes of an account, largest share first.
pub(super) fn causes(facts: &Facts, account: &LostTime) -> Vec<Cause> {
    let mut causes: Vec<Cause> = Vec::new();
    for &(held, share) in &account.shares {
        let cause = CauseBuilder { facts, account }.cause(held, share);
        match causes.iter_mut().find(|known| known.key == cause.key) {
            Some(known) => {
                known.share += cause.share;
                known.links.extend(cause.links);
            }
            None => causes.push(cause),
        }
    }
    merge_alike(facts, &mut causes);
    causes.sort_by(|a, b| b.share.total_cmp(&a.share));
    let first = causes.first().map_or(0.0, |cause| cause.share);
    causes.retain(|cause| cause.share >= cause.worth(facts, account).min(first));
    causes.truncate(MOST);
    for cause in &mut causes {
        cause.words += &others(facts, cause);
    }
    causes
}

/// Merges faults of the same kind and time into the one that cost most.
fn merge_alike(facts: &Facts, causes: &mut Vec<Cause>) {
    let fault = |cause: &Cause| match cause.key {
        (Class::Fault, fault) => facts.faults.get(fault),
        _ => None,
    };
    let mut merged: Vec<(Cause, Vec<String>)> = Vec::new();
    for cause in std::mem::take(causes) {
        let alike = |known: &Cause| match (fault(known), fault(&cause)) {
            (Some(a), Some(b)) => a.takes_down() && a.kind == b.kind && a.when() == b.when(),
            _ => false,
        };
        match (merged.iter_mut().find(|(known, _)| alike(known)), fault(&cause)) {
            (Some((known, more)), Some(fault)) => {
                known.share += cause.share;
                more.push(fault.on.clone());
            }
            _ => merged.push((cause, Vec::new())),
        }
    }
    causes.extend(merged.into_iter().map(|(mut cause, mut more)| {
        more.sort();
        if !more.is_empty() {
            cause.words += &format!("; likewise {}", list(&more));
        }
        cause
    }));
}

/// Describes the other links of a cause.
fn others(facts: &Facts, cause: &Cause) -> String {
    let [first, rest @ ..] = cause.links.as_slice() else { return String::new() };
    let mut rest: Vec<(usize, f64)> = rest.to_vec();
    rest.retain(|(link, _)| *link != first.0);
    rest.dedup_by_key(|(link, _)| *link);
    if rest.is_empty() || cause.is_fault() {
        return String::new();
    }
    let mut named: Vec<String> = rest
        .iter()
        .filter(|(_, share)| *share >= 0.3 * first.1)
        .take(2)
        .map(|(link, _)| facts.links[*link].name())
        .collect();
    let left = rest.len() - named.len();
    if left > 0 {
        named.push(format!("{left} more"));
    }
    format!("; also {}", list(&named))
}

/// Joins words in a sentence.
pub(super) fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// A named cause: its class, its number within the class, the link concerned, and its description.
pub(super) type NamedCause = (Class, usize, Option<usize>, String);

pub(super) struct CauseBuilder<'a> {
    pub(super) facts: &'a Facts,
    pub(super) account: &'a LostTime,
}

impl CauseBuilder<'_> {
    fn cause(&self, held: DelayCause, share: f64) -> Cause {
        let (class, place, link, words) = match held {
            DelayCause::Link(link) => self.link(link),
            DelayCause::Storm(link) => self.storm(link),
            DelayCause::Down(link) => {
                (Class::Loss, link, Some(link), format!("{} was down", self.name(link)))
            }
            DelayCause::Fault(fault) => self.fault(&self.facts.faults[fault], self.busiest_of(fault)),
            DelayCause::SlowLink(link) => self.slow_link(link),
            DelayCause::Background(link) => self.other_group(link).unwrap_or_else(|| self.link(link)),
            DelayCause::Outage => self.outage(),
            DelayCause::Travel(link) => self.distance(link),
            DelayCause::Loss => self.loss(),
            DelayCause::Control => self.control(),
            DelayCause::Credit => {
                (Class::Credit, 0, None, "receivers granted credit slowly while no link was full".to_owned())
            }
            DelayCause::Window => self.window(),
            DelayCause::Receiver => {
                (Class::NotPosted, 0, None, "receivers that had posted no receive".to_owned())
            }
        };
        let links = link.map(|link| (link, share)).into_iter().collect();
        Cause { key: (class, place), share, links, words }
    }

    pub(super) fn name(&self, link: usize) -> String {
        self.facts.links[link].name()
    }

    /// Describes the utilisation of a link and its queue.
    pub(super) fn state(&self, link: usize) -> String {
        let at = &self.facts.links[link];
        let queue = match at.max_queue_bytes {
            bytes if bytes > 0.0 => format!(", queue up to {}", Quantity::Bytes.format(bytes)),
            _ => String::new(),
        };
        format!("{:.0} % busy{queue}", at.busy * 100.0)
    }

    /// Names the cause of waiting at a link.
    pub(super) fn link(&self, link: usize) -> NamedCause {
        let at = &self.facts.links[link];
        let room = self.facts.room_beside(link, &self.account.flows);
        let is_alone = || self.facts.parallel_links(link, self.late_at(link)).len() == 1;
        if self.facts.is_slow(link) && (room.is_some() || at.is_of_host() || is_alone()) {
            return self.slow_link(link);
        }
        if let Some(crowd) = self.other_group(link).filter(|_| self.group_share(link) >= 0.5) {
            return crowd;
        }
        if at.is_to_host() {
            return self.receiver(link);
        }
        if let Some(nic) = self.nic(link) {
            return nic;
        }
        if at.is_from_host() {
            let shared = if self.facts.flows_at_once(link) > 1 { ", which its flows share" } else { "" };
            let words = format!("the sender's own link {}{shared}: {}", at.name(), self.state(link));
            return (Class::Sender, 0, Some(link), words);
        }
        self.between_switches(link, room)
    }

    fn slow_link(&self, link: usize) -> NamedCause {
        let at = &self.facts.links[link];
        let words = format!(
            "{}: {} has {} where similar links have {}; {}",
            if at.is_of_host() { "slow NIC" } else { "slow link" },
            at.name(),
            Quantity::RateBps.format(at.rate_bps),
            Quantity::RateBps.format(self.facts.usual_rate_bps(link)),
            self.state(link)
        );
        (Class::SlowLink, link, Some(link), words + &self.thresholds(link))
    }

    /// Returns the share of the packets at a link of the group that has most there.
    fn group_share(&self, link: usize) -> f64 {
        self.account.at.get(&link).map_or(0.0, |(.., share)| *share)
    }

    /// Names traffic of another group as the cause: in the background, or in a class of more weight.
    fn other_group(&self, link: usize) -> Option<NamedCause> {
        let (_, most, most_share) = self.account.at.get(&link)?;
        let workloads = self.facts.settings.workloads();
        let here = |flow: &&usize| self.facts.flows[**flow].crosses(link);
        let victim = &self.facts.flows[*self.account.flows.iter().find(here)?].group;
        // The group with most packets may be the victim itself, and all others in the background.
        let (place, group_share) = match most == victim {
            false => (workloads.iter().position(|workload| workload.group == *most)?, *most_share),
            true => (workloads.iter().position(|workload| workload.is_background)?, 1.0 - most_share),
        };
        let group = &workloads[place].group;
        if group == victim {
            return None;
        }
        let class_of = |group: &str| workloads.iter().find(|w| w.group == *group).map_or(1, |w| w.class);
        let (theirs, ours) = (class_of(group), class_of(victim));
        let weights = self.facts.settings.weights();
        let weight = |class: usize| weights.get(class - 1).copied().unwrap_or(1.0);
        if theirs != ours && weight(theirs) > weight(ours) {
            let words = format!(
                "class {ours} of \"{victim}\" starved: its weight is {} where class {theirs} of \"{group}\" has {} \
                 (switch.weights), at {}: {}",
                weight(ours),
                weight(theirs),
                self.name(link),
                self.state(link)
            );
            return Some((Class::Starved, place, Some(link), words));
        }
        if !workloads[place].is_background {
            return None;
        }
        let words = format!(
            "background job \"{group}\": {} of the packets at {}, {}",
            share(group_share),
            self.name(link),
            self.state(link)
        );
        Some((Class::Background, place, Some(link), words))
    }

    /// Names a limit of the sender's NIC, if its link had room.
    fn nic(&self, link: usize) -> Option<NamedCause> {
        let at = &self.facts.links[link];
        if !at.is_from_host() || at.busy > NIC_BUSY {
            return None;
        }
        let settings = &self.facts.settings;
        let bus_bps = settings.rate_bps("network.nic.pcie_rate")?;
        let limit = if bus_bps < at.rate_bps {
            format!(
                "its PCIe has {} (network.nic.pcie_rate), the link {}",
                Quantity::RateBps.format(bus_bps),
                Quantity::RateBps.format(at.rate_bps)
            )
        } else {
            let fits = settings.number("network.nic.qp_fits")?;
            format!("it holds {fits} queue pairs (network.nic.qp_fits) and fetches others")
        };
        let words = format!("the NIC of {}: {limit}; {} was {}", at.from, at.name(), self.state(link));
        Some((Class::Sender, 1, Some(link), words))
    }

    /// Returns the largest number of hosts that sent over a host's link at once.
    pub(super) fn senders(&self, link: usize) -> f64 {
        let waited = self.account.at.get(&link).map_or(f64::NAN, |(senders, ..)| *senders);
        waited.max(self.facts.senders_at_once(link) as f64)
    }

    fn receiver(&self, link: usize) -> NamedCause {
        let at = &self.facts.links[link];
        let senders = self.senders(link);
        let words = if senders >= 2.0 {
            format!("incast to {}: {senders:.0} hosts send over {}, {}", at.to, at.name(), self.state(link))
        } else {
            format!("the receiver's link {}: {}", at.name(), self.state(link))
        };
        (Class::Receiver, 0, Some(link), words + &self.thresholds(link))
    }

    /// Names the cause at a link between switches, with the room on links beside it.
    fn between_switches(&self, link: usize, room: Option<Room>) -> NamedCause {
        let at = &self.facts.links[link];
        let tier = at.tier as usize;
        let (switch, name, side) = match at.direction {
            Direction::Down => (at.to_node, &at.to, "into"),
            _ => (at.from_node, &at.from, "from"),
        };
        // One flow does not collide. Without records of waits no flow is known.
        let collides = self.facts.flows.is_empty() || self.facts.flows_at_once(link) > 1;
        // Schemes that spread packets leave links unused for faults.
        let by_fault = |(held, share): &(DelayCause, f64)| {
            matches!(held, DelayCause::Fault(_) | DelayCause::SlowLink(_)) && *share >= FAULT_WORTH
        };
        let collides = collides && (self.facts.keeps_paths() || !self.account.shares.iter().any(by_fault));
        if let Some(room) = room.filter(|_| collides) {
            let busy = format!("{:.0} % busy", room.busy * 100.0);
            let others = match room.links.len() {
                1 => format!("the link beside it {side} {name} was {busy}"),
                links => format!("the {links} links beside it {side} {name} were {busy} in the mean"),
            };
            let by_hash = if self.facts.keeps_paths() { " (collisions of hashes)" } else { "" };
            let words = format!(
                "unevenly used paths{by_hash}: {} was {}, while {others}",
                at.name(),
                self.state(link)
            );
            return (Class::Collision, 0, Some(link), words + &self.thresholds(link));
        }
        if let Some(ratio) = self.facts.oversubscription(switch).filter(|ratio| *ratio >= OVERSUBSCRIBED) {
            let words = format!(
                "oversubscription {}:1 at {name}: {} was {}",
                plain(ratio),
                at.name(),
                self.state(link)
            );
            return (Class::Oversubscribed, tier, Some(link), words + &self.thresholds(link));
        }
        let words = format!("links between switches: {} was {}", at.name(), self.state(link));
        (Class::Fabric, tier, Some(link), words + &self.thresholds(link))
    }

    /// Returns the slowest flow that lost time at a link.
    fn late_at(&self, link: usize) -> Option<&Flow> {
        let here = |flow: &&Flow| flow.crosses(link);
        self.account.flows.iter().map(|&flow| &self.facts.flows[flow]).find(here)
    }

    fn storm(&self, link: usize) -> NamedCause {
        let at = &self.facts.links[link];
        let paused = Quantity::TimeNs.format(at.paused_ns);
        let words = format!("PFC storm from {}: it paused {} for {paused}", at.to, at.name());
        let victims = self.facts.links.iter().filter(|other| other.paused_ns > 0.0).count() - 1;
        let spread = match victims {
            0 => String::new(),
            n => format!(", and pauses spread to {n} more links"),
        };
        (Class::Storm, link, Some(link), words + &spread)
    }

    fn distance(&self, link: usize) -> NamedCause {
        let words = format!("distance: packets were longest on {}", self.name(link));
        (Class::Distance, link, Some(link), words)
    }

    /// Describes marking thresholds that are too high or too low for the queue.
    fn thresholds(&self, link: usize) -> String {
        let at = &self.facts.links[link];
        let settings = &self.facts.settings;
        let (Some(kmin), true) =
            (settings.threshold_bytes("kmin", at.rate_bps), settings.is_on("switch.ecn.enabled"))
        else {
            return String::new();
        };
        let ns = |bytes: f64| bytes * 8e9 / at.rate_bps;
        if !self.facts.heeds_marks(&self.account.flows) {
            return String::new();
        }
        let long = ns(kmin) >= LONG_NS && ns(kmin) >= LONG_RTTS * self.facts.round_trip_ns();
        let stood = at.max_queue_bytes >= kmin.min(at.rate_bps / 8e9 * LONG_NS);
        if !(long && stood) {
            return String::new();
        }
        format!(
            "; ECN thresholds too high: marking begins at {} (switch.ecn.kmin), {} of queue, {} round trips",
            Quantity::Bytes.format(kmin),
            Quantity::TimeNs.format(ns(kmin)),
            plain(ns(kmin) / self.facts.round_trip_ns())
        )
    }
}

pub(super) fn share(of: f64) -> String {
    match of * 100.0 {
        percent if percent >= 1.0 || percent == 0.0 => format!("{percent:.0} %"),
        percent => format!("{percent:.2} %"),
    }
}

/// Formats a number, with a fraction only if it has one.
fn plain(value: f64) -> String {
    let rounded = (value * 10.0).round() / 10.0;
    if rounded.fract() == 0.0 { format!("{rounded:.0}") } else { format!("{rounded:.1}") }
}
