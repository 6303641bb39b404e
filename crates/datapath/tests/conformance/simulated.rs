//! The simulated side: two endpoints in simulated time, joined by a channel that carries the bytes of packets.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use pathweave_policy::{AnyPolicy, Leg, PolicyEnv};
use pathweave_transport::{
    Access, Buffer, Endpoint, EndpointConfig, Event, Gate, MemoryRegion, Op, QpConfig, RecvRequest,
    RtoConfig, Scope, WorkRequest,
};
use pathweave_units::{Duration, HostId, QpNum, Rate, Rng, Time};
use pathweave_wire::{Body, Datagram, DatagramLayout, Segment, datagram_crc, emit_datagram_header};

use crate::world::{Done, End, Key, MTU, PATHS, Request, SCHEME, Setup, Troubles, Verb, World};

/// From one end to the other.
const DELAY: Duration = Duration::from_us(5);
/// A packet that is reordered comes up to so much later.
const LATE: Duration = Duration::from_us(20);
/// No request takes so long.
const PATIENCE: Duration = Duration::from_ms(60_000);
const LINE_RATE: Rate = Rate::from_gbps(100);
/// Headers around a payload, at most, in bytes.
const HEADERS: u32 = 136;

struct Host {
    endpoint: Endpoint<AnyPolicy>,
    qp: QpNum,
    memory: Vec<u8>,
    rkey: u64,
    done: VecDeque<Done>,
    port_free_at: Time,
    /// PSNs that those on the wire, which are short, are near to.
    near_data: u64,
    near_answers: u64,
    /// Datagrams that were damaged.
    refused: u64,
}

struct Flying {
    to: usize,
    bytes: Vec<u8>,
    ce: bool,
}

pub(crate) struct Simulated {
    setup: Setup,
    now: Time,
    hosts: [Host; 2],
    wire: BTreeMap<(Time, u64), Flying>,
    sent: u64,
    cut: u64,
    rng: Rng,
    /// Endpoints made so far.
    made: u64,
}

fn span(time: std::time::Duration) -> Duration {
    Duration::from_ps(time.as_nanos() as u64 * 1_000)
}

fn host(setup: &Setup, id: u32, number: u64) -> Host {
    let mut endpoint = Endpoint::new(EndpointConfig {
        mtu_payload: MTU as u16,
        seed: setup.seed + number,
        ..EndpointConfig::new(HostId(id))
    });
    let len = setup.memory_bytes as u64;
    let region =
        MemoryRegion { buffer: Buffer(0), addr: 0, len, access: Access::READ_WRITE, scope: Scope::DEFAULT };
    let rkey = endpoint.register(region, 0).expect("a key");
    Host {
        endpoint,
        qp: QpNum(0),
        memory: vec![0; setup.memory_bytes],
        rkey,
        done: VecDeque::new(),
        port_free_at: Time::ZERO,
        near_data: 0,
        near_answers: 0,
        refused: 0,
    }
}

impl Simulated {
    fn connect(&mut self) {
        for id in 0..2 {
            let scheme = (pathweave_policy::find_scheme(SCHEME).expect("a scheme").make)();
            let env = PolicyEnv {
                line_rate: LINE_RATE,
                base_rtt: DELAY * 2,
                mtu_wire_bytes: MTU as u32 + HEADERS,
                mtu_payload_bytes: MTU as u32,
                paths: PATHS,
                measured: Leg::with_rtt(DELAY * 2),
                edge: None,
            };
            let mut rng = Rng::for_component(self.setup.seed, "policy", self.made);
            self.made += 1;
            let peer = HostId(1 - id as u32);
            let mut rto = RtoConfig { max: Duration::from_ms(100), retry_limit: 1, ..RtoConfig::default() };
            while rto.give_up_after() < span(self.setup.peer_timeout) {
                rto.retry_limit += 1;
            }
            let config = QpConfig {
                recovery: scheme.recovery,
                acks: scheme.acks,
                cnp: scheme.cnp,
                reordering: scheme.reordering,
                rto,
                ..QpConfig::new(peer, scheme.policy.build(&env, &mut rng), &[])
            };
            let host = &mut self.hosts[id];
            // There is none at first, nor after a restart.
            let _ = host.endpoint.destroy_qp(host.qp);
            host.done.clear();
            (host.near_data, host.near_answers) = (0, 0);
            host.qp = host.endpoint.create_qp(self.now, config);
        }
        let qps = [self.hosts[0].qp, self.hosts[1].qp];
        for id in 0..2 {
            self.hosts[id].endpoint.connect(qps[id], qps[1 - id]).expect("both exist");
        }
    }

