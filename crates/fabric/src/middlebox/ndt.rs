//! Near-destination throttling (Reflex, section III-D). The external switch of the receiver's site measures the round
//! trip from itself to the receiver, and keeps flows with a long round trip in a queue of their own.

use std::collections::VecDeque;

use pathweave_units::{Duration, Time};

use super::table::{FlowKey, FlowTable, Recorded};
use crate::config_error::{ConfigError, out_of_range};
use crate::packet::Header;
use crate::ring::Ring;

/// Near-destination throttling.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NdtConfig {
    /// T_dst_thresh: round trip from the switch to the receiver above which a flow is congested. Absent: the idle
    /// round trip plus six tenths of it or eight packets, whichever is more. On the fabric of Reflex that is 10 us
    /// (table I: 10 us).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<Duration>,
    /// N_throttle: number of packets of the normal queue for one of the controlled queue, on each port into the site,
    /// 1 to 1000000. Default 8 (Reflex, table I).
    pub weight: u32,
    /// alpha: largest share of congested flows among the active flows without a pause. Above it the controlled queues
    /// pause. Above 0, at most 1. Default 0.7 (Reflex, table I).
    pub alpha: f64,
    /// T_maxpause: longest duration of a pause, above 0. Default 500 us (Reflex, table I).
    pub max_pause: Duration,
    /// Number of active flows below which there is no pause. Default 1, the literal reading: one congested flow out
    /// of one is paused. With 4 or more a few flows are not stopped.
    pub min_active: u32,
    /// Time after its last packet or acknowledgement for which a flow is active. More than `max_pause`. Default 1 ms.
    pub active_for: Duration,
    /// Order guards: the rule that keeps a flow's packets in order when it changes queues. Default "both".
    pub guards: OrderGuards,
    /// Time stamp that hosts read in acknowledgements. Default "renewed".
    pub stamp: HostStamp,
    /// Largest number of flows in the table, 1 to 16777216. Further flows are not throttled. Default 65536.
    pub max_flows: u32,
    /// Time without a packet after which a flow is removed from the table. More than `active_for`. Default 10 ms.
    pub forget_after: Duration,
}

impl Default for NdtConfig {
    fn default() -> Self {
        NdtConfig {
            threshold: None,
            weight: 8,
            alpha: 0.7,
            max_pause: Duration::from_us(500),
            min_active: 1,
            active_for: Duration::from_ms(1),
            guards: OrderGuards::default(),
            stamp: HostStamp::default(),
            max_flows: 65_536,
            forget_after: Duration::from_ms(10),
        }
    }
}

/// Rule that keeps the packets of a flow in order when it changes queues.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum OrderGuards {
    /// Packets of a flow join the queue in which packets of the same flow wait.
    #[default]
    Both,
    /// Guard recovery only, the change out of the controlled queue, as in the paper. Packets of a flow that becomes
    /// congested may overtake each other.
    Recovery,
    /// No guard.
    Off,
}

/// Time stamp that hosts read in the acknowledgements of flows from other sites.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum HostStamp {
    /// Time at which the data left this switch, as in the paper. Hosts that use it as a round trip measure only the
    /// way from this switch on.
    #[default]
    Renewed,
    /// Time at which the data left its host. The switch remembers it and writes it into the acknowledgement.
    Restored,
}

impl NdtConfig {
    /// Checks every field, and returns an error with the first one that is out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if let Some(threshold) = self.threshold.filter(|span| *span == Duration::ZERO) {
            return Err(out_of_range("external.ndt.threshold", threshold, "above 0"));
        }
        if !(1..=1_000_000).contains(&self.weight) {
            return Err(out_of_range("external.ndt.weight", self.weight, "1 to 1000000"));
        }
        if !(self.alpha > 0.0 && self.alpha <= 1.0) {
            return Err(out_of_range("external.ndt.alpha", self.alpha, "above 0, at most 1"));
        }
        if self.max_pause == Duration::ZERO {
            return Err(out_of_range("external.ndt.max_pause", self.max_pause, "above 0"));
        }
        if self.active_for <= self.max_pause {
            let allowed = format!("above max_pause, {}, so that no paused flow is forgotten", self.max_pause);
            return Err(out_of_range("external.ndt.active_for", self.active_for, allowed));
        }
        if self.forget_after <= self.active_for {
            let allowed = format!("above active_for, {}", self.active_for);
            return Err(out_of_range("external.ndt.forget_after", self.forget_after, allowed));
        }
        if self.max_flows == 0 || self.max_flows > 1 << 24 {
            return Err(out_of_range("external.ndt.max_flows", self.max_flows, "1 to 16777216"));
        }
        Ok(())
    }
}

