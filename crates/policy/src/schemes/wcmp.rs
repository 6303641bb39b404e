//! WCMP: ECMP with weights.

use super::{SchemeInfo, common};
use crate::{Forwarding, Recovery};

pub(super) const WCMP: SchemeInfo = SchemeInfo {
    name: "wcmp",
    aliases: &[],
    help: "One path a queue pair by a hash weighted by capacity, DCQCN, go-back-N",
    source: "WCMP (EuroSys 2014)",
    make: || common::balanced(Forwarding::Wcmp, Recovery::GoBackN),
};
