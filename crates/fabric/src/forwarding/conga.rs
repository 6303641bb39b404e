//! CONGA (Alizadeh et al., "CONGA: Distributed Congestion-Aware Load Balancing for Datacenters", SIGCOMM 2014).
//!
//! A leaf sends each flowlet by the uplink whose path to the receiver's leaf is least congested. A [`Dre`] for each
//! uplink measures the leaf's own links. For the rest of a path, every packet collects the largest metric of its
//! links. The receiving leaf stores it by sending leaf and uplink, and packets of the reverse direction carry it
//! back.
//!
//! The scheme is published for two tiers. With more tiers, switches beyond the first uplink choose by hash, and a
//! metric describes the paths that the packets took.

use pathweave_units::{Duration, Spread, Time};

use super::balance::{Balance, Layout, check_entries, check_times};
use super::dice::SwitchDice;
use super::dre::Dre;
use super::flowlets::{FlowletTable, Lookup};
use super::leaves::ManyLeaves;
use super::routes::Candidates;
use super::view::{Action, ForwardingStats, Ports, SwitchView};
use crate::config_error::{ConfigError, out_of_range};
use crate::link::LinkSpec;
use crate::packet::{Header, PortId};

/// Parameters of CONGA.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CongaConfig {
    /// Idle time of a flow after which its next packet begins a flowlet, above 0. Default 50 us (the evaluation of
    /// LAPS; that of ConWeave has 100 us, the CONGA paper 500 us).
    pub gap: Duration,
    /// Number of flowlets that a leaf can distinguish: entries of its table, a power of two. Default 65,536 (CONGA,
    /// section 3.4).
    pub entries: u32,
    /// Interval at which the estimate of a link's load is discounted, above 0. Default 20 us: with the default
    /// `dre_alpha` this averages over 160 us, as in the CONGA paper (section 3.6). The class in conweave-ns3 has 200
    /// us and 0.2. Its program `network-load-balance.cc` sets 50 us and 0.2, which averages over 250 us, and ages
    /// metrics after 500 us. The study of LAPS has 200 us and 0.2.
    pub dre_interval: Duration,
    /// Share of the estimate that each discount removes, 0.001 to 1. Default 0.125.
    pub dre_alpha: f64,
    /// Number of bits of a congestion metric, 1 to 8. Default 3 (CONGA, section 3.6).
    pub metric_bits: u32,
    /// Time after which a metric that was not updated counts as 0, above 0. Default 10 ms (CONGA, section 3.3).
    pub ageing: Duration,
    /// Number of paths compared for each flowlet, consecutive ones from a random position in the list of paths. 0:
    /// all paths. Default 0 (CONGA, section 3.5); conweave-ns3 and the study of LAPS have 4.
    pub samples: u32,
    /// Keeps a flowlet on the path of the one before it unless another path is better. Default true (CONGA, section
    /// 3.5). With false, as in conweave-ns3 and the study of LAPS, the choice among equally good paths is random.
    pub stay: bool,
    /// Bytes that the metrics count: "sent" (default), or "routed" as in conweave-ns3.
    pub counts: CongaCounts,
}

/// Bytes that the metrics of CONGA count.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum CongaCounts {
    /// Bytes that links have sent. Metrics are limited to the largest number of `metric_bits`, and every packet
    /// carries them (the CONGA paper).
    #[default]
    Sent,
    /// Data bytes that were assigned to a link, still queued or not, without that limit. Only data packets are
    /// balanced and carry metrics, and the metric fed back next is drawn at random (conweave-ns3).
    Routed,
}

impl Default for CongaConfig {
    fn default() -> Self {
        CongaConfig {
            gap: Duration::from_us(50),
            entries: 65_536,
            dre_interval: Duration::from_us(20),
            dre_alpha: 0.125,
            metric_bits: 3,
            ageing: Duration::from_ms(10),
            samples: 0,
            stay: true,
            counts: CongaCounts::Sent,
        }
    }
}

impl CongaConfig {
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        check_times(&[
            ("forwarding.conga.gap", self.gap),
            ("forwarding.conga.dre_interval", self.dre_interval),
            ("forwarding.conga.ageing", self.ageing),
        ])?;
        check_entries("forwarding.conga.entries", self.entries)?;
        if !(self.dre_alpha >= 0.001 && self.dre_alpha <= 1.0) {
            return Err(out_of_range("forwarding.conga.dre_alpha", self.dre_alpha, "0.001 to 1"));
        }
        if !(1..=8).contains(&self.metric_bits) {
            return Err(out_of_range("forwarding.conga.metric_bits", self.metric_bits, "1 to 8"));
        }
        Ok(())
    }
}

