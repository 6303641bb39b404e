//! Near-source feedback (Reflex, section III-C). The external switch of the sender's site measures the delay of data
//! from its host. While the delay is long, the switch answers some of the data in place of the receiver.

use pathweave_units::{Duration, Time};

use super::table::{FlowKey, FlowTable};
use crate::config_error::{ConfigError, out_of_range};

/// Near-source feedback.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NsfConfig {
    /// T_src_thresh: delay from the NIC to the WAN port above which data is hot. Absent: the idle delay plus six
    /// tenths of it or eight packets, whichever is more. On the fabric of Reflex that is 5.2 us (table I: 5 us).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<Duration>,
    /// T_interval: shortest time between answers to a flow. Absent: `threshold` (Reflex, table I: 5 us for TIMELY, as
    /// its threshold; 3 us for Swift).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Duration>,
    /// N_cool: number of answers to a flow after it has cooled down. Default 5 (Reflex, table I).
    pub cooling: u32,
    /// Events that `cooling` counts: answers or packets. Default "answers".
    pub cool_mode: CoolMode,
    /// Largest number of flows in the table, 1 to 16777216. Further flows get no answers. Default 65536.
    pub max_flows: u32,
    /// Time without a packet after which a flow is removed from the table, above 0. Default 10 ms.
    pub forget_after: Duration,
    /// Lead of the switch's clock over the clocks of the hosts. The delay from the host is measured with both clocks.
    /// Default 0.
    pub clock_ahead: Duration,
}

impl Default for NsfConfig {
    fn default() -> Self {
        NsfConfig {
            threshold: None,
            interval: None,
            cooling: 5,
            cool_mode: CoolMode::default(),
            max_flows: 65_536,
            forget_after: Duration::from_ms(10),
            clock_ahead: Duration::ZERO,
        }
    }
}

/// Events that cooling down counts.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum CoolMode {
    /// Answers, at the same intervals as before, so that the sender sees the delay fall.
    #[default]
    Answers,
    /// Packets, each of which is answered, as in the paper. At 100 Gb/s all leave within 0.4 us.
    Literal,
}

impl NsfConfig {
    /// Checks every field, and returns an error with the first one that is out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let spans = [
            ("external.nsf.threshold", self.threshold),
            ("external.nsf.forget_after", Some(self.forget_after)),
        ];
        for (field, span) in spans {
            if let Some(span) = span.filter(|span| *span == Duration::ZERO) {
                return Err(out_of_range(field, span, "above 0"));
            }
        }
        if self.max_flows == 0 || self.max_flows > 1 << 24 {
            return Err(out_of_range("external.nsf.max_flows", self.max_flows, "1 to 16777216"));
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FeedbackState {
    #[default]
    Silent,
    Active,
    Cooling,
}

/// State of a flow.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    heat: FeedbackState,
    answered: Time,
    /// Answers still to be sent while cooling.
    left: u32,
}

impl Flow {
    /// Handles a data packet that leaves for the WAN. Returns true if it is to be answered.
    fn on_data(&mut self, now: Time, hot: bool, interval: Duration, config: &NsfConfig) -> bool {
        let due = now.saturating_since(self.answered) >= interval;
        let answer = match (self.heat, hot) {
            (FeedbackState::Silent, false) => false,
            (FeedbackState::Silent, true) => {
                self.heat = FeedbackState::Active;
                true
            }
            (FeedbackState::Active | FeedbackState::Cooling, true) => {
                self.heat = FeedbackState::Active;
                due
            }
            (FeedbackState::Active, false) => {
                (self.heat, self.left) = (FeedbackState::Cooling, config.cooling);
                self.cool(due, config)
            }
            (FeedbackState::Cooling, false) => self.cool(due, config),
        };
        if answer {
            self.answered = now;
        }
        answer
    }

    fn cool(&mut self, due: bool, config: &NsfConfig) -> bool {
        let answer = self.left > 0 && (due || config.cool_mode == CoolMode::Literal);
        self.left -= u32::from(answer);
        if self.left == 0 {
            self.heat = FeedbackState::Silent;
        }
        answer
    }
}

/// Near-source feedback at one switch.
pub(crate) struct Nsf {
    config: NsfConfig,
    threshold: Duration,
    interval: Duration,
    flows: FlowTable<Flow>,
}

/// Counters of near-source feedback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub struct NsfStats {
    /// Data packets to other sites.
    pub data_packets: u64,
    /// Data packets with a delay above the threshold.
    pub hot_packets: u64,
    /// Answers sent.
    pub answers: u64,
    /// Answers that did not fit in the buffer.
    pub answers_lost: u64,
    /// Packets of flows for which the table had no room.
    pub untracked_packets: u64,
    /// Largest number of flows in the table.
    pub max_flows: u64,
}

impl Nsf {
    /// Creates the feedback of a switch. `queued` is the threshold if none is configured.
    pub(crate) fn new(config: &NsfConfig, queued: Duration) -> Self {
        let threshold = config.threshold.unwrap_or(queued);
        Nsf {
            flows: FlowTable::new(config.max_flows, config.forget_after),
            threshold,
            interval: config.interval.unwrap_or(threshold),
            config: config.clone(),
        }
    }

