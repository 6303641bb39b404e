//! An initiator and a responder on a virtual clock, and the datagrams between them.

use std::net::SocketAddr;

use pathweave_units::{Duration, HostId, QpNum, Rng, Time};

use super::super::*;

/// Deterministic random source.
pub(super) struct Seeded(pub(super) Rng);

impl Seeded {
    pub(super) fn new(seed: u64) -> Self {
        Seeded(Rng::for_component(seed, "secure tests", 0))
    }
}

impl SecureRandom for Seeded {
    fn fill(&mut self, out: &mut [u8]) -> Result<(), RandomError> {
        for byte in out {
            *byte = self.0.next_u64() as u8;
        }
        Ok(())
    }
}

pub(super) fn key(fill: u8) -> ClusterKey {
    ClusterKey::from_bytes([fill; CLUSTER_KEY_LEN])
}

pub(super) fn hello(host: u32, session: u32) -> Hello {
    Hello {
        protection: Protection::Encrypt,
        transport: TransportType::Rc,
        scheme: "udmp".into(),
        mtu_payload: 4_096,
        paths: 8,
        nic_ports: 1,
        host: HostId(host),
        qp: QpNum((host & 0xffff) + 1_000),
        session: SessionId(session),
        features: Features::NONE,
        required: Features::NONE,
        private_data: vec![],
        addresses: vec![],
    }
}

pub(super) fn client() -> SocketAddr {
    "10.1.2.3:49152".parse().expect("an address")
}

pub(super) fn responder(key: ClusterKey, config: ResponderConfig, seed: u64) -> Responder {
    Responder::new(key, config, Box::new(Seeded::new(seed))).expect("a good configuration")
}

pub(super) fn initiator(now: Time, key: &ClusterKey, hello: Hello, seed: u64) -> Initiator {
    let (config, rotation) = (HandshakeConfig::default(), Rotation::default());
    Initiator::new(now, key, hello, config, rotation, &mut Seeded::new(seed)).expect("a good hello")
}

/// Direction of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    ToResponder,
    ToInitiator,
}

/// Model of the network: returns the datagrams that arrive for one that was sent.
pub(super) type Network<'a> = &'a mut dyn FnMut(Way, Vec<u8>) -> Vec<Vec<u8>>;

/// Both ends of one handshake.
pub(super) struct Pair {
    pub(super) now: Time,
    pub(super) initiator: Initiator,
    pub(super) responder: Responder,
    /// Hello of the responder.
    pub(super) answer: Hello,
    pub(super) initiator_result: Option<Box<Established>>,
    pub(super) responder_result: Option<Box<Established>>,
    pub(super) failed: Option<HandshakeError>,
    pub(super) refused: Option<AcceptError>,
    pub(super) requests: u32,
    pub(super) abandoned: u32,
    /// All datagrams sent.
    pub(super) sent: Vec<(Way, Vec<u8>)>,
}

/// One-way delay of a datagram.
pub(super) const ONE_WAY: Duration = Duration::from_us(10);

impl Pair {
    pub(super) fn new(seed: u64) -> Self {
        Self::with(seed, key(1), key(1), hello(1, 101), hello(2, 202), ResponderConfig::default())
    }
    pub(super) fn with(
        seed: u64,
        initiator_key: ClusterKey,
        responder_key: ClusterKey,
        asks: Hello,
        answer: Hello,
        config: ResponderConfig,
    ) -> Self {
        let now = Time::from_us(1_000);
        Pair {
            now,
            initiator: initiator(now, &initiator_key, asks, 2 * seed),
            responder: responder(responder_key, config, 2 * seed + 1),
            answer,
            initiator_result: None,
            responder_result: None,
            failed: None,
            refused: None,
            requests: 0,
            abandoned: 0,
            sent: vec![],
        }
    }

    pub(super) fn hand_responder(&mut self, datagram: &[u8]) {
        self.responder.handle(self.now, client(), datagram);
        self.drain_responder();
    }
    pub(super) fn hand_initiator(&mut self, datagram: &[u8]) {
        self.initiator.handle(self.now, datagram);
        self.drain_initiator();
    }

