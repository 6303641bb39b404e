//! A datagram queue pair with two peers: one follows the protocol, the other (the liar) sends anything, in packets
//! and on the side channel.

use std::collections::BTreeMap;

use pathweave_policy::{AnyPolicy, MeasuredSection, PolicyEnv, Scheme, Service};
use pathweave_transport::rd::{PeerId, RdConfig, RdEvent, RdPlacement, RdQp, SideMessage};
use pathweave_transport::{Class, FreePorts, Status, Transmit, Transport};
use pathweave_units::{Duration, HostId, PathId, QpNum, Rate, Rng, Time};
use pathweave_wire::{Body, Framing, PsnRun, RdFlow, Segment, SideFrame};

use super::choices::{Aim, Choices, any_body, any_rd};

const MTU: u16 = 1_024;
const LINE_RATE: Rate = Rate::from_gbps(100);
const ONE_WAY: Duration = Duration::from_us(1);
/// Delay of a side message.
const SIDE_ONE_WAY: Duration = Duration::from_us(3);
const RTT: Duration = Duration::from_us(3);
/// The queue pair under test, the honest peer, and the liar.
const PEERS: [PeerId; 3] = [
    PeerId { host: HostId(0), qp: QpNum(10) },
    PeerId { host: HostId(1), qp: QpNum(11) },
    PeerId { host: HostId(2), qp: QpNum(12) },
];
const OURS: usize = 0;
const HONEST: usize = 1;
const LIAR: usize = 2;
/// Largest number of side messages to the liar when a data packet leaves for it. The packet is the first of its
/// message, which is announced, or the last one, after which `Sent` follows. For a message of one packet, the
/// announcement covers both. A link carries one packet at a time, so this counts once.
const MOST_WITH_DATA: u32 = 1;
/// Largest number of outputs for the liar that one of its inputs causes, packets and side messages. A packet causes a
/// congestion notification and a `Done`. A side message causes one `Done`, `Ready`, `Wait` or `Abort`.
const MOST_ANSWERS: u32 = 2 + MOST_WITH_DATA;
/// Largest number of outputs of one timer: the scan sends one NACK, however much is missing.
const MOST_AT_TIMER: u32 = 1 + MOST_WITH_DATA;
/// Number of messages to the liar that are posted at a time.
const POSTED: usize = 8;
/// Number of messages that the driver checks for reminders.
const REMINDED: u32 = 4;
/// Upper bound of an honest round's duration, whatever the liar does.
const PATIENCE: Duration = Duration::from_ms(200);

/// Number of kinds of side message. A new kind must be added here and in `lie_aside`.
pub(crate) const SIDE_KINDS: usize = 9;

fn kind_aside(message: &SideMessage) -> usize {
    match message {
        SideMessage::Start { .. } => 0,
        SideMessage::Done { .. } => 1,
        SideMessage::Abort { .. } => 2,
        SideMessage::Nack { .. } => 3,
        SideMessage::Wait { .. } => 4,
        SideMessage::Ready { .. } => 5,
        SideMessage::Close { .. } => 6,
        SideMessage::Closed { .. } => 7,
        SideMessage::Sent { .. } => 8,
    }
}

enum Due {
    Packet { segment: Segment, payload: Option<(u64, u64)> },
    Side(SideMessage),
}

pub(crate) struct RdWorld<'a> {
    choices: Choices<'a>,
    now: Time,
    qps: [RdQp<AnyPolicy>; 2],
    capacity: u16,
    /// Inputs in flight by arrival time and order of sending: destination and input.
    wire: BTreeMap<(Time, u64), (usize, Due)>,
    sent: u64,
    port_free_at: [Time; 2],
    /// Honest rounds so far. `awaited` holds for each honest end the messages posted, with the bytes placed.
    rounds: u64,
    round_begun: Time,
    awaited: BTreeMap<(usize, u64), u64>,
    placed: BTreeMap<(usize, u64), u64>,
    /// Messages to the liar that are not done, and their length.
    to_liar: BTreeMap<u64, u64>,
    next_wr_id: u64,
    own_psn: u64,
    answers: u32,
    pub(crate) most_answers: u32,
    /// Number of hostile side messages, by kind.
    pub(crate) said: [u64; SIDE_KINDS],
    pub(crate) rounds_done: u64,
}

