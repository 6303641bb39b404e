//! Critical paths of jobs by kind of step, and hosts that compute longer or more than others.

use std::collections::BTreeMap;

use pathweave_records::Quantity;

use super::facts::median;
use super::table::Table;

pub(super) const CRITICAL_COLUMNS: &[&str] = &["kind", "host", "time_ns", "lost_ns"];
pub(super) const ACTIVITY_COLUMNS: &[&str] =
    &["host", "group", "kind", "activity", "part", "start_ns", "finish_ns", "nominal_ns"];

/// Mean excess over the computations of other hosts from which a host is slow.
const SLOW: f64 = 0.08;
/// Mean excess of the longest over the median computation from which computations vary.
const VARIES: f64 = 0.1;
/// Largest number of further slow hosts that are named.
const STRAGGLERS: usize = 3;
/// Share of the time of jobs from which a cause is mentioned.
pub(super) const WORTH: f64 = 0.05;

/// Sums over the critical paths of all jobs, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Paths {
    pub(super) computation_ns: f64,
    pub(super) messages_ns: f64,
    /// Part of the messages' time beyond their time on an idle network.
    pub(super) lost_ns: f64,
    pub(super) wait_ns: f64,
}

impl Paths {
    pub(super) fn new(critical: &Table) -> Paths {
        let mut paths = Paths::default();
        for row in 0..critical.rows {
            let time_ns = critical.number("time_ns", row);
            match critical.text("kind", row) {
                "computation" => paths.computation_ns += time_ns,
                "message" => {
                    paths.messages_ns += time_ns;
                    let lost_ns = critical.number("lost_ns", row);
                    paths.lost_ns += if lost_ns.is_finite() { lost_ns } else { 0.0 };
                }
                _ => paths.wait_ns += time_ns,
            }
        }
        paths
    }

    pub(super) fn all_ns(&self) -> f64 {
        self.computation_ns + self.messages_ns + self.wait_ns
    }
}

/// A cause of long computations: its share of the time of jobs, and its description.
pub(super) struct Slow {
    pub(super) share: f64,
    pub(super) words: String,
}

/// A host with more work than others.
struct Loaded {
    host: u32,
    /// Ratio of its work to that of the median host.
    times: f64,
    beyond_ns: f64,
    /// Part of the critical paths that less work would save.
    lost_ns: f64,
}

/// Computation of a host.
#[derive(Clone, Copy, Debug)]
struct Turn {
    host: u32,
    ns: f64,
    /// Time that it would take on a host like all others, if it is known.
    nominal_ns: Option<f64>,
}

impl Turn {
    /// Returns the time of the computation if it had the work of the median host, whose nominal time is given.
    fn of_equal_work(&self, usual_ns: f64) -> f64 {
        self.nominal_ns
            .filter(|_| usual_ns.is_finite())
            .map_or(self.ns, |nominal_ns| self.ns / nominal_ns * usual_ns)
    }
}

/// Times of the hosts for the same computation, by its label and number. A host with more work is not slow: times are
/// those of equal work.
type Turns = BTreeMap<(String, String, usize), Vec<(u32, f64)>>;

fn turns(activities: &Table) -> Turns {
    let mut order: Vec<usize> =
        (0..activities.rows).filter(|&row| activities.text("kind", row) == "computation").collect();
    order.sort_by(|&a, &b| activities.number("start_ns", a).total_cmp(&activities.number("start_ns", b)));
    let mut so_far: BTreeMap<(u32, String, String), usize> = BTreeMap::new();
    let mut turns: BTreeMap<(String, String, usize), Vec<Turn>> = BTreeMap::new();
    for row in order {
        let took = activities.number("finish_ns", row) - activities.number("start_ns", row);
        if !took.is_finite() {
            continue;
        }
        let host = activities.number("host", row) as u32;
        let (activity, part) = (activities.text("activity", row), activities.text("part", row));
        let turn = so_far.entry((host, activity.to_owned(), part.to_owned())).or_default();
        let nominal_ns = Some(activities.number("nominal_ns", row)).filter(|ns| *ns > 0.0);
        let own = Turn { host, ns: took, nominal_ns };
        turns.entry((activity.to_owned(), part.to_owned(), *turn)).or_default().push(own);
        *turn += 1;
    }
    let of_equal_work = |turns: Vec<Turn>| {
        // Without all nominal times there is no usual one.
        let nominal: Option<Vec<f64>> = turns.iter().map(|turn| turn.nominal_ns).collect();
        let usual_ns = nominal.map_or(f64::NAN, lower_middle);
        turns.iter().map(|turn| (turn.host, turn.of_equal_work(usual_ns))).collect()
    };
    turns.into_iter().map(|(key, turns)| (key, of_equal_work(turns))).collect()
}

