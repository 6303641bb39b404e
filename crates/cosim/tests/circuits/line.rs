//! The whole of LAPS as a circuit on a line of 100 Gb/s full of least frames: how many clocks a packet takes. A peer
//! acknowledges what leaves, answers probes and sends data itself; both directions are as fast as the line, frame by
//! frame, and no faster. All that leaves is compared with the integers as everywhere.

use std::collections::VecDeque;

use pathweave_units::{PathId, QpNum, Rng, Time};
use pathweave_wire::{Ack, Body, Control, Ecn, Notices, Packet, Segment};

use crate::frames::{Beat, a_send, beats, frame, route};
use crate::receive::Assembly;
use crate::registers::Command;
use crate::top::{
    Bench, FLOW, LINE_BEAT, PATHS, Request, address_of, beat_of, command, idle, now_of, put_host, put_line,
};

/// Bytes of the line a clock: 100 Gb/s at 250 MHz.
const BYTES: i64 = 50;
/// Checksum of Ethernet, preamble, gap.
const AROUND: i64 = 24;
/// Least data packet and its acknowledgement on the line, in bytes.
const DATA: usize = 110;
const ACK: usize = 126;
/// Clocks from a frame that has left to its answer at the earliest: the loss rings of the bench hold what leaves
/// meanwhile.
const AWAY: usize = 60;
/// PSNs of a flow without an acknowledgement.
const PSNS: u64 = 1 << 24;

/// A direction of the line: it takes the next beat when those before are through.
#[derive(Debug, Default)]
struct Wire {
    left: i64,
}

impl Wire {
    fn tick(&mut self) -> bool {
        self.left = (self.left + BYTES).min(BYTES);
        self.left > 0
    }

    fn takes(&mut self, beat: &Beat) {
        self.left -= beat.len as i64 + if beat.last { AROUND } else { 0 };
    }
}

/// Which of the two send data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Load {
    circuit: bool,
    peer: bool,
    /// Paths of the only destination that are up.
    paths: u32,
}

impl Load {
    /// Bytes that a packet takes of the line in the direction that is full: of its acknowledgement, if only one side
    /// sends; both directions have packets and acknowledgements if both do.
    fn bytes(self) -> usize {
        if self.circuit && self.peer { DATA + ACK } else { ACK }
    }
}

/// What was measured, after the beginning.
#[derive(Clone, Copy, Debug)]
struct Rates {
    /// Clocks for each data packet that leaves, and for each that arrives.
    out: f64,
    in_: f64,
    /// Most beats from the line that have waited for the circuit.
    waited: usize,
}

struct Peer {
    rng: Rng,
    /// Answers, with the clock from which on they may be sent.
    answers: VecDeque<(usize, Vec<u8>)>,
    sent: u64,
    sends: bool,
    /// Data goes no faster than what it is answered with fits on the line.
    next_data: f64,
    each: f64,
    /// The last frame was an answer.
    answered: bool,
}

impl Peer {
    fn frame_of(&mut self, dst_qp: QpNum, path: PathId, body: Body) -> Vec<u8> {
        let segment = Segment { dst_qp, src_qp: QpNum(9), path, pull_target: None, body };
        let mut route = route(&mut self.rng, &segment);
        route.src_ip = address_of(0).into();
        route.ecn = Ecn::Capable0;
        frame(&mut self.rng, &segment, &route)
    }

    /// A frame of the circuit's arrives.
    fn hears(&mut self, clock: usize, frame: &[u8]) {
        let packet = Packet::parse_ethernet(frame).expect("what the circuit sends");
        let segment = packet.segment(0);
        // Paths differ by 80 ns, and each packet by as much.
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
                    notices: Notices::Welcome,
                });
                let flow = QpNum(self.rng.below(1 << FLOW));
                let frame = self.frame_of(flow, segment.path, body);
                self.answers.push_back((clock + AWAY, frame));
            }
            Body::Control(Control::Probe { sent_at }) => {
                let received_at = Time::from_ps(sent_at.as_ps() + away.as_ps());
                let body = Body::Control(Control::ProbeReply { sent_at, received_at });
                let frame = self.frame_of(QpNum(1), segment.path, body);
                self.answers.push_back((clock + AWAY, frame));
            }
            Body::Ack(_) => {}
            other => panic!("an answer to what the peer sends: {other:?}"),
        }
    }

    fn next(&mut self, clock: usize) -> Option<Vec<u8>> {
        let data = self.sends && self.next_data <= clock as f64;
        let answer = self.answers.front().is_some_and(|(from, _)| *from <= clock);
        // By turns, as the circuit does.
        self.answered = answer && !(data && self.answered);
        if self.answered {
            return self.answers.pop_front().map(|(_, frame)| frame);
        }
        if !data {
            return None;
        }
        self.next_data += self.each;
        // The even flows are open, each from a PSN of its own on.
        let flow = self.sent % 4 * 2;
        let psn = (flow * 1_000 + self.sent / 4) % PSNS;
        self.sent += 1;
        let body = Body::Data(a_send(psn, 0));
        let path = PathId(self.rng.below(PATHS as u32) as u16);
        Some(self.frame_of(QpNum(flow as u32), path, body))
    }
}

/// Sends for `clocks`, then until all is through; what the circuit has done is that of the integers.
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
    let segment = Segment {
        dst_qp: QpNum(3),
        src_qp: QpNum(4),
        path: PathId(0),
        pull_target: None,
        body: Body::Data(a_send(7, 0)),
    };
    let route = route(&mut rng, &segment);
    let least = frame(&mut rng, &segment, &route);
    assert_eq!(least.len() + AROUND as usize, DATA);

    let setup: Vec<_> =
        (load.paths..PATHS as u32).flat_map(|path| command(Command::Path, [path << 16, 0, 0])).collect();
    bench.run(&[setup, vec![idle(7); 20]].concat(), &[], &[]);

    let (mut arriving, mut requests, mut responses) = (Vec::new(), Vec::new(), Vec::<Vec<u32>>::new());
    let (mut inwards, mut outwards) = (Wire::default(), Wire::default());
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
        // The host has always more to send.
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
                peer.hears(clock, &frame);
                match (data, frame.len() + AROUND as usize == ACK) {
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
    // Of the second half, when all is on its way.
    let each = |ends: &[usize]| {
        let counted: Vec<_> = ends.iter().filter(|clock| (clocks / 2..clocks).contains(*clock)).collect();
        clocks as f64 / 2.0 / counted.len() as f64
    };
    Some(Rates { out: each(&left), in_: each(&arrived), waited })
}

/// A packet takes as many clocks as the line needs for it and its acknowledgement, whichever direction they go, with
/// a hundredth more for probes, and nothing piles up before the circuit.
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

/// If all packets take one path, the loss rings need two clocks for each that leaves and two for each that is heard
/// of. Then four clocks bound the one direction, and the line, with 4.72, both together.
#[test]
fn one_path_for_all_is_slower_than_the_line_one_way() {
    for (peer, bound) in [(true, 1.01 * 4.72), (false, 1.01 * 4.0)] {
        let load = Load { circuit: true, peer, paths: 1 };
        let Some(rates) = measure(load, 4_000) else { return };
        println!("{load:?}: {rates:?}");
        assert!(rates.out < bound, "{rates:?}");
    }
}
