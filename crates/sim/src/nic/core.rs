//! Cores that handle the datagrams of a host, one for each queue pair.

use std::collections::{BTreeMap, VecDeque};

use pathweave_units::{HostId, QpNum};
use pathweave_wire::Segment;

/// A packet for a datagram queue pair.
#[derive(Clone, Copy, Debug, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub(crate) struct Datagram {
    pub(crate) from: HostId,
    pub(crate) segment: Segment,
    /// Marked Congestion Experienced.
    pub(crate) ce: bool,
}

/// Packets that wait for the core of their queue pair, and the one it handles.
#[derive(Debug, Default)]
pub(crate) struct Cores(BTreeMap<QpNum, VecDeque<Datagram>>);

impl Cores {
    /// A packet is in memory. True if its core has nothing else to do: then it begins.
    pub(crate) fn arrive(&mut self, datagram: Datagram) -> bool {
        let queue = self.0.entry(datagram.segment.dst_qp).or_default();
        queue.push_back(datagram);
        queue.len() == 1
    }

    /// The packet a core handles.
    pub(crate) fn current(&self, qp: QpNum) -> Option<&Datagram> {
        self.0.get(&qp)?.front()
    }

    /// A core is done with a packet.
    pub(crate) fn finish(&mut self, qp: QpNum) -> Option<Datagram> {
        self.0.get_mut(&qp)?.pop_front()
    }
}
