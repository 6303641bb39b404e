//! What can go wrong, as types.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use pathweave_transport::MAX_MESSAGE_BYTES;
use thiserror::Error;

use crate::config::ConfigError;
use crate::secure::{HandshakeError, Refusal};
use crate::state::CloseReason;

/// Why a device could not be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Another socket has the port.
    #[error("{address} is in use by another socket; choose another port, or 0 for any that is free")]
    PortInUse {
        /// The address asked for.
        address: SocketAddr,
    },
    /// The system says no.
    #[error("no permission to bind {address}; ports below 1024 need privileges (CAP_NET_BIND_SERVICE)")]
    Permission {
        /// The address asked for.
        address: SocketAddr,
    },
    /// No interface has the address.
    #[error("{address} is not an address of this machine")]
    NotLocal {
        /// The address asked for.
        address: SocketAddr,
    },
    /// The loop's thread cannot stay on the core asked for.
    #[error("the loop cannot be put on core {core}: {source}")]
    Core {
        /// The core.
        core: usize,
        /// What the system said.
        source: io::Error,
    },
    /// Anything else the system may say.
    #[error("{address}: {source}")]
    System {
        /// The address it was about.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
}

impl OpenError {
    /// What the system said of a socket at `address`.
    pub fn of_socket(address: SocketAddr, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::AddrInUse => OpenError::PortInUse { address },
            io::ErrorKind::PermissionDenied => OpenError::Permission { address },
            io::ErrorKind::AddrNotAvailable => OpenError::NotLocal { address },
            _ => OpenError::System { address, source },
        }
    }
}

/// Why a connection could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The protection domain is another device's.
    #[error("the protection domain is not one of this device's")]
    OtherDevice,
    /// This end has given up the attempt, or nobody was there any more to take the connection.
    #[error("this end has given up the attempt")]
    GivenUp,
    /// No answer came.
    #[error(
        "{peer} has not answered within {timeout:?}: nobody listens there, a firewall drops UDP, or its cluster key is another"
    )]
    Unreachable {
        /// Whom.
        peer: SocketAddr,
        /// How long.
        timeout: Duration,
    },
    /// The system knows no way, or the peer's system says that no socket listens.
    #[error("{peer} cannot be reached: {reason}")]
    NoRoute {
        /// Whom.
        peer: SocketAddr,
        /// What the system said.
        reason: String,
    },
    /// The peer said no.
    #[error("{peer} refuses the connection: {reason}")]
    Refused {
        /// Who.
        peer: SocketAddr,
        /// Why.
        reason: Refusal,
    },
    /// No listener accepts connections there.
    #[error("{peer} accepts no connections: nobody listens there")]
    NobodyListens {
        /// Who.
        peer: SocketAddr,
    },
    /// The cluster keys differ.
    #[error("{peer}: {reason}")]
    WrongKey {
        /// Who.
        peer: SocketAddr,
        /// What the handshake found.
        reason: String,
    },
    /// The peer speaks other versions.
    #[error("{peer} speaks versions {theirs:?} of the protocol, this end {ours:?}")]
    Version {
        /// Who.
        peer: SocketAddr,
        /// What it speaks.
        theirs: Vec<u8>,
        /// What this end speaks.
        ours: Vec<u8>,
    },
    /// The link to the peer does not take full packets.
    #[error(
        "the link to {peer} takes packets of {link_mtu} bytes, payloads of {mtu_payload} need {needed}; set mtu_payload lower"
    )]
    LinkMtu {
        /// Whom.
        peer: SocketAddr,
        /// Bytes a packet may have on this machine's link to it, IP header included.
        link_mtu: usize,
        /// Bytes full packets have.
        needed: usize,
        /// The payload they are of.
        mtu_payload: u16,
    },
    /// Another address family than the device's.
    #[error("{peer} is of another address family than the device's {local}")]
    Family {
        /// Whom.
        peer: SocketAddr,
        /// This end's address.
        local: SocketAddr,
    },
    /// Limits of this device.
    #[error("the device has {limit} connections, as many as it may")]
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// Something the handshake refused to begin with.
    #[error("the connection cannot be described: {0}")]
    Hello(String),
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The device is closed, or its loop has failed.
    #[error("the device is closed: {0}")]
    DeviceClosed(String),
}

impl ConnectError {
    /// What a failed handshake means to the application.
    pub(crate) fn of_handshake(peer: SocketAddr, timeout: Duration, error: HandshakeError) -> Self {
        match error {
            HandshakeError::NoAnswer { .. } | HandshakeError::Unreachable { .. } => {
                ConnectError::Unreachable { peer, timeout }
            }
            HandshakeError::Version { ours, theirs } => ConnectError::Version { peer, theirs, ours },
            HandshakeError::WrongKey { .. } => ConnectError::WrongKey { peer, reason: error.to_string() },
            HandshakeError::Refused(reason) | HandshakeError::Mismatch(reason) => {
                ConnectError::Refused { peer, reason }
            }
            other => ConnectError::Hello(other.to_string()),
        }
    }
}

/// Why a request was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PostError {
    /// As much is posted as may be; take completions out first.
    #[error("{limit} requests are outstanding, as many as were agreed on; poll completions first")]
    Full {
        /// The limit.
        limit: u32,
    },
    /// The connection is over.
    #[error("the connection is closed")]
    Closed,
    /// The peer's memory would end beyond the last address.
    #[error("{len} bytes at address {address:#x} of the peer end beyond the last address there is")]
    Address {
        /// Address asked for.
        address: u64,
        /// Bytes from there on.
        len: u64,
    },
    /// Longer than a message may be.
    #[error("a message of {len} bytes; at most {MAX_MESSAGE_BYTES} are allowed")]
    TooLong {
        /// Bytes asked for.
        len: u64,
    },
}

/// Why memory was not registered.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// The protection domain is another device's.
    #[error("the protection domain is not one of this device's")]
    OtherDevice,
    /// The connection is over, to whose peer alone the region was to be open.
    #[error("the connection is closed")]
    ConnectionClosed,
    /// The system has no random bytes for the key.
    #[error(transparent)]
    Random(#[from] crate::secure::RandomError),
    /// What the endpoint said.
    #[error(transparent)]
    Memory(#[from] pathweave_transport::MemoryError),
    /// The device is closed.
    #[error("the device is closed: {0}")]
    DeviceClosed(String),
}

/// A device has as many protection domains as there can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{limit} protection domains are in use, which is the limit of a device; drop some")]
pub struct TooManyDomains {
    /// How many there can be, besides the device's own.
    pub limit: u16,
}

/// A device calls one hook, and has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the device has a hook already")]
pub struct HookTaken;

/// Why memory could not be taken back from peers.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DeregisterError {
    /// What the endpoint said.
    #[error(transparent)]
    Memory(#[from] pathweave_transport::MemoryError),
    /// The device is closed.
    #[error("the device is closed: {0}")]
    DeviceClosed(String),
}

/// Why waiting ended without what was waited for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WaitError {
    /// It took too long.
    #[error("nothing has come within {0:?}")]
    Timeout(Duration),
    /// The connection is over, and all its completions have been taken: nothing more comes.
    #[error("the connection is closed: {0}")]
    ConnectionClosed(CloseReason),
    /// The device is closed, or its loop has failed.
    #[error("the device is closed: {0}")]
    DeviceClosed(String),
}
