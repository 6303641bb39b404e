//! Engine of the libfabric provider, without I/O, for one endpoint and all its peers: tag matching, eager and
//! announced messages, credits, RMA and atomics.
//!
//! The engine uses no clock, socket, thread or pointer, and nothing of libfabric. The application's memory is
//! [`Buffer`]s and [`Piece`]s of them, which only the driver's [`Memory`] can read. A peer is a [`PeerId`] that the
//! driver assigns.
//!
//! # How it is driven
//!
//! After every call the driver takes all [actions](Engine::poll_action) and executes them in that order, then takes
//! all [completions](Engine::poll_completion). The engine has no timers. Calls come from four sources:
//!
//! | From | Calls |
//! |---|---|
//! | the application | [`post_send`](Engine::post_send), [`post_receive`](Engine::post_receive), [`peek`](Engine::peek), [`claim`](Engine::claim), [`cancel`](Engine::cancel), [`post_write`](Engine::post_write), [`post_read`](Engine::post_read), [`post_atomic`](Engine::post_atomic), [`open_region`](Engine::open_region), [`close_region`](Engine::close_region), [`notices_read`](Engine::notices_read) |
//! | connections | [`peer_up`](Engine::peer_up), [`peer_down`](Engine::peer_down), [`forget`](Engine::forget) |
//! | the transport | [`delivered`](Engine::delivered) for each SEND that filled a receive, in order; [`completed`](Engine::completed) for each request |
//! | the driver's clock | [`withdraw_region`](Engine::withdraw_region), if peers do not release a closed region in time |
//!
//! Obligations of the driver:
//!
//! - A connection to a peer delivers SENDs in order. A READ or SEND takes effect after all requests posted before it.
//!   A reliable queue pair does both.
//! - [`Action::PostReceives`] is executed before the next call. The peer sends only what was granted, in the order of
//!   these actions, so every message finds a receive that is large enough.
//! - The first of these actions, at [`peer_up`](Engine::peer_up), is executed before the peer's first message is
//!   accepted. The end that was dialled ([`Role`]) relies on [`FIRST_RECEIVES`] without a grant.
//! - [`Action::Disconnect`] is executed before completions are taken. After it, and before
//!   [`peer_down`](Engine::peer_down), the transport no longer accesses memory of the peer's requests.
//! - The driver copies up to [`MAX_INJECT`] bytes of a SEND's payload when it takes the action. Longer payload, and
//!   memory of READs and WRITEs, stays with the transport until [`completed`](Engine::completed).
//!
//! # How messages travel
//!
//! A message that fits the next receive that the peer has granted is eager: its payload follows its header
//! ([`Config::eager`]). Any other message is announced; the receiver READs it in chunks into the matched receive and
//! then sends FIN. A peer that holds too much unexpected payload grants receives for announcements only. Headers
//! determine the order, so short and long messages match in the order sent. Operations on a peer leave in the order
//! posted; only chunks of READs overtake them.
//!
//! # Limits
//!
//! Peers can make the engine hold [`Config::unexpected_bytes`] of payload, plus the payload granted before that limit
//! was reached, at most [`Config::pool`]. They can also make it hold [`Config::unexpected_messages`] envelopes and
//! [`Config::notices`] entries. An envelope takes at most 240 bytes, or 400 if receives that ignore tag bits have
//! searched for it. At the limit of payload the engine grants receives for announcements only, at the others it grants
//! none. All other state kept for a peer belongs to requests of this side. A message that breaks a rule costs the peer
//! its connection ([`Action::Disconnect`]).
//!
//! # Example
//!
//! ```
//! use pathweave_tagged::*;
//!
//! /// Two buffers, 0 and 1.
//! struct Buffers([Vec<u8>; 2]);
//!
//! impl Memory for Buffers {
//!     fn write(&mut self, at: Piece, bytes: &[u8]) {
//!         self.0[at.buffer.0 as usize][at.offset as usize..][..bytes.len()].copy_from_slice(bytes);
//!     }
//!     fn fetch(&mut self, from: Piece, into: &mut [u8]) {
//!         into.copy_from_slice(&self.0[from.buffer.0 as usize][from.offset as usize..][..into.len()]);
//!     }
//! #   fn copy_out(&mut self, _: Piece) -> Option<Buffer> { None }
//! #   fn release(&mut self, _: Buffer) {}
//! #   fn register(&mut self, _: Piece, _: Access, _: Option<PeerId>) -> Option<Remote> { None }
//! #   fn deregister(&mut self, _: u64) {}
//!     // And copies, and registered memory.
//! }
//!
//! let mut memory = Buffers([b"hello".to_vec(), vec![0; 5]]);
//! let [mut a, mut b] = [0, 1].map(|_| Engine::new(Config::default()));
//! let (of_a, of_b) = (PeerId(0), PeerId(1));
//!
//! let send = Send {
//!     to: of_b, label: Label::Tagged(7), payload: Piece::whole(Buffer(0), 5), data: None, context: 1,
//!     hold: BufferLifetime::UntilDone, done: DoneWhen::Transmitted, report: Report::Entry,
//! };
//! a.post_send(send, &mut memory)?;
//! assert_eq!(a.poll_action(), Some(Action::Connect { peer: of_b }));
//!
//! // The connection is made.
//! a.peer_up(of_b, Role::Initiator, &mut memory);
//! b.peer_up(of_a, Role::Acceptor, &mut memory);
//!
//! let receive = Receive {
//!     from: None, want: MatchOn::Tagged { tag: 7, ignore: 0 }, into: Piece::whole(Buffer(1), 5), take: ReceiveCount::One,
//!     report: Report::Entry, context: 2,
//! };
//! b.post_receive(receive, &mut memory)?;
//!
//! // A transport without receives, since it takes no time.
//! loop {
//!     let mut messages = vec![];
//!     for (engine, to) in [(&mut a, 1), (&mut b, 0)] {
//!         while let Some(action) = engine.poll_action() {
//!             if let Action::Send { peer, header, payload, request } = action {
//!                 let mut bytes = header.as_slice().to_vec();
//!                 if let Payload::Piece(piece) = payload {
//!                     let mut payload = vec![0; piece.len as usize];
//!                     memory.fetch(piece, &mut payload);
//!                     bytes.extend(payload);
//!                 }
//!                 messages.push((to, bytes));
//!                 engine.completed(peer, request, Ok(()), &mut memory);
//!             }
//!         }
//!     }
//!     if messages.is_empty() {
//!         break;
//!     }
//!     for (to, bytes) in messages {
//!         if to == 0 { a.delivered(of_b, &bytes, &mut memory) } else { b.delivered(of_a, &bytes, &mut memory) }
//!     }
//! }
//! let received = b.poll_completion().expect("the message has come");
//! assert_eq!((received.context, received.len, received.tag(), received.peer), (2, 5, 7, Some(of_a)));
//! assert_eq!(memory.0[1], b"hello");
//! assert_eq!(a.poll_completion().map(|sent| sent.context), Some(1));
//! # Ok::<(), PostError>(())
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod atomic;
mod config;
mod credits;
mod engine;
mod fetch;
mod header;
mod inbox;
mod incoming;
mod matching;
mod memory;
mod operations;
mod output;
mod peer;
mod pump;
mod receive;
mod region;
mod request;
mod rma;
mod send;
mod shared;
mod table;
mod wire;

pub use atomic::{AtomicForm, AtomicOp, AtomicType, apply};
pub use config::{Config, FIRST_RECEIVES, MAX_ATOMIC_BYTES, MAX_INJECT, MAX_MESSAGE, MOST_RECEIVES};
pub use engine::Engine;
pub use header::Header;
pub use memory::{Access, Buffer, Memory, PeerId, Piece, Remote};
pub use output::{Action, Completion, Failure, Fault, Kind, Payload, Release, RequestId};
pub use peer::Role;
pub use region::{Region, RegionEvents, RegionId};
pub use request::{
    Atomic, BufferLifetime, Claim, DoneWhen, Fetch, Found, Label, MatchOn, Peek, PostError, Read, Receive,
    ReceiveCount, Report, Segment, Segments, Send, Write,
};
pub use wire::VERSION as WIRE_VERSION;
