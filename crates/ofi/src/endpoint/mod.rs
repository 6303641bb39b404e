//! An endpoint: the engine, the device and the lanes that carry its messages, and the objects that the
//! application has bound to it. One lock guards all of it.
//!
//! A *pass* takes the events of connections, hands them to the engine, and executes the engine's actions. The
//! device's event loop runs a pass after each event, and so does every call that finds nothing to read. Such
//! a call also drives the device's event loop; the device's thread drives it while there is no such call.

mod buffers;
mod core;
mod events;
mod handshake;
mod lanes;
mod links;
mod local_memory;
mod local_peers;
mod local_thread;
mod operations;
mod poll_backoff;
mod regions;
mod relay;
mod report;
mod stage;
mod visits;

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use pathweave_datapath::{Device, OpenError, Turned};
use pathweave_shm::{OfferedMemory, Ticket};

pub(crate) use self::core::EndpointState;
use local_thread::{LaneKey, NextPoll, Watched};
pub(crate) use operations::{Amo, AtomicFetch, Incoming, MessageKind, Outgoing, Rma, RmaKind, Wanted};
pub(crate) use report::{BoundCounter, BoundQueue, Reporter, Selection};

use crate::abi::errno::*;
use crate::getinfo::Interface;
use crate::guard::{Errno, FiResult};
use crate::log::{Level, log, log_once};
use crate::object::domain::{Domain, Mr, OpensMemory};
use crate::object::queue::Entry;
use crate::object::uses::Use;
use crate::object::vector::Vector;
use crate::object::{Next, Progress, contention, lock};
use crate::settings;

/// Time for which closing an endpoint waits for operations whose completions the application has not read.
/// For operations without a completion, the limit is the peer timeout.
const LINGER: Duration = Duration::from_secs(1);
/// Time for which closing memory waits for peers on this host to finish their accesses. For other peers it is
/// [`LINGER`].
const GRACE: Duration = Duration::from_millis(200);

/// Objects that are bound before the endpoint is enabled.
pub(crate) struct New {
    device: Device,
    pub(crate) reporter: Reporter,
    pub(crate) vector: Option<(Arc<Vector>, Use)>,
}

/// Lifecycle of an endpoint.
pub(crate) enum State {
    New(Box<New>),
    Enabled(Box<EndpointState>),
    Closed,
}

/// An endpoint.
pub(crate) struct Endpoint {
    own: Mutex<SocketAddr>,
    /// Capabilities with which it was opened.
    pub(crate) caps: u64,
    pub(crate) domain: Arc<Domain>,
    /// Default flags of operations that have none; likewise `receive_flags`.
    pub(crate) transmit_flags: AtomicU64,
    pub(crate) receive_flags: AtomicU64,
    /// Remaining room below which a multi-receive ends, bytes.
    pub(crate) least_room: AtomicUsize,
    boot: u64,
    /// Number of polls by the application.
    looks: AtomicU64,
    /// Number of consecutive unsuccessful polls.
    vain: AtomicU64,
    state: Mutex<State>,
}

/// Returns a number that differs from that of earlier starts.
fn random() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

/// Opens a device on the address of the domain's interface, or on `wish`, and on the interfaces used with it.
/// The port is one of those allowed.
fn open_device(domain: &Domain, wish: Option<SocketAddr>, boot: u64) -> FiResult<Device> {
    let ip = wish.map(|wish| wish.ip()).filter(|ip| !ip.is_unspecified()).unwrap_or(domain.interface.address);
    let port = wish.map_or(0, |wish| wish.port());
    let ports = match (&domain.settings.ports, port) {
        (Some(range), 0) => range.clone(),
        _ => port..=port,
    };
    let all: Vec<&Interface> = std::iter::once(&domain.interface).chain(&domain.others).collect();
    let mut wanted = 0;
    let opened = domain.settings.open(&all, ip, ports, |config| {
        config.answer_data = handshake::Answer { boot }.encode();
        wanted = config.paths;
        Ok(())
    });
    match opened {
        Ok(device) => {
            if device.paths() < wanted {
                log_once(&format!(
                    "{} paths in place of {wanted}: file descriptors or UDP ports are short; raise their limit (ulimit -n) or \
                     set PATHWEAVE_PATHS",
                    device.paths()
                ));
            }
            Ok(device)
        }
        Err(error) => {
            log(Level::Warn, format_args!("no endpoint can be opened on {ip}"));
            let number = match error.of_device() {
                Some(OpenError::PortInUse { .. }) => {
                    // With a port of its own wish the application may try others.
                    if let (0, Some(why)) = (port, domain.settings.without_a_free_port(ip)) {
                        log_once(&why);
                    }
                    return Err(Errno(FI_EADDRINUSE));
                }
                Some(OpenError::NotLocal { .. }) => FI_EADDRNOTAVAIL,
                Some(OpenError::Permission { .. }) => FI_EACCES,
                _ => FI_EOTHER,
            };
            log_once(&error.to_string());
            Err(Errno(number))
        }
    }
}