impl<'a> RdWorld<'a> {
    pub(crate) fn new(scheme: &Scheme, choices: Choices<'a>) -> Self {
        let Service::Datagram(behaviour) = scheme.service else { panic!("datagrams") };
        let env = PolicyEnv {
            line_rate: LINE_RATE,
            base_rtt: RTT,
            mtu_wire_bytes: 1_130,
            mtu_payload_bytes: u32::from(MTU),
            paths: 4,
            measured: MeasuredSection::with_rtt(RTT),
            edge: None,
        };
        let make = |own: usize| {
            let mut rng = Rng::for_component(1, "made", own as u64);
            let (policy, control) = scheme.datagram_policy(&env, &mut rng);
            let mut qp = RdQp::new(RdConfig {
                num: PEERS[own].qp,
                policy,
                control,
                behaviour,
                mtu_payload: MTU,
                framing: Framing::Pathweave,
                paths: env.paths,
                nic_ports: 1,
                seed: 1,
                rtt: RTT,
                nack_delay: Duration::ZERO,
            });
            PEERS
                .iter()
                .filter(|peer| **peer != PEERS[own])
                .for_each(|peer| qp.add_peer(Time::ZERO, *peer, RTT));
            qp
        };
        let mut world = RdWorld {
            choices,
            now: Time::ZERO,
            qps: [make(OURS), make(HONEST)],
            capacity: behaviour.capacity(MTU),
            wire: BTreeMap::new(),
            sent: 0,
            port_free_at: [Time::ZERO; 2],
            rounds: 0,
            round_begun: Time::ZERO,
            awaited: BTreeMap::new(),
            placed: BTreeMap::new(),
            to_liar: BTreeMap::new(),
            next_wr_id: 1 << 32,
            own_psn: 0,
            answers: 0,
            most_answers: 0,
            said: [0; SIDE_KINDS],
            rounds_done: 0,
        };
        world.post_round();
        world.drain();
        world
    }

    /// Performs operations until the choices end, then lets the honest ends finish.
    pub(crate) fn run(&mut self) {
        while self.choices.go_on() {
            self.operation();
        }
        while !self.awaited.is_empty() {
            self.check_patience();
            assert!(self.step(), "nothing will ever happen: {:?}", self.awaited);
        }
    }

    /// Performs `count` more operations.
    pub(crate) fn operations(&mut self, count: u32) {
        (0..count).for_each(|_| self.operation());
    }

    fn check_patience(&self) {
        let waited = self.now.saturating_since(self.round_begun);
        assert!(waited <= PATIENCE, "honest messages make no headway: {:?}", self.awaited);
    }

    fn operation(&mut self) {
        let mut most = MOST_ANSWERS;
        match self.choices.below(32) {
            0..=7 => self.lie(),
            8..=15 => self.lie_aside(),
            16 => self.stray(),
            17 => most = self.drive(),
            18 if self.choices.one_in(4) => self.restart_liar(),
            19..=21 => self.post_to_liar(),
            22 => {
                let span = Duration::from_ns(self.choices.number(1_000) % 200_000);
                self.pass(self.now + span);
            }
            _ => {
                self.step();
            }
        }
        self.drain();
        self.count_answers(most, &"the driver");
        if self.awaited.is_empty() {
            self.rounds_done += 1;
            self.post_round();
            self.drain();
        }
        self.check_patience();
    }

