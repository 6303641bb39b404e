//! Outages: spans in which faults leave a pair of hosts no path, alone or together.

use pathweave_records::{FlowRecord, FlowStats, FlowStatus, LATE_SLOWDOWN, Quantity, Role, RunResult, ns};

use super::causes::{CauseBuilder, Class, NamedCause, list};
use super::facts::{Facts, Flow};
use super::settings::Fault;
use super::table::Table;
use super::weigh::Journey;

/// Largest number of unfinished flows of which a run names the ends.
const OPEN: usize = 10;
/// Number of the slowest flows that finished, of which a run names the ends.
const SLOWEST: usize = 32;
/// Length of a span that stands for an instant.
const INSTANT_NS: f64 = 1.0;

/// A span in which no path led from one host to another.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outage {
    pub(super) src_host: u32,
    pub(super) dst_host: u32,
    /// Faults that cut the pair off together, as indices into [`Facts::faults`].
    pub(super) faults: Vec<usize>,
    pub(super) from_ns: f64,
    /// End of the outage, or of the flow that met it.
    pub(super) until_ns: f64,
}

impl Outage {
    /// Returns the part of a flow's delay that the outage explains.
    pub(super) fn part_of(&self, delay_ns: f64) -> f64 {
        ((self.until_ns - self.from_ns) / delay_ns.max(INSTANT_NS)).clamp(0.0, 1.0)
    }
}

/// End of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Finished,
    /// The flow had no path when it was posted.
    Unreachable,
    /// The sender gave up after too many timeouts.
    GaveUp,
    /// The run ended first.
    Open,
}

/// A flow by its ends and times, known without records of waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trip {
    src_host: u32,
    dst_host: u32,
    start_ns: f64,
    /// Infinite if the flow did not finish.
    took_ns: f64,
    ideal_ns: f64,
    pub(super) timeouts: f64,
    pub(super) ending: Ending,
}

impl Trip {
    fn of_record(flow: &FlowRecord) -> Trip {
        Trip {
            src_host: flow.src_host,
            dst_host: flow.dst_host,
            start_ns: ns(flow.start_ps),
            took_ns: flow.fct_ps().map_or(f64::INFINITY, ns),
            ideal_ns: ns(flow.ideal_fct_ps),
            timeouts: f64::from(flow.timeouts),
            ending: match flow.status {
                FlowStatus::Finished => Ending::Finished,
                FlowStatus::Unreachable => Ending::Unreachable,
                FlowStatus::RetriesExceeded => Ending::GaveUp,
                FlowStatus::Unfinished | FlowStatus::Refused => Ending::Open,
            },
        }
    }

    fn of_row(flows: &Table, row: usize) -> Trip {
        let known = |column: &str| Some(flows.number(column, row)).filter(|value| value.is_finite());
        Trip {
            src_host: flows.number("src_host", row) as u32,
            dst_host: flows.number("dst_host", row) as u32,
            start_ns: known("start_ns").unwrap_or(0.0),
            took_ns: known("fct_ns").unwrap_or(f64::INFINITY),
            ideal_ns: known("ideal_fct_ns").unwrap_or(0.0),
            timeouts: known("timeouts").unwrap_or(0.0),
            ending: match flows.text("status", row) {
                status if status == FlowStatus::Finished.name() => Ending::Finished,
                status if status == FlowStatus::Unreachable.name() => Ending::Unreachable,
                status if status == FlowStatus::RetriesExceeded.name() => Ending::GaveUp,
                _ => Ending::Open,
            },
        }
    }

    /// Returns the flow in space and time, up to the end of the run.
    pub(super) fn journey(&self, run_ns: f64) -> Journey {
        let end_ns = if run_ns > 0.0 { run_ns } else { f64::INFINITY }.min(self.start_ns + self.took_ns);
        let (src_host, dst_host) = (self.src_host, self.dst_host);
        Journey { src_host, dst_host, start_ns: self.start_ns, end_ns: end_ns.max(self.start_ns) }
    }

    /// Returns true if the flow was late when the run ended or its sender gave up. One that was never posted is not.
    pub(super) fn is_late(&self, run_ns: f64) -> bool {
        let has_ended = !matches!(self.ending, Ending::Open | Ending::GaveUp);
        !has_ended && self.ideal_ns > 0.0 && self.lateness(run_ns) >= LATE_SLOWDOWN - 1.0
    }

