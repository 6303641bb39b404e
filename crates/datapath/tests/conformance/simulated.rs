//! The simulated side: two ends in simulated time, connected by a channel that carries the bytes of packets, for any
//! service.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use pathweave_datapath::backend::{Arrival, FaultCounters, FaultModel};
use pathweave_datapath::secure::Session;
use pathweave_policy::{Adapt, HostEnv, PolicyEnv, Recovery, Scheme};
use pathweave_transport::rd::SideMessage;
use pathweave_transport::{FreePorts, PayloadRef, Transmit, Transport};
use pathweave_units::{Duration, HostId, PathId, Rate, Rng, Time};
use pathweave_wire::{Datagram, DatagramLayout, Segment, emit_datagram_header};

use crate::sessions::{open, seal, sessions, shifted};
use crate::world::{
    Done, End, Fences, Hosts, Key, MTU, Order, PATHS, Request, Restarts, Setup, Troubles, Verb, World,
};

/// One-way delay between the ends.
pub(crate) const DELAY: Duration = Duration::from_us(5);
/// Largest number of packets that wait for a stalled end: the capacity of a socket buffer.
const BUFFER: usize = 200;
/// Bound on the time of a request.
const PATIENCE: Duration = Duration::from_ms(60_000);
const LINE_RATE: Rate = Rate::from_gbps(100);
/// Largest size of the headers around a payload, in bytes.
const HEADERS: u32 = 136;

/// A transport service as one end of a simulated world, with the driver's knowledge.
pub(crate) trait Carrier: Sized {
    const NAME: &'static str;
    const VERBS: &'static [Verb];
    const SHORTEST: usize;
    const ORDER: Order;
    const FENCES: Fences;
    type Transport: Transport;

    /// Creates the `number`th instance, for an end.
    fn open(setup: &Setup, end: usize, number: u64) -> Self;
    /// Connects both ends.
    fn connect(pair: [&mut Self; 2], setup: &Setup, now: Time, number: u64);
    fn transport(&mut self) -> &mut Self::Transport;
    fn troubles(&mut self, refused: u64) -> Troubles;
    /// Returns the key of the memory.
    fn key(&self) -> u64;
    fn post(&mut self, now: Time, request: &Request, key: u64);
    fn receive(&mut self, wr_id: u64, place: Range<usize>);
    /// Records a packet that leaves.
    fn leaves(&mut self, segment: &Segment);
    /// Returns a PSN near the truncated one on the wire; `None` if the packet is not for this end.
    fn near(&mut self, datagram: &Datagram<'_>) -> Option<u64>;
    /// Records a packet that arrives.
    fn arrives(&mut self, segment: &Segment);
    /// Returns the packet number sequence to which a packet belongs.
    fn sequence(segment: &Segment) -> PathId;
    /// Returns the offset of a packet's bytes in the sender's memory.
    fn source(&self, payload: &PayloadRef) -> usize;
    /// Returns the offset of a packet's bytes in the receiver's memory.
    fn destination(&self, place: &<Self::Transport as Transport>::Placement) -> usize;
    fn told(&mut self, event: <Self::Transport as Transport>::Event) -> Option<Done>;
}

struct Host<C> {
    carrier: C,
    memory: Vec<u8>,
    done: VecDeque<Done>,
    port_free_at: Time,
    /// `None` before the end is connected.
    session: Option<Session>,
    /// Datagrams that do not belong to the connection.
    refused: u64,
    stands_still_until: Time,
    /// Packets that have arrived while the end was stalled.
    waiting: usize,
}

enum Flying {
    Packet { bytes: Vec<u8>, marked: bool },
    Side(SideMessage),
}

/// True if switches may mark a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Markable {
    Yes,
    No,
}

/// Two ends in simulated time.
pub(crate) struct Simulated<C> {
    setup: Setup,
    now: Time,
    hosts: [Host<C>; 2],
    /// Packets in flight, by time and then in the order of sending: destination and content.
    wire: BTreeMap<(Time, u64), (usize, Flying)>,
    sent: u64,
    cut: u64,
    longest: usize,
    /// Fault model. A packet's route is its destination, and whether it may be marked.
    weather: FaultModel<(usize, Markable)>,
    rng: Rng,
    /// Number of endpoints created so far.
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
        session: None,
        refused: 0,
        stands_still_until: Time::ZERO,
        waiting: 0,
    }
}

