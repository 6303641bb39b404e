//! Throughput of the complete LAPS circuit on a link of 100 Gb/s full of minimum-size frames. A peer acknowledges
//! received packets, answers probes and sends data as well. Both directions run at link rate, frame by frame. All
//! output is compared with the integers as in the other tests.

use std::collections::VecDeque;

use pathweave_units::{PathId, QpNum, Rng, Time};
use pathweave_wire::{Ack, Body, Control, Ecn, NoticePermission, Packet, Segment};

use crate::frames::{Beat, a_send, beats, frame, route};
use crate::receive::Assembly;
use crate::registers::Command;
use crate::top::{
    Bench, FLOW, LINE_BEAT, PATHS, Request, address_of, beat_of, command, idle, now_of, put_host, put_line,
};

/// Bytes of the link per clock: 100 Gb/s at 250 MHz.
const BYTES: i64 = 50;
/// Bytes around a frame on the link: Ethernet checksum, preamble, gap.
const FRAME_OVERHEAD: i64 = 24;
/// Sizes of the shortest data packet and of its acknowledgement on the link, in bytes.
const DATA: usize = 110;
const ACK: usize = 126;
/// Smallest number of clocks from a sent frame to its answer. The bench's loss rings hold the packets sent meanwhile.
const MIN_ANSWER_CLOCKS: usize = 60;
/// Number of PSNs of a flow without an acknowledgement.
const PSNS: u64 = 1 << 24;

/// Direction of the link. It accepts the next beat when the earlier ones are through.
#[derive(Debug, Default)]
struct LinkDirection {
    left: i64,
}

impl LinkDirection {
    fn tick(&mut self) -> bool {
        self.left = (self.left + BYTES).min(BYTES);
        self.left > 0
    }

    fn takes(&mut self, beat: &Beat) {
        self.left -= beat.len as i64 + if beat.last { FRAME_OVERHEAD } else { 0 };
    }
}

/// Sides that send data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Load {
    circuit: bool,
    peer: bool,
    /// Number of paths of the only destination that are up.
    paths: u32,
}

impl Load {
    /// Returns the bytes that a packet takes in the full direction. If one side sends, that is the direction of its
    /// acknowledgements. If both send, both directions carry packets and acknowledgements.
    fn bytes(self) -> usize {
        if self.circuit && self.peer { DATA + ACK } else { ACK }
    }
}

/// Rates measured after the start phase.
#[derive(Clone, Copy, Debug)]
struct Rates {
    /// Clocks per data packet sent, and per data packet received.
    out: f64,
    in_: f64,
    /// Largest number of beats from the link that waited for the circuit.
    waited: usize,
}

struct Peer {
    rng: Rng,
    /// Answers, with the clock from which each may be sent.
    answers: VecDeque<(usize, Vec<u8>)>,
    sent: u64,
    sends: bool,
    /// Pace of data, such that the answers to it fit the link.
    next_data: f64,
    each: f64,
    /// True if the last frame was an answer.
    answered: bool,
}

impl Peer {
    fn frame_of(&mut self, dst_qp: QpNum, path: PathId, body: Body) -> Vec<u8> {
        let segment = Segment::new(dst_qp, QpNum(9), path, body);
        let mut route = route(&mut self.rng, &segment);
        route.src_ip = address_of(0).into();
        route.ecn = Ecn::Capable0;
        frame(&mut self.rng, &segment, &route)
    }

    /// Receives a frame of the circuit.
    fn receive(&mut self, clock: usize, frame: &[u8]) {
        let packet = Packet::parse_ethernet(frame).expect("what the circuit sends");
        let segment = packet.segment(0);
        // Paths differ by 80 ns in delay, and packets on one path by up to as much.
        let took = |rng: &mut Rng| {
            Time::from_ps(80_000 * (12 + u64::from(segment.path.0)) + u64::from(rng.below(80_000)))
        };
        let away = took(&mut self.rng);
        match segment.body {
            Body::Data(data) => {
                let psn = data.psn;
                let body = Body::Ack(Ack {
                    cumulative: psn,
                    psn,
                    back: 0,
                    sack: 0,
                    echo_sent_at: data.sent_at,
                    received_at: Time::from_ps(data.sent_at.as_ps() + away.as_ps()),
                    packets: 1,
                    marked: 0,
                    notices: NoticePermission::Welcome,
                });
                let flow = QpNum(self.rng.below(1 << FLOW));
                let frame = self.frame_of(flow, segment.path, body);
                self.answers.push_back((clock + MIN_ANSWER_CLOCKS, frame));
            }
            Body::Control(Control::Probe { sent_at }) => {
                let received_at = Time::from_ps(sent_at.as_ps() + away.as_ps());
                let body = Body::Control(Control::ProbeReply { sent_at, received_at });
                let frame = self.frame_of(QpNum(1), segment.path, body);
                self.answers.push_back((clock + MIN_ANSWER_CLOCKS, frame));
            }
            Body::Ack(_) => {}
            other => panic!("an answer to what the peer sends: {other:?}"),
        }
    }

    fn next(&mut self, clock: usize) -> Option<Vec<u8>> {
        let data = self.sends && self.next_data <= clock as f64;
        let answer = self.answers.front().is_some_and(|(from, _)| *from <= clock);
        // Answers and data alternate, as in the circuit.
        self.answered = answer && !(data && self.answered);
        if self.answered {
            return self.answers.pop_front().map(|(_, frame)| frame);
        }
        if !data {
            return None;
        }
        self.next_data += self.each;
        // The even flows are open, each starting at a different PSN.
        let flow = self.sent % 4 * 2;
        let psn = (flow * 1_000 + self.sent / 4) % PSNS;
        self.sent += 1;
        let body = Body::Data(a_send(psn, 0));
        let path = PathId(self.rng.below(PATHS as u32) as u16);
        Some(self.frame_of(QpNum(flow as u32), path, body))
    }
}

