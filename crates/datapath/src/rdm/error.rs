//! Errors of a datagram endpoint.

use std::net::SocketAddr;

use thiserror::Error;

use super::Peer;

/// Reason why a peer was not inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PeerError {
    /// The peer has another address family than the endpoint.
    #[error("{peer} is of another address family than the endpoint's {local}")]
    Family {
        /// Address of the peer.
        peer: SocketAddr,
        /// Address of the endpoint.
        local: SocketAddr,
    },
    /// The address or the port is 0, which no peer can have.
    #[error("{0} is no address of a peer: address and port must not be 0")]
    Address(SocketAddr),
    /// The endpoint has as many peers as it may, and none of them is idle.
    #[error("the endpoint has {limit} peers, its limit, each with open messages")]
    TooMany {
        /// Largest number of peers.
        limit: usize,
    },
}

/// Reason why a message or a receive was not posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RdmPostError {
    /// The peer had been forgotten, and cannot be inserted again.
    #[error("{peer} cannot be added again: {why}")]
    Peer {
        /// The peer as named.
        peer: Peer,
        /// Reason why it cannot be inserted.
        why: PeerError,
    },
    /// The message is too long or empty.
    #[error("a message of {len} bytes; 1 to {most} are allowed")]
    Length {
        /// Length of the message, in bytes.
        len: u64,
        /// Largest length: 4 GiB, or 2^23 packets if that is less.
        most: u64,
    },
    /// Too many messages to the peer are outstanding.
    #[error("{limit} messages to {peer} are outstanding, the largest number; wait for completions")]
    Outstanding {
        /// Destination.
        peer: Peer,
        /// Largest number of outstanding messages to one peer.
        limit: u32,
    },
    /// Too many requests of the endpoint are outstanding: their completions have not been taken.
    #[error("{limit} requests of the endpoint are outstanding, the limit; poll completions first")]
    Full {
        /// Largest number of outstanding requests.
        limit: u32,
    },
}
