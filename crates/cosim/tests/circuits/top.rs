//! Compares the complete LAPS circuit with `crates/wire` and `policy::laps::pipeline`. Frames from the link and from the
//! host go in, and every frame, event and rate that comes out must be that of the integers, while all ends stall it.
//! The integers perform the operations in the order recorded from the circuit.

use std::collections::VecDeque;

use pathweave_cosim::{Circuit, Model, Reader};
use pathweave_policy::laps::pipeline::{
    Choice, DecreaseRule, DelayRange, InFlight, InFlightRings, PathDelays, PathSampler, Paths, Rates,
    Receiver, Scale, Ticks,
};
use pathweave_units::{PathId, QpNum, Rng, Time};
use pathweave_wire::{Body, Control, Ecn, FrameAddressing, Operation, Packet, Segment, emit};
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::frames::{Beat, beats, damage, frame, route, segment};
use crate::receive::{Assembly, Measurement, outcome};
use crate::registers::{Command, address};
use crate::support;

pub(crate) const WORDS: (usize, usize) = (41, 57);
pub(crate) const LEVELS: u32 = 3;
pub(crate) const PATHS: usize = 1 << LEVELS;
const DESTINATION: u32 = 4;
pub(crate) const FLOW: u32 = 3;
const POOL: u32 = 7;
const LINE: u64 = 100_000_000_000;
/// Clocks from an operation on the paths to the chooser.
const TO_CHOOSER: usize = 2;
/// Number of destinations with addresses and paths.
pub(crate) const KNOWN: u32 = 4;

pub(crate) fn address_of(destination: u32) -> u32 {
    0x0a00_0000 | destination
}

/// Frame of the host.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) frame: Vec<u8>,
    pub(crate) ours: bool,
    /// Flow and destination of a data packet whose path is chosen.
    pub(crate) chosen: Option<(u16, u16)>,
}

/// Source of the next frame to the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Host,
    Answer,
    Probe,
}

struct Golden {
    answers: Receiver,
    paths: Paths,
    chooser: PathSampler,
    draws: Xoshiro256PlusPlus,
    extremes: DelayRange,
    rates: Rates,
    rings: InFlightRings,
    ports: Vec<u16>,
    threshold: Ticks,
}

pub(crate) struct Bench {
    pub(crate) model: Model,
    golden: Golden,
    /// Stamps of sent packets with destination and path, which an acknowledgement may echo.
    left: Vec<(u32, usize, u64)>,
    now: u64,
    /// Counts of frames sent, probes, measured delays, lost packets, rate changes, and repeated choices.
    pub(crate) counts: [usize; 6],
}

fn leaf(destination: usize, path: usize) -> usize {
    destination << LEVELS | path
}

fn write(register: u32, value: u32) -> Vec<u32> {
    let mut words = vec![0; WORDS.0];
    words[0] = 1 << 5 | 7 << 6;
    words[1] = register;
    words[2] = value;
    words
}

pub(crate) fn command(code: Command, arguments: [u32; 3]) -> Vec<Vec<u32>> {
    vec![
        write(address("ARGUMENT0"), arguments[0]),
        write(address("ARGUMENT1"), arguments[1]),
        write(address("ARGUMENT2"), arguments[2]),
        write(address("COMMAND"), code as u32),
        idle(7),
        idle(7),
        idle(7),
        idle(7),
    ]
}

/// Returns a stimulus without input. `ready` has a bit for each end that is ready.
pub(crate) fn idle(ready: u32) -> Vec<u32> {
    let mut words = vec![0; WORDS.0];
    words[0] = ready << 6;
    words
}

/// Adds a beat from the link.
pub(crate) fn put_line(words: &mut [u32], beat: &Beat) {
    words[0] |= 2 | u32::from(beat.last) << 2;
    (words[3], words[4]) = (beat.keep() as u32, (beat.keep() >> 32) as u32);
    words[5..21].iter_mut().zip(beat.words()).for_each(|(at, word)| *at = word);
}

