//! State shared between the application's threads and the loop: commands in one direction, completions in the other.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crossbeam_queue::SegQueue;

use pathweave_transport::{Access, Op};

use crate::api::ProtectionDomain;
use crate::backend::Waker;
use crate::completion::Completion;
use crate::error::{ConnectError, DeregisterError, PostError};
use crate::hook::Hook;
use crate::region::{Slice, Slices};
use crate::secure::Protection;
use crate::state::{CloseReason, ConnectionId, ConnectionState};
use crate::stats::{ConnectionStats, DeviceStats};
use crate::stream::EventQueue;
pub(crate) use crate::threads::{NoRoom, Room};
use crate::threads::{Parking, Signal};

/// Locks a mutex and ignores poisoning. The guarded value is always replaced as a whole, so a panic cannot leave it
/// half-updated.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Result that the loop produces and a thread waits for.
pub(crate) type Answer<T> = Arc<Mutex<Option<T>>>;

/// Settings of a device that accepts connections from peers.
pub(crate) struct Listening {
    /// Protection domain of accepted connections; `None`: the device's own.
    pub(crate) domain: Option<ProtectionDomain>,
    /// Event stream that receives accepted connections; `None`: they go to the listener.
    pub(crate) stream: Option<Arc<EventQueue>>,
}

/// Request to open a connection.
pub(crate) struct ConnectRequest {
    pub(crate) peer: SocketAddr,
    /// Further addresses of the peer, tried if `peer` does not answer.
    pub(crate) others: Vec<SocketAddr>,
    pub(crate) private_data: Vec<u8>,
    pub(crate) scheme: String,
    pub(crate) domain: Option<ProtectionDomain>,
    pub(crate) connection: Arc<ConnectionShared>,
    /// Event stream for the connection; `None`: its events go to its own handle.
    pub(crate) stream: Option<Arc<EventQueue>>,
}

/// Request to close a region.
pub(crate) struct Release {
    pub(crate) rkey: u64,
    /// Stream to notify once nothing accesses the region any more, and the token to report.
    pub(crate) tell: Option<(Arc<EventQueue>, u64)>,
}

/// Condition under which a posted request starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// In order of posting, without waiting for earlier requests to complete.
    InTurn,
    /// After all earlier requests have completed.
    AfterAll,
}

/// Peers that may access a region.
pub(crate) enum AccessScope {
    /// Peers of the connections in this domain; `None`: in the device's own.
    Domain(Option<ProtectionDomain>),
    /// The peer of one connection.
    Connection(ConnectionId),
}

/// Request from the application to the loop.
pub(crate) enum Command {
    /// Sets whether connections from peers are accepted, and their settings; `None`: they are no longer accepted.
    Listen(Option<Listening>),
    Connect(Box<ConnectRequest>),
    Post {
        id: ConnectionId,
        wr_id: u64,
        op: Op,
        memory: Slices,
        start: Start,
    },
    PostRecv {
        id: ConnectionId,
        wr_id: u64,
        memory: Slices,
    },
    /// Opens a region under a key that was reserved for it.
    Register {
        rkey: u64,
        region: Slice,
        address: u64,
        access: Access,
        reach: AccessScope,
    },
    Deregister {
        rkey: u64,
        answer: Answer<Result<(), DeregisterError>>,
    },
    /// Closes a region as soon as nothing reads it any more.
    Release(Release),
    /// Detaches a region's memory as soon as nothing reads it any more. The key stays registered but refers to no
    /// memory.
    Withdraw(Release),
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
    /// Calls the hook even if there are no events.
    Look,
    Stop,
}

