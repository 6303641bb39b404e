//! The simulated side: two ends in simulated time, joined by a channel that carries the bytes of packets, whichever service
//! they have.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use pathweave_policy::{Leg, PolicyEnv};
use pathweave_transport::rd::SideMessage;
use pathweave_transport::{Gate, PayloadRef, Transmit, Transport};
use pathweave_units::{Duration, HostId, Rate, Rng, Time};
use pathweave_wire::{Datagram, DatagramLayout, Segment, datagram_crc, emit_datagram_header};

use crate::world::{Done, End, Key, MTU, Order, PATHS, Request, Restarts, Setup, Troubles, Verb, World};

/// From one end to the other.
pub(crate) const DELAY: Duration = Duration::from_us(5);
/// A packet that is reordered comes up to so much later.
const LATE: Duration = Duration::from_us(20);
/// No request takes so long.
const PATIENCE: Duration = Duration::from_ms(60_000);
const LINE_RATE: Rate = Rate::from_gbps(100);
/// Headers around a payload, at most, in bytes.
const HEADERS: u32 = 136;

/// A transport service as one end of a simulated world has it, and what a driver knows besides.
pub(crate) trait Carrier: Sized {
    const NAME: &'static str;
    const VERBS: &'static [Verb];
    const SHORTEST: usize;
    const ORDER: Order;
    type Transport: Transport;

    /// The `number`th that is made, for an end.
    fn open(setup: &Setup, end: usize, number: u64) -> Self;
    /// Both ends know each other from now on.
    fn connect(pair: [&mut Self; 2], setup: &Setup, now: Time, number: u64);
    fn transport(&mut self) -> &mut Self::Transport;
    fn troubles(&mut self, refused: u64) -> Troubles;
    /// Key of the memory.
    fn key(&self) -> u64;
    fn post(&mut self, now: Time, request: &Request, key: u64);
    fn receive(&mut self, wr_id: u64, place: Range<usize>);
    /// A packet leaves.
    fn leaves(&mut self, segment: &Segment);
    /// A PSN that one on the wire, which is short, is near to; `None`: the packet is not for this end.
    fn near(&mut self, datagram: &Datagram<'_>) -> Option<u64>;
    /// A packet arrives.
    fn arrives(&mut self, segment: &Segment);
    /// Where the bytes of a packet are in the memory that sends it.
    fn source(&self, payload: &PayloadRef) -> usize;
    /// Where they go.
    fn destination(&self, place: &<Self::Transport as Transport>::Placement) -> usize;
    fn told(&mut self, event: <Self::Transport as Transport>::Event) -> Option<Done>;
}

struct Host<C> {
    carrier: C,
    memory: Vec<u8>,
    done: VecDeque<Done>,
    port_free_at: Time,
    /// Datagrams that were damaged.
    refused: u64,
}

enum Flying {
    Packet { bytes: Vec<u8>, ce: bool },
    Side(SideMessage),
}

/// Two ends in simulated time.
pub(crate) struct Simulated<C> {
    setup: Setup,
    now: Time,
    hosts: [Host<C>; 2],
    /// By time and then in the order of sending: to whom, and what.
    wire: BTreeMap<(Time, u64), (usize, Flying)>,
    sent: u64,
    cut: u64,
    rng: Rng,
    /// Endpoints made so far.
    made: u64,
}

pub(crate) fn span(time: std::time::Duration) -> Duration {
    Duration::from_ps(time.as_nanos() as u64 * 1_000)
}

fn host<C: Carrier>(setup: &Setup, end: usize, number: u64) -> Host<C> {
    Host {
        carrier: C::open(setup, end, number),
        memory: vec![0; setup.memory_bytes],
        done: VecDeque::new(),
        port_free_at: Time::ZERO,
        refused: 0,
    }
}

/// What a policy is told of the network.
pub(crate) fn environment(base_rtt: Duration) -> PolicyEnv {
    PolicyEnv {
        line_rate: LINE_RATE,
        base_rtt,
        mtu_wire_bytes: MTU as u32 + HEADERS,
        mtu_payload_bytes: MTU as u32,
        paths: PATHS,
        measured: Leg::with_rtt(base_rtt),
        edge: None,
    }
}

impl<C: Carrier> Simulated<C> {
    fn connect(&mut self) {
        let [near, far] = &mut self.hosts;
        (near.done, far.done) = Default::default();
        C::connect([&mut near.carrier, &mut far.carrier], &self.setup, self.now, self.made);
        self.made += 2;
    }

    fn put(&mut self, delay: Duration, to: usize, what: Flying) {
        self.wire.insert((self.now + delay, self.sent), (to, what));
        self.sent += 1;
    }

