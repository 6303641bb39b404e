//! What the application's threads and the loop have in common: requests one way, completions the other.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crossbeam_queue::SegQueue;

use pathweave_transport::{Access, Op};

use crate::api::ProtectionDomain;
use crate::backend::Waker;
use crate::completion::Completion;
use crate::error::{ConnectError, DeregisterError, RegisterError};
use crate::region::Slice;
use crate::secure::Protection;
use crate::state::{CloseReason, ConnectionId, ConnectionState};
use crate::stats::{ConnectionStats, DeviceStats};
pub(crate) use crate::threads::Room;
use crate::threads::{Parking, Signal};

/// A lock that a panicking thread has not spoilt: what it guards is a value that is replaced whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An answer of the loop that a thread waits for.
pub(crate) type Answer<T> = Arc<Mutex<Option<T>>>;

/// Connections that peers open are taken, into a domain or the device's own.
pub(crate) struct Listening(pub(crate) Option<ProtectionDomain>);

/// When a request starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// In its turn.
    InTurn,
    /// When all before it are complete.
    AfterAll,
}

/// Whose peers reach a region.
pub(crate) enum Reach {
    /// Those of connections in a domain, or in the device's own.
    Domain(Option<ProtectionDomain>),
    /// That of one connection.
    Connection(ConnectionId),
}

/// What the application asks of the loop.
pub(crate) enum Command {
    /// Connections that peers open are in this domain; `None`: they are no longer accepted.
    Listen(Option<Listening>),
    Connect {
        peer: SocketAddr,
        private_data: Vec<u8>,
        scheme: String,
        domain: Option<ProtectionDomain>,
        connection: Arc<ConnectionShared>,
    },
    Post {
        id: ConnectionId,
        wr_id: u64,
        op: Op,
        memory: Slice,
        start: Start,
    },
    PostRecv {
        id: ConnectionId,
        wr_id: u64,
        memory: Slice,
    },
    Register {
        region: Slice,
        address: u64,
        access: Access,
        reach: Reach,
        answer: Answer<Result<u64, RegisterError>>,
    },
    Deregister {
        rkey: u64,
        answer: Answer<Result<(), DeregisterError>>,
    },
    /// As soon as nothing reads it any more.
    Release {
        rkey: u64,
    },
    Close {
        connection: Arc<ConnectionShared>,
    },
    Probe {
        id: ConnectionId,
    },
    Stats {
        id: ConnectionId,
        answer: Answer<Option<ConnectionStats>>,
    },
    DeviceStats {
        answer: Answer<DeviceStats>,
    },
    Stop,
}

/// What the application's threads and the loop of a device have in common: commands `C` one way, `H` the other.
pub(crate) struct Shared<C = Command, H = Arc<ConnectionShared>> {
    pub(crate) commands: SegQueue<C>,
    parking: Parking,
    waker: Waker,
    pub(crate) signal: Signal,
    /// What is handed to the application: connections of peers that have not been accepted, or
    /// completions of datagrams.
    pub(crate) handed: SegQueue<H>,
    /// Why the loop has ended.
    pub(crate) broken: OnceLock<String>,
}

impl<C, H> Shared<C, H> {
    pub(crate) fn new(waker: Waker) -> Self {
        Shared {
            commands: SegQueue::new(),
            parking: Parking::new(),
            waker,
            signal: Signal::default(),
            handed: SegQueue::new(),
            broken: OnceLock::new(),
        }
    }

    /// Hands a command to the loop.
    #[inline]
    pub(crate) fn ask(&self, command: C) {
        self.commands.push(command);
        if self.parking.must_wake() {
            self.waker.wake();
        }
    }

    /// The loop wants to sleep: false if it must not, because a command has come.
    pub(crate) fn park(&self) -> bool {
        self.parking.park(|| self.commands.is_empty())
    }

    /// The loop is awake.
    pub(crate) fn unpark(&self) {
        self.parking.unpark();
    }
}