/// Header that a packet between leaves carries (section 3.1), stored by the slot of the packet's content.
#[derive(Clone, Copy, Default, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub(crate) struct Tag {
    /// Uplink of the sending leaf, counted from the leaf's first port.
    uplink: u16,
    /// Largest metric of the links crossed so far.
    congestion: u8,
    /// Uplink of the receiving leaf and its congestion, as the sending leaf measured it.
    feedback: Option<(u16, u8)>,
}

/// A congestion metric that expires.
#[derive(Clone, Copy, Default)]
struct Metric {
    value: u8,
    known: bool,
    /// True if the value has changed since it was last fed back.
    changed: bool,
    since: Time,
}

impl Metric {
    fn at(&self, now: Time, ageing: Duration) -> u8 {
        if now.saturating_since(self.since) > ageing { 0 } else { self.value }
    }

    fn set(&mut self, value: u8, now: Time) {
        *self = Metric { value, known: true, changed: self.changed || value != self.value, since: now };
    }
}

/// Metrics of the paths between two leaves, by uplink of the sending leaf.
#[derive(Clone, Default)]
struct PairMetrics {
    metrics: Vec<Metric>,
    /// Uplink at which the search for the next feedback begins.
    turn: u16,
}

impl PairMetrics {
    fn metric(&mut self, uplink: u16) -> &mut Metric {
        if self.metrics.len() <= usize::from(uplink) {
            self.metrics.resize(usize::from(uplink) + 1, Metric::default());
        }
        &mut self.metrics[usize::from(uplink)]
    }

    /// Returns a random metric among those that have not expired.
    fn random_fresh(&self, now: Time, ageing: Duration, random: u64) -> Option<(u16, u8)> {
        let fresh = |metric: &&Metric| metric.known && now.saturating_since(metric.since) <= ageing;
        let count = self.metrics.iter().filter(fresh).count() as u32;
        let nth = Candidates::Range(0, count.max(1)).by_hash(random) as usize;
        let mut fresh = self.metrics.iter().enumerate().filter(|(_, metric)| fresh(metric));
        fresh.nth(nth).map(|(uplink, metric)| (uplink as u16, metric.value))
    }

    /// Returns the next metric to feed back. Uplinks take turns, and those whose metric has changed come first.
    fn feedback(&mut self, now: Time, ageing: Duration) -> Option<(u16, u8)> {
        let n = self.metrics.len();
        let in_turn = (0..n).map(|step| (usize::from(self.turn) + step) % n);
        let next = in_turn
            .clone()
            .find(|&i| self.metrics[i].changed)
            .or_else(|| in_turn.clone().find(|&i| self.metrics[i].known))?;
        self.turn = ((next + 1) % n) as u16;
        self.metrics[next].changed = false;
        Some((next as u16, self.metrics[next].at(now, ageing)))
    }
}

/// State of a leaf.
#[derive(Clone, Default)]
struct Leaf {
    flowlets: FlowletTable,
    /// Congestion of the paths to each leaf.
    to: Vec<PairMetrics>,
    /// Congestion of the paths from each leaf, to be fed back to it.
    from: Vec<PairMetrics>,
}

impl Leaf {
    fn metrics(all: &mut Vec<PairMetrics>, leaf: u32) -> &mut PairMetrics {
        if all.len() <= leaf as usize {
            all.resize(leaf as usize + 1, PairMetrics::default());
        }
        &mut all[leaf as usize]
    }
}

/// State of all switches.
pub(crate) struct Conga {
    config: CongaConfig,
    dre: Dre,
    leaf_of_host: Vec<u32>,
    /// State of each switch.
    leaves: Vec<Leaf>,
    /// Tags of packets, by slot of their content.
    tags: Vec<Tag>,
    dice: SwitchDice,
    /// Data bytes assigned to each port; empty unless these are counted.
    routed_bytes: Vec<u64>,
    stats: ForwardingStats,
}

/// Ports that report the bytes assigned to them in place of the bytes sent.
struct Routed<'a>(&'a [u64], &'a dyn Ports);

impl Ports for Routed<'_> {
    fn sent_bytes(&self, port: PortId) -> u64 {
        self.0[port as usize]
    }
    /// A register changes only when packets are assigned, so queued packets require no tick.
    fn is_serving(&self, _: PortId) -> bool {
        false
    }
    fn link(&self, port: PortId) -> &LinkSpec {
        self.1.link(port)
    }
}

impl Balance for Conga {
    const SPREAD: Option<Spread> = Some(Spread::ByCapacity);
    const COUNTS_SENT: bool = true;
    type Config = CongaConfig;
    type Note = Tag;