    /// The bytes of a packet, as a datagram without protection has them.
    fn frame(host: &Host, segment: &Segment, payload: Option<Range<usize>>) -> Vec<u8> {
        let layout = DatagramLayout::of(segment);
        let mut bytes = vec![0; layout.len()];
        emit_datagram_header(segment, &mut bytes).expect("the endpoint makes only what can be written");
        let payload = &host.memory[payload.unwrap_or(0..0)];
        bytes[layout.header_len..layout.header_len + layout.payload_len].copy_from_slice(payload);
        bytes.extend(datagram_crc(&bytes).to_le_bytes());
        bytes
    }

    /// A packet leaves; the network does what it does.
    fn launch(&mut self, to: usize, segment: &Segment, mut bytes: Vec<u8>, ecn_capable: bool) {
        let faults = self.setup.faults;
        if self.cut >> (segment.path.0 % 64) & 1 == 1 || self.rng.chance(faults.lose) {
            return;
        }
        if self.rng.chance(faults.damage) {
            let bit = self.rng.below(bytes.len() as u32 * 8) as usize;
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        let ce = ecn_capable && self.rng.chance(faults.mark);
        let copies = 1 + usize::from(self.rng.chance(faults.repeat));
        for _ in 0..copies {
            let late = if self.rng.chance(faults.reorder) { self.rng.unit_f64() } else { 0.0 };
            let delay = DELAY + Duration::from_ps((LATE.as_ps() as f64 * late) as u64);
            self.wire.insert((self.now + delay, self.sent), Flying { to, bytes: bytes.clone(), ce });
            self.sent += 1;
        }
    }

    /// Drains every output of both ends.
    fn drain(&mut self) {
        for from in 0..2 {
            loop {
                let host = &mut self.hosts[from];
                let gate = if host.port_free_at <= self.now { Gate::OPEN } else { Gate::CONTROL };
                let Some(packet) = host.endpoint.poll_transmit(self.now, gate) else { break };
                if let Body::Data(data) = &packet.segment.body {
                    host.port_free_at = self.now + LINE_RATE.time_for(u64::from(packet.wire_bytes));
                    host.near_answers = host.near_answers.max(data.psn);
                }
                let place = packet.payload.map(|payload| {
                    let start = (payload.buffer.0 + payload.offset) as usize;
                    start..start + usize::from(payload.len)
                });
                let bytes = Self::frame(host, &packet.segment, place);
                self.launch(1 - from, &packet.segment, bytes, packet.ecn_capable);
            }
            let host = &mut self.hosts[from];
            while let Some(event) = host.endpoint.poll_event() {
                if let Event::Completion(done) = event {
                    host.done.push_back(Done {
                        wr_id: done.wr_id,
                        status: done.status,
                        opcode: done.opcode,
                        byte_len: done.byte_len,
                        imm: done.imm,
                    });
                }
            }
        }
    }

    fn land(&mut self, Flying { to, bytes, ce }: Flying) {
        let now = self.now;
        let host = &mut self.hosts[to];
        let (content, crc) = bytes.split_last_chunk::<4>().expect("as it was framed");
        if datagram_crc(content) != u32::from_le_bytes(*crc) {
            host.refused += 1;
            return;
        }
        let datagram = Datagram::parse(content).expect("what is intact can be read");
        if datagram.dst_qp() != host.qp {
            return;
        }
        let near = if datagram.is_answer() { host.near_answers } else { host.near_data };
        let segment = datagram.segment(near);
        if let Body::Data(data) = &segment.body {
            host.near_data = host.near_data.max(data.psn);
        }
        let placement = host.endpoint.on_packet(now, HostId(1 - to as u32), &segment, ce);
        if let Some(placement) = placement {
            let payload = datagram.payload();
            assert_eq!(usize::from(placement.len), payload.len());
            let start = (placement.buffer.0 + placement.offset) as usize;
            host.memory[start..start + payload.len()].copy_from_slice(payload);
        }
    }

    /// Goes to the next instant at which something happens, if it is not after `limit`.
    fn step(&mut self, limit: Time) -> bool {
        self.drain();
        let arrival = self.wire.keys().next().map(|&(at, _)| at);
        let timers = self.hosts.iter().filter_map(|host| host.endpoint.poll_timer());
        let busy = |host: &&Host| host.port_free_at > self.now && host.endpoint.has_ready_data();
        let ports = self.hosts.iter().filter(busy).map(|host| host.port_free_at);
        let next = arrival.into_iter().chain(timers).chain(ports).min();
        let Some(next) = next.filter(|&at| at <= limit) else { return false };
        self.now = self.now.max(next);
        for host in &mut self.hosts {
            host.endpoint.on_timer(self.now);
        }
        self.drain();
        while let Some(entry) = self.wire.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let flying = entry.remove();
            self.land(flying);
            self.drain();
        }
        true
    }
}

