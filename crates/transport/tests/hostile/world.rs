//! One endpoint with two peers: one follows the protocol, the other (the liar) knows it and violates it.

use std::collections::BTreeMap;

use pathweave_policy::{AnyPolicy, MeasuredSection, PathState, PathView, PeerKind, PolicyEnv, Scheme};
use pathweave_transport::{
    Access, Buffer, Class, Completion, Domain, Endpoint, EndpointConfig, Event, FreePorts, MemoryRegion, Op,
    Placement, QpConfig, RecvRequest, Scope, Status, Transmit, WorkRequest,
};
use pathweave_units::{Duration, HostId, PathId, QpNum, Rate, Rng, Time};
use pathweave_wire::{Body, Segment};

use super::choices::{Aim, Choices, PACKET_KINDS, any_body, any_credit, kind_of_packet, stray};

/// Payload of a full packet.
const MTU: u16 = 1_024;
/// Approximate wire bytes of a full packet.
const MTU_WIRE: u32 = 1_130;
const LINE_RATE: Rate = Rate::from_gbps(100);
/// One-way delay to the honest peer.
const ONE_WAY: Duration = Duration::from_us(1);
const RTT: Duration = Duration::from_us(3);
/// The hosts: the endpoint under test, the honest peer, and the liar.
const OURS: HostId = HostId(0);
const HONEST: HostId = HostId(1);
const LIAR: HostId = HostId(2);
/// Number of the liar's queue pair.
const LIARS_QP: QpNum = QpNum(77);
/// Protection domain of the honest connection. The liar's is the default one.
const HONEST_DOMAIN: Domain = Domain(1);
/// Bytes of memory of each honest end.
const MEMORY: usize = 64 << 10;
/// Bytes that the liar may read and write.
const OPEN_TO_LIAR: u64 = 20_000;
/// Memory handles. Those of the honest ends are offsets in their memory. Then come the region open to the liar, and
/// buffers of requests towards it.
const LIARS_REGION: u64 = 1 << 40;
const FIRST_POSTED: u64 = LIARS_REGION + 1;
/// Number of requests towards the liar that are posted at a time.
const POSTED: usize = 32;
/// Largest number of control packets that one packet of the liar, or one timer, causes: an answer, a congestion
/// notification, and reports of missing packets, each of which covers 64 packets of a window.
const MOST_ANSWERS: u32 = 2 + 1_024 / 64;
/// Upper bound of an honest round's duration, whatever the liar does.
const PATIENCE: Duration = Duration::from_ms(200);

/// A packet in flight between the honest ends.
struct Packet {
    to_peer: bool,
    segment: Segment,
    payload: Vec<u8>,
}

pub(crate) struct World<'a> {
    choices: Choices<'a>,
    now: Time,
    scheme: Scheme,
    paths: u16,
    ours: Endpoint<AnyPolicy>,
    peer: Endpoint<AnyPolicy>,
    /// Queue pairs of the honest connection at both ends.
    honest: [QpNum; 2],
    /// Key of the honest peer's memory.
    peers_key: u64,
    /// Memory of both honest ends.
    memory: [Vec<u8>; 2],
    wire: BTreeMap<(Time, u64), Packet>,
    sent: u64,
    port_free_at: [Time; 2],
    /// Our queue pair of the connection with the liar, and the number of paths agreed on with it.
    lied_to: QpNum,
    lied_to_paths: u16,
    liars_key: u64,
    /// Key of our memory that is open to the honest peer alone. The liar knows it.
    others_key: u64,
    /// Buffers that the endpoint may access, by handle, with their length: those of requests that are posted and not
    /// completed.
    lent: BTreeMap<u64, u64>,
    next_handle: u64,
    /// PSNs in use that the liar could know.
    psns: [u64; 2],
    /// Requests of the honest round that are not completed, with their expected status.
    awaited: BTreeMap<(usize, u64), Status>,
    rounds: u64,
    round_begun: Time,
    /// Control packets since the last input, and their maximum.
    answers: u32,
    pub(crate) most_answers: u32,
    /// Number of forged packets, by kind.
    pub(crate) said: [u64; PACKET_KINDS],
    /// Number of honest rounds that were done while the liar was active.
    pub(crate) rounds_done: u64,
}