    fn new(config: &CongaConfig, fabric: &Layout<'_>) -> Result<Self, ManyLeaves> {
        let (switches, ports) = (fabric.switches, fabric.ports as usize);
        let dre = Dre::new(config.dre_interval, config.dre_alpha, config.metric_bits, switches, ports);
        let (dre, counted) = match config.counts {
            CongaCounts::Sent => (dre, 0),
            CongaCounts::Routed => (dre.without_ceiling(), ports),
        };
        Ok(Conga {
            dre,
            routed_bytes: vec![0; counted],
            config: config.clone(),
            leaf_of_host: (fabric.leaf_of_host)()?,
            leaves: vec![Leaf::default(); switches],
            tags: Vec::new(),
            dice: SwitchDice::new(fabric.seed, switches),
            stats: ForwardingStats::default(),
        })
    }

    fn decide(&mut self, at: &mut impl SwitchView, header: &Header) -> Action {
        Action::Forward(self.port(at, header))
    }

    /// Returns the time at which the registers of a switch decay next.
    fn next_clock(&self, switch: u32) -> Time {
        self.dre.next_tick(switch)
    }

    fn on_clock(&mut self, at: &mut impl SwitchView, until: Time) {
        at.ports().for_each(|port| at.serve(port));
        let (switch, ports) = (at.switch(), at.ports());
        match self.config.counts {
            CongaCounts::Sent => self.dre.tick(switch, ports, at, until),
            CongaCounts::Routed => self.dre.tick(switch, ports, &Routed(&self.routed_bytes, at), until),
        }
    }

    fn hand_over(&mut self, header: &Header) -> Option<Tag> {
        header.has_content().then(|| *self.tag(header))
    }

    fn take_over(&mut self, header: Header, tag: Tag) -> Header {
        *self.tag(&header) = tag;
        header
    }

    fn stats(&self) -> &ForwardingStats {
        &self.stats
    }
}

impl Conga {
    /// Returns the leaves of a packet's sender and receiver.
    fn ends(&self, header: &Header) -> (u32, u32) {
        (self.leaf_of_host[header.src().index()], self.leaf_of_host[header.dst().index()])
    }

    fn tag(&mut self, header: &Header) -> &mut Tag {
        let place = header.content();
        if self.tags.len() <= place {
            self.tags.resize(place + 1, Tag::default());
        }
        &mut self.tags[place]
    }

