//! CONGA (Alizadeh et al., "CONGA: Distributed Congestion-Aware Load Balancing for Datacenters", SIGCOMM 2014).
//!
//! A leaf sends each flowlet up by the uplink whose way to the leaf of the receiver is least congested. It knows its own
//! links by a [`Dre`] each, and the rest because every packet gathers the largest metric on its way, the leaf that
//! receives it remembers that by sender and uplink, and packets the other way bring it back.
//!
//! Published for two tiers. With more, what is beyond the first uplink is chosen by hash, and the metric is that of the
//! ways the packets took.

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
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CongaConfig {
    /// A pause longer than this begins a flowlet. Default 50 us (the evaluation of LAPS; that of ConWeave has 100 us, the
    /// CONGA paper 500 us).
    pub gap: Duration,
    /// Flowlets a leaf can tell apart: entries of its table, a power of two. Default 65,536 (CONGA, section 3.4).
    pub entries: u32,
    /// How often the estimate of a link's load is discounted. Default 20 us, with `dre_alpha` the 160 us over which the
    /// CONGA paper averages (section 3.6). The class of conweave-ns3 has 200 us and 0.2, but what it runs (its
    /// `network-load-balance.cc`) sets 50 us and 0.2, which is 250 us, and lets figures age for 500 us; the study of LAPS
    /// has 200 us and 0.2.
    pub dre_interval: Duration,
    /// The share of the estimate taken away each time. Default 0.125.
    pub dre_alpha: f64,
    /// Bits of a congestion metric, 1 to 8. Default 3 (CONGA, section 3.6).
    pub metric_bits: u32,
    /// A metric not heard of for longer than this counts as 0. Default 10 ms (CONGA, section 3.3).
    pub ageing: Duration,
    /// Ways looked at for each flowlet, neighbours at a random place in their list; 0: all. Default 0 (CONGA, section 3.5);
    /// conweave-ns3 and the study of LAPS have 4.
    pub samples: u32,
    /// Whether a flowlet takes the way of the one before it unless another is better. Default true (CONGA, section 3.5);
    /// in conweave-ns3 and the study of LAPS chance decides among what is equally good.
    pub stay: bool,
    /// What metrics count: "sent" (default), or "routed", as in conweave-ns3.
    pub counts: CongaCounts,
}

/// What the metrics of CONGA count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum CongaCounts {
    /// Bytes that links have sent, up to the largest number of `metric_bits`; every packet carries metrics (the CONGA paper).
    #[default]
    Sent,
    /// Bytes of data when they are given a link, waiting or not, without that limit; data alone is balanced and carries
    /// metrics, and those told next are drawn at random (conweave-ns3).
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

/// What a packet between leaves carries (section 3.1), by the place of its content.
#[derive(Clone, Copy, Default, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub(crate) struct Tag {
    /// Uplink of the sending leaf, counted from its first port.
    uplink: u16,
    /// Largest metric of the links so far.
    congestion: u8,
    /// Congestion of an uplink of the receiving leaf, as the sending one knows it.
    feedback: Option<(u16, u8)>,
}

/// A metric that is forgotten after a while.
#[derive(Clone, Copy, Default)]
struct Metric {
    value: u8,
    known: bool,
    /// It has changed since it was last fed back.
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

/// Metrics of the ways between a leaf and another one, by uplink of the leaf that sends.
#[derive(Clone, Default)]
struct PairMetrics {
    metrics: Vec<Metric>,
    /// Where feedback goes on.
    turn: u16,
}

impl PairMetrics {
    fn metric(&mut self, uplink: u16) -> &mut Metric {
        if self.metrics.len() <= usize::from(uplink) {
            self.metrics.resize(usize::from(uplink) + 1, Metric::default());
        }
        &mut self.metrics[usize::from(uplink)]
    }

    /// One of those that have been heard of lately.
    fn any(&self, now: Time, ageing: Duration, random: u64) -> Option<(u16, u8)> {
        let fresh = |metric: &&Metric| metric.known && now.saturating_since(metric.since) <= ageing;
        let count = self.metrics.iter().filter(fresh).count() as u32;
        let nth = Candidates::Range(0, count.max(1)).by_hash(random) as usize;
        let mut fresh = self.metrics.iter().enumerate().filter(|(_, metric)| fresh(metric));
        fresh.nth(nth).map(|(uplink, metric)| (uplink as u16, metric.value))
    }