/// Adds a beat of the host, with the side data of its frame.
pub(crate) fn put_host(words: &mut [u32], beat: &Beat, request: &Request) {
    words[0] |= 1 << 3 | u32::from(beat.last) << 4;
    (words[21], words[22]) = (beat.keep() as u32, (beat.keep() >> 32) as u32);
    words[23..39].iter_mut().zip(beat.words()).for_each(|(at, word)| *at = word);
    let (flow, destination) = request.chosen.unwrap_or((0, 0));
    let user = u64::from(request.chosen.is_some())
        | u64::from(request.ours) << 1
        | u64::from(destination) << 2
        | u64::from(flow) << 18;
    (words[39], words[40]) = (user as u32, (user >> 32) as u32);
}

impl Bench {
    pub(crate) fn new() -> Option<Self> {
        let parameters = [("PATH", LEVELS), ("DESTINATION", DESTINATION), ("FLOW", FLOW), ("POOL", POOL)];
        let mut model = support::build(&Circuit { bench: "top", parameters: &parameters, words: WORDS })?;
        let mut stimuli = vec![vec![0; WORDS.0]; 30];
        stimuli.iter_mut().for_each(|words| words[0] = 1);
        stimuli.extend(vec![idle(7); 1 << (POOL.max(DESTINATION + LEVELS) + 1)]);
        model.run(&stimuli);
        let seed = [1u64, 2, 3, 4].map(|word| word.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let bytes: Vec<u8> = seed.iter().flat_map(|word| word.to_le_bytes()).collect();
        let threshold = Ticks::new(600);
        let golden = Golden {
            answers: Receiver::new(1 << FLOW),
            paths: Paths::new(1 << DESTINATION, PATHS),
            chooser: PathSampler::new(1 << DESTINATION, PATHS),
            draws: Xoshiro256PlusPlus::from_seed(bytes.try_into().expect("32 bytes")),
            extremes: DelayRange::new(1 << DESTINATION, PATHS),
            rates: Rates::new(1 << FLOW, LINE, LINE / 100, DecreaseRule::Half),
            rings: InFlightRings::new(1 << (DESTINATION + LEVELS), 1 << POOL),
            ports: vec![0; 1 << (DESTINATION + LEVELS)],
            threshold,
        };
        let mut bench = Bench { model, golden, left: Vec::new(), now: 0, counts: [0; 6] };
        let mut setup = vec![write(address("CONTROL"), 0b1011)];
        for word in seed {
            setup.extend(command(Command::Seed, [word as u32, (word >> 32) as u32, 0]));
        }
        for flow in 0..1 << FLOW {
            setup.extend(command(Command::Rate, [flow, 0, 0]));
            if flow % 2 == 0 {
                setup.extend(command(Command::Flow, [flow, flow * 1_000, 1]));
                bench.golden.answers.open(flow as usize, flow * 1_000);
            }
        }
        for destination in 0..KNOWN {
            let scale = Scale::new(5.0, Ticks::new(2_000 + 500 * u64::from(destination)), Ticks::new(100));
            bench.golden.chooser.set_scale(destination as usize, scale);
            setup.extend(command(Command::Scale, [destination, scale.factor, scale.reference.get()]));
            setup.extend(command(Command::Threshold, [destination, threshold.get(), 0]));
            setup.extend(command(
                Command::Address,
                [destination, address_of(destination), 2 | destination & 1],
            ));
            for path in 0..PATHS as u32 {
                let port = 0xc000 | destination << 8 | path;
                bench.golden.ports[leaf(destination as usize, path as usize)] = port as u16;
                setup.extend(command(Command::Port, [destination | path << 16, port, 0]));
                // All paths of the last destination are down at first.
                let up = u32::from(destination + 1 < KNOWN);
                setup.extend(command(Command::Path, [destination | path << 16, up, 900 + 30 * path]));
            }
        }
        setup.extend(vec![idle(7); 300]);
        bench.run(&setup, &[], &[]);
        Some(bench)
    }

    /// Returns a frame from the link, often an acknowledgement of a sent packet.
    fn arriving(&mut self, rng: &mut Rng) -> Vec<u8> {
        let mut segment = segment(rng, 200);
        let mut source =
            if rng.below(8) == 0 { rng.next_u64() as u32 } else { address_of(rng.below(KNOWN + 1)) };
        match &mut segment.body {
            Body::Data(data) if rng.below(4) > 0 => {
                let flow = rng.below(1 << FLOW);
                segment.dst_qp = QpNum(flow);
                data.psn = u64::from(flow * 1_000 + rng.below(90));
            }
            Body::Ack(ack) => {
                segment.dst_qp = QpNum(rng.below((1 << FLOW) + 1));
                segment.path = PathId(rng.below(PATHS as u32 + 1) as u16);
                if !self.left.is_empty() && rng.below(8) > 0 {
                    let at = rng.below((self.left.len() as u32).min(60)) as usize;
                    let (destination, path, stamp) = self.left.remove(at);
                    source = address_of(destination);
                    segment.path = PathId(path as u16);
                    ack.echo_sent_at = Time::from_ps(stamp);
                }
                let took = (500 + u64::from(rng.below(1_000))) << 10;
                ack.received_at = Time::from_ps(ack.echo_sent_at.as_ps().wrapping_add(took));
            }
            Body::Control(Control::ProbeReply { sent_at, received_at }) => {
                segment.path = PathId(rng.below(PATHS as u32 + 1) as u16);
                let took = (500 + u64::from(rng.below(1_000))) << 10;
                *received_at = Time::from_ps(sent_at.as_ps().wrapping_add(took));
            }
            _ => {}
        }
        let mut route = route(rng, &segment);
        route.src_ip = source.into();
        let mut frame = frame(rng, &segment, &route);
        if rng.below(12) == 0 {
            damage(rng, &mut frame);
        }
        frame
    }

    pub(crate) fn request(rng: &mut Rng, destinations: u32) -> Request {
        let wants_data = rng.below(4) > 0;
        let segment = loop {
            let segment = segment(rng, 200);
            if !wants_data || matches!(segment.body, Body::Data(_)) {
                break segment;
            }
        };
        let route = route(rng, &segment);
        let frame = frame(rng, &segment, &route);
        let chosen = matches!(segment.body, Body::Data(_)) && wants_data;
        Request {
            frame,
            ours: chosen || rng.below(2) == 0,
            chosen: chosen.then(|| (rng.next_u64() as u16, rng.below(destinations) as u16)),
        }
    }

    pub(crate) fn run(&mut self, setup: &[Vec<u32>], arriving: &[Vec<u8>], requests: &[Request]) {
        let mut rng = Rng::for_component(7, "cosim-top-waits", self.now);
        let mut stimuli = setup.to_vec();
        let line: Vec<Beat> = arriving.iter().flat_map(|frame| beats(frame, 0x77)).collect();
        let host = requests.iter().flat_map(|request| {
            let beats = beats(&request.frame, 0x55);
            beats.into_iter().map(move |beat| (beat, request))
        });
        let (mut line, mut host) = (line.into_iter().peekable(), host.peekable());
        let waits = [0, 1, 2].map(|_| [0, 3, 9][rng.below(3) as usize]);
        while line.peek().is_some() || host.peek().is_some() {
            let ready = (0..3).fold(0, |bits, i| bits | u32::from(rng.below(16) >= waits[i]) << i);
            let mut words = idle(ready);
            if let Some(beat) = line.next_if(|_| rng.below(3) == 0) {
                put_line(&mut words, &beat);
            }
            if let Some((beat, request)) = host.next_if(|_| rng.below(3) == 0) {
                put_host(&mut words, &beat, request);
            }
            stimuli.push(words);
        }
        let mut responses = self.model.run(&stimuli);
        // Bits for activity: frames, events, operations other than the sweep, and output.
        const HAPPENS: u32 = 0x6039_7cd1;
        support::until_quiet(
            &mut self.model,
            &mut responses,
            || idle(7),
            |response| response[0] & HAPPENS != 0,
        );
        self.check(arriving, requests, &responses);
    }

    pub(crate) fn check(&mut self, arriving: &[Vec<u8>], requests: &[Request], responses: &[Vec<u32>]) {
        let golden = &mut self.golden;
        let mut arriving = arriving.iter();
        let (mut hosts, mut answers) = (VecDeque::new(), VecDeque::<Vec<u8>>::new());
        let (mut measured, mut echoes) = (VecDeque::<Measurement>::new(), VecDeque::<Measurement>::new());
        // Choices: silent paths in the order searched and paths in the order chosen. Then sent packets.
        let mut wanting: VecDeque<&Request> =
            requests.iter().filter(|request| request.chosen.is_some()).collect();
        let mut sending: VecDeque<&Request> = requests.iter().collect();
        let (mut looked, mut drawn) = (VecDeque::new(), VecDeque::new());
        let (mut leaving, mut probes, mut sent) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        let (mut lost, mut acked, mut rated) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        let (mut to_host, mut to_line) = (Assembly::default(), Assembly::default());
        let mut begins = true;
        let mut held: Option<usize> = None;
        for (at, response) in responses.iter().enumerate() {
            let flag = |bit: u32| response[0] >> bit & 1 == 1;
            let clock = format!("clock {at}");
            assert!(flag(22), "{clock}: a buffer of the bench is full");
            assert!(!flag(9), "{clock}: a write was refused");
            let now = now_of(response);
            self.now = now;
            if flag(7) && begins {
                let outcome = outcome(&mut golden.answers, arriving.next().expect("a frame for each"), now);
                hosts.extend(outcome.to_host);
                answers.extend(outcome.answer);
                if let Some(heard) = outcome.heard {
                    self.counts[2] += 1;
                    let known = (0..KNOWN).any(|destination| address_of(destination) == heard.address);
                    if known && usize::from(heard.path) < PATHS {
                        measured.push_back(heard);
                        echoes.extend(heard.ack.then_some(heard));
                    }
                }
            }
            begins = if flag(7) { flag(8) } else { begins };

            // Operations on the paths, in the clock in which the chooser has their changes.
            let entered = at.checked_sub(TO_CHOOSER).map(|at| &responses[at]);
            let did = |bit: u32| entered.is_some_and(|response| response[0] >> bit & 1 == 1);
            let operation = entered.unwrap_or(response);
            let (destination, path) = ((operation[1] & 0xffff) as usize, (operation[1] >> 16) as usize);
            let (delay, up) = (Ticks::new((operation[2] & 0xff_ffff).into()), operation[2] >> 24 & 1 == 1);
            let ticks = (now_of(operation) >> 10) as u32;
            if did(10) {
                golden.paths.set_path(ticks, destination, path, up, delay);
                golden.chooser.update(destination, path, up.then_some(delay));
                golden.extremes.set(destination, path, None);
            }
            if did(11) {
                let heard = measured.pop_front().expect("it was heard");
                let expected =
                    ((heard.address - address_of(0)) as usize, usize::from(heard.path), heard.delay);
                assert_eq!((destination, path, delay), expected, "{clock}");
                golden.paths.measured(ticks, destination, path, delay);
                let known = golden.paths.entry(destination, path).up.then_some(delay);
                golden.chooser.update(destination, path, known);
                let extremes = golden.extremes.set(destination, path, known);
                if let Some((fastest, slowest)) =
                    extremes.filter(|_| heard.ack && heard.queue_pair < 1 << FLOW)
                {
                    acked.push_back((heard.queue_pair as usize, fastest, slowest));
                }
            }
            if did(12) {
                let request = wanting.pop_front().expect("a data packet");
                assert_eq!(request.chosen.map(|(_, to)| usize::from(to)), Some(destination), "{clock}");
                let silent = golden.paths.probe_candidate(ticks, destination, path);
                if let Some(silent) = silent {
                    let delay = golden.paths.entry(destination, silent).real;
                    golden.chooser.update(destination, silent, Some(delay));
                    golden.extremes.set(destination, silent, None);
                }
                looked.push_back(silent);
            }
            if flag(13) || flag(14) {
                let asked = (response[5] >> 16) as usize;
                let choice = golden.chooser.choose(asked, (golden.draws.next_u64() >> 32) as u32);
                let choice = match choice {
                    Choice::Path(path) => Some(path),
                    Choice::None => None,
                };
                if flag(13) {
                    drawn.push_back(choice);
                } else {
                    self.counts[5] += 1;
                    held = choice;
                }
            }
            if did(15) {
                golden.paths.sweep(ticks, destination, path);
            }

            // Sent packets.
            if flag(20) {
                let source = match (flag(24), flag(25)) {
                    (false, _) => Source::Host,
                    (true, false) => Source::Answer,
                    (true, true) => Source::Probe,
                };
                let mut expected = Vec::new();
                if source == Source::Host {
                    let request = sending.pop_front().expect("a frame of the host");
                    assert_eq!(request.chosen.is_some(), flag(23), "{clock}");
                    expected.clone_from(&request.frame);
                    if let Some((flow, to)) = request.chosen {
                        let to = usize::from(to);
                        let silent: Option<usize> = looked.pop_front().expect("it was looked for");
                        let path: usize =
                            drawn.pop_front().expect("it was drawn").or_else(|| held.take()).expect("a path");
                        let (segment, route, frame) =
                            stamped(&request.frame, path, golden.ports[leaf(to, path)], now);
                        expected = frame;
                        let psn = (psn_of(&segment) & 0xff_ffff) as u32;
                        let stamp = (now >> 10) & ((1 << 40) - 1);
                        sent.push_back((leaf(to, path), InFlight { queue_pair: flow, psn, stamp }));
                        self.left.push((to as u32, path, now));
                        if let Some(silent) = silent {
                            probes.push_back((segment, route, flow, silent, golden.ports[leaf(to, silent)]));
                        }
                    }
                } else if source == Source::Answer {
                    expected = answers.pop_front().expect("a question");
                } else {
                    let (segment, route, flow, silent, port) = probes.pop_front().expect("a silent path");
                    expected = probe(&segment, &route, flow, silent, port, now);
                    self.counts[1] += 1;
                }
                leaving.push_back((source, expected));
            }
            if flag(4)
                && let Some(frame) = to_line.push(&beat_of(response, LINE_BEAT, flag(5)))
            {
                self.counts[0] += 1;
                let (source, expected) = leaving.pop_front().expect("it was sent");
                assert_eq!(frame, expected, "{clock}: {source:?}");
            }
            if flag(0)
                && let Some(frame) = to_host.push(&beat_of(response, HOST_BEAT, flag(1)))
            {
                assert_eq!(Some((frame, u64::from(response[0] >> 2 & 3))), hosts.pop_front(), "{clock}");
            }

            // Loss rings, events and rates.
            if flag(16) {
                let (path, stamp) =
                    (response[6] as usize, u64::from(response[9]) | u64::from(response[10]) << 32);
                let events = match response[0] >> 17 & 3 {
                    0 => {
                        let packet = InFlight { queue_pair: response[7] as u16, psn: response[8], stamp };
                        assert_eq!(Some((path, packet)), sent.pop_front(), "{clock}");
                        assert!(golden.rings.sent(path, packet), "{clock}: there was room");
                        Vec::new()
                    }
                    1 => {
                        let heard = echoes.pop_front().expect("an acknowledgement");
                        let to = (heard.address - address_of(0)) as usize;
                        assert_eq!((path, stamp), (leaf(to, heard.path.into()), heard.stamp), "{clock}");
                        golden.rings.on_ack(path, stamp)
                    }
                    _ => golden.rings.expired(path),
                };
                lost.extend(events.into_iter().map(|packet| (path, packet)));
            }
            if flag(6) {
                let mut reader = Reader::new(&response[53..57]);
                let path = reader.take(32) as usize;
                let (queue_pair, psn) = (reader.take(16) as u16, reader.take(24) as u32);
                let packet = InFlight { queue_pair, psn, stamp: reader.take(40) };
                assert_eq!(Some((path, packet)), lost.pop_front(), "{clock}");
                self.counts[3] += 1;
            }
            if flag(19) {
                let flow = (response[15] >> 16) as usize;
                let extremes = u64::from(response[11]) | u64::from(response[12]) << 32;
                let [fastest, slowest] =
                    [extremes, extremes >> 24].map(|value| Ticks::new(value & 0xff_ffff));
                assert_eq!(Some((flow, fastest, slowest)), acked.pop_front(), "{clock}");
                let threshold = golden.threshold;
                golden.rates.acknowledged(
                    (now >> 10) & ((1 << 48) - 1),
                    flow,
                    PathDelays { fastest, slowest, threshold },
                );
                rated.push_back((flow, golden.rates.entry(flow).current));
            } else if flag(29) {
                let flow = (response[15] >> 16) as usize;
                golden.rates.open(flow);
                rated.push_back((flow, LINE));
            }
            if flag(21) {
                let current = u64::from(response[13]) | u64::from(response[14]) << 32;
                assert_eq!(Some(((response[15] & 0xffff) as usize, current)), rated.pop_front(), "{clock}");
                self.counts[4] += usize::from(current < LINE);
            }
        }
        // Operations of the last clocks, when only the sweep is still running.
        for operation in responses.iter().rev().take(TO_CHOOSER).rev() {
            assert_eq!(operation[0] >> 10 & 7, 0, "an operation of the last clocks");
            if operation[0] >> 15 & 1 == 1 {
                let (destination, path) = ((operation[1] & 0xffff) as usize, (operation[1] >> 16) as usize);
                golden.paths.sweep((now_of(operation) >> 10) as u32, destination, path);
            }
        }
        assert!(arriving.next().is_none() && hosts.is_empty() && answers.is_empty() && measured.is_empty());
        assert!(
            sending.is_empty() && leaving.is_empty() && probes.is_empty() && sent.is_empty(),
            "{sending:?}"
        );
        assert!(lost.is_empty() && acked.is_empty() && rated.is_empty() && echoes.is_empty());
    }
}

/// Positions of the beats to host and link in a response.
const HOST_BEAT: usize = 17;
pub(crate) const LINE_BEAT: usize = 35;

/// Returns a beat that leaves.
pub(crate) fn beat_of(response: &[u32], at: usize, last: bool) -> Beat {
    let keep = u64::from(response[at]) | u64::from(response[at + 1]) << 32;
    let mut reader = Reader::new(&response[at + 2..at + 18]);
    let bytes = std::array::from_fn(|_| reader.take(8) as u8);
    Beat { bytes, len: if last { 64 - keep.leading_zeros() as usize } else { 64 }, last }
}

/// Returns the circuit's time in a clock, in picoseconds.
pub(crate) fn now_of(response: &[u32]) -> u64 {
    u64::from(response[3]) | u64::from(response[4]) << 32
}

fn psn_of(segment: &Segment) -> u64 {
    match &segment.body {
        Body::Data(data) => data.psn,
        _ => 0,
    }
}

/// Returns the frame with path, port and stamp written: its segment, its route, its bytes.
fn stamped(frame: &[u8], path: usize, port: u16, now: u64) -> (Segment, FrameAddressing, Vec<u8>) {
    let packet = Packet::parse_ethernet(frame).expect("our own frame");
    let mut segment = packet.segment(0);
    segment.path = PathId(path as u16);
    if let Body::Data(data) = &mut segment.body {
        data.sent_at = Time::from_ps(now);
    }
    let route = FrameAddressing { src_port: port, ..*packet.route() };
    let payload: &[u8] = match &segment.body {
        Body::Data(data) if data.op == Operation::ReadRequest => &[],
        _ => packet.payload(),
    };
    let mut out = vec![0; frame.len()];
    let len = emit(&segment, &route, payload, &mut out).expect("it fitted before");
    assert_eq!(len, frame.len());
    (segment, route, out)
}

fn probe(beside: &Segment, route: &FrameAddressing, flow: u16, path: usize, port: u16, now: u64) -> Vec<u8> {
    let body = Body::Control(Control::Probe { sent_at: Time::from_ps(now) });
    let segment = Segment::new(beside.dst_qp, QpNum(flow.into()), PathId(path as u16), body);
    let route = FrameAddressing { src_port: port, ecn: Ecn::Capable0, ttl: 64, ..*route };
    let mut out = vec![0; 128];
    let len = emit(&segment, &route, &[], &mut out).expect("a probe");
    out.truncate(len);
    out
}

fn rounds(bench: &mut Bench, rng: &mut Rng, count: usize, frames: usize) {
    for round in 0..count {
        let mut setup = Vec::new();
        let last = KNOWN - 1;
        if round % 2 == 1 {
            // The paths of the last destination come up while packets to it wait.
            for path in 0..PATHS as u32 {
                setup.extend(command(Command::Path, [last | path << 16, u32::from(path % 3 == 0), 1_000]));
            }
        }
        if rng.below(4) == 0 {
            let path = rng.below(PATHS as u32);
            setup.extend(command(Command::Expire, [rng.below(KNOWN) | path << 16, 0, 0]));
        }
        // Packets that wait for the rings would wait forever without acknowledgements, so the rings are expired.
        for leaf in 0..1u32 << (2 + LEVELS) {
            setup
                .extend(command(Command::Expire, [leaf >> LEVELS | (leaf & (PATHS as u32 - 1)) << 16, 0, 0]));
        }
        let arriving: Vec<_> = (0..frames).map(|_| bench.arriving(rng)).collect();
        let destinations = if round % 2 == 1 { KNOWN } else { KNOWN - 1 };
        let requests: Vec<_> = (0..frames.min(90)).map(|_| Bench::request(rng, destinations)).collect();
        bench.run(&setup, &arriving, &requests);
    }
}

#[test]
fn frames_in_are_the_frames_out_that_the_integers_make() {
    let Some(mut bench) = Bench::new() else { return };
    let mut rng = Rng::for_component(1, "cosim-top", 0);
    rounds(&mut bench, &mut rng, 6, 200);
    assert!(bench.counts[..5].iter().all(|count| *count > 20), "{:?}", bench.counts);
}

/// With every path down a packet waits, and leaves once one is up. Earlier packets have left.
#[test]
fn a_packet_waits_for_a_path() {
    let Some(mut bench) = Bench::new() else { return };
    let mut rng = Rng::for_component(1, "cosim-top", 1);
    let mut requests: Vec<_> = (0..3).map(|_| Bench::request(&mut rng, 1)).collect();
    let mut waits = Bench::request(&mut rng, 1);
    while waits.chosen.is_none() {
        waits = Bench::request(&mut rng, 1);
    }
    waits.chosen = waits.chosen.map(|(flow, _)| (flow, KNOWN as u16 - 1));
    requests.push(waits);
    let mut stimuli: Vec<_> = requests
        .iter()
        .flat_map(|request| {
            beats(&request.frame, 0).into_iter().map(move |beat| {
                let mut words = idle(7);
                put_host(&mut words, &beat, request);
                words
            })
        })
        .collect();
    stimuli.extend(vec![idle(7); 400]);
    stimuli.extend(command(Command::Path, [(KNOWN - 1) | 5 << 16, 1, 700]));
    stimuli.extend(vec![idle(7); 400]);
    let responses = bench.model.run(&stimuli);
    bench.check(&[], &requests, &responses);
    assert!(bench.counts[5] > 5, "asked again {} times", bench.counts[5]);
}

/// Data packets without payload, the shortest ones, leave every two clocks, each with its own path. That is 125
/// million packets per second, more than 100 Gb/s can carry.
#[test]
fn least_packets_leave_back_to_back() {
    let Some(mut bench) = Bench::new() else { return };
    let mut rng = Rng::for_component(1, "cosim-top", 2);
    let mut least = Bench::request(&mut rng, 1);
    while !matches!(Packet::parse_ethernet(&least.frame), Ok(packet) if least.chosen.is_some() && packet.payload().is_empty())
    {
        least = Bench::request(&mut rng, 1);
    }
    assert!(least.frame.len() <= 128, "two beats");
    let requests = vec![least; 100];
    let mut stimuli: Vec<_> = requests
        .iter()
        .flat_map(|request| {
            beats(&request.frame, 0).into_iter().map(move |beat| {
                let mut words = idle(7);
                put_host(&mut words, &beat, request);
                words
            })
        })
        .collect();
    stimuli.extend(vec![idle(7); 300]);
    let responses = bench.model.run(&stimuli);
    bench.check(&[], &requests, &responses);
    let ends: Vec<usize> =
        (0..).zip(&responses).filter(|(_, words)| words[0] >> 4 & 3 == 3).map(|(clock, _)| clock).collect();
    // Two clocks are the bench's own buffer.
    let first = responses.iter().position(|words| words[0] >> 4 & 1 == 1);
    assert_eq!(first, Some(2 + 38 + 2 * LEVELS as usize), "the latency that transmit.sv names");
    // Probes are sent in between.
    let frames = requests.len() + bench.counts[1];
    assert_eq!(ends.len(), frames);
    assert!(ends[frames - 1] - ends[0] <= 2 * frames, "{ends:?}");
}

/// Runs `COSIM_OPERATIONS` frames in each direction. Default: ten million.
#[test]
#[ignore = "an hour: `make hardware-test`"]
fn ten_million_frames_in_are_the_frames_out_that_the_integers_make() {
    let operations = support::operations();
    let Some(mut bench) = Bench::new() else { return };
    let mut rng = Rng::for_component(2, "cosim-top", 0);
    for done in 0..operations / 2_000 {
        rounds(&mut bench, &mut rng, 10, 200);
        support::progress(done * 2_000, (done + 1) * 2_000);
    }
    let [frames, probes, heard, lost, rates, again] = bench.counts;
    println!(
        "{operations} frames in, {frames} out ({probes} probes), {heard} delays, {lost} lost, {rates} rates, {again} choices again: no difference"
    );
}