    /// Returns the path of a packet at the leaf of its sender: that of its flowlet, or the best one by the metrics
    /// (section 3.5). `place` maps a path to its index in the metrics and to its first port.
    fn choose_path(
        &mut self,
        (switch, to): (u32, u32),
        now: Time,
        hash: u64,
        (all, place): (Candidates<'_>, impl Fn(u32) -> (u16, PortId)),
        ports: &impl Ports,
    ) -> u32 {
        let leaf = &mut self.leaves[switch as usize];
        let before = match leaf.flowlets.look(hash, now, self.config.gap, self.config.entries) {
            Lookup::Known(way) if all.contains(way) => return way,
            Lookup::Known(way) => Some(way),
            Lookup::Fresh(before) => before,
        };
        let samples = self.config.samples;
        let candidates = if samples == 0 || samples >= all.len() {
            all
        } else {
            let starts = Candidates::Range(0, all.len() - samples + 1);
            all.part(starts.by_hash(self.dice.draw(switch)), samples)
        };
        let ways = Leaf::metrics(&mut leaf.to, to);
        let mut metric = |way: u32| {
            let (number, port) = place(way);
            let remote = ways.metric(number).at(now, self.config.ageing);
            remote.max(match self.config.counts {
                CongaCounts::Sent => self.dre.metric(port, ports),
                CongaCounts::Routed => self.dre.metric(port, &Routed(&self.routed_bytes, ports)),
            })
        };
        let best = candidates.iter().map(&mut metric).min().expect("there is a way");
        // With `stay`, a flow moves only to a better path. Among equally good paths the choice is random.
        let stays = before.filter(|&way| self.config.stay && candidates.contains(way) && metric(way) == best);
        let way = match stays {
            Some(way) => way,
            None => {
                let good = candidates.iter().filter(|&way| metric(way) == best).count() as u32;
                let nth = Candidates::Range(0, good).by_hash(self.dice.draw(switch)) as usize;
                candidates.iter().filter(|&way| metric(way) == best).nth(nth).expect("one of them")
            }
        };
        leaf.flowlets.assign(hash, way);
        self.stats.flowlets += 1;
        self.stats.reroutes += u64::from(before.is_some_and(|before| before != way));
        way
    }

    /// Stores the metrics that a packet has brought to the leaf of its receiver.
    fn arrived(&mut self, switch: u32, from: u32, now: Time, header: &Header) {
        let tag = *self.tag(header);
        let leaf = &mut self.leaves[switch as usize];
        Leaf::metrics(&mut leaf.from, from).metric(tag.uplink).set(tag.congestion, now);
        if let Some((uplink, value)) = tag.feedback {
            Leaf::metrics(&mut leaf.to, from).metric(uplink).set(value, now);
        }
    }

    /// Returns the egress port for a packet that has a next hop.
    fn port(&mut self, at: &mut impl SwitchView, header: &Header) -> PortId {
        let (now, switch) = (at.now(), at.switch());
        let (from, to) = self.ends(header);
        if self.config.counts == CongaCounts::Routed && header.class() == 0 {
            return at.default_port(header);
        }
        if switch == to {
            if from != to {
                self.arrived(switch, from, now, header);
            }
            return at.default_port(header);
        }
        if switch != from {
            let port = at.default_port(header);
            self.collect_metric(at, port, header);
            return port;
        }
        // Metrics count the bytes sent up to now.
        let mut seen = 0;
        while let Some(port) = at.first_hop(header, seen) {
            at.serve(port);
            seen += 1;
        }
        if seen == 0 {
            // All explicit paths are dead.
            return at.default_port(header);
        }
        let (hash, first) = (at.flow(header), at.ports().start);
        let (number, port) = if let Some(ways) = at.explicit() {
            let place = |way: u32| (way as u16, ways.port(header, way, 1));
            let all = ways.between(header.src(), header.dst());
            let way = self.choose_path((switch, to), now, hash, (all, place), &*at);
            let place = (way as u16, ways.port(header, way, 1));
            at.give(header, way);
            place
        } else {
            let place = |port: PortId| ((port - first) as u16, port);
            let all = at.candidates(header.src(), header.dst());
            place(self.choose_path((switch, to), now, hash, (all, place), &*at))
        };
        let known = Leaf::metrics(&mut self.leaves[switch as usize].from, to);
        let feedback = match self.config.counts {
            CongaCounts::Sent => known.feedback(now, self.config.ageing),
            CongaCounts::Routed => known.random_fresh(now, self.config.ageing, self.dice.draw(switch)),
        };
        *self.tag(header) = Tag { uplink: number, congestion: 0, feedback };
        self.collect_metric(at, port, header);
        port
    }

    /// Raises the packet's metric to that of the link that it takes next, if that is larger.
    fn collect_metric(&mut self, at: &mut impl SwitchView, port: PortId, header: &Header) {
        at.serve(port);
        let metric = match self.config.counts {
            CongaCounts::Sent => self.dre.metric(port, &*at),
            CongaCounts::Routed => {
                self.routed_bytes[port as usize] += u64::from(header.wire_bytes());
                self.dre.metric(port, &Routed(&self.routed_bytes, &*at))
            }
        };
        let tag = self.tag(header);
        tag.congestion = tag.congestion.max(metric);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: u64) -> Time {
        Time::ZERO + Duration::from_us(us)
    }

    const AGEING: Duration = Duration::from_ms(10);

    #[test]
    fn feedback_goes_round_and_prefers_news() {
        let mut ways = PairMetrics::default();
        assert_eq!(ways.feedback(us(0), AGEING), None);
        for (uplink, value) in [(4, 1), (5, 2), (7, 3)] {
            ways.metric(uplink).set(value, us(0));
        }
        let mut next = |now| ways.feedback(us(now), AGEING);
        // All have changed. Then none has, and they take turns.
        assert_eq!([next(0), next(0), next(0)], [Some((4, 1)), Some((5, 2)), Some((7, 3))]);
        assert_eq!([next(0), next(0)], [Some((4, 1)), Some((5, 2))]);
        ways.metric(4).set(6, us(1));
        // The same value again is no change.
        ways.metric(5).set(2, us(1));
        let mut next = |now| ways.feedback(us(now), AGEING);
        assert_eq!([next(2), next(2)], [Some((4, 6)), Some((5, 2))]);
        // Uplink 7 was last updated at 0, more than 10 ms ago.
        assert_eq!(next(10_001), Some((7, 0)));
    }

    #[test]
    fn any_is_one_of_those_heard_of_lately() {
        let mut ways = PairMetrics::default();
        assert_eq!(ways.random_fresh(us(0), AGEING, 7), None);
        ways.metric(2).set(3, us(0));
        ways.metric(5).set(9, us(5_000));
        let seen = |now| {
            (0..64_u64).map(|i| ways.random_fresh(us(now), AGEING, i << 58).unwrap()).collect::<Vec<_>>()
        };
        assert!(seen(5_000).contains(&(2, 3)) && seen(5_000).contains(&(5, 9)));
        assert!(seen(10_001).iter().all(|told| *told == (5, 9)));
    }

    #[test]
    fn a_metric_is_forgotten() {
        let mut metric = Metric::default();
        metric.set(5, us(100));
        assert_eq!(metric.at(us(10_100), AGEING), 5);
        assert_eq!(metric.at(us(10_101), AGEING), 0);
    }
}
