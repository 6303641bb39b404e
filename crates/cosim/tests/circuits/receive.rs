//! Compares the receive circuit, with builder and deparser behind it, with `crates/wire` and `policy::laps::pipeline`.
//! Frames to the host, answers, and the measurements from acknowledgements and replies must be equal and in order,
//! while all ends stall it.

use std::collections::VecDeque;

use pathweave_cosim::{Circuit, Model, Reader};
use pathweave_policy::laps::pipeline::{AckResult, Receiver, Ticks};
use pathweave_units::{PathId, QpNum, Rng, Time};
use pathweave_wire::{
    Ack, Body, Control, Ecn, EthernetAddresses, FrameAddressing, Nack, NackReason, NoticePermission,
    Operation, Packet, Segment, emit,
};

use crate::frames::{Beat, beats, damage, frame, route, segment};
use crate::support;

const WORDS: (usize, usize) = (22, 42);
const FLOW: u32 = 3;
const BUFFER: u32 = 7;
/// Size in bytes beyond which a frame is truncated.
const MAX_FRAME_BYTES: usize = 64 << (BUFFER - 1);
/// Picoseconds per clock.
const STEP: u64 = 4_000;

/// Measurement from an acknowledgement or a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Measurement {
    pub(crate) ack: bool,
    pub(crate) queue_pair: u32,
    pub(crate) address: u32,
    pub(crate) path: u16,
    pub(crate) delay: Ticks,
    pub(crate) stamp: u64,
}

/// Result of a frame.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// Frame to the host, with the two bits of the decision.
    pub(crate) to_host: Option<(Vec<u8>, u64)>,
    pub(crate) answer: Option<Vec<u8>>,
    pub(crate) heard: Option<Measurement>,
}

/// Returns the expected result of a frame that arrives at `now`.
pub(crate) fn outcome(answers: &mut Receiver, frame: &[u8], now: u64) -> Outcome {
    let frame = &frame[..frame.len().min(MAX_FRAME_BYTES)];
    let Ok(packet) = Packet::parse_ethernet(frame) else {
        return Outcome { to_host: Some((frame.to_vec(), 0)), ..Outcome::default() };
    };
    let question = packet.segment(0);
    let route = packet.route();
    let received_at = Time::from_ps(now);
    let mut outcome = Outcome { to_host: Some((frame.to_vec(), 1)), ..Outcome::default() };
    let answer = |body| {
        let ethernet = route.ethernet.expect("it came over Ethernet");
        let back = FrameAddressing {
            ethernet: Some(EthernetAddresses { dst: ethernet.src, src: ethernet.dst }),
            src_ip: route.dst_ip,
            dst_ip: route.src_ip,
            ecn: Ecn::Capable0,
            ttl: 64,
            ..*route
        };
        let segment = Segment::new(question.src_qp, question.dst_qp, question.path, body);
        let mut out = vec![0; 128];
        let len = emit(&segment, &back, &[], &mut out).expect("an answer");
        out.truncate(len);
        out
    };
    let heard = |ack, sent_at: Time, received_at: Time| Measurement {
        ack,
        queue_pair: question.dst_qp.0,
        address: route.src_ip.to_bits(),
        path: question.path.0,
        delay: Ticks::between(sent_at.as_ps(), received_at.as_ps()),
        stamp: (sent_at.as_ps() >> 10) & ((1 << 40) - 1),
    };
    match question.body {
        Body::Data(data) => {
            let psn = (data.psn & 0xff_ffff) as u32;
            match answers.arrived(question.dst_qp.0, psn) {
                Some(AckResult::Acknowledged { cumulative, selective }) => {
                    outcome.to_host = Some((frame.to_vec(), 3));
                    outcome.answer = Some(answer(Body::Ack(Ack {
                        cumulative: cumulative.into(),
                        psn: psn.into(),
                        back: 0,
                        sack: selective,
                        echo_sent_at: data.sent_at,
                        received_at,
                        packets: 1,
                        marked: u16::from(route.ecn == Ecn::Experienced),
                        notices: NoticePermission::Welcome,
                    })));
                }
                Some(AckResult::OutOfWindow { expected, selective }) => {
                    outcome.to_host = None;
                    outcome.answer = Some(answer(Body::Nack(Nack {
                        expected: expected.into(),
                        psn: psn.into(),
                        sack: selective,
                        reason: NackReason::BeyondWindow,
                        marked: false,
                    })));
                }
                None => {}
            }
        }
        Body::Control(Control::Probe { sent_at }) => {
            outcome.to_host = None;
            outcome.answer = Some(answer(Body::Control(Control::ProbeReply { sent_at, received_at })));
        }
        Body::Control(Control::ProbeReply { sent_at, received_at }) => {
            outcome.to_host = None;
            outcome.heard = Some(heard(false, sent_at, received_at));
        }
        Body::Ack(ack) => outcome.heard = Some(heard(true, ack.echo_sent_at, ack.received_at)),
        _ => {}
    }
    outcome
}

