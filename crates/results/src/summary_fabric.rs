//! The figures of links and queues.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::columns::ns;
use crate::described::{described, kinds};
use crate::events::EventKind;
use crate::records::{BalancingTotals, Direction, RunResult};
use crate::stats::Distribution;

kinds! {
    "object": FabricSummary;
}

described! {
    /// Links and queues of the whole fabric.
    #[derive(Clone, Debug, Default, PartialEq, Serialize)]
    pub struct FabricSummary {
        /// Directed links.
        pub links: u64,
        /// Bytes sent, headers and gaps included, summed over links.
        pub tx_bytes: u64,
        /// Packets dropped, data and control.
        pub dropped_packets: u64,
        /// Recorded drops by reason; see `not_recorded_by_kind`.
        pub dropped_by_reason: BTreeMap<&'static str, u64>,
        /// Packets marked Congestion Experienced.
        pub ecn_marked_packets: u64,
        /// Times a link was paused by PFC.
        pub pfc_pauses: u64,
        /// Time links were paused, summed over links and priority classes.
        pub paused_ns: f64,
        /// Largest egress queue.
        pub max_queue_bytes: u64,
        /// Events beyond the recording limit: totals count them, `events.parquet` does not hold them.
        pub events_not_recorded: u64,
        /// The same by kind, each of which has a limit of its own; kinds without one are left out.
        pub not_recorded_by_kind: BTreeMap<&'static str, u64>,
        /// What load balancing in the switches did.
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
        /// Fraction of the simulated time each link was sending.
        pub utilisation_ratio: Distribution,
        /// Largest egress queue.
        pub max_queue_bytes: u64,
        /// Packets dropped.
        pub dropped_packets: u64,
        /// Times a link was paused by PFC.
        pub pfc_pauses: u64,
    }
}

impl FabricSummary {
    /// The figures of the links of `run`.
    pub fn from_run(run: &RunResult) -> Self {
        let mut summary = FabricSummary {
            links: run.links.len() as u64,
            events_not_recorded: run.events_not_recorded.values().sum(),
            not_recorded_by_kind: run.events_not_recorded.iter().map(|(kind, n)| (kind.name(), *n)).collect(),
            balancing: run.balancing,
            ..FabricSummary::default()
        };
        let mut paused_ps = 0;
        let mut tiers: BTreeMap<(u8, Direction), (Vec<f64>, TierSummary)> = BTreeMap::new();
        for link in &run.links {
            summary.tx_bytes += link.tx_bytes;
            summary.dropped_packets += link.dropped_packets;
            summary.ecn_marked_packets += link.ecn_marked_packets;
            summary.pfc_pauses += link.pfc_pauses;
            summary.max_queue_bytes = summary.max_queue_bytes.max(link.max_queue_bytes);
            paused_ps += link.paused_ps;
            let (utilisation, tier) = tiers.entry((link.tier, link.direction)).or_insert_with(|| {
                let tier = TierSummary {
                    tier: link.tier,
                    direction: link.direction.name(),
                    utilisation_ratio: Distribution::default(),
                    max_queue_bytes: 0,
                    dropped_packets: 0,
                    pfc_pauses: 0,
                };
                (Vec::new(), tier)
            });
            utilisation.push(link.utilisation(run.info.simulated_ps));
            tier.max_queue_bytes = tier.max_queue_bytes.max(link.max_queue_bytes);
            tier.dropped_packets += link.dropped_packets;
            tier.pfc_pauses += link.pfc_pauses;
        }
        summary.paused_ns = ns(paused_ps);
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
