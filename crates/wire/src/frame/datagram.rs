//! Payload of a UDP datagram, from the BTH to the padding: the part of a frame that a program behind a socket sees.

use super::emit::{check, emit_headers, headers_len, payload_len};
use super::error::{EmitError, ParseError};
use super::fields::Source;
use super::layout::bth;
use super::layout::{BTH_LEN, IMMDT_LEN, MAGIC, PULL_TARGET_LEN, VERSION, ext, flag, reth};
use super::opcode::{Opcode, Position, Transfer, nack_reason};
use super::outer_headers::bth_and_lengths;
use super::psn::extend_psn;
use super::read::{take, time_at, u16_at, u24_at, u32_at, u64_at, zero};
use crate::credit::CreditNumber;
use crate::segment::{
    Ack, Body, Data, Missing, MissingCause, Nack, NackReason, NoticePermission, Operation, RdData, Segment,
};
use pathweave_units::{PathId, QpNum};

/// Lengths of the parts of a datagram, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramLayout {
    /// Bytes of BTH, standard headers and extension.
    pub header_len: usize,
    /// Bytes of payload behind the headers.
    pub payload_len: usize,
    /// Zeros behind the payload, up to a multiple of 4.
    pub pad_len: usize,
}

impl DatagramLayout {
    /// Returns the layout of a segment.
    #[inline]
    pub fn for_segment(segment: &Segment) -> Self {
        let payload_len = payload_len(&segment.body);
        let header_len = headers_len(segment);
        let inside = header_len + payload_len;
        DatagramLayout { header_len, payload_len, pad_len: inside.next_multiple_of(4) - inside }
    }
    /// Length of the datagram, without a CRC or tag that protects it.
    pub const fn len(&self) -> usize {
        self.header_len + self.payload_len + self.pad_len
    }
    /// Always false: every datagram has a BTH.
    pub const fn is_empty(&self) -> bool {
        false
    }
}

/// Writes the headers of `segment` at the start of `out`. The caller writes the payload and the padding behind it, in
/// the same buffer or in another.
///
/// # Errors
/// As [`emit`](crate::emit), except for the payload.
#[inline]
pub fn emit_datagram_header(segment: &Segment, out: &mut [u8]) -> Result<DatagramLayout, EmitError> {
    let layout = DatagramLayout::for_segment(segment);
    check(segment)?;
    let available = out.len();
    let out = out
        .get_mut(..layout.header_len)
        .ok_or(EmitError::BufferTooSmall { needed: layout.header_len, available })?;
    emit_headers(segment, layout.pad_len as u8, out);
    Ok(layout)
}

/// CRC-32 of a datagram. It follows the datagram, least significant byte first, if nothing else protects it. The
/// polynomial is that of the ICRC, which cannot be used here because it covers the IP header.
pub fn datagram_crc(datagram: &[u8]) -> u32 {
    crc32fast::hash(datagram)
}

/// A datagram of our format. Every length and field has been checked.
///
/// A receiver looks up the queue pair by [`Datagram::dst_qp`], asks it for a PSN near those in the packet, and gets
/// the value from [`Datagram::segment`], which cannot fail.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    opcode: Opcode,
    /// Bytes from the BTH to the end of the payload.
    bytes: &'a [u8],
    /// Length of BTH, standard headers and extension.
    headers_len: usize,
}

impl<'a> Datagram<'a> {
    /// Checks a datagram, given without its CRC or tag.
    ///
    /// # Errors
    /// [`ParseError`] names the first field that is wrong.
    // Inlined at every call. A datagram that is returned in memory is copied there in larger pieces than it was
    // written in. Such a read waits until all earlier stores of the core have reached its cache, above all those of
    // the previous packet's payload. The wait was a quarter of the cost of receiving.
    #[inline(always)]
    pub fn parse(bytes: &'a [u8]) -> Result<Datagram<'a>, ParseError> {
        take(bytes, BTH_LEN, "BTH")?;
        let (opcode, headers_len, end) = bth_and_lengths(bytes)?;
        let bytes = &bytes[..end];
        check_extension(opcode, bytes, headers_len)?;
        Ok(Datagram { opcode, bytes, headers_len })
    }

    /// Returns true if the PSN counts packets of the other direction: acknowledgements, positive or negative, and
    /// lists of missing packets.
    #[inline]
    pub fn has_reverse_psn(&self) -> bool {
        matches!(self.opcode, Opcode::Acknowledge | Opcode::Missing)
    }
    /// Queue pair that the packet is for.
    #[inline]
    pub fn dst_qp(&self) -> QpNum {
        QpNum(u24_at(self.bytes, bth::DEST_QP))
    }
    /// Queue pair that sent the packet.
    #[inline]
    pub fn src_qp(&self) -> QpNum {
        QpNum(u24_at(self.extension(), ext::SRC_QP))
    }
    /// Path that the packet names.
    #[inline]
    pub fn path(&self) -> PathId {
        PathId(u16_at(self.extension(), ext::PATH))
    }
    /// Payload without padding.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[self.headers_len..]
    }

