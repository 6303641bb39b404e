//! From the transport to the batches.

use pathweave_transport::{Gate, Transmit, Transport};
use pathweave_units::{HostId, PathId};
use pathweave_wire::{DatagramLayout, Ecn, emit_datagram_header};

use super::engine::Core;
use super::remote::DATAGRAMS;
use crate::backend::Backend;
use crate::engine::Left;
use crate::engine::outbound::{Ends, Target};
use crate::secure::Protection;
use crate::sum;

/// Packets of a turn; arrivals are looked at in between.
const PACKETS_A_TURN: usize = 256;
/// Packets between two looks at the clock: those of a batch leave at one time anyway.
const PACKETS_A_LOOK: usize = 32;

impl Core {
    /// Sends what the transport has to send.
    pub(super) fn transmit<B: Backend>(&mut self, backend: &mut B) -> Left {
        let mut now = self.now;
        let mut left = Left::Idle;
        self.waits_for_line = None;
        while let Some(packet) = self.rd.poll_transmit(now, Gate::CONTROL) {
            left = Left::Done;
            self.emit(&packet);
        }
        for packets in 1..=PACKETS_A_TURN {
            if self.outbound.is_stuck() {
                break;
            }
            if !self.line.is_open(now) {
                self.waits_for_line = self.rd.has_ready_data().then(|| self.line.opens_at());
                break;
            }
            let Some(packet) = self.rd.poll_transmit(now, Gate::OPEN) else { break };
            left = if packets == PACKETS_A_TURN { Left::More } else { Left::Done };
            self.line.take(now, packet.wire_bytes);
            self.emit(&packet);
            if packets % PACKETS_A_LOOK == 0 {
                now = self.tick();
            }
        }
        self.outbound.flush(backend);
        left
    }

    fn emit(&mut self, packet: &Transmit) {
        let HostId(id) = packet.to;
        let Some(index) = self.remotes.of_id(id).map(|(index, _)| index) else { return };
        let Some(remote) = self.remotes.get_mut(index) else { return };
        let to = remote.entry.address();
        let Some(association) = remote.association.as_deref_mut() else { return };
        let segment = &packet.segment;
        let layout = DatagramLayout::of(segment);
        let (before, behind) = association.around();
        let len = layout.len();
        let (places, session) = (&self.places, &mut association.session);
        let ecn = if packet.ecn_capable { Ecn::Capable0 } else { Ecn::NotCapable };
        // An answer goes on the path of what it answers, if there is such a one here.
        let path = PathId(segment.path.0 % self.config.device.paths);
        let plain = session.protection() == Protection::Insecure;
        let ends = if plain { Ends::Crc } else { Ends::AsWritten };
        let target = Target { to, path, ecn, ends };
        if packet.payload.is_some() {
            self.path_packets[path.index()] += 1;
        }
        let tag = session.plain_tags().sends;
        self.outbound.add(target, before + len + behind, |out| {
            if plain {
                sum::put_tag(&mut out[before + len..], tag);
            }
            let content = &mut out[before..before + len];
            if emit_datagram_header(segment, content).is_err() {
                return false;
            }
            let (body, padding) = content[layout.header_len..].split_at_mut(layout.payload_len);
            padding.fill(0);
            if let Some(payload) = packet.payload
                && !places.get(payload.buffer.0).is_some_and(|place| place.memory.fetch(payload.offset, body))
            {
                return false;
            }
            plain || session.seal(PathId(DATAGRAMS), out).is_ok()
        });
    }
}
