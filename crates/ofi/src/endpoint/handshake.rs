//! Messages that endpoints exchange when they connect.

use std::net::{IpAddr, SocketAddr};

use pathweave_shm::{ListenerName, Ticket};

/// First bytes of all handshake messages of this protocol.
const MAGIC: [u8; 4] = *b"PWFI";
/// Version of the handshake. The version of the engine's messages follows it.
const VERSION: u8 = 2;

/// Message of the dialling endpoint: its identity, and its knowledge of connections with the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectRequest {
    /// Address at which the endpoint listens.
    pub(crate) address: SocketAddr,
    /// Number of the endpoint's start; new with each start.
    pub(crate) boot: u64,
    /// Number of connections dialled by the peer that this endpoint has seen. It shows if two dials have
    /// crossed.
    pub(crate) seen: u64,
    /// Means to share memory if the peer is on the same host.
    pub(crate) here: Option<Here>,
}

/// Rendezvous of two endpoints on one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Here {
    /// Identifier of this boot of the kernel.
    pub(crate) kernel: [u8; 16],
    pub(crate) meeting: ListenerName,
    /// Ticket that is valid for this call only.
    pub(crate) ticket: Ticket,
}

/// Message of the answering endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) boot: u64,
}

fn opening() -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend([VERSION, pathweave_tagged::WIRE_VERSION]);
    bytes
}

/// Returns the bytes after the opening, if it is that of this protocol.
fn after_opening(bytes: &[u8]) -> Option<&[u8]> {
    bytes.strip_prefix(&opening()[..])
}

fn block(bytes: &[u8]) -> Option<([u8; 16], &[u8])> {
    bytes.split_first_chunk().map(|(block, rest)| (*block, rest))
}

fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u64::from_le_bytes(*number), rest))
}

impl ConnectRequest {
    pub(crate) fn encode(self) -> Vec<u8> {
        let mut bytes = opening();
        bytes.extend(self.boot.to_le_bytes());
        bytes.extend(self.seen.to_le_bytes());
        bytes.push(u8::from(self.here.is_some()));
        if let Some(Here { kernel, meeting, ticket }) = self.here {
            [kernel, meeting.0, ticket.0].iter().for_each(|block| bytes.extend(block));
        }
        bytes.extend(self.address.port().to_le_bytes());
        match self.address.ip() {
            IpAddr::V4(ip) => bytes.extend(ip.octets()),
            IpAddr::V6(ip) => bytes.extend(ip.octets()),
        }
        bytes
    }

    /// Parses a call. Returns `None` for bytes of another protocol.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (boot, rest) = number(after_opening(bytes)?)?;
        let (seen, rest) = number(rest)?;
        let (here, rest) = match rest.split_first()? {
            (0, rest) => (None, rest),
            (1, rest) => {
                let (kernel, rest) = block(rest)?;
                let (meeting, rest) = block(rest)?;
                let (ticket, rest) = block(rest)?;
                (Some(Here { kernel, meeting: ListenerName(meeting), ticket: Ticket(ticket) }), rest)
            }
            _ => return None,
        };
        let (port, ip) = rest.split_first_chunk()?;
        let ip: IpAddr = match ip.len() {
            4 => <[u8; 4]>::try_from(ip).ok()?.into(),
            16 => <[u8; 16]>::try_from(ip).ok()?.into(),
            _ => return None,
        };
        Some(ConnectRequest { address: SocketAddr::new(ip, u16::from_le_bytes(*port)), boot, seen, here })
    }
}

impl Answer {
    pub(crate) fn encode(self) -> Vec<u8> {
        let mut bytes = opening();
        bytes.extend(self.boot.to_le_bytes());
        bytes
    }

    /// Parses an answer. Returns `None` for bytes of another protocol.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (boot, rest) = number(after_opening(bytes)?)?;
        rest.is_empty().then_some(Answer { boot })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Arbitrary bytes of a peer are either rejected, or are exactly the encoding of the parsed message.
        #[test]
        fn other_bytes_are_nothing(rest in prop::collection::vec(any::<u8>(), 0..120), here in 0u8..3) {
            let mut bytes = opening();
            bytes.extend(&rest);
            if let Some(byte) = bytes.get_mut(opening().len() + 16) {
                *byte = here;
            }
            if let Some(call) = ConnectRequest::decode(&bytes) {
                prop_assert_eq!(call.encode(), &bytes[..]);
            }
            if let Some(answer) = Answer::decode(&bytes) {
                prop_assert_eq!(answer.encode(), &bytes[..]);
            }
        }
    }

    #[test]
    fn valid_messages_are_parsed_and_others_refused() {
        let here = Here { kernel: [1; 16], meeting: ListenerName([2; 16]), ticket: Ticket([3; 16]) };
        for (address, here) in
            [("10.0.0.1:4567", None), ("[2001:db8::1]:1", None), ("[2001:db8::1]:1", Some(here))]
        {
            let call =
                ConnectRequest { address: address.parse().unwrap(), boot: u64::MAX - 1, seen: 3, here };
            let bytes = call.encode();
            assert!(bytes.len() <= 196);
            assert_eq!(ConnectRequest::decode(&bytes), Some(call));
            for len in 0..bytes.len() {
                assert_ne!(ConnectRequest::decode(&bytes[..len]), Some(call));
            }
            let mut other = bytes.clone();
            other[4] += 1;
            assert_eq!(ConnectRequest::decode(&other), None, "another version");
        }
        let answer = Answer { boot: 7 };
        assert_eq!(Answer::decode(&answer.encode()), Some(answer));
        assert_eq!(Answer::decode(b"PWFI"), None);
    }
}
