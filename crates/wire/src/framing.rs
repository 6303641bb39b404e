//! Number of bytes that a segment takes on a link.

use crate::control::{CNP_LEN, NS3_ACK_LEN, NS3_HEADER_LEN};
use crate::frame::ip_packet_len;
use crate::frame::layout::{
    AETH_LEN, BTH_LEN, COMMON_LEN, EETH_LEN, ETHERNET_LEN, ICRC_LEN, IMMDT_LEN, IPV4_LEN, PULL_TARGET_LEN,
    RDETH_LEN, RETH_LEN, UDP_LEN,
};
use crate::segment::{Body, Data, Operation, Segment};
use crate::source_route::RouteForm;

/// Form of source route whose bytes count as part of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum RouteBytes {
    /// No bytes, as in the ns-3 simulators, whose switches know routes by other means.
    None,
    /// List of anchors: as few switches as pin the path, such that the shortest path between two successive ones is
    /// unique. 8 bytes and 4 for each anchor. No bytes on a path that is itself the only shortest one.
    Anchors,
    /// Egress port at every switch: 8 bytes and 2 for each switch, padded to a multiple of 4.
    Hops,
    /// A segment for every anchor, as in SRv6: 8 bytes and 16 for each segment.
    Segments,
}

impl RouteBytes {
    /// Form of the header, or `None` if there is no header.
    pub const fn form(self) -> Option<RouteForm> {
        match self {
            RouteBytes::None => None,
            RouteBytes::Anchors => Some(RouteForm::Anchors),
            RouteBytes::Hops => Some(RouteForm::Hops),
            RouteBytes::Segments => Some(RouteForm::Segments),
        }
    }
}

/// Ethernet's preamble and start delimiter (8 bytes) and inter-frame gap (12 bytes).
const PREAMBLE_AND_GAP_LEN: u32 = 20;
/// Bytes of Ethernet's frame check sequence.
const FCS_LEN: u32 = 4;
/// Bytes of Ethernet's smallest frame, with header and frame check sequence.
const MIN_FRAME_LEN: u32 = 64;

/// Rule by which header bytes of a packet are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Framing {
    /// RoCEv2 over Ethernet as in the standard, the default: preamble and gap 20 bytes, Ethernet 14, IPv4 20, UDP 8,
    /// BTH 12, ICRC 4, FCS 4. RETH takes 16 on the first packet of a WRITE and on READ requests, ImmDt 4 on the last
    /// packet of a message with immediate. AETH takes 4 on acknowledgements and on all but the middle packets of a
    /// READ response. Congestion notifications and our probes have 16 bytes. Payload is padded to a multiple of 4
    /// bytes; frames have at least 64 bytes. Packets of datagram queue pairs have RDETH 4, DETH 8 and ERD's header,
    /// 9. Our extension header is not counted, as adapters on the market do not send it.
    #[default]
    Rocev2,
    /// Count of the ns-3 RDMA simulators: 48 bytes of header on every packet, and 60 bytes for an acknowledgement.
    Ns3,
    /// Exactly the bytes that the datapath sends: the frame that [`emit`](crate::emit) writes, plus FCS, preamble and
    /// gap.
    Pathweave,
}

impl Framing {
    /// Bytes that `segment` occupies on a link, with preamble and gap.
    pub fn wire_bytes(self, segment: &Segment) -> u32 {
        match self {
            Framing::Rocev2 => ethernet(rocev2_ip_packet(segment)),
            Framing::Ns3 => match &segment.body {
                Body::Data(data) => NS3_HEADER_LEN + u32::from(data.len),
                Body::Rd(data) => NS3_HEADER_LEN + u32::from(data.len),
                Body::Control(control) => control.kind().entry().ns3_len,
                Body::Ack(_) | Body::Nack(_) | Body::Cnp | Body::Missing(_) => NS3_ACK_LEN,
            },
            Framing::Pathweave => ethernet(ip_packet_len(segment)),
        }
    }

