//! Transmission: from the transport to the batches.

use pathweave_transport::{Class, FreePorts, Transmit, Transport};
use pathweave_units::{HostId, PathId, Time};

use super::engine::DatagramService;
use super::remote::DATAGRAMS;
use crate::backend::Rail;
use crate::event_loop::Io;
use crate::event_loop::frame::{self, Codepoint, FrameTarget};
use crate::event_loop::outbound::SendRoute;

impl DatagramService {
    /// Writes the transport's next packet, if there is one, into a batch.
    #[inline]
    pub(super) fn send(&mut self, now: Time, gate: FreePorts) -> bool {
        let DatagramService { rd, io: Io { outbound, places, line, .. }, remotes, path_packets, .. } = self;
        let mut emit = |packet: &Transmit| {
            let HostId(id) = packet.to;
            let Some((to, association)) = remotes.address_of(id) else { return };
            let segment = &packet.segment;
            // An answer uses the path of the packet it answers, modulo the number of paths here.
            let path = PathId(segment.path.0 % path_packets.len() as u16);
            path_packets[path.index()] += u64::from(packet.payload.is_some());
            let codepoint = Codepoint::capable(packet.ecn_capable);
            let lane = SendRoute { to, rail: Rail::FIRST, path };
            let way = FrameTarget { lane, sequence: PathId(DATAGRAMS), codepoint };
            frame::add_packet(
                outbound,
                places,
                &mut association.session,
                way,
                segment,
                packet.payload.as_ref(),
            );
        };
        rd.send_control(|packet| emit(&packet))
            || gate.data_ports != 0
                && rd.send_data(now, gate, |packet| {
                    if packet.class == Class::Data {
                        line.take(now, packet.wire_bytes);
                    }
                    emit(&packet);
                })
    }
}
