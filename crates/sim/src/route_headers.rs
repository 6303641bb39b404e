//! Headers by which switches follow the path that the source has chosen, and the ports by which replies leave.
//!
//! The header is added below the transport. Transport and policies therefore count packets without it; links, queues
//! and ideal times include it.

use std::sync::Arc;

use pathweave_topo::{PathSets, Topology};
use pathweave_transport::Transmit;
use pathweave_units::HostId;
use pathweave_wire::{Framing, RouteForm, Segment};

/// Headers of all explicit paths.
#[derive(Debug)]
pub(crate) struct RouteHeaders {
    sets: Arc<PathSets>,
    framing: Framing,
    /// Form of the headers. `None`: packets carry no header.
    form: Option<RouteForm>,
    /// Number of entries of each path's header, ordered by path number. Empty without a form.
    entries: Box<[u8]>,
}

/// Header of one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteHeader {
    form: RouteForm,
    entries: u8,
}

impl RouteHeader {
    /// Returns the bytes that a segment occupies on a link with this header.
    pub(crate) fn wire_bytes(self, framing: Framing, segment: &Segment) -> u32 {
        framing.wire_bytes_routed(segment, self.form, usize::from(self.entries))
    }
    /// Returns the bytes that the header adds to a packet, unless padding to Ethernet's smallest frame hides them.
    pub(crate) fn len(self) -> u32 {
        if self.entries == 0 { 0 } else { self.form.header_len(usize::from(self.entries)) as u32 }
    }
}

impl RouteHeaders {
    /// Creates the headers of all paths. Returns `None` if packets carry no header and every host has a single port
    /// for its replies.
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

    /// Returns the header of a path, or `None` if the pair has no such path or paths have no headers.
    pub(crate) fn of(&self, src: HostId, dst: HostId, path: u16) -> Option<RouteHeader> {
        let form = self.form?;
        let number = self.sets.number(src, dst, path)?;
        Some(RouteHeader { form, entries: self.entries[number] })
    }

    /// Returns the NIC port of `from` by which a reply leaves: the port at which the path of the packet it answers
    /// arrives.
    pub(crate) fn answer_port(&self, from: HostId, answer: &Transmit) -> u8 {
        self.sets.arrival_port(answer.to, from, answer.segment.path.0).unwrap_or(answer.port)
    }

    /// Returns the bytes on the link of a packet that `from` sends: on its own path, or, for a reply, back over the
    /// path of the packet it answers.
    pub(crate) fn wire_bytes(&self, from: HostId, packet: &Transmit) -> u32 {
        let (src, dst) = if packet.is_answer() { (packet.to, from) } else { (from, packet.to) };
        let header = self.of(src, dst, packet.segment.path.0);
        header.map_or(packet.wire_bytes, |header| header.wire_bytes(self.framing, &packet.segment))
    }
}
