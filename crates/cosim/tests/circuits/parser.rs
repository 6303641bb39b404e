//! Compares the parser circuit with `crates/wire`. Both must accept the same frames, with the same segment, addresses
//! and lengths. Inputs are the seeds of the fuzz targets, packets of every kind, and damaged forms of both.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::path::Path;

use pathweave_cosim::{Circuit, Model, Reader};
use pathweave_units::{PathId, QpNum, Rng, Time, TrimmedAt};
use pathweave_wire::{
    Ack, Body, Control, CreditNumber, Data, Ecn, EthernetAddresses, FrameAddressing, Missing, MissingCause,
    Nack, NackReason, NoticePermission, Operation, Packet, RdData, Segment, extend_psn,
};

use crate::frames::{ETHERNET, a_send, beats, damage, fix_checksums, frame, route, segment};
use crate::support;

const WORDS: (usize, usize) = (19, 25);
/// Latency in clocks from a frame's last beat.
const LATENCY: usize = 10;
/// Expected PSN for the expansion of 24-bit PSNs.
const NEAR: u64 = 1 << 40;

/// Parsed fields of an accepted packet.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ParsedPacket {
    segment: Segment,
    route: FrameAddressing,
    payload_len: usize,
}

/// Returns the result of `crates/wire`.
fn expected(frame: &[u8]) -> Option<ParsedPacket> {
    let packet = Packet::parse_ethernet(frame).ok()?;
    Some(ParsedPacket {
        segment: packet.segment(NEAR),
        route: *packet.route(),
        payload_len: packet.payload().len(),
    })
}

fn big_endian<const N: usize>(reader: &mut Reader<'_>) -> [u8; N] {
    let mut bytes: [u8; N] = std::array::from_fn(|_| reader.take(8) as u8);
    bytes.reverse();
    bytes
}

