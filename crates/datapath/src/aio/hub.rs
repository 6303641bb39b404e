//! Dispatch from the loop to the tasks: wakes the task that waits for a completion.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, Weak};

use tokio::sync::futures::Notified;
use tokio::sync::{Notify, oneshot};

use crate::api;
use crate::completion::Completion;
use crate::region::Slice;
use crate::shared::{ConnectionShared, Shared, Side, lock};
use crate::state::ConnectionState;

/// Dispatcher that the loop of a device calls through its hook.
pub(super) struct Hub {
    /// Not a device handle: the last handle of a device must not be dropped in its own loop.
    shared: Weak<Shared>,
    routers: Mutex<Vec<Weak<Router>>>,
    called: Notify,
    stirred: Notify,
}

impl Hub {
    /// Creates the dispatcher of a newly opened device, and installs it as the device's hook.
    pub(super) fn of(device: &api::Device) -> Arc<Hub> {
        let (shared, routers) = (Arc::downgrade(device.shared()), Mutex::default());
        let hub = Arc::new(Hub { shared, routers, called: Notify::new(), stirred: Notify::new() });
        let looked_at = hub.clone();
        device.set_hook(move || looked_at.look()).expect("nobody else has the device yet");
        hub
    }

    /// Resolves when a peer may have opened a connection, or the loop has ended.
    pub(super) fn called(&self) -> Notified<'_> {
        self.called.notified()
    }

    /// Resolves at any event.
    pub(super) fn stirred(&self) -> Notified<'_> {
        self.stirred.notified()
    }

    pub(super) fn add(&self, router: &Arc<Router>) {
        lock(&self.routers).push(Arc::downgrade(router));
        // Events that have already arrived are not announced again.
        router.look();
    }

    /// Dispatches new events.
    fn look(&self) {
        let routers: Vec<Arc<Router>> = {
            let mut known = lock(&self.routers);
            known.retain(|router| router.strong_count() > 0);
            known.iter().filter_map(Weak::upgrade).collect()
        };
        routers.iter().for_each(|router| router.look());
        self.stirred.notify_waiters();
        let calls = |shared: Arc<Shared>| !shared.handed.is_empty() || shared.broken.get().is_some();
        if self.shared.upgrade().is_some_and(calls) {
            self.called.notify_waiters();
        }
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").finish_non_exhaustive()
    }
}

/// Assignment of a connection's completions to waiting tasks.
pub(super) struct Router {
    shared: Arc<ConnectionShared>,
    waiting: Mutex<Waiting>,
    stirred: Notify,
}

#[derive(Default)]
struct Waiting {
    next: u64,
    requests: HashMap<u64, oneshot::Sender<Completion>>,
    /// Memory of posted receives.
    given: HashMap<u64, Slice>,
    /// Completed receives in order, until a task takes them.
    received: VecDeque<(Slice, Completion)>,
}

impl Router {
    pub(super) fn new(shared: Arc<ConnectionShared>) -> Arc<Router> {
        Arc::new(Router { shared, waiting: Mutex::default(), stirred: Notify::new() })
    }

    /// Returns a number for a request, and the channel of its completion.
    pub(super) fn expect(&self) -> (u64, oneshot::Receiver<Completion>) {
        let (tell, told) = oneshot::channel();
        let mut waiting = lock(&self.waiting);
        let number = waiting.number();
        waiting.requests.insert(number, tell);
        (number, told)
    }

    /// Returns a number for a receive.
    pub(super) fn give(&self, memory: Slice) -> u64 {
        let mut waiting = lock(&self.waiting);
        let number = waiting.number();
        waiting.given.insert(number, memory);
        number
    }

    /// Drops a number whose request was not posted.
    pub(super) fn forget(&self, number: u64) {
        let mut waiting = lock(&self.waiting);
        waiting.requests.remove(&number);
        waiting.given.remove(&number);
    }

    /// Returns the next completed receive.
    pub(super) fn take_received(&self) -> Option<(Slice, Completion)> {
        lock(&self.waiting).received.pop_front()
    }

    /// Resolves when a receive may have completed, or the connection has ended.
    pub(super) fn stirred(&self) -> Notified<'_> {
        self.stirred.notified()
    }

    /// Passes completions to the tasks that wait for them.
    fn look(&self) {
        let mut stirred = self.shared.state() == ConnectionState::Closed;
        let mut waiting = lock(&self.waiting);
        while let Some((side, completion)) = self.shared.pop() {
            // The return value is not needed: the caller is the loop itself, or the thread that creates the router.
            self.shared.taken(side);
            match side {
                Side::Send => {
                    if let Some(tell) = waiting.requests.remove(&completion.wr_id) {
                        // A dropped future has no receiver.
                        let _ = tell.send(completion);
                    }
                }
                Side::Receive => {
                    if let Some(memory) = waiting.given.remove(&completion.wr_id) {
                        waiting.received.push_back((memory, completion));
                        stirred = true;
                    }
                }
            }
        }
        drop(waiting);
        if stirred {
            self.stirred.notify_waiters();
        }
    }
}

impl Waiting {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}