impl Endpoint {
    /// Opens an endpoint. Its address is final from now on, unless it is renamed.
    ///
    /// # Errors
    ///
    /// Returns an error if no socket can be opened.
    pub(crate) fn open(domain: Arc<Domain>, wish: Option<SocketAddr>, caps: u64) -> FiResult<Arc<Self>> {
        let boot = random();
        let device = open_device(&domain, wish, boot)?;
        let own = device.local_addr();
        let new = New { device, reporter: Reporter::default(), vector: None };
        Ok(Arc::new(Endpoint {
            own: Mutex::new(own),
            caps,
            domain,
            transmit_flags: AtomicU64::new(0),
            receive_flags: AtomicU64::new(0),
            least_room: AtomicUsize::new(64),
            boot,
            looks: AtomicU64::new(0),
            vain: AtomicU64::new(0),
            state: Mutex::new(State::New(Box::new(new))),
        }))
    }

    /// Changes the bound objects.
    ///
    /// # Errors
    ///
    /// Returns FI_EOPBADSTATE once the endpoint is enabled.
    pub(crate) fn bind(&self, change: impl FnOnce(&mut New)) -> FiResult {
        match &mut *lock(&self.state) {
            State::New(new) => {
                change(new);
                Ok(())
            }
            State::Enabled(_) | State::Closed => Err(Errno(FI_EOPBADSTATE)),
        }
    }

    /// Returns the endpoint's address, which is final once it is enabled.
    pub(crate) fn own(&self) -> SocketAddr {
        *lock(&self.own)
    }

    /// Reopens the endpoint on another address.
    ///
    /// # Errors
    ///
    /// Returns FI_EOPBADSTATE once the endpoint is enabled, or an error if no socket can be opened.
    pub(crate) fn rename(&self, to: SocketAddr) -> FiResult {
        let State::New(new) = &mut *lock(&self.state) else { return Err(Errno(FI_EOPBADSTATE)) };
        new.device = open_device(&self.domain, Some(to), self.boot)?;
        *lock(&self.own) = new.device.local_addr();
        Ok(())
    }

    /// Enables the endpoint.
    ///
    /// # Errors
    ///
    /// Returns FI_ENOAV without an address vector, and FI_EOPBADSTATE if it was enabled before.
    pub(crate) fn enable(self: &Arc<Self>) -> FiResult {
        let mut state = lock(&self.state);
        match &*state {
            State::New(new) if new.vector.is_none() => return Err(Errno(FI_ENOAV)),
            State::New(_) => {}
            State::Enabled(_) | State::Closed => return Err(Errno(FI_EOPBADSTATE)),
        }
        let State::New(new) = std::mem::replace(&mut *state, State::Closed) else { return Ok(()) };
        let maker: Arc<dyn Progress> = self.clone();
        new.reporter.queues().for_each(|bound| bound.queue.fed_by(Arc::downgrade(&maker)));
        for bound in &new.reporter.counters {
            bound.counter.fed_by(Arc::downgrade(&maker));
        }
        let (vector, held) = new.vector.expect("looked at above");
        let device = new.device;
        let core = EndpointState::start(self, self.boot, device.clone(), new.reporter, vector, held)?;
        *state = State::Enabled(Box::new(core));
        drop(state);
        let weak = Arc::downgrade(self);
        let hook = move || {
            if let Some(endpoint) = weak.upgrade() {
                endpoint.pass();
            }
        };
        device.set_hook(hook).map_err(|_| Errno(FI_EOPBADSTATE))?;
        self.with(|core| {
            core.start_watch(Arc::downgrade(self));
            Ok(())
        })?;
        self.domain.join(self)
    }

