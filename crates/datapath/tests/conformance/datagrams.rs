//! Datagrams, in simulated time and over real sockets.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

use pathweave_datapath::backend::{Cuts, FaultCounters, Faulty};
use pathweave_datapath::rdm::{Peer, RdmConfig, RdmEndpoint};
use pathweave_datapath::secure::ClusterKey;
use pathweave_datapath::{DeviceConfig, Opcode, Region, Status, Unprotected, WaitError};
use pathweave_policy::{AnyPolicy, DatagramConfig, EethPlace, Service};
use pathweave_transport::rd::{PeerId, RdConfig, RdEvent, RdPlacement, RdQp};
use pathweave_transport::{PayloadRef, Transport};
use pathweave_units::{Duration as Span, HostId, PathId, QpNum, Rng, Time};
use pathweave_wire::{Datagram, Framing, Segment};

use crate::real::{Loopback, Wires};
use crate::simulated::{Carrier, environment, scheme};
use crate::support::{PATIENCE, rdm_loopback};
use crate::world::{
    DATAGRAM_SCHEME, Done, End, Fences, MTU, Order, PATHS, Request, Restarts, Setup, Told, Troubles, Verb,
    World,
};

/// Round-trip time that both sides assume: that of software hosts.
const RTT: Span = Span::from_us(1_050);

pub(crate) struct Datagrams<T> {
    qp: RdQp<AnyPolicy>,
    peer: PeerId,
    /// Memory of each message, by request.
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
    const FENCES: Fences = Fences::Missing;
    type Transport = RdQp<AnyPolicy>;

    fn open(setup: &Setup, end: usize, _number: u64) -> Self {
        let scheme = scheme(setup, DATAGRAM_SCHEME, RTT);
        let Service::Datagram(behaviour) = scheme.service else { panic!("no scheme of datagrams") };
        let mut rng = Rng::for_component(setup.seed, "policy", end as u64);
        let (policy, control) = scheme.datagram_policy(&environment(RTT), &mut rng);
        let eeth = EethPlace::OutsideMtu;
        let qp = RdQp::new(RdConfig {
            num: peer(end).qp,
            policy,
            control,
            behaviour: DatagramConfig { eeth, delivery: T::DELIVERY, ..behaviour },
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
        for end in pair {
            // The peer is unknown at first, and after a restart.
            end.qp.remove_peer(now, end.peer);
            end.qp.add_peer(now, end.peer, Span::ZERO);
            (end.sources, end.receives) = Default::default();
        }
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

    fn sequence(_segment: &Segment) -> PathId {
        PathId(0)
    }

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

/// Two endpoints over loopback, with fault injection around their sockets.
pub(crate) struct RealDatagrams<T, W = Loopback> {
    wires: W,
    setup: Setup,
    cuts: Cuts,
    near: RdmEndpoint,
    /// `None` while the far end is down.
    far: Option<RdmEndpoint>,
    peers: [Peer; 2],
    memory: [Region; 2],
    opened: u64,
    told: PhantomData<T>,
}

impl<T: Told, W: Wires> RealDatagrams<T, W> {
    fn endpoint(
        wires: &W,
        setup: &Setup,
        (end, bind): (End, SocketAddr),
        cuts: &Cuts,
        number: u64,
    ) -> RdmEndpoint {
        let mut config = RdmConfig { delivery: T::DELIVERY, ..rdm_loopback() };
        config.device = DeviceConfig {
            bind,
            unprotected: Unprotected::Anywhere,
            mtu_payload: W::MTU_PAYLOAD,
            paths: PATHS,
            scheme: setup.scheme.unwrap_or(DATAGRAM_SCHEME).into(),
            protection: setup.protection,
            key: Some(ClusterKey::from_bytes([7; 32])),
            peer_timeout: setup.peer_timeout,
            connect_timeout: PATIENCE,
            ..config.device
        };
        let backend = wires.backend(end, &config.device);
        let backend = Faulty::new(backend, setup.faults, cuts.clone(), setup.seed + number);
        RdmEndpoint::with_backend(config, backend).expect("an endpoint")
    }

    fn end(&self, end: End) -> &RdmEndpoint {
        match end {
            End::Near => &self.near,
            End::Far => self.far.as_ref().expect("it is up"),
        }
    }
}

impl<T: Told, W: Wires> World for RealDatagrams<T, W> {
    const NAME: &'static str = T::NAMES[1];
    const VERBS: &'static [Verb] = Datagrams::<T>::VERBS;
    const SHORTEST: usize = Datagrams::<T>::SHORTEST;
    const ORDER: Order = T::ORDER;

    fn open(setup: &Setup) -> Self {
        let (cuts, wires) = (Cuts::default(), W::open());
        let open = |end, number| Self::endpoint(&wires, setup, (end, wires.address(end)), &cuts, number);
        let (near, far) = (open(End::Near, 0), open(End::Far, 1));
        let peers =
            [(&near, &far), (&far, &near)].map(|(end, to)| end.insert(to.local_addr()).expect("room"));
        near.reach(peers[0]).expect("an association");
        let memory = [0, 1].map(|_| Region::zeroed(setup.memory_bytes).expect("memory"));
        let far = Some(far);
        RealDatagrams { wires, setup: *setup, cuts, near, far, peers, memory, opened: 2, told: PhantomData }
    }

    fn cut(&mut self, paths: u64) {
        self.cuts.set(paths);
    }

    fn narrow(&mut self, longest: usize) {
        self.cuts.set_longest(longest);
    }

    fn stall(&mut self, time: Duration) {
        self.cuts.stall(time);
    }

    fn close(self) -> FaultCounters {
        let RealDatagrams { cuts, near, far, .. } = self;
        drop((near, far));
        cuts.happened()
    }

    fn pass(&mut self, time: Duration) {
        std::thread::sleep(time);
    }

    fn post(&mut self, end: End, request: &Request) {
        let local = self.memory[end.index()].slice(request.local.clone()).expect("within it");
        self.end(end).send(request.wr_id, self.peers[end.index()], local).expect("posted");
    }

    fn receive(&mut self, end: End, wr_id: u64, place: Range<usize>) {
        let place = self.memory[end.index()].slice(place).expect("within it");
        self.end(end).recv(wr_id, place).expect("posted");
    }

    fn next(&mut self, end: End) -> Option<Done> {
        match self.end(end).wait(PATIENCE) {
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
        let stats = End::BOTH.map(|end| self.end(end).stats().expect("its loop runs"));
        let [near, far] = stats.map(|stats| Troubles::of_datagrams(&stats.counters, stats.refused_datagrams));
        near + far
    }
}

impl<T: Told, W: Wires> Restarts for RealDatagrams<T, W> {
    fn crash_far(&mut self) {
        // Messages that the endpoint sends when it closes are lost, too.
        self.cuts.set(u64::MAX);
    }

    fn revive_far(&mut self) {
        let address = self.end(End::Far).local_addr();
        drop(self.far.take());
        let far = Self::endpoint(&self.wires, &self.setup, (End::Far, address), &self.cuts, self.opened);
        self.far = Some(far);
        self.opened += 1;
        self.memory[1] = Region::zeroed(self.setup.memory_bytes).expect("memory");
        self.cuts.set(0);
    }

    fn reconnect(&mut self) {
        let far = self.far.as_ref().expect("it is up");
        self.peers[1] = far.insert(self.near.local_addr()).expect("room");
        far.reach(self.peers[1]).expect("an association");
    }
}
