//! Source of decisions, and arbitrary packets made from them.

use pathweave_units::{PathId, QpNum, Rng, Time, TrimmedAt};
use pathweave_wire::{
    Ack, Body, Control, ControlKind, CreditNumber, Data, Missing, MissingCause, Nack, NackReason,
    NoticePermission, Operation, RdData, Segment,
};

/// A sequence of decisions from a seeded stream, or from the bytes of a fuzzer.
pub(crate) enum Choices<'a> {
    /// Random decisions for that many operations.
    Random(Rng, u32),
    /// Decisions until no bytes are left; then every decision is the first choice.
    #[allow(dead_code, reason = "fuzz targets have them")]
    Bytes(&'a [u8]),
}

impl Choices<'_> {
    /// Returns true if another operation is to be done.
    pub(crate) fn go_on(&mut self) -> bool {
        match self {
            Choices::Random(_, left) => {
                *left = left.saturating_sub(1);
                *left > 0
            }
            Choices::Bytes(bytes) => !bytes.is_empty(),
        }
    }

    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        match self {
            Choices::Random(rng, _) => core::array::from_fn(|_| rng.next_u64() as u8),
            Choices::Bytes(bytes) => {
                let mut taken = [0; N];
                let len = N.min(bytes.len());
                let (first, rest) = bytes.split_at(len);
                taken[..len].copy_from_slice(first);
                *bytes = rest;
                taken
            }
        }
    }

    /// A number below `most`.
    pub(crate) fn below(&mut self, most: u32) -> u32 {
        match most {
            0 | 1 => 0,
            2..=256 => u32::from(self.bytes::<1>()[0]) % most,
            _ => u32::from_le_bytes(self.bytes()) % most,
        }
    }

    /// Returns true once in `times` decisions on average.
    pub(crate) fn one_in(&mut self, times: u32) -> bool {
        // The first choice is false.
        self.below(times) == times - 1
    }

    pub(crate) fn bit(&mut self) -> bool {
        self.below(2) == 1
    }

    pub(crate) fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u32) as usize]
    }

    /// A number, often near `near` or an edge.
    pub(crate) fn number(&mut self, near: u64) -> u64 {
        match self.below(8) {
            0 => near.wrapping_add(u64::from(self.below(8))),
            1 => near.wrapping_sub(u64::from(self.below(8))),
            2 => near.wrapping_add(u64::from(self.below(5_000))),
            3 => u64::from(self.below(80)),
            4 => {
                let edge = 1u64 << self.of(&[8, 16, 23, 24, 32, 48, 63]);
                edge.wrapping_sub(u64::from(self.below(3)))
            }
            5 => u64::MAX - u64::from(self.below(3)),
            _ => u64::from_le_bytes(self.bytes()) >> self.of(&[0, 16, 32, 40, 48]),
        }
    }

    fn time(&mut self, now: Time) -> Time {
        Time::from_ps(self.number(now.as_ps()))
    }

    fn bits(&mut self) -> u64 {
        match self.below(4) {
            0 => 1,
            1 => u64::MAX,
            _ => u64::from_le_bytes(self.bytes()),
        }
    }
}

/// Number of kinds of packet. A new kind must be added here and in [`any_body`].
pub(crate) const PACKET_KINDS: usize = 6 + ControlKind::ALL.len();

pub(crate) fn kind_of_packet(body: &Body) -> usize {
    match body {
        Body::Data(_) => 0,
        Body::Rd(_) => 1,
        Body::Ack(_) => 2,
        Body::Nack(_) => 3,
        Body::Cnp => 4,
        Body::Missing(_) => 5,
        Body::Control(control) => 6 + control.kind() as usize,
    }
}

/// Knowledge of a hostile peer about the queue pair that it attacks.
pub(crate) struct Aim {
    pub(crate) now: Time,
    /// PSN that the queue pair expects from the hostile peer, and one that it has in flight to it.
    pub(crate) data_psn: u64,
    pub(crate) own_psn: u64,
    pub(crate) mtu_payload: u16,
    /// Keys that are in use.
    pub(crate) rkeys: [u64; 2],
    /// Number of paths on which both ends agreed.
    pub(crate) paths: u16,
}

