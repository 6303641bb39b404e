//! Cores that handle the datagrams of a host, one for each queue pair.

use std::collections::{BTreeMap, VecDeque};

use pathweave_units::{HostId, QpNum};
use pathweave_wire::Segment;

/// Packet for a datagram queue pair.
#[derive(Clone, Copy, Debug, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub(crate) struct Datagram {
    pub(crate) from: HostId,
    pub(crate) segment: Segment,
    /// True if the packet is marked Congestion Experienced.
    pub(crate) ce: bool,
}

/// Queue of packets for each core, with the packet in service at the front.
#[derive(Debug, Default)]
pub(crate) struct Cores(BTreeMap<QpNum, VecDeque<Datagram>>);

impl Cores {
    /// Enqueues a packet that is in host memory. Returns true if its core was idle and can begin.
    pub(crate) fn arrive(&mut self, datagram: Datagram) -> bool {
        let queue = self.0.entry(datagram.segment.dst_qp).or_default();
        queue.push_back(datagram);
        queue.len() == 1
    }

    /// Returns the packet that a core handles at present.
    pub(crate) fn current(&self, qp: QpNum) -> Option<&Datagram> {
        self.0.get(&qp)?.front()
    }

    /// Removes and returns the packet that a core has finished.
    pub(crate) fn finish(&mut self, qp: QpNum) -> Option<Datagram> {
        self.0.get_mut(&qp)?.pop_front()
    }
}