/// Assembler of a frame from its beats.
#[derive(Debug, Default)]
pub(crate) struct Assembly(Vec<u8>);

impl Assembly {
    /// Adds a beat, and returns the frame with its last beat.
    pub(crate) fn push(&mut self, beat: &Beat) -> Option<Vec<u8>> {
        self.0.extend(&beat.bytes[..beat.len]);
        beat.last.then(|| std::mem::take(&mut self.0))
    }
}

struct Bench {
    model: Model,
    answers: Receiver,
    now: u64,
    /// First PSN that has not been sent, by flow.
    next: [u32; 1 << FLOW],
    answered: usize,
    heard: usize,
}

impl Bench {
    fn new() -> Option<Self> {
        let parameters = [("FLOW", FLOW), ("BUFFER", BUFFER)];
        let mut model = support::build(&Circuit { bench: "receive", parameters: &parameters, words: WORDS })?;
        let stimulus = |flags: u32| {
            let mut words = vec![0; WORDS.0];
            words[0] = flags;
            words
        };
        let mut stimuli = vec![stimulus(1); 20];
        stimuli.extend(vec![stimulus(0); 8 + (1 << FLOW)]);
        model.run(&stimuli);
        let answers = Receiver::new(1 << FLOW);
        Some(Bench { model, answers, now: 0, next: [0; 1 << FLOW], answered: 0, heard: 0 })
    }

    /// Returns a frame of any kind, mostly of those that the receive side handles.
    fn frame(&mut self, rng: &mut Rng) -> Vec<u8> {
        let longest = if rng.below(40) == 0 { 6_000 } else { [8, 64, 300][rng.below(3) as usize] };
        let mut segment = segment(rng, longest);
        match &mut segment.body {
            Body::Data(data) if rng.below(8) > 0 => {
                let flow = rng.below(1 << FLOW) as usize;
                segment.dst_qp = QpNum(flow as u32);
                let next = &mut self.next[flow];
                *next += rng.below(3);
                let far = if rng.below(16) == 0 { 200 } else { 12 };
                let psn = (*next + rng.below(far)).wrapping_sub(6) & 0xff_ffff;
                data.psn = psn.into();
            }
            Body::Ack(ack) => {
                let took = rng.next_u64() >> (20 + rng.below(44));
                ack.received_at = Time::from_ps(ack.echo_sent_at.as_ps().wrapping_add(took));
            }
            _ => {}
        }
        let route = route(rng, &segment);
        let mut frame = frame(rng, &segment, &route);
        if rng.below(8) == 0 {
            damage(rng, &mut frame);
        }
        frame
    }

