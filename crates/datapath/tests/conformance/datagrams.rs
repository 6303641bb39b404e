//! Datagrams: the same messages in the same weather, in simulated time and over real sockets, with the same outcome.

use std::collections::BTreeMap;
use std::time::Duration;

use pathweave_datapath::backend::{Cuts, Faulty, UdpBackend};
use pathweave_datapath::rdm::{Delivery, RdmConfig, RdmEndpoint};
use pathweave_datapath::{Opcode, Region, Status};
use pathweave_policy::{AnyPolicy, DatagramConfig, EethPlace, Leg, PolicyEnv};
use pathweave_transport::rd::{PeerId, RdConfig, RdEvent, RdQp, SideMessage};
use pathweave_transport::{Gate, Transmit, Transport};
use pathweave_units::{Duration as Span, HostId, QpNum, Rate, Rng, Time};
use pathweave_wire::{Datagram, DatagramLayout, Framing, datagram_crc, emit_datagram_header};

use crate::script::{Cut, Weather};
use crate::support::{PATIENCE, pattern, udp};
use crate::world::{MTU, PATHS, Troubles};

/// Sizes of messages: around a packet, some packets, many.
const SIZES: [usize; 6] = [1, MTU - 1, MTU, MTU + 1, 100_000, 1 << 20];
/// How long paths are cut, from the start.
const CUT_FOR: Duration = Duration::from_millis(30);
/// What both sides take for the round trip: that of hosts made of software.
const RTT: Span = Span::from_us(1_050);

/// What is to happen: each end sends each size this often.
#[derive(Clone, Copy)]
pub(crate) struct Plan<'a> {
    pub(crate) weather: &'a Weather,
    pub(crate) seed: u64,
    pub(crate) delivery: Delivery,
    pub(crate) rounds: usize,
}

impl Plan<'_> {
    fn sizes(&self) -> Vec<usize> {
        SIZES.iter().copied().cycle().take(SIZES.len() * self.rounds).collect()
    }

    fn bytes(&self, from: usize, msg: usize) -> Vec<u8> {
        pattern(self.sizes()[msg], (from * 1_000 + msg) as u64)
    }

    fn cut(&self) -> u64 {
        match self.weather.cut {
            Cut::Nothing => 0,
            Cut::SomePaths => 1 << 2 | 1 << 5,
            Cut::AllPaths => u64::MAX,
        }
    }
}

/// What has come of it at each end. Receives in the order in which they were told, where that is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    sent: [Vec<(u64, Status)>; 2],
    arrived: [Vec<(u64, Status, u64)>; 2],
}

impl Outcome {
    fn put_in_order(mut self, delivery: Delivery) -> Self {
        for end in 0..2 {
            self.sent[end].sort_unstable_by_key(|(wr_id, _)| *wr_id);
            if delivery == Delivery::Unordered {
                self.arrived[end].sort_unstable_by_key(|(wr_id, ..)| *wr_id);
            }
        }
        self
    }

    /// What the plan alone says must come of it.
    pub(crate) fn expected(plan: &Plan<'_>) -> Self {
        let ids = || (0..).zip(plan.sizes());
        let sent = || ids().map(|(wr_id, _)| (wr_id, Status::Success)).collect();
        let arrived = || ids().map(|(wr_id, size)| (wr_id, Status::Success, size as u64)).collect();
        Outcome { sent: [sent(), sent()], arrived: [arrived(), arrived()] }
    }
}

fn compare(plan: &Plan<'_>, from: usize, msg: usize, bytes: &[u8]) {
    let right = bytes == plan.bytes(from, msg);
    assert!(right, "{}, seed {}: message {msg} of end {from} is wrong", plan.weather.name, plan.seed);
}

/// Over real sockets.
pub(crate) fn real(plan: &Plan<'_>) -> (Outcome, Troubles) {
    let cuts = Cuts::default();
    let mut config = RdmConfig { delivery: plan.delivery, ..RdmConfig::loopback() };
    config.device.mtu_payload = MTU as u16;
    config.device.paths = PATHS;
    let open = |seed| {
        let backend = UdpBackend::open(&udp(&config.device)).expect("sockets");
        let backend = Faulty::new(backend, plan.weather.faults, cuts.clone(), seed);
        RdmEndpoint::with_backend(config.clone(), backend).expect("an endpoint")
    };
    let ends = [open(plan.seed), open(plan.seed + 1)];
    let peers = [0, 1].map(|end: usize| ends[end].insert(ends[1 - end].local_addr()).expect("room"));
    ends[0].reach(peers[0]).expect("an association");
    cuts.set(plan.cut());
    let rooms = [0, 1].map(|end: usize| {
        let rooms: Vec<Region> =
            plan.sizes().iter().map(|size| Region::zeroed(*size).expect("memory")).collect();
        for (wr_id, room) in (0..).zip(&rooms) {
            ends[end].recv(wr_id, room.all()).expect("posted");
        }
        rooms
    });
    for end in 0..2 {
        for wr_id in 0..plan.sizes().len() {
            let message = Region::from_bytes(&plan.bytes(end, wr_id)).expect("memory");
            ends[end].send(wr_id as u64, peers[end], message.all()).expect("posted");
        }
    }
    if plan.cut() != 0 {
        std::thread::sleep(CUT_FOR);
        cuts.set(0);
    }
    let mut outcome = Outcome { sent: Default::default(), arrived: Default::default() };
    let mut troubles = Troubles::default();
    for end in 0..2 {
        for _ in 0..2 * plan.sizes().len() {
            let done = ends[end].wait(PATIENCE).expect("a completion");
            if done.opcode == Opcode::Send {
                outcome.sent[end].push((done.wr_id, done.status));
            } else {
                outcome.arrived[end].push((done.wr_id, done.status, done.byte_len));
            }
        }
        for (msg, room) in rooms[end].iter().enumerate() {
            compare(plan, 1 - end, msg, &room.to_vec(0..room.len()).expect("all of it"));
        }
        let stats = ends[end].stats().expect("its loop runs");
        troubles = troubles + of(&stats.counters, stats.refused_datagrams);
    }
    (outcome.put_in_order(plan.delivery), troubles)
}

