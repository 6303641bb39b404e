//! Frames for circuits: packets of every kind, damaged ones, and the beats that carry them.

use pathweave_units::{PathId, QpNum, Rng, Time, TrimmedAt};
use pathweave_wire::{
    Ack, Body, Control, CreditNumber, Data, Ecn, EthernetAddresses, FrameAddressing, Missing, MissingCause,
    Nack, NackReason, NoticePermission, Operation, RdData, Segment, emit, entropy_port,
};

/// Size of an Ethernet header in bytes.
pub(crate) const ETHERNET: usize = 14;

/// Beat of an AXI-Stream with 512 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Beat {
    pub(crate) bytes: [u8; 64],
    /// Number of valid bytes: 64 in all beats but the last.
    pub(crate) len: usize,
    pub(crate) last: bool,
}

impl Beat {
    /// Returns the `keep` bits, which mark valid bytes.
    pub(crate) fn keep(&self) -> u64 {
        u64::MAX >> (64 - self.len)
    }
    /// Returns the data as 32-bit words.
    pub(crate) fn words(&self) -> impl Iterator<Item = u32> {
        self.bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")))
    }
}

/// Returns the beats of a frame. Invalid bytes of the last beat are `fill`.
pub(crate) fn beats(frame: &[u8], fill: u8) -> Vec<Beat> {
    let count = frame.len().div_ceil(64);
    let beat = |(i, chunk): (usize, &[u8])| {
        let mut bytes = [fill; 64];
        bytes[..chunk.len()].copy_from_slice(chunk);
        Beat { bytes, len: chunk.len(), last: i + 1 == count }
    };
    frame.chunks(64).enumerate().map(beat).collect()
}

fn time(rng: &mut Rng) -> Time {
    Time::from_ps(rng.next_u64())
}

fn credit(rng: &mut Rng) -> CreditNumber {
    CreditNumber::new(rng.next_u64())
}

fn data(rng: &mut Rng, longest: u32) -> Data {
    use Operation::{ReadRequest, ReadResponse, Send, SendImm, Write, WriteImm};
    let op = [Send, SendImm, Write, WriteImm, ReadRequest, ReadResponse][rng.below(6) as usize];
    let mut offset = if rng.below(2) == 0 { 0 } else { rng.next_u64() as u32 };
    let mut len = rng.below(longest) as u16;
    let mut last = rng.below(2) == 0;
    if op == ReadRequest {
        len = 0;
    }
    offset = offset.min(u32::MAX - u32::from(len));
    let writes = matches!(op, Write | WriteImm);
    if writes && len == 0 {
        (offset, last) = (0, true);
    }
    let mut imm = rng.next_u64() as u32;
    if writes && !last {
        imm = imm.max(offset + u32::from(len));
    }
    let address = rng.next_u64();
    Data {
        psn: u64::from(rng.below(1 << 24)),
        msn: rng.next_u64() as u32,
        offset,
        len,
        op,
        last,
        retransmit: rng.below(2) == 0,
        ack_request: !last && rng.below(2) == 0,
        rkey: rng.next_u64(),
        remote_addr: if op == ReadResponse { address >> 32 } else { address >> 1 },
        imm,
        receive_index: rng.next_u64() as u32,
        sent_at: time(rng),
    }
}

/// Returns a body of any kind, with payloads of less than `longest` bytes.
pub(crate) fn body(rng: &mut Rng, longest: u32) -> Body {
    use NackReason::{BeyondWindow, InvalidRequest, ReceiverNotReady, RemoteAccess, Sequence, Trimmed};
    let psn = u64::from(rng.below(1 << 24));
    match rng.below(18) {
        0..5 => Body::Data(data(rng, longest)),
        5 | 6 => {
            let (multi, len) = (rng.below(2) == 0, 1 + rng.below(longest - 1) as u16);
            let offset = if multi { (rng.next_u64() as u32).min(u32::MAX - u32::from(len)) } else { 0 };
            let (msg_id, retransmit) = (rng.next_u64() as u16, rng.below(2) == 0);
            Body::Rd(RdData { psn, msg_id, multi, offset, len, retransmit })
        }
        7 | 8 => Body::Ack(Ack {
            cumulative: u64::from(rng.below(1 << 24)),
            psn,
            back: rng.below(64) as u8,
            sack: rng.next_u64(),
            echo_sent_at: time(rng),
            received_at: time(rng),
            packets: rng.next_u64() as u16,
            marked: rng.next_u64() as u16,
            notices: if rng.below(2) == 0 { NoticePermission::Welcome } else { NoticePermission::Paused },
        }),
        9 => {
            let reasons = [
                Sequence,
                BeyondWindow,
                ReceiverNotReady,
                RemoteAccess,
                InvalidRequest,
                Trimmed(TrimmedAt::OnTheWay),
                Trimmed(TrimmedAt::LastHop),
            ];
            let reason = reasons[rng.below(7) as usize];
            let marked = matches!(reason, Trimmed(_)) && rng.below(2) == 0;
            let expected = u64::from(rng.below(1 << 24));
            Body::Nack(Nack { expected, psn, sack: rng.next_u64(), reason, marked })
        }
        10 => Body::Cnp,
        11 => {
            let cause = if rng.below(2) == 0 { MissingCause::Lost } else { MissingCause::Late };
            Body::Missing(Missing { first: psn, missing: rng.next_u64() | 1, cause })
        }
        kind => Body::Control(match kind {
            12 => {
                Control::Notice { first: psn, last: psn + u64::from(rng.below(1 << 23)), sent_at: time(rng) }
            }
            13 => {
                let marked = rng.below(2) == 0;
                Control::NoticeReply { sent_at: time(rng), received_at: time(rng), marked }
            }
            14 if rng.below(2) == 0 => Control::EdgeEcho { sent_at: time(rng) },
            14 => Control::ProbeReply { sent_at: time(rng), received_at: time(rng) },
            15 => Control::Probe { sent_at: time(rng) },
            16 => Control::Pull { granted: credit(rng) },
            _ => Control::PullRequest { target: credit(rng) },
        }),
    }
}

