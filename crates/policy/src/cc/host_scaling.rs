//! Scaling of presets, which are given for fast hosts, to slower hosts.

use pathweave_units::{Duration, Rate};

/// Divisor of the line rate that gives the minimum rate: HPCC has 1 Gb/s at 100 Gb/s.
const LEAST_SHARE: u64 = 100;

/// Factor by which hosts are slower than those of a preset, at least 1.
pub(super) struct HostScaling {
    line: Rate,
    given_for: Rate,
    factor: f64,
}

impl HostScaling {
    /// `line` and `round_trip` are those of the hosts, the delay of their software included; `given_for` is those of
    /// the preset.
    pub(super) fn new((line, round_trip): (Rate, Duration), given_for: (Rate, Duration)) -> Self {
        let by_line = given_for.0.as_bps() as f64 / line.as_bps().max(1) as f64;
        let by_round_trip = round_trip.as_ps() as f64 / given_for.1.as_ps() as f64;
        HostScaling { line, given_for: given_for.0, factor: by_line.max(by_round_trip).max(1.0) }
    }

    /// Scales a timer or a delay by the ratio of packet times or of round-trip times, whichever is larger.
    pub(super) fn duration(&self, given: Duration) -> Option<Duration> {
        Some(given.scale(self.factor))
    }

    /// Returns the line rate for which steps are given. Absolute steps (0) are given for the preset's line rate if
    /// that is higher.
    pub(super) fn increase_scale(&self, given: Rate) -> Option<Rate> {
        let absolute = given == Rate::ZERO && self.line < self.given_for;
        Some(if absolute { self.given_for } else { given })
    }

    /// Returns the minimum rate.
    pub(super) fn min_rate(&self, given: Rate) -> Option<Rate> {
        Some(given.min(Rate::from_bps((self.line.as_bps() / LEAST_SHARE).max(1))))
    }
}