    /// Returns the time lost against an idle network, up to the end of the run.
    pub(super) fn lost_ns(&self, run_ns: f64) -> f64 {
        let journey = self.journey(run_ns);
        (journey.end_ns - journey.start_ns - self.ideal_ns).max(0.0)
    }

    /// Returns the time lost over that on an idle network.
    pub(super) fn lateness(&self, run_ns: f64) -> f64 {
        self.lost_ns(run_ns) / self.ideal_ns.max(INSTANT_NS)
    }

    /// Returns the first flows of a run that did not finish, and the slowest ones that did.
    pub(super) fn of_run(run: &RunResult, figures: &FlowStats) -> Vec<Trip> {
        let measured = |flow: &&FlowRecord| run.info.role(flow.group) == Role::Foreground;
        let slowest = figures.sample.slowest().filter(measured).take(SLOWEST);
        figures.unfinished().iter().chain(slowest).map(Trip::of_record).collect()
    }

    /// Returns the same flows from a table of all.
    pub(super) fn of_table(flows: &Table) -> Vec<Trip> {
        let slowdown = |row: usize| flows.number("slowdown", row);
        let is_open = |row: &usize| flows.text("status", *row) != FlowStatus::Finished.name();
        let mut slowest: Vec<usize> = flows.measured().filter(|&row| slowdown(row).is_finite()).collect();
        slowest.sort_by(|&a, &b| slowdown(b).total_cmp(&slowdown(a)));
        slowest.truncate(SLOWEST);
        flows
            .measured()
            .filter(is_open)
            .take(OPEN)
            .chain(slowest)
            .map(|row| Trip::of_row(flows, row))
            .collect()
    }
}

impl Facts {
    /// Returns the first outage of a pair of hosts in a span. Flapping links are down too shortly for one.
    fn outage(&self, src_host: u32, dst_host: u32, from_ns: f64, to_ns: f64) -> Option<Outage> {
        let cuts = |fault: &Fault| fault.takes_down() && fault.kind != "link-flap";
        let met: Vec<usize> = (0..self.faults.len())
            .filter(|&fault| cuts(&self.faults[fault]) && self.faults[fault].meets(from_ns, to_ns))
            .collect();
        if met.is_empty() || self.leave_a_path(&met, src_host, dst_host) {
            return None;
        }
        let mut begins: Vec<f64> = met.iter().map(|&fault| self.faults[fault].at_ns.max(from_ns)).collect();
        begins.sort_by(f64::total_cmp);
        begins.dedup();
        begins.into_iter().find_map(|at_ns| {
            let down = met.iter().copied().filter(|&fault| self.faults[fault].is_in_force(at_ns)).collect();
            let faults = self.needed(down, src_host, dst_host)?;
            let ends = faults.iter().filter_map(|&fault| self.faults[fault].until_ns);
            let until_ns = ends.fold(to_ns, f64::min);
            Some(Outage { src_host, dst_host, faults, from_ns: at_ns, until_ns })
        })
    }

    /// Returns those of the faults in force without any of which a pair of hosts would have a path, or `None` if the
    /// faults leave it one, or if it never had one.
    fn needed(&self, mut down: Vec<usize>, src_host: u32, dst_host: u32) -> Option<Vec<usize>> {
        if self.leave_a_path(&down, src_host, dst_host) {
            return None;
        }
        for place in (0..down.len()).rev() {
            let fault = down.remove(place);
            if self.leave_a_path(&down, src_host, dst_host) {
                down.insert(place, fault);
            }
        }
        Some(down).filter(|down| !down.is_empty())
    }

    /// Returns true if a pair of hosts has a path while these faults are in force.
    fn leave_a_path(&self, faults: &[usize], src_host: u32, dst_host: u32) -> bool {
        let taken = |fault: &Fault| {
            let links = self.links.iter().enumerate().filter(|_| fault.takes_down());
            links.filter(|(_, link)| link.has(fault)).map(|(index, _)| index).collect::<Vec<usize>>()
        };
        let of_fault = self.links_down.get_or_init(|| self.faults.iter().map(taken).collect());
        let mut is_up = vec![true; self.links.len()];
        faults.iter().flat_map(|&fault| &of_fault[fault]).for_each(|&link| is_up[link] = false);
        self.has_path(src_host, dst_host, |link| is_up[link])
    }

