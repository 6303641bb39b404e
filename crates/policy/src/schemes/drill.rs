//! DRILL: switches send each packet to the shortest of a few queues.

use super::{SchemeInfo, common};
use crate::Forwarding;

pub(super) const DRILL: SchemeInfo = SchemeInfo {
    name: "drill",
    aliases: &[],
    help: "Switches send each packet to the shortest of a few queues; DCQCN, selective repeat in any order",
    source: "DRILL (SIGCOMM 2017); there hosts put packets in order, ours place them",
    make: || common::balanced(Forwarding::Drill, common::UNORDERED),
};
