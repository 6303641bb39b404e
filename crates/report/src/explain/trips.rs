//! Upper bounds of the time that faults can have cost flows, for runs without records of waits.

use std::collections::BTreeMap;

use super::facts::Facts;
use super::outage::Trip;
use super::settings::Fault;
use super::weigh::{Hindrance, Met};

/// Share of a flow's time for which a link must have been busy to hold the flow back.
const BUSY: f64 = 0.6;

impl Facts {
    /// Returns upper bounds of the time that faults can have cost a flow, by fault, for runs without records of waits.
    pub(super) fn bounds_of_trip(&self, trip: &Trip) -> BTreeMap<usize, f64> {
        let journey = trip.journey(self.run_ns);
        let met = self.met(journey, std::iter::empty());
        met.bounds_of_faults(|hindrance, _| met.bound_without_waits_ns(hindrance, trip))
    }
}

impl Met<'_> {
    /// Returns the longest time that a fault can have cost a flow whose waits are not recorded.
    fn bound_without_waits_ns(&self, hindrance: &Hindrance, trip: &Trip) -> f64 {
        let Some(fault) = self.fault(hindrance) else { return 0.0 };
        let keeps = self.facts.keeps_paths();
        let own_part = if keeps { 1.0 } else { hindrance.part };
        let beside = self.is_full(hindrance);
        let over_ns = hindrance.over_ns;
        let repair_ns = match self.facts.lost_by(fault) {
            0 => 0.0,
            _ => trip.timeouts * self.facts.settings.time_ns("network.retransmission.timeout").unwrap_or(0.0),
        };
        let held_ns = match fault.kind.as_str() {
            "link-rate" if self.is_full_itself(hindrance, fault) => over_ns * hindrance.depth,
            "link-rate" if !keeps && beside => over_ns * hindrance.depth * hindrance.part,
            "link-rate" => 0.0,
            "link-delay" => {
                let added_ns = 2.0 * self.added_ns(hindrance);
                if !keeps && beside { over_ns * hindrance.part + added_ns } else { added_ns }
            }
            _ if fault.takes_down() => {
                let reroute_ns = self.facts.settings.time_ns("switch.reroute_after").unwrap_or(0.0);
                let unknown_ns = over_ns.min(reroute_ns * fault.times.max(1) as f64);
                let known_ns = if beside { (over_ns - unknown_ns) * hindrance.part } else { 0.0 };
                unknown_ns * own_part + known_ns
            }
            _ if !keeps && beside && self.is_avoided(hindrance) => over_ns * hindrance.part,
            _ => over_ns * own_part * hindrance.depth,
        };
        held_ns + repair_ns
    }

    /// Returns true if a link beside the hindrance was busy for most of the flow's time.
    fn is_full(&self, hindrance: &Hindrance) -> bool {
        hindrance.links.iter().any(|&(layer, own)| {
            let mut others = self.layers[layer].iter().filter(|&&link| link != own);
            others.any(|&link| self.busy_ns(link) >= BUSY * self.journey.took_ns())
        })
    }

    /// Returns true if a link of lower rate carried about as much as it could while the fault was in force.
    fn is_full_itself(&self, hindrance: &Hindrance, fault: &Fault) -> bool {
        hindrance.links.iter().any(|&(_, link)| {
            let left = fault.rate_bps.unwrap_or(0.0) / self.facts.links[link].rate_bps;
            self.facts.carried(&[link]) * self.facts.run_ns >= BUSY * left * hindrance.over_ns
        })
    }

    fn busy_ns(&self, link: usize) -> f64 {
        self.facts.links[link].busy * self.facts.run_ns
    }
}

#[cfg(test)]
mod tests {
    use pathweave_records::Direction;

    use super::super::accounting::DelayCause;
    use super::super::facts::{Flow, Link};
    use super::super::settings::Settings;
    use super::super::table::Table;
    use super::super::weigh::Journey;
    use super::*;

    /// Two hosts at two leaves with two spines, and a run of 1 ms. `carried` is the share of the time for which the first
    /// leaf sends to each spine.
    fn facts(scenario: &str, carried: [f64; 2]) -> Facts {
        let empty = Table::default();
        let mut facts = Facts::new(&empty, &empty, &empty, Settings::new(scenario));
        facts.run_ns = 1e6;
        let names = ["host0", "host1", "leaf0", "leaf1", "spine0", "spine1"];
        let mut link = |from: usize, to: usize, tier: u32, direction: Direction, busy: f64| {
            facts.links.push(Link {
                from: names[from].to_owned(),
                to: names[to].to_owned(),
                number: 0,
                from_node: from as u32,
                to_node: to as u32,
                tier,
                direction,
                rate_bps: 100e9,
                delay_ns: 1e3,
                busy,
                tx_bytes: busy * 100e9 / 8e9 * 1e6,
                tx_packets: 0.0,
                marked: 0.0,
                paused_ns: 0.0,
                dropped: 0.0,
                trimmed: 0.0,
                max_queue_bytes: 0.0,
            });
        };
        for (low, high, tier, busy) in [
            (0, 2, 0, 0.5),
            (1, 3, 0, 0.0),
            (2, 4, 1, carried[0]),
            (2, 5, 1, carried[1]),
            (3, 4, 1, 0.0),
            (3, 5, 1, 0.0),
        ] {
            link(low, high, tier, Direction::Up, busy);
            link(high, low, tier, Direction::Down, 0.0);
        }
        facts
    }