/// What the ends of a connection agreed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionInfo {
    /// The peer's address.
    pub peer: SocketAddr,
    /// Payload of a full packet, in bytes.
    pub mtu_payload: u16,
    /// Paths it uses.
    pub paths: u16,
    /// Its scheme.
    pub scheme: String,
    /// Protection of its packets.
    pub protection: Protection,
    /// What the peer's application said when it opened or accepted the connection.
    pub private_data: Vec<u8>,
}

/// What an application's handle of a connection and the loop have in common.
pub(crate) struct ConnectionShared {
    id: AtomicU32,
    state: AtomicU8,
    pub(crate) info: OnceLock<ConnectionInfo>,
    pub(crate) refused: OnceLock<ConnectError>,
    pub(crate) reason: OnceLock<CloseReason>,
    pub(crate) completions: Arc<SegQueue<Delivered>>,
    /// Requests and receives that may yet be posted.
    pub(crate) send_room: Room,
    pub(crate) receive_room: Room,
}

impl ConnectionShared {
    pub(crate) fn new(completions: Arc<SegQueue<Delivered>>, sends: u32, receives: u32) -> Self {
        ConnectionShared {
            id: AtomicU32::new(0),
            state: AtomicU8::new(ConnectionState::Opening as u8),
            info: OnceLock::new(),
            refused: OnceLock::new(),
            reason: OnceLock::new(),
            completions,
            send_room: Room::new(sends),
            receive_room: Room::new(receives),
        }
    }

    pub(crate) fn id(&self) -> ConnectionId {
        ConnectionId(self.id.load(Ordering::Acquire))
    }
    pub(crate) fn set_id(&self, id: ConnectionId) {
        self.id.store(id.0, Ordering::Release);
    }
    pub(crate) fn state(&self) -> ConnectionState {
        match self.state.load(Ordering::Acquire) {
            0 => ConnectionState::Opening,
            1 => ConnectionState::Open,
            _ => ConnectionState::Closed,
        }
    }
    pub(crate) fn set_state(&self, state: ConnectionState) {
        self.state.store(state as u8, Ordering::Release);
    }
    /// Why it is over, once the application has taken every completion there will be.
    pub(crate) fn ended(&self) -> Option<CloseReason> {
        let over = self.state() == ConnectionState::Closed;
        // What was posted when it ended may yet be flushed.
        let all_taken = self.send_room.is_whole() && self.receive_room.is_whole();
        if over && all_taken { self.reason.get().copied() } else { None }
    }
}

/// Which room a completion gives back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Send,
    Receive,
}

/// A completion on its way to the application.
pub(crate) struct Delivered {
    pub(crate) completion: Completion,
    pub(crate) side: Side,
    pub(crate) connection: Arc<ConnectionShared>,
}

impl Delivered {
    /// The application has it.
    #[inline]
    pub(crate) fn taken(self) -> Completion {
        match self.side {
            Side::Send => self.connection.send_room.give_back(),
            Side::Receive => self.connection.receive_room.give_back(),
        }
        self.completion
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::time::Instant;

    #[test]
    fn a_signal_wakes_whoever_waits() {
        let shared = Arc::new((Signal::default(), AtomicBool::new(false)));
        let waiter = {
            let shared = shared.clone();
            std::thread::spawn(move || shared.0.wait(None, || shared.1.load(Ordering::SeqCst).then_some(7)))
        };
        shared.1.store(true, Ordering::SeqCst);
        shared.0.notify();
        assert_eq!(waiter.join().unwrap(), Some(7));
        assert_eq!(shared.0.wait(Some(Instant::now()), || None::<()>), None);
    }

    #[test]
    fn a_loop_does_not_sleep_over_a_command() {
        let shared: Shared = Shared::new(Waker::new().unwrap());
        assert!(shared.park());
        shared.unpark();
        shared.ask(Command::Stop);
        assert!(!shared.park());
        assert!(matches!(shared.commands.pop(), Some(Command::Stop)));
        assert!(shared.park());
    }

    #[test]
    fn room_is_bounded() {
        let room = Room::new(2);
        assert!(room.take() && room.take() && !room.take());
        room.give_back();
        assert!(room.take() && !room.take());
        assert_eq!(room.most(), 2);
    }
}