/// State shared between the application's threads and the loop of a device: commands `C` to the loop, `H` handed
/// back.
pub(crate) struct Shared<C = Command, H = Arc<ConnectionShared>> {
    pub(crate) commands: SegQueue<C>,
    parking: Parking,
    waker: Waker,
    /// Signal that wakes waiting threads: of one device, or shared by all loops of a [`Loops`](crate::Loops).
    pub(crate) signal: Arc<Signal>,
    /// Items handed to the application: connections of peers that have not been accepted, or completions of
    /// datagrams.
    pub(crate) handed: SegQueue<H>,
    /// Reason why the loop has ended.
    pub(crate) broken: OnceLock<String>,
    /// Hook that the loop calls in addition to the signal.
    pub(crate) hook: OnceLock<Hook>,
    /// True while there are events for which the hook has not been called.
    stirred: AtomicBool,
    /// True if the thread that drives the loop must return from it before it sleeps.
    roused: AtomicBool,
}

impl<C, H> Shared<C, H> {
    pub(crate) fn new(waker: Waker) -> Self {
        Shared::with_signal(waker, Arc::default())
    }

    /// Creates the state with a signal that may be shared with other loops.
    pub(crate) fn with_signal(waker: Waker, signal: Arc<Signal>) -> Self {
        Shared {
            commands: SegQueue::new(),
            parking: Parking::new(),
            waker,
            signal,
            handed: SegQueue::new(),
            broken: OnceLock::new(),
            hook: OnceLock::new(),
            stirred: AtomicBool::new(false),
            roused: AtomicBool::new(false),
        }
    }

    /// Signals that a condition the application waits for may have become true. Called by the loop.
    #[inline]
    pub(crate) fn notify(&self) {
        if self.hook.get().is_some() {
            self.stirred.store(true, Ordering::Relaxed);
        }
        self.signal.notify();
    }

    /// Returns true if there are events for which the hook has not been called. Called by the loop.
    #[inline]
    pub(crate) fn has_events(&self) -> bool {
        self.stirred.load(Ordering::Relaxed)
    }

    /// Calls the hook if there are events for it. Returns `None` if there are none. Called by the loop.
    pub(crate) fn call_hook(&self) -> Option<std::thread::Result<()>> {
        let hook = self.hook.get().filter(|_| self.has_events())?;
        self.stirred.store(false, Ordering::Relaxed);
        Some(hook.call())
    }

    /// Returns true if the caller runs within the hook.
    pub(crate) fn is_in_hook(&self) -> bool {
        self.hook.get().is_some_and(Hook::is_caller_within)
    }

    /// Queues a command and wakes the loop if it sleeps.
    #[inline]
    pub(crate) fn ask(&self, command: C) {
        self.commands.push(command);
        if self.parking.must_wake() {
            self.waker.wake();
        }
    }

    /// Wakes the thread that drives the loop, and every thread that waits for it, so that they check their conditions
    /// again.
    pub(crate) fn interrupt(&self) {
        self.roused.store(true, Ordering::Release);
        if self.parking.must_wake() {
            self.waker.wake();
        }
        self.signal.notify();
    }

    /// Announces that the loop is about to sleep. Returns false if it must not, because a command is queued or it was
    /// roused.
    pub(crate) fn park(&self) -> bool {
        // The thread that roused the loop changed its condition before it called `rouse`.
        self.parking.park(|| self.commands.is_empty() && !self.roused.swap(false, Ordering::Acquire))
    }

    /// Announces that the loop is awake.
    pub(crate) fn unpark(&self) {
        self.parking.unpark();
    }
}

/// Parameters of a connection that both ends have agreed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionInfo {
    /// Address of the peer.
    pub peer: SocketAddr,
    /// Payload of a full packet, in bytes.
    pub mtu_payload: u16,
    /// Number of paths that the connection uses.
    pub paths: u16,
    /// Name of the connection's scheme.
    pub scheme: String,
    /// Protection of its packets.
    pub protection: Protection,
    /// Private data that the peer's application supplied when it opened or accepted the connection.
    pub private_data: Vec<u8>,
}

