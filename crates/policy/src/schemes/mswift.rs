//! MSwift.

use super::{SchemeInfo, common};
use crate::cc::{CcConfig, MswiftConfig};
use crate::picker::PickerConfig;
use crate::{PolicyConfig, SplitConfig};

pub(super) const INFO: SchemeInfo = SchemeInfo {
    name: "mswift",
    aliases: &[],
    help: "A random path for every packet, Swift on the median of half a window of delays, selective repeat",
    source: "MSwift (arXiv 2509.07907), as understood from second-hand descriptions; Swift's target as in swift",
    make: || {
        let cc = CcConfig::Mswift(MswiftConfig::default());
        common::clocked(PolicyConfig::Split(SplitConfig { cc, picker: PickerConfig::Rps }))
    },
};