    /// The bytes of a packet, as a datagram without protection has them.
    fn frame(host: &Host<C>, packet: &Transmit) -> Vec<u8> {
        let layout = DatagramLayout::for_segment(&packet.segment);
        let mut bytes = vec![0; layout.len()];
        emit_datagram_header(&packet.segment, &mut bytes).expect("only what can be written is made");
        if let Some(payload) = &packet.payload {
            let start = host.carrier.source(payload);
            bytes[layout.header_len..][..layout.payload_len]
                .copy_from_slice(&host.memory[start..start + usize::from(payload.len)]);
        }
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
            self.put(delay, to, Flying::Packet { bytes: bytes.clone(), ce });
        }
    }

    /// Drains every output of both ends.
    fn drain(&mut self) {
        for from in 0..2 {
            loop {
                let host = &mut self.hosts[from];
                let gate = if host.port_free_at <= self.now { Gate::OPEN } else { Gate::CONTROL };
                let Some(packet) = host.carrier.transport().poll_transmit(self.now, gate) else { break };
                if packet.payload.is_some() {
                    host.port_free_at = self.now + LINE_RATE.time_for(u64::from(packet.wire_bytes));
                }
                host.carrier.leaves(&packet.segment);
                let bytes = Self::frame(host, &packet);
                self.launch(1 - from, &packet.segment, bytes, packet.ecn_capable);
            }
            while let Some((_, message)) = self.hosts[from].carrier.transport().poll_side() {
                self.put(DELAY * 3, 1 - from, Flying::Side(message));
            }
            let host = &mut self.hosts[from];
            while let Some(event) = host.carrier.transport().poll_event() {
                host.done.extend(host.carrier.told(event));
            }
        }
    }

    fn land(&mut self, to: usize, what: Flying) {
        let (now, from, host) = (self.now, HostId(1 - to as u32), &mut self.hosts[to]);
        let (bytes, ce) = match what {
            Flying::Packet { bytes, ce } => (bytes, ce),
            Flying::Side(message) => return host.carrier.transport().on_side(now, from, &message),
        };
        let (content, crc) = bytes.split_last_chunk::<4>().expect("as it was framed");
        if datagram_crc(content) != u32::from_le_bytes(*crc) {
            host.refused += 1;
            return;
        }
        let datagram = Datagram::parse(content).expect("what is intact can be read");
        let Some(near) = host.carrier.near(&datagram) else { return };
        let segment = datagram.segment(near);
        host.carrier.arrives(&segment);
        if let Some(placement) = host.carrier.transport().on_packet(now, from, &segment, ce) {
            let (payload, start) = (datagram.payload(), host.carrier.destination(&placement));
            host.memory[start..start + payload.len()].copy_from_slice(payload);
        }
    }

    /// Goes to the next instant at which something happens, if it is not after `limit`.
    fn step(&mut self, limit: Time) -> bool {
        self.drain();
        let arrival = self.wire.keys().next().map(|&(at, _)| at);
        let now = self.now;
        let hosts = self.hosts.iter_mut();
        let others = hosts.flat_map(|host| {
            let transport = host.carrier.transport();
            let port = Some(host.port_free_at).filter(|&at| at > now && transport.has_ready_data());
            [transport.poll_timer(), port]
        });
        let next = arrival.into_iter().chain(others.flatten()).min();
        let Some(next) = next.filter(|&at| at <= limit) else { return false };
        self.now = self.now.max(next);
        for host in &mut self.hosts {
            host.carrier.transport().on_timer(self.now);
        }
        self.drain();
        while let Some(entry) = self.wire.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let (to, what) = entry.remove();
            self.land(to, what);
            self.drain();
        }
        true
    }
}

impl<C: Carrier> World for Simulated<C> {
    const NAME: &'static str = C::NAME;
    const VERBS: &'static [Verb] = C::VERBS;
    const SHORTEST: usize = C::SHORTEST;
    const ORDER: Order = C::ORDER;

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
        let key = self.hosts[end.other().index()].carrier.key();
        let key = if request.key == Key::Wrong { key ^ 1 << 20 } else { key };
        self.hosts[end.index()].carrier.post(self.now, request, key);
    }

    fn receive(&mut self, end: End, wr_id: u64, place: Range<usize>) {
        self.hosts[end.index()].carrier.receive(wr_id, place);
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

    fn troubles(&mut self) -> Troubles {
        let [near, far] = self.hosts.each_mut().map(|host| host.carrier.troubles(host.refused));
        near + far
    }
}

impl<C: Carrier> Restarts for Simulated<C> {
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
}
