//! Findings about the limits of a run, from its tables.

use std::collections::BTreeMap;

use pathweave_records::{Direction, LATE_SLOWDOWN, LateFlows, Quantity};

use super::Finding;
use super::facts::{Facts, Link};
use super::outage::Trip;
use super::table::Table;

pub(super) const FLOW_COLUMNS: &[&str] = &[
    "flow",
    "role",
    "src_host",
    "dst_host",
    "size_bytes",
    "start_ns",
    "fct_ns",
    "ideal_fct_ns",
    "ideal_acked_fct_ns",
    "slowdown",
    "status",
    "timeouts",
    "retransmitted_packets",
    "dropped_packets",
    "cnp_packets",
    "ooo_packets",
    "sent_packets",
];
pub(super) const EVENT_COLUMNS: &[&str] = &["time_ns", "kind", "reason", "link", "value"];

/// Number of names shown of a list.
const SHOWN: usize = 3;
pub(super) struct Run {
    pub(super) flows: Table,
    /// Number of flows that each row of `flows` represents.
    pub(super) times_recorded: u64,
    pub(super) links: Table,
    pub(super) events: Table,
    pub(super) facts: Facts,
    pub(super) late: LateFlows,
    /// The first flows that did not finish, and the slowest one that did.
    pub(super) trips: Vec<Trip>,
    pub(super) critical: Table,
    pub(super) activities: Table,
}

/// Imbalance of a switch's links to the next tier, in relation to their rates.
struct Balance {
    switch: String,
    links: usize,
    busiest: usize,
    over_mean: f64,
}

impl Run {
    pub(super) fn findings(&self) -> Vec<Finding> {
        let mut found: Vec<Finding> = [
            self.spent(),
            self.busiest(),
            self.balance(),
            self.pauses(),
            self.losses(),
            self.slowest_hundredth(),
            self.faults(),
        ]
        .into_iter()
        .flatten()
        .collect();
        found.insert(0, self.verdict());
        found.insert(1, self.result());
        found
    }

    /// Returns the verdict, and the faults if there were any.
    pub(super) fn in_brief(&self) -> Vec<Finding> {
        std::iter::once(self.verdict()).chain(self.faults()).collect()
    }

