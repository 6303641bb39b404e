//! Application interface of reliable datagrams.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pathweave_transport::Opcode;

use super::address_vector::{AddressVector, Peer, PeerEntry};
use super::config::RdmConfig;
use super::engine;
use super::error::{PeerError, RdmPostError};
use super::shared::{Command, EndpointShared, RdmCompletion, Rooms};
use super::stats::{RdmPeer, RdmStats};
use crate::api::driver::Driver;
use crate::backend::{Backend, UdpBackend};
use crate::error::{ConnectError, OpenError, WaitError};
use crate::event_loop::Drive;
use crate::region::Slice;
use crate::shared::{Answer, Room};

/// Largest number of messages of an endpoint that are outstanding or whose completions have not been taken; the same
/// for receives.
const QUEUE_DEPTH: u32 = 1 << 20;

/// A reliable datagram endpoint: messages to and from any number of peers over one set of sockets, similar to
/// libfabric's `FI_EP_RDM`.
///
/// Peers are named by address ([`insert`](RdmEndpoint::insert)). Keys are negotiated with each peer when the first
/// message goes to it or comes from it. A message is delivered exactly once, into the receive that corresponds to its
/// position among its source's messages. Receives are taken in the order of posting, those for one peer before those
/// for any. A request's memory belongs to the network until its completion. Methods may be called from any thread.
/// The endpoint closes when it is dropped, and completes nothing after that. Wait for the completions you need before
/// you drop it.
///
/// State of an idle peer, in bytes: [`RdmEndpoint::BYTES_A_PEER`], whatever the number of paths.
pub struct RdmEndpoint {
    shared: Arc<EndpointShared>,
    rooms: Arc<Rooms>,
    addresses: Arc<AddressVector>,
    driver: Driver,
    local: SocketAddr,
    side_channel: SocketAddr,
    /// Largest length of a message, in bytes.
    most_message_bytes: u64,
}

impl RdmEndpoint {
    /// Bytes of state for each idle peer: both halves of its flow, keys and replay windows of two packet number
    /// sequences, and its slots in tables. Memory that the cryptography library allocates is not counted.
    pub const BYTES_A_PEER: usize = super::BYTES_A_PEER;

