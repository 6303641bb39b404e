//! Spraying by switches.

use super::{SchemeInfo, common};
use crate::Forwarding;

pub(super) const SWITCH_RPS: SchemeInfo = SchemeInfo {
    name: "switch-rps",
    aliases: &[],
    help: "Switches send each packet over a random path; DCQCN, selective repeat in any order",
    source: "Random packet spraying (Dixit et al., INFOCOM 2013), applied by switches",
    make: || common::balanced(Forwarding::Rps, common::UNORDERED),
};

pub(super) const SWITCH_WRPS: SchemeInfo = SchemeInfo {
    name: "switch-wrps",
    aliases: &[],
    help: "As switch-rps, with shares of the paths by their capacity",
    source: "Random packet spraying (INFOCOM 2013) with the weights of WCMP (EuroSys 2014)",
    make: || common::balanced(Forwarding::WeightedRps, common::UNORDERED),
};