/// Queue of a port into the site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SiteQueue {
    Normal,
    Controlled,
}

/// State of a flow.
#[derive(Clone, Debug, Default)]
struct Flow {
    congested: bool,
    /// True once a packet has joined the controlled queue.
    isolated: bool,
    /// Times at which unacknowledged packets left this switch and their host, oldest first. Empty if stamps are not
    /// restored.
    stamps: VecDeque<(Time, Time)>,
    /// Number of packets that wait in each queue.
    normal: u32,
    controlled: u32,
}

impl Flow {
    fn idle(&self) -> bool {
        self.normal == 0 && self.controlled == 0
    }
    fn lane(&self, guards: OrderGuards) -> SiteQueue {
        match (self.congested, guards) {
            (false, OrderGuards::Both | OrderGuards::Recovery) if self.controlled > 0 => {
                SiteQueue::Controlled
            }
            (true, OrderGuards::Both) if self.normal > 0 => SiteQueue::Normal,
            (congested, _) => [SiteQueue::Normal, SiteQueue::Controlled][usize::from(congested)],
        }
    }
}

/// Controlled queue of one port of the switch.
pub(crate) struct Queues {
    pub(crate) controlled: Ring<Header>,
    /// Packets served from the normal queue since the last one from the controlled queue.
    served: u32,
}

/// Counters of near-destination throttling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub struct NdtStats {
    /// Data packets from other sites.
    pub data_packets: u64,
    /// Data packets that went through a controlled queue.
    pub controlled_packets: u64,
    /// Acknowledgements that yielded a round-trip time.
    pub samples: u64,
    /// Round-trip times above the threshold.
    pub congested_samples: u64,
    /// Flows of which a packet joined a controlled queue.
    pub isolated_flows: u64,
    /// Packets of recovered flows that joined the controlled queue to stay in order.
    pub guarded_recovery: u64,
    /// Packets of congested flows that joined the normal queue to stay in order.
    pub guarded_isolation: u64,
    /// Pauses of the controlled queues.
    pub pauses: u64,
    /// Pauses that ended by `max_pause`.
    pub timed_out_pauses: u64,
    /// Total time for which the controlled queues were paused.
    pub paused: Duration,
    /// Largest number of bytes in the controlled queues.
    pub max_controlled_bytes: u64,
    /// Packets of flows for which the table had no room.
    pub untracked_packets: u64,
    /// Largest number of flows in the table.
    pub max_flows: u64,
}

/// Near-destination throttling at one switch.
pub(crate) struct Ndt {
    config: NdtConfig,
    threshold: Duration,
    flows: FlowTable<Flow>,
    /// Number of active flows that are congested.
    congested: u32,
    /// Queues of each port of the switch.
    pub(crate) queues: Vec<Queues>,
    pub(crate) controlled_bytes: u64,
    /// Time since which the controlled queues are paused.
    paused_at: Option<Time>,
    /// Time at which the last pause timed out. Samples of packets that left before it cannot start another pause.
    timed_out_at: Option<Time>,
}

/// Effect of a sample on the controlled queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PauseChange {
    Nothing,
    Pause,
    Resume,
}

impl Ndt {
    /// Creates the throttling of a switch. `queued` is the threshold if none is configured.
    pub(crate) fn new(config: &NdtConfig, ports: usize, queued: Duration) -> Self {
        Ndt {
            threshold: config.threshold.unwrap_or(queued),
            flows: FlowTable::new(config.max_flows, config.forget_after),
            congested: 0,
            queues: (0..ports).map(|_| Queues { controlled: Ring::new(), served: 0 }).collect(),
            controlled_bytes: 0,
            paused_at: None,
            timed_out_at: None,
            config: config.clone(),
        }
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.paused_at.is_some()
    }

    /// Returns the time at which the pause ends at the latest.
    pub(crate) fn resumes_at(&self) -> Option<Time> {
        self.paused_at.map(|at| at + self.config.max_pause)
    }

    fn touch(&mut self, now: Time, key: FlowKey, stats: &mut NdtStats) -> Option<u32> {
        while let Some(flow) = self.flows.deactivate_next(now, self.config.active_for) {
            self.congested -= u32::from(flow.congested);
        }
        let Recorded { at, activated: woke } = self.flows.record(now, key, Flow::idle)?;
        stats.max_flows = stats.max_flows.max(u64::from(self.flows.len()));
        if woke {
            self.congested += u32::from(self.flows.state(at).congested);
        }
        Some(at)
    }

