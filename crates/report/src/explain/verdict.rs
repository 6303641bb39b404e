//! The verdict: a sentence on the limits of a run.

use std::collections::BTreeMap;

use pathweave_records::{LATE_SLOWDOWN, WaitKind, idle_latency_ns};

use super::Finding;
use super::accounting::LostTime;
use super::causes::causes;
use super::facts::{Facts, median};
use super::findings::{Run, counted, percent};
use super::outage::{Ending, Trip};
use super::settings::time_ns;
use super::work::{self, Paths};

/// Share of the time of jobs from which the delay of messages matters.
const LOST_SHARE: f64 = 0.1;
/// Share from which latency dominates.
const LATENCY_SHARE: f64 = 0.5;
/// Factor over the median link's time in transit from which a link counts as far longer than others.
const FAR_FACTOR: f64 = 5.0;
/// Share of the time of slow flows from which a cause is listed.
const LEAST_SHARE: f64 = 0.01;
/// Share of a cause's time from which one link stands for all.
const ALMOST_ALL: f64 = 0.9;

impl Run {
    pub(super) fn verdict(&self) -> Finding {
        let slowest = self.slowest();
        let tail =
            slowest.get(slowest.len() / 100).map_or(f64::NAN, |&row| self.flows.number("slowdown", row));
        let open = self.measured().filter(|&row| self.flows.text("status", row) != "finished").count();
        let open = self.times_recorded * open as u64;
        let paths = Paths::new(&self.critical);
        let of_jobs = paths.all_ns();
        // One late message in a hundred delays no computation by itself; one in a thousand may delay the job.
        let delays_jobs = of_jobs > 0.0 && paths.lost_ns >= LOST_SHARE * of_jobs;
        let matters = delays_jobs || (paths.computation_ns == 0.0 && tail >= LATE_SLOWDOWN);
        let unreachable = self.trips.iter().find(|trip| trip.ending == Ending::Unreachable);
        // Flows that are young when the run ends are not late.
        let held_up = match self.facts.flows.first() {
            Some(flow) => open > 0 && !flow.is_cut && flow.slowdown() >= LATE_SLOWDOWN,
            None => {
                open > 0
                    && unreachable.is_none()
                    && self.trips.iter().any(|trip| trip.is_late(self.facts.run_ns))
            }
        };
        // Those that would have been late at the pace so far tell what held them up, as late ones do.
        let falls_behind =
            open > 0 && self.facts.flows.iter().any(|flow| flow.is_cut && flow.slowdown() >= LATE_SLOWDOWN);
        let stuck = held_up || unreachable.is_some();
        let mut found: Vec<(f64, String)> = Vec::new();
        let account = LostTime::new(&self.facts, tail);
        if held_up || falls_behind || (matters && !tail.is_nan()) {
            let lost = if paths.computation_ns > 0.0 { paths.lost_ns / of_jobs } else { 1.0 };
            let mut inside = self.in_scale_up();
            if inside.iter().map(|(share, _)| share).sum::<f64>() < LOST_SHARE {
                inside.clear();
            }
            let outside = 1.0 - inside.iter().map(|(share, _)| share).sum::<f64>();
            if held_up || falls_behind || outside >= LOST_SHARE {
                found.extend(self.of_network(&account, lost * outside));
            }
            found.extend(inside.into_iter().map(|(share, words)| (lost * share, words)));
        }
        let name = |host: u32| self.facts.host_name(host);
        let slow = work::slow(&self.activities, &self.critical, &paths, name);
        found.extend(slow.into_iter().map(|slow| (slow.share, slow.words)));
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        let unreachable = unreachable.map(|trip| self.facts.unreachable(trip));
        let mut said: Vec<String> =
            unreachable.into_iter().chain(found.into_iter().map(|(_, words)| words)).collect();
        if open == 0 {
            let nic = self.facts.slow_nic_at_end(&said, self.measured().count());
            said.splice(0..0, nic);
        }
        let latency = self.latency(&paths, open);
        if let Some((words, Some((link, share)))) = &latency {
            let at = format!("{} of it on the way from {}", percent(*share), self.facts.links[*link].name());
            said.push(format!("distance (latency): {words}, {at}"));
        }
        let mut causes = match (said.is_empty(), latency) {
            (true, Some((words, _))) => format!("{}; {words}", self.nothing(tail, &paths, open)),
            (true, None) => self.nothing(tail, &paths, open),
            (false, _) => said.join("; and "),
        };
        causes += &self.faults_besides(&causes, &account);
        let gave_up = self.trips.iter().find(|trip| trip.ending == Ending::GaveUp);
        let words = match (open, gave_up) {
            (0, _) => causes,
            _ if stuck => format!("{} did not finish: {causes}", counted(open)),
            (_, Some(trip)) => format!(
                "{} did not finish: senders gave up, the first after {} timeouts (network.retransmission); \
                 otherwise {causes}",
                counted(open),
                trip.timeouts
            ),
            (_, None) => format!(
                "the end of the run, at which {} had not finished{}; otherwise {causes}",
                counted(open),
                self.busiest_of_open()
            ),
        };
        Finding {
            about: "limited by",
            words,
            evidence: "waits.parquet: kind, link, time_ns; links.parquet: utilisation_ratio, max_queue_bytes, paused_ns; \
                       flows.parquet: slowdown; scenario.toml",
        }
    }