/// Returns a segment of any kind between any queue pairs, with values that frames can carry.
pub(crate) fn segment(rng: &mut Rng, longest: u32) -> Segment {
    let qp = |rng: &mut Rng| QpNum(rng.below(1 << 24));
    Segment {
        dst_qp: qp(rng),
        src_qp: qp(rng),
        path: PathId(rng.next_u64() as u16),
        // Only data carries it.
        pull_target: (rng.below(3) == 0).then(|| credit(rng)),
        body: body(rng, longest),
    }
    .normalized()
}

/// Returns random addresses and other fields that a frame has besides its segment.
pub(crate) fn route(rng: &mut Rng, segment: &Segment) -> FrameAddressing {
    let mac = |rng: &mut Rng| std::array::from_fn(|_| rng.next_u64() as u8);
    FrameAddressing {
        ethernet: Some(EthernetAddresses { dst: mac(rng), src: mac(rng) }),
        src_ip: (rng.next_u64() as u32).into(),
        dst_ip: (rng.next_u64() as u32).into(),
        src_port: entropy_port(segment.src_qp, segment.dst_qp, segment.path),
        dscp: rng.below(64) as u8,
        ecn: Ecn::from_bits(rng.below(4) as u8),
        ttl: rng.next_u64() as u8,
    }
}

/// Returns the frame of a segment with a random payload.
pub(crate) fn frame(rng: &mut Rng, segment: &Segment, route: &FrameAddressing) -> Vec<u8> {
    let len = match &segment.body {
        Body::Data(data) if data.op != Operation::ReadRequest => data.len.into(),
        Body::Rd(data) => data.len.into(),
        _ => 0,
    };
    let payload: Vec<u8> = (0..len).map(|_| rng.next_u64() as u8).collect();
    let mut out = vec![0; 70_000];
    let written = emit(segment, route, &payload, &mut out).expect("it fits a frame");
    out.truncate(written);
    out
}

/// Corrects the lengths and checksums of a frame that is long enough, so that the fields behind them are reached.
pub(crate) fn fix_checksums(frame: &mut [u8], checksum: bool) {
    let Some(packet) = frame.get_mut(ETHERNET..).filter(|packet| (44..=65_535).contains(&packet.len()))
    else {
        return;
    };
    let len = packet.len() as u16;
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&len.to_be_bytes());
    packet[6..8].copy_from_slice(&[0x40, 0]);
    packet[9] = 17;
    packet[22..24].copy_from_slice(&4791u16.to_be_bytes());
    packet[24..26].copy_from_slice(&(len - 20).to_be_bytes());
    packet[26..28].fill(0);
    seal(packet);
    if checksum {
        let mut pseudo = packet[12..20].to_vec();
        pseudo.extend([0, 17]);
        pseudo.extend((len - 20).to_be_bytes());
        pseudo.extend(&packet[20..]);
        let sum = match !folded(&pseudo) {
            0 => 0xffff,
            sum => sum,
        };
        packet[26..28].copy_from_slice(&sum.to_be_bytes());
    }
    frame[12..14].copy_from_slice(&[8, 0]);
}

fn folded(bytes: &[u8]) -> u16 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low));
    let mut sum: u32 = bytes.chunks(2).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Sets the IPv4 checksum and the ICRC as specified in docs/wire.md.
pub(crate) fn seal(packet: &mut [u8]) {
    packet[10..12].fill(0);
    let sum = !folded(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    let end = packet.len() - 4;
    let mut covered = vec![0xff; 8];
    covered.extend_from_slice(&packet[..end]);
    for masked in [1, 8, 10, 11, 26, 27, 32] {
        covered[8 + masked] = 0xff;
    }
    packet[end..].copy_from_slice(&crc32fast::hash(&covered).to_le_bytes());
}

/// Damages a frame as a network or an attacker may: some bytes, its length, bytes behind it.
pub(crate) fn damage(rng: &mut Rng, frame: &mut Vec<u8>) {
    match rng.below(8) {
        0 => frame.truncate(1 + rng.below(frame.len() as u32) as usize),
        1 => {
            let more = 1 + rng.below(80);
            frame.extend((0..more).map(|_| rng.next_u64() as u8));
        }
        2 => {
            // Changes bits of the type of service, time to live or FECN, which the ICRC does not cover, or any other
            // bits.
            let at = if rng.below(2) == 0 {
                [15, 22, 46][rng.below(3) as usize]
            } else {
                rng.below(frame.len() as u32)
            };
            if let Some(byte) = frame.get_mut(at as usize) {
                *byte ^= 1 << rng.below(8);
            }
        }
        kind => {
            for _ in 0..=rng.below(3) {
                // Mostly changes the headers.
                let reach = if rng.below(4) == 0 { frame.len() } else { frame.len().min(120) };
                let at = rng.below(reach as u32) as usize;
                frame[at] = match rng.below(4) {
                    0 => 0,
                    1 => 0xff,
                    2 => frame[at] ^ 1 << rng.below(8),
                    _ => rng.next_u64() as u8,
                };
            }
            if kind > 3 {
                fix_checksums(frame, rng.below(8) == 0);
            }
        }
    }
}

/// Returns a message of one packet, a SEND of `len` bytes. With `len` 0 it is the shortest data packet.
pub(crate) fn a_send(psn: u64, len: u16) -> Data {
    Data { psn, len, op: Operation::Send, last: true, ..Data::EMPTY }
}
