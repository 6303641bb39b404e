//! What can be wrong with what is asked of a datagram endpoint.

use std::net::SocketAddr;

use thiserror::Error;

use super::Peer;

/// Why a peer was not made known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PeerError {
    /// Another address family than the endpoint's.
    #[error("{peer} is of another address family than the endpoint's {local}")]
    Family {
        /// Whom.
        peer: SocketAddr,
        /// This end's address.
        local: SocketAddr,
    },
    /// An address that no peer can have.
    #[error("{0} is nobody's address: a peer has an address and a port that are not 0")]
    Address(SocketAddr),
    /// Limits of this endpoint.
    #[error(
        "the endpoint has {limit} peers, as many as it may, and something is under way with each of them"
    )]
    TooMany {
        /// The limit.
        limit: usize,
    },
}

/// Why a message or a receive was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RdmPostError {
    /// It had been forgotten, and cannot be made known again.
    #[error("{peer} cannot be made known again: {why}")]
    Peer {
        /// As named.
        peer: Peer,
        /// Why.
        why: PeerError,
    },
    /// No message is so long.
    #[error("a message of {len} bytes; 1 to {most} are allowed")]
    Length {
        /// Bytes asked for.
        len: u64,
        /// As many as there may be: 4 GiB, or 2^23 packets where that is less.
        most: u64,
    },
    /// Messages that are not done.
    #[error("{limit} messages to {peer} are outstanding, as many as can be told apart; wait for completions")]
    Outstanding {
        /// To whom.
        peer: Peer,
        /// The limit.
        limit: u32,
    },
    /// Completions that have not been taken out.
    #[error(
        "{limit} requests of the endpoint are outstanding, as many as there may be; poll completions first"
    )]
    Full {
        /// The limit.
        limit: u32,
    },
}
