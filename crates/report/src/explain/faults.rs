//! Faults as causes of runs without records of waits, and faults that were in force without being a cause.

use std::collections::{BTreeMap, BTreeSet};

use pathweave_records::Quantity;

use super::accounting::LostTime;
use super::causes::{CauseBuilder, Class, FAULT_WORTH, NamedCause, causes, share};
use super::facts::{Facts, Flow};
use super::findings::Run;
use super::outage::{Ending, Trip};
use super::settings::Fault;

/// Fraction of the delay of the slowest flow from which another flow is late.
const LOOK: f64 = 0.25;
/// Largest number of faults listed.
const LISTED: usize = 5;

impl Facts {
    /// Returns the links on the shortest paths of flows.
    pub(super) fn links_of_paths(&self, trips: &[&Trip]) -> BTreeSet<usize> {
        let ends = trips.iter().map(|trip| trip.journey(self.run_ns));
        let pairs: BTreeSet<(u32, u32)> = ends.map(|ends| (ends.src_host, ends.dst_host)).collect();
        pairs
            .into_iter()
            .flat_map(|(src_host, dst_host)| self.layers_between(src_host, dst_host).concat())
            .collect()
    }

    /// Returns the probability with which a fault and those of its kind that go on beside it take a packet from its link. They
    /// are independent.
    fn probability(&self, fault: &Fault) -> f64 {
        let end_ns = fault.until_ns.unwrap_or(f64::INFINITY);
        let beside = |other: &&Fault| {
            other.kind == fault.kind && other.on == fault.on && other.overlap_ns(fault.at_ns, end_ns) > 0.0
        };
        1.0 - self.faults.iter().filter(beside).map(|other| 1.0 - other.probability).product::<f64>()
    }
}

impl CauseBuilder<'_> {
    /// Returns the faults of a link that were in force while late flows were on the way, or in the run if none was late.
    pub(super) fn faults_of(&self, link: usize) -> impl Iterator<Item = &Fault> {
        let late = || self.account.flows.iter().map(|&flow| &self.facts.flows[flow]);
        self.facts.faults_of(link).filter(move |fault| {
            let met = |flow: &Flow| flow.meets(fault);
            self.facts.was_in_force(fault) && (late().next().is_none() || late().any(met))
        })
    }

    pub(super) fn fault_that_takes_down(&self, link: usize) -> Option<&Fault> {
        self.faults_of(link).find(|fault| fault.takes_down())
    }

    /// Names a fault as a cause, with the use of one of its links.
    pub(super) fn fault(&self, fault: &Fault, link: Option<usize>) -> NamedCause {
        let place = self.facts.faults.iter().position(|other| other == fault).unwrap_or(0);
        let when = fault.when();
        let at = link.map_or(String::new(), |link| format!("; {} was {}", self.name(link), self.state(link)));
        let lost = match self.facts.lost_on(fault) {
            0 => String::new(),
            lost => format!(", {} packets lost on it", Quantity::Count.format(lost as f64)),
        };
        let words = match fault.kind.as_str() {
            "link-rate" => {
                let rate = fault.rate_bps.unwrap_or(f64::NAN);
                let usual = link.map_or(f64::NAN, |link| self.facts.links[link].rate_bps);
                let what = match link.is_some_and(|link| self.facts.links[link].is_of_host()) {
                    true => "slow NIC, link",
                    false => "slow link",
                };
                format!(
                    "{what} {}: {} instead of {} {when}{at}",
                    fault.on,
                    Quantity::RateBps.format(rate),
                    Quantity::RateBps.format(usual)
                )
            }
            "link-delay" => format!(
                "long link {}: a delay of {} {when}",
                fault.on,
                Quantity::TimeNs.format(fault.delay_ns.unwrap_or(f64::NAN))
            ),
            "link-down" => format!("link {} down {when}{lost}", fault.on),
            "link-flap" => format!("flapping link {}: down {} times {when}{lost}", fault.on, fault.times),
            "switch-down" => format!("switch {} down {when}{lost}", fault.on),
            "pause-storm" => format!("PFC storm: {} paused its link {when}", fault.on),
            "link-loss" | "link-corruption" => {
                let does = if fault.kind == "link-loss" { "drops" } else { "corrupts" };
                let packets = share(self.facts.probability(fault));
                format!("lossy link {}: it {does} {packets} of the packets", fault.on)
            }
            other => format!("fault {other} on {}", fault.on),
        };
        (Class::Fault, place, link, words)
    }

    /// Returns the link of a fault that carried most.
    pub(super) fn busiest_of(&self, fault: usize) -> Option<usize> {
        let links = &self.facts.links;
        let own = (0..links.len()).filter(|&link| links[link].has(&self.facts.faults[fault]));
        own.max_by(|&a, &b| links[a].tx_bytes.total_cmp(&links[b].tx_bytes).then(b.cmp(&a)))
    }
}

