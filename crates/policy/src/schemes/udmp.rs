//! UDMP, repaired.

use super::{SchemeInfo, common};
use crate::{PolicyConfig, UdmpConfig};

pub(super) const UDMP: SchemeInfo = SchemeInfo {
    name: "udmp",
    aliases: &[],
    help: "Delay-driven rate and ACK-clocked paths without state per path, repaired",
    source: "UDMP (IEEE ToN 2026); repairs by pathweave: queue target, step, low round-trip times, spare paths, caps, restart",
    make: || common::clocked(PolicyConfig::Udmp(UdmpConfig::default())),
};