fn at(bytes: &[u8], at: usize, len: usize) -> u64 {
    bytes[at..at + len].iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// Returns the circuit's result: `None` if nothing leaves, `Some(None)` for a rejected frame.
fn told(words: &[u32]) -> Option<Option<ParsedPacket>> {
    let mut reader = Reader::new(words);
    let valid = reader.take(32) == 1;
    let (dst_qp, src_qp) = (QpNum(reader.take(24) as u32), QpNum(reader.take(24) as u32));
    let psn = extend_psn(reader.take(24) as u32, NEAR);
    let ack_request = reader.take(8) == 1;
    let opcode = reader.take(8) as u8;
    let (ttl, tos, flags) = (reader.take(8) as u8, reader.take(8) as u8, reader.take(8) as u8);
    let (path, src_port) = (PathId(reader.take(16) as u16), reader.take(16) as u16);
    let payload_len = reader.take(16) as usize;
    let addresses: [u8; 8] = big_endian(&mut reader);
    let ethernet: [u8; 12] = big_endian(&mut reader);
    let standard: [u8; 16] = big_endian(&mut reader);
    let imm = reader.take(32) as u32;
    let extension: [u8; 32] = big_endian(&mut reader);
    let accepted = reader.take(32) == 1;
    if !valid {
        return None;
    }
    if !accepted {
        return Some(None);
    }
    let from = |at_byte: usize, len| at(&extension, at_byte - 8, len);
    let stamp = |at_byte| Time::from_ps(from(at_byte, 8));
    let credit = |at_byte| CreditNumber::new(from(at_byte, 4));
    let body = match opcode & 0x3f {
        low @ 0..=0x10 => {
            let (last, with_imm) = match low {
                0x03 | 0x05 | 0x09 | 0x0b => (true, true),
                0x02 | 0x04 | 0x08 | 0x0a | 0x0c | 0x0f | 0x10 => (true, false),
                _ => (false, false),
            };
            let op = match (low, flags & 2 != 0) {
                (0..=0x05, false) => Operation::Send,
                (0..=0x05, true) => Operation::SendImm,
                (0x06..=0x0b, false) => Operation::Write,
                (0x06..=0x0b, true) => Operation::WriteImm,
                (0x0c, _) => Operation::ReadRequest,
                _ => Operation::ReadResponse,
            };
            let (reference, offset) = (from(16, 4), from(12, 4) as u32);
            let writes = matches!(op, Operation::Write | Operation::WriteImm);
            let (address, dma) = (at(&standard, 0, 8), at(&standard, 12, 4) as u32);
            let keyed = writes || op == Operation::ReadRequest;
            Body::Data(Data {
                psn,
                msn: from(8, 4) as u32,
                offset,
                len: payload_len as u16,
                op,
                last,
                retransmit: flags & 1 != 0,
                ack_request: ack_request && !last,
                rkey: if keyed { reference << 32 | at(&standard, 8, 4) } else { 0 },
                remote_addr: match op {
                    Operation::Write | Operation::WriteImm => address - u64::from(offset),
                    Operation::ReadRequest => address,
                    Operation::ReadResponse => reference,
                    _ => 0,
                },
                imm: match () {
                    () if with_imm => imm,
                    () if writes && !last || op == Operation::ReadRequest => dma,
                    () => 0,
                },
                receive_index: match op {
                    Operation::Send | Operation::SendImm => reference as u32,
                    Operation::WriteImm if with_imm => from(28, 4) as u32,
                    _ => 0,
                },
                sent_at: stamp(20),
            })
        }
        0x11 if standard[0] == 0x1f => Body::Ack(Ack {
            cumulative: extend_psn(from(9, 3) as u32, NEAR),
            psn,
            back: from(8, 1) as u8,
            sack: from(16, 8),
            echo_sent_at: stamp(24),
            received_at: stamp(32),
            packets: from(12, 2) as u16,
            marked: from(14, 2) as u16,
            notices: if flags & 4 == 0 { NoticePermission::Welcome } else { NoticePermission::Paused },
        }),
        0x11 => Body::Nack(Nack {
            expected: extend_psn(from(9, 3) as u32, NEAR),
            psn,
            sack: from(12, 8),
            reason: match standard[0] {
                0x20 => NackReason::ReceiverNotReady,
                0x60 => NackReason::Sequence,
                0x61 => NackReason::InvalidRequest,
                0x62 => NackReason::RemoteAccess,
                0x70 => NackReason::BeyondWindow,
                0x71 => NackReason::Trimmed(TrimmedAt::OnTheWay),
                _ => NackReason::Trimmed(TrimmedAt::LastHop),
            },
            marked: flags & 8 != 0,
        }),
        0x12 => Body::Control(Control::Pull { granted: credit(8) }),
        0x13 => Body::Control(Control::PullRequest { target: credit(8) }),
        0x15 => Body::Control(Control::Notice {
            first: psn,
            last: extend_psn(from(9, 3) as u32, psn),
            sent_at: stamp(12),
        }),
        0x16 => Body::Control(Control::NoticeReply {
            sent_at: stamp(8),
            received_at: stamp(16),
            marked: flags & 8 != 0,
        }),
        0x17 => {
            let cause = if flags & 0x10 == 0 { MissingCause::Lost } else { MissingCause::Late };
            Body::Missing(Missing { first: psn, missing: from(8, 8), cause })
        }
        0x18 => Body::Cnp,
        0x19 => Body::Control(Control::Probe { sent_at: stamp(8) }),
        0x1a => Body::Control(Control::ProbeReply { sent_at: stamp(8), received_at: stamp(16) }),
        0x1b => Body::Rd(RdData {
            psn,
            msg_id: from(9, 2) as u16,
            multi: from(8, 1) == 0x80,
            offset: from(13, 4) as u32,
            len: payload_len as u16,
            retransmit: flags & 1 != 0,
        }),
        _ => Body::Control(Control::EdgeEcho { sent_at: stamp(8) }),
    };
    let pull_target = (flags & 0x20 != 0).then(|| match opcode & 0x3f {
        // In a WRITE with immediate, the receive field precedes it.
        0x09 | 0x0b => credit(32),
        _ => credit(28),
    });
    let mac = |start: usize| ethernet[start..start + 6].try_into().expect("six bytes");
    let route = FrameAddressing {
        ethernet: Some(EthernetAddresses { dst: mac(0), src: mac(6) }),
        src_ip: (at(&addresses, 0, 4) as u32).into(),
        dst_ip: (at(&addresses, 4, 4) as u32).into(),
        src_port,
        dscp: tos >> 2,
        ecn: Ecn::from_bits(tos),
        ttl,
    };
    Some(Some(ParsedPacket {
        segment: Segment { dst_qp, src_qp, path, pull_target, body },
        route,
        payload_len,
    }))
}

struct Bench {
    model: Model,
    /// Numbers of accepted and rejected frames.
    decided: [usize; 2],
}

impl Bench {
    fn new() -> Option<Self> {
        let circuit = Circuit { bench: "parser", parameters: &[], words: WORDS };
        let mut model = support::build(&circuit)?;
        let mut reset = vec![0; WORDS.0];
        reset[0] = 1;
        model.run(&vec![reset; LATENCY + 2]);
        Some(Bench { model, decided: [0; 2] })
    }

    /// Sends frames, with idle clocks before some beats. Each must be decided after exactly the latency.
    fn run(&mut self, rng: &mut Rng, frames: &[Vec<u8>]) {
        let idle = |rng: &mut Rng| {
            let mut words: Vec<u32> = (0..WORDS.0).map(|_| rng.next_u64() as u32).collect();
            words[0] = 0;
            words
        };
        let (mut stimuli, mut due) = (Vec::new(), VecDeque::new());
        for frame in frames {
            let pauses = rng.below(3) == 0;
            for beat in beats(frame, rng.next_u64() as u8) {
                while pauses && rng.below(3) == 0 {
                    stimuli.push(idle(rng));
                }
                // `keep` is ignored in all beats but the last.
                let keep = if beat.last { beat.keep() } else { rng.next_u64() };
                let mut words = vec![2 | u32::from(beat.last) << 2, keep as u32, (keep >> 32) as u32];
                words.extend(beat.words());
                stimuli.push(words);
            }
            due.push_back((stimuli.len() - 1 + LATENCY, frame));
        }
        stimuli.extend((0..=LATENCY).map(|_| idle(rng)));
        for (clock, response) in self.model.run(&stimuli).iter().enumerate() {
            let is_due = due.front().is_some_and(|(at, _)| *at == clock);
            let frame = if is_due { due.pop_front() } else { None };
            let wants = frame.map(|(_, frame)| expected(frame));
            if let Some(decision) = &wants {
                self.decided[usize::from(decision.is_none())] += 1;
            }
            let found = told(response);
            assert_eq!(
                found,
                wants,
                "clock {clock}, frame {:02x?}: {:?}",
                frame.map(|(_, frame)| frame),
                frame.map(|(_, frame)| Packet::parse_ethernet(frame).map(|_| "accepted"))
            );
        }
        assert!(due.is_empty());
    }
}

/// Returns every seed of every fuzz target as a frame, also behind an Ethernet header, and that also with corrected
/// lengths and checksums.
fn seeds() -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    let entries = |folder: &Path| {
        let mut paths: Vec<_> =
            fs::read_dir(folder).expect("seeds").map(|entry| entry.expect("a seed").path()).collect();
        paths.sort();
        paths
    };
    let files = entries(&root).into_iter().flat_map(|target| entries(&target));
    files
        .flat_map(|file| {
            let bare = fs::read(file).expect("a seed");
            let mut behind = vec![2; 12];
            behind.extend([8, 0]);
            behind.extend(&bare);
            let mut resealed = behind.clone();
            fix_checksums(&mut resealed, false);
            let mut summed = behind.clone();
            fix_checksums(&mut summed, true);
            [bare, behind, resealed, summed]
        })
        .filter(|frame| !frame.is_empty())
        .collect()
}

