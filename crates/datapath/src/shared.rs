//! What the application's threads and the loop have in common: requests one way, completions the other.

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
use crate::stream::Stream;
pub(crate) use crate::threads::{NoRoom, Room};
use crate::threads::{Parking, Signal};

/// A lock that a panicking thread has not spoilt: what it guards is a value that is replaced whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An answer of the loop that a thread waits for.
pub(crate) type Answer<T> = Arc<Mutex<Option<T>>>;

/// Connections that peers open are taken.
pub(crate) struct Listening {
    /// Into this domain, or the device's own.
    pub(crate) domain: Option<ProtectionDomain>,
    /// Told here, or handed to the listener.
    pub(crate) stream: Option<Arc<Stream>>,
}

/// A connection that this end wants.
pub(crate) struct Dial {
    pub(crate) peer: SocketAddr,
    /// Where else it may be.
    pub(crate) others: Vec<SocketAddr>,
    pub(crate) private_data: Vec<u8>,
    pub(crate) scheme: String,
    pub(crate) domain: Option<ProtectionDomain>,
    pub(crate) connection: Arc<ConnectionShared>,
    /// Where everything that happens on it is told; `None`: to its own handle.
    pub(crate) stream: Option<Arc<Stream>>,
}

/// A region that is to be closed.
pub(crate) struct Release {
    pub(crate) rkey: u64,
    /// Whom to tell when nothing reads or writes it any more, and by which name.
    pub(crate) tell: Option<(Arc<Stream>, u64)>,
}

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
    Connect(Box<Dial>),
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
    /// Under a key that was taken for it.
    Register {
        rkey: u64,
        region: Slice,
        address: u64,
        access: Access,
        reach: Reach,
    },
    Deregister {
        rkey: u64,
        answer: Answer<Result<(), DeregisterError>>,
    },
    /// As soon as nothing reads it any more.
    Release(Release),
    /// The same, but the key stays, and stands for no memory.
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
    /// The hook is called, whatever has happened.
    Look,
    Stop,
}

/// What the application's threads and the loop of a device have in common: commands `C` one way, `H` the other.
pub(crate) struct Shared<C = Command, H = Arc<ConnectionShared>> {
    pub(crate) commands: SegQueue<C>,
    parking: Parking,
    waker: Waker,
    /// That of one device, or of all loops of one.
    pub(crate) signal: Arc<Signal>,
    /// What is handed to the application: connections of peers that have not been accepted, or
    /// completions of datagrams.
    pub(crate) handed: SegQueue<H>,
    /// Why the loop has ended.
    pub(crate) broken: OnceLock<String>,
    /// Whom the loop calls besides.
    pub(crate) hook: OnceLock<Hook>,
    /// There is something that the hook has not been called for.
    stirred: AtomicBool,
    /// Whoever turns the loop is to look up from it before it sleeps.
    roused: AtomicBool,
}

impl<C, H> Shared<C, H> {
    pub(crate) fn new(waker: Waker) -> Self {
        Shared::telling(waker, Arc::default())
    }

    /// Whose waiters are told by this signal.
    pub(crate) fn telling(waker: Waker, signal: Arc<Signal>) -> Self {
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

    /// What the application waits for may have come true. For the loop.
    #[inline]
    pub(crate) fn tell(&self) {
        if self.hook.get().is_some() {
            self.stirred.store(true, Ordering::Relaxed);
        }
        self.signal.notify();
    }

    /// Whether there is something that the hook has not been called for. For the loop.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        self.stirred.load(Ordering::Relaxed)
    }

    /// Calls the hook, if something has happened. For the loop. `None`: there was nothing to call it for.
    pub(crate) fn call_hook(&self) -> Option<std::thread::Result<()>> {
        let hook = self.hook.get().filter(|_| self.has_news())?;
        self.stirred.store(false, Ordering::Relaxed);
        Some(hook.call())
    }

    /// Whether the caller is within the hook.
    pub(crate) fn is_in_hook(&self) -> bool {
        self.hook.get().is_some_and(Hook::is_caller_within)
    }

    /// Hands a command to the loop.
    #[inline]
    pub(crate) fn ask(&self, command: C) {
        self.commands.push(command);
        if self.parking.must_wake() {
            self.waker.wake();
        }
    }

    /// Whoever turns the loop, or waits for it, looks again at what it does so for.
    pub(crate) fn rouse(&self) {
        self.roused.store(true, Ordering::Release);
        if self.parking.must_wake() {
            self.waker.wake();
        }
        self.signal.notify();
    }

    /// The loop wants to sleep: false if it must not, because a command has come or it was roused.
    pub(crate) fn park(&self) -> bool {
        // Who rouses it has said why before.
        self.parking.park(|| self.commands.is_empty() && !self.roused.swap(false, Ordering::Acquire))
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
    /// What the application calls the attempt to open it, if this end has opened it, and into a stream.
    pub(crate) token: Option<u64>,
    /// What is done, of a connection that feeds no stream.
    pub(crate) completions: SegQueue<(Side, Completion)>,
    /// Requests and receives that may yet be posted.
    pub(crate) send_room: Room,
    pub(crate) receive_room: Room,
}

impl ConnectionShared {
    /// `depth`: requests and as many receives that may be outstanding.
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
    /// It is open.
    pub(crate) fn open(&self) {
        self.state.store(ConnectionState::Open as u8, Ordering::Release);
    }
    /// It is over, and nothing more is posted.
    pub(crate) fn close(&self) {
        self.send_room.close();
        self.receive_room.close();
        self.state.store(ConnectionState::Closed as u8, Ordering::Release);
    }
    /// Whether it is over, and the application has taken every completion there will be.
    pub(crate) fn is_settled(&self) -> bool {
        self.state() == ConnectionState::Closed && self.send_room.is_whole() && self.receive_room.is_whole()
    }
    /// Why it is over, once the application has taken every completion there will be.
    pub(crate) fn ended(&self) -> Option<CloseReason> {
        if self.is_settled() { self.reason.get().copied() } else { None }
    }
    /// The next completion, for the application, which then says [`taken`](ConnectionShared::taken).
    #[inline]
    pub(crate) fn pop(&self) -> Option<(Side, Completion)> {
        self.completions.pop()
    }
    /// The application has a completion. Returns whether that may have been the last, of which others are to hear.
    #[inline]
    pub(crate) fn taken(&self, side: Side) -> bool {
        self.room(side).give_back()
    }
    /// From which it is taken to post.
    #[inline]
    fn room(&self, side: Side) -> &Room {
        match side {
            Side::Send => &self.send_room,
            Side::Receive => &self.receive_room,
        }
    }
    /// Takes room for what is about to be posted.
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

/// Which room a completion gives back to.
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
        shared.rouse();
        assert!(!shared.park());
        assert!(shared.park());
    }

    #[test]
    fn commands_are_small() {
        // Each is written and read once in the queue. A request is what has to be told of one and no more.
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
