//! Acknowledgements that wait to leave: those of this turn, and some that are held for what goes the same way.

use pathweave_units::{HostId, Time};
use pathweave_wire::Segment;

use super::acks::join;

/// What is to be acknowledged, by connection's host number.
#[derive(Default)]
pub(super) struct HeldAcks {
    pub(super) list: Vec<(HostId, Segment)>,
    /// Since when some of them are held.
    pub(super) since: Option<Time>,
    /// A peer waits for one of them before it goes on.
    pub(super) awaited: bool,
}

impl HeldAcks {
    /// Another one, which says more than the last where that is possible.
    #[inline]
    pub(super) fn push(&mut self, to: HostId, segment: &Segment) {
        let last = self.list.last_mut();
        if !last.is_some_and(|(host, last)| *host == to && join(last, segment)) {
            self.list.push((to, *segment));
        }
    }

    /// None is left, so none is held and none is waited for.
    pub(super) fn settle(&mut self) {
        if self.list.is_empty() {
            (self.since, self.awaited) = (None, false);
        }
    }

    /// Drops all of them.
    pub(super) fn clear(&mut self) {
        self.list.clear();
        self.settle();
    }

    /// Drops those to a peer.
    pub(super) fn forget(&mut self, host: HostId) {
        self.list.retain(|(to, _)| *to != host);
    }
}