    /// Returns the value of the packet. `near` is a PSN within 2^23 of those in the packet (see [`extend_psn`]): the
    /// next expected PSN for data, the first unacknowledged PSN for answers.
    #[inline]
    pub fn segment(&self, near: u64) -> Segment {
        let extension = self.extension();
        let psn = extend_psn(u24_at(self.bytes, bth::PSN), near);
        let body = match self.opcode {
            Opcode::Transfer(..) | Opcode::ReadRequest => Body::Data(self.data(psn)),
            Opcode::Acknowledge => match nack_reason(self.standard()[0]) {
                Some(reason) => Body::Nack(Nack {
                    expected: extend_psn(u24_at(extension, ext::NACK_EXPECTED + 1), near),
                    psn,
                    sack: u64_at(extension, ext::NACK_SACK),
                    reason,
                    marked: extension[ext::FLAGS] & flag::MARKED != 0,
                }),
                None => Body::Ack(ack(extension, psn, near)),
            },
            Opcode::Cnp => Body::Cnp,
            Opcode::Rd => Body::Rd(self.rd(psn)),
            Opcode::Missing => Body::Missing(Missing {
                first: psn,
                missing: u64_at(extension, ext::MISSING_BITS),
                cause: if extension[ext::FLAGS] & flag::LATE != 0 {
                    MissingCause::Late
                } else {
                    MissingCause::Lost
                },
            }),
            Opcode::Control(kind) => Body::Control(kind.read(&self.control(near))),
        };
        let pull_target = self.pull_target();
        Segment { dst_qp: self.dst_qp(), src_qp: self.src_qp(), path: self.path(), pull_target, body }
    }

    /// Total credit that the sender wants granted, if a data packet carries it.
    #[inline]
    fn pull_target(&self) -> Option<CreditNumber> {
        let extension = self.extension();
        let says_so = extension[ext::FLAGS] & flag::PULL_TARGET != 0;
        says_so.then(|| CreditNumber::from_wire(u32_at(extension, extension.len() - PULL_TARGET_LEN)))?
    }