fn env(paths: u16, edge: bool) -> PolicyEnv {
    PolicyEnv {
        line_rate: LINE_RATE,
        base_rtt: RTT,
        mtu_wire_bytes: MTU_WIRE,
        mtu_payload_bytes: u32::from(MTU),
        paths,
        measured: MeasuredSection::with_rtt(RTT),
        edge: edge.then_some(MeasuredSection { base_rtt: Duration::from_us(1), links: 2 }),
    }
}

impl<'a> World<'a> {
    /// Opens both connections, the liar's over some of the scheme's paths.
    pub(crate) fn new(scheme: Scheme, mut choices: Choices<'a>) -> Self {
        let paths = scheme.paths.clamp(1, 8);
        let edge = choices.bit();
        // State that queue pairs share outlives them, or is dropped with their connection.
        let peers = choices.of(&[PeerKind::Hosts, PeerKind::Connections]);
        let config = |host| EndpointConfig { mtu_payload: MTU, ..EndpointConfig::new(host) };
        let (mut ours, mut peer) =
            (Endpoint::with_peers(config(OURS), peers), Endpoint::with_peers(config(HONEST), peers));
        let make = |endpoint: &mut Endpoint<AnyPolicy>, other: HostId| {
            let policy =
                scheme.policy.build(&env(paths, edge), &mut Rng::for_component(1, "made", other.0.into()));
            endpoint.create_qp(Time::ZERO, qp_config(&scheme, other, policy))
        };
        let honest = [make(&mut ours, HONEST), make(&mut peer, OURS)];
        ours.connect(honest[0], honest[1]).expect("it is there");
        peer.connect(honest[1], honest[0]).expect("it is there");
        let lied_to = make(&mut ours, LIAR);
        let region = |buffer, len| MemoryRegion {
            buffer: Buffer(buffer),
            addr: 0,
            len,
            access: Access::READ_WRITE,
            scope: Scope::DEFAULT,
        };
        let peers_key = peer.register(region(0, MEMORY as u64), 1 << 24).expect("there is room");
        let liars_key = ours.register(region(LIARS_REGION, OPEN_TO_LIAR), 2 << 24).expect("there is room");
        let of_honest = MemoryRegion { scope: Scope::domain(HONEST_DOMAIN), ..region(0, MEMORY as u64) };
        let others_key = ours.register(of_honest, 3 << 24).expect("there is room");
        let mut rng = Rng::for_component(7, "memory", 0);
        let memory = [0, 1].map(|_| (0..MEMORY).map(|_| rng.next_u64() as u8).collect());
        let mut world = World {
            choices,
            now: Time::ZERO,
            scheme,
            paths,
            ours,
            peer,
            honest,
            peers_key,
            memory,
            wire: BTreeMap::new(),
            sent: 0,
            port_free_at: [Time::ZERO; 2],
            lied_to,
            lied_to_paths: paths,
            liars_key,
            others_key,
            lent: BTreeMap::new(),
            next_handle: FIRST_POSTED,
            psns: [0; 2],
            awaited: BTreeMap::new(),
            rounds: 0,
            round_begun: Time::ZERO,
            answers: 0,
            most_answers: 0,
            said: [0; PACKET_KINDS],
            rounds_done: 0,
        };
        world.meet_liar();
        world.post_round();
        world.drain();
        world
    }

    /// Agrees with the liar on some paths, usually fewer than ours.
    fn meet_liar(&mut self) {
        self.lied_to_paths = 1 + self.choices.below(u32::from(self.paths)) as u16;
        let mut rng = Rng::for_component(2, "agreed", self.next_handle);
        let policy = self.scheme.policy.build(&env(self.lied_to_paths, false), &mut rng);
        self.ours.agree(self.now, self.lied_to, policy, MTU).expect("nothing was posted");
        self.ours.connect(self.lied_to, LIARS_QP).expect("it is there");
        self.psns = [0; 2];
    }

