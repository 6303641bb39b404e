//! The parser as a circuit against the crate `wire`: of every frame both say the same, and what it holds.

use std::collections::VecDeque;
use std::path::Path;

use pathweave_cosim::{Circuit, Model, Reader, Writer};
use pathweave_units::Rng;
use pathweave_wire::{Body, Control, Packet};

use crate::support;

const WORDS: (usize, usize) = (19, 8);
/// From the last beat of a frame to the answer.
const LATENCY: u64 = 6;

/// What the circuit tells of a good frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Told {
    destination_qp: u32,
    source_qp: u32,
    path: u16,
    psn: u32,
    negative: bool,
    /// Picoseconds; `None` where the packet has none.
    sent_at: Option<u64>,
    received_at: Option<u64>,
}

/// What `wire` says of it; `None` if it refuses.
fn parsed(frame: &[u8]) -> Option<Told> {
    let packet = Packet::parse_ethernet(frame).ok()?;
    let segment = packet.segment(1 << 40);
    let mut negative = false;
    let (sent_at, received_at) = match segment.body {
        Body::Data(data) => (Some(data.sent_at), None),
        Body::Ack(ack) => (Some(ack.echo_sent_at), Some(ack.received_at)),
        Body::Nack(_) => {
            negative = true;
            (None, None)
        }
        Body::Cnp | Body::Missing(_) | Body::Rd(_) => (None, None),
        Body::Control(control) => match control {
            Control::Probe { sent_at }
            | Control::EdgeEcho { sent_at, .. }
            | Control::Notice { sent_at, .. } => (Some(sent_at), None),
            Control::ProbeReply { sent_at, received_at }
            | Control::NoticeReply { sent_at, received_at, .. } => (Some(sent_at), Some(received_at)),
        },
    };
    Some(Told {
        destination_qp: packet.dst_qp().0,
        source_qp: packet.src_qp().0,
        path: segment.path.0,
        // The BTH's: behind Ethernet, IPv4 and UDP.
        psn: u32::from_be_bytes([0, frame[51], frame[52], frame[53]]),
        negative,
        sent_at: sent_at.map(|at| at.as_ps()),
        received_at: received_at.map(|at| at.as_ps()),
    })
}

struct Bench {
    model: Model,
    frames: u64,
    good: u64,
}

impl Bench {
    fn new() -> Option<Self> {
        let mut model = support::build(&Circuit { bench: "parser", parameters: &[], words: WORDS })?;
        model.run(&vec![Writer::new().put(1u8, 1).words(WORDS.0); 8]);
        Some(Bench { model, frames: 0, good: 0 })
    }

    /// Sends frames, `gap` saying how many clocks pass before each beat, and compares every clock.
    fn run(&mut self, frames: &[Vec<u8>], mut gap: impl FnMut() -> usize) {
        let idle = || Writer::new().words(WORDS.0);
        let (mut stimuli, mut due) = (Vec::new(), VecDeque::new());
        for frame in frames {
            let beats = frame.chunks(64).count();
            for (beat, bytes) in frame.chunks(64).enumerate() {
                stimuli.extend((0..gap()).map(|_| idle()));
                let keep = u64::MAX >> (64 - bytes.len());
                let last = beat + 1 == beats;
                stimuli.push(
                    Writer::new()
                        .put(0u8, 1)
                        .put(1u8, 1)
                        .put(last, 1)
                        .put(keep, 64)
                        .bytes(bytes)
                        .words(WORDS.0),
                );
            }
            due.push_back((stimuli.len() as u64 - 1 + LATENCY, frame));
        }
        stimuli.extend((0..LATENCY).map(|_| idle()));
        for (clock, response) in (0..).zip(self.model.run(&stimuli)) {
            let is_due = due.front().is_some_and(|(at, _)| *at == clock);
            assert_eq!(response[0] & 1 == 1, is_due, "clock {clock}");
            if is_due && let Some((_, frame)) = due.pop_front() {
                self.compare(frame, &response);
            }
        }
        assert!(due.is_empty());
    }

    fn compare(&mut self, frame: &[u8], response: &[u32]) {
        let expected = parsed(frame);
        self.frames += 1;
        self.good += u64::from(expected.is_some());
        let mut reader = Reader::new(response);
        let (_valid, good) = (reader.flag(), reader.flag());
        let (_opcode, negative) = (reader.take(6), reader.flag());
        let told = Told {
            destination_qp: reader.take(24) as u32,
            source_qp: reader.take(24) as u32,
            psn: reader.take(24) as u32,
            path: reader.take(16) as u16,
            negative,
            sent_at: Some(reader.take(64)),
            received_at: Some(reader.take(64)),
        };
        // What the packet has not, the circuit may tell as it likes.
        let told = good.then(|| Told {
            sent_at: told.sent_at.filter(|_| expected.is_some_and(|e| e.sent_at.is_some())),
            received_at: told.received_at.filter(|_| expected.is_some_and(|e| e.received_at.is_some())),
            ..told
        });
        assert_eq!(told, expected, "{:?} of {frame:02x?}", Packet::parse_ethernet(frame).map(|_| ()));
    }
}

/// The seeds of the fuzz targets for frames, all with an Ethernet header.
fn corpus() -> Vec<Vec<u8>> {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    let mut frames = Vec::new();
    for target in ["wire", "wire_resealed"] {
        let mut files: Vec<_> = std::fs::read_dir(seeds.join(target))
            .expect("seeds of the target")
            .map(|entry| entry.expect("a file").path())
            .collect();
        files.sort();
        for file in files {
            let bytes = std::fs::read(file).expect("a readable seed");
            if bytes.is_empty() {
                continue;
            }
            // Those that begin with an IPv4 header get one before it.
            let mut framed = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
            framed.extend(&bytes);
            frames.push(bytes);
            frames.push(framed);
        }
    }
    assert!(frames.len() > 40, "{} frames", frames.len());
    frames
}

