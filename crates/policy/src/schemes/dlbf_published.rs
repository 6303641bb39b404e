//! DLBF as printed.

use super::{SchemeInfo, dlbf};
use crate::cc::{CcConfig, DcqcnConfig, DcqcnPreset};
use crate::{CleanNotice, DlbfConfig, DlbfVariant, PolicyConfig, Recovery, Reordering, ReportPolicy, Scheme};

pub(super) const INFO: SchemeInfo = SchemeInfo {
    name: "dlbf-published",
    aliases: &[],
    help: "DLBF as printed: one delay gap for all packets, no limit on switches",
    source: "DLBF (BUPT et al.), algorithm 1, equations 1 to 3, section III-D",
    make: || Scheme {
        policy: PolicyConfig::Dlbf(DlbfConfig {
            cc: CcConfig::Dcqcn(DcqcnConfig::preset(DcqcnPreset::Astra)),
            variant: DlbfVariant::Published,
            ..DlbfConfig::default()
        }),
        reordering: Reordering::Reported(ReportPolicy {
            clean_notice: CleanNotice::Expose,
            ..ReportPolicy::default()
        }),
        recovery: Recovery::SelectiveRepeat {
            reorder_packets: 0,
            window_packets: None,
            sender_window_packets: None,
        },
        ..(dlbf::INFO.make)()
    },
};