    /// Performs operations until the choices end, then lets the honest ends finish.
    pub(crate) fn run(&mut self) {
        while self.choices.go_on() {
            self.operation();
        }
        self.finish();
    }

    /// Performs `count` more operations.
    pub(crate) fn operations(&mut self, count: u32) {
        (0..count).for_each(|_| self.operation());
    }

    fn operation(&mut self) {
        match self.choices.below(32) {
            0..=17 => self.lie(),
            18 | 19 => self.stray(),
            20..=24 => {
                self.step();
            }
            25 => {
                let span = Duration::from_ns(self.choices.number(1_000) % 200_000);
                self.pass(self.now + span);
            }
            26..=28 => self.post_to_liar(),
            29 => self.receive_from_liar(),
            30 => self.change_paths(),
            _ if self.choices.one_in(4) => self.restart_liar(),
            _ => {
                self.step();
            }
        }
        self.drain();
        // Actions of the driver are no answers.
        self.answers = 0;
        if self.awaited.is_empty() {
            self.check_round();
            self.post_round();
            self.drain();
        }
        let waited = self.now.saturating_since(self.round_begun);
        assert!(waited <= PATIENCE, "the honest connection makes no headway: {:?}", self.awaited);
    }

    fn aim(&self) -> Aim {
        Aim {
            now: self.now,
            data_psn: self.psns[0],
            own_psn: self.psns[1],
            mtu_payload: MTU,
            rkeys: [self.others_key, self.liars_key],
            paths: self.lied_to_paths,
        }
    }

    /// Sends a packet of the liar.
    fn lie(&mut self) {
        self.answers = 0;
        let (body, path) = {
            let aim = self.aim();
            any_body(&mut self.choices, &aim)
        };
        self.said[kind_of_packet(&body)] += 1;
        let says_target = matches!(body, Body::Data(_)) && self.choices.bit();
        let pull_target = says_target.then(|| any_credit(&mut self.choices));
        let segment = Segment { dst_qp: self.lied_to, src_qp: LIARS_QP, path, pull_target, body };
        let marked = self.choices.one_in(3);
        if let Body::Data(data) = &segment.body
            && data.psn.wrapping_sub(self.psns[0]) < 64
        {
            self.psns[0] = data.psn.saturating_add(1);
        }
        let placement = self.ours.on_packet(self.now, LIAR, &segment, marked);
        if let Some(Placement { buffer, offset, len }) = placement {
            let room = match buffer.0 {
                LIARS_REGION => Some(OPEN_TO_LIAR),
                other => self.lent.get(&other).copied(),
            };
            let end = offset.checked_add(u64::from(len));
            assert!(
                room.zip(end).is_some_and(|(room, end)| end <= room),
                "{len} bytes at {offset} of memory {buffer:?} are not the liar's: {segment:?}"
            );
        }
        self.drain();
        self.count_answers(&segment);
    }

    /// Sends a packet of a stranger, or of the liar to other queue pairs.
    fn stray(&mut self) {
        let known = [self.honest[0], self.honest[1], self.lied_to, LIARS_QP];
        let aim = self.aim();
        let segment = stray(&mut self.choices, &aim, &known);
        let from = HostId(self.choices.number(1) as u32);
        // The driver keeps out packets with a forged source host.
        let forged = (from == HONEST && (segment.src_qp, segment.dst_qp) == (self.honest[1], self.honest[0]))
            || (from == LIAR && (segment.src_qp, segment.dst_qp) == (LIARS_QP, self.lied_to));
        if !forged {
            self.answers = 0;
            let placement = self.ours.on_packet(self.now, from, &segment, false);
            assert_eq!(placement, None, "from {from:?}: {segment:?}");
            self.drain();
            assert_eq!(self.answers, 0, "strangers are not answered: {segment:?}");
        }
    }

