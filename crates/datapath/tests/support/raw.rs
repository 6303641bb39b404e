//! A peer that implements the protocol by itself: it performs the handshake correctly, and then sends arbitrary
//! packets.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use pathweave_datapath::secure::{
    ClusterKey, Established, Features, HandshakeConfig, Hello, Initiator, InitiatorEvent, OsRandom,
    Protection, Rotation, SessionId, TransportType,
};
use pathweave_units::{HostId, PathId, QpNum, Time};
use pathweave_wire::{DatagramLayout, Segment, datagram_crc, emit_datagram_header};

/// Queue pair of the peer, which does not exist.
pub(crate) const QP: QpNum = QpNum(77);
/// Number of the connection at the peer.
const SESSION: SessionId = SessionId(0x0102_0304);

/// Returns the handshake parameters of the peer.
pub(crate) fn hello(scheme: &str, protection: Protection, paths: u16) -> Hello {
    Hello {
        protection,
        transport: TransportType::Rc,
        scheme: scheme.into(),
        mtu_payload: 1_344,
        paths,
        nic_ports: 1,
        host: HostId(1),
        qp: QP,
        session: SESSION,
        features: Features::NONE,
        required: Features::NONE,
        private_data: vec![],
        addresses: vec![],
    }
}

/// The peer, and the state of its handshake.
pub(crate) struct Raw {
    socket: UdpSocket,
    to: SocketAddr,
    begun: Instant,
    initiator: Initiator,
    protection: Protection,
    pub(crate) established: Option<Box<Established>>,
}

impl Raw {
    /// Creates the peer before it sends anything.
    pub(crate) fn new(to: SocketAddr, key: &ClusterKey, hello: Hello) -> Raw {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.set_nonblocking(true).expect("a socket that never waits");
        let (config, rotation, protection) =
            (HandshakeConfig::default(), Rotation::default(), hello.protection);
        let initiator = Initiator::new(Time::from_us(1), key, hello, config, rotation, &mut OsRandom);
        let initiator = initiator.expect("a good hello");
        Raw { socket, to, begun: Instant::now(), initiator, protection, established: None }
    }

    fn now(&self) -> Time {
        Time::from_ns(self.begun.elapsed().as_nanos() as u64) + pathweave_units::Duration::from_us(1)
    }

    /// Advances the handshake as far as arrivals permit. Returns true once the keys are known; then it has sent its
    /// Confirm if `confirms`.
    pub(crate) fn go_on(&mut self, confirms: bool) -> bool {
        let now = self.now();
        self.initiator.on_timer(now);
        self.send_handshake();
        let mut datagram = [0; 2_048];
        while let Ok((len, _)) = self.socket.recv_from(&mut datagram) {
            self.initiator.handle(now, &datagram[..len]);
            match self.initiator.poll_event() {
                Some(InitiatorEvent::Established(established)) => {
                    self.established = Some(established);
                    if confirms {
                        self.send_handshake();
                    }
                    return true;
                }
                Some(InitiatorEvent::Failed(why)) => panic!("the device refuses: {why}"),
                None => self.send_handshake(),
            }
        }
        false
    }

    /// Behaves like a peer that will be refused: sends its request, and answers challenges.
    pub(crate) fn try_in_vain(&mut self) {
        let now = self.now();
        self.initiator.on_timer(now);
        let mut datagram = [0; 2_048];
        while let Ok((len, _)) = self.socket.recv_from(&mut datagram) {
            self.initiator.handle(now, &datagram[..len]);
        }
        self.send_handshake();
        let outcome = self.initiator.poll_event();
        assert!(!matches!(outcome, Some(InitiatorEvent::Established(_))), "let in without the key");
    }

