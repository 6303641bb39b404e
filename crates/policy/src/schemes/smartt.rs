//! SMaRTT-REPS.

use super::{SchemeInfo, common};
use crate::cc::{CcConfig, SmarttConfig};
use crate::picker::{PickerConfig, RecycledConfig};
use crate::{PolicyConfig, SplitConfig};

pub(super) const INFO: SchemeInfo = SchemeInfo {
    name: "smartt",
    aliases: &["smartt-reps"],
    help: "SMaRTT: a window for delay and ECN that adapts to the delivered bytes, recycled paths; made for \
           trimming",
    source: "SMaRTT-REPS (arXiv 2404.01630), as understood from a second-hand law; paths as uet-htsim 40ccb05 recycles them",
    make: || {
        let cc = CcConfig::Smartt(SmarttConfig::default());
        let picker = PickerConfig::Recycled(RecycledConfig::default());
        common::clocked(PolicyConfig::Split(SplitConfig { cc, picker }))
    },
};