    fn count_answers(&mut self, cause: &dyn core::fmt::Debug) {
        assert!(self.answers <= MOST_ANSWERS, "{} packets answer {cause:?}", self.answers);
        self.most_answers = self.most_answers.max(self.answers);
        self.answers = 0;
    }

    fn post_to_liar(&mut self) {
        if self.lent.len() >= POSTED {
            return;
        }
        let len = match self.choices.below(3) {
            0 => u64::from(self.choices.below(4)),
            1 => u64::from(self.choices.below(5_000)),
            _ => u64::from(self.choices.below(100_000)),
        };
        let (rkey, remote_addr) = (self.choices.number(3), self.choices.number(0) >> 1);
        let imm = self.choices.below(9);
        let op = match self.choices.below(5) {
            0 => Op::Send,
            1 => Op::SendImm { imm },
            2 => Op::Write { rkey, remote_addr },
            3 => Op::WriteImm { rkey, remote_addr, imm },
            _ => Op::Read { rkey, remote_addr },
        };
        let handle = self.next_handle;
        let request = WorkRequest { wr_id: handle, op, local: Buffer(handle), len };
        if self.ours.post(self.now, self.lied_to, request).is_ok() {
            self.lent.insert(handle, len);
            self.next_handle += 1;
        }
    }

    fn receive_from_liar(&mut self) {
        if self.lent.len() >= POSTED {
            return;
        }
        let (handle, len) = (self.next_handle, u64::from(self.choices.below(10_000)));
        let request = RecvRequest { wr_id: handle, buffer: Buffer(handle), len };
        if self.ours.post_recv(self.lied_to, request).is_ok() {
            self.lent.insert(handle, len);
            self.next_handle += 1;
        }
    }

    fn change_paths(&mut self) {
        let (qp, paths) = if self.choices.bit() {
            (self.lied_to, self.lied_to_paths)
        } else {
            (self.honest[0], self.paths)
        };
        let mut views: Vec<PathView> = Vec::new();
        for path in 0..paths {
            let state = if self.choices.bit() { PathState::Down } else { PathState::Up };
            views.push(PathView::new(PathId(path), state));
        }
        self.ours.set_paths(self.now, qp, &views).expect("it is there");
        if self.choices.bit() {
            let down = views.iter().filter(|view| view.state == PathState::Down);
            let down: Vec<PathId> = down.map(|view| view.id).collect();
            self.ours.abandon(self.now, qp, &down).expect("it is there");
        }
    }

    /// Closes the liar's connection and opens another one.
    fn restart_liar(&mut self) {
        self.ours.destroy_qp(self.lied_to).expect("it is there");
        self.lent.clear();
        let mut rng = Rng::for_component(3, "again", self.next_handle);
        let policy = self.scheme.policy.build(&env(self.paths, false), &mut rng);
        self.lied_to = self.ours.create_qp(self.now, qp_config(&self.scheme, LIAR, policy));
        self.meet_liar();
    }

    /// Advances to the next time at which something happens. Returns false if nothing does.
    fn step(&mut self) -> bool {
        let arrival = self.wire.keys().next().map(|&(at, _)| at);
        let timers = [self.ours.poll_timer(), self.peer.poll_timer()];
        let ports = self.port_free_at.into_iter().filter(|&at| at > self.now);
        let next = arrival.into_iter().chain(timers.into_iter().flatten()).chain(ports).min();
        let Some(next) = next else { return false };
        self.pass(next);
        true
    }