impl World for Simulated {
    const NAME: &'static str = "simulated";

    fn open(setup: &Setup) -> Self {
        let hosts = [host(setup, 0, 0), host(setup, 1, 1)];
        let mut simulated = Simulated {
            setup: *setup,
            now: Time::ZERO,
            hosts,
            wire: BTreeMap::new(),
            sent: 0,
            cut: 0,
            rng: Rng::for_component(setup.seed, "channel", 0),
            made: 2,
        };
        simulated.connect();
        simulated
    }

    fn cut(&mut self, paths: u64) {
        // What was posted before is on its way.
        self.drain();
        self.pass(std::time::Duration::from_micros(20));
        self.cut = paths;
    }

    fn pass(&mut self, time: std::time::Duration) {
        let until = self.now + span(time);
        while self.step(until) {}
        self.now = until;
    }

    fn post(&mut self, end: End, request: &Request) {
        let there = &self.hosts[end.other().index()];
        let rkey = if request.key == Key::Wrong { there.rkey ^ 1 << 20 } else { there.rkey };
        let (remote_addr, imm) = (request.remote as u64, request.imm);
        let op = match request.verb {
            Verb::Send => Op::Send,
            Verb::SendImm => Op::SendImm { imm },
            Verb::Write => Op::Write { rkey, remote_addr },
            Verb::WriteImm => Op::WriteImm { rkey, remote_addr, imm },
            Verb::Read => Op::Read { rkey, remote_addr },
        };
        let work = WorkRequest {
            wr_id: request.wr_id,
            op,
            local: Buffer(request.local.start as u64),
            len: request.local.len() as u64,
        };
        let host = &mut self.hosts[end.index()];
        host.endpoint.post(self.now, host.qp, work).expect("posted");
    }

    fn receive(&mut self, end: End, wr_id: u64, place: Range<usize>) {
        let request = RecvRequest { wr_id, buffer: Buffer(place.start as u64), len: place.len() as u64 };
        let host = &mut self.hosts[end.index()];
        host.endpoint.post_recv(host.qp, request).expect("posted");
    }

    fn next(&mut self, end: End) -> Option<Done> {
        let limit = self.now + PATIENCE;
        loop {
            if let Some(done) = self.hosts[end.index()].done.pop_front() {
                return Some(done);
            }
            if !self.step(limit) {
                return None;
            }
        }
    }

    fn write(&mut self, end: End, offset: usize, bytes: &[u8]) {
        self.hosts[end.index()].memory[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    fn memory(&self, end: End) -> Vec<u8> {
        self.hosts[end.index()].memory.clone()
    }

    fn crash_far(&mut self) {
        self.cut = u64::MAX;
    }

    fn revive_far(&mut self) {
        self.cut = 0;
        self.hosts[1] = host(&self.setup, 1, self.made);
        self.made += 1;
    }

    fn reconnect(&mut self) {
        self.connect();
    }

    fn troubles(&self) -> Troubles {
        let of = |host: &Host| Troubles::of(&host.endpoint.counters(), host.refused);
        of(&self.hosts[0]) + of(&self.hosts[1])
    }
}
