//! Delay-based congestion control on one path: Swift.

use super::{SchemeInfo, common};
use crate::cc::CcConfig;

pub(super) const SWIFT: SchemeInfo = SchemeInfo {
    name: "swift",
    aliases: &[],
    help: "One path a queue pair, Swift's delay target of 200 ns and 1 us a node, go-back-N",
    source: "Swift (SIGCOMM 2020); target as in Reflex, section II-C; scaling range as htsim's, five bases",
    make: || common::by_delay(CcConfig::Swift(common::swift_by_hops())),
};