    /// Advances time until `to`, or to an earlier event.
    fn pass(&mut self, to: Time) {
        let arrival = self.wire.keys().next().map(|&(at, _)| at);
        let timers = [self.ours.poll_timer(), self.peer.poll_timer()];
        let first = arrival.into_iter().chain(timers.into_iter().flatten()).min();
        self.now = self.now.max(first.map_or(to, |first| first.min(to)));
        while let Some(entry) = self.wire.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let Packet { to_peer, segment, payload } = entry.remove();
            let (endpoint, from) = if to_peer { (&mut self.peer, OURS) } else { (&mut self.ours, HONEST) };
            let placement = endpoint.on_packet(self.now, from, &segment, false);
            if let Some(Placement { buffer, offset, len }) = placement {
                assert_eq!(usize::from(len), payload.len());
                let start = (buffer.0 + offset) as usize;
                self.memory[usize::from(to_peer)][start..start + payload.len()].copy_from_slice(&payload);
            }
            self.drain();
            // Answers to the honest peer do not count.
            self.answers = 0;
        }
        for endpoint in [&mut self.ours, &mut self.peer] {
            if endpoint.poll_timer().is_some_and(|at| at <= self.now) {
                endpoint.on_timer(self.now);
                let next = endpoint.poll_timer();
                assert!(next.is_none_or(|at| at > self.now), "a timer is due again at once");
            }
        }
        self.drain();
        self.count_answers(&"a timer");
    }

    /// Drains every output of both endpoints.
    fn drain(&mut self) {
        for side in 0..2 {
            loop {
                let gate =
                    if self.port_free_at[side] <= self.now { FreePorts::OPEN } else { FreePorts::CONTROL };
                let endpoint = if side == 0 { &mut self.ours } else { &mut self.peer };
                let Some(packet) = endpoint.poll_transmit(self.now, gate) else { break };
                if packet.class == Class::Data {
                    let time = LINE_RATE.time_for(u64::from(packet.wire_bytes.max(1)));
                    self.port_free_at[side] = self.now + time;
                } else if side == 0 {
                    self.answers += 1;
                    // A higher number would mean an endless loop.
                    assert!(self.answers < 1 << 20, "no end of answers");
                }
                self.carry(side, &packet);
            }
            loop {
                let endpoint = if side == 0 { &mut self.ours } else { &mut self.peer };
                let Some(event) = endpoint.poll_event() else { break };
                self.on_event(side, event);
            }
        }
        self.ours.assert_invariants();
        self.peer.assert_invariants();
    }

    fn carry(&mut self, side: usize, packet: &Transmit) {
        if packet.to == LIAR {
            assert_eq!(side, 0);
            if let Body::Data(data) = &packet.segment.body {
                self.psns[1] = data.psn;
            }
            if let Some(payload) = packet.payload {
                let room = match payload.buffer.0 {
                    LIARS_REGION => Some(OPEN_TO_LIAR),
                    other => self.lent.get(&other).copied(),
                };
                let end = payload.offset + u64::from(payload.len);
                assert!(room.is_some_and(|room| end <= room), "the liar is sent {payload:?}");
            }
            return;
        }
        let payload = packet.payload.map_or(vec![], |payload| {
            let start = (payload.buffer.0 + payload.offset) as usize;
            self.memory[side][start..start + usize::from(payload.len)].to_vec()
        });
        let packet = Packet { to_peer: side == 0, segment: packet.segment, payload };
        self.wire.insert((self.now + ONE_WAY, self.sent), packet);
        self.sent += 1;
    }

    fn on_event(&mut self, side: usize, event: Event) {
        match event {
            Event::Completion(Completion { wr_id, qp, status, .. }) if qp == self.honest[side] => {
                let awaited = self.awaited.remove(&(side, wr_id));
                assert_eq!(awaited, Some(status), "request {wr_id} of the honest end {side}");
            }
            Event::Completion(Completion { wr_id, .. }) => {
                assert!(self.lent.remove(&wr_id).is_some(), "request {wr_id} is completed twice");
            }
            Event::QpError { qp, status } => {
                assert!(side == 0 && qp == self.lied_to, "the honest connection fails: {status:?}");
                assert!(self.lent.is_empty(), "what was posted is completed before: {:?}", self.lent);
            }
            Event::Delivered { .. } | Event::Retransmitted { .. } | Event::TimedOut { .. } => {}
        }
    }

    /// Transfers of a round: source end, source offset, destination offset at the other end, and bytes.
    fn moves(&self) -> [(usize, usize, usize, usize); 4] {
        let len = 1 + (self.rounds * 1_237 % 7_000) as usize;
        let half = MEMORY / 2;
        [(0, 0), (1, 0), (0, 8_000), (1, 8_000)].map(|(end, from)| (end, from, half + from, len))
    }

    /// Posts a SEND in each direction, and a WRITE and a READ of ours.
    fn post_round(&mut self) {
        self.rounds += 1;
        self.round_begun = self.now;
        let salt = self.rounds as u8;
        for (end, memory) in self.memory.iter_mut().enumerate() {
            for byte in &mut memory[..MEMORY / 2] {
                *byte = byte.wrapping_mul(5).wrapping_add(salt ^ end as u8);
            }
        }
        let [out, back, written, read] = self.moves();
        let (rkey, buffer) = (self.peers_key, |at: usize| Buffer(at as u64));
        for (end, (_, _, into, len)) in [(1, out), (0, back)] {
            let request = RecvRequest { wr_id: 100, buffer: buffer(into), len: len as u64 };
            let (qp, endpoint) = self.honest_end(end);
            endpoint.post_recv(qp, request).expect("it is open");
            self.awaited.insert((end, 100), Status::Success);
        }
        let write = Op::Write { rkey, remote_addr: written.2 as u64 };
        let get = Op::Read { rkey, remote_addr: read.1 as u64 };
        for (end, wr_id, op, local, len) in [
            (0, 1, Op::Send, out.1, out.3),
            (0, 2, write, written.1, written.3),
            (0, 3, get, read.2, read.3),
            (1, 1, Op::Send, back.1, back.3),
        ] {
            let request = WorkRequest { wr_id, op, local: buffer(local), len: len as u64 };
            let now = self.now;
            let (qp, endpoint) = self.honest_end(end);
            endpoint.post(now, qp, request).expect("it is open");
            self.awaited.insert((end, wr_id), Status::Success);
        }
    }

    fn honest_end(&mut self, end: usize) -> (QpNum, &mut Endpoint<AnyPolicy>) {
        (self.honest[end], if end == 0 { &mut self.ours } else { &mut self.peer })
    }

    /// Checks that all bytes of the round are at their destination.
    fn check_round(&mut self) {
        for (end, from, to, len) in self.moves() {
            let (sent, arrived) = (&self.memory[end][from..from + len], &self.memory[1 - end][to..to + len]);
            assert!(
                sent == arrived,
                "{len} bytes of end {end} are wrong at the other, round {}",
                self.rounds
            );
        }
        self.rounds_done += 1;
    }

    /// Silences the liar, and lets the honest ends finish.
    fn finish(&mut self) {
        while !self.awaited.is_empty() {
            let waited = self.now.saturating_since(self.round_begun);
            assert!(waited <= PATIENCE, "the honest connection does not end: {:?}", self.awaited);
            assert!(self.step(), "nothing will ever happen: {:?}", self.awaited);
        }
        self.check_round();
    }
}

fn qp_config(scheme: &Scheme, peer: HostId, policy: AnyPolicy) -> QpConfig<'static, AnyPolicy> {
    let mut config = QpConfig {
        domain: if peer == HONEST { HONEST_DOMAIN } else { Domain::default() },
        recovery: scheme.recovery,
        acks: scheme.acks,
        cnp: scheme.cnp,
        reordering: scheme.reordering,
        credit: scheme.credit_terms(&env(scheme.paths, false), LINE_RATE),
        ..QpConfig::new(peer, policy, &[])
    };
    config.rto.timeout = Duration::from_us(100);
    config.rto.max_timeout = Duration::from_us(400);
    config.rnr.delay = Duration::from_us(20);
    config
}
