//! LAPS as printed: algorithms 1 and 2, except the inequality of lines 6 and 10, with which the rate would never
//! change. Both rates start at the most that the rate limiter of the NIC allows (section III-F), so they never exceed
//! the line rate. Frozen: the default may change, this configuration does not.

use pathweave_units::{Duration, Rate};

use super::config::{AlphaUnit, Arithmetic, LapsConfig, LapsVariant, Limit, Margin, RateCut, WindowOf};
use super::law::{AfterProbe, HoldOff, Law, Probing, Unmeasured};
use crate::ControlClass;

impl LapsConfig {
    /// Returns algorithms 1 and 2, except the inequality that would keep the rate constant for ever.
    pub fn published() -> Self {
        LapsConfig {
            variant: LapsVariant::Published,
            alpha: 1.0,
            alpha_unit: AlphaUnit::Threshold,
            margin: Margin::PerSwitch,
            margin_packets: 5.0,
            host_delay: Duration::ZERO,
            limit: Limit::RateAndWindow,
            window_of: WindowOf::Paths,
            fabric_threshold: Duration::ZERO,
            decrease: RateCut::Half,
            arithmetic: Arithmetic::Float,
        }
    }
}

/// Rules of the paper.
pub(super) const LAW: Law = Law {
    probing: Probing::All,
    after_probe: AfterProbe::Doubled,
    probes: ControlClass::AsUnmarkedData,
    stages: 5,
    most_lines: 1,
    floor: 1e-6,
    least_increase: Rate::ZERO,
    hold_off: HoldOff::Fastest,
    unmeasured: Unmeasured::Counted,
};

/// The rules with the assignments of algorithm 2 alone, which bound no rate. The expected rate doubles with every
/// quiet period, and later halvings have no effect.
pub(super) const UNBOUNDED: Law = Law { most_lines: 1 << 20, ..LAW };
