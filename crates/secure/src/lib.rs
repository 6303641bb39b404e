//! Handshake, keys and packet protection as state machines without I/O: their input is bytes and the current time,
//! their output is bytes. They use no sockets and no clock. Random bytes come from a [`SecureRandom`] that the caller
//! passes.
//!
//! # Parts
//!
//! - [`ClusterKey`]: the secret that all hosts of a cluster share, and its file.
//! - [`Initiator`]: requests one connection. [`Responder`]: answers all requests.
//! - [`Hello`]: an end's description of itself. [`ConnectionParams`]: the parameters that result from two hellos.
//! - [`Session`]: seals and opens the packets of one connection, and rotates their keys.
//! - [`Admission`]: limits on connections, in total and for each peer.
//!
//! `docs/security.md` describes the threats they protect against, `docs/wire.md` the wire format.
//!
//! # Use in an event loop
//!
//! [`recipient_of`] returns the recipient of each datagram that arrives:
//!
//! | kind | recipient |
//! |---|---|
//! | [`Recipient::ToResponder`] | [`Responder::handle`] |
//! | [`Recipient::ToInitiator`] | [`Initiator::handle`] of that attempt; dropped if there is none |
//! | [`Recipient::Protected`] | [`Session::open`] of that session; if there is none, [`Responder::on_protected`] |
//! | [`Recipient::Plain`] | an insecure session, found by queue pair; never a session with protection |
//! | [`Recipient::Unknown`] | dropped |
//!
//! After each call of an initiator or a responder, drain `poll_transmit` and `poll_event`. `poll_timeout` returns the
//! time for the next `on_timer`. The loop chooses a [`SessionId`] for its end of each connection, unique among its
//! own sessions.
//!
//! # Example
//!
//! ```
//! use pathweave_secure::*;
//! use pathweave_units::{HostId, PathId, QpNum, Time};
//!
//! let hello = |host, qp, session| Hello {
//!     protection: Protection::Encrypt,
//!     transport: TransportType::Rc,
//!     scheme: "udmp".into(),
//!     mtu_payload: 4_096,
//!     paths: 8,
//!     nic_ports: 1,
//!     host: HostId(host),
//!     qp: QpNum(qp),
//!     session: SessionId(session),
//!     features: Features::NONE,
//!     required: Features::NONE,
//!     private_data: vec![],
//!     addresses: vec![],
//! };
//! let now = Time::from_us(1);
//! let key = ClusterKey::generate(&mut OsRandom)?;
//! let client = "10.0.0.1:40000".parse()?;
//!
//! let mut responder = Responder::new(key.clone(), ResponderConfig::default(), Box::new(OsRandom))?;
//! let mut initiator = Initiator::new(
//!     now,
//!     &key,
//!     hello(1, 17, 100),
//!     HandshakeConfig::default(),
//!     Rotation::default(),
//!     &mut OsRandom,
//! )?;
//!
//! let (mut near, mut far) = (None, None);
//! while near.is_none() || far.is_none() {
//!     while let Some(datagram) = initiator.poll_transmit() {
//!         assert_eq!(recipient_of(&datagram), Recipient::ToResponder);
//!         responder.handle(now, client, &datagram);
//!     }
//!     while let Some(event) = responder.poll_event() {
//!         match event {
//!             ResponderEvent::Request { id, .. } => responder.accept(now, id, hello(2, 23, 200))?,
//!             ResponderEvent::Established { established, .. } => far = Some(established),
//!             ResponderEvent::Abandoned { .. } => unreachable!("nothing was lost"),
//!         }
//!     }
//!     while let Some((_, datagram)) = responder.poll_transmit() {
//!         assert_eq!(recipient_of(&datagram), Recipient::ToInitiator(initiator.attempt()));
//!         initiator.handle(now, &datagram);
//!     }
//!     match initiator.poll_event() {
//!         Some(InitiatorEvent::Established(established)) => near = Some(established),
//!         Some(InitiatorEvent::Failed(error)) => return Err(error.into()),
//!         None => {}
//!     }
//! }
//! let (mut near, mut far) = (near.unwrap(), far.unwrap());
//! assert_eq!(near.agreed, far.agreed);
//! assert_eq!((near.peer.qp, far.peer.qp), (QpNum(23), QpNum(17)));
//!
//! // A few packets, each way.
//! for n in 0..8 {
//!     let packet = [n; 1_000];
//!     let mut frame = vec![0; packet.len() + near.session.overhead()];
//!     let start = near.session.header_len();
//!     frame[start..start + packet.len()].copy_from_slice(&packet);
//!     near.session.seal(PathId(n.into()), &mut frame)?;
//!     assert_eq!(recipient_of(&frame), Recipient::Protected(SessionId(200)));
//!
//!     let opened = far.session.open(now, &mut frame)?;
//!     assert_eq!(opened.path, Some(PathId(n.into())));
//!     assert_eq!(frame[opened.body], packet);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod addresses;
mod admission;
mod cookie;
mod hello;
mod initiator;
mod key;
mod key_schedule;
mod layout;
mod message;
mod negotiate;
mod noise;
mod outcome;
mod protection;
mod random;
mod responder;
mod session;
mod timing;
mod window;

#[cfg(test)]
mod doc_test;
#[cfg(test)]
mod tests;

pub use addresses::MAX_ADDRESSES;
pub use admission::{Admission, Limits};
pub use hello::{
    Features, Hello, HelloError, MAX_NIC_PORTS, MAX_PATHS, MAX_PRIVATE_DATA_LEN, MAX_SCHEME_LEN, SessionId,
    TransportType,
};
pub use initiator::{Initiator, InitiatorEvent};
pub use key::{CLUSTER_KEY_LEN, ClusterKey, KeyError, KeyFormatError};
pub use message::{AttemptId, Recipient, recipient_of};
pub use negotiate::{ConnectionParams, Refusal};
pub use outcome::{Established, HandshakeError, KeyDifference, SetupError};
pub use protection::{Protection, UnknownProtection};
pub use random::{OsRandom, RandomError, SecureRandom};
pub use responder::{AcceptError, RequestId, Responder, ResponderConfig, ResponderCounters, ResponderEvent};
pub use session::BYTES_A_SEQUENCE;
pub use session::{
    CrcSecrets, MAX_BYTES_PER_KEY, MAX_PACKETS_PER_KEY, OpenError, Opened, Rotation, SealError, Session,
    SessionCounters, header_len, overhead,
};
pub use timing::HandshakeConfig;
pub use window::REPLAY_WINDOW;