    /// Handles a data packet, sent by its host at `sent_at`, that leaves for the WAN. Returns true if it is to be
    /// answered.
    pub(crate) fn on_data(&mut self, now: Time, sent_at: Time, key: FlowKey, stats: &mut NsfStats) -> bool {
        stats.data_packets += 1;
        let took = now.saturating_since(sent_at) + self.config.clock_ahead;
        let hot = took > self.threshold;
        stats.hot_packets += u64::from(hot);
        while self.flows.deactivate_next(now, self.config.forget_after).is_some() {}
        let Some(touched) = self.flows.record(now, key, |_| true) else {
            stats.untracked_packets += 1;
            return false;
        };
        stats.max_flows = stats.max_flows.max(u64::from(self.flows.len()));
        let answer = self.flows.state(touched.at).on_data(now, hot, self.interval, &self.config);
        stats.answers += u64::from(answer);
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_units::HostId;

    /// Default threshold on the fabric of Reflex.
    const QUEUED: Duration = Duration::from_ps(5_203_200);

    /// The parameters of table I for TIMELY.
    fn printed() -> NsfConfig {
        let five = Some(Duration::from_us(5));
        NsfConfig { threshold: five, interval: five, ..NsfConfig::default() }
    }

    fn key() -> FlowKey {
        FlowKey { src: HostId(0), dst: HostId(16), flow: 7 }
    }

    /// Feeds packets `gap_ns` apart, with delays of `took_ns` nanoseconds. Returns true for each packet that was
    /// answered.
    fn answered(config: &NsfConfig, gap_ns: u64, took_ns: &[u64]) -> Vec<bool> {
        let (mut nsf, mut stats) = (Nsf::new(config, QUEUED), NsfStats::default());
        let times = (0..).map(|n| Time::from_us(100) + Duration::from_ns(gap_ns * n));
        let one =
            |(now, &took): (Time, &u64)| nsf.on_data(now, now - Duration::from_ns(took), key(), &mut stats);
        times.zip(took_ns).map(one).collect()
    }

    fn numbers(answered: &[bool]) -> Vec<usize> {
        (1..).zip(answered).filter(|(_, answered)| **answered).map(|(n, _)| n).collect()
    }

    #[test]
    fn three_hot_packets_and_five_answers_while_cooling() {
        let took = [4_000, 6_000, 6_000, 6_000, 4_000, 4_000, 4_000, 4_000, 4_000, 4_000, 4_000];
        let all = answered(&printed(), 5_000, &took);
        assert_eq!(numbers(&all), [2, 3, 4, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn answers_are_spaced() {
        let took = [6_000; 200];
        let all = answered(&printed(), 1_000, &took);
        for (start, window) in (0..200).flat_map(|s| (1..=200 - s).map(move |w| (s, w))) {
            let count = all[start..start + window].iter().filter(|&&answered| answered).count();
            assert!(count <= (window - 1) / 5 + 1, "{count} in {window} us");
        }
        assert_eq!(numbers(&all).len(), 40);
    }

    #[test]
    fn a_hot_packet_interrupts_cooling_and_arms_it_anew() {
        let config = printed();
        let mut flow = Flow::default();
        let at = |n: u64| Time::from_us(100 + 5 * n);
        for (n, hot) in [true, false, false].into_iter().enumerate() {
            flow.on_data(at(n as u64), hot, Duration::from_us(5), &config);
        }
        assert_eq!((flow.heat, flow.left), (FeedbackState::Cooling, 3));
        flow.on_data(at(3), true, Duration::from_us(5), &config);
        assert_eq!(flow.heat, FeedbackState::Active);
        // Too early for an answer: all five remain.
        flow.on_data(at(3) + Duration::from_ns(84), false, Duration::from_us(5), &config);
        assert_eq!((flow.heat, flow.left), (FeedbackState::Cooling, 5));
    }

    #[test]
    fn literally_five_cold_packets_are_answered_in_less_than_half_a_microsecond() {
        let config = NsfConfig { cool_mode: CoolMode::Literal, ..printed() };
        let took = [6_000, 4_000, 4_000, 4_000, 4_000, 4_000, 4_000];
        assert_eq!(numbers(&answered(&config, 84, &took)), [1, 2, 3, 4, 5, 6]);
        assert_eq!(numbers(&answered(&printed(), 84, &took)), [1]);
    }

    #[test]
    fn by_default_thresholds_are_those_of_the_fabric() {
        let nsf = Nsf::new(&NsfConfig::default(), QUEUED);
        assert_eq!((nsf.threshold, nsf.interval), (QUEUED, QUEUED));
        let printed = Nsf::new(&printed(), QUEUED);
        assert_eq!((printed.threshold, printed.interval), (Duration::from_us(5), Duration::from_us(5)));
    }

    #[test]
    fn the_threshold_itself_is_not_hot_and_who_is_cold_is_never_answered() {
        assert!(!answered(&printed(), 84, &[5_000; 1_000]).contains(&true));
        assert!(answered(&printed(), 84, &[5_001; 1])[0]);
        let ahead = NsfConfig { clock_ahead: Duration::from_ns(2), ..printed() };
        assert!(answered(&ahead, 84, &[4_999; 1])[0], "clocks that differ are taken for delay");
    }

    #[test]
    fn a_flow_beyond_the_table_is_counted_and_not_answered() {
        let config = NsfConfig { max_flows: 1, ..printed() };
        let (mut nsf, mut stats) = (Nsf::new(&config, QUEUED), NsfStats::default());
        let mut feed = |flow, at_us| {
            let now = Time::from_us(at_us);
            nsf.on_data(now, now - Duration::from_us(9), FlowKey { flow, ..key() }, &mut stats)
        };
        assert!(feed(1, 100));
        assert!(!feed(2, 101));
        assert!(feed(2, 20_000), "the first one has been forgotten");
        assert_eq!((stats.untracked_packets, stats.max_flows, stats.answers), (1, 1, 2));
    }
}