    /// Returns the first outage that a flow met.
    pub(super) fn outage_of(&self, flow: &Flow) -> Option<Outage> {
        self.outage(flow.src_host, flow.dst_host, flow.start_ns, flow.end_ns())
    }

    /// Returns the first outage of a flow without records of waits, and the part of its delay that it explains.
    pub(super) fn outage_of_trip(&self, trip: &Trip) -> Option<(f64, Outage)> {
        let outage =
            self.outage(trip.src_host, trip.dst_host, trip.start_ns, trip.start_ns + trip.took_ns)?;
        let part = if trip.took_ns.is_finite() { outage.part_of(trip.took_ns - trip.ideal_ns) } else { 1.0 };
        Some((part, outage))
    }

    /// Describes a flow that had no path when it was posted.
    pub(super) fn unreachable(&self, trip: &Trip) -> String {
        let (src, dst) = (self.host_name(trip.src_host), self.host_name(trip.dst_host));
        let until = |end_ns: f64| self.outage(trip.src_host, trip.dst_host, trip.start_ns, end_ns);
        // The path may have ended while the flow waited for its NIC.
        let outage = until(trip.start_ns + INSTANT_NS).or_else(|| until(f64::INFINITY));
        let faults = outage.map_or_else(Vec::new, |outage| outage.faults);
        let told = |&fault: &usize| {
            let fault = &self.faults[fault];
            format!("{} {} {}", fault.name(), fault.on, fault.when())
        };
        match faults.iter().map(told).collect::<Vec<String>>() {
            told if told.is_empty() => format!("{dst} could not be reached from {src}, as no path led there"),
            told => format!("{dst} could not be reached from {src}: {}", list(&told)),
        }
    }

    /// Returns the part of the packets lost that an outage took; all of them if none was.
    pub(super) fn part_lost_in(&self, outage: &Outage) -> f64 {
        match self.drops.values().sum::<u64>() {
            0 => 1.0,
            all => self.lost_in(outage) as f64 / all as f64,
        }
    }

    /// Returns the number of packets lost in an outage: on the links that were down, and for want of a path.
    fn lost_in(&self, outage: &Outage) -> u64 {
        let is_down =
            |link: usize| outage.faults.iter().any(|&fault| self.links[link].has(&self.faults[fault]));
        let of_outage = |reason: &str, link: usize| match reason {
            "no_route" => true,
            "link_down" => is_down(link),
            _ => false,
        };
        let lost = self.drops.iter().filter(|((reason, link), _)| of_outage(reason, *link));
        lost.map(|(_, count)| count).sum()
    }
}

impl CauseBuilder<'_> {
    /// Names the faults that left late flows no path.
    pub(super) fn outage(&self) -> NamedCause {
        let Some(outage) = &self.account.outage else { return self.loss() };
        let facts = self.facts;
        let (src, dst) = (facts.host_name(outage.src_host), facts.host_name(outage.dst_host));
        let faults: Vec<&Fault> = outage.faults.iter().map(|&fault| &facts.faults[fault]).collect();
        if let [fault] = faults.as_slice() {
            let (class, place, link, words) = self.fault(fault, None);
            return (class, place, link, format!("{words}, which left {src} no path to {dst}"));
        }
        let end_ns = faults.iter().filter_map(|fault| fault.until_ns).min_by(f64::total_cmp);
        let until = end_ns.map_or(String::new(), |ns| format!(" until {}", Quantity::TimeNs.format(ns)));
        let names: Vec<String> =
            faults.iter().map(|fault| format!("{} {}", fault.name(), fault.on)).collect();
        let lost = match facts.lost_in(outage) {
            0 => String::new(),
            lost => format!(", {} packets lost", Quantity::Count.format(lost as f64)),
        };
        let words = format!(
            "no path from {src} to {dst} from {} on{until}: {} at once{lost}",
            Quantity::TimeNs.format(outage.from_ns),
            list(&names)
        );
        (Class::Fault, outage.faults[0], None, words)
    }
}
