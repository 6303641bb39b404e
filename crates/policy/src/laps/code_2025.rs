//! LAPS as in the authors' snapshot of January 2025. Frozen: the default may change, this configuration does not.

use pathweave_units::{Duration, Rate};

use super::config::{AlphaUnit, Arithmetic, LapsConfig, LapsVariant, Limit, Margin, RateCut, WindowOf};
use super::law::{AfterProbe, HoldOff, Law, Probing, Unmeasured};
use crate::ControlClass;

impl LapsConfig {
    /// Returns the behaviour of the authors' snapshot of January 2025: only a window, a smaller margin, probes that
    /// overtake data.
    pub fn code_2025() -> Self {
        LapsConfig {
            variant: LapsVariant::Code2025,
            alpha: 1.0,
            alpha_unit: AlphaUnit::Threshold,
            margin: Margin::PerLink,
            margin_packets: 1.0,
            host_delay: Duration::ZERO,
            limit: Limit::Window,
            window_of: WindowOf::Paths,
            fabric_threshold: Duration::ZERO,
            decrease: RateCut::Half,
            arithmetic: Arithmetic::Float,
        }
    }
}

/// Rules of the snapshot. Stages are counted after they are compared, so the seventh increase doubles and not the
/// sixth. Probes overtake data, and thus measure the idle path.
pub(super) const LAW: Law = Law {
    probing: Probing::One,
    after_probe: AfterProbe::Kept,
    probes: ControlClass::AsAcknowledgement,
    stages: 6,
    most_lines: 1,
    floor: 0.01,
    least_increase: Rate::from_gbps(1),
    hold_off: HoldOff::Slowest,
    unmeasured: Unmeasured::Ignored,
};
