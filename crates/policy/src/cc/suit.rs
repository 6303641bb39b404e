//! What values that are given for fast hosts become on slow ones.

use pathweave_units::{Duration, Rate};

/// Of the line's rate, one in so many is the least to send at: HPCC's 1 Gb/s at 100 Gb/s.
const LEAST_SHARE: u64 = 100;

/// How much slower hosts are than those a preset is given for. What is at least as fast keeps the preset's values.
pub(super) struct Suit {
    line: Rate,
    given_for: Rate,
    factor: f64,
}

impl Suit {
    /// `line` and `round_trip` are those of the hosts, the delay of their software included; `given_for` the preset's.
    pub(super) fn new((line, round_trip): (Rate, Duration), given_for: (Rate, Duration)) -> Self {
        let by_line = given_for.0.as_bps() as f64 / line.as_bps().max(1) as f64;
        let by_round_trip = round_trip.as_ps() as f64 / given_for.1.as_ps() as f64;
        Suit { line, given_for: given_for.0, factor: by_line.max(by_round_trip).max(1.0) }
    }

    /// A clock or a delay: longer by what packets or round trips are slower, whichever is more.
    pub(super) fn span(&self, given: Duration) -> Option<Duration> {
        Some(given.scale(self.factor))
    }

    /// The line rate for which steps are given: absolute ones (0) are those of the preset's line where that is faster.
    pub(super) fn step_scale(&self, given: Rate) -> Option<Rate> {
        let absolute = given == Rate::ZERO && self.line < self.given_for;
        Some(if absolute { self.given_for } else { given })
    }

    /// The least rate.
    pub(super) fn least_rate(&self, given: Rate) -> Option<Rate> {
        Some(given.min(Rate::from_bps((self.line.as_bps() / LEAST_SHARE).max(1))))
    }
}
