//! Datagrams: in simulated time, and over real sockets.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ops::Range;
use std::time::Duration;

use pathweave_datapath::backend::{Cuts, Faulty, UdpBackend};
use pathweave_datapath::rdm::{Peer, RdmConfig, RdmEndpoint};
use pathweave_datapath::{Opcode, Region, Status, WaitError};
use pathweave_policy::{AnyPolicy, DatagramConfig, EethPlace};
use pathweave_transport::rd::{PeerId, RdConfig, RdEvent, RdPlacement, RdQp};
use pathweave_transport::{PayloadRef, Transport};
use pathweave_units::{Duration as Span, HostId, QpNum, Rng, Time};
use pathweave_wire::{Datagram, Framing, Segment};

use crate::simulated::{Carrier, environment};
use crate::support::{PATIENCE, rdm_loopback};
use crate::world::{
    DATAGRAM_SCHEME, Done, End, MTU, Order, PATHS, Request, Setup, Told, Troubles, Verb, World,
};

/// What both sides take for the round trip: that of hosts made of software.
const RTT: Span = Span::from_us(1_050);

pub(crate) struct Datagrams<T> {
    qp: RdQp<AnyPolicy>,
    peer: PeerId,
    /// Where messages are, by request.
    sources: BTreeMap<u64, Range<usize>>,
    /// Receives in the order of posting, which is that of the other end's messages.
    receives: Vec<(u64, usize)>,
    told: PhantomData<T>,
}

fn peer(end: usize) -> PeerId {
    PeerId { host: HostId(end as u32), qp: QpNum(end as u32 + 1) }
}

fn done(wr_id: u64, status: Status, opcode: Opcode, byte_len: u64) -> Done {
    Done { wr_id, status, opcode, byte_len, imm: None }
}

impl<T: Told> Carrier for Datagrams<T> {
    const NAME: &'static str = T::NAMES[0];
    const VERBS: &'static [Verb] = &[Verb::Send];
    const SHORTEST: usize = 1;
    const ORDER: Order = T::ORDER;
    type Transport = RdQp<AnyPolicy>;

    fn open(setup: &Setup, end: usize, _number: u64) -> Self {
        let scheme = (pathweave_policy::find_scheme(DATAGRAM_SCHEME).expect("a scheme").make)();
        let mut rng = Rng::for_component(setup.seed, "policy", end as u64);
        let (policy, control) = scheme.datagram_policy(&environment(RTT), &mut rng);
        let eeth = EethPlace::OutsideMtu;
        let qp = RdQp::new(RdConfig {
            num: peer(end).qp,
            policy,
            control,
            behaviour: DatagramConfig { eeth, delivery: T::DELIVERY, ..DatagramConfig::default() },
            mtu_payload: MTU as u16,
            framing: Framing::Pathweave,
            paths: environment(RTT).paths,
            nic_ports: 1,
            seed: setup.seed,
            rtt: RTT,
            nack_delay: Span::ZERO,
        });
        let (sources, receives) = Default::default();
        Datagrams { qp, peer: peer(1 - end), sources, receives, told: PhantomData }
    }

    fn connect(pair: [&mut Self; 2], _setup: &Setup, now: Time, _number: u64) {
        pair.into_iter().for_each(|end| end.qp.add_peer(now, end.peer, Span::ZERO));
    }

    fn transport(&mut self) -> &mut RdQp<AnyPolicy> {
        &mut self.qp
    }

    fn troubles(&mut self, refused: u64) -> Troubles {
        Troubles::of_datagrams(&self.qp.counters(), refused)
    }

    fn key(&self) -> u64 {
        0
    }

    fn post(&mut self, now: Time, request: &Request, _key: u64) {
        let Request { wr_id, local, .. } = request;
        self.sources.insert(*wr_id, local.clone());
        self.qp.post(now, self.peer, *wr_id, local.len() as u64).expect("room");
    }

    fn receive(&mut self, wr_id: u64, place: Range<usize>) {
        self.receives.push((wr_id, place.start));
    }

    fn leaves(&mut self, _segment: &Segment) {}

    fn near(&mut self, _datagram: &Datagram<'_>) -> Option<u64> {
        self.qp.expected_psn(self.peer)
    }