    /// Performs an operation of the driver. Returns the largest number of side messages to the liar that it may
    /// cause: each repeated announcement once, and one `Sent`; or one answer for the waiting message.
    fn drive(&mut self) -> u32 {
        let (now, liar) = (self.now, PEERS[LIAR]);
        let msg = self.choices.number(0);
        let words = match self.choices.below(4) {
            0 => {
                self.qps[OURS].on_side_reset(now, liar.host);
                self.to_liar.len() as u32 + 1
            }
            1 => {
                self.qps[OURS].release(now, liar);
                1
            }
            2 => {
                self.qps[OURS].remind(now, liar, msg, REMINDED as usize);
                REMINDED + 1
            }
            _ => {
                if let Some((msg, _)) = self.qps[OURS].announced(liar, msg as u16) {
                    self.qps[OURS].defer(now, liar, msg);
                }
                1
            }
        };
        words + MOST_WITH_DATA
    }

    fn aim(&self) -> Aim {
        Aim {
            now: self.now,
            data_psn: self.qps[OURS].expected_psn(PEERS[LIAR]).unwrap_or(0),
            own_psn: self.own_psn,
            mtu_payload: self.capacity,
            rkeys: [0, 1],
            paths: 4,
        }
    }

    /// Sends a packet of the liar, mostly a datagram.
    fn lie(&mut self) {
        let aim = self.aim();
        let (body, path) = if self.choices.one_in(4) {
            any_body(&mut self.choices, &aim)
        } else {
            let data = any_rd(&mut self.choices, aim.data_psn, self.capacity);
            (Body::Rd(data), PathId(self.choices.below(4) as u16))
        };
        // A packet with length 0 or an offset overflow does not survive parsing.
        if let Body::Rd(data) = &body
            && (data.len == 0 || data.offset.checked_add(u32::from(data.len)).is_none())
        {
            return;
        }
        let segment = Segment::new(PEERS[OURS].qp, PEERS[LIAR].qp, path, body);
        let marked = self.choices.one_in(3);
        if let Some(RdPlacement { from, len, offset, .. }) =
            self.qps[OURS].on_packet(self.now, PEERS[LIAR].host, &segment, marked)
        {
            let Body::Rd(data) = &segment.body else { panic!("{segment:?} is placed") };
            assert_eq!((from, len, offset), (PEERS[LIAR], data.len, data.offset));
        }
        self.drain();
        self.count_answers(MOST_ANSWERS, &segment);
    }

    /// Sends a side message of the liar, within the limits of its format.
    fn lie_aside(&mut self) {
        let aim = self.aim();
        let flow = |of_sender: bool| {
            let (src, dst) = if of_sender { (LIAR, OURS) } else { (OURS, LIAR) };
            RdFlow { src_qp: PEERS[src].qp, dst_qp: PEERS[dst].qp }
        };
        let choices = &mut self.choices;
        let msg_id = choices.number(0) as u16;
        let message = match choices.below(9) {
            0 => SideMessage::Start {
                flow: flow(true),
                msg_id,
                first_psn: choices.number(aim.data_psn),
                packets: choices.number(2) as u32,
                total: choices.number(5_000),
                again: choices.bit(),
            },
            1 => SideMessage::Wait { flow: flow(false), msg_id, first_psn: choices.number(aim.own_psn) },
            2 => SideMessage::Ready { flow: flow(false), msg_id, from_psn: choices.number(aim.own_psn) },
            3 if choices.bit() => SideMessage::Close { flow: flow(true) },
            3 => SideMessage::Closed { flow: flow(true) },
            4 => SideMessage::Done { flow: flow(false), msg_id, first_psn: choices.number(aim.own_psn) },
            5 | 6 => SideMessage::Abort {
                flow: flow(true),
                msg_id,
                first_psn: choices.number(aim.data_psn),
                packets: choices.number(2) as u32,
            },
            7 => SideMessage::Sent { flow: flow(true), end_psn: choices.number(aim.data_psn) },
            _ => {
                let mut next = choices.number(aim.own_psn);
                let mut runs = Vec::new();
                for _ in 0..=choices.below(40) {
                    let count = 1 + choices.below(256) as u16;
                    runs.push(PsnRun { first: next, count });
                    next = next.saturating_add(u64::from(count) + u64::from(choices.below(300)));
                }
                SideMessage::Nack { flow: flow(false), runs }
            }
        };
        let mut bytes = vec![0; message.encoded_len()];
        message.emit(&mut bytes);
        let Ok((frame, _)) = SideFrame::parse(&bytes) else { return };
        let message: SideMessage = frame.to_owned();
        self.said[kind_aside(&message)] += 1;
        self.qps[OURS].on_side(self.now, PEERS[LIAR].host, &message);
        self.drain();
        self.count_answers(MOST_ANSWERS, &message);
    }