    /// Parts of the frame from which a control packet is read.
    #[inline]
    fn control(&self, near: u64) -> Source<'a> {
        Source { psn: u24_at(self.bytes, bth::PSN), near, extension: self.extension() }
    }

    /// Bytes of RETH, AETH, ImmDt and RDETH.
    #[inline]
    fn standard(&self) -> &'a [u8] {
        &self.bytes[BTH_LEN..BTH_LEN + self.opcode.standard_len()]
    }
    #[inline]
    fn extension(&self) -> &'a [u8] {
        &self.bytes[BTH_LEN + self.opcode.standard_len()..self.headers_len]
    }
    #[inline]
    fn payload_len(&self) -> u16 {
        (self.bytes.len() - self.headers_len) as u16
    }

    #[inline]
    fn data(&self, psn: u64) -> Data {
        let (standard, extension) = (self.standard(), self.extension());
        let flags = extension[ext::FLAGS];
        let offset = u32_at(extension, ext::DATA_OFFSET);
        let reference = u32_at(extension, ext::DATA_REFERENCE);
        let immediate = flags & flag::IMMEDIATE != 0;
        let mut data = Data {
            psn,
            msn: u32_at(extension, ext::DATA_MSN),
            offset,
            len: self.payload_len(),
            op: Operation::ReadRequest,
            last: true,
            retransmit: flags & flag::RETRANSMIT != 0,
            sent_at: time_at(extension, ext::DATA_SENT_AT),
            ..Data::EMPTY
        };
        match self.opcode {
            Opcode::Transfer(transfer, position, with_imm) => {
                data.last = position.is_last();
                data.ack_request = !data.last && self.bytes[bth::ACK_REQ] & 0x80 != 0;
                if with_imm {
                    data.imm = u32_at(standard, standard.len() - IMMDT_LEN);
                }
                match transfer {
                    Transfer::Send => {
                        data.op = if immediate { Operation::SendImm } else { Operation::Send };
                        data.receive_index = reference;
                    }
                    Transfer::Write => {
                        data.op = if immediate { Operation::WriteImm } else { Operation::Write };
                        if with_imm {
                            data.receive_index = u32_at(extension, ext::DATA_RECEIVE);
                        } else if !data.last {
                            data.imm = u32_at(standard, reth::DMA_LENGTH);
                        }
                        data.rkey = key(standard, reference);
                        data.remote_addr = u64_at(standard, reth::VIRTUAL_ADDRESS) - u64::from(offset);
                    }
                    Transfer::ReadResponse => {
                        data.op = Operation::ReadResponse;
                        data.remote_addr = reference.into();
                    }
                }
            }
            _ => {
                data.rkey = key(standard, reference);
                data.remote_addr = u64_at(standard, reth::VIRTUAL_ADDRESS);
                data.imm = u32_at(standard, reth::DMA_LENGTH);
            }
        }
        data
    }

    fn rd(&self, psn: u64) -> RdData {
        let extension = self.extension();
        RdData {
            psn,
            msg_id: u16_at(extension, ext::RD_MSG_ID),
            multi: extension[ext::RD_TYPE] & flag::MULTI != 0,
            offset: u32_at(extension, ext::RD_OFFSET),
            len: self.payload_len(),
            retransmit: extension[ext::FLAGS] & flag::RETRANSMIT != 0,
        }
    }

    fn check_rd(&self) -> Result<(), ParseError> {
        let (extension, len) = (self.extension(), self.payload_len());
        zero("RDETH", u32_at(self.standard(), 0))?;
        zero("reserved bits of the EETH", u32::from(extension[ext::RD_TYPE] & !flag::MULTI))?;
        let says = u16_at(extension, ext::RD_LEN);
        if says != len || len == 0 {
            return Err(ParseError::EethLength { says, len });
        }
        let offset = u32_at(extension, ext::RD_OFFSET);
        if u64::from(offset) + u64::from(len) > 1 << 32 {
            return Err(ParseError::OffsetOverflow { offset, len });
        }
        if extension[ext::RD_TYPE] & flag::MULTI == 0 {
            zero("offset in a message of one packet", offset)?;
        }
        Ok(())
    }

    fn check_extension(&self) -> Result<(), ParseError> {
        let extension = self.extension();
        if extension[ext::MAGIC] != MAGIC {
            return Err(ParseError::Magic(extension[ext::MAGIC]));
        }
        if extension[ext::VERSION] != VERSION {
            return Err(ParseError::Version(extension[ext::VERSION]));
        }
        let flags = extension[ext::FLAGS];
        let allowed = match self.opcode {
            // A contradiction between the flag and an ImmDt header is detected below.
            Opcode::Transfer(Transfer::Send | Transfer::Write, ..) => {
                flag::RETRANSMIT | flag::IMMEDIATE | flag::PULL_TARGET
            }
            Opcode::Transfer(Transfer::ReadResponse, ..) | Opcode::ReadRequest => {
                flag::RETRANSMIT | flag::PULL_TARGET
            }
            Opcode::Rd => flag::RETRANSMIT,
            // The allowed subset depends on the syndrome and is checked below.
            Opcode::Acknowledge => flag::PAUSED | flag::MARKED,
            Opcode::Control(kind) => kind.entry().flags,
            Opcode::Missing => flag::LATE,
            Opcode::Cnp => 0,
        };
        if flags & !allowed != 0 {
            return Err(ParseError::Flags { flags, allowed });
        }
        if flags & flag::PULL_TARGET != 0 && self.pull_target().is_none() {
            return Err(ParseError::CreditNumber(u32_at(extension, extension.len() - PULL_TARGET_LEN)));
        }
        match self.opcode {
            Opcode::Transfer(transfer, position, with_imm) => {
                let immediate = flags & flag::IMMEDIATE != 0;
                if position.is_last() && immediate != with_imm {
                    let expected = if with_imm { allowed } else { allowed & !flag::IMMEDIATE };
                    return Err(ParseError::Flags { flags, allowed: expected });
                }
                self.check_transfer(transfer, position)
            }
            Opcode::Rd => self.check_rd(),
            Opcode::ReadRequest => Ok(()),
            Opcode::Acknowledge => {
                zero("AETH message sequence number", u24_at(self.standard(), 1))?;
                let allowed = match nack_reason(self.standard()[0]) {
                    None => flag::PAUSED,
                    Some(NackReason::Trimmed(_)) => flag::MARKED,
                    Some(_) => 0,
                };
                if flags & !allowed != 0 {
                    return Err(ParseError::Flags { flags, allowed });
                }
                let first = extension[ext::ACK_BACK];
                match nack_reason(self.standard()[0]) {
                    None if first <= Ack::MAX_BACK => Ok(()),
                    None => Err(ParseError::Trigger(first)),
                    Some(_) => zero("high byte of the expected PSN", first.into()),
                }
            }
            Opcode::Missing => match u64_at(extension, ext::MISSING_BITS) & 1 {
                0 => Err(ParseError::NothingMissing(u24_at(self.bytes, bth::PSN))),
                _ => Ok(()),
            },
            Opcode::Control(kind) => kind.check(&self.control(0)),
            Opcode::Cnp => zero("PSN", u24_at(self.bytes, bth::PSN)),
        }
    }

    #[inline]
    fn check_transfer(&self, transfer: Transfer, position: Position) -> Result<(), ParseError> {
        let (extension, standard, len) = (self.extension(), self.standard(), self.payload_len());
        let offset = u32_at(extension, ext::DATA_OFFSET);
        if Position::at(offset, position.is_last()) != position {
            return Err(ParseError::Position { offset, position: position.name() });
        }
        if u64::from(offset) + u64::from(len) > 1 << 32 {
            return Err(ParseError::OffsetOverflow { offset, len });
        }
        if transfer == Transfer::Write {
            let dma = u32_at(standard, reth::DMA_LENGTH);
            let (end, whole) = (u64::from(offset) + u64::from(len), u64::from(dma) + 1);
            let agrees = match (len, position.is_last()) {
                // Only a WRITE of 0 bytes has a packet without payload.
                (0, last) => last && offset == 0 && dma == 0,
                (_, true) => end == whole,
                (_, false) => end < whole,
            };
            if !agrees {
                return Err(ParseError::DmaLength { dma, offset, len, position: position.name() });
            }
            let address = u64_at(standard, reth::VIRTUAL_ADDRESS);
            let first = address.checked_sub(u64::from(offset));
            if first.and_then(|first| first.checked_add(dma.into())).is_none() {
                return Err(ParseError::Address { address, offset, dma });
            }
        }
        Ok(())
    }
}