/// Returns the scheme of the setup, or `otherwise`.
pub(crate) fn scheme(setup: &Setup, otherwise: &str, base_rtt: Duration) -> Scheme {
    let name = setup.scheme.unwrap_or(otherwise);
    let mut scheme = (pathweave_policy::find_scheme(name).expect("a scheme").make)();
    if let Recovery::Timeouts { retries, .. } = &mut scheme.recovery {
        // Longer than any silence here, but bounded, since no device watches for dead peers.
        *retries = 24;
    }
    if setup.hosts == Hosts::Software {
        let host = HostEnv {
            line_rate: LINE_RATE,
            network_rtt: base_rtt,
            host_delay: Duration::ZERO,
            base_rtt,
            max_inflight_bdps: 1.0,
            batch_packets: 1,
        };
        scheme.policy.adapt_to_host(&host);
        if let Some(credit) = &mut scheme.credit {
            credit.adapt_to_host(&host);
        }
    }
    scheme
}

/// Returns the network parameters for policies.
pub(crate) fn environment(base_rtt: Duration) -> PolicyEnv {
    PolicyEnv {
        mtu_wire_bytes: MTU as u32 + HEADERS,
        mtu_payload_bytes: MTU as u32,
        ..PolicyEnv::new(LINE_RATE, base_rtt, PATHS)
    }
}

impl<C: Carrier> Simulated<C> {
    fn connect(&mut self) {
        let [near, far] = &mut self.hosts;
        (near.done, far.done) = Default::default();
        let [of_near, of_far] = sessions(&self.setup, self.made, self.now);
        (near.session, far.session) = (Some(of_near), Some(of_far));
        // Side messages in flight are lost with their channel; packets are not.
        self.wire.retain(|_, (_, what)| matches!(what, Flying::Packet { .. }));
        C::connect([&mut near.carrier, &mut far.carrier], &self.setup, self.now, self.made);
        self.made += 2;
    }

    fn put(&mut self, delay: Duration, to: usize, what: Flying) {
        self.wire.insert((self.now + delay, self.sent), (to, what));
        self.sent += 1;
    }

    /// Returns the bytes of a packet in a datagram.
    fn frame(host: &mut Host<C>, packet: &Transmit, first_psn: u64) -> Vec<u8> {
        let segment = shifted(packet.segment, first_psn);
        let layout = DatagramLayout::for_segment(&segment);
        let source = packet.payload.as_ref().map(|payload| host.carrier.source(payload));
        let Host { session, memory, .. } = host;
        let session = session.as_mut().expect("it is connected");
        seal(session, C::sequence(&segment), layout.len(), |bytes| {
            emit_datagram_header(&segment, bytes).expect("only what can be written is made");
            if let Some(start) = source {
                bytes[layout.header_len..][..layout.payload_len]
                    .copy_from_slice(&memory[start..start + layout.payload_len]);
            }
        })
    }

    /// Sends a packet through the fault model.
    fn launch(&mut self, to: usize, path: PathId, bytes: &[u8], markable: Markable) {
        if self.cut >> (path.0 % 64) & 1 == 1 || bytes.len() > self.longest {
            return;
        }
        let mut arrivals = vec![];
        self.weather.send((to, markable), bytes, |arrival| arrivals.push(arrival));
        for Arrival { way: (to, markable), bytes, late, marked, .. } in arrivals {
            let marked = marked && markable == Markable::Yes;
            let late = (span(self.setup.latest).as_ps() as f64 * late) as u64;
            self.put(DELAY + Duration::from_ps(late), to, Flying::Packet { bytes, marked });
        }
    }

