//! Peers that know the protocol and violate it; their packets are those of the transport's hostile tests.

use std::io::Write;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use pathweave_datapath::secure::{ClusterKey, Features, Hello, Protection, SessionId, TransportType};
use pathweave_units::{PathId, Rng, Time};
use pathweave_wire::{Body, RdData, Segment};

use super::raw::{self, Raw};

#[path = "../../../transport/tests/hostile/choices.rs"]
mod choices;

use choices::{Aim, Choices, any_body, any_rd};

/// A member of the cluster: it opens a connection (or, with datagrams, an association) correctly.
pub(crate) struct Liar {
    raw: Raw,
    choices: Choices<'static>,
    paths: u16,
    transport: TransportType,
    /// Key of memory that it may access.
    rkey: u64,
    data_psn: u64,
    /// Frames it has sent, for replay.
    said: Vec<Vec<u8>>,
}

/// Handshake parameters of a liar.
pub(crate) struct Guise<'a> {
    pub(crate) key: &'a ClusterKey,
    pub(crate) scheme: &'a str,
    pub(crate) protection: Protection,
    pub(crate) transport: TransportType,
    pub(crate) paths: u16,
}

impl Liar {
    /// Connects. Panics if the handshake does not complete in time.
    pub(crate) fn meet(to: SocketAddr, guise: &Guise<'_>, rkey: u64, seed: u64) -> Liar {
        let Guise { key, scheme, protection, transport, paths } = *guise;
        // Addresses at which nothing listens.
        let addresses = [1, 2].map(|host| SocketAddr::from(([127, 0, 0, host], 9))).to_vec();
        let features = Features::ADDRESSES;
        let mut hello = Hello { features, addresses, ..raw::hello(scheme, protection, paths) };
        if transport == TransportType::Erd {
            // Protected packets have separate sequences for datagrams and for records. The private data is the port
            // of its side channel, where nothing listens.
            hello = Hello { transport, private_data: vec![0, 9], ..raw::hello(scheme, protection, 2) };
        }
        let mut raw = Raw::new(to, key, hello);
        raw.connect();
        let paths = raw.established.as_ref().map_or(1, |established| established.agreed.paths);
        let choices = Choices::Random(Rng::for_component(seed, "liar", 0), u32::MAX);
        Liar { raw, choices, paths, transport, rkey, data_psn: 0, said: Vec::new() }
    }

    /// Sends `count` random messages.
    pub(crate) fn say(&mut self, count: u32) {
        for number in 0..count {
            self.say_one();
            if number % 64 == 0 {
                self.raw.forget_what_arrived();
            }
        }
    }

    fn say_one(&mut self) {
        let (dst_qp, session) = self.raw.other();
        match self.choices.below(40) {
            0 if self.choices.one_in(2) => {
                return self.raw.send_control(self.choices.below(4) as u8, session);
            }
            0 => {
                let (message, pair) = (self.choices.below(6) as u8, self.choices.below(4) as u8);
                return self.raw.send_of_pair(message, pair, self.choices.below(4).into());
            }
            1 => {
                let frame = self.choices.below(self.said.len().max(1) as u32) as usize;
                if let Some(frame) = self.said.get(frame) {
                    self.raw.send_bytes(frame);
                }
                return;
            }
            2 => {
                let len = self.choices.below(80);
                let content: Vec<u8> = (0..len).map(|_| self.choices.below(256) as u8).collect();
                self.raw.send_content(0, &content);
                return;
            }
            _ => {}
        }
        let aim = Aim {
            now: Time::from_us(1_000),
            data_psn: self.data_psn,
            own_psn: u64::from(self.choices.below(40)),
            mtu_payload: 1_344,
            rkeys: [self.rkey; 2],
            paths: self.paths,
        };
        let (mut body, path) = if self.transport == TransportType::Erd && !self.choices.one_in(4) {
            let data = any_rd(&mut self.choices, aim.data_psn, aim.mtu_payload);
            (Body::Rd(RdData { len: data.len.min(1_344), ..data }), PathId(0))
        } else {
            any_body(&mut self.choices, &aim)
        };
        match &mut body {
            Body::Data(data) => {
                // Longer ones do not fit a datagram.
                data.len = data.len.min(1_344);
                if data.psn.wrapping_sub(self.data_psn) < 64 {
                    self.data_psn = data.psn.wrapping_add(1);
                }
            }
            Body::Rd(data) if data.psn.wrapping_sub(self.data_psn) < 64 => {
                self.data_psn = data.psn.wrapping_add(1);
            }
            _ => {}
        }
        let segment = Segment { dst_qp, src_qp: raw::QP, path, pull_target: None, body };
        let sequence = if self.transport == TransportType::Erd { 0 } else { path.0 % self.paths };
        if let Some(frame) = self.raw.send_segment_on(sequence, &segment, 0x5a)
            && self.said.len() < 64
        {
            self.said.push(frame);
        }
    }

    /// Returns the frames it has sent, for others to replay.
    pub(crate) fn said(&self) -> &[Vec<u8>] {
        &self.said
    }
}

/// Sends as a stranger without the key: bytes that look like a frame, or replayed frames.
pub(crate) fn stranger(socket: &UdpSocket, to: SocketAddr, overheard: &[Vec<u8>], rng: &mut Rng) {
    let mut bytes: Vec<u8> = match overheard.len() as u32 {
        0 => (0..rng.below(1_500)).map(|_| rng.next_u64() as u8).collect(),
        known => overheard[rng.below(known) as usize].clone(),
    };
    if let Some(first) = bytes.first_mut() {
        let kinds = [0x70, 0x71, 0x72, 0xc4, 0xd1, 0xdf, *first, *first];
        *first = kinds[rng.below(kinds.len() as u32) as usize];
    }
    if !bytes.is_empty() && rng.bernoulli(0.5) {
        let at = rng.below(bytes.len() as u32) as usize;
        bytes[at] ^= 1 << rng.below(8);
    }
    let _ = socket.send_to(&bytes, to);
}

/// Opens a side channel connection and sends arbitrary bytes.
pub(crate) fn caller(to: SocketAddr, rng: &mut Rng) {
    let Ok(mut stream) = TcpStream::connect_timeout(&to, Duration::from_secs(1)) else { return };
    let preamble = pathweave_datapath::rdm::stream::Preamble {
        protection: Protection::ALL[rng.below(3) as usize],
        to: SessionId(rng.below(1 << 21)),
        from: SessionId(rng.below(9)),
    };
    let _ = stream.write_all(&preamble.encode());
    let bytes: Vec<u8> = (0..rng.below(300)).map(|_| rng.next_u64() as u8).collect();
    let _ = stream.write_all(&bytes);
}