    /// Sends a packet of an unknown peer.
    fn stray(&mut self) {
        let aim = self.aim();
        let (body, path) = any_body(&mut self.choices, &aim);
        let segment = Segment::new(PEERS[OURS].qp, QpNum(99), path, body);
        let host = self.choices.of(&[HostId(0), HostId(1), HostId(2), HostId(9)]);
        assert_eq!(self.qps[OURS].on_packet(self.now, host, &segment, false), None);
        self.drain();
        assert_eq!(self.answers, 0, "strangers are not answered: {segment:?}");
    }

    /// Removes the liar and adds it again.
    fn restart_liar(&mut self) {
        self.qps[OURS].remove_peer(self.now, PEERS[LIAR]);
        self.drain();
        assert!(self.to_liar.is_empty(), "what was posted is completed: {:?}", self.to_liar);
        self.qps[OURS].add_peer(self.now, PEERS[LIAR], RTT);
    }

    fn post_to_liar(&mut self) {
        if self.to_liar.len() < POSTED {
            let len = 1 + u64::from(self.choices.below(60_000));
            if self.qps[OURS].post(self.now, PEERS[LIAR], self.next_wr_id, len).is_ok() {
                self.to_liar.insert(self.next_wr_id, len);
                self.next_wr_id += 1;
            }
        }
    }

    fn count_answers(&mut self, most: u32, cause: &dyn core::fmt::Debug) {
        assert!(self.answers <= most, "{} answers of {most} to {cause:?}", self.answers);
        self.most_answers = self.most_answers.max(self.answers);
        self.answers = 0;
    }

    /// Advances to the next time at which something happens. Returns false if nothing does.
    fn step(&mut self) -> bool {
        let ports = self.port_free_at.into_iter().filter(|&at| at > self.now);
        let Some(next) = self.next().into_iter().chain(ports).min() else { return false };
        self.pass(next);
        true
    }

    fn next(&self) -> Option<Time> {
        let arrival = self.wire.keys().next().map(|&(at, _)| at);
        arrival.into_iter().chain(self.qps.iter().filter_map(RdQp::poll_timer)).min()
    }

