//! UGAL: adaptive routing in Dragonflies.

use super::{SchemeInfo, common};
use crate::Forwarding;

pub(super) const UGAL: SchemeInfo = SchemeInfo {
    name: "ugal",
    aliases: &[],
    help: "Switches send each packet over the shortest path or a detour; DCQCN, selective repeat in any order",
    source: "UGAL-L (Kim et al., ISCA 2008), for Dragonfly",
    make: || common::balanced(Forwarding::Ugal, common::UNORDERED),
};
