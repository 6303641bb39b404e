//! ECMP: the behaviour of today's RoCEv2 NICs.

use super::{SchemeInfo, common};
use crate::Recovery;
use crate::picker::PickerConfig;

pub(super) const ECMP: SchemeInfo = SchemeInfo {
    name: "ecmp",
    aliases: &[],
    help: "One path a queue pair by ECMP hash, DCQCN, go-back-N: RoCEv2 as deployed",
    source: "RoCEv2 (IBTA annex A17); DCQCN (SIGCOMM 2015)",
    make: || common::dcqcn(PickerConfig::Ecmp, Recovery::GoBackN),
};