    /// Advances time until `to`, or to an earlier event.
    fn pass(&mut self, to: Time) {
        self.now = self.now.max(self.next().map_or(to, |first| first.min(to)));
        while let Some(entry) = self.wire.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let (end, due) = entry.remove();
            let from = PEERS[1 - end];
            match due {
                Due::Side(message) => self.qps[end].on_side(self.now, from.host, &message),
                Due::Packet { segment, payload } => {
                    if let Some(place) = self.qps[end].on_packet(self.now, from.host, &segment, false) {
                        self.place(end, &place, payload.expect("only payload is placed"));
                    }
                }
            }
            self.drain();
            self.answers = 0;
        }
        for end in [OURS, HONEST] {
            if self.qps[end].poll_timer().is_some_and(|at| at <= self.now) {
                self.qps[end].on_timer(self.now);
                let next = self.qps[end].poll_timer();
                assert!(next.is_none_or(|at| at > self.now), "a timer is due again at once");
            }
        }
        self.drain();
        self.count_answers(MOST_AT_TIMER, &"a timer");
    }

    /// Checks that payload named by request and offset arrives at the same offset of the right message.
    fn place(&mut self, end: usize, place: &RdPlacement, (wr_id, offset): (u64, u64)) {
        assert_eq!(place.from, PEERS[1 - end]);
        assert_eq!((place.msg, u64::from(place.offset)), (wr_id, offset), "bytes of another place");
        *self.placed.entry((end, place.msg)).or_default() += u64::from(place.len);
    }

    /// Drains every output of both ends.
    fn drain(&mut self) {
        for end in [OURS, HONEST] {
            // First, because the first packet of a message causes an announcement on the side channel.
            loop {
                let gate =
                    if self.port_free_at[end] <= self.now { FreePorts::OPEN } else { FreePorts::CONTROL };
                let Some(packet) = self.qps[end].poll_transmit(self.now, gate) else { break };
                if packet.class == Class::Data {
                    let time = LINE_RATE.time_for(u64::from(packet.wire_bytes.max(1)));
                    self.port_free_at[end] = self.now + time;
                }
                self.carry(end, &packet);
            }
            while let Some((to, message)) = self.qps[end].poll_side() {
                if to == PEERS[LIAR].host {
                    self.answers += 1;
                } else {
                    self.wire.insert((self.now + SIDE_ONE_WAY, self.sent), (1 - end, Due::Side(message)));
                    self.sent += 1;
                }
            }
            while let Some(event) = self.qps[end].poll_event() {
                self.on_event(end, event);
            }
        }
    }

    fn carry(&mut self, end: usize, packet: &Transmit) {
        let payload = packet.payload.map(|payload| (payload.buffer.0, payload.offset));
        if packet.to == PEERS[LIAR].host {
            match (&packet.segment.body, packet.payload) {
                (Body::Rd(data), Some(payload)) => {
                    self.own_psn = data.psn;
                    let len = self.to_liar.get(&payload.buffer.0);
                    let end = payload.offset + u64::from(payload.len);
                    assert!(len.is_some_and(|&len| end <= len), "the liar is sent {payload:?}");
                }
                _ => self.answers += 1,
            }
            return;
        }
        let due = Due::Packet { segment: packet.segment, payload };
        self.wire.insert((self.now + ONE_WAY, self.sent), (1 - end, due));
        self.sent += 1;
    }

    fn on_event(&mut self, end: usize, event: RdEvent) {
        match event {
            RdEvent::Completion { wr_id, to, .. } if to == PEERS[LIAR] => {
                assert!(self.to_liar.remove(&wr_id).is_some(), "message {wr_id} is completed twice");
            }
            RdEvent::Completion { wr_id, status, .. } => {
                assert_eq!(status, Status::Success, "honest message {wr_id} of end {end}");
                assert!(self.awaited.remove(&(end, wr_id)).is_some(), "message {wr_id} is completed twice");
            }
            RdEvent::Delivered { from, .. } | RdEvent::Abandoned { from, .. } if from == PEERS[LIAR] => {}
            RdEvent::Delivered { msg, bytes, .. } => {
                assert_eq!(self.placed.remove(&(end, msg)), Some(bytes), "message {msg} at end {end}");
                assert!(self.awaited.remove(&(end + 2, msg)).is_some_and(|len| len == bytes));
            }
            RdEvent::Abandoned { msg, .. } => panic!("honest message {msg} is given up"),
        }
    }

    /// Posts a message in each direction. Their completion and delivery are awaited.
    fn post_round(&mut self) {
        let len = 1 + self.rounds * 1_237 % 7_000;
        self.round_begun = self.now;
        for end in [OURS, HONEST] {
            self.qps[end].post(self.now, PEERS[1 - end], self.rounds, len).expect("there is room");
            self.awaited.insert((end, self.rounds), len);
            self.awaited.insert((1 - end + 2, self.rounds), len);
        }
        self.rounds += 1;
    }
}
