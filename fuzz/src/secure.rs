//! Handshake and packet protection. Keys, random bytes and hellos are those of
//! `crates/datapath/src/secure/tests/golden.py`, which also produced the seeds. The seeds are therefore valid
//! messages.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::sync::LazyLock;

use pathweave_datapath::secure::{
    ClusterKey, Established, Features, HandshakeConfig, Hello, Initiator, InitiatorEvent, Protection,
    RandomError, Recipient, Responder, ResponderConfig, ResponderEvent, Rotation, SecureRandom, SessionId,
    TransportType, recipient_of,
};
use pathweave_units::{HostId, PathId, QpNum, Time};

/// Random source that fills every draw with its number, counted from 1.
struct Counting(u8);

impl SecureRandom for Counting {
    fn fill(&mut self, out: &mut [u8]) -> Result<(), RandomError> {
        self.0 = self.0.wrapping_add(1);
        out.fill(self.0);
        Ok(())
    }
}

fn hello(protection: Protection, number: u32) -> Hello {
    Hello {
        protection,
        transport: TransportType::Rc,
        scheme: "udmp".into(),
        mtu_payload: 4_096,
        paths: 8,
        nic_ports: 1,
        host: HostId(number),
        qp: QpNum(1_000 + number),
        session: SessionId(101 * number),
        features: Features::NONE,
        required: Features::NONE,
        private_data: vec![],
        addresses: vec![],
    }
}

/// Both ends with their state.
struct Pair {
    now: Time,
    client: SocketAddr,
    protection: Protection,
    initiator: Initiator,
    responder: Responder,
    near: Option<Box<Established>>,
    far: Option<Box<Established>>,
}

impl Pair {
    fn new(protection: Protection, drawn: u8) -> Self {
        let now = Time::from_us(1_000);
        let key = ClusterKey::from_bytes(core::array::from_fn(|i| i as u8));
        let responder = Responder::new(key.clone(), ResponderConfig::default(), Box::new(Counting(drawn)));
        let (config, rotation) = (HandshakeConfig::default(), Rotation::default());
        let said = hello(protection, 1);
        let initiator = Initiator::new(now, &key, said, config, rotation, &mut Counting(drawn));
        Pair {
            now,
            client: SocketAddr::new([10, 1, 2, 3].into(), 1),
            protection,
            initiator: initiator.expect("a good hello"),
            responder: responder.expect("a good configuration"),
            near: None,
            far: None,
        }
    }
    fn deliver(&mut self, datagram: &[u8]) {
        match recipient_of(datagram) {
            Recipient::ToResponder => self.responder.handle(self.now, self.client, datagram),
            _ => self.initiator.handle(self.now, datagram),
        }
        self.drain();
    }
    fn drain(&mut self) {
        while let Some(event) = self.responder.poll_event() {
            match event {
                ResponderEvent::Request { id, .. } => {
                    let answer = hello(self.protection, 2);
                    self.responder.accept(self.now, id, answer).expect("the hellos go together");
                }
                ResponderEvent::Established { established, .. } => {
                    assert!(self.far.is_none(), "established twice");
                    self.far = Some(established);
                }
                ResponderEvent::Abandoned { .. } => unreachable!("no time passes"),
            }
        }
        match self.initiator.poll_event() {
            Some(InitiatorEvent::Established(established)) => {
                assert!(self.near.is_none(), "established twice");
                self.near = Some(established);
            }
            Some(InitiatorEvent::Failed(error)) => panic!("no refusal was genuine: {error}"),
            None => {}
        }
    }
    /// Returns the next valid message.
    fn next(&mut self) -> Option<Vec<u8>> {
        self.initiator
            .poll_transmit()
            .or_else(|| self.responder.poll_transmit().map(|(_, datagram)| datagram))
    }
}

/// XORs `data` onto a valid message. Zero bytes leave it unchanged.
fn xor_onto(good: &[u8], data: &[u8]) -> Vec<u8> {
    let changes = data.iter().copied().chain(core::iter::repeat(0));
    good.iter().zip(changes).map(|(byte, change)| byte ^ change).collect()
}

