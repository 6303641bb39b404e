//! How long data waits on a new path so that it overtakes nothing that is on its way.
//!
//! A copy of what would arrive late leaves in place of new data and arrives when the new data would have: where the rate is
//! no higher than before, copying takes as long as waiting until the rest arrives by itself, and costs its bytes besides.

use alloc::vec::Vec;

use pathweave_units::{Duration, PathId, Time};

use crate::Sent;

/// How often in a round trip a queue pair that waits looks whether it still has to.
const LOOKS_A_ROUND_TRIP: u64 = 4;

/// How many times as long a queue may have become since the packet left that was acknowledged last. That was a queue and
/// a round trip before: in this time n flows that collide make a queue n times as long, where it was long enough to mark.
const MOST_GROWTH: u64 = 8;

/// The last packet on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Last {
    path: PathId,
    psn: u64,
    at: Time,
    /// When it counts as arrived or lost whatever is heard of it, once its path has been left.
    until: Time,
}

/// What is on its way: the last packet on the path in use, and on each that was left while it is in flight.
#[derive(Clone, Debug, Default)]
pub(super) struct Trail {
    newest: Option<Last>,
    behind: Vec<Last>,
}

impl Trail {
    /// A packet has left.
    pub(super) fn sent(&mut self, now: Time, sent: &Sent) {
        self.newest = Some(Last { path: sent.path, psn: sent.psn, at: now, until: Time::MAX });
    }
    /// The path in use, over which a packet and its acknowledgement took `rtt`, is left for another one.
    ///
    /// What was acknowledged has arrived; that is the only certain sign, for a queue may grow in steps. Without it a
    /// packet counts as arrived, or lost, after several times what the latest acknowledgement took.
    pub(super) fn leave_for(&mut self, new: PathId, rtt: Duration) {
        let last = self.newest.take();
        self.behind
            .extend(last.map(|last| Last { until: last.at.saturating_add(rtt * MOST_GROWTH), ..last }));
        // A path keeps order by itself.
        self.behind.retain(|last| last.path != new);
    }
    /// A packet has arrived.
    #[inline]
    pub(super) fn arrived(&mut self, psn: u64) {
        if !self.behind.is_empty() {
            self.behind.retain(|last| last.psn != psn);
        }
    }
    /// Whether nothing is waited for.
    pub(super) fn is_empty(&self) -> bool {
        self.behind.is_empty()
    }
    /// When a packet that is to leave now is to ask again; `None`: it overtakes nothing.
    pub(super) fn until(&mut self, now: Time, base_rtt: Duration) -> Option<Time> {
        self.behind.retain(|last| last.until > now);
        let until = self.behind.iter().map(|last| last.until).max()?;
        Some(until.min(now + base_rtt / LOOKS_A_ROUND_TRIP))
    }
}