fn of(counters: &pathweave_transport::rd::RdCounters, refused: u64) -> Troubles {
    Troubles {
        retransmitted: counters.retransmitted,
        duplicates: counters.duplicates,
        out_of_order: counters.out_of_order,
        refused,
    }
}

const LINE_RATE: Rate = Rate::from_gbps(100);
const DELAY: Span = Span::from_us(5);
/// A packet that is reordered comes up to so much later.
const LATE: Span = Span::from_us(20);

/// In simulated time: two queue pairs, a channel that carries datagrams byte by byte, and one that loses nothing.
struct Simulated<'a> {
    plan: Plan<'a>,
    now: Time,
    qps: [RdQp<AnyPolicy>; 2],
    messages: [Vec<Vec<u8>>; 2],
    rooms: [Vec<Vec<u8>>; 2],
    free_at: [Time; 2],
    /// By time and then in the order of sending: to whom, and what.
    wire: BTreeMap<(Time, u64), (usize, Flying)>,
    count: u64,
    rng: Rng,
    refused: u64,
    outcome: Outcome,
}

enum Flying {
    Datagram { bytes: Vec<u8>, marked: bool },
    Side(SideMessage),
}

fn peer(end: usize) -> PeerId {
    PeerId { host: HostId(end as u32), qp: QpNum(end as u32 + 1) }
}

fn queue_pair(plan: &Plan<'_>, end: usize) -> RdQp<AnyPolicy> {
    let env = PolicyEnv {
        line_rate: LINE_RATE,
        base_rtt: RTT,
        mtu_wire_bytes: MTU as u32 + 130,
        mtu_payload_bytes: MTU as u32,
        paths: PATHS,
        measured: Leg::with_rtt(RTT),
        edge: None,
    };
    let scheme = (pathweave_policy::find_scheme("erd-dcqcn").expect("a scheme").make)();
    let mut rng = Rng::for_component(plan.seed, "policy", end as u64);
    let (policy, control) = scheme.datagram_policy(&env, &mut rng);
    let behaviour =
        DatagramConfig { eeth: EethPlace::OutsideMtu, delivery: plan.delivery, ..DatagramConfig::default() };
    let mut qp = RdQp::new(RdConfig {
        num: peer(end).qp,
        policy,
        control,
        behaviour,
        mtu_payload: MTU as u16,
        framing: Framing::Pathweave,
        nic_ports: 1,
        seed: plan.seed,
        rtt: RTT,
        nack_delay: Span::ZERO,
    });
    qp.add_peer(Time::ZERO, peer(1 - end), Span::ZERO);
    qp
}

/// In simulated time.
pub(crate) fn simulated(plan: &Plan<'_>) -> (Outcome, Troubles) {
    let messages = |end| (0..plan.sizes().len()).map(|msg| plan.bytes(end, msg)).collect();
    let rooms = || plan.sizes().iter().map(|size| vec![0; *size]).collect();
    let mut world = Simulated {
        plan: *plan,
        now: Time::ZERO,
        qps: [queue_pair(plan, 0), queue_pair(plan, 1)],
        messages: [messages(0), messages(1)],
        rooms: [rooms(), rooms()],
        free_at: [Time::ZERO; 2],
        wire: BTreeMap::new(),
        count: 0,
        rng: Rng::for_component(plan.seed, "channel", 0),
        refused: 0,
        outcome: Outcome { sent: Default::default(), arrived: Default::default() },
    };
    for end in 0..2 {
        for (wr_id, size) in (0..).zip(plan.sizes()) {
            world.qps[end].post(Time::ZERO, peer(1 - end), wr_id, size as u64).expect("room");
        }
    }
    while world.step() {}
    for end in 0..2 {
        for (msg, bytes) in world.rooms[end].iter().enumerate() {
            compare(plan, 1 - end, msg, bytes);
        }
    }
    let counters = [0, 1].map(|end: usize| of(&world.qps[end].counters(), 0));
    let [a, b] = counters;
    let refused = Troubles { refused: world.refused, ..Troubles::default() };
    (world.outcome.put_in_order(plan.delivery), a + b + refused)
}