/// Lengths and checksums made right, so that a change reaches the fields behind them. As the fuzz target `wire_resealed` does.
fn reseal(frame: &mut [u8]) {
    if frame.len() < 62 {
        return;
    }
    frame[12..14].copy_from_slice(&[8, 0]);
    let packet = &mut frame[14..];
    let len = packet.len() as u16;
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&len.to_be_bytes());
    packet[6..8].copy_from_slice(&[0x40, 0]);
    packet[9] = 17;
    packet[10..12].fill(0);
    let mut sum: u32 = packet[..20].chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    packet[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    packet[22..24].copy_from_slice(&4791u16.to_be_bytes());
    packet[24..26].copy_from_slice(&(len - 20).to_be_bytes());
    packet[26..28].fill(0);
    seal(packet);
}

/// The ICRC made right.
fn seal(packet: &mut [u8]) {
    let end = packet.len() - 4;
    let mut covered = vec![0xff; 8];
    covered.extend_from_slice(&packet[..end]);
    for masked in [1, 8, 10, 11, 26, 27, 32] {
        covered[8 + masked] = 0xff;
    }
    packet[end..].copy_from_slice(&crc32fast::hash(&covered).to_le_bytes());
}

/// A UDP checksum, right or nearly so.
fn sum(frame: &mut [u8], off: u16) {
    if frame.len() < 62 {
        return;
    }
    let packet = &mut frame[14..];
    packet[26..28].fill(0);
    let mut sum: u32 = 17 + packet.len() as u32 - 20;
    for word in packet[12..].chunks(2) {
        sum += u32::from(u16::from_be_bytes([word[0], word.get(1).copied().unwrap_or(0)]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    let checksum = (!(sum as u16)).wrapping_add(off);
    packet[26..28].copy_from_slice(&checksum.to_be_bytes());
    // The checksum does not count in the ICRC, but is counted itself, which the ICRC is: so this changes nothing there.
}

fn mutated(rng: &mut Rng, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut frame = corpus[rng.below(corpus.len() as u32) as usize].clone();
    let at = |rng: &mut Rng, frame: &[u8]| rng.below(frame.len() as u32) as usize;
    for _ in 0..rng.below(4) {
        let place = at(rng, &frame);
        match rng.below(8) {
            0..3 => frame[place] ^= 1 << rng.below(8),
            3 => frame[place] = [0, 1, 0x7f, 0x80, 0xff][rng.below(5) as usize],
            4 => frame.truncate(place.max(1)),
            5 => frame.extend((0..rng.below(200)).map(|_| rng.next_u64() as u8)),
            6 => frame.extend(vec![0; 4 * rng.below(40) as usize]),
            _ if frame.len() > 48 => frame[42] = 0xc0 | rng.below(32) as u8,
            _ => {}
        }
    }
    match rng.below(8) {
        0..5 => reseal(&mut frame),
        5 => {
            reseal(&mut frame);
            sum(&mut frame, 0);
        }
        6 => {
            reseal(&mut frame);
            sum(&mut frame, rng.below(3) as u16);
        }
        _ => {}
    }
    // Padding of short frames, or a frame check sequence.
    if rng.below(4) == 0 {
        frame.extend((0..rng.below(70)).map(|_| rng.next_u64() as u8));
    }
    frame
}

fn fuzz(bench: &mut Bench, frames: usize) {
    let corpus = corpus();
    let mut rng = Rng::for_component(1, "cosim-parser", 0);
    bench.run(&corpus, || 0);
    let mut left = frames;
    while left > 0 {
        let part = left.min(500);
        left -= part;
        let batch: Vec<Vec<u8>> = (0..part).map(|_| mutated(&mut rng, &corpus)).collect();
        let mut gaps = rng.clone();
        let crowded = rng.below(2) == 0;
        bench.run(&batch, || if crowded { 0 } else { gaps.below(3) as usize });
    }
    assert!(bench.good * 10 > bench.frames, "{} of {} frames are good", bench.good, bench.frames);
}

#[test]
fn decides_as_wire_does_on_the_fuzz_corpus_and_what_comes_of_it() {
    let Some(mut bench) = Bench::new() else { return };
    fuzz(&mut bench, 10_000);
}

/// A packet of the greatest length, and one that says so and ends before.
#[test]
fn decides_as_wire_does_on_the_longest_frames() {
    let Some(mut bench) = Bench::new() else { return };
    let seed = corpus().into_iter().find(|frame| parsed(frame).is_some_and(|told| told.sent_at.is_some()));
    let mut frame = seed.expect("a good frame");
    frame[42] = 0xc4;
    frame.resize(14 + 65_532, 0);
    reseal(&mut frame);
    sum(&mut frame, 0);
    let mut short = frame.clone();
    short.truncate(40_000);
    bench.run(&[frame, short], || 0);
}

/// `COSIM_FRAMES` frames, a million unless it says otherwise.
#[test]
#[ignore = "minutes: `make hardware-test`"]
fn decides_as_wire_does_on_a_million_frames() {
    let frames = std::env::var("COSIM_FRAMES").map_or(1_000_000, |count| count.parse().expect("a number"));
    let Some(mut bench) = Bench::new() else { return };
    fuzz(&mut bench, frames);
    println!("{} frames, {} good, no difference", bench.frames, bench.good);
}
