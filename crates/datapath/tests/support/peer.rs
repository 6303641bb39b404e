//! A peer without a device: it performs the handshake correctly, and then sends arbitrary packets for a test.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use pathweave_datapath::secure::{
    ClusterKey, Established, Features, HandshakeConfig, Hello, Initiator, InitiatorEvent, OsRandom,
    Protection, Rotation, SessionId, TransportType,
};
use pathweave_units::{HostId, QpNum, Time};
use pathweave_wire::{DatagramLayout, Segment, datagram_crc, emit_datagram_header};

/// An end of an unprotected connection or association.
pub(crate) struct Peer {
    pub(crate) socket: UdpSocket,
    pub(crate) to: SocketAddr,
    /// Identity of this end at the other one.
    pub(crate) qp: QpNum,
    pub(crate) session: u32,
    pub(crate) established: Box<Established>,
}

impl Peer {
    /// Performs the handshake with a device or a datagram endpoint, which must accept. `qp` and the session are those
    /// that this end announces.
    pub(crate) fn meet(socket: UdpSocket, to: SocketAddr, transport: TransportType, qp: QpNum) -> Peer {
        let datagrams = transport == TransportType::Erd;
        let session = 0x7e57;
        let hello = Hello {
            protection: Protection::Insecure,
            transport,
            scheme: if datagrams { "erd" } else { "udmp" }.into(),
            mtu_payload: 1_344,
            paths: 2,
            nic_ports: 1,
            host: HostId(0),
            qp,
            session: SessionId(session),
            features: Features::NONE,
            required: Features::NONE,
            // Datagram endpoints announce the port of their side channel.
            private_data: if datagrams { vec![0, 9] } else { vec![] },
            addresses: vec![],
        };
        let start = Instant::now();
        let now = || Time::from_ns(1 + start.elapsed().as_nanos() as u64);
        let config = HandshakeConfig::default();
        let key = ClusterKey::public_key_for_insecure();
        let mut initiator =
            Initiator::new(now(), &key, hello, config, Rotation::default(), &mut OsRandom).expect("a hello");
        socket.set_read_timeout(Some(Duration::from_millis(5))).expect("a socket");
        let mut buffer = [0; 2_048];
        let established = loop {
            while let Some(datagram) = initiator.poll_transmit() {
                socket.send_to(&datagram, to).expect("loopback");
            }
            match initiator.poll_event() {
                Some(InitiatorEvent::Established(established)) => break established,
                Some(InitiatorEvent::Failed(error)) => panic!("no handshake: {error}"),
                None => {}
            }
            if let Ok((len, _)) = socket.recv_from(&mut buffer) {
                initiator.handle(now(), &buffer[..len]);
            }
            initiator.on_timer(now());
        };
        // Sends the Confirm.
        while let Some(datagram) = initiator.poll_transmit() {
            socket.send_to(&datagram, to).expect("loopback");
        }
        Peer { socket, to, qp, session, established }
    }

    /// Returns an intact packet of this connection; `None` if the segment cannot be encoded.
    pub(crate) fn packet(
        &self,
        segment: &Segment,
        payload: impl FnOnce(usize) -> Vec<u8>,
    ) -> Option<Vec<u8>> {
        let layout = DatagramLayout::for_segment(segment);
        let mut bytes = vec![0; layout.len()];
        emit_datagram_header(segment, &mut bytes).ok()?;
        bytes[layout.header_len..][..layout.payload_len].copy_from_slice(&payload(layout.payload_len));
        Some(self.ended(bytes))
    }

    /// Appends the CRC of this connection to arbitrary bytes.
    pub(crate) fn ended(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        let crc = datagram_crc(&bytes) ^ self.established.session.plain_tags().sends;
        bytes.extend_from_slice(&crc.to_le_bytes());
        bytes
    }

    pub(crate) fn send(&self, datagram: &[u8]) {
        self.socket.send_to(datagram, self.to).expect("loopback");
    }
}