impl Run {
    /// Returns the late flows among those whose ends are known without records of waits.
    pub(super) fn late_trips(&self) -> Vec<&Trip> {
        let run_ns = self.facts.run_ns;
        let posted = || self.trips.iter().filter(|trip| trip.ending != Ending::Unreachable);
        let most = posted().map(|trip| trip.lateness(run_ns)).fold(0.0, f64::max);
        posted().filter(|trip| trip.lateness(run_ns) >= LOOK * most).collect()
    }

    /// Returns upper bounds of the shares of the late flows' lost time that faults can have cost, by fault.
    fn bounds_of_trips(&self, late: &[&Trip]) -> BTreeMap<usize, f64> {
        let mut bounds: BTreeMap<usize, f64> = BTreeMap::new();
        let run_ns = self.facts.run_ns;
        let all: f64 = late.iter().map(|trip| trip.lateness(run_ns)).sum();
        for trip in late.iter().filter(|trip| trip.lost_ns(run_ns) > 0.0) {
            let part = trip.lateness(run_ns) / all;
            for (fault, ns) in self.facts.bounds_of_trip(trip) {
                *bounds.entry(fault).or_default() += part * (ns / trip.lost_ns(run_ns)).min(1.0);
            }
        }
        bounds
    }

    /// Returns the faults that can have cost late flows a fair part of their lost time, in words behind the parts.
    pub(super) fn by_faults(&self, late: &[&Trip]) -> Vec<(f64, String)> {
        let facts = &self.facts;
        let words = |account: &LostTime| causes(facts, account).into_iter().next().map(|cause| cause.words);
        let outage = late.iter().find_map(|trip| facts.outage_of_trip(trip));
        let mut of_outage: Vec<usize> = Vec::new();
        let mut found: Vec<(f64, String)> = Vec::new();
        if let Some((part, outage)) = outage {
            of_outage.clone_from(&outage.faults);
            found.extend(words(&LostTime::of_outage(outage)).map(|words| (part, words)));
        }
        let left = 1.0 - found.iter().map(|(part, _)| part).sum::<f64>();
        let mut bounds = self.bounds_of_trips(late);
        bounds.retain(|fault, part| *part >= FAULT_WORTH && !of_outage.contains(fault));
        let all: f64 = bounds.values().sum();
        for (&fault, part) in &bounds {
            let part = part * (left / all).min(1.0);
            found.extend(words(&LostTime::of_fault(fault)).map(|words| (part, words)));
        }
        found
    }

    /// Describes faults that late flows met and `said` does not mention, with their length and the largest share of the
    /// lost time that they can have cost.
    pub(super) fn faults_besides(&self, said: &str, account: &LostTime) -> String {
        let facts = &self.facts;
        let late = self.late_trips();
        let no_waits = account.flows.is_empty();
        let bounds = if no_waits { self.bounds_of_trips(&late) } else { account.bounds.clone() };
        let meets = |fault: &Fault| match no_waits {
            false => account.flows.iter().any(|&flow| facts.flows[flow].meets(fault)),
            true if late.is_empty() => facts.was_in_force(fault),
            true => late.iter().any(|trip| {
                let ends = trip.journey(facts.run_ns);
                fault.meets(ends.start_ns, ends.end_ns)
            }),
        };
        let others = facts.faults.iter().enumerate();
        let others = others.filter(|(_, fault)| meets(fault) && !is_said(fault, said));
        let mut words: Vec<String> = others
            .map(|(index, fault)| {
                let mut notes: Vec<String> = Vec::new();
                if fault.until_ns.is_some() {
                    let long_ns = fault.overlap_ns(0.0, f64::INFINITY);
                    notes.push(format!("for {}", Quantity::TimeNs.format(long_ns)));
                }
                match facts.lost_on(fault) {
                    0 => {}
                    lost => notes.push(format!("{} packets lost on it", Quantity::Count.format(lost as f64))),
                }
                let bound = bounds.get(&index).copied().unwrap_or_else(|| self.bound_in_scale_up(fault));
                if bound < FAULT_WORTH && !said.starts_with("nothing") {
                    notes.push(format!("at most {} of the time lost", share_at_most(bound)));
                }
                let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
                format!("{} {}{notes}", fault.name(), fault.on)
            })
            .collect();
        words.truncate(LISTED);
        if words.is_empty() { String::new() } else { format!("; also in force: {}", words.join("; ")) }
    }
}

/// Returns true if the words name a fault as a cause. Names of switches are parts of names of links.
fn is_said(fault: &Fault, said: &str) -> bool {
    let on = &fault.on;
    match fault.kind.as_str() {
        "switch-down" => [format!("switch {on} down"), format!("switch down {on}"), format!("likewise {on}")]
            .iter()
            .any(|words| said.contains(words.as_str())),
        "pause-storm" => {
            said.contains(&format!("PFC storm from {on}")) || said.contains(&format!("PFC storm: {on}"))
        }
        _ => said.contains(on.as_str()),
    }
}

/// Formats an upper bound of a share, rounded up.
fn share_at_most(share: f64) -> String {
    match share * 100.0 {
        percent if percent < 0.1 => "0.1 %".to_owned(),
        percent if percent < 1.0 => format!("{:.1} %", (percent * 10.0).ceil() / 10.0),
        percent => format!("{:.0} %", percent.ceil()),
    }
}
