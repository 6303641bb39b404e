//! LAPS, repaired.

use pathweave_units::Duration;

use super::{SchemeInfo, common};
use crate::laps::{LapsConfig, Limit};
use crate::{AckPolicy, PolicyConfig, Ports, Scheme};

pub(super) const LAPS: SchemeInfo = SchemeInfo {
    name: "laps",
    aliases: &[],
    help: "A softmax over one-way delays of paths, losses found by time, repaired",
    source: "LAPS (IEEE ToN 2026); repairs by pathweave: a window alone where switches pause, capped rates, at most one probe a packet, losses found by a learned round-trip time in place of the order on each path",
    make: || scheme(LapsConfig::default()),
};

pub(super) const LAPS_TCP: SchemeInfo = SchemeInfo {
    name: "laps-tcp",
    aliases: &[],
    help: "LAPS over TCP: an acknowledgement for two packets, losses found by SACK or by timeout",
    source: "LAPS (IEEE ToN 2026), section IV-A: TCP with SACK (RFC 5681, RFC 6675)",
    make: tcp,
};

/// Not every packet has an acknowledgement of its own, so the order on single paths is unknown. A packet counts as
/// lost once more packets have been acknowledged after it than paths of unequal length explain
/// ([`common::BY_COUNT`]).
fn tcp() -> Scheme {
    let policy = LapsConfig { limit: Limit::RateAndWindow, ..LapsConfig::default() };
    Scheme {
        recovery: common::BY_COUNT,
        acks: AckPolicy::by_packets(2, Duration::from_us(10)),
        ..scheme(policy)
    }
}

/// Paths of a queue pair, each with an entry in a table of the host: the number of paths between two hosts of a fat
/// tree of 1,024 hosts. If the source has no routes of its own, they are source ports.
const PATHS: u16 = 64;

pub(super) fn scheme(policy: LapsConfig) -> Scheme {
    Scheme {
        recovery: common::UNORDERED,
        paths: PATHS,
        ports: Ports::Distinct,
        ..common::clocked(PolicyConfig::Laps(policy))
    }
}
