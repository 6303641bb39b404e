//! ECMP with selective repeat.

use super::{SchemeInfo, common};
use crate::picker::PickerConfig;

pub(super) const ECMP_SR: SchemeInfo = SchemeInfo {
    name: "ecmp-sr",
    aliases: &[],
    help: "As ecmp with selective repeat in place of go-back-N",
    source: "IRN (SIGCOMM 2018) for the recovery, without its window",
    make: || common::dcqcn(PickerConfig::Ecmp, common::ORDERED),
};