    /// Chooses the queue of a data packet from another site.
    pub(crate) fn on_data(&mut self, now: Time, key: FlowKey, stats: &mut NdtStats) -> SiteQueue {
        stats.data_packets += 1;
        let Some(at) = self.touch(now, key, stats) else {
            stats.untracked_packets += 1;
            return SiteQueue::Normal;
        };
        let guards = self.config.guards;
        let flow = self.flows.state(at);
        let lane = flow.lane(guards);
        match lane {
            SiteQueue::Normal => {
                stats.guarded_isolation += u64::from(flow.congested);
                flow.normal += 1;
            }
            SiteQueue::Controlled => {
                stats.guarded_recovery += u64::from(!flow.congested);
                stats.controlled_packets += 1;
                stats.isolated_flows += u64::from(!flow.isolated);
                flow.isolated = true;
                flow.controlled += 1;
            }
        }
        lane
    }

    /// Records that a data packet has left its queue.
    pub(crate) fn on_left(&mut self, key: &FlowKey, lane: SiteQueue) {
        let Some(at) = self.flows.find(key) else { return };
        let flow = self.flows.state(at);
        // A flow that was untracked when its packet arrived counts fewer packets than leave.
        match lane {
            SiteQueue::Normal => flow.normal = flow.normal.saturating_sub(1),
            SiteQueue::Controlled => flow.controlled = flow.controlled.saturating_sub(1),
        }
    }

    /// Records that data with the stamp `sent_at` leaves this switch and is stamped again.
    pub(crate) fn on_stamped(&mut self, now: Time, sent_at: Time, key: &FlowKey) {
        if self.config.stamp == HostStamp::Restored
            && let Some(at) = self.flows.find(key)
        {
            self.flows.state(at).stamps.push_back((now, sent_at));
        }
    }

    /// Returns the stamp of the host for data that left this switch at `left_at`, if it is to be restored. Forgets
    /// it, and those of earlier packets.
    pub(crate) fn host_stamp(&mut self, left_at: Time, key: &FlowKey) -> Option<Time> {
        let stamps = &mut self.flows.find(key).map(|at| self.flows.state(at))?.stamps;
        let earlier = stamps.partition_point(|&(left, _)| left < left_at);
        stamps.drain(..earlier);
        let &(left, sent_at) = stamps.front()?;
        (left == left_at).then(|| {
            stamps.pop_front();
            sent_at
        })
    }

    /// Handles an acknowledgement whose data left this switch at `left_at`.
    pub(crate) fn on_ack(
        &mut self,
        now: Time,
        left_at: Time,
        key: FlowKey,
        stats: &mut NdtStats,
    ) -> PauseChange {
        let Some(at) = self.touch(now, key, stats) else { return PauseChange::Nothing };
        let congested = now.saturating_since(left_at) > self.threshold;
        stats.samples += 1;
        stats.congested_samples += u64::from(congested);
        let flow = self.flows.state(at);
        let before = std::mem::replace(&mut flow.congested, congested);
        self.congested = self.congested - u32::from(before) + u32::from(congested);
        self.update_pause(now, left_at, stats)
    }

    fn update_pause(&mut self, now: Time, left_at: Time, stats: &mut NdtStats) -> PauseChange {
        let active = self.flows.active();
        let many = f64::from(self.congested) > self.config.alpha * f64::from(active);
        match self.paused_at {
            Some(since) if !many => {
                self.paused_at = None;
                stats.paused += now - since;
                PauseChange::Resume
            }
            None if many && active >= self.config.min_active && !self.is_stale(now, left_at) => {
                self.paused_at = Some(now);
                stats.pauses += 1;
                PauseChange::Pause
            }
            _ => PauseChange::Nothing,
        }
    }

    /// Returns true for a sample that left before the end of a timed-out pause. It must not begin the next pause.
    fn is_stale(&self, now: Time, left_at: Time) -> bool {
        self.timed_out_at.is_some_and(|at| left_at < at && now < at + self.config.max_pause)
    }

    /// Ends a pause that has lasted its longest time.
    pub(crate) fn time_out(&mut self, now: Time, stats: &mut NdtStats) {
        let since = self.paused_at.take().expect("a pause that timed out");
        stats.paused += now - since;
        stats.timed_out_pauses += 1;
        self.timed_out_at = Some(now);
    }

