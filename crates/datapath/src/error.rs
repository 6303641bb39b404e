//! Error types of the application interface.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use pathweave_transport::MAX_MESSAGE_BYTES;
use thiserror::Error;

use crate::config::ConfigError;
use crate::secure::{HandshakeError, Refusal};
use crate::state::CloseReason;

/// Reason why a device could not be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Another socket uses the port.
    #[error("{address} is in use by another socket; choose another port, or 0 for any that is free")]
    PortInUse {
        /// Requested address.
        address: SocketAddr,
    },
    /// The process lacks the privilege.
    #[error("no permission to bind {address}; ports below 1024 need privileges (CAP_NET_BIND_SERVICE)")]
    Permission {
        /// Requested address.
        address: SocketAddr,
    },
    /// No interface has the address.
    #[error("{address} is not an address of this machine")]
    NotLocal {
        /// Requested address.
        address: SocketAddr,
    },
    /// The loop's thread cannot be pinned to the requested core.
    #[error("the loop cannot be put on core {core}: {source}")]
    Core {
        /// Requested core.
        core: usize,
        /// Error of the system.
        source: io::Error,
    },
    /// Any other error of the system.
    #[error("{address}: {source}")]
    System {
        /// Address concerned.
        address: SocketAddr,
        /// Error of the system.
        source: io::Error,
    },
}

impl OpenError {
    /// Converts an error of the system about a socket at `address`.
    pub fn of_socket(address: SocketAddr, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::AddrInUse => OpenError::PortInUse { address },
            io::ErrorKind::PermissionDenied => OpenError::Permission { address },
            io::ErrorKind::AddrNotAvailable => OpenError::NotLocal { address },
            _ => OpenError::System { address, source },
        }
    }
}

/// Reason why a connection could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The protection domain belongs to another device.
    #[error("the protection domain is not one of this device's")]
    OtherDevice,
    /// This end has given up the attempt, or nobody was left to take the connection.
    #[error("this end has given up the attempt")]
    GivenUp,
    /// No answer arrived.
    #[error(
        "{peer} has not answered within {timeout:?}: no process listens there, a firewall drops UDP, or the \
         cluster keys differ"
    )]
    Unreachable {
        /// Address of the peer.
        peer: SocketAddr,
        /// Configured timeout.
        timeout: Duration,
    },
    /// The system has no route, or the peer's system reports that no socket listens.
    #[error("{peer} cannot be reached: {reason}")]
    NoRoute {
        /// Address of the peer.
        peer: SocketAddr,
        /// Error of the system.
        reason: String,
    },
    /// The peer refused the connection.
    #[error("{peer} refuses the connection: {reason}")]
    Refused {
        /// Address of the peer.
        peer: SocketAddr,
        /// Reason of the peer.
        reason: Refusal,
    },
    /// The peer has no listener.
    #[error("{peer} accepts no connections: no process listens there")]
    NobodyListens {
        /// Address of the peer.
        peer: SocketAddr,
    },
    /// The cluster keys of the two ends differ.
    #[error("{peer}: {reason}")]
    WrongKey {
        /// Address of the peer.
        peer: SocketAddr,
        /// Finding of the handshake.
        reason: String,
    },
    /// The peer supports other protocol versions.
    #[error("{peer} supports versions {theirs:?} of the protocol, this end {ours:?}")]
    Version {
        /// Address of the peer.
        peer: SocketAddr,
        /// Versions that the peer supports.
        theirs: Vec<u8>,
        /// Versions that this end supports.
        ours: Vec<u8>,
    },
    /// The link to the peer is too small for full packets.
    #[error(
        "the link to {peer} takes packets of {link_mtu} bytes, payloads of {mtu_payload} need {needed}; set mtu_payload lower"
    )]
    LinkMtu {
        /// Address of the peer.
        peer: SocketAddr,
        /// MTU of this machine's link to the peer in bytes, IP header included.
        link_mtu: usize,
        /// Length of full packets, in bytes.
        needed: usize,
        /// Payload of full packets, in bytes.
        mtu_payload: u16,
    },
    /// The peer has another address family than the device.
    #[error("{peer} is of another address family than the device's {local}")]
    Family {
        /// Address of the peer.
        peer: SocketAddr,
        /// Address of the device.
        local: SocketAddr,
    },
    /// A connection limit of the device is reached.
    #[error("the device has {limit} connections, its limit")]
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// The handshake could not begin with these parameters.
    #[error("the connection cannot be described: {0}")]
    Hello(String),
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The device is closed, or its loop has failed.
    #[error("the device is closed: {0}")]
    DeviceClosed(String),
}

impl ConnectError {
    /// Converts a handshake failure to the application's error.
    pub(crate) fn of_handshake(peer: SocketAddr, timeout: Duration, error: HandshakeError) -> Self {
        match error {
            HandshakeError::NoAnswer { .. } | HandshakeError::AddressNotAccepted { .. } => {
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

/// Reason why a request was not posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PostError {
    /// The queue is full; take completions first.
    #[error("{limit} requests are outstanding, the agreed limit; poll completions first")]
    Full {
        /// Largest number of outstanding requests.
        limit: u32,
    },
    /// The connection has ended.
    #[error("the connection is closed")]
    Closed,
    /// The peer's memory range exceeds the address space.
    #[error("{len} bytes at address {address:#x} of the peer end beyond the address space")]
    Address {
        /// Requested address.
        address: u64,
        /// Length from there on, in bytes.
        len: u64,
    },
    /// The message is too long.
    #[error("a message of {len} bytes; at most {MAX_MESSAGE_BYTES} are allowed")]
    TooLong {
        /// Length of the message, in bytes.
        len: u64,
    },
}

/// Reason why memory was not registered.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// The protection domain belongs to another device.
    #[error("the protection domain is not one of this device's")]
    OtherDevice,
    /// The region was for one connection only, which has ended.
    #[error("the connection is closed")]
    ConnectionClosed,
    /// The system has no random bytes for the key.
    #[error(transparent)]
    Random(#[from] crate::secure::RandomError),
    /// The endpoint refused the region.
    #[error(transparent)]
    Memory(#[from] pathweave_transport::MemoryError),
    /// The device is closed.
    #[error("the device is closed: {0}")]
    DeviceClosed(String),
}

/// All protection domains of a device are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{limit} protection domains are in use, which is the limit of a device; drop some")]
pub struct TooManyDomains {
    /// Largest number of domains, besides the device's own.
    pub limit: u16,
}

/// The device already has a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the device has a hook already")]
pub struct HookTaken;

/// Reason why a region was not closed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DeregisterError {
    /// The endpoint refused to close it.
    #[error(transparent)]
    Memory(#[from] pathweave_transport::MemoryError),
    /// The device is closed.
    #[error("the device is closed: {0}")]
    DeviceClosed(String),
}

/// Reason why a wait ended without a result.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WaitError {
    /// The timeout has expired.
    #[error("no event arrived within {0:?}")]
    Timeout(Duration),
    /// The connection has ended, and all its completions have been taken.
    #[error("the connection is closed: {0}")]
    ConnectionClosed(CloseReason),
    /// The device is closed, or its loop has failed.
    #[error("the device is closed: {0}")]
    DeviceClosed(String),
}
