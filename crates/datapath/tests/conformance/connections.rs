//! Simulated connections.

use std::ops::Range;

use pathweave_policy::AnyPolicy;
use pathweave_transport::{
    Access, Buffer, Endpoint, EndpointConfig, Event, MemoryRegion, Op, PayloadRef, Placement, QpConfig,
    RecvRequest, RetransmissionConfig, Scope, WorkRequest,
};
use pathweave_units::{Duration, HostId, PathId, QpNum, Rng, Time};
use pathweave_wire::{Body, Datagram, Segment};

use crate::simulated::{Carrier, DELAY, environment, scheme, span};
use crate::world::{Done, Fences, MTU, Order, Request, SCHEME, Setup, Start, Troubles, Verb};

pub(crate) struct Connected {
    endpoint: Endpoint<AnyPolicy>,
    qp: QpNum,
    rkey: u64,
    near_data: u64,
    near_answers: u64,
}

impl Carrier for Connected {
    const NAME: &'static str = "simulated";
    const VERBS: &'static [Verb] = &Verb::ALL;
    const SHORTEST: usize = 0;
    const ORDER: Order = Order::OfPosting;
    const FENCES: Fences = Fences::Kept;
    type Transport = Endpoint<AnyPolicy>;

    fn open(setup: &Setup, end: usize, number: u64) -> Self {
        let config = EndpointConfig::new(HostId(end as u32));
        let seed = setup.seed + number;
        let mut endpoint = Endpoint::new(EndpointConfig { mtu_payload: MTU as u16, seed, ..config });
        let (len, access, scope) = (setup.memory_bytes as u64, Access::READ_WRITE, Scope::DEFAULT);
        let region = MemoryRegion { buffer: Buffer(0), addr: 0, len, access, scope };
        let rkey = endpoint.register(region, 0).expect("a key");
        Connected { endpoint, qp: QpNum(0), rkey, near_data: 0, near_answers: 0 }
    }

    fn connect(pair: [&mut Self; 2], setup: &Setup, now: Time, number: u64) {
        let scheme = scheme(setup, SCHEME, DELAY * 2);
        let mut rto = RetransmissionConfig {
            max_timeout: Duration::from_ms(100),
            retry_limit: 1,
            ..RetransmissionConfig::SHORT
        };
        while rto.give_up_after() < span(setup.peer_timeout) {
            rto.retry_limit += 1;
        }
        let [near, far] = pair;
        for (end, host) in (0..).zip([&mut *near, &mut *far]) {
            let mut rng = Rng::for_component(setup.seed, "policy", number + u64::from(end));
            let config = QpConfig {
                recovery: scheme.recovery,
                acks: scheme.acks,
                cnp: scheme.cnp,
                reordering: scheme.reordering,
                credit: scheme.credit_terms(&environment(DELAY * 2), environment(DELAY * 2).line_rate),
                rto,
                ..QpConfig::new(HostId(1 - end), scheme.policy.build(&environment(DELAY * 2), &mut rng), &[])
            };
            // There is none at first, nor after a restart.
            let _ = host.endpoint.destroy_qp(host.qp);
            (host.near_data, host.near_answers) = (0, 0);
            host.qp = host.endpoint.create_qp(now, config);
        }
        near.endpoint.connect(near.qp, far.qp).expect("both exist");
        far.endpoint.connect(far.qp, near.qp).expect("both exist");
    }

    fn transport(&mut self) -> &mut Endpoint<AnyPolicy> {
        &mut self.endpoint
    }

    fn troubles(&mut self, refused: u64) -> Troubles {
        Troubles::of(&self.endpoint.counters(), refused)
    }

    fn key(&self) -> u64 {
        self.rkey
    }

    fn post(&mut self, now: Time, request: &Request, rkey: u64) {
        let (remote_addr, imm) = (request.remote as u64, request.imm);
        let op = match request.verb {
            Verb::Send => Op::Send,
            Verb::SendImm => Op::SendImm { imm },
            Verb::Write => Op::Write { rkey, remote_addr },
            Verb::WriteImm => Op::WriteImm { rkey, remote_addr, imm },
            Verb::Read => Op::Read { rkey, remote_addr },
        };
        let (local, len) = (Buffer(request.local.start as u64), request.local.len() as u64);
        let work = WorkRequest { wr_id: request.wr_id, op, local, len };
        match request.start {
            Start::AtOnce => self.endpoint.post(now, self.qp, work),
            Start::Fenced => self.endpoint.post_fenced(now, self.qp, work),
        }
        .expect("posted");
    }

    fn receive(&mut self, wr_id: u64, place: Range<usize>) {
        let request = RecvRequest { wr_id, buffer: Buffer(place.start as u64), len: place.len() as u64 };
        self.endpoint.post_recv(self.qp, request).expect("posted");
    }

    fn leaves(&mut self, segment: &Segment) {
        if let Body::Data(data) = &segment.body {
            self.near_answers = self.near_answers.max(data.psn);
        }
    }

    fn near(&mut self, datagram: &Datagram<'_>) -> Option<u64> {
        let near = if datagram.has_reverse_psn() { self.near_answers } else { self.near_data };
        (datagram.dst_qp() == self.qp).then_some(near)
    }

    fn arrives(&mut self, segment: &Segment) {
        if let Body::Data(data) = &segment.body {
            self.near_data = self.near_data.max(data.psn);
        }
    }

    fn sequence(segment: &Segment) -> PathId {
        segment.path
    }

    fn source(&self, payload: &PayloadRef) -> usize {
        (payload.buffer.0 + payload.offset) as usize
    }

    fn destination(&self, place: &Placement) -> usize {
        (place.buffer.0 + place.offset) as usize
    }

    fn told(&mut self, event: Event) -> Option<Done> {
        let Event::Completion(done) = event else { return None };
        Some(Done {
            wr_id: done.wr_id,
            status: done.status,
            opcode: done.opcode,
            byte_len: done.byte_len,
            imm: done.imm,
        })
    }
}
