//! Reliable datagrams (ERD) on real hosts: one endpoint for any number of peers, without connections.
//!
//! ```
//! use pathweave_datapath::{Region, rdm::{RdmConfig, RdmEndpoint}};
//! use std::time::Duration;
//!
//! let server = RdmEndpoint::open(RdmConfig::loopback())?;
//! let client = RdmEndpoint::open(RdmConfig::loopback())?;
//!
//! // The server receives a message from any peer.
//! let room = Region::zeroed(1_000)?;
//! server.recv(7, room.all())?;
//! let to = client.insert(server.local_addr())?;
//! client.send(1, to, Region::from_bytes(b"hello world")?.all())?;
//!
//! let arrived = server.wait(Duration::from_secs(5))?;
//! assert_eq!((arrived.wr_id, arrived.result()), (7, Ok(11)));
//! assert_eq!(room.to_vec(0..11)?, b"hello world");
//! let from = arrived.peer.expect("a message has a sender");
//! assert_eq!(from.address(), client.local_addr());
//!
//! // The send completes when the server has all of it.
//! assert_eq!(client.wait(Duration::from_secs(5))?.result(), Ok(11));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Protocol
//!
//! Datagrams carry data, on as many paths as the endpoint has source ports, without acknowledgements. Reports of
//! missing packets and complete messages travel on a TCP connection, the side channel. It is opened when there is
//! something to report, and closed when it has been idle for a while. Both are protected with keys from one handshake
//! for each pair of endpoints, the same handshake as for connections. The protocol itself is
//! [`pathweave_transport::rd`], the same code that simulations run.
//!
//! Each destination has its own rate (DCQCN's reaction point): the receiver informs the sender of packets that
//! switches have marked, and the sender slows down for that receiver alone. The published mechanism has no congestion
//! control. The scheme `erd-uncontrolled` follows it and sends at `line_rate`.
//!
//! A peer whose process has died or hangs is detected by its silence, and given up. An idle peer is forgotten when it
//! announces its end, after [`RdmConfig::peer_idle`], or when others need its slot. Both ends agree on that, so that
//! no message is lost. A [`Peer`] contains the peer's address and stays valid: using it again establishes a new
//! association.

mod address_vector;
mod api;
mod config;
#[cfg(test)]
mod contain_test;
mod engine;
mod epoch;
mod error;
mod handshake;
mod handshakes;
mod inbound;
mod inbox;
mod peers;
mod queue_pair;
mod remote;
mod requests;
mod shared;
mod side;
mod stats;
pub mod stream;
mod tcp;
mod transmit;

pub use address_vector::Peer;
pub use api::RdmEndpoint;
pub use config::RdmConfig;
pub use error::{PeerError, RdmPostError};
pub use pathweave_policy::Delivery;
pub use pathweave_transport::rd::{RdCounters, ScanOverhead};
pub use shared::RdmCompletion;
pub use stats::{RdmPath, RdmPeer, RdmPeerState, RdmStats, SideStats};

/// Bytes that a peer keeps in hash maps that are half empty, and in waiting lists and send batches, which keep their
/// capacity.
const BYTES_IN_LISTS: usize = 320;

/// Total bytes of state of a peer.
const BYTES_A_PEER: usize = BYTES_IN_LISTS
    + address_vector::BYTES_A_PEER
    + remote::BYTES_A_PEER
    + inbox::BYTES_A_SOURCE
    + pathweave_transport::rd::RdQp::<pathweave_policy::AnyPolicy>::bytes_a_peer(true);
