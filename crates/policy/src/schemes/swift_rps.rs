//! Delay-based congestion control over random spraying.

use super::{SchemeInfo, common};
use crate::cc::{CcConfig, SwiftConfig};
use crate::picker::PickerConfig;
use crate::{PolicyConfig, SplitConfig};

pub(super) const SWIFT_RPS: SchemeInfo = SchemeInfo {
    name: "swift-rps",
    aliases: &[],
    help: "A random path for every packet, Swift's delay target, selective repeat",
    source: "Swift (SIGCOMM 2020); spraying as in rps",
    make: || {
        let cc = CcConfig::Swift(SwiftConfig::default());
        common::clocked(PolicyConfig::Split(SplitConfig { cc, picker: PickerConfig::Rps }))
    },
};