/// Checks the headers behind the BTH. A separate function that takes its numbers in registers; see
/// [`Datagram::parse`].
#[inline(never)]
fn check_extension(opcode: Opcode, bytes: &[u8], headers_len: usize) -> Result<(), ParseError> {
    Datagram { opcode, bytes, headers_len }.check_extension()
}

/// Returns the 64-bit remote key. Its low half is in InfiniBand's key field, `high` in the extension.
#[inline]
fn key(standard: &[u8], high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(u32_at(standard, reth::R_KEY))
}

fn ack(extension: &[u8], psn: u64, near: u64) -> Ack {
    Ack {
        cumulative: extend_psn(u24_at(extension, ext::ACK_CUMULATIVE), near),
        psn,
        back: extension[ext::ACK_BACK],
        sack: u64_at(extension, ext::ACK_SACK),
        echo_sent_at: time_at(extension, ext::ACK_ECHO_SENT_AT),
        received_at: time_at(extension, ext::ACK_RECEIVED_AT),
        packets: u16_at(extension, ext::ACK_PACKETS),
        marked: u16_at(extension, ext::ACK_MARKED),
        notices: if extension[ext::FLAGS] & flag::PAUSED != 0 {
            NoticePermission::Paused
        } else {
            NoticePermission::Welcome
        },
    }
}
