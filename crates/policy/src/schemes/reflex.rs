//! Delay-based congestion control by feedback of the site's edge.

use pathweave_units::Duration;

use super::{SchemeInfo, common};
use crate::cc::{CcConfig, IncreaseOver, SwiftConfig, TimelyConfig, TimelyPreset};
use crate::picker::PickerConfig;
use crate::reflex::{E2eMode, ReflexConfig};
use crate::{PolicyConfig, Scheme};

const SOURCE: &str =
    "Reflex (cross-datacenter RDMA), section III-C; echoes set the delay, acknowledgements clock (ours)";

pub(super) const REFLEX_TIMELY: SchemeInfo = SchemeInfo {
    name: "reflex-timely",
    aliases: &[],
    help: "TIMELY; flows to another site get feedback from their own edge instead of the far end",
    source: "Reflex (cross-datacenter RDMA), section III-C; thresholds by the idle delay to the edge (ours)",
    make: || fed(CcConfig::Timely(TimelyConfig::default()), None, None),
};

pub(super) const REFLEX_TIMELY_PUBLISHED: SchemeInfo = SchemeInfo {
    name: "reflex-timely-published",
    aliases: &[],
    help: "reflex-timely with TIMELY's own thresholds of 50 us and 500 us for the delay of the edge",
    source: SOURCE,
    make: || {
        let timely = CcConfig::Timely(TimelyConfig::default());
        fed(timely.clone(), Some(timely), Some(Duration::from_us(10)))
    },
};

pub(super) const REFLEX_TIMELY_SCALED: SchemeInfo = SchemeInfo {
    name: "reflex-timely-scaled",
    aliases: &[],
    help: "reflex-timely with thresholds of 10 us and 100 us for the delay of the edge",
    source: SOURCE,
    make: || {
        let near = CcConfig::Timely(TimelyConfig::preset(TimelyPreset::Near));
        fed(CcConfig::Timely(TimelyConfig::default()), Some(near), Some(Duration::from_us(10)))
    },
};

pub(super) const REFLEX_SWIFT: SchemeInfo = SchemeInfo {
    name: "reflex-swift",
    aliases: &[],
    help: "Swift; flows to another site get feedback from their own edge instead of the far end",
    source: "Reflex (cross-datacenter RDMA), section III-C; target by the idle delay to the edge (ours)",
    make: || fed(CcConfig::Swift(SwiftConfig::default()), None, None),
};

pub(super) const REFLEX_SWIFT_PUBLISHED: SchemeInfo = SchemeInfo {
    name: "reflex-swift-published",
    aliases: &[],
    help: "reflex-swift with targets of 200 ns and 1 us a node",
    source: SOURCE,
    make: || {
        let near = SwiftConfig { increase_over: IncreaseOver::Measured, ..common::swift_by_hops() };
        let hold_for = Some(Duration::from_us(6));
        fed(CcConfig::Swift(common::swift_by_hops()), Some(CcConfig::Swift(near)), hold_for)
    },
};

fn fed(cc: CcConfig, edge_cc: Option<CcConfig>, hold_for: Option<Duration>) -> Scheme {
    let config = ReflexConfig {
        cc: cc.clone(),
        edge_cc,
        picker: PickerConfig::Ecmp,
        e2e_mode: E2eMode::Hold,
        hold_for,
    };
    Scheme { policy: PolicyConfig::Reflex(config), ..common::by_delay(cc) }
}