    fn arrives(&mut self, _segment: &Segment) {}

    fn source(&self, payload: &PayloadRef) -> usize {
        self.sources[&payload.buffer.0].start + payload.offset as usize
    }

    fn destination(&self, place: &RdPlacement) -> usize {
        self.receives[place.msg as usize].1 + place.offset as usize
    }

    fn told(&mut self, event: RdEvent) -> Option<Done> {
        Some(match event {
            RdEvent::Delivered { msg, bytes, .. } => {
                done(self.receives[msg as usize].0, Status::Success, Opcode::Recv, bytes)
            }
            RdEvent::Completion { wr_id, status, .. } => {
                done(wr_id, status, Opcode::Send, self.sources[&wr_id].len() as u64)
            }
            RdEvent::Abandoned { .. } => return None,
        })
    }
}

/// Two endpoints over loopback, their sockets wrapped in a network that misbehaves.
pub(crate) struct RealDatagrams<T> {
    cuts: Cuts,
    ends: [RdmEndpoint; 2],
    peers: [Peer; 2],
    memory: [Region; 2],
    told: PhantomData<T>,
}

impl<T: Told> World for RealDatagrams<T> {
    const NAME: &'static str = T::NAMES[1];
    const VERBS: &'static [Verb] = Datagrams::<T>::VERBS;
    const SHORTEST: usize = Datagrams::<T>::SHORTEST;
    const ORDER: Order = T::ORDER;

    fn open(setup: &Setup) -> Self {
        let cuts = Cuts::default();
        let mut config = RdmConfig { delivery: T::DELIVERY, ..rdm_loopback() };
        (config.device.mtu_payload, config.device.paths) = (MTU as u16, PATHS);
        (config.device.scheme, config.device.peer_timeout) = (DATAGRAM_SCHEME.into(), setup.peer_timeout);
        let open = |seed| {
            let backend = UdpBackend::open(&config.device.udp()).expect("sockets");
            let backend = Faulty::new(backend, setup.faults, cuts.clone(), seed);
            RdmEndpoint::with_backend(config.clone(), backend).expect("an endpoint")
        };
        let ends = [open(setup.seed), open(setup.seed + 1)];
        let peers = [0, 1].map(|end: usize| ends[end].insert(ends[1 - end].local_addr()).expect("room"));
        ends[0].reach(peers[0]).expect("an association");
        let memory = [0, 1].map(|_| Region::zeroed(setup.memory_bytes).expect("memory"));
        RealDatagrams { cuts, ends, peers, memory, told: PhantomData }
    }

    fn cut(&mut self, paths: u64) {
        self.cuts.set(paths);
    }

    fn pass(&mut self, time: Duration) {
        std::thread::sleep(time);
    }

    fn post(&mut self, end: End, request: &Request) {
        let local = self.memory[end.index()].slice(request.local.clone()).expect("within it");
        self.ends[end.index()].send(request.wr_id, self.peers[end.index()], local).expect("posted");
    }

    fn receive(&mut self, end: End, wr_id: u64, place: Range<usize>) {
        let place = self.memory[end.index()].slice(place).expect("within it");
        self.ends[end.index()].recv(wr_id, place).expect("posted");
    }

    fn next(&mut self, end: End) -> Option<Done> {
        match self.ends[end.index()].wait(PATIENCE) {
            Ok(found) => Some(done(found.wr_id, found.status, found.opcode, found.byte_len)),
            Err(WaitError::Timeout(_)) => None,
            Err(error) => panic!("the {end:?} end: {error}"),
        }
    }

    fn write(&mut self, end: End, offset: usize, bytes: &[u8]) {
        self.memory[end.index()].write(offset, bytes).expect("within it");
    }

    fn memory(&self, end: End) -> Vec<u8> {
        let region = &self.memory[end.index()];
        region.to_vec(0..region.len()).expect("all of it")
    }

    fn troubles(&mut self) -> Troubles {
        let stats = self.ends.each_ref().map(|end| end.stats().expect("its loop runs"));
        let [near, far] = stats.map(|stats| Troubles::of_datagrams(&stats.counters, stats.refused_datagrams));
        near + far
    }
}