/// Finds hosts that are always slower than others, computations that vary from one to the next, and hosts with more work.
/// `name` returns the name of a host.
pub(super) fn slow(
    activities: &Table,
    critical: &Table,
    paths: &Paths,
    name: impl Fn(u32) -> String + Copy,
) -> Vec<Slow> {
    let turns = turns(activities);
    let mut ratios: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    let mut beyond_ns: BTreeMap<u32, f64> = BTreeMap::new();
    for took in turns.values().filter(|took| took.len() > 1) {
        let median = lower_middle(took.iter().map(|(_, ns)| *ns).collect());
        for &(host, ns) in took.iter().filter(|_| median > 0.0) {
            ratios.entry(host).or_default().push(ns / median);
            *beyond_ns.entry(host).or_default() += ns - median;
        }
    }
    let mut found = Vec::new();
    let mut slow_hosts = Vec::new();
    for (&host, ratios) in &ratios {
        let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
        let variance = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>() / ratios.len() as f64;
        // Random variation affects single computations of a host, not all of them.
        if mean - 1.0 >= SLOW && variance.sqrt() < 0.7 * (mean - 1.0) {
            slow_hosts.push((host, mean));
        }
    }
    let on_path = |host: u32| {
        let rows = (0..critical.rows).filter(|&row| critical.text("kind", row) == "computation");
        rows.filter(|&row| critical.number("host", row) as u32 == host)
            .map(|row| critical.number("time_ns", row))
            .sum::<f64>()
    };
    slow_hosts.sort_by(|a, b| on_path(b.0).total_cmp(&on_path(a.0)).then(a.0.cmp(&b.0)));
    if let Some(&(host, mean)) = slow_hosts.first() {
        // Time of slow hosts' computations on the critical path beyond that of other hosts.
        let beyond: f64 = slow_hosts.iter().map(|&(host, mean)| on_path(host) * (1.0 - 1.0 / mean)).sum();
        let others: Vec<String> = slow_hosts[1..]
            .iter()
            .take(STRAGGLERS)
            .map(|&(host, mean)| format!(", straggler {} ({mean:.2} times)", name(host)))
            .collect();
        let more = slow_hosts.len().saturating_sub(STRAGGLERS + 1);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        found.push(Slow {
            share: beyond / paths.all_ns().max(f64::MIN_POSITIVE),
            words: format!(
                "straggler {}: its computations take {mean:.2} times as long as those of others, {} in \
                 total{}{more}",
                name(host),
                Quantity::TimeNs.format(beyond_ns.get(&host).copied().unwrap_or(0.0)),
                others.concat()
            ),
        });
    }
    found.extend(varying(&turns, &slow_hosts, paths));
    found.extend(unequal(activities, paths, on_path, name));
    found.retain(|slow| slow.share >= WORTH);
    found
}

/// Finds the hosts that have more to compute than the median host of their group: a stage with more layers, or a host whose
/// experts get more tokens. Amounts of work are times without stragglers.
fn unequal(
    activities: &Table,
    paths: &Paths,
    on_path: impl Fn(u32) -> f64,
    name: impl Fn(u32) -> String,
) -> Option<Slow> {
    let mut work: BTreeMap<&str, BTreeMap<u32, f64>> = BTreeMap::new();
    for row in (0..activities.rows).filter(|&row| activities.text("kind", row) == "computation") {
        let (host, nominal_ns) =
            (activities.number("host", row) as u32, activities.number("nominal_ns", row));
        let of_group = work.entry(activities.text("group", row)).or_default();
        *of_group.entry(host).or_default() += if nominal_ns.is_finite() { nominal_ns } else { 0.0 };
    }
    let mut loaded: Vec<Loaded> = Vec::new();
    for of_group in work.values() {
        let usual_ns = lower_middle(of_group.values().copied().collect());
        let more = of_group.iter().filter(|(_, ns)| usual_ns > 0.0 && **ns >= (1.0 + SLOW) * usual_ns);
        loaded.extend(more.map(|(&host, &ns)| Loaded {
            host,
            times: ns / usual_ns,
            beyond_ns: ns - usual_ns,
            lost_ns: on_path(host) * (1.0 - usual_ns / ns),
        }));
    }
    loaded.sort_by(|a, b| b.lost_ns.total_cmp(&a.lost_ns).then(a.host.cmp(&b.host)));
    let first = loaded.first()?;
    let others = match loaded.len() - 1 {
        0 => String::new(),
        count => format!("; {count} more hosts have more than the median, too"),
    };
    let lost_ns: f64 = loaded.iter().map(|of| of.lost_ns).sum();
    Some(Slow {
        share: lost_ns / paths.all_ns().max(f64::MIN_POSITIVE),
        words: format!(
            "unequal work: {} has {:.2} times the computation of the median host, {} more{others}",
            name(first.host),
            first.times,
            Quantity::TimeNs.format(first.beyond_ns)
        ),
    })
}

/// Finds computations of which the longest takes much longer than the median.
fn varying(turns: &Turns, slow_hosts: &[(u32, f64)], paths: &Paths) -> Option<Slow> {
    let (mut most, mut middles) = (0.0, 0.0);
    for took in turns.values() {
        let usual: Vec<f64> = took
            .iter()
            .filter(|(host, _)| slow_hosts.iter().all(|(slow, _)| slow != host))
            .map(|t| t.1)
            .collect();
        if usual.len() > 1 {
            most += usual.iter().copied().fold(0.0, f64::max);
            middles += median(usual);
        }
    }
    let beyond = most / middles - 1.0;
    (middles > 0.0 && beyond >= VARIES).then(|| Slow {
        share: paths.computation_ns * (1.0 - middles / most) / paths.all_ns().max(f64::MIN_POSITIVE),
        words: format!(
            "jitter of computations: the longest of a group takes {:.2} times as long as the median",
            beyond + 1.0
        ),
    })
}

/// Returns the median, the lower one of two.
fn lower_middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get((values.len().max(1) - 1) / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_with_more_work_is_not_slow() {
        let of = |ns, nominal_ns| Turn { host: 0, ns, nominal_ns };
        // Seven layers where others have six: 210 ns are as fast as 180.
        assert_eq!(of(210.0, Some(70.0)).of_equal_work(60.0), 180.0);
        assert_eq!(of(210.0, None).of_equal_work(60.0), 210.0);
        assert_eq!(of(210.0, Some(70.0)).of_equal_work(f64::NAN), 210.0, "others are not known");
    }
}
