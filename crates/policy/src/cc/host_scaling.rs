//! Presets are given for fast hosts; this scales their values to slower ones.

use pathweave_units::{Duration, Rate};

/// The least rate is the line's divided by this: HPCC's 1 Gb/s at 100 Gb/s.
const LEAST_SHARE: u64 = 100;

/// How much slower hosts are than those a preset is given for; a factor of 1 where they are not.
pub(super) struct HostScaling {
    line: Rate,
    given_for: Rate,
    factor: f64,
}

impl HostScaling {
    /// `line` and `round_trip` are those of the hosts, the delay of their software included; `given_for` the preset's.
    pub(super) fn new((line, round_trip): (Rate, Duration), given_for: (Rate, Duration)) -> Self {
        let by_line = given_for.0.as_bps() as f64 / line.as_bps().max(1) as f64;
        let by_round_trip = round_trip.as_ps() as f64 / given_for.1.as_ps() as f64;
        HostScaling { line, given_for: given_for.0, factor: by_line.max(by_round_trip).max(1.0) }
    }

    /// A timer or a delay: longer by as much as packets or round trips are slower, whichever is more.
    pub(super) fn duration(&self, given: Duration) -> Option<Duration> {
        Some(given.scale(self.factor))
    }

    /// The line rate for which steps are given: absolute ones (0) are those of the preset's line where that is faster.
    pub(super) fn increase_scale(&self, given: Rate) -> Option<Rate> {
        let absolute = given == Rate::ZERO && self.line < self.given_for;
        Some(if absolute { self.given_for } else { given })
    }

    /// The least rate.
    pub(super) fn min_rate(&self, given: Rate) -> Option<Rate> {
        Some(given.min(Rate::from_bps((self.line.as_bps() / LEAST_SHARE).max(1))))
    }
}
