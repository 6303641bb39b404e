//! Bytes that packets carry so that switches know the way their source has chosen, and the ports of answers to them.
//!
//! The header is put on below the transport, so what transport and policies count of a packet is without
//! it; links, queues and ideal times are with it.

use std::sync::Arc;

use pathweave_topo::{PathSets, Topology};
use pathweave_transport::Transmit;
use pathweave_units::HostId;
use pathweave_wire::{Framing, RouteForm, Segment};

/// The header of every path.
#[derive(Debug)]
pub(crate) struct RouteHeaders {
    sets: Arc<PathSets>,
    framing: Framing,
    /// None: packets carry no more than without.
    form: Option<RouteForm>,
    /// Entries, in the order of the paths' numbers; none without a form.
    entries: Box<[u8]>,
}

/// The header of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteHeader {
    form: RouteForm,
    entries: u8,
}

impl RouteHeader {
    /// Bytes a segment takes on a link with it.
    pub(crate) fn wire_bytes(self, framing: Framing, segment: &Segment) -> u32 {
        framing.wire_bytes_routed(segment, self.form, usize::from(self.entries))
    }
    /// What it adds to a packet that is no shorter than Ethernet's smallest frame.
    pub(crate) fn len(self) -> u32 {
        if self.entries == 0 { 0 } else { self.form.header_len(usize::from(self.entries)) as u32 }
    }
}

impl RouteHeaders {
    /// `None` where packets carry nothing and answers leave by the only port.
    pub(crate) fn new(
        topology: &Topology,
        sets: &Arc<PathSets>,
        framing: Framing,
        form: Option<RouteForm>,
    ) -> Option<Self> {
        if form.is_none() && sets.edges().iter().all(|switches| switches.len() == 1) {
            return None;
        }
        let entries = match form {
            None => Box::default(),
            Some(RouteForm::Hops) => sets.switches().map(|switches| switches as u8).collect(),
            Some(RouteForm::Anchors | RouteForm::Segments) => sets.anchors(topology).into_boxed_slice(),
        };
        Some(RouteHeaders { sets: Arc::clone(sets), framing, form, entries })
    }

    /// The header of a path; `None` where the pair has no such path, or paths have no headers.
    pub(crate) fn of(&self, src: HostId, dst: HostId, path: u16) -> Option<RouteHeader> {
        let form = self.form?;
        let number = self.sets.number(src, dst, path)?;
        Some(RouteHeader { form, entries: self.entries[number] })
    }

    /// The NIC port of `from` by which an answer leaves: that at which the path of what it answers arrives.
    pub(crate) fn answer_port(&self, from: HostId, answer: &Transmit) -> u8 {
        self.sets.arrival_port(answer.to, from, answer.segment.path.0).unwrap_or(answer.port)
    }

    /// Bytes on a link of what `from` sends: on its path, or back over that of what it answers.
    pub(crate) fn wire_bytes(&self, from: HostId, packet: &Transmit) -> u32 {
        let (src, dst) = if packet.is_answer() { (packet.to, from) } else { (from, packet.to) };
        let header = self.of(src, dst, packet.segment.path.0);
        header.map_or(packet.wire_bytes, |header| header.wire_bytes(self.framing, &packet.segment))
    }
}