    /// Drains all outputs of both ends.
    fn drain(&mut self) {
        for from in 0..2 {
            if self.hosts[from].stands_still_until > self.now {
                continue;
            }
            loop {
                let host = &mut self.hosts[from];
                let gate = if host.port_free_at <= self.now { FreePorts::OPEN } else { FreePorts::CONTROL };
                let Some(packet) = host.carrier.transport().poll_transmit(self.now, gate) else { break };
                if packet.payload.is_some() {
                    host.port_free_at = self.now + LINE_RATE.time_for(u64::from(packet.wire_bytes));
                }
                host.carrier.leaves(&packet.segment);
                let bytes = Self::frame(host, &packet, self.setup.first_psn);
                let markable = if packet.ecn_capable { Markable::Yes } else { Markable::No };
                self.launch(1 - from, packet.segment.path, &bytes, markable);
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
        let (now, from, first_psn) = (self.now, HostId(1 - to as u32), self.setup.first_psn);
        let host = &mut self.hosts[to];
        if host.stands_still_until > now {
            if matches!(what, Flying::Packet { .. }) {
                host.waiting += 1;
            }
            let (has_room, time) = (host.waiting <= BUFFER, host.stands_still_until - now);
            if has_room {
                self.put(time, to, what);
            }
            return;
        }
        host.waiting = 0;
        let (mut bytes, marked) = match what {
            Flying::Packet { bytes, marked } => (bytes, marked),
            Flying::Side(message) => return host.carrier.transport().on_side(now, from, &message),
        };
        // A restarted end has no session.
        let content = host.session.as_mut().and_then(|session| open(session, now, &mut bytes));
        let Some(content) = content else {
            host.refused += 1;
            return;
        };
        let datagram = Datagram::parse(content).expect("what is intact can be read");
        let Some(near) = host.carrier.near(&datagram) else { return };
        let segment = shifted(datagram.segment(near + first_psn), first_psn.wrapping_neg());
        host.carrier.arrives(&segment);
        if let Some(placement) = host.carrier.transport().on_packet(now, from, &segment, marked) {
            let (payload, start) = (datagram.payload(), host.carrier.destination(&placement));
            host.memory[start..start + payload.len()].copy_from_slice(payload);
        }
    }

    /// Advances to the next event, if it is not after `limit`.
    fn step(&mut self, limit: Time) -> bool {
        self.drain();
        let arrival = self.wire.keys().next().map(|&(at, _)| at);
        let now = self.now;
        let hosts = self.hosts.iter_mut();
        let others = hosts.flat_map(|host| {
            if host.stands_still_until > now {
                return [Some(host.stands_still_until), None];
            }
            let transport = host.carrier.transport();
            let port = Some(host.port_free_at).filter(|&at| at > now && transport.has_ready_data());
            [transport.poll_timer(), port]
        });
        let next = arrival.into_iter().chain(others.flatten()).min();
        let Some(next) = next.filter(|&at| at <= limit) else { return false };
        self.now = self.now.max(next);
        for host in self.hosts.iter_mut().filter(|host| host.stands_still_until <= self.now) {
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
    const FENCES: Fences = C::FENCES;

    fn open(setup: &Setup) -> Self {
        let hosts = [host(setup, 0, 0), host(setup, 1, 1)];
        let mut simulated = Simulated {
            setup: *setup,
            now: Time::ZERO,
            hosts,
            wire: BTreeMap::new(),
            sent: 0,
            cut: 0,
            longest: usize::MAX,
            weather: FaultModel::new(setup.faults, setup.seed),
            rng: Rng::for_component(setup.seed, "channel", 0),
            made: 2,
        };
        simulated.connect();
        simulated
    }

    fn cut(&mut self, paths: u64) {
        // Requests posted earlier are in flight.
        self.drain();
        self.pass(std::time::Duration::from_micros(20));
        self.cut = paths;
    }

    fn narrow(&mut self, longest: usize) {
        self.longest = longest;
    }

    fn stall(&mut self, time: std::time::Duration) {
        let end = self.rng.below(2) as usize;
        self.hosts[end].stands_still_until = self.now + span(time);
    }

    fn close(self) -> FaultCounters {
        self.weather.happened()
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