    /// Returns the causes in the network, each with its part of `share`.
    fn of_network(&self, account: &LostTime, share: f64) -> Vec<(f64, String)> {
        let found = causes(&self.facts, account);
        let mut found: Vec<(f64, String)> =
            found.into_iter().map(|cause| (cause.share * share, cause.words)).collect();
        if found.is_empty() {
            let late = self.late_trips();
            let known = self.by_faults(&late);
            let rest = 1.0 - known.iter().map(|(part, _)| part).sum::<f64>();
            found.extend(known.into_iter().map(|(part, words)| (part * share, words)));
            if rest >= LOST_SHARE {
                found.push((rest * share, self.by_links(&late)));
            }
        }
        found
    }

    /// Names the busiest link on the way of flows that the end of the run cut off, for runs without records of waits, in which
    /// it is not known how much they had sent.
    fn busiest_of_open(&self) -> String {
        let open: Vec<&Trip> = self.trips.iter().filter(|trip| trip.ending == Ending::Open).collect();
        let busiest = || self.facts.links_of_paths(&open).into_iter().max_by(|&a, &b| self.by_use(a, b));
        match busiest().filter(|_| self.facts.flows.is_empty()).map(|link| &self.facts.links[link]) {
            Some(link) => {
                format!(" (of their links {} was busiest, {} of the run)", link.name(), percent(link.busy))
            }
            None => String::new(),
        }
    }

    fn by_use(&self, a: usize, b: usize) -> std::cmp::Ordering {
        self.facts.links[a].busy.total_cmp(&self.facts.links[b].busy)
    }

    /// Describes the busiest link on the paths of late flows, for runs without records of waits.
    fn by_links(&self, late: &[&Trip]) -> String {
        let links = &self.facts.links;
        let mut on_paths = self.facts.links_of_paths(late);
        if on_paths.is_empty() {
            on_paths = (0..links.len()).collect();
        }
        let busiest = on_paths.into_iter().max_by(|&a, &b| self.by_use(a, b));
        let Some(link) = busiest else { return "nothing that was recorded".to_owned() };
        let account = LostTime::of_link(link);
        let named = causes(&self.facts, &account).into_iter().next().map(|cause| cause.words);
        let interval = self.facts.settings.text("observe.interval").and_then(time_ns);
        let unknown = match interval {
            Some(0.0) => "; waits were not recorded (observe.interval = 0), so this is the busiest link",
            _ => "",
        };
        named.unwrap_or_default() + unknown
    }

    /// Returns the verdict that latency dominates the ideal time of messages, rather than rates. Also returns the
    /// link that is far longer than others, if there is one, with its share of the time on links.
    fn latency(&self, paths: &Paths, open: u64) -> Option<(String, Option<(usize, f64)>)> {
        let share = self.latency_share()?;
        if share < LATENCY_SHARE {
            return None;
        }
        let of_jobs = paths.all_ns();
        let ideal = (paths.messages_ns - paths.lost_ns) * share + paths.wait_ns;
        if of_jobs > 0.0 && ideal < LATENCY_SHARE * of_jobs {
            return None;
        }
        let mut by_link: BTreeMap<usize, f64> = BTreeMap::new();
        for part in self.facts.flows.iter().flat_map(|flow| &flow.parts) {
            if let (WaitKind::Travel, Some(link)) = (part.kind, part.link) {
                *by_link.entry(link).or_default() += part.time_ns;
            }
        }
        let all: f64 = by_link.values().sum();
        let usual = median(by_link.values().copied().collect());
        let most = by_link.iter().max_by(|a, b| a.1.total_cmp(b.1));
        let far = most
            .filter(|(_, ns)| **ns >= 0.3 * all && **ns >= FAR_FACTOR * usual)
            .map(|(link, ns)| (*link, ns / all));
        let messages = if open == 0 { "messages" } else { "the messages that finished" };
        let words =
            format!("{} of the time of {messages} is propagation and hops, not bytes", percent(share));
        Some((words, far))
    }

    /// Returns the part of the ideal time of the messages that finished which does not depend on rates.
    fn latency_share(&self) -> Option<f64> {
        let rate = self.facts.host_rate_bps();
        let (mut ideal, mut latency) = (0.0, 0.0);
        for row in self.measured().filter(|&row| self.flows.text("status", row) == "finished") {
            let ideal_ns = self.flows.number("ideal_fct_ns", row);
            if ideal_ns.is_finite() {
                let acked = Some(self.flows.number("ideal_acked_fct_ns", row)).filter(|ns| ns.is_finite());
                ideal += ideal_ns;
                latency +=
                    idle_latency_ns(ideal_ns, acked, self.flows.number("size_bytes", row) * 8e9 / rate);
            }
        }
        (ideal > 0.0 && latency.is_finite()).then(|| latency / ideal)
    }