/// The first byte is the number of valid messages delivered (0 to 4). The second selects whether the rest is a
/// datagram or is XORed onto the next valid message. Only the valid message itself may advance the handshake, and
/// afterwards the handshake must still complete.
pub fn handshake(data: &[u8]) {
    let [stage, mode, rest @ ..] = data else { return };
    let mut pair = Pair::new(Protection::Encrypt, 0);
    for _ in 0..stage % 5 {
        let next = pair.next().expect("a handshake has five messages");
        pair.deliver(&next);
    }
    let good = pair.next().expect("a handshake has five messages");
    let datagram = if mode % 2 == 0 { rest.to_vec() } else { xor_onto(&good, rest) };
    if VALID_MESSAGES.contains(&datagram) {
        pair.deliver(&datagram);
        return;
    }
    let state = |pair: &mut Pair| {
        let half_open = pair.responder.admission().half_open_connections();
        (pair.near.is_some(), pair.far.is_some(), half_open)
    };
    let before = state(&mut pair);
    // Both ends get the datagram, whichever it addresses.
    pair.responder.handle(pair.now, pair.client, &datagram);
    pair.initiator.handle(pair.now, &datagram);
    let mut answered = 0;
    while let Some((_, answer)) = pair.responder.poll_transmit() {
        answered += answer.len();
    }
    assert!(answered <= datagram.len(), "{answered} bytes for {}", datagram.len());
    assert!(pair.initiator.poll_transmit().is_none());
    pair.drain();
    assert_eq!(state(&mut pair), before, "what is not good leads nowhere");
    pair.deliver(&good);
    while let Some(next) = pair.next() {
        pair.deliver(&next);
    }
    let (near, far) = (pair.near.expect("it can be finished"), pair.far.expect("it can be finished"));
    assert_eq!(near.agreed, far.agreed);
}

/// Five messages of a valid handshake.
static VALID_MESSAGES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let mut pair = Pair::new(Protection::Encrypt, 0);
    let mut messages = vec![];
    while let Some(next) = pair.next() {
        pair.deliver(&next);
        messages.push(next);
    }
    assert_eq!(messages.len(), 5);
    messages
});

thread_local! {
    /// A pair of sessions per mode, each with a valid frame of the initiator. A rejected frame leaves no trace, so
    /// the sessions serve all inputs.
    static SESSIONS: RefCell<Vec<(Pair, Vec<u8>)>> = RefCell::new(Protection::ALL.map(established).into());
}

fn established(protection: Protection) -> (Pair, Vec<u8>) {
    // The keys differ from those of the seeds, none of which is valid here.
    let mut pair = Pair::new(protection, 100);
    while let Some(next) = pair.next() {
        pair.deliver(&next);
    }
    let session = &mut pair.near.as_mut().expect("nothing was lost").session;
    let mut frame = vec![0xc4; 100 + session.overhead()];
    session.seal(PathId(3), &mut frame).expect("a good packet");
    (pair, frame)
}

/// Opens a frame as it is, and XORed onto a valid one, in every mode. Only the valid frame may open, and it must
/// still open afterwards.
pub fn packet_open(data: &[u8]) {
    let _ = recipient_of(data);
    SESSIONS.with_borrow_mut(|sessions| {
        for (pair, good) in sessions {
            let far = &mut pair.far.as_mut().expect("nothing was lost").session;
            for frame in [data.to_vec(), xor_onto(good, data)] {
                let mut opened = frame.clone();
                let outcome = far.open(pair.now, &mut opened);
                match pair.protection {
                    Protection::Insecure => {
                        let plain = frame.first().is_some_and(|first| (0xc0..=0xdf).contains(first));
                        assert_eq!(outcome.is_ok(), plain);
                    }
                    _ if frame == *good => {
                        outcome.expect("the good frame opens, once");
                        (*pair, *good) = established(pair.protection);
                        break;
                    }
                    _ => assert!(outcome.is_err(), "a frame nobody sealed was opened"),
                }
            }
        }
    });
}
