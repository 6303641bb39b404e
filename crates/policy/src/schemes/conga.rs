//! CONGA: switches send flowlets over the least congested paths.

use super::{SchemeInfo, common};
use crate::{Forwarding, Recovery};

pub(super) const CONGA: SchemeInfo = SchemeInfo {
    name: "conga",
    aliases: &[],
    help: "Leaf switches send each flowlet over the least congested path; DCQCN, go-back-N",
    source: "CONGA (SIGCOMM 2014); over DCQCN as in the evaluations of ConWeave (SIGCOMM 2023) and LAPS",
    make: || common::balanced(Forwarding::Conga, Recovery::GoBackN),
};