fn random(bench: &mut Bench, rng: &mut Rng, seeds: &[Vec<u8>], count: usize) {
    let frames: Vec<Vec<u8>> = (0..count)
        .map(|_| {
            let mut frame = if rng.below(3) == 0 {
                seeds[rng.below(seeds.len() as u32) as usize].clone()
            } else {
                let longest = [8, 64, 600][rng.below(3) as usize];
                let segment = segment(rng, longest);
                let route = route(rng, &segment);
                let mut frame = frame(rng, &segment, &route);
                if rng.below(8) == 0 {
                    fix_checksums(&mut frame, true);
                }
                frame
            };
            for _ in 0..rng.below(3) {
                damage(rng, &mut frame);
            }
            frame
        })
        .collect();
    bench.run(rng, &frames);
}

#[test]
fn it_decides_as_the_wire_crate_does() {
    let Some(mut bench) = Bench::new() else { return };
    let mut rng = Rng::for_component(1, "cosim-parser", 0);
    let seeds = seeds();
    bench.run(&mut rng, &seeds);
    assert!(bench.decided[0] > 60, "{:?} of the seeds", bench.decided);
    random(&mut bench, &mut rng, &seeds, 3_000);
    assert!(bench.decided.iter().all(|count| *count > 800), "{:?}", bench.decided);
}

