//! Common test interface of both services: two hosts that know each other, and messages from one to the other.

use pathweave_policy::{AnyPolicy, PolicyEnv, Scheme, Service};
use pathweave_transport::rd::{PeerId, RdConfig, RdEvent, RdQp};
use pathweave_transport::{
    Buffer, Endpoint, EndpointConfig, Event, Op, Opcode, QpConfig, RecvRequest, RetransmissionConfig, Status,
    Transport, WorkRequest,
};
use pathweave_units::{Duration, HostId, QpNum, Rng, Time};
use pathweave_wire::Framing;

/// Parameters of both hosts.
pub(crate) struct Setting<'a> {
    pub(crate) scheme: &'a Scheme,
    pub(crate) env: PolicyEnv,
    pub(crate) nic_ports: u8,
    pub(crate) rto: RetransmissionConfig,
    pub(crate) seed: u64,
}

/// An event of either service.
pub(crate) enum Told {
    /// Message number `msg` of the peer is complete.
    Delivered { msg: u64, bytes: u64 },
    /// A message of this end is done.
    Completed { wr_id: u64, status: Status },
}

/// A service under test: two hosts that know each other.
pub(crate) trait Subject: Transport + Sized {
    /// True if messages are delivered and completed in the order of posting.
    const IN_ORDER: bool;
    fn pair(setting: &Setting<'_>) -> ([Self; 2], [QpNum; 2]);
    fn post(hosts: &mut [Self; 2], qps: [QpNum; 2], now: Time, from: usize, wr_id: u64, len: u64);
    fn told(event: Self::Event) -> Option<Told>;
}

impl Subject for Endpoint<AnyPolicy> {
    const IN_ORDER: bool = true;

    fn pair(setting: &Setting<'_>) -> ([Self; 2], [QpNum; 2]) {
        let &Setting { scheme, ref env, nic_ports, rto, seed } = setting;
        let mtu_payload = u16::try_from(env.mtu_payload_bytes).expect("a payload");
        let mut hosts = [0, 1].map(|host| {
            let config = EndpointConfig::new(HostId(host));
            Endpoint::new(EndpointConfig { mtu_payload, seed, nic_ports, ..config })
        });
        let qps = [0, 1].map(|host| {
            let policy = scheme.policy.build(env, &mut Rng::for_component(seed, "policy", host as u64));
            let mut qp = QpConfig::new(HostId(1 - host as u32), policy, &[]);
            (qp.recovery, qp.acks) = (scheme.recovery, scheme.acks);
            (qp.cnp, qp.reordering) = (scheme.cnp, scheme.reordering);
            qp.credit = scheme.credit_terms(env, env.line_rate);
            qp.rto = rto;
            hosts[host].create_qp(Time::ZERO, qp)
        });
        hosts[0].connect(qps[0], qps[1]).expect("it was made");
        hosts[1].connect(qps[1], qps[0]).expect("it was made");
        (hosts, qps)
    }

    fn post(hosts: &mut [Self; 2], qps: [QpNum; 2], now: Time, from: usize, wr_id: u64, len: u64) {
        let to = 1 - from;
        hosts[to].post_recv(qps[to], RecvRequest { wr_id, buffer: Buffer(0), len }).expect("it works");
        let request = WorkRequest { wr_id, op: Op::Send, local: Buffer(0), len };
        hosts[from].post(now, qps[from], request).expect("it works");
    }

    fn told(event: Event) -> Option<Told> {
        match event {
            Event::Delivered { msn, bytes, .. } => Some(Told::Delivered { msg: msn.into(), bytes }),
            Event::Completion(done) if done.opcode == Opcode::Recv => None,
            Event::Completion(done) => Some(Told::Completed { wr_id: done.wr_id, status: done.status }),
            Event::QpError { status, .. } => panic!("the queue pair has failed: {status:?}"),
            Event::Retransmitted { .. } | Event::TimedOut { .. } => None,
        }
    }
}

fn peer(host: usize) -> PeerId {
    PeerId { host: HostId(host as u32), qp: QpNum(host as u32 + 1) }
}

impl Subject for RdQp<AnyPolicy> {
    const IN_ORDER: bool = false;

    fn pair(setting: &Setting<'_>) -> ([Self; 2], [QpNum; 2]) {
        let &Setting { scheme, ref env, nic_ports, seed, .. } = setting;
        let mtu_payload = u16::try_from(env.mtu_payload_bytes).expect("a payload");
        let Service::Datagram(behaviour) = scheme.service else { panic!("datagrams") };
        let hosts = [0, 1].map(|host| {
            let mut rng = Rng::for_component(seed, "policy", host as u64);
            let (policy, control) = scheme.datagram_policy(env, &mut rng);
            let mut qp = RdQp::new(RdConfig {
                num: peer(host).qp,
                policy,
                control,
                behaviour,
                mtu_payload,
                framing: Framing::Rocev2,
                paths: env.paths,
                nic_ports,
                seed,
                rtt: env.base_rtt,
                nack_delay: Duration::ZERO,
            });
            qp.add_peer(Time::ZERO, peer(1 - host), env.base_rtt);
            qp
        });
        (hosts, [peer(0).qp, peer(1).qp])
    }

    fn post(hosts: &mut [Self; 2], _: [QpNum; 2], now: Time, from: usize, wr_id: u64, len: u64) {
        hosts[from].post(now, peer(1 - from), wr_id, len).expect("room");
    }

    fn told(event: RdEvent) -> Option<Told> {
        match event {
            RdEvent::Delivered { msg, bytes, .. } => Some(Told::Delivered { msg, bytes }),
            RdEvent::Completion { wr_id, status, .. } => Some(Told::Completed { wr_id, status }),
            RdEvent::Abandoned { .. } => panic!("nothing is given up"),
        }
    }
}
