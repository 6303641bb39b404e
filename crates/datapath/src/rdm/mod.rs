//! Reliable datagrams (ERD) on real hosts: one endpoint, any number of peers, no connection to any of them.
//!
//! ```
//! use pathweave_datapath::{Region, rdm::{RdmConfig, RdmEndpoint}};
//! use std::time::Duration;
//!
//! let server = RdmEndpoint::open(RdmConfig::loopback())?;
//! let client = RdmEndpoint::open(RdmConfig::loopback())?;
//!
//! // The server takes a message of anybody.
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
//! // It is done when the server has all of it.
//! assert_eq!(client.wait(Duration::from_secs(5))?.result(), Ok(11));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What goes where
//!
//! Datagrams carry data, on as many paths as the endpoint has source ports, without acknowledgements. What is
//! missing and what is whole is said on a TCP connection, which is made when there is something to say and closed when
//! there has been nothing for a while. Both are protected with keys from one handshake for each two endpoints, that of
//! connections. The protocol itself is [`pathweave_transport::rd`], the very code that simulations run.
//!
//! Each destination has a rate of its own (DCQCN's reaction point): the receiver tells the sender of packets that switches
//! have marked, and the sender slows down for that receiver alone. The published mechanism has no congestion control;
//! the scheme `erd-uncontrolled` is like it and sends as fast as `line_rate` says.
//!
//! A peer whose process is gone or hangs is found out by its silence and given up. One with which nothing is under way is
//! forgotten when it says that it closes, after [`RdmConfig::peer_idle`], or when others need its place; both ends agree on
//! that, so that no message is lost with it. The names of peers have their addresses in them and outlive that: who is spoken
//! to again is met again.

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

/// A peer's share of maps that are half empty, and of lists of what is waiting and batches to be sent, which stay as long
/// as they were once.
const BYTES_IN_LISTS: usize = 320;

/// Bytes of a peer, all parts together.
const BYTES_A_PEER: usize = BYTES_IN_LISTS
    + address_vector::BYTES_A_PEER
    + remote::BYTES_A_PEER
    + inbox::BYTES_A_SOURCE
    + pathweave_transport::rd::RdQp::<pathweave_policy::AnyPolicy>::bytes_a_peer(true);