    /// Iterates over the rows of foreground flows.
    pub(super) fn measured(&self) -> impl Iterator<Item = usize> + '_ {
        self.flows.measured()
    }

    fn link(&self, row: usize) -> String {
        self.facts.links.get(row).map_or_else(String::new, Link::name)
    }

    /// Returns the rows of the measured flows, the slowest first.
    pub(super) fn slowest(&self) -> Vec<usize> {
        let mut rows: Vec<usize> =
            self.measured().filter(|&row| self.flows.number("slowdown", row).is_finite()).collect();
        let slowdown = |row: usize| self.flows.number("slowdown", row);
        rows.sort_by(|&a, &b| slowdown(b).total_cmp(&slowdown(a)));
        rows
    }

    fn result(&self) -> Finding {
        let slowest = self.slowest();
        let words = match slowest.first() {
            None => "no flow finished".to_owned(),
            Some(&row) => {
                let of = |column: &str, row: usize| self.flows.number(column, row);
                // Of fewer flows than a hundred, none stands for one in a hundred.
                let tail = match slowest.len() {
                    ..100 => String::new(),
                    flows => format!(
                        ", one in a hundred slower than {} times the time on an idle network",
                        plain(of("slowdown", slowest[flows / 100]))
                    ),
                };
                let idle = if tail.is_empty() { " the time on an idle network" } else { "" };
                format!(
                    "{} finished{tail}; the slowest is flow {} (host {} to host {}, {}): {}, {} times{idle}",
                    counted(self.times_recorded * slowest.len() as u64),
                    of("flow", row),
                    of("src_host", row),
                    of("dst_host", row),
                    Quantity::Bytes.format(of("size_bytes", row)),
                    Quantity::TimeNs.format(of("fct_ns", row)),
                    plain(of("slowdown", row)),
                )
            }
        };
        Finding { about: "result", words, evidence: "flows.parquet: slowdown, fct_ns, size_bytes" }
    }

    /// Returns true if the link has a host at one end.
    fn of_host(&self, row: usize) -> bool {
        self.links.number("tier", row) == 0.0 && self.links.text("direction", row) != Direction::Level.name()
    }

    fn busiest(&self) -> Option<Finding> {
        let mut rows: Vec<usize> = (0..self.links.rows).collect();
        let share = |row: usize| self.links.number("utilisation_ratio", row);
        rows.sort_by(|&a, &b| share(b).total_cmp(&share(a)));
        let mean = |host: bool| {
            let of = rows.iter().filter(|&&row| self.of_host(row) == host);
            let (sum, n) = of.fold((0.0, 0), |(sum, n), &row| (sum + share(row), n + 1));
            (n > 0).then(|| percent(sum / f64::from(n)))
        };
        let top: Vec<String> = rows
            .iter()
            .take(SHOWN)
            .map(|&row| {
                let queue = self.links.number("max_queue_bytes", row);
                let queue = match queue.is_nan() {
                    true => String::new(),
                    false => format!(" (queue up to {})", Quantity::Bytes.format(queue)),
                };
                format!("{} {}{queue}", self.link(row), percent(share(row)))
            })
            .collect();
        let means = match (mean(true), mean(false)) {
            (Some(hosts), Some(fabric)) => format!("; in the mean links of hosts {hosts}, others {fabric}"),
            (Some(hosts), None) => format!("; in the mean {hosts}"),
            _ => String::new(),
        };
        (!top.is_empty()).then(|| Finding {
            about: "busiest links",
            words: top.join(", ") + &means,
            evidence: "links.parquet: utilisation_ratio, max_queue_bytes",
        })
    }

    /// Returns the switch whose links up differ most in utilisation. A switch has a choice only upwards.
    fn most_uneven(&self) -> Option<Balance> {
        let mut groups: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        let up =
            |row: &usize| self.links.text("direction", *row) == Direction::Up.name() && !self.of_host(*row);
        for row in (0..self.links.rows).filter(up) {
            groups.entry(self.links.number("from_node", row) as u64).or_default().push(row);
        }
        let carried = |row: usize| self.facts.links[row].busy;
        let balance = |rows: Vec<usize>| {
            let mean = rows.iter().map(|&row| carried(row)).sum::<f64>() / rows.len() as f64;
            let busiest = rows.iter().copied().max_by(|&a, &b| carried(a).total_cmp(&carried(b)))?;
            let switch = self.links.text("from", busiest).to_owned();
            (rows.len() > 1 && mean > 0.0).then(|| Balance {
                switch,
                links: rows.len(),
                busiest,
                over_mean: carried(busiest) / mean,
            })
        };
        groups.into_values().filter_map(balance).max_by(|a, b| a.over_mean.total_cmp(&b.over_mean))
    }

    fn balance(&self) -> Option<Finding> {
        let balance = self.most_uneven()?;
        Some(Finding {
            about: "balance",
            words: format!(
                "of the {} uplinks of {}, the one to {} was busy {:.2} times as long as the mean, more than \
                 any other uplink of any switch",
                balance.links,
                balance.switch,
                self.links.text("to", balance.busiest),
                balance.over_mean
            ),
            evidence: "links.parquet: utilisation_ratio by from",
        })
    }

    fn pauses(&self) -> Option<Finding> {
        let paused = |row: usize| self.links.number("paused_ns", row);
        let mut rows: Vec<usize> = (0..self.links.rows).filter(|&row| paused(row) > 0.0).collect();
        if rows.is_empty() {
            return None;
        }
        rows.sort_by(|&a, &b| paused(b).total_cmp(&paused(a)));
        let victims: Vec<&str> = rows.iter().map(|&row| self.links.text("from", row)).collect();
        let top = rows.iter().take(SHOWN).map(|&row| {
            let by = self.links.text("to", row);
            let passed_on = if victims.contains(&by) { ", which was paused itself" } else { "" };
            format!(
                "{by} paused {} for {} in {} pauses{passed_on}",
                self.links.text("from", row),
                Quantity::TimeNs.format(paused(row)),
                self.links.number("pfc_pauses", row)
            )
        });
        let top: Vec<String> = top.collect();
        let all = Quantity::Count.format(self.links.sum("pfc_pauses"));
        Some(Finding {
            about: "pauses",
            words: format!("{all} on {} links; {}", rows.len(), top.join("; ")),
            evidence: "links.parquet: pfc_pauses, paused_ns; events.parquet: kind = pfc_pause",
        })
    }

    fn losses(&self) -> Option<Finding> {
        let dropped = |row: usize| self.links.number("dropped_packets", row);
        let mut rows: Vec<usize> = (0..self.links.rows).filter(|&row| dropped(row) > 0.0).collect();
        let again = self.flows.sum("retransmitted_packets");
        // Without packets the number is NaN.
        if rows.is_empty() && (again == 0.0 || again.is_nan()) {
            return None;
        }
        rows.sort_by(|&a, &b| dropped(b).total_cmp(&dropped(a)));
        let top: Vec<String> = rows
            .iter()
            .take(SHOWN)
            .map(|&row| format!("{} on {}", Quantity::Count.format(dropped(row)), self.link(row)))
            .collect();
        let at = if top.is_empty() { String::new() } else { format!(" ({})", top.join(", ")) };
        Some(Finding {
            about: "losses",
            words: format!(
                "{} packets dropped{at}; {} of {} sent again, {} timeouts",
                Quantity::Count.format(self.links.sum("dropped_packets")),
                Quantity::Count.format(again),
                Quantity::Count.format(self.flows.sum("sent_packets")),
                Quantity::Count.format(self.flows.sum("timeouts")),
            ),
            evidence: "links.parquet: dropped_packets; flows.parquet: retransmitted_packets, timeouts",
        })
    }

    /// Compares the slowest hundredth of the flows with the others.
    fn slowest_hundredth(&self) -> Option<Finding> {
        let slowest = self.slowest();
        let late = late(&slowest);
        if late.iter().all(|&row| self.flows.number("slowdown", row) < LATE_SLOWDOWN) {
            return None;
        }
        let mut parts = Vec::new();
        for (column, what) in [
            ("timeouts", "waited for a timeout"),
            ("retransmitted_packets", "sent packets again"),
            ("cnp_packets", "had congestion notifications"),
            ("ooo_packets", "had packets out of order"),
        ] {
            let share = self.share_with_counter(late, column);
            if share > 0.0 {
                let of_all = percent(self.share_with_counter(&slowest, column));
                // A share of one flow is no share.
                let own = if late.len() == 1 { String::new() } else { format!("{} ", percent(share)) };
                parts.push(format!("{own}{what} ({of_all} of all)"));
            }
        }
        if parts.is_empty() {
            parts.push(match late.len() {
                1 => "had no timeout, retransmission or congestion notification".to_owned(),
                _ => "none waited for a timeout, retransmitted or had a congestion notification".to_owned(),
            });
        }
        let words = match late.len() {
            1 => format!("the slowest {}", parts.join(", ")),
            several => format!("of the {several} slowest, {}", parts.join(", ")),
        };
        Some(Finding {
            about: "late flows",
            words,
            evidence: "flows.parquet: slowdown, timeouts, retransmitted_packets, cnp_packets, ooo_packets",
        })
    }

    /// Returns the share of the flows in `rows` with a counter above 0.
    pub(super) fn share_with_counter(&self, rows: &[usize], counter: &str) -> f64 {
        let met = rows.iter().filter(|&&row| self.flows.number(counter, row) > 0.0).count();
        met as f64 / rows.len().max(1) as f64
    }

    fn faults(&self) -> Option<Finding> {
        let mut rows: Vec<usize> =
            (0..self.events.rows).filter(|&row| self.events.text("kind", row) == "fault").collect();
        // A fault has an event for each of its links.
        let begin = |&row: &usize| {
            (self.events.number("value", row).to_bits(), self.events.number("time_ns", row).to_bits())
        };
        rows.sort_by_key(begin);
        rows.dedup_by_key(|row| begin(row));
        rows.sort_by(|&a, &b| self.events.number("time_ns", a).total_cmp(&self.events.number("time_ns", b)));
        let of = self.facts.faults.len();
        let begun = self.facts.faults.iter().filter(|fault| self.facts.has_begun(fault)).count();
        let Some(&first) = rows.first() else {
            return (begun < of).then(|| Finding {
                about: "faults",
                words: format!("{begun} of {of} began"),
                evidence: "scenario.toml: fault; summary.json: run.simulated_ns",
            });
        };
        let at = Quantity::TimeNs.format(self.events.number("time_ns", first));
        let mut names: Vec<String> = Vec::new();
        for name in rows.iter().filter_map(|&row| self.fault(row)) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let more = names.len().saturating_sub(SHOWN);
        names.truncate(SHOWN);
        let on = if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) };
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let count = if begun < of { format!("{begun} of {of}") } else { rows.len().to_string() };
        Some(Finding {
            about: "faults",
            words: format!("{count} began, the first at {at}{on}{more}"),
            evidence: "events.parquet: kind = fault, link; scenario.toml: fault",
        })
    }

    /// Describes the fault of an event: its kind and its place.
    fn fault(&self, row: usize) -> Option<String> {
        let known = self.facts.faults.get(self.events.number("value", row) as usize);
        let link = Some(self.events.number("link", row)).filter(|link| link.is_finite());
        let on = link.map(|link| self.link(link as usize));
        match (known, on) {
            (Some(fault), _) => Some(format!("{} on {}", fault.kind, fault.on)),
            (None, on) => on.map(|on| format!("on {on}")),
        }
    }
}

/// Returns the slowest hundredth.
pub(super) fn late(slowest: &[usize]) -> &[usize] {
    &slowest[..slowest.len().div_ceil(100)]
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn plain(value: f64) -> String {
    format!("{value:.2}")
}
/// Formats a number of flows.
pub(super) fn counted(flows: u64) -> String {
    if flows == 1 { "1 flow".to_owned() } else { format!("{} flows", Quantity::Count.format(flows as f64)) }
}
