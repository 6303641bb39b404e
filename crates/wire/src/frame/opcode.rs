//! Opcodes: InfiniBand's reliable-connection operations, moved to the range that the architecture leaves to
//! manufacturers (0xc0 to 0xff; IBTA volume 1, table of BTH opcodes), because our headers behind the BTH differ.

use pathweave_units::TrimmedAt;

use super::layout::{
    ACK_EXT_LEN, AETH_LEN, BTH_LEN, CNP_EXT_LEN, DATA_EXT_LEN, IMMDT_LEN, MISSING_EXT_LEN, NACK_EXT_LEN,
    RD_EXT_LEN, RDETH_LEN, RETH_LEN, WRITE_IMM_EXT_LEN,
};
use crate::control::ControlKind;
use crate::segment::{Body, Data, NackReason, Operation};

/// Position of a packet in its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    First,
    Middle,
    Last,
    Only,
}

/// Kind of data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transfer {
    Send,
    Write,
    ReadResponse,
}

/// A decoded opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opcode {
    /// Payload of a message. The flag is true if an ImmDt header follows.
    Transfer(Transfer, Position, bool),
    ReadRequest,
    /// Positive or negative acknowledgement, distinguished by the AETH syndrome.
    Acknowledge,
    Cnp,
    Missing,
    /// Part of a message between datagram queue pairs.
    Rd,
    /// A control packet of a scheme.
    Control(ControlKind),
}

const RANGE: u8 = 0xc0;

/// Low six bits of each opcode except those of control packets, which have their own table. Up to 0x11 they are
/// InfiniBand's reliable-connection opcodes.
const TABLE: [(u8, Opcode); 21] = {
    use Opcode::{Acknowledge, Cnp, Missing, Rd, ReadRequest, Transfer as T};
    use Position::{First, Last, Middle, Only};
    use Transfer::{ReadResponse, Send, Write};
    [
        (0x00, T(Send, First, false)),
        (0x01, T(Send, Middle, false)),
        (0x02, T(Send, Last, false)),
        (0x03, T(Send, Last, true)),
        (0x04, T(Send, Only, false)),
        (0x05, T(Send, Only, true)),
        (0x06, T(Write, First, false)),
        (0x07, T(Write, Middle, false)),
        (0x08, T(Write, Last, false)),
        (0x09, T(Write, Last, true)),
        (0x0a, T(Write, Only, false)),
        (0x0b, T(Write, Only, true)),
        (0x0c, ReadRequest),
        (0x0d, T(ReadResponse, First, false)),
        (0x0e, T(ReadResponse, Middle, false)),
        (0x0f, T(ReadResponse, Last, false)),
        (0x10, T(ReadResponse, Only, false)),
        (0x11, Acknowledge),
        (0x18, Cnp),
        (0x1b, Rd),
        (0x17, Missing),
    ]
};

/// Opcode for each value of the low six bits.
const BY_LOW: [Option<Opcode>; 64] = {
    let mut by_low = [None; 64];
    let mut i = 0;
    while i < TABLE.len() {
        by_low[TABLE[i].0 as usize] = Some(TABLE[i].1);
        i += 1;
    }
    let mut i = 0;
    while i < ControlKind::ALL.len() {
        let kind = ControlKind::ALL[i];
        let low = kind.entry().opcode as usize;
        assert!(by_low[low].is_none(), "two packets have one opcode");
        by_low[low] = Some(Opcode::Control(kind));
        i += 1;
    }
    by_low
};

impl Position {
    #[inline]
    pub(crate) fn at(offset: u32, last: bool) -> Position {
        match (offset == 0, last) {
            (true, true) => Position::Only,
            (true, false) => Position::First,
            (false, true) => Position::Last,
            (false, false) => Position::Middle,
        }
    }
    #[inline]
    pub(crate) fn is_last(self) -> bool {
        matches!(self, Position::Last | Position::Only)
    }
    pub(crate) fn name(self) -> &'static str {
        match self {
            Position::First => "First",
            Position::Middle => "Middle",
            Position::Last => "Last",
            Position::Only => "Only",
        }
    }
}

impl Opcode {
    /// Returns the opcode of a segment with this body.
    #[inline]
    pub(crate) fn for_body(body: &Body) -> Opcode {
        match body {
            Body::Data(data) => Opcode::of_data(data),
            Body::Ack(_) | Body::Nack(_) => Opcode::Acknowledge,
            Body::Cnp => Opcode::Cnp,
            Body::Missing(_) => Opcode::Missing,
            Body::Rd(_) => Opcode::Rd,
            Body::Control(control) => Opcode::Control(control.kind()),
        }
    }

    #[inline]
    fn of_data(data: &Data) -> Opcode {
        let position = Position::at(data.offset, data.last);
        let transfer = match data.op {
            Operation::Send | Operation::SendImm => Transfer::Send,
            Operation::Write | Operation::WriteImm => Transfer::Write,
            Operation::ReadResponse => Transfer::ReadResponse,
            Operation::ReadRequest => return Opcode::ReadRequest,
        };
        Opcode::Transfer(transfer, position, data.last && has_immediate(data.op))
    }