    /// Bytes that the pull target of a data packet adds.
    pub const fn pull_target_bytes(self) -> u32 {
        match self {
            // The pull target is a field of our own format; adapters do not send it.
            Framing::Rocev2 | Framing::Ns3 => 0,
            Framing::Pathweave => PULL_TARGET_LEN as u32,
        }
    }

    /// Default form of source routes: every hop, as switches without state need it, but none with the bytes of the
    /// ns-3 simulators.
    pub const fn default_route_bytes(self) -> RouteBytes {
        match self {
            Framing::Ns3 => RouteBytes::None,
            Framing::Rocev2 | Framing::Pathweave => RouteBytes::Hops,
        }
    }

    /// Bytes that `segment` occupies on a link, with a source-route header of `entries` entries. 0 entries: no
    /// header.
    pub fn wire_bytes_routed(self, segment: &Segment, form: RouteForm, entries: usize) -> u32 {
        let header = if entries == 0 { 0 } else { form.header_len(entries) };
        match self {
            Framing::Ns3 => self.wire_bytes(segment) + header as u32,
            Framing::Pathweave => ethernet(header + ip_packet_len(segment)),
            Framing::Rocev2 => ethernet(header + rocev2_ip_packet(segment)),
        }
    }
}

/// Bytes of the IP packet of standard RoCEv2.
fn rocev2_ip_packet(segment: &Segment) -> usize {
    IPV4_LEN + UDP_LEN + BTH_LEN + rocev2_extended(&segment.body) + ICRC_LEN
}

/// Bytes that an IP packet occupies on a link.
fn ethernet(ip_packet: usize) -> u32 {
    PREAMBLE_AND_GAP_LEN + ((ETHERNET_LEN + ip_packet) as u32 + FCS_LEN).max(MIN_FRAME_LEN)
}

/// Extended headers, payload and padding of a standard RoCEv2 packet.
fn rocev2_extended(body: &Body) -> usize {
    match body {
        Body::Data(data) => rocev2_data(data),
        // The common part of our extension has the layout and length of a DETH.
        Body::Rd(data) => RDETH_LEN + COMMON_LEN + (EETH_LEN + usize::from(data.len)).next_multiple_of(4),
        Body::Ack(_) | Body::Nack(_) | Body::Missing(_) => AETH_LEN,
        Body::Cnp => CNP_LEN,
        Body::Control(control) => control.kind().entry().rocev2_len,
    }
}