    /// Opens an endpoint over UDP sockets, with a TCP port for the side channel.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(config: RdmConfig) -> Result<Self, OpenError> {
        config.validate()?;
        let backend = UdpBackend::open(&config.device.udp())
            .map_err(|(address, error)| OpenError::of_socket(address, error))?;
        RdmEndpoint::start(config, backend)
    }

    /// Opens an endpoint over another backend. The side channel still uses TCP.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn with_backend(config: RdmConfig, backend: impl Backend + 'static) -> Result<Self, OpenError> {
        config.validate()?;
        RdmEndpoint::start(config, backend)
    }

    fn start(mut config: RdmConfig, backend: impl Backend + 'static) -> Result<Self, OpenError> {
        let local = backend.local_addr();
        config.device.paths = config.device.paths.min(backend.paths());
        let (driving, waiting) = (config.device.driving, config.device.waiting);
        let shared = Arc::new(EndpointShared::new(backend.waker()));
        let rooms = Arc::new(Rooms { sends: Room::new(QUEUE_DEPTH), receives: Room::new(QUEUE_DEPTH) });
        let addresses = Arc::new(AddressVector::new(local, config.max_peers));
        let engine = engine::open(config, backend, shared.clone(), addresses.clone())?;
        let side_channel = SocketAddr::new(local.ip(), engine.core.lines.port());
        let most_message_bytes = engine.core.rd.most_message_bytes();
        let engine: Box<dyn Drive> = Box::new(engine);
        let driver = Driver::start(engine, &shared, local, driving, waiting)?;
        Ok(RdmEndpoint { shared, rooms, addresses, driver, local, side_channel, most_message_bytes })
    }

    /// Returns the address at which peers reach the endpoint.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Returns the TCP address of the side channel. Its port differs from that of [`local_addr`](Self::local_addr) if
    /// another process had that TCP port; peers learn it in the handshake.
    pub fn side_channel_addr(&self) -> SocketAddr {
        self.side_channel
    }

    /// Inserts a peer, if it is not known. Sends nothing. If the limit of peers is reached, an idle one makes room.
    ///
    /// # Errors
    /// [`PeerError`].
    pub fn insert(&self, address: SocketAddr) -> Result<Peer, PeerError> {
        self.meet(address).map(|entry| entry.peer)
    }

    fn meet(&self, address: SocketAddr) -> Result<Arc<PeerEntry>, PeerError> {
        let full = match self.addresses.insert(address) {
            Err(full @ PeerError::TooMany { .. }) => full,
            other => return other,
        };
        let answer = Arc::new(Mutex::new(None));
        match self.answer(Command::MakeRoom { answer: answer.clone() }, &answer) {
            Ok(true) => self.addresses.insert(address),
            Ok(false) | Err(_) => Err(full),
        }
    }

    /// Returns the known peers; `None` once the loop has ended.
    pub fn peers(&self) -> Option<Vec<RdmPeer>> {
        let answer = Arc::new(Mutex::new(None));
        self.answer(Command::Peers { answer: answer.clone() }, &answer).ok()
    }

    /// Removes a peer: messages to it, and receives for it alone, complete as flushed. If it sends again, or its name
    /// is used again, it is known again.
    pub fn remove(&self, peer: Peer) {
        if let Some(peer) = self.addresses.get(peer) {
            let answer = Arc::new(Mutex::new(None));
            let _ = self.answer(Command::Remove { peer, answer: answer.clone() }, &answer);
        }
    }

    /// Negotiates keys with a peer, if there are none, so that errors show before a message is sent.
    ///
    /// # Errors
    /// [`ConnectError`], at the latest after the configured `connect_timeout`.
    pub fn reach(&self, peer: Peer) -> Result<(), ConnectError> {
        let peer = self.entry(peer).map_err(|error| ConnectError::Hello(error.to_string()))?;
        let answer = Arc::new(Mutex::new(None));
        let command = Command::Reach { peer, answer: answer.clone() };
        self.answer(command, &answer).map_err(ConnectError::DeviceClosed)?
    }

    /// Returns the largest length of a message in bytes: 4 GiB, or the payload of 2^23 packets if `mtu_payload` is
    /// less than 512 bytes.
    pub fn most_message_bytes(&self) -> u64 {
        self.most_message_bytes
    }

    /// SEND: transfers the bytes into a receive of the peer. If the peer has neither a receive nor room, the message
    /// waits here, with those posted after it for this peer, until there is one or the peer is given up. Waiting is
    /// not an error.
    ///
    /// # Errors
    /// [`RdmPostError`]; nothing was posted then.
    pub fn send(&self, wr_id: u64, to: Peer, from: Slice) -> Result<(), RdmPostError> {
        let (len, most) = (from.len() as u64, self.most_message_bytes);
        if len == 0 || len > most {
            return Err(RdmPostError::Length { len, most });
        }
        let to = self.entry(to)?;
        if to.room.take().is_err() {
            return Err(RdmPostError::Outstanding { peer: to.peer, limit: to.room.most() });
        }
        if self.rooms.sends.take().is_err() {
            to.room.give_back();
            return Err(RdmPostError::Full { limit: self.rooms.sends.most() });
        }
        self.ask(Command::Send { to, wr_id, memory: from });
        Ok(())
    }

    /// RECV: posts a receive for one message of any peer.
    ///
    /// # Errors
    /// [`RdmPostError`]; nothing was posted then.
    pub fn recv(&self, wr_id: u64, into: Slice) -> Result<(), RdmPostError> {
        self.receive(None, wr_id, into)
    }

    /// RECV: posts a receive for one message of this peer. A peer is identified by its address: stored messages of an
    /// earlier process there come before those of its successor.
    ///
    /// # Errors
    /// [`RdmPostError`]; nothing was posted then.
    pub fn recv_from(&self, peer: Peer, wr_id: u64, into: Slice) -> Result<(), RdmPostError> {
        self.receive(Some(self.entry(peer)?), wr_id, into)
    }

    fn receive(&self, from: Option<Arc<PeerEntry>>, wr_id: u64, memory: Slice) -> Result<(), RdmPostError> {
        if self.rooms.receives.take().is_err() {
            return Err(RdmPostError::Full { limit: self.rooms.receives.most() });
        }
        self.ask(Command::Receive { from, wr_id, memory });
        Ok(())
    }

    fn entry(&self, peer: Peer) -> Result<Arc<PeerEntry>, RdmPostError> {
        let known = self.addresses.get(peer);
        known.map_or_else(|| self.meet(peer.address()).map_err(|why| RdmPostError::Peer { peer, why }), Ok)
    }

    /// Returns the next completion, if there is one. Drives the loop if callers do so.
    pub fn poll(&self) -> Option<RdmCompletion> {
        if let Some(completion) = self.take() {
            return Some(completion);
        }
        self.progress();
        self.take()
    }

    /// Returns the next completion, if there is one, without driving the loop: for use in
    /// [`wait_until`](RdmEndpoint::wait_until).
    pub fn take(&self) -> Option<RdmCompletion> {
        let completion = self.shared.handed.pop()?;
        let room = match completion.opcode {
            Opcode::Send => &self.rooms.sends,
            _ => &self.rooms.receives,
        };
        room.give_back();
        Some(completion)
    }

    /// Waits for the next completion and returns it.
    ///
    /// # Errors
    /// [`WaitError`] if none has come within `timeout`, or if the endpoint has failed.
    pub fn wait(&self, timeout: Duration) -> Result<RdmCompletion, WaitError> {
        self.wait_until(timeout, || self.take())?.ok_or(WaitError::Timeout(timeout))
    }

    /// Waits until `ready` returns a value; returns `None` after `timeout`. `ready` is called whenever something may
    /// have happened. It may only look for completions, with [`take`](RdmEndpoint::take).
    ///
    /// # Errors
    /// [`WaitError::DeviceClosed`].
    pub fn wait_until<T>(
        &self,
        timeout: Duration,
        ready: impl FnMut() -> Option<T>,
    ) -> Result<Option<T>, WaitError> {
        let deadline = Instant::now().checked_add(timeout);
        self.driver.wait(&self.shared, deadline, ready).map_err(WaitError::DeviceClosed)
    }

    /// Drives the loop once, if callers drive it ([`Driving::Caller`](crate::Driving)).
    pub fn progress(&self) {
        let _ = self.driver.drive_once(&self.shared);
    }

    /// Returns the endpoint's statistics; `None` once the loop has ended.
    pub fn stats(&self) -> Option<RdmStats> {
        let answer = Arc::new(Mutex::new(None));
        self.answer(Command::Stats { answer: answer.clone() }, &answer).ok()
    }

    fn ask(&self, command: Command) {
        self.driver.ask(&self.shared, command);
    }

    fn answer<T>(&self, command: Command, answer: &Answer<T>) -> Result<T, String> {
        self.driver.answer(&self.shared, command, answer)
    }
}

impl Drop for RdmEndpoint {
    fn drop(&mut self) {
        self.shared.ask(Command::Stop);
        self.driver.stop(&self.shared);
    }
}

impl fmt::Debug for RdmEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RdmEndpoint").field("local_addr", &self.local).finish_non_exhaustive()
    }
}