    /// A flow for all of the run that would take half of it on an idle network.
    fn flow() -> Flow {
        Flow {
            group: "flows".to_owned(),
            start_ns: 0.0,
            src_host: 0,
            dst_host: 1,
            size_bytes: 6.25e6,
            took_ns: 1e6,
            ideal_ns: 5e5,
            is_cut: false,
            ideal_acked_ns: f64::NAN,
            sent: 1500.0,
            sent_again: 0.0,
            timeouts: 0.0,
            parts: Vec::new(),
        }
    }

    const FAULTS: &str = r#"
        [[fault]]
        kind = "link-down"
        link = "leaf0-spine0"
        at = "100us"
        up_at = "200us"
        [[fault]]
        kind = "link-rate"
        link = "leaf0->spine1"
        rate = "25Gbps"
        at = "900us"
        [[fault]]
        kind = "link-rate"
        link = "host0-leaf0"
        rate = "90Gbps"
        at = "100us"
        until = "110us"
        [[fault]]
        kind = "link-down"
        link = "leaf0-spine0"
        at = "2ms"
    "#;

    #[test]
    fn faults_cost_at_most_their_part_of_the_capacity_for_their_time() {
        let facts = facts(FAULTS, [0.25, 0.25]);
        // A half of the paths for 100 us, three quarters of a half for 100 us, a tenth for 10 us; the last comes later.
        let bounds: Vec<(usize, f64)> = facts.weigh(&flow(), &mut BTreeMap::new()).into_iter().collect();
        let hand = [(0, 50e3), (1, 37.5e3), (2, 1e3)];
        assert_eq!(bounds.len(), hand.len());
        for ((fault, bound), (known, ns)) in bounds.into_iter().zip(hand) {
            assert!(fault == known && (bound - ns).abs() < 1e-3, "{fault}: {bound}");
        }
        assert_eq!(
            facts
                .met(Journey::from(&flow()), std::iter::empty())
                .layers
                .iter()
                .map(Vec::len)
                .collect::<Vec<_>>(),
            [1, 2, 2, 1]
        );
    }

    /// Returns the time that the flow waited for the second spine and faults have cost it, of 500 us.
    fn moved_ns(scheme: &str, fault: &str, carried: [f64; 2]) -> f64 {
        let scenario = format!("[scheme.policy]\n{scheme}\n[[fault]]\nlink = \"leaf0-spine0\"\n{fault}\n");
        let facts = facts(&scenario, carried);
        let link = facts.links.iter().position(|link| link.name() == "leaf0 to spine1");
        let waited = DelayCause::Link(link.unwrap());
        let mut sums = BTreeMap::from([(waited, 5e5)]);
        facts.weigh(&flow(), &mut sums);
        assert!((sums.values().sum::<f64>() - 5e5).abs() < 1e-3, "no time is lost: {sums:?}");
        sums.get(&DelayCause::Fault(0)).copied().unwrap_or(0.0)
    }

    #[test]
    fn a_fault_beside_a_link_costs_what_it_displaced() {
        let moved = |scheme: &str, fault: &str, carried| (moved_ns(scheme, fault, carried) / 1e3).round();
        let (hash, spread) = ("kind = \"split\"\npicker = \"ecmp\"", "kind = \"weave\"");
        let short = "kind = \"link-down\"\nat = \"100us\"\nup_at = \"120us\"";
        let half = "kind = \"link-down\"\nat = \"100us\"\nup_at = \"600us\"";
        // By hash, a link that no flow uses displaces none; one that is busy for a fifth of the time that it is up
        // displaces a fifth of the time that it is down.
        assert_eq!(moved(hash, half, [0.0, 1.0]), 0.0);
        assert_eq!(moved(hash, half, [0.1, 1.0]), 100.0);
        assert_eq!(moved(hash, "kind = \"link-down\"\nat = \"0s\"", [0.0, 1.0]), 500.0);
        // Spread over both, half of the packets for its time; used alike, the busy link would have needed half.
        assert_eq!(moved(spread, short, [1.0, 1.0]), 10.0);
        assert_eq!(moved(spread, half, [0.0, 1.0]), 500.0);
        assert_eq!(moved(spread, half, [0.5, 1.0]), 250.0);
        // Hashes do not answer to rates and delays, other schemes do.
        let slow = "kind = \"link-rate\"\nrate = \"50Gbps\"\nat = \"0s\"";
        assert_eq!(moved(hash, slow, [0.0, 1.0]), 0.0);
        assert_eq!(moved(spread, slow, [0.2, 1.0]), 400.0);
        let long = "kind = \"link-delay\"\ndelay = \"1ms\"\nat = \"100us\"\nuntil = \"600us\"";
        assert_eq!(moved(spread, long, [0.2, 1.0]), 400.0);
    }
}