fn rocev2_data(data: &Data) -> usize {
    let first = data.offset == 0;
    let mut len = usize::from(data.len).next_multiple_of(4);
    match data.op {
        Operation::Write | Operation::WriteImm if first => len += RETH_LEN,
        Operation::ReadRequest => len += RETH_LEN,
        Operation::ReadResponse if first || data.last => len += AETH_LEN,
        _ => {}
    }
    if data.last && matches!(data.op, Operation::SendImm | Operation::WriteImm) {
        len += IMMDT_LEN;
    }
    len
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Control;
    use crate::segment::{Nack, NackReason, RdData};
    use pathweave_units::{PathId, QpNum, Time};

    fn segment(body: Body) -> Segment {
        Segment::new(QpNum(1), QpNum(2), PathId(0), body)
    }
    fn data(op: Operation, offset: u32, len: u16, last: bool) -> Segment {
        segment(Body::Data(Data { offset, len, op, last, ..Data::EMPTY }))
    }
    fn rd(len: u16) -> Segment {
        segment(Body::Rd(RdData { psn: 0, msg_id: 0, multi: false, offset: 0, len, retransmit: false }))
    }
    const PROBE: Body = Body::Control(Control::Probe { sent_at: Time::ZERO });
    const NACK: Body =
        Body::Nack(Nack { expected: 0, psn: 0, sack: 0, reason: NackReason::Sequence, marked: false });

    #[test]
    fn rocev2_by_hand() {
        use Operation::{ReadRequest, ReadResponse, Send, SendImm, Write, WriteImm};
        // 20 + 14 + 20 + 8 + 12 + 4 + 4 = 82 around every payload.
        for (segment, bytes) in [
            (data(Send, 0, 4096, false), 4096 + 82),
            (data(Send, 0, 4095, true), 4096 + 82),
            (data(SendImm, 4096, 4096, false), 4096 + 82),
            (data(SendImm, 4096, 4096, true), 4096 + 82 + 4),
            (data(Write, 0, 4096, false), 4096 + 82 + 16),
            (data(Write, 4096, 4096, true), 4096 + 82),
            (data(WriteImm, 0, 4096, true), 4096 + 82 + 16 + 4),
            (data(ReadRequest, 0, 0, true), 82 + 16),
            (data(ReadResponse, 0, 1024, false), 1024 + 82 + 4),
            (data(ReadResponse, 1024, 1024, false), 1024 + 82),
            (data(ReadResponse, 2048, 1024, true), 1024 + 82 + 4),
            // 62 bytes of frame are padded to 64.
            (data(Send, 0, 0, true), 84),
            (data(Send, 0, 1, true), 86),
            (segment(NACK), 86),
            (segment(Body::Cnp), 98),
            (segment(PROBE), 98),
        ] {
            assert_eq!(Framing::Rocev2.wire_bytes(&segment), bytes, "{segment:?}");
        }
    }

    #[test]
    fn a_source_route_takes_its_header() {
        use RouteForm::{Anchors, Hops, Segments};
        let full = data(Operation::Send, 0, 4096, false);
        for (form, entries, header) in [(Anchors, 3, 20), (Hops, 5, 20), (Hops, 4, 16), (Segments, 3, 56)] {
            assert_eq!(Framing::Rocev2.wire_bytes_routed(&full, form, entries), 4096 + 82 + header);
            assert_eq!(Framing::Ns3.wire_bytes_routed(&full, form, entries), 4096 + 48 + header);
        }
        // The header takes the place of padding up to the smallest frame: 62 bytes without padding, 64 with it.
        let empty = data(Operation::Send, 0, 0, true);
        assert_eq!(Framing::Rocev2.wire_bytes_routed(&empty, Hops, 1), 84 - 2 + 12);
        // A path that needs no anchor needs no header.
        assert_eq!(Framing::Pathweave.wire_bytes_routed(&full, Anchors, 0), 4096 + 110);
    }

    #[test]
    fn ns3_by_hand() {
        assert_eq!(Framing::Ns3.wire_bytes(&data(Operation::Write, 0, 1000, false)), 1048);
        assert_eq!(Framing::Ns3.wire_bytes(&segment(PROBE)), 48);
        assert_eq!(Framing::Ns3.wire_bytes(&segment(NACK)), 60);
        assert_eq!(Framing::Ns3.wire_bytes(&segment(Body::Cnp)), 60);
    }

    #[test]
    fn pathweave_by_hand() {
        // ERD: 82, RDETH 4, DETH 8, EETH 9 with 4087 B of payload 4096; 1 B with its EETH fills 12.
        for framing in [Framing::Rocev2, Framing::Pathweave] {
            assert_eq!(framing.wire_bytes(&rd(4_087)), 4_190);
            assert_eq!(framing.wire_bytes(&rd(1)), 82 + 12 + 12);
        }
        assert_eq!(Framing::Ns3.wire_bytes(&rd(1_000)), 1_048);
        // 82, and 28 of extension. Every WRITE packet has a RETH, so that the receiver can place it without the
        // others.
        assert_eq!(Framing::Pathweave.wire_bytes(&data(Operation::Send, 0, 4096, false)), 4096 + 110);
        assert_eq!(Framing::Pathweave.wire_bytes(&data(Operation::Write, 4096, 4095, true)), 4096 + 126);
        assert_eq!(Framing::Pathweave.wire_bytes(&segment(NACK)), 82 + 4 + 20);
        assert_eq!(Framing::Pathweave.wire_bytes(&segment(Body::Cnp)), 82 + 8);
    }
}
