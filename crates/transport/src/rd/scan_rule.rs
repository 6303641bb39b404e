//! Times after which a flow's receiver takes packets for lost, or requests them again.

use pathweave_policy::Repair;
use pathweave_units::{Duration, Time};

use super::receive::Terms;

/// Largest number of doublings of the interval between requests for one packet.
const MOST_DOUBLINGS: u32 = 6;

/// Requests for a missing PSN.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    /// Time of the latest request.
    pub(super) at: Time,
    /// Number of requests.
    pub(super) times: u32,
}

/// Parameters of a scan.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScanRule {
    pub(super) now: Time,
    pub(super) period: Duration,
    /// Minimum time between two requests for one packet.
    pub(super) hold: Duration,
    pub(super) repair: Repair,
    pub(super) terms: Terms,
}

impl ScanRule {
    /// Longest pause that counts: a real one may have lasted for days, because its sender had nothing to send.
    fn most(&self) -> Duration {
        self.period * (1 << MOST_DOUBLINGS)
    }

    /// Duration of silence after which packets may be lost, if pauses of this length are usual.
    pub(super) fn patience(&self, pause: Duration) -> Duration {
        self.period.max(self.most().min(pause.min(self.most()) * 2))
    }

    /// Time without an arrival after which one of `paths` paths counts as empty, or dead: the time in which its turn
    /// would have come twice. Only the pause is bounded, not the number of paths; otherwise a merely slow path of
    /// many would count as empty. Waiting costs little, because the flow falls silent once all live paths are empty.
    pub(super) fn two_turns(&self, pause: Duration, paths: usize) -> Duration {
        self.patience(pause) * paths as u64
    }

    /// Time to wait for a packet that was requested before. It follows the recent round trips of all peers and is
    /// bounded: a peer that always answers late must not delay others.
    pub(super) fn hold_after(&self, asked: Asked, pause: Duration) -> Duration {
        if self.repair != Repair::Overtaken {
            return self.hold;
        }
        // The answer may be in the same queue, which copies make longer.
        self.patience(pause).max(self.hold.min(self.most())) * (1 << (asked.times - 1).min(MOST_DOUBLINGS))
    }
}
