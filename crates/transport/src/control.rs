//! Queue of control packets to send.

use alloc::collections::VecDeque;

use pathweave_units::HostId;
use pathweave_wire::Segment;

/// Largest number of waiting control packets, over all queue pairs. One packet that arrives causes a handful.
const MOST: usize = 1 << 16;

/// Control packets that wait to leave, oldest first.
#[derive(Debug, Default)]
pub(crate) struct ControlQueue(VecDeque<(HostId, Segment)>);

impl ControlQueue {
    /// Queues a packet. If the queue is full, the packet is dropped, as the network may drop any: arriving packets
    /// must not cost unbounded memory.
    #[inline]
    pub(crate) fn push(&mut self, to: HostId, segment: Segment) {
        if self.0.len() < MOST {
            self.0.push_back((to, segment));
        }
    }

    /// Returns the next packet.
    #[inline(always)]
    pub(crate) fn first(&self) -> Option<&(HostId, Segment)> {
        self.0.front()
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes the next packet.
    #[inline(always)]
    pub(crate) fn drop_first(&mut self) {
        if self.0.len() > 1 {
            self.0.pop_front();
        } else {
            // Makes the ring reuse the same slot, instead of moving through memory that is no longer cached.
            self.0.clear();
        }
    }

    pub(crate) fn retain(&mut self, keep: impl Fn(HostId, &Segment) -> bool) {
        self.0.retain(|(to, segment)| keep(*to, segment));
    }
}