/// Sends for `clocks`, and then until everything has arrived. Compares the circuit's output with the integers.
fn measure(load: Load, clocks: usize) -> Option<Rates> {
    let mut bench = Bench::new()?;
    let mut rng = Rng::for_component(1, "cosim-line", 0);
    let mut peer = Peer {
        rng: Rng::for_component(1, "cosim-line-peer", 0),
        answers: VecDeque::new(),
        sent: 0,
        sends: load.peer,
        next_data: 0.0,
        answered: false,
        each: load.bytes() as f64 / BYTES as f64,
    };
    let segment = Segment::new(QpNum(3), QpNum(4), PathId(0), Body::Data(a_send(7, 0)));
    let route = route(&mut rng, &segment);
    let least = frame(&mut rng, &segment, &route);
    assert_eq!(least.len() + FRAME_OVERHEAD as usize, DATA);

    let setup: Vec<_> =
        (load.paths..PATHS as u32).flat_map(|path| command(Command::Path, [path << 16, 0, 0])).collect();
    bench.run(&[setup, vec![idle(7); 20]].concat(), &[], &[]);

    let (mut arriving, mut requests, mut responses) = (Vec::new(), Vec::new(), Vec::<Vec<u32>>::new());
    let (mut inwards, mut outwards) = (LinkDirection::default(), LinkDirection::default());
    let (mut line, mut host) = (VecDeque::<Beat>::new(), VecDeque::<Beat>::new());
    let mut to_line = Assembly::default();
    // Beats that wait in the queues of the bench.
    let (mut waits, mut host_waits, mut waited) = (0usize, 0usize, 0);
    let (mut left, mut arrived) = (Vec::new(), Vec::new());
    for clock in 0..clocks + 3_000 {
        let sends = clock < clocks;
        peer.sends &= sends;
        let line_is_ready = outwards.tick();
        let mut words = idle(6 | u32::from(line_is_ready));
        if inwards.tick() {
            if line.is_empty()
                && let Some(frame) = peer.next(clock)
            {
                line.extend(beats(&frame, 0));
                arriving.push(frame);
            }
            if let Some(beat) = line.pop_front() {
                inwards.takes(&beat);
                put_line(&mut words, &beat);
                waits += 1;
            }
        }
        // The host always has more to send.
        if host.is_empty() && load.circuit && sends && host_waits < 16 {
            host.extend(beats(&least, 0));
            requests.push(Request { frame: least.clone(), ours: true, chosen: Some((clock as u16, 0)) });
        }
        if let Some(beat) = host.pop_front() {
            put_host(&mut words, &beat, requests.last().expect("its request"));
            host_waits += 1;
        }
        let response = bench.model.run(&[words]).pop().expect("a clock");
        let flag = |bit: u32| response[0] >> bit & 1 == 1;
        host_waits -= usize::from(flag(30));
        waits -= usize::from(flag(7));
        waited = waited.max(waits);
        if flag(4) {
            let beat = beat_of(&response, LINE_BEAT, flag(5));
            outwards.takes(&beat);
            if let Some(frame) = to_line.push(&beat) {
                let data = frame.len() == least.len() && frame[42] & 0x3f < 0x11;
                peer.receive(clock, &frame);
                match (data, frame.len() + FRAME_OVERHEAD as usize == ACK) {
                    (true, _) => left.push(clock),
                    (_, true) => arrived.push(clock),
                    _ => {}
                }
            }
        }
        assert!(now_of(&response) > 0, "the clock runs");
        responses.push(response);
    }
    bench.check(&arriving, &requests, &responses);
    // Counts the second half only, in which the pipeline is full.
    let each = |ends: &[usize]| {
        let counted: Vec<_> = ends.iter().filter(|clock| (clocks / 2..clocks).contains(*clock)).collect();
        clocks as f64 / 2.0 / counted.len() as f64
    };
    Some(Rates { out: each(&left), in_: each(&arrived), waited })
}

/// A packet takes the clocks that the link needs for it and its acknowledgement, with 1 % more for probes. Nothing
/// queues in front of the circuit. This holds for each direction, and for both together.
#[test]
fn a_line_full_of_least_frames_is_as_fast_as_the_line() {
    for (circuit, peer) in [(true, true), (true, false), (false, true)] {
        let load = Load { circuit, peer, paths: PATHS as u32 };
        let Some(rates) = measure(load, 4_000) else { return };
        let line = load.bytes() as f64 / BYTES as f64;
        println!("{load:?}: {rates:?}, the line needs {line}");
        assert!(!circuit || rates.out < 1.01 * line, "{rates:?}");
        assert!(!peer || rates.in_ < 1.01 * line, "{rates:?}");
        assert!(rates.waited < 16, "{rates:?}");
    }
}

/// All packets take one path. Then, the loss rings need two clocks for each sent packet and two for each acknowledged
/// one. So four clocks limit one direction, and the link with 4.72 limits both together.
#[test]
fn one_path_for_all_is_slower_than_the_line_one_way() {
    for (peer, bound) in [(true, 1.01 * 4.72), (false, 1.01 * 4.0)] {
        let load = Load { circuit: true, peer, paths: 1 };
        let Some(rates) = measure(load, 4_000) else { return };
        println!("{load:?}: {rates:?}");
        assert!(rates.out < bound, "{rates:?}");
    }
}
