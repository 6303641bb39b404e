//! Ultra Ethernet with both of its congestion controls.

use super::{SchemeInfo, uet_rccc};
use crate::cc::{CcConfig, LastHopTrims, NsccConfig};
use crate::{CreditConfig, Scheme};

pub(super) const INFO: SchemeInfo = SchemeInfo {
    name: "uet",
    aliases: &["uet-both"],
    help: "Ultra Ethernet's NSCC and RCCC together: a sender needs room in its window and credit of the receiver; made for trimming",
    source: "Ultra Ethernet 1.0 as uet-htsim 40ccb05 has it; losses without a trim are found by time",
    make: scheme,
};

fn scheme() -> Scheme {
    let nscc = NsccConfig { last_hop_trims: LastHopTrims::Spare, ..NsccConfig::default() };
    uet_rccc::with(CcConfig::Nscc(nscc), CreditConfig::rccc())
}