    /// Calls `work` with the state of an enabled endpoint, and executes the consequences. If `work` fails
    /// with FI_EAGAIN, runs a pass.
    ///
    /// # Errors
    ///
    /// Returns FI_EOPBADSTATE before the endpoint is enabled, or the error of `work`.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut EndpointState) -> FiResult<T>) -> FiResult<T> {
        let mut state = lock(&self.state);
        let State::Enabled(core) = &mut *state else { return Err(Errno(FI_EOPBADSTATE)) };
        let answer = work(core);
        match answer {
            Err(Errno(FI_EAGAIN)) => drop(core.pass()),
            _ => core.run_actions(),
        }
        answer
    }

    /// Makes progress without the device, for a caller that polls a queue. Returns the device if the caller
    /// has to drive it and a poll of it is due.
    fn look(&self, core: &mut EndpointState, queue: Option<usize>) -> (Next, Option<Entry>, Option<Device>) {
        // The counters are written under the lock only.
        let add_one = |count: &AtomicU64| count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        add_one(&self.looks);
        core.reporter.tray.begin_poll(queue);
        let heard = core.poll_lanes();
        let entry = core.reporter.tray.end_poll();
        let is_callers = self.domain.settings.progress != settings::Progress::Thread;
        if heard {
            self.vain.store(0, Ordering::Relaxed);
            return (Next::Look, entry, None);
        }
        let device =
            (is_callers && core.device_poll_due(self.looks.load(Ordering::Relaxed))).then(|| core.device());
        let vain = self.vain.load(Ordering::Relaxed);
        add_one(&self.vain);
        let turned = if device.is_some() { Turned::Here } else { Turned::Elsewhere };
        (core.next(vain, turned), entry, device)
    }

    fn pass(&self) {
        if let State::Enabled(core) = &mut *lock(&self.state) {
            core.pass();
        }
    }

    /// Returns true if no work is left for any peer.
    fn is_idle(&self) -> bool {
        match &*lock(&self.state) {
            State::Enabled(core) => core.is_idle(),
            State::New(_) | State::Closed => true,
        }
    }

    /// Returns true if a peer has yet to receive data that the application cannot wait for.
    fn owes(&self) -> bool {
        match &*lock(&self.state) {
            State::Enabled(core) => core.has_undelivered(),
            State::New(_) | State::Closed => false,
        }
    }

    /// Makes progress until `done` returns true, for at most this time. Returns false on timeout.
    fn linger(&self, most: Duration, done: impl Fn() -> bool) -> bool {
        let deadline = Instant::now() + most;
        while !done() {
            if Instant::now() >= deadline {
                return false;
            }
            self.progress(None);
            thread::sleep(Duration::from_micros(200));
        }
        true
    }

    /// Closes the endpoint. Data that was accepted without a later completion is delivered, or fails with an
    /// error completion. The event loop's thread has ended when this returns.
    pub(crate) fn close(&self) {
        self.linger(LINGER, || self.is_idle());
        if !self.linger(self.domain.settings.peer_timeout, || !self.owes()) {
            if let State::Enabled(core) = &mut *lock(&self.state) {
                core.drop_undelivered();
            }
            // Failures are reported once their memory is no longer in use.
            self.linger(LINGER, || self.is_idle());
        }
        // The lock is not held here, because this waits for the event loop's thread, which may need it.
        let before = std::mem::replace(&mut *lock(&self.state), State::Closed);
        if let State::Enabled(core) = &before {
            core.reporter.queues().for_each(|bound| bound.queue.move_on());
        }
        drop(before);
    }

    /// Abandons the state in the child of a fork, without waiting. The threads do not exist there.
    pub(crate) fn abandon(&self) {
        if let Ok(mut state) = self.state.try_lock() {
            std::mem::forget(std::mem::replace(&mut *state, State::Closed));
        }
    }
}