    /// Opens and closes flows, then sends frames with stalls at all ends.
    fn run(&mut self, rng: &mut Rng, count: usize) {
        let mut stimuli = Vec::new();
        for flow in 0..1 << FLOW {
            let up = rng.below(6) > 0;
            if rng.below(3) > 0 {
                continue;
            }
            let psn = if rng.below(2) == 0 { 0xff_fff0 } else { rng.below(1 << 24) };
            let mut words = vec![0; WORDS.0];
            words[0] = 1 << 3 | u32::from(up) << 4 | (flow as u32) << 8;
            words[1] = psn;
            stimuli.push(words);
            self.next[flow] = psn;
            if up { self.answers.open(flow, psn) } else { self.answers.close(flow) }
        }
        stimuli.extend(vec![vec![0; WORDS.0]; 8]);
        let frames: Vec<Vec<u8>> = (0..count).map(|_| self.frame(rng)).collect();
        // Stall rate of each end, in sixteenths.
        let waits = [0, 1, 2].map(|_| [0, 4, 12][rng.below(3) as usize]);
        let flags =
            |rng: &mut Rng| (5..8).fold(0, |bits, i| bits | u32::from(rng.below(16) >= waits[i - 5]) << i);
        for frame in &frames {
            for beat in beats(frame, rng.next_u64() as u8) {
                let mut words = vec![2 | u32::from(beat.last) << 2 | flags(rng), 0, 0, 0];
                words.extend([beat.keep() as u32, (beat.keep() >> 32) as u32]);
                words.extend(beat.words());
                stimuli.push(words);
                // Enough idle clocks for the slowest output, so that the bench's own buffer does not overflow.
                for _ in 0..rng.below(if waits.contains(&12) { 12 } else { 3 }) {
                    let mut words = vec![0; WORDS.0];
                    words[0] = flags(rng);
                    stimuli.push(words);
                }
            }
        }
        let mut now = self.now;
        let mut at = |words: &mut Vec<u32>| {
            (words[2], words[3]) = (now as u32, (now >> 32) as u32);
            now += STEP;
        };
        stimuli.iter_mut().for_each(&mut at);
        let mut responses = self.model.run(&stimuli);
        let idle = || {
            let mut words = vec![0; WORDS.0];
            words[0] = 7 << 5;
            at(&mut words);
            words
        };
        // Bits for activity: a frame is accepted, leaves to the host or as an answer, or a delay is reported.
        const HAPPENS: u32 = 1 | 1 << 1 | 1 << 5 | 1 << 7;
        let last = |response: &[u32]| response[0] & HAPPENS != 0;
        stimuli.extend(support::until_quiet(&mut self.model, &mut responses, idle, last));
        self.now = now;
        self.check(&frames, &stimuli, &responses);
    }

    fn check(&mut self, frames: &[Vec<u8>], stimuli: &[Vec<u32>], responses: &[Vec<u32>]) {
        let mut arriving = frames.iter();
        let (mut hosts, mut replies, mut heards) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        let (mut to_host, mut to_line) = (Assembly::default(), Assembly::default());
        let mut begins = true;
        for (clock, (response, stimulus)) in responses.iter().zip(stimuli).enumerate() {
            let mut reader = Reader::new(response);
            let taken = reader.flag();
            let (host_valid, host_last, host_user) = (reader.flag(), reader.flag(), reader.take(2));
            let (frame_valid, frame_last, heard_valid) = (reader.flag(), reader.flag(), reader.flag());
            let (_decided, _accepted, _answered) = (reader.flag(), reader.flag(), reader.flag());
            let (_open_ready, taken_last, line_ready) = (reader.flag(), reader.flag(), reader.flag());
            reader.take(18);
            assert!(line_ready, "clock {clock}: the bench's buffer is full");
            if taken && begins {
                let now = u64::from(stimulus[2]) | u64::from(stimulus[3]) << 32;
                let outcome = outcome(&mut self.answers, arriving.next().expect("a frame for each"), now);
                hosts.extend(outcome.to_host);
                replies.extend(outcome.answer);
                heards.extend(outcome.heard);
            }
            begins = if taken { taken_last } else { begins };
            let beat = |reader: &mut Reader<'_>, last| {
                let keep = reader.take(64);
                let bytes = std::array::from_fn(|_| reader.take(8) as u8);
                Beat { bytes, len: if last { 64 - keep.leading_zeros() as usize } else { 64 }, last }
            };
            let host_ready = stimulus[0] >> 5 & 1 == 1;
            let host_beat = beat(&mut reader, host_last);
            if host_valid
                && host_ready
                && let Some(frame) = to_host.push(&host_beat)
            {
                assert_eq!(Some((frame, host_user)), hosts.pop_front(), "clock {clock}");
            }
            let frame_beat = beat(&mut reader, frame_last);
            if frame_valid && let Some(frame) = to_line.push(&frame_beat) {
                self.answered += 1;
                assert_eq!(Some(frame), replies.pop_front(), "clock {clock}");
            }
            if heard_valid && stimulus[0] >> 7 & 1 == 1 {
                let heard = Measurement {
                    ack: reader.flag(),
                    queue_pair: reader.take(24) as u32,
                    address: reader.take(32) as u32,
                    path: reader.take(16) as u16,
                    delay: Ticks::new(reader.take(24)),
                    stamp: reader.take(40),
                };
                self.heard += 1;
                assert_eq!(Some(heard), heards.pop_front(), "clock {clock}");
            }
        }
        assert!(arriving.next().is_none() && hosts.is_empty() && replies.is_empty() && heards.is_empty());
    }
}

