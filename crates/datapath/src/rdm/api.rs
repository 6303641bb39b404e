//! What an application uses.

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

/// Messages of an endpoint that may be under way or not taken out, and as many receives.
const QUEUE_DEPTH: u32 = 1 << 20;

/// A reliable datagram endpoint: messages to and from any number of peers, over one set of sockets, in the manner of
/// libfabric's `FI_EP_RDM`.
///
/// Peers are named by address ([`insert`](RdmEndpoint::insert)); keys are agreed on with each when the first message
/// goes there, or comes from there. A message arrives whole and once, in the receive that its place among its source's
/// messages gives it: receives are taken in the order in which they were posted, those for one peer before those for
/// any. A request's memory belongs to the network until its completion. Methods may be called from any thread. The
/// endpoint closes when it is dropped, and completes nothing after that; wait for the completions of what matters first.
///
/// Bytes of a peer, while nothing is on the way: [`RdmEndpoint::BYTES_A_PEER`], whatever the number of paths.
pub struct RdmEndpoint {
    shared: Arc<EndpointShared>,
    rooms: Arc<Rooms>,
    addresses: Arc<AddressVector>,
    driver: Driver,
    local: SocketAddr,
    /// Bytes of the longest message.
    most_message_bytes: u64,
}

impl RdmEndpoint {
    /// Bytes an endpoint keeps for each peer while nothing is missing or on the way: the two halves of its flow, keys
    /// and replay windows of two sequences of packets, and its places in tables. What cryptography allocates by itself
    /// is not counted.
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

    /// Opens an endpoint over whatever carries packets; the side channel is TCP all the same.
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
        let most_message_bytes = engine.core.rd.most_message_bytes();
        let engine: Box<dyn Drive> = Box::new(engine);
        let driver = Driver::start(engine, &shared, local, driving, waiting)?;
        Ok(RdmEndpoint { shared, rooms, addresses, driver, local, most_message_bytes })
    }

    /// Where peers reach it.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Makes a peer known, if it is not. Nothing is sent. Where there are as many as there may be, one that is idle makes
    /// room for it.
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

    /// Peers it knows; `None` once its loop has ended.
    pub fn peers(&self) -> Option<Vec<RdmPeer>> {
        let answer = Arc::new(Mutex::new(None));
        self.answer(Command::Peers { answer: answer.clone() }, &answer).ok()
    }

    /// Forgets a peer: messages to it, and receives for it alone, complete as flushed. If it speaks again, or its name is
    /// used again, it is known again.
    pub fn remove(&self, peer: Peer) {
        if let Some(peer) = self.addresses.get(peer) {
            let answer = Arc::new(Mutex::new(None));
            let _ = self.answer(Command::Remove { peer, answer: answer.clone() }, &answer);
        }
    }

    /// Agrees on keys with a peer, if there are none, so that what is wrong is known before a message is sent.
    ///
    /// # Errors
    /// [`ConnectError`], at the latest after the configured `connect_timeout`.
    pub fn reach(&self, peer: Peer) -> Result<(), ConnectError> {
        let peer = self.entry(peer).map_err(|error| ConnectError::Hello(error.to_string()))?;
        let answer = Arc::new(Mutex::new(None));
        let command = Command::Reach { peer, answer: answer.clone() };
        self.answer(command, &answer).map_err(ConnectError::DeviceClosed)?
    }

    /// Bytes of the longest message: 4 GiB, or with an `mtu_payload` of less than 512 bytes as many as 2^23 packets carry.
    pub fn most_message_bytes(&self) -> u64 {
        self.most_message_bytes
    }

    /// SEND: the bytes go to a receive of the peer. Where there is neither a receive nor room, the message waits here,
    /// with those posted after it for this peer, until there is, or the peer is given up; waiting is no error.
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

    /// RECV: room for one message of any peer.
    ///
    /// # Errors
    /// [`RdmPostError`]; nothing was posted then.
    pub fn recv(&self, wr_id: u64, into: Slice) -> Result<(), RdmPostError> {
        self.receive(None, wr_id, into)
    }

    /// RECV: room for one message of this peer. A peer is known by its address: what a process there has sent without
    /// a receive comes before what its successor sends.
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

    /// The next completion, if there is one.
    pub fn poll(&self) -> Option<RdmCompletion> {
        if let Some(completion) = self.take() {
            return Some(completion);
        }
        self.progress();
        self.take()
    }

    /// The next completion, if there is one, without turning the loop: for [`wait_until`](RdmEndpoint::wait_until).
    pub fn take(&self) -> Option<RdmCompletion> {
        let completion = self.shared.handed.pop()?;
        let room = match completion.opcode {
            Opcode::Send => &self.rooms.sends,
            _ => &self.rooms.receives,
        };
        room.give_back();
        Some(completion)
    }

    /// The next completion, waiting for it.
    ///
    /// # Errors
    /// [`WaitError`] when none has come within `timeout`, or the endpoint has failed.
    pub fn wait(&self, timeout: Duration) -> Result<RdmCompletion, WaitError> {
        self.wait_until(timeout, || self.take())?.ok_or(WaitError::Timeout(timeout))
    }

    /// Waits until `ready` gives something; `None` after `timeout`. It is asked whenever something may have happened, and
    /// may only look, with [`take`](RdmEndpoint::take).
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

    /// Turns the loop once, where callers do ([`Driving::Caller`](crate::Driving)).
    pub fn progress(&self) {
        let _ = self.driver.nudge(&self.shared);
    }

    /// What it has counted; `None` once its loop has ended.
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