    pub(super) fn drain_responder(&mut self) {
        while let Some(event) = self.responder.poll_event() {
            match event {
                ResponderEvent::Request { id, .. } => {
                    self.requests += 1;
                    if let Err(error) = self.responder.accept(self.now, id, self.answer.clone()) {
                        self.refused = Some(error);
                    }
                }
                ResponderEvent::Established { established, .. } => {
                    assert!(self.responder_result.is_none(), "established twice");
                    self.responder_result = Some(established);
                }
                ResponderEvent::Abandoned { .. } => self.abandoned += 1,
            }
        }
    }
    fn drain_initiator(&mut self) {
        match self.initiator.poll_event() {
            Some(InitiatorEvent::Established(established)) => {
                assert!(self.initiator_result.is_none(), "established twice");
                self.initiator_result = Some(established);
            }
            Some(InitiatorEvent::Failed(error)) => self.failed = Some(error),
            None => {}
        }
    }

    /// Delivers all waiting datagrams once. Returns true if there were any.
    pub(super) fn exchange(&mut self, network: Network<'_>) -> bool {
        let mut waiting = vec![];
        while let Some(datagram) = self.initiator.poll_transmit() {
            waiting.push((Way::ToResponder, datagram));
        }
        while let Some((to, datagram)) = self.responder.poll_transmit() {
            assert_eq!(to, client());
            waiting.push((Way::ToInitiator, datagram));
        }
        if waiting.is_empty() {
            return false;
        }
        self.now += ONE_WAY;
        for (way, datagram) in waiting {
            self.sent.push((way, datagram.clone()));
            for arrives in network(way, datagram) {
                match way {
                    Way::ToResponder => self.hand_responder(&arrives),
                    Way::ToInitiator => self.hand_initiator(&arrives),
                }
            }
        }
        true
    }

    /// Advances to the next timer. Returns false if there is none.
    pub(super) fn wait(&mut self) -> bool {
        let next = [self.initiator.poll_timeout(), self.responder.poll_timeout()].into_iter().flatten().min();
        let Some(next) = next else { return false };
        self.now = self.now.max(next);
        self.initiator.on_timer(self.now);
        self.responder.on_timer(self.now);
        self.drain_responder();
        self.drain_initiator();
        true
    }

    /// Runs until both ends have finished.
    pub(super) fn run(&mut self, network: Network<'_>) {
        for _ in 0..1_000 {
            let over =
                self.failed.is_some() || (self.initiator_result.is_some() && self.responder_result.is_some());
            if !self.exchange(network) && (over || !self.wait()) {
                return;
            }
        }
        panic!("no end after 1,000 steps");
    }

    /// Runs over a network that delivers everything.
    pub(super) fn run_well(&mut self) {
        self.run(&mut |_, datagram| vec![datagram]);
    }
    pub(super) fn both(self) -> (Established, Established) {
        assert_eq!(self.failed, None);
        (
            *self.initiator_result.expect("the initiator is through"),
            *self.responder_result.expect("the responder is through"),
        )
    }
}

/// Seals `packet` at one end and returns the frame.
pub(super) fn frame(session: &mut Session, path: u16, packet: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; session.header_len()];
    frame.extend_from_slice(packet);
    frame.resize(frame.len() + session.tag_len(), 0);
    session.seal(pathweave_units::PathId(path), &mut frame).expect("a good packet");
    frame
}

/// Sends packets in both directions.
pub(super) fn exchange_packets(near: &mut Established, far: &mut Established) {
    let now = Time::from_us(5_000);
    let mut sent = frame(&mut near.session, 3, b"there");
    let body = far.session.open(now, &mut sent).expect("ours").body;
    assert_eq!(&sent[body], b"there");
    let mut sent = frame(&mut far.session, 5, b"and back");
    let body = near.session.open(now, &mut sent).expect("ours").body;
    assert_eq!(&sent[body], b"and back");
}
