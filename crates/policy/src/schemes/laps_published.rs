//! LAPS as printed. Frozen: the default (`laps`) may change, this scheme does not.

use pathweave_units::Duration;

use super::{SchemeInfo, common};
use crate::laps::LapsConfig;
use crate::{PathRto, PolicyConfig, Recovery, RingScope, Scheme};

pub(super) const INFO: SchemeInfo = SchemeInfo {
    name: "laps-published",
    aliases: &[],
    help: "LAPS as printed, with the inequality under which its rate changes",
    source: "LAPS (IEEE ToN 2026), algorithms 1 to 3",
    make: || scheme(LapsConfig::published(), RingScope::QueuePair, PathRto::Published),
};

/// Loss recovery by the order on each path, with the timers of the paper's simulator, and with as many paths as its
/// largest path set.
pub(super) fn scheme(policy: LapsConfig, scope: RingScope, rto: PathRto) -> Scheme {
    Scheme {
        recovery: Recovery::PathOrder {
            window_packets: None,
            scope,
            rto,
            rto_min: Duration::from_ms(8),
            rto_slack: Duration::from_us(10),
        },
        paths: 8,
        ..common::clocked(PolicyConfig::Laps(policy))
    }
}