impl Progress for Endpoint {
    fn progress(&self, queue: Option<usize>) -> (Next, Option<Entry>) {
        // The thread that holds the lock makes progress already, if it has a core. A napping caller sleeps
        // until the lock is released.
        let Ok(mut state) = self.state.try_lock() else {
            return (if contention::is_crowded() { Next::Nap } else { Next::Yield }, None);
        };
        let State::Enabled(core) = &mut *state else { return (Next::Yield, None) };
        let (next, entry, device) = self.look(core, queue);
        let looks = core.polls_before_yield(Turned::Elsewhere);
        drop(state);
        let Some(device) = device else { return (next, entry) };
        // The lock is not held here, because the device calls the hook, which runs a pass.
        let turned = device.progress();
        if let Ok(mut state) = self.state.try_lock()
            && let State::Enabled(core) = &mut *state
        {
            core.pass();
        }
        // The caller may be waiting for another thread.
        let waits_for_other = turned == Turned::Elsewhere && self.vain.load(Ordering::Relaxed) > looks;
        (if waits_for_other { next.max(Next::Yield) } else { next }, entry)
    }

    fn rest(&self) {
        self.progress(None);
        if let State::Enabled(core) = &mut *lock(&self.state) {
            core.device().rest();
            core.rest();
        }
    }

    fn sleep_device(&self) -> Option<Device> {
        let is_callers = self.domain.settings.progress != settings::Progress::Thread;
        match &mut *lock(&self.state) {
            State::Enabled(core) if is_callers => {
                core.rest();
                Some(core.device())
            }
            State::Enabled(_) | State::New(_) | State::Closed => None,
        }
    }
}

impl Watched for Endpoint {
    fn on_offer(&self, ticket: Ticket, brought: OfferedMemory) {
        if let State::Enabled(core) = &mut *lock(&self.state) {
            core.on_offer(ticket, brought);
        }
    }

    fn on_bell(&self, key: LaneKey) {
        if let State::Enabled(core) = &mut *lock(&self.state) {
            core.on_bell(key);
            core.pass();
        }
    }

    fn keep_watch(&self, looked: &mut u64) -> NextPoll {
        let looks = self.looks.load(Ordering::Relaxed);
        if std::mem::replace(looked, looks) != looks {
            // The application polls by itself.
            return NextPoll::Soon;
        }
        match &mut *lock(&self.state) {
            State::Enabled(core) => core.poll_idle(),
            State::New(_) | State::Closed => NextPoll::Asleep,
        }
    }
}

impl OpensMemory for Endpoint {
    fn open(&self, mr: &Arc<Mr>) -> FiResult {
        match &mut *lock(&self.state) {
            State::Enabled(core) => core.open_region(mr),
            // The region is opened when the endpoint is enabled.
            State::New(_) | State::Closed => Ok(()),
        }
    }

    fn close(&self, key: u64) -> FiResult {
        let closing = match &mut *lock(&self.state) {
            State::Enabled(core) => core.close_region(key),
            State::New(_) | State::Closed => None,
        };
        let Some(closing) = closing else { return Ok(()) };
        let is_closed = || match &*lock(&self.state) {
            State::Enabled(core) => !core.is_closing(closing),
            State::New(_) | State::Closed => true,
        };
        let is_near = || match &*lock(&self.state) {
            State::Enabled(core) => core.is_closing_for_neighbours(closing),
            State::New(_) | State::Closed => true,
        };
        if !self.linger(GRACE, is_closed) && (is_near() || !self.linger(LINGER - GRACE, is_closed)) {
            // A peer that does not respond may be stopped and continue later. It finds no memory under the
            // key then.
            if let State::Enabled(core) = &mut *lock(&self.state) {
                core.withdraw_region(closing);
            }
            // Responses that were sent to a peer may have to be retransmitted as long as the peer is
            // considered alive.
            if !self.linger(self.domain.settings.peer_timeout + LINGER, is_closed) {
                return Err(Errno(FI_EBUSY));
            }
        }
        if let State::Enabled(core) = &mut *lock(&self.state) {
            core.forget_region(closing);
        }
        Ok(())
    }
}

/// Loads flags. The memory ordering of flags is defined here only.
pub(crate) fn flags(of: &AtomicU64) -> u64 {
    of.load(Ordering::Relaxed)
}
