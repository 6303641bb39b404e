//! Delay-based congestion control that the edge of the site feeds.

use pathweave_units::Duration;

use super::{SchemeInfo, common};
use crate::cc::{CcConfig, IncreaseOver, SwiftConfig, TimelyConfig, TimelyPreset};
use crate::picker::PickerConfig;
use crate::reflex::{E2eMode, ReflexConfig};
use crate::{PolicyConfig, Scheme};

const SOURCE: &str =
    "Reflex (cross-datacenter RDMA), section III-C; acknowledgements clock what echoes told (ours)";

pub(super) const REFLEX_TIMELY: SchemeInfo = SchemeInfo {
    name: "reflex-timely",
    aliases: &[],
    help: "TIMELY; flows to another site hear the edge of their own instead of the far end",
    source: SOURCE,
    make: || fed(CcConfig::Timely(TimelyConfig::default()), None, 10),
};

pub(super) const REFLEX_TIMELY_SCALED: SchemeInfo = SchemeInfo {
    name: "reflex-timely-scaled",
    aliases: &[],
    help: "reflex-timely with thresholds of 10 us and 100 us for what the edge tells",
    source: SOURCE,
    make: || {
        let near = CcConfig::Timely(TimelyConfig::preset(TimelyPreset::Near));
        fed(CcConfig::Timely(TimelyConfig::default()), Some(near), 10)
    },
};

pub(super) const REFLEX_SWIFT: SchemeInfo = SchemeInfo {
    name: "reflex-swift",
    aliases: &[],
    help: "Swift; flows to another site hear the edge of their own instead of the far end",
    source: SOURCE,
    make: || {
        let near = SwiftConfig { increase_over: IncreaseOver::Measured, ..common::swift_by_hops() };
        fed(CcConfig::Swift(common::swift_by_hops()), Some(CcConfig::Swift(near)), 6)
    },
};

fn fed(cc: CcConfig, edge_cc: Option<CcConfig>, hold_us: u64) -> Scheme {
    let hold_for = Duration::from_us(hold_us);
    let config = ReflexConfig {
        cc: cc.clone(),
        edge_cc,
        picker: PickerConfig::Ecmp,
        e2e_mode: E2eMode::Hold,
        hold_for,
    };
    Scheme { policy: PolicyConfig::Reflex(config), ..common::by_delay(cc) }
}