/// A packet of any kind with any fields. Its path is one of those agreed on if drivers ensure that.
pub(crate) fn any_body(choices: &mut Choices<'_>, aim: &Aim) -> (Body, PathId) {
    let body = match choices.below(26) {
        0..=7 => any_data(choices, aim),
        8..=11 => Body::Ack(Ack {
            cumulative: choices.number(aim.own_psn),
            psn: choices.number(aim.own_psn),
            back: choices.number(0) as u8,
            sack: choices.bits(),
            echo_sent_at: choices.time(aim.now),
            received_at: choices.time(aim.now),
            packets: choices.number(1) as u16,
            marked: choices.number(0) as u16,
            notices: choices.of(&[NoticePermission::Welcome, NoticePermission::Paused]),
        }),
        12..=14 => Body::Nack(Nack {
            expected: choices.number(aim.own_psn),
            psn: choices.number(aim.own_psn),
            sack: choices.bits(),
            // The last two end the queue pair, so they are rare.
            reason: match choices.below(16) {
                14 => NackReason::RemoteAccess,
                15 => NackReason::InvalidRequest,
                _ => choices.of(&[
                    NackReason::Sequence,
                    NackReason::BeyondWindow,
                    NackReason::ReceiverNotReady,
                    NackReason::Trimmed(TrimmedAt::OnTheWay),
                    NackReason::Trimmed(TrimmedAt::LastHop),
                ]),
            },
            marked: choices.below(2) == 0,
        }),
        15 => Body::Cnp,
        16 => Body::Control(Control::Probe { sent_at: choices.time(aim.now) }),
        17 => Body::Control(Control::ProbeReply {
            sent_at: choices.time(aim.now),
            received_at: choices.time(aim.now),
        }),
        18 | 19 => Body::Control(Control::Notice {
            first: choices.number(aim.data_psn),
            last: choices.number(aim.data_psn),
            sent_at: choices.time(aim.now),
        }),
        20 => Body::Control(Control::NoticeReply {
            sent_at: choices.time(aim.now),
            received_at: choices.time(aim.now),
            marked: choices.bit(),
        }),
        21 => Body::Missing(Missing {
            first: choices.number(aim.own_psn),
            missing: choices.bits(),
            cause: choices.of(&[MissingCause::Lost, MissingCause::Late]),
        }),
        22 => Body::Control(Control::EdgeEcho { sent_at: choices.time(aim.now) }),
        23 => Body::Control(Control::Pull { granted: any_credit(choices) }),
        24 => Body::Control(Control::PullRequest { target: any_credit(choices) }),
        _ => Body::Rd(any_rd(choices, aim.data_psn, aim.mtu_payload)),
    };
    let any = choices.number(0) as u16;
    let path = match body {
        Body::Cnp => any % aim.paths,
        Body::Control(control) if !control.is_question() => any % aim.paths,
        _ => any,
    };
    (body, PathId(path))
}

/// A small, large or arbitrary credit number.
pub(crate) fn any_credit(choices: &mut Choices<'_>) -> CreditNumber {
    CreditNumber::new(choices.number(100))
}

fn any_data(choices: &mut Choices<'_>, aim: &Aim) -> Body {
    let mtu = aim.mtu_payload;
    let op = choices.of(&[
        Operation::Send,
        Operation::SendImm,
        Operation::Write,
        Operation::WriteImm,
        Operation::ReadRequest,
        Operation::ReadResponse,
    ]);
    let psn = choices.number(aim.data_psn);
    Body::Data(Data {
        psn,
        msn: choices.number(psn) as u32,
        offset: match choices.below(4) {
            0 => 0,
            1 => choices.below(16) * u32::from(mtu),
            _ => choices.number(u64::from(mtu)) as u32,
        },
        len: match choices.below(5) {
            0 | 1 => mtu,
            2 => choices.below(u32::from(mtu)) as u16,
            3 => 0,
            _ => choices.number(u64::from(mtu)) as u16,
        },
        op,
        last: choices.bit(),
        retransmit: choices.bit(),
        ack_request: choices.below(8) == 0,
        rkey: match choices.below(4) {
            0 => choices.number(aim.rkeys[0]),
            1 => aim.rkeys[0],
            _ => aim.rkeys[1],
        },
        remote_addr: choices.number(0),
        imm: choices.number(5_000) as u32,
        receive_index: choices.number(0) as u32,
        sent_at: choices.time(aim.now),
    })
}

/// A datagram's packet with any fields.
pub(crate) fn any_rd(choices: &mut Choices<'_>, psn: u64, mtu_payload: u16) -> RdData {
    let multi = choices.bit();
    RdData {
        psn: choices.number(psn),
        msg_id: choices.number(0) as u16,
        multi,
        offset: match choices.below(3) {
            _ if !multi => 0,
            0 => choices.below(16) * u32::from(mtu_payload),
            _ => choices.number(0) as u32,
        },
        len: if choices.bit() { mtu_payload } else { choices.number(1) as u16 },
        retransmit: choices.bit(),
    }
}

/// A packet from a stranger, or for another host.
pub(crate) fn stray(choices: &mut Choices<'_>, aim: &Aim, known: &[QpNum]) -> Segment {
    let (body, path) = any_body(choices, aim);
    let mut number = || if choices.bit() { choices.of(known) } else { QpNum(choices.number(2) as u32) };
    Segment::new(number(), number(), path, body)
}
