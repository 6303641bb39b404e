//! Control packets that wait to leave.

use alloc::collections::VecDeque;

use pathweave_units::HostId;
use pathweave_wire::Segment;

/// Most that wait, of all queue pairs. One packet that arrives makes a handful.
const MOST: usize = 1 << 16;

/// Control packets that wait to leave, oldest first.
#[derive(Debug, Default)]
pub(crate) struct ControlQueue(VecDeque<(HostId, Segment)>);

impl ControlQueue {
    /// Queues a packet. Where too many wait to be taken out it is lost, as any may be on its way: what arrives must not cost
    /// memory without end.
    #[inline]
    pub(crate) fn push(&mut self, to: HostId, segment: Segment) {
        if self.0.len() < MOST {
            self.0.push_back((to, segment));
        }
    }

    /// The next one.
    #[inline(always)]
    pub(crate) fn first(&self) -> Option<&(HostId, Segment)> {
        self.0.front()
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next one has left.
    #[inline(always)]
    pub(crate) fn drop_first(&mut self) {
        if self.0.len() > 1 {
            self.0.pop_front();
        } else {
            // So that the next one is put in the same place, not round the ring through memory long unused.
            self.0.clear();
        }
    }

    pub(crate) fn retain(&mut self, keep: impl Fn(HostId, &Segment) -> bool) {
        self.0.retain(|(to, segment)| keep(*to, segment));
    }
}