impl Simulated<'_> {
    fn put(&mut self, at: Time, to: usize, what: Flying) {
        self.wire.insert((at, self.count), (to, what));
        self.count += 1;
    }

    fn drain(&mut self) {
        for end in 0..2 {
            while let Some(packet) = self.qps[end].poll_transmit(self.now, Gate::CONTROL) {
                self.launch(end, &packet);
            }
            while self.free_at[end] <= self.now {
                let Some(packet) = self.qps[end].poll_transmit(self.now, Gate::OPEN) else { break };
                self.free_at[end] = self.now + LINE_RATE.time_for(u64::from(packet.wire_bytes));
                self.launch(end, &packet);
            }
            while let Some((_, message)) = self.qps[end].poll_side() {
                self.put(self.now + DELAY * 3, 1 - end, Flying::Side(message));
            }
            while let Some(event) = self.qps[end].poll_event() {
                match event {
                    RdEvent::Delivered { msg, bytes, .. } => {
                        self.outcome.arrived[end].push((msg, Status::Success, bytes));
                    }
                    RdEvent::Abandoned { .. } => {}
                    RdEvent::Completion { wr_id, status, .. } => {
                        self.outcome.sent[end].push((wr_id, status));
                    }
                }
            }
        }
    }

    fn launch(&mut self, from: usize, packet: &Transmit) {
        let Plan { weather, .. } = self.plan;
        let layout = DatagramLayout::of(&packet.segment);
        let mut bytes = vec![0; layout.len()];
        emit_datagram_header(&packet.segment, &mut bytes).expect("only what can be written is made");
        if let Some(payload) = packet.payload {
            let message = &self.messages[from][payload.buffer.0 as usize];
            let start = payload.offset as usize;
            bytes[layout.header_len..][..layout.payload_len]
                .copy_from_slice(&message[start..start + usize::from(payload.len)]);
        }
        bytes.extend(datagram_crc(&bytes).to_le_bytes());
        let is_cut = self.now < Time::ZERO + Span::from_ms(CUT_FOR.as_millis() as u64)
            && self.plan.cut() >> (packet.segment.path.0 % 64) & 1 == 1;
        if is_cut || self.rng.chance(weather.faults.lose) {
            return;
        }
        let marked = packet.ecn_capable && self.rng.chance(weather.faults.mark);
        if self.rng.chance(weather.faults.damage) {
            let bit = self.rng.below(bytes.len() as u32 * 8) as usize;
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        for _ in 0..1 + usize::from(self.rng.chance(weather.faults.repeat)) {
            let late = if self.rng.chance(weather.faults.reorder) { self.rng.unit_f64() } else { 0.0 };
            let delay = DELAY + Span::from_ps((LATE.as_ps() as f64 * late) as u64);
            self.put(self.now + delay, 1 - from, Flying::Datagram { bytes: bytes.clone(), marked });
        }
    }

    fn land(&mut self, to: usize, what: Flying) {
        let (now, from) = (self.now, peer(1 - to));
        match what {
            Flying::Side(message) => self.qps[to].on_side(now, from.host, &message),
            Flying::Datagram { bytes, marked } => {
                let (content, crc) = bytes.split_last_chunk::<4>().expect("as it was framed");
                if datagram_crc(content) != u32::from_le_bytes(*crc) {
                    self.refused += 1;
                    return;
                }
                let datagram = Datagram::parse(content).expect("what is intact can be read");
                let near = self.qps[to].expected_psn(from).expect("it is known");
                let segment = datagram.segment(near);
                if let Some(place) = self.qps[to].on_packet(now, from.host, &segment, marked) {
                    let start = place.offset as usize;
                    let room = &mut self.rooms[to][place.msg as usize];
                    room[start..start + usize::from(place.len)].copy_from_slice(datagram.payload());
                }
            }
        }
    }

    /// Goes to the next instant at which something happens.
    fn step(&mut self) -> bool {
        self.drain();
        let timers = self.qps.iter().filter_map(RdQp::poll_timer);
        let busy = |end: &usize| self.free_at[*end] > self.now && self.qps[*end].has_ready_data();
        let ports = [0, 1].into_iter().filter(busy).map(|end| self.free_at[end]);
        let next = self.wire.keys().next().map(|&(at, _)| at).into_iter().chain(timers).chain(ports).min();
        let Some(next) = next else { return false };
        assert!(next < Time::ZERO + Span::from_ms(60_000), "it never ends: {}", self.plan.weather.name);
        self.now = self.now.max(next);
        let now = self.now;
        self.qps.iter_mut().for_each(|qp| qp.on_timer(now));
        self.drain();
        while let Some(entry) = self.wire.first_entry().filter(|entry| entry.key().0 <= now) {
            let (to, what) = entry.remove();
            self.land(to, what);
            self.drain();
        }
        true
    }
}