#[test]
fn frames_are_answered_and_handed_on() {
    let Some(mut bench) = Bench::new() else { return };
    let mut rng = Rng::for_component(1, "cosim-receive", 0);
    for _ in 0..8 {
        bench.run(&mut rng, 250);
    }
    assert!(bench.answered > 250 && bench.heard > 150, "{} {}", bench.answered, bench.heard);
}

/// Sends frames back to back without stalls, and returns the responses.
fn back_to_back(bench: &mut Bench, frames: &[Vec<u8>]) -> Vec<Vec<u32>> {
    let mut stimuli = Vec::new();
    for beat in frames.iter().flat_map(|frame| beats(frame, 0)) {
        let mut words = vec![2 | u32::from(beat.last) << 2 | 7 << 5, 0, 0, 0];
        words.extend([beat.keep() as u32, (beat.keep() >> 32) as u32]);
        words.extend(beat.words());
        stimuli.push(words);
    }
    let mut idle = vec![0; WORDS.0];
    idle[0] = 7 << 5;
    stimuli.extend(vec![idle; 60]);
    let responses = bench.model.run(&stimuli);
    bench.check(frames, &stimuli, &responses);
    responses
}

/// Minimum-size frames back to back do not stall: each packet takes 2 clocks.
#[test]
fn least_frames_back_to_back_are_taken_without_a_pause() {
    let Some(mut bench) = Bench::new() else { return };
    let mut rng = Rng::for_component(1, "cosim-receive", 1);
    let body = Body::Control(Control::Probe { sent_at: Time::from_ps(5) });
    let probe = Segment::new(QpNum(1), QpNum(2), PathId(3), body);
    let route = route(&mut rng, &probe);
    let frames = vec![frame(&mut rng, &probe, &route); 400];
    let responses = back_to_back(&mut bench, &frames);
    assert_eq!(bench.answered, 400);
    // The bench's own buffer needs two clocks.
    assert!(responses[2..802].iter().all(|words| words[0] & 1 == 1));
}

/// Packets of one flow in consecutive clocks. The answer to each must include the effects of earlier ones.
#[test]
fn neighbours_of_a_flow_see_each_other() {
    let Some(mut bench) = Bench::new() else { return };
    let mut rng = Rng::for_component(1, "cosim-receive", 3);
    let mut opens = vec![vec![0; WORDS.0]; 8];
    (opens[0][0], opens[0][1]) = (1 << 3 | 1 << 4 | 5 << 8, 1_000);
    bench.model.run(&opens);
    bench.answers.open(5, 1_000);
    let frames: Vec<Vec<u8>> = (0..400)
        .map(|i| {
            let mut segment = loop {
                let segment = segment(&mut rng, 8);
                if matches!(&segment.body, Body::Data(data) if data.op == Operation::Send) {
                    break segment;
                }
            };
            segment.dst_qp = QpNum(5);
            if let Body::Data(data) = &mut segment.body {
                data.psn = u64::from(998 + i / 2 + rng.below(6));
            }
            let route = route(&mut rng, &segment);
            let frame = frame(&mut rng, &segment, &route);
            assert!(frame.len() <= 128, "two beats");
            frame
        })
        .collect();
    back_to_back(&mut bench, &frames);
    assert_eq!(bench.answered, 400);
}

#[test]
fn a_frame_reaches_the_host_after_sixteen_clocks() {
    let Some(mut bench) = Bench::new() else { return };
    let mut rng = Rng::for_component(1, "cosim-receive", 2);
    let notice = Segment::new(QpNum(1), QpNum(2), PathId(3), Body::Cnp);
    let route = route(&mut rng, &notice);
    let frames = [frame(&mut rng, &notice, &route)];
    let responses = back_to_back(&mut bench, &frames);
    let clock = |bit: u32| responses.iter().position(|words| words[0] >> bit & 1 == 1).expect("it happens");
    // The second beat is accepted one clock after the first.
    assert_eq!(clock(1), clock(0) + 1 + 16, "the latency that receive.sv names");
}

/// Runs `COSIM_OPERATIONS` frames. Default: ten million.
#[test]
#[ignore = "an hour: `make hardware-test`"]
fn ten_million_frames_are_answered_and_handed_on() {
    let operations = support::operations();
    let Some(mut bench) = Bench::new() else { return };
    let mut rng = Rng::for_component(2, "cosim-receive", 0);
    for done in 0..operations / 250 {
        bench.run(&mut rng, 250);
        support::progress(done * 250, (done + 1) * 250);
    }
    println!("{operations} frames, no difference");
}