    /// Completes the handshake and confirms.
    pub(crate) fn connect(&mut self) {
        let deadline = Instant::now() + super::PATIENCE;
        while !self.go_on(true) {
            assert!(Instant::now() < deadline, "the handshake does not end");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn send_handshake(&mut self) {
        while let Some(datagram) = self.initiator.poll_transmit() {
            self.send_bytes(&datagram);
        }
    }

    /// Drops everything that the device has sent since the last call. Returns the number of datagrams.
    pub(crate) fn forget_what_arrived(&self) -> u64 {
        let mut datagram = [0; 2_048];
        let mut count = 0;
        while self.socket.recv_from(&mut datagram).is_ok() {
            count += 1;
        }
        count
    }

    /// Returns the contents of the packets that have arrived since the last call.
    pub(crate) fn contents(&mut self) -> Vec<Vec<u8>> {
        let (now, mut contents, mut datagram) = (self.now(), vec![], [0; 2_048]);
        let session = &mut self.established.as_mut().expect("it is connected").session;
        while let Ok((len, _)) = self.socket.recv_from(&mut datagram) {
            let frame = &mut datagram[..len];
            if self.protection == Protection::Insecure {
                contents.push(frame[..len.saturating_sub(4)].to_vec());
            } else if let Ok(opened) = session.open(now, frame) {
                contents.push(frame[opened.body].to_vec());
            }
        }
        contents
    }

    /// Sends exactly these bytes. A full socket loses them.
    pub(crate) fn send_bytes(&self, bytes: &[u8]) {
        let _ = self.socket.send_to(bytes, self.to);
    }

    /// Returns the other end's queue pair, and its number of the connection.
    pub(crate) fn other(&self) -> (QpNum, u32) {
        let established = self.established.as_ref().expect("it is connected");
        (established.peer.qp, established.peer.session.0)
    }

    /// Sends `content` with the negotiated protection as a packet of path `path`. The device gets exactly these
    /// bytes.
    pub(crate) fn send_content(&mut self, path: u16, content: &[u8]) -> Option<Vec<u8>> {
        let frame = self.sealed(path, content)?;
        self.send_bytes(&frame);
        Some(frame)
    }

    fn sealed(&mut self, path: u16, content: &[u8]) -> Option<Vec<u8>> {
        let session = &mut self.established.as_mut().expect("it is connected").session;
        let frame = if self.protection == Protection::Insecure {
            let crc = datagram_crc(content) ^ session.plain_tags().sends;
            [content, &crc.to_le_bytes()].concat()
        } else {
            let header_len = session.header_len();
            let mut frame = vec![0; header_len + content.len() + session.tag_len()];
            frame[header_len..header_len + content.len()].copy_from_slice(content);
            session.seal(PathId(path), &mut frame).ok()?;
            frame
        };
        Some(frame)
    }

    /// Sends a packet whose payload repeats `byte`, in a packet number sequence; returns `None` if no frame can carry
    /// it.
    pub(crate) fn send_segment_on(&mut self, sequence: u16, segment: &Segment, byte: u8) -> Option<Vec<u8>> {
        let layout = DatagramLayout::for_segment(segment);
        let mut content = vec![byte; layout.len()];
        emit_datagram_header(segment, &mut content).ok()?;
        content[layout.header_len + layout.payload_len..].fill(0);
        self.send_content(sequence, &content)
    }

    /// Sends an Answer about an address pair, from a socket with any address.
    pub(crate) fn send_answer(&mut self, from: &UdpSocket, pair: u8, secret: u64) {
        self.send_of_pair_from(from, 4, pair, secret);
    }

    /// Sends an Ask about an address pair, from a socket with any address.
    pub(crate) fn send_ask(&mut self, from: &UdpSocket, pair: u8, secret: u64) {
        self.send_of_pair_from(from, 3, pair, secret);
    }

    fn send_of_pair_from(&mut self, from: &UdpSocket, message: u8, pair: u8, secret: u64) {
        if let Some(frame) = self.sealed(0, &self.of_pair(message, pair, secret)) {
            let _ = from.send_to(&frame, self.to);
        }
    }

    /// Sends connection control about an address pair: 3 is Ask, 4 is Answer, other codes are invalid.
    pub(crate) fn send_of_pair(&mut self, message: u8, pair: u8, secret: u64) {
        self.send_content(0, &self.of_pair(message, pair, secret));
    }

    fn of_pair(&self, message: u8, pair: u8, secret: u64) -> Vec<u8> {
        let numbers = [self.other().1.to_be_bytes(), SESSION.0.to_be_bytes()].concat();
        [&[0xdf, 2, message, 0][..], &numbers, &[pair, 0, 0, 0], &secret.to_be_bytes()].concat()
    }

    /// Sends connection control: 1 is Close, 2 is Closed, other codes are invalid.
    pub(crate) fn send_control(&mut self, message: u8, to: u32) {
        let content = [&[0xdf, 1, message, 0][..], &to.to_be_bytes(), &SESSION.0.to_be_bytes()].concat();
        self.send_content(0, &content);
    }
}