    /// Returns the queue of a port that is served next. `normal` and `controlled` are true if that queue has packets
    /// to send.
    pub(crate) fn next_lane(&mut self, port: usize, normal: bool, controlled: bool) -> SiteQueue {
        let queues = &mut self.queues[port];
        let throttled = queues.served >= self.config.weight;
        if controlled && (throttled || !normal) {
            queues.served = 0;
            return SiteQueue::Controlled;
        }
        queues.served = (queues.served + 1).min(self.config.weight);
        SiteQueue::Normal
    }

    /// Records that a port's normal queue is empty.
    pub(crate) fn drained(&mut self, port: usize) {
        self.queues[port].served = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_units::HostId;

    fn key(flow: u64) -> FlowKey {
        FlowKey { src: HostId(16), dst: HostId(0), flow }
    }

    /// The parameters of table I.
    fn printed() -> NdtConfig {
        NdtConfig { threshold: Some(Duration::from_us(10)), ..NdtConfig::default() }
    }

    struct Bench {
        ndt: Ndt,
        stats: NdtStats,
    }

    impl Bench {
        fn new(config: NdtConfig) -> Self {
            Bench { ndt: Ndt::new(&config, 1, Duration::ZERO), stats: NdtStats::default() }
        }
        fn data(&mut self, at_us: u64, flow: u64) -> SiteQueue {
            self.ndt.on_data(Time::from_us(at_us), key(flow), &mut self.stats)
        }
        /// Feeds an acknowledgement with this round-trip time.
        fn ack(&mut self, at_us: u64, flow: u64, rtt_us: u64) -> PauseChange {
            let now = Time::from_us(at_us);
            self.ndt.on_ack(now, now - Duration::from_us(rtt_us), key(flow), &mut self.stats)
        }
    }

    #[test]
    fn eight_to_one_when_both_wait_and_everything_to_who_waits_alone() {
        let mut bench = Bench::new(printed());
        let lanes: Vec<SiteQueue> = (0..90).map(|_| bench.ndt.next_lane(0, true, true)).collect();
        for round in lanes.chunks(9) {
            assert!(round[..8].iter().all(|&lane| lane == SiteQueue::Normal));
            assert_eq!(round[8], SiteQueue::Controlled);
        }
        assert!((0..20).all(|_| bench.ndt.next_lane(0, false, true) == SiteQueue::Controlled));
        assert!((0..20).all(|_| bench.ndt.next_lane(0, true, false) == SiteQueue::Normal));
        // The turn of the controlled queue has come meanwhile, and is not lost.
        assert_eq!(bench.ndt.next_lane(0, true, true), SiteQueue::Controlled);
    }

    #[test]
    fn a_recovered_flow_follows_its_own_out_of_the_controlled_queue() {
        let mut bench = Bench::new(printed());
        bench.ack(100, 1, 11);
        for _ in 0..3 {
            assert_eq!(bench.data(101, 1), SiteQueue::Controlled);
        }
        bench.ack(102, 1, 10); // The threshold itself is not above it.
        assert_eq!(bench.data(103, 1), SiteQueue::Controlled, "behind three of its own");
        for _ in 0..4 {
            bench.ndt.on_left(&key(1), SiteQueue::Controlled);
        }
        assert_eq!(bench.data(104, 1), SiteQueue::Normal);
        assert_eq!((bench.stats.guarded_recovery, bench.stats.controlled_packets), (1, 4));
    }

    #[test]
    fn a_congested_flow_follows_its_own_out_of_the_normal_queue() {
        for (guards, lane) in [
            (OrderGuards::Both, SiteQueue::Normal),
            (OrderGuards::Recovery, SiteQueue::Controlled),
            (OrderGuards::Off, SiteQueue::Controlled),
        ] {
            let mut bench = Bench::new(NdtConfig { guards, ..printed() });
            bench.data(100, 1);
            bench.data(100, 1);
            bench.ack(101, 1, 11);
            assert_eq!(bench.data(102, 1), lane, "{guards:?}");
            let waiting = if lane == SiteQueue::Normal { 3 } else { 2 };
            for _ in 0..waiting {
                bench.ndt.on_left(&key(1), SiteQueue::Normal);
            }
            assert_eq!(bench.data(103, 1), SiteQueue::Controlled);
        }
    }

    /// Makes `n` of ten active flows congested, one after the other. Returns the effect of the last one.
    fn congest(bench: &mut Bench, n: u64) -> PauseChange {
        for flow in 0..10 {
            bench.ack(100, flow, 7);
        }
        (0..n).map(|flow| bench.ack(101, flow, 20)).last().unwrap()
    }

    #[test]
    fn eight_of_ten_congested_flows_pause_and_seven_do_not() {
        let mut bench = Bench::new(printed());
        assert_eq!(congest(&mut bench, 7), PauseChange::Nothing);
        assert_eq!(bench.ack(102, 7, 20), PauseChange::Pause);
        assert!(bench.ndt.is_paused());
        assert_eq!(bench.ack(150, 7, 7), PauseChange::Resume);
        assert_eq!((bench.stats.pauses, bench.stats.timed_out_pauses), (1, 0));
        assert_eq!(bench.stats.paused, Duration::from_us(48));
    }

    #[test]
    fn a_flow_is_isolated_once_a_packet_of_it_is_controlled() {
        let mut bench = Bench::new(printed());
        bench.ack(100, 1, 11);
        bench.ack(100, 2, 11);
        bench.ack(101, 2, 7);
        assert_eq!(bench.stats.isolated_flows, 0, "no packet came while they were congested");
        assert_eq!((bench.data(102, 1), bench.data(102, 1)), (SiteQueue::Controlled, SiteQueue::Controlled));
        assert_eq!(bench.data(102, 2), SiteQueue::Normal);
        assert_eq!(bench.stats.isolated_flows, 1);
    }

    #[test]
    fn stamps_of_hosts_are_given_back_if_configured() {
        let at = Time::from_us;
        let stamped = |stamp| {
            let mut bench = Bench::new(NdtConfig { stamp, ..printed() });
            for (left, sent) in [(510, 7), (520, 8), (530, 9)] {
                bench.data(left, 1);
                bench.ndt.on_stamped(at(left), at(sent), &key(1));
            }
            // The acknowledgement of the first packet was lost; the second comes twice.
            [520, 520, 530].map(|left| bench.ndt.host_stamp(at(left), &key(1)))
        };
        assert_eq!(stamped(HostStamp::Restored), [Some(at(8)), None, Some(at(9))]);
        assert_eq!(stamped(HostStamp::Renewed), [None; 3]);
    }

    #[test]
    fn a_pause_ends_after_its_longest_time_and_old_news_do_not_begin_the_next() {
        let mut bench = Bench::new(printed());
        assert_eq!(congest(&mut bench, 8), PauseChange::Pause);
        let end = bench.ndt.resumes_at().unwrap();
        assert_eq!(end, Time::from_us(601));
        bench.ndt.time_out(end, &mut bench.stats);
        assert!(!bench.ndt.is_paused());
        // The packet left before the end of the pause.
        assert_eq!(bench.ack(610, 0, 20), PauseChange::Nothing);
        assert_eq!(bench.ack(630, 0, 20), PauseChange::Pause);
        assert_eq!(bench.stats.timed_out_pauses, 1);
    }

    #[test]
    fn few_flows_are_not_paused_where_more_are_asked_for() {
        let mut literal = Bench::new(printed());
        assert_eq!(literal.ack(100, 1, 20), PauseChange::Pause);
        let mut spared = Bench::new(NdtConfig { min_active: 4, ..printed() });
        assert_eq!((1..=3).map(|flow| spared.ack(100, flow, 20)).last(), Some(PauseChange::Nothing));
        assert_eq!(spared.ack(100, 4, 20), PauseChange::Pause);
    }

    #[test]
    fn sleeping_flows_count_neither_as_active_nor_as_congested() {
        let mut bench = Bench::new(NdtConfig { min_active: 2, ..printed() });
        bench.ack(100, 1, 7);
        bench.ack(101, 2, 20);
        bench.ack(1_102, 3, 7);
        assert_eq!((bench.ndt.flows.active(), bench.ndt.congested), (1, 0));
        // The flow is still congested when it returns.
        bench.data(1_103, 2);
        assert_eq!((bench.ndt.flows.active(), bench.ndt.congested), (2, 1));
    }

    #[test]
    fn invalid_values_are_named() {
        let error = |change: fn(&mut NdtConfig)| {
            let mut config = NdtConfig::default();
            change(&mut config);
            config.validate().unwrap_err().to_string()
        };
        assert!(error(|c| c.alpha = 0.0).starts_with("external.ndt.alpha is 0"));
        assert!(error(|c| c.weight = 0).contains("external.ndt.weight"));
        assert!(error(|c| c.active_for = Duration::from_us(500)).contains("above max_pause, 500us"));
        assert!(error(|c| c.forget_after = Duration::from_us(500)).contains("above active_for, 1ms"));
    }
}