    /// Returns the byte on the wire. Its inverse is [`Opcode::from_byte`], which reads a table made of [`TABLE`]; a
    /// test compares the two.
    #[inline]
    pub(crate) fn to_byte(self) -> u8 {
        let position = |position: Position| match position {
            Position::First => 0,
            Position::Middle => 1,
            Position::Last => 2,
            Position::Only => 4,
        };
        RANGE
            | match self {
                // As in InfiniBand, the opcode with immediate is one above that of the last or only packet.
                Opcode::Transfer(Transfer::Send, at, imm) => position(at) + u8::from(imm),
                Opcode::Transfer(Transfer::Write, at, imm) => 0x06 + position(at) + u8::from(imm),
                // READ responses have no immediate, so `Only` directly follows `Last`.
                Opcode::Transfer(Transfer::ReadResponse, at, _) => {
                    0x0d + position(at) - u8::from(at == Position::Only)
                }
                Opcode::ReadRequest => 0x0c,
                Opcode::Acknowledge => 0x11,
                Opcode::Cnp => 0x18,
                Opcode::Missing => 0x17,
                Opcode::Rd => 0x1b,
                Opcode::Control(kind) => kind.entry().opcode,
            }
    }

    #[inline]
    pub(crate) fn from_byte(byte: u8) -> Option<Opcode> {
        if byte & RANGE == RANGE { BY_LOW[usize::from(byte & !RANGE)] } else { None }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Opcode::Transfer(Transfer::Send, ..) => "SEND",
            Opcode::Transfer(Transfer::Write, ..) => "WRITE",
            Opcode::Transfer(Transfer::ReadResponse, ..) => "READ response",
            Opcode::ReadRequest => "READ request",
            Opcode::Acknowledge => "Acknowledge",
            Opcode::Cnp => "CNP",
            Opcode::Missing => "Missing",
            Opcode::Rd => "RD",
            Opcode::Control(kind) => kind.entry().name,
        }
    }

    /// Bytes of RETH, AETH, ImmDt and RDETH between the BTH and the extension.
    #[inline]
    pub(crate) fn standard_len(self) -> usize {
        match self {
            Opcode::Transfer(transfer, _, imm) => {
                (if transfer == Transfer::Write { RETH_LEN } else { 0 }) + if imm { IMMDT_LEN } else { 0 }
            }
            Opcode::ReadRequest => RETH_LEN,
            Opcode::Acknowledge => AETH_LEN,
            Opcode::Rd => RDETH_LEN,
            Opcode::Cnp | Opcode::Missing | Opcode::Control(_) => 0,
        }
    }

    /// Bytes from the start of the BTH to the payload. A negative acknowledgement has a shorter extension.
    #[inline]
    pub(crate) fn header_len(self, nack: bool) -> usize {
        let extension = match self {
            Opcode::Transfer(Transfer::Write, _, true) => WRITE_IMM_EXT_LEN,
            Opcode::Transfer(..) | Opcode::ReadRequest => DATA_EXT_LEN,
            Opcode::Acknowledge if nack => NACK_EXT_LEN,
            Opcode::Acknowledge => ACK_EXT_LEN,
            Opcode::Cnp => CNP_EXT_LEN,
            Opcode::Missing => MISSING_EXT_LEN,
            Opcode::Rd => RD_EXT_LEN,
            Opcode::Control(kind) => kind.entry().extension_len,
        };
        BTH_LEN + self.standard_len() + extension
    }
}

/// Returns true if messages of this kind carry an immediate.
pub(crate) fn has_immediate(op: Operation) -> bool {
    matches!(op, Operation::SendImm | Operation::WriteImm)
}

/// AETH syndrome of a positive acknowledgement that advertises no credits.
pub(crate) const SYNDROME_ACK: u8 = 0x1f;

/// AETH syndromes of refusals. RNR and 0x60 to 0x62 are InfiniBand's; 0x70 to 0x72 are ours, from its reserved codes.
const SYNDROMES: [(u8, NackReason); 7] = [
    (0x20, NackReason::ReceiverNotReady),
    (0x60, NackReason::Sequence),
    (0x61, NackReason::InvalidRequest),
    (0x62, NackReason::RemoteAccess),
    (0x70, NackReason::BeyondWindow),
    (0x71, NackReason::Trimmed(TrimmedAt::OnTheWay)),
    (0x72, NackReason::Trimmed(TrimmedAt::LastHop)),
];

pub(crate) fn syndrome(reason: NackReason) -> u8 {
    SYNDROMES.iter().find(|(_, r)| *r == reason).expect("every reason has a syndrome").0
}

pub(crate) fn nack_reason(syndrome: u8) -> Option<NackReason> {
    SYNDROMES.iter().find(|(s, _)| *s == syndrome).map(|(_, reason)| *reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_those_of_the_table_and_come_back() {
        for (low, opcode) in TABLE {
            assert_eq!(opcode.to_byte(), RANGE | low, "{opcode:?}");
            assert_eq!(Opcode::from_byte(RANGE | low), Some(opcode));
        }
        for kind in ControlKind::ALL {
            let opcode = Opcode::Control(*kind);
            assert_eq!(Opcode::from_byte(opcode.to_byte()), Some(opcode));
        }
        let known = (0..=255).filter(|byte| Opcode::from_byte(*byte).is_some()).count();
        assert_eq!(known, TABLE.len() + ControlKind::ALL.len());
    }
}
