//! Delay-based congestion control on one path: Swift.

use super::{SchemeInfo, common};
use crate::cc::{CcConfig, SwiftConfig};

pub(super) const SWIFT: SchemeInfo = SchemeInfo {
    name: "swift",
    aliases: &[],
    help: "One path a queue pair, Swift's delay target above the idle round trip, go-back-N",
    source: "Swift (SIGCOMM 2020); target and least rate by the line (ours)",
    make: || common::by_delay(CcConfig::Swift(SwiftConfig::default())),
};

pub(super) const SWIFT_PUBLISHED: SchemeInfo = SchemeInfo {
    name: "swift-published",
    aliases: &[],
    help: "swift with a delay target of 200 ns and 1 us a node, and no least rate",
    source: "Swift (SIGCOMM 2020); target as in Reflex, section II-C; scaling range as htsim's, five bases",
    make: || common::by_delay(CcConfig::Swift(common::swift_by_hops())),
};