    /// What to feed back next: in turn, those that have changed before the others.
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

/// What a leaf knows.
#[derive(Clone, Default)]
struct Leaf {
    flowlets: FlowletTable,
    /// By leaf: how congested the ways there are.
    to: Vec<PairMetrics>,
    /// By leaf: how congested the ways from there are, to be told to it.
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

/// The state of all switches.
pub(crate) struct Conga {
    config: CongaConfig,
    dre: Dre,
    leaf_of_host: Vec<u32>,
    /// By switch.
    leaves: Vec<Leaf>,
    /// By place of the content.
    tags: Vec<Tag>,
    dice: SwitchDice,
    /// By port, where these count: bytes of data it was given.
    routed_bytes: Vec<u64>,
    stats: ForwardingStats,
}

/// Ports that count what they were given in place of what they have sent.
struct Routed<'a>(&'a [u64], &'a dyn Ports);

impl Ports for Routed<'_> {
    fn sent_bytes(&self, port: PortId) -> u64 {
        self.0[port as usize]
    }
    /// A register changes with packets that come, and there is no tick to miss for what waits.
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

    /// When the registers of a switch decay next.
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
    /// The leaves of a packet's ends.
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

    /// The way of a packet at the leaf of its sender, by what its flowlet did or by the metrics (section 3.5). `place` tells
    /// of a way by which number metrics know it, and by which port it begins.
    fn way(
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
        // A flow moves only for something better; among what is equally good the choice is random.
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

    /// A packet has reached the leaf of its receiver: what it says of the ways between the two leaves.
    fn arrived(&mut self, switch: u32, from: u32, now: Time, header: &Header) {
        let tag = *self.tag(header);
        let leaf = &mut self.leaves[switch as usize];
        Leaf::metrics(&mut leaf.from, from).metric(tag.uplink).set(tag.congestion, now);
        if let Some((uplink, value)) = tag.feedback {
            Leaf::metrics(&mut leaf.to, from).metric(uplink).set(value, now);
        }
    }

    /// The port for a packet, which can be reached.
    fn port(&mut self, at: &mut impl SwitchView, header: &Header) -> PortId {
        let (now, switch) = (at.now(), at.switch());
        let (from, to) = self.ends(header);
        if self.config.counts == CongaCounts::Routed && header.class() == 0 {
            return at.onward(header);
        }
        if switch == to {
            if from != to {
                self.arrived(switch, from, now, header);
            }
            return at.onward(header);
        }
        if switch != from {
            let port = at.onward(header);
            self.gather(at, port, header);
            return port;
        }
        // Metrics count what was sent up to now.
        let mut seen = 0;
        while let Some(port) = at.first_hop(header, seen) {
            at.serve(port);
            seen += 1;
        }
        if seen == 0 {
            // All explicit ways are dead.
            return at.onward(header);
        }
        let (hash, first) = (at.flow(header), at.ports().start);
        let (number, port) = if let Some(ways) = at.explicit() {
            let place = |way: u32| (way as u16, ways.port(header, way, 1));
            let all = ways.between(header.src(), header.dst());
            let way = self.way((switch, to), now, hash, (all, place), &*at);
            let place = (way as u16, ways.port(header, way, 1));
            at.give(header, way);
            place
        } else {
            let place = |port: PortId| ((port - first) as u16, port);
            let all = at.candidates(header.src(), header.dst());
            place(self.way((switch, to), now, hash, (all, place), &*at))
        };
        let known = Leaf::metrics(&mut self.leaves[switch as usize].from, to);
        let feedback = match self.config.counts {
            CongaCounts::Sent => known.feedback(now, self.config.ageing),
            CongaCounts::Routed => known.any(now, self.config.ageing, self.dice.draw(switch)),
        };
        *self.tag(header) = Tag { uplink: number, congestion: 0, feedback };
        self.gather(at, port, header);
        port
    }

    /// The packet takes the metric of the link it is about to take along, if that is the largest yet.
    fn gather(&mut self, at: &mut impl SwitchView, port: PortId, header: &Header) {
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
        // All are news; then all are old, in turn.
        assert_eq!([next(0), next(0), next(0)], [Some((4, 1)), Some((5, 2)), Some((7, 3))]);
        assert_eq!([next(0), next(0)], [Some((4, 1)), Some((5, 2))]);
        ways.metric(4).set(6, us(1));
        // The same value again is no news.
        ways.metric(5).set(2, us(1));
        let mut next = |now| ways.feedback(us(now), AGEING);
        assert_eq!([next(2), next(2)], [Some((4, 6)), Some((5, 2))]);
        // Uplink 7 was last heard of at 0, 10 ms and more ago.
        assert_eq!(next(10_001), Some((7, 0)));
    }

    #[test]
    fn any_is_one_of_those_heard_of_lately() {
        let mut ways = PairMetrics::default();
        assert_eq!(ways.any(us(0), AGEING, 7), None);
        ways.metric(2).set(3, us(0));
        ways.metric(5).set(9, us(5_000));
        let seen = |now| (0..64_u64).map(|i| ways.any(us(now), AGEING, i << 58).unwrap()).collect::<Vec<_>>();
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
