//! How long a flow's receiver waits before it takes packets for lost, or asks for them again.

use pathweave_policy::Repair;
use pathweave_units::{Duration, Time};

use super::receive::Terms;

/// How often the time doubles for which a packet asked for is waited for before it is asked for again.
const MOST_DOUBLINGS: u32 = 6;

/// A missing PSN that was asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    /// When last.
    pub(super) at: Time,
    /// How often.
    pub(super) times: u32,
}

/// How the scan judges.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScanRule {
    pub(super) now: Time,
    pub(super) period: Duration,
    /// A packet asked for is not asked for again before this time is over.
    pub(super) hold: Duration,
    pub(super) repair: Repair,
    pub(super) terms: Terms,
}

impl ScanRule {
    /// The longest time that says anything: a pause may have lasted for days, as its sender had nothing to send.
    fn most(&self) -> Duration {
        self.period * (1 << MOST_DOUBLINGS)
    }

    /// How long silence lasts before it says that something may be lost, where a pause of this length is not unusual.
    pub(super) fn patience(&self, pause: Duration) -> Duration {
        self.period.max(self.most().min(pause.min(self.most()) * 2))
    }

    /// How long a path of so many brings nothing before it counts as empty, or dead: until its turn would have come twice.
    /// What is bounded is the pause, not the turns, or one of many paths that is merely slow would count as empty. To wait
    /// costs little, as the flow falls silent once all paths that live are empty.
    pub(super) fn two_turns(&self, pause: Duration, paths: usize) -> Duration {
        self.patience(pause) * paths as u64
    }

    /// How long what was asked for before is waited for. Its length is what any peer took of late, so it is bounded: one
    /// that answers late, time and again, must not keep others waiting.
    pub(super) fn hold_after(&self, asked: Asked, pause: Duration) -> Duration {
        if self.repair != Repair::Overtaken {
            return self.hold;
        }
        // The answer may be in the same queue, which copies make longer.
        self.patience(pause).max(self.hold.min(self.most())) * (1 << (asked.times - 1).min(MOST_DOUBLINGS))
    }
}
