//! Figures of links and queues.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::described::{described, kinds};
use crate::events::EventKind;
use crate::format::ns;
use crate::records::{BalancingTotals, Direction, RunResult};
use crate::stats::Distribution;

kinds! {
    "object": FabricSummary;
}

described! {
    /// Links and queues of the whole fabric. Counts of packets and queues are null if there were no packets.
    #[derive(Clone, Debug, Default, PartialEq, Serialize)]
    pub struct FabricSummary {
        /// Directed links.
        pub links: u64,
        /// Bytes sent, headers and gaps included, summed over links.
        pub tx_bytes: u64,
        /// Packets dropped, data and control.
        pub dropped_packets: Option<u64>,
        /// Recorded drops by reason; see `not_recorded_by_kind`.
        pub dropped_by_reason: BTreeMap<&'static str, u64>,
        /// Packets marked Congestion Experienced.
        pub ecn_marked_packets: Option<u64>,
        /// Packets that switches have trimmed: forwarded without their payload.
        pub trimmed_packets: Option<u64>,
        /// Number of PFC pauses of links.
        pub pfc_pauses: Option<u64>,
        /// Time for which links were paused, summed over links and priority classes.
        pub paused_ns: Option<f64>,
        /// Largest egress queue, bytes.
        pub max_queue_bytes: Option<u64>,
        /// Events beyond the recording limit. Totals include them, but `events.parquet` does not.
        pub events_not_recorded: u64,
        /// Events beyond the recording limit by kind. Each kind has a limit of its own; kinds within their limit are
        /// left out.
        pub not_recorded_by_kind: BTreeMap<&'static str, u64>,
        /// Counters of load balancing in the switches.
        pub balancing: BalancingTotals,
        /// Utilisation by tier and direction, from the hosts up.
        pub tiers: Vec<TierSummary>,
    }
}

described! {
    /// Links of one tier in one direction.
    #[derive(Clone, Debug, PartialEq, Serialize)]
    pub struct TierSummary {
        /// Higher tier of the two ends: 0 for links of hosts and between ToRs.
        pub tier: u8,
        /// "up" away from the hosts, "down" towards them, "level" within a tier.
        pub direction: &'static str,
        /// Fraction of the simulated time in which each link was sending.
        pub utilisation_ratio: Distribution,
        /// Largest egress queue, bytes.
        pub max_queue_bytes: Option<u64>,
        /// Packets dropped.
        pub dropped_packets: Option<u64>,
        /// Number of PFC pauses of links.
        pub pfc_pauses: Option<u64>,
    }
}

impl FabricSummary {
    /// Computes the figures of the links of `run`.
    pub fn from_run(run: &RunResult) -> Self {
        let (nothing, no_queue) = (run.of_packets(0), run.of_queues(0));
        let mut summary = FabricSummary {
            links: run.links.len() as u64,
            events_not_recorded: run.events_not_recorded.values().sum(),
            not_recorded_by_kind: run.events_not_recorded.iter().map(|(kind, n)| (kind.name(), *n)).collect(),
            balancing: run.balancing,
            dropped_packets: nothing,
            ecn_marked_packets: nothing,
            trimmed_packets: no_queue,
            pfc_pauses: no_queue,
            max_queue_bytes: no_queue,
            ..FabricSummary::default()
        };
        let mut paused_ps = 0;
        let mut tiers: BTreeMap<(u8, Direction), (Vec<f64>, TierSummary)> = BTreeMap::new();
        for link in &run.links {
            summary.tx_bytes += link.tx_bytes;
            add(&mut summary.dropped_packets, link.dropped_packets);
            add(&mut summary.ecn_marked_packets, link.ecn_marked_packets);
            add(&mut summary.trimmed_packets, link.trimmed_packets);
            add(&mut summary.pfc_pauses, link.pfc_pauses);
            raise(&mut summary.max_queue_bytes, link.max_queue_bytes);
            paused_ps += link.paused_ps;
            let (utilisation, tier) = tiers.entry((link.tier, link.direction)).or_insert_with(|| {
                let tier = TierSummary {
                    tier: link.tier,
                    direction: link.direction.name(),
                    utilisation_ratio: Distribution::default(),
                    max_queue_bytes: no_queue,
                    dropped_packets: nothing,
                    pfc_pauses: no_queue,
                };
                (Vec::new(), tier)
            });
            utilisation.push(link.utilisation(run.info.simulated_ps));
            raise(&mut tier.max_queue_bytes, link.max_queue_bytes);
            add(&mut tier.dropped_packets, link.dropped_packets);
            add(&mut tier.pfc_pauses, link.pfc_pauses);
        }
        summary.paused_ns = run.of_queues(ns(paused_ps));
        summary.tiers = tiers
            .into_values()
            .map(|(mut utilisation, tier)| TierSummary {
                utilisation_ratio: Distribution::from_values(&mut utilisation),
                ..tier
            })
            .collect();
        for event in run.events.iter().filter(|e| e.kind == EventKind::Drop) {
            let reason = event.reason.map_or("unknown", |r| r.name());
            *summary.dropped_by_reason.entry(reason).or_default() += 1;
        }
        summary
    }
}

/// Adds to a sum, if there is one.
fn add(sum: &mut Option<u64>, of_link: u64) {
    sum.iter_mut().for_each(|sum| *sum += of_link);
}

/// Raises a maximum, if there is one.
fn raise(largest: &mut Option<u64>, of_link: u64) {
    largest.iter_mut().for_each(|largest| *largest = of_link.max(*largest));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::{LinkTotals, QueueRecords};

    #[test]
    fn queues_that_nobody_saw_have_no_figures() {
        let link =
            LinkTotals { dropped_packets: 2, max_queue_bytes: 5, pfc_pauses: 3, ..LinkTotals::default() };
        let mut run = RunResult { links: vec![link], ..RunResult::default() };
        let figures = |run: &RunResult| {
            let fabric = FabricSummary::from_run(run);
            (
                fabric.dropped_packets,
                fabric.max_queue_bytes,
                fabric.pfc_pauses,
                fabric.tiers[0].max_queue_bytes,
            )
        };
        assert_eq!(figures(&run), (Some(2), Some(5), Some(3), Some(5)));
        run.info.queues = QueueRecords::Unknown;
        assert_eq!(figures(&run), (Some(2), None, None, None));
    }
}