/// State of a connection that the application's handle and the loop share.
pub(crate) struct ConnectionShared {
    id: AtomicU32,
    state: AtomicU8,
    pub(crate) info: OnceLock<ConnectionInfo>,
    pub(crate) refused: OnceLock<ConnectError>,
    pub(crate) reason: OnceLock<CloseReason>,
    /// Token by which the application identifies the attempt, if this end opens the connection into an event stream.
    pub(crate) token: Option<u64>,
    /// Completions of a connection without an event stream.
    pub(crate) completions: SegQueue<(Side, Completion)>,
    /// Number of requests and of receives that may still be posted.
    pub(crate) send_room: Room,
    pub(crate) receive_room: Room,
}

impl ConnectionShared {
    /// `depth`: largest number of outstanding requests, and of outstanding receives.
    pub(crate) fn new(depth: u32, token: Option<u64>) -> Self {
        ConnectionShared {
            id: AtomicU32::new(0),
            state: AtomicU8::new(ConnectionState::Opening as u8),
            info: OnceLock::new(),
            refused: OnceLock::new(),
            reason: OnceLock::new(),
            token,
            completions: SegQueue::new(),
            send_room: Room::new(depth),
            receive_room: Room::new(depth),
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
    /// Marks the connection as open.
    pub(crate) fn open(&self) {
        self.state.store(ConnectionState::Open as u8, Ordering::Release);
    }
    /// Marks the connection as closed. Nothing more can be posted.
    pub(crate) fn close(&self) {
        self.send_room.close();
        self.receive_room.close();
        self.state.store(ConnectionState::Closed as u8, Ordering::Release);
    }
    /// Returns true if the connection is closed and the application has taken all its completions.
    pub(crate) fn is_settled(&self) -> bool {
        self.state() == ConnectionState::Closed && self.send_room.is_whole() && self.receive_room.is_whole()
    }
    /// Returns the reason of the close once the application has taken all completions.
    pub(crate) fn ended(&self) -> Option<CloseReason> {
        if self.is_settled() { self.reason.get().copied() } else { None }
    }
    /// Returns the next completion. The application then calls [`taken`](ConnectionShared::taken).
    #[inline]
    pub(crate) fn pop(&self) -> Option<(Side, Completion)> {
        self.completions.pop()
    }
    /// Records that the application has taken a completion. Returns true if it may have been the last one, so that
    /// waiters must be notified.
    #[inline]
    pub(crate) fn taken(&self, side: Side) -> bool {
        self.room(side).give_back()
    }
    /// Returns the room from which posting on this side takes.
    #[inline]
    fn room(&self, side: Side) -> &Room {
        match side {
            Side::Send => &self.send_room,
            Side::Receive => &self.receive_room,
        }
    }
    /// Reserves room for a request about to be posted.
    ///
    /// # Errors
    /// [`PostError::Full`], [`PostError::Closed`].
    #[inline]
    pub(crate) fn make_room(&self, side: Side) -> Result<(), PostError> {
        let room = self.room(side);
        room.take().map_err(|why| match why {
            NoRoom::Now => PostError::Full { limit: room.most() },
            NoRoom::Ever => PostError::Closed,
        })
    }
}

/// Queue to whose room a completion returns its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Send,
    Receive,
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
    fn a_loop_that_is_roused_does_not_sleep_once() {
        let shared: Shared = Shared::new(Waker::new().unwrap());
        shared.interrupt();
        assert!(!shared.park());
        assert!(shared.park());
    }

    #[test]
    fn commands_are_small() {
        // Each command is written and read once in the queue, so a request must carry no more than it needs.
        assert!(size_of::<Command>() <= 72, "{} bytes", size_of::<Command>());
    }

    #[test]
    fn room_is_bounded() {
        let room = Room::new(2);
        let take = || room.take();
        assert_eq!([take(), take(), take()], [Ok(()), Ok(()), Err(NoRoom::Now)]);
        assert!(!room.give_back());
        assert_eq!([take(), take()], [Ok(()), Err(NoRoom::Now)]);
        room.close();
        assert_eq!(take(), Err(NoRoom::Ever));
        assert!(!room.give_back() && !room.is_whole());
        assert!(room.give_back() && room.is_whole());
        assert_eq!((take(), room.most()), (Err(NoRoom::Ever), 2));
    }
}