/// Tests a packet of each kind, with and without a pull target: unchanged, with each bit of its headers from the BTH
/// on changed, and with a word less or more before the ICRC.
#[test]
fn each_bit_of_a_header_and_each_word_counts_as_in_the_wire_crate() {
    let Some(mut bench) = Bench::new() else { return };
    let mut rng = Rng::for_component(1, "cosim-parser", 3);
    // 17 opcodes of data twice; an acknowledgement and 7 refusals; CNP, RD and Missing; 7 of schemes.
    const KINDS: usize = 34 + 8 + 3 + 7;
    let bth = ETHERNET + 28;
    let mut seen = BTreeSet::new();
    while seen.len() < KINDS {
        let segment = segment(&mut rng, 12);
        let route = route(&mut rng, &segment);
        let whole = frame(&mut rng, &segment, &route);
        let syndrome = if whole[bth] == 0xd1 { whole[bth + 12] } else { 0 };
        if !seen.insert((whole[bth], syndrome, segment.pull_target.is_some())) {
            continue;
        }
        let payload = expected(&whole).expect("our own frame").payload_len;
        let (pad, end) = (usize::from(whole[bth + 1] >> 4), whole.len() - 4);
        let mut frames = vec![whole.clone()];
        for at in bth..end - pad - payload {
            for bit in 0..8 {
                let mut changed = whole.clone();
                changed[at] ^= 1 << bit;
                frames.push(changed);
            }
        }
        let mut shorter = whole.clone();
        shorter.drain(end - 4..end);
        let mut longer = whole.clone();
        longer.splice(end..end, [0; 4]);
        frames.extend([shorter, longer]);
        for frame in &mut frames[1..] {
            fix_checksums(frame, false);
        }
        bench.run(&mut rng, &frames);
    }
    assert!(bench.decided.iter().all(|count| *count > 4_000), "{:?}", bench.decided);
}

/// Tests every truncation of a frame, and extra bytes behind it up to the next beat.
#[test]
fn it_notices_every_cut() {
    let Some(mut bench) = Bench::new() else { return };
    let mut rng = Rng::for_component(1, "cosim-parser", 1);
    for _ in 0..6 {
        let segment = segment(&mut rng, 140);
        let route = route(&mut rng, &segment);
        let whole = frame(&mut rng, &segment, &route);
        let mut longer = whole.clone();
        longer.extend(std::iter::repeat_n(0x5a, 70));
        let frames: Vec<Vec<u8>> = (1..=longer.len()).map(|len| longer[..len].to_vec()).collect();
        let before = bench.decided;
        bench.run(&mut rng, &frames);
        assert_eq!([0, 1].map(|i| bench.decided[i] - before[i]), [71, whole.len() - 1], "{segment:?}");
    }
}

/// Tests frames of the largest size, back to back.
#[test]
fn it_takes_the_longest_frames() {
    let Some(mut bench) = Bench::new() else { return };
    let mut rng = Rng::for_component(1, "cosim-parser", 2);
    let mut frames = Vec::new();
    for len in [65_535 - 28 - 12 - 28 - 4 - 3, 9_000, 4_096] {
        let body = Body::Data(Data { msn: 6, ..a_send(5, len as u16) });
        let segment = Segment::new(QpNum(1), QpNum(2), PathId(3), body);
        let route = route(&mut rng, &segment);
        let mut good = frame(&mut rng, &segment, &route);
        assert!(len < 9_000 || good.len() > len + ETHERNET);
        fix_checksums(&mut good, true);
        let mut bad = good.clone();
        bad[len / 2 + 80] ^= 4;
        frames.extend([good, bad]);
    }
    bench.run(&mut rng, &frames);
    assert_eq!(bench.decided, [3, 3]);
}

/// Runs `COSIM_OPERATIONS` frames. Default: ten million.
#[test]
#[ignore = "an hour: `make hardware-test`"]
fn ten_million_frames_are_decided_as_the_wire_crate_does() {
    let operations = support::operations();
    let Some(mut bench) = Bench::new() else { return };
    let mut rng = Rng::for_component(2, "cosim-parser", 0);
    let seeds = seeds();
    let mut left = operations;
    while left > 0 {
        let part = left.min(1_000);
        random(&mut bench, &mut rng, &seeds, part);
        left -= part;
        support::progress(operations - left - part, operations - left);
    }
    println!(
        "{operations} frames ({} accepted, {} refused), no difference",
        bench.decided[0], bench.decided[1]
    );
}