    fn nothing(&self, tail: f64, paths: &Paths, open: u64) -> String {
        if tail.is_nan() {
            return "nothing: no flow finished".to_owned();
        }
        let of_jobs = paths.all_ns();
        if of_jobs > 0.0 && paths.computation_ns >= LATENCY_SHARE * of_jobs {
            let computation = percent(paths.computation_ns / of_jobs);
            return match (of_jobs - paths.computation_ns) / of_jobs {
                rest if rest < LOST_SHARE => format!(
                    "nothing but computation, {computation} of the critical path: the network caused little delay"
                ),
                rest => format!(
                    "nothing but computation, {computation} of the critical path, and the rates of links: messages took {}, about \
                     as long as on an idle network",
                    percent(rest)
                ),
            };
        }
        let flows = if open == 0 { "flows" } else { "flows that finished" };
        if let Some(slow) = self.slow_by_build() {
            return format!("{slow}; at this distance {flows} took about as long as on an idle network");
        }
        format!("nothing: {flows} took about as long as on an idle network, at the rate of their own links")
    }

    /// Describes the busiest link if its rate is below that of similar links: packets take long on it, even on an
    /// idle network.
    fn slow_by_build(&self) -> Option<String> {
        let links = &self.facts.links;
        let link = (0..links.len()).max_by(|&a, &b| self.by_use(a, b))?;
        let slow = self.facts.is_slow(link) && links[link].busy >= LATENCY_SHARE;
        let causes = causes(&self.facts, &LostTime::of_link(link));
        causes.into_iter().next().filter(|_| slow).map(|cause| cause.words)
    }

    /// Describes the links of a cause: the only one, or the one with the most time and its share of `all`.
    fn at(&self, places: &BTreeMap<Option<usize>, f64>, all: f64) -> String {
        let links = places.iter().filter_map(|(link, time)| Some(((*link)?, *time)));
        let Some((link, most)) = links.clone().max_by(|a, b| a.1.total_cmp(&b.1)) else {
            return String::new();
        };
        let name = self.facts.links[link].name();
        let sum: f64 = links.clone().map(|(_, time)| time).sum();
        if most >= ALMOST_ALL * sum {
            return format!(" at {name}");
        }
        format!(" at {} ports ({} at {name})", links.count(), percent(most / all))
    }

    /// Returns the time of the slowest flows by cause.
    pub(super) fn spent(&self) -> Option<Finding> {
        let flows = &self.facts.flows;
        let some = &flows[..flows.len().min(flows.len().div_ceil(10).max(16))];
        let mut by: BTreeMap<WaitKind, BTreeMap<Option<usize>, f64>> = BTreeMap::new();
        for flow in some {
            for part in &flow.parts {
                let link = part.link.filter(|_| part.kind != WaitKind::Travel);
                let of_kind = by.entry(part.kind).or_default();
                *of_kind.entry(link).or_default() += part.time_ns / flow.took_ns.max(1.0);
            }
        }
        let total = |places: &BTreeMap<Option<usize>, f64>| places.values().sum::<f64>();
        let all: f64 = by.values().map(total).sum();
        let mut by: Vec<_> = by.iter().map(|(kind, places)| (*kind, places, total(places) / all)).collect();
        by.sort_by(|a, b| b.2.total_cmp(&a.2));
        let told: Vec<String> = by
            .iter()
            .filter(|(.., share)| *share >= LEAST_SHARE)
            .map(|(kind, places, share)| {
                format!("{} {}{}", percent(*share), words(*kind), self.at(places, all))
            })
            .collect();
        let flows =
            if some.len() == 1 { "the slowest".to_owned() } else { format!("the {} slowest", some.len()) };
        (!told.is_empty()).then(|| Finding {
            about: "time of slow flows",
            words: format!("of {flows}: {}", told.join(", ")),
            evidence: "waits.parquet: kind, link, time_ns",
        })
    }
}

fn words(kind: WaitKind) -> &'static str {
    match kind {
        WaitKind::Travel => "on links",
        WaitKind::Port => "sending or waiting to send",
        WaitKind::Down => "with a port that was down",
        WaitKind::Queue => "in queues",
        WaitKind::Pause => "paused by PFC",
        WaitKind::Full => "held back because a link was full",
        WaitKind::Control => "held back by congestion control, no link full",
        WaitKind::Credit => "waiting for credit, no link full",
        WaitKind::Window => "held back by the window of loss recovery",
        WaitKind::Silence => "with nothing in flight, waiting for a timer",
        WaitKind::Receiver => "waiting for a receive",
    }
}

impl Facts {
    pub(super) fn host_name(&self, host: u32) -> String {
        let own = self.links.iter().find(|link| link.from_node == host);
        own.map_or_else(|| format!("host {host}"), |link| link.from.clone())
    }
}
