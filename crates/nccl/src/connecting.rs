//! Listeners, and connections that are being opened.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pathweave_datapath::secure::Refusal;
use pathweave_datapath::{ConnectError, Connection};

use crate::abi::{Fault, HANDLE_BYTES};
use crate::comm::Comm;
use crate::guard::{Outcome, lock, warn};
use crate::handle::{self, Cookie, Handle};
use crate::lane::Lane;

/// Time before a peer that has too many half-open connections is asked again; doubled each time, up to the second.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// A listener: receives connections that ask for its cookie.
pub(crate) struct Listener {
    lane: Arc<Lane>,
    cookie: Cookie,
    /// Connections that NCCL has not accepted.
    queue: Mutex<VecDeque<Arc<Comm>>>,
}

/// An attempt to connect.
pub(crate) struct Dial {
    handle: Handle,
    until: Instant,
    pause: Duration,
    state: DialState,
}

enum DialState {
    Waiting,
    /// The peer was busy, and is asked again then.
    Paused(Instant),
    Open(Arc<Comm>),
    Failed(Fault),
}

/// Returns a number that a stranger does not guess. The hasher's keys are random; the cluster's key protects the
/// connection itself.
fn new_cookie() -> Cookie {
    let mut cookie = [0; 16];
    for half in cookie.chunks_mut(8) {
        half.copy_from_slice(&RandomState::new().hash_one(std::process::id()).to_le_bytes());
    }
    cookie
}

impl Listener {
    /// Starts to listen; writes the handle for the peer.
    pub(crate) fn open(lane: &Arc<Lane>, bytes: &mut [u8; HANDLE_BYTES]) -> Arc<Self> {
        let (lane, cookie) = (lane.clone(), new_cookie());
        *bytes = Handle { cookie, addresses: lane.device.addresses().to_vec() }.encode();
        let listener = Arc::new(Listener { lane, cookie, queue: Mutex::default() });
        lock(&listener.lane.table).listeners.insert(cookie, listener.clone());
        listener
    }

    /// Returns the next connection, if there is one. One that the peer has closed already is one, too: the peer may have
    /// done all that it wanted, and waits for no answer.
    pub(crate) fn accept(&self) -> Option<Arc<Comm>> {
        self.lane.turn();
        lock(&self.queue).pop_front()
    }

    /// Ends the listener and the connections that nobody has accepted.
    pub(crate) fn close(&self) {
        lock(&self.lane.table).listeners.remove(&self.cookie);
        let left: Vec<_> = lock(&self.queue).drain(..).collect();
        left.iter().for_each(|comm| self.lane.close(comm));
    }
}

impl Dial {
    /// Creates an attempt that may last so long.
    pub(crate) fn new(handle: Handle, patience: Duration) -> Self {
        Dial { handle, until: Instant::now() + patience, pause: FIRST_PAUSE, state: DialState::Waiting }
    }
}

impl Lane {
    /// Asks the peer, and waits for its answer.
    pub(crate) fn dial(&self, number: u64, dial: Dial) {
        let Handle { cookie, addresses } = dial.handle.clone();
        lock(&self.table).dials.insert(number, Dial { state: DialState::Waiting, ..dial });
        let greeting = handle::greeting(&cookie);
        // Dropping the attempt has no effect.
        let _ = self.events.connect_any(number, addresses[0], &addresses[1..], &self.scheme, &greeting);
    }

    /// Returns the connection of an attempt, once.
    pub(crate) fn outcome(&self, number: u64) -> Outcome<Option<Arc<Comm>>> {
        let mut table = lock(&self.table);
        let dial = table.dials.get(&number).ok_or(Fault::Usage)?;
        match dial.state {
            DialState::Waiting => return Ok(None),
            DialState::Paused(until) if Instant::now() < until => return Ok(None),
            DialState::Paused(_) | DialState::Open(_) | DialState::Failed(_) => {}
        }
        let Some(dial) = table.dials.remove(&number) else { return Err(Fault::Usage) };
        drop(table);
        match dial.state {
            DialState::Open(comm) => Ok(Some(comm)),
            DialState::Failed(fault) => Err(fault),
            DialState::Waiting | DialState::Paused(_) => {
                self.dial(number, dial);
                Ok(None)
            }
        }
    }

    /// Takes over a connection that this end has opened. Called by the loop.
    pub(crate) fn opened(self: &Arc<Self>, number: u64, connection: Connection) {
        let peer = connection.peer_addr();
        let state = if Lane::keeps_lines(&connection) {
            Comm::sends(self, connection).map_or(DialState::Failed(Fault::System), DialState::Open)
        } else {
            warn(format_args!("{peer} sends packets that are no multiples of 128 bytes"));
            DialState::Failed(Fault::Remote)
        };
        let mut table = lock(&self.table);
        if let DialState::Open(comm) = &state {
            table.comms.insert(comm.link.connection.id(), comm.clone());
        }
        if let Some(dial) = table.dials.get_mut(&number) {
            dial.state = state;
        }
    }

    /// Processes a refusal. Called by the loop.
    pub(crate) fn refused(&self, number: u64, error: &ConnectError) {
        let mut table = lock(&self.table);
        let Some(dial) = table.dials.get_mut(&number) else { return };
        let now = Instant::now();
        let busy = matches!(
            error,
            ConnectError::Refused { reason: Refusal::Busy | Refusal::PeerLimit, .. }
                | ConnectError::TooMany { .. }
        );
        if busy && now + dial.pause < dial.until {
            dial.state = DialState::Paused(now + dial.pause);
            dial.pause = (2 * dial.pause).min(LONGEST_PAUSE);
            return;
        }
        dial.state = DialState::Failed(match error {
            ConnectError::DeviceClosed(_) | ConnectError::Config(_) => Fault::System,
            _ => Fault::Remote,
        });
        drop(table);
        warn(format_args!("no connection: {error}"));
    }

    /// Takes over a connection that a peer has opened. Called by the loop, before it processes the peer's packets.
    pub(crate) fn accepted(self: &Arc<Self>, connection: Connection) {
        let cookie = handle::greeted(&connection.info().private_data);
        let listener = cookie.and_then(|cookie| lock(&self.table).listeners.get(&cookie).cloned());
        // Without a listener the connection is dropped, which closes it.
        let Some(listener) = listener.filter(|_| Lane::keeps_lines(&connection)) else { return };
        if let Ok(comm) = Comm::receives(self, connection) {
            lock(&self.table).comms.insert(comm.link.connection.id(), comm.clone());
            lock(&listener.queue).push_back(comm);
        }
    }
}
