//! Wire bytes of the most frequent packets, computed once.

use pathweave_units::{PathId, QpNum, Time};
use pathweave_wire::{Ack, Body, Data, Framing, Operation, Segment};

use crate::config::EndpointConfig;
use crate::send::message::Message;

/// Wire bytes of acknowledgements and of full packets. They depend on a packet's kind, its payload, and its position
/// as first or last packet of the message, so all middle packets are alike.
#[derive(Debug)]
pub(crate) struct Sizes {
    ack: u16,
    /// Payload of a full packet.
    full: u16,
    /// Wire bytes of full packets that are neither the first nor the last of their message, by [`Operation`].
    middle: [u16; 6],
}

impl Sizes {
    pub(crate) fn new(config: &EndpointConfig) -> Self {
        let ack = Ack { packets: 1, ..Ack::EMPTY };
        let middle = |op| {
            Body::Data(Data {
                psn: 1,
                offset: u32::from(config.mtu_payload),
                len: config.mtu_payload,
                op,
                last: false,
                ..Data::EMPTY
            })
        };
        let size = |body| {
            let segment = Segment::new(QpNum(0), QpNum(0), PathId(0), body);
            u16::try_from(config.framing.wire_bytes(&segment))
                .expect("a packet has at most MAX_MTU_PAYLOAD bytes and headers")
        };
        let every = [
            Operation::Send,
            Operation::SendImm,
            Operation::Write,
            Operation::WriteImm,
            Operation::ReadRequest,
            Operation::ReadResponse,
        ];
        Sizes {
            ack: size(Body::Ack(ack)),
            full: config.mtu_payload,
            middle: every.map(|op| size(middle(op))),
        }
    }

    /// Equals [`Framing::wire_bytes`] for a control packet.
    #[inline(always)]
    pub(crate) fn of_control(&self, framing: Framing, segment: &Segment) -> u32 {
        match segment.body {
            Body::Ack(_) => {
                debug_assert_eq!(u32::from(self.ack), framing.wire_bytes(segment));
                u32::from(self.ack)
            }
            _ => framing.wire_bytes(segment),
        }
    }

    /// Equals [`Framing::wire_bytes`] for a data packet.
    #[inline(always)]
    pub(crate) fn of_data(&self, framing: Framing, data: &Data) -> u32 {
        if (data.offset == 0) | data.last | (data.len != self.full) {
            return Self::of_end(framing, data);
        }
        debug_assert_eq!(u32::from(self.middle[data.op as usize]), Self::of_end(framing, data));
        u32::from(self.middle[data.op as usize])
    }

    /// Equals [`Sizes::of_data`] for packet `psn` of a message, which is built only if it is not a middle one.
    #[inline(always)]
    pub(crate) fn of_packet(&self, framing: Framing, message: &Message, psn: u64, mtu_payload: u16) -> u32 {
        if message.is_middle(psn) && mtu_payload == self.full {
            return u32::from(self.middle[message.op as usize]);
        }
        Self::of_end(framing, &message.packet(psn, 0, mtu_payload, false, Time::ZERO))
    }

    #[cold]
    fn of_end(framing: Framing, data: &Data) -> u32 {
        let (dst_qp, src_qp) = (QpNum(0), QpNum(0));
        framing.wire_bytes(&Segment::new(dst_qp, src_qp, PathId(0), Body::Data(*data)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::{Buffer, Op, WorkRequest};
    use pathweave_units::HostId;

    /// Messages of one packet, of two and of four, for peers that accept full packets or shorter ones only.
    #[test]
    fn the_size_of_a_packet_is_known_before_it_is_built() {
        let config = EndpointConfig { mtu_payload: 1_000, ..EndpointConfig::new(HostId(0)) };
        let sizes = Sizes::new(&config);
        let write = Op::WriteImm { rkey: 1, remote_addr: 2, imm: 3 };
        for op in [Op::Send, Op::SendImm { imm: 9 }, write, Op::Read { rkey: 1, remote_addr: 2 }] {
            for (len, mtu_payload) in [(0, 1_000), (700, 1_000), (2_000, 1_000), (3_001, 1_000), (1_700, 500)]
            {
                let request = WorkRequest { wr_id: 1, op, local: Buffer(0), len };
                let mut message = Message::from_request(&request);
                (message.start_psn, message.end_psn) = (40, 40 + message.packets(mtu_payload));
                for psn in message.start_psn..message.end_psn {
                    let data = message.packet(psn, 5, mtu_payload, true, Time::from_us(1));
                    assert_eq!(message.payload_bytes(psn, mtu_payload), data.len);
                    let built = sizes.of_data(config.framing, &data);
                    assert_eq!(
                        sizes.of_packet(config.framing, &message, psn, mtu_payload),
                        built,
                        "{op:?} {len}"
                    );
                }
            }
        }
    }

    /// Compares with the framing itself, which defines the packets that are alike.
    #[test]
    fn sizes_are_those_of_the_framing() {
        for framing in [Framing::Rocev2, Framing::Ns3, Framing::Pathweave] {
            let config = EndpointConfig { framing, mtu_payload: 1_003, ..EndpointConfig::new(HostId(0)) };
            let sizes = Sizes::new(&config);
            let segment = |body| Segment::new(QpNum(9), QpNum(8), PathId(7), body);
            for psn in [0, 1, 1 << 40] {
                let ack = Ack {
                    cumulative: psn,
                    psn,
                    sack: psn,
                    echo_sent_at: Time::from_ps(psn),
                    received_at: Time::MAX,
                    packets: 3,
                    marked: 2,
                    ..Ack::EMPTY
                };
                let ack = segment(Body::Ack(ack));
                assert_eq!(sizes.of_control(framing, &ack), framing.wire_bytes(&ack), "{framing:?}");
            }
            let operations = [
                Operation::Send,
                Operation::SendImm,
                Operation::Write,
                Operation::WriteImm,
                Operation::ReadResponse,
            ];
            for op in operations {
                for (packet, last) in [(0, false), (1, false), (1, true), (4_000_000, false), (0, true)] {
                    let data = Data {
                        psn: 5_000_000 + u64::from(packet),
                        msn: 6,
                        offset: packet * 1_003,
                        len: if last { 13 } else { 1_003 },
                        op,
                        last,
                        retransmit: packet == 1,
                        ack_request: false,
                        rkey: 4,
                        remote_addr: u64::MAX,
                        imm: 3,
                        receive_index: 2,
                        sent_at: Time::from_ps(1),
                    };
                    let expected = framing.wire_bytes(&segment(Body::Data(data)));
                    assert_eq!(sizes.of_data(framing, &data), expected, "{framing:?} {op:?} {packet} {last}");
                }
            }
        }
    }
}
