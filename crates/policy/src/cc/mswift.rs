//! MSwift (arXiv 2509.07907), Swift for packets that take many paths, **as understood**. The rules come from a
//! second-hand description of a port by others, not from the paper's text. Compare trends with it, not exact values.
//!
//! If packets are sprayed over paths, a single late one indicates its path, not the network. The delay given to Swift
//! is therefore the median over half a window, and the window shrinks only after several acknowledgements in a row
//! whose median is above the target. Otherwise the rules are those of Swift, without marks.
//!
//! Our choices, because the description does not specify them: a median below the target ends the row, a decrease
//! does not, and Swift's rule of one decrease per round trip holds as well.

use alloc::boxed::Box;

use pathweave_units::{Duration, Time};

use super::median::Median;
use super::{CongestionControl, Swift, SwiftConfig};
use crate::error::{above, within};
use crate::fluid::{ControlModel, HasControlModel};
use crate::{Adapt, ConfigError, Feedback, FeedbackKind, PolicyCx, PolicyEnv};

/// Parameters of [`Mswift`].
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct MswiftConfig {
    /// Parameters of Swift.
    pub swift: SwiftConfig,
    /// Number of windows of packets over whose delays the median is taken, at least one packet and at most 1,024.
    /// Default 0.5.
    pub median_windows: f64,
    /// Acknowledgements in a row above the target before the window shrinks. Default 5; with 1 it shrinks at once.
    pub patience: u32,
}

impl Default for MswiftConfig {
    fn default() -> Self {
        MswiftConfig { swift: SwiftConfig::default(), median_windows: 0.5, patience: 5 }
    }
}

impl HasControlModel for MswiftConfig {
    fn control(&self) -> ControlModel {
        self.swift.control()
    }
}

impl Adapt for MswiftConfig {
    crate::forwards!({ swift } adapt_to_fabric, base_path, host_delay, adapt_to_host);
}

impl MswiftConfig {
    /// Returns an error that names the first invalid field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.swift.validate().map_err(|error| error.within("swift"))?;
        within("median_windows", self.median_windows, above(0.0, 1e3), "")?;
        within("patience", self.patience, 1.., "")
    }
}

/// State of one queue pair.
#[derive(Clone, Debug)]
pub struct Mswift {
    swift: Swift,
    // Boxed, because most queue pairs have another congestion control.
    median: Box<Median>,
    /// Acknowledgements in a row above the target.
    row: u32,
    median_windows: f64,
    patience: u32,
}

impl Mswift {
    /// Creates the state of one queue pair, with a window of one bandwidth-delay product.
    pub fn new(config: &MswiftConfig, env: &PolicyEnv) -> Self {
        Mswift {
            swift: Swift::new(&config.swift, env),
            median: Box::default(),
            row: 0,
            median_windows: config.median_windows,
            patience: config.patience,
        }
    }

    /// Returns the delay that Swift receives for an acknowledgement with this round-trip time; `None` if Swift
    /// receives nothing.
    fn told(&mut self, rtt: Duration) -> Option<Duration> {
        let median = self.median.next(rtt, (self.median_windows * self.swift.window_packets()) as usize);
        if self.swift.is_over(median) {
            self.row = self.row.saturating_add(1);
            (self.row >= self.patience).then_some(median)
        } else {
            self.row = 0;
            Some(median)
        }
    }
}

impl CongestionControl for Mswift {
    crate::forwards!({ swift } permit, on_sent_half, rate, window);
    crate::ignores!(on_open, on_close, on_timer);
    #[inline]
    fn on_feedback(&mut self, now: Time, feedback: &Feedback, cx: &mut PolicyCx<'_>) {
        let is_sample = matches!(feedback.kind, FeedbackKind::Ack { timed: true, .. });
        let rtt = if is_sample { self.told(feedback.rtt) } else { Some(feedback.rtt) };
        if let Some(rtt) = rtt {
            self.swift.on_feedback(now, &Feedback { rtt, ..*feedback }, cx);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MeasuredSection;
    use crate::testing::{ACK, ENV, Host, Scenario, random_operations};

    /// Returns a queue pair with packets of 100 ns, 100 of which are a BDP of 10 us. Windows from 100 packets on have
    /// a target of 19 us. The median is over the fraction `of` of the first window of 101 packets.
    fn mswift(of: f64) -> Mswift {
        let env =
            PolicyEnv { measured: MeasuredSection { base_rtt: Duration::from_us(10), links: 2 }, ..ENV };
        let swift = SwiftConfig {
            queue_target: Some(Duration::from_us(9)),
            scaling_range: Some(Duration::from_us(36)),
            ..SwiftConfig::default()
        };
        Mswift::new(&MswiftConfig { swift, median_windows: of / 101.0, ..MswiftConfig::default() }, &env)
    }
    fn ack(mswift: &mut Mswift, at_us: u64, rtt_us: u64) -> f64 {
        let feedback = Feedback {
            kind: FeedbackKind::Ack { timed: true, marked: true },
            rtt: Duration::from_us(rtt_us),
            ..ACK
        };
        mswift.on_feedback(Time::from_us(at_us), &feedback, &mut Host::new(1).cx());
        mswift.swift.window_packets()
    }

    #[test]
    fn four_in_a_row_over_the_target_are_nothing_and_the_fifth_is_swifts_decrease() {
        let mut mswift = mswift(1.5);
        for n in 0..4 {
            assert_eq!(ack(&mut mswift, 100 + n, 25), 101.0);
        }
        // A decrease by 0.8 x 6 / 25.
        let cut = ack(&mut mswift, 104, 25);
        assert!((cut - 101.0 * (1.0 - 0.8 * 6.0 / 25.0)).abs() < 1e-9, "{cut}");
        // One decrease per round trip, which took 25 us.
        assert_eq!(ack(&mut mswift, 128, 25), cut);
        assert!(ack(&mut mswift, 129, 25) < cut);
    }

    #[test]
    fn one_below_begins_the_row_anew() {
        let mut mswift = mswift(1.5);
        for n in 0..20 {
            assert!(ack(&mut mswift, 100 + n, if n % 5 == 4 { 18 } else { 25 }) >= 101.0);
        }
    }

    #[test]
    fn late_ones_of_a_few_paths_do_not_count() {
        let mut mswift = mswift(9.5);
        // Every third packet is far above the target, but no median of nine is.
        for n in 0..90 {
            let before = mswift.swift.window_packets();
            let after = ack(&mut mswift, 100 + n, if n % 3 == 2 { 100 } else { 12 });
            assert!(after > before, "{n}");
        }
    }

    #[test]
    fn errors_name_the_field() {
        let usual = MswiftConfig::default;
        let wrong = |config: MswiftConfig| config.validate().expect_err("must be refused").field;
        assert_eq!(wrong(MswiftConfig { median_windows: 0.0, ..usual() }), "median_windows");
        assert_eq!(wrong(MswiftConfig { patience: 0, ..usual() }), "patience");
        let swift = SwiftConfig { increase: 0.0, ..SwiftConfig::default() };
        assert_eq!(wrong(MswiftConfig { swift, ..usual() }), "swift.increase");
        assert_eq!(usual().validate(), Ok(()));
    }

    #[test]
    fn random_operations_break_no_invariant() {
        use crate::picker::PickerConfig;
        for seed in 0..20 {
            random_operations(seed, 2_000, &Scenario::steady().env, |env, rng| crate::SplitPolicy {
                cc: Mswift::new(&MswiftConfig::default(), env),
                picker: PickerConfig::Rps.build(env, rng),
            });
        }
    }
}
