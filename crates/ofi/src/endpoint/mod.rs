//! An endpoint: the engine, the device and the lanes it speaks over, and what the application has bound to it. One lock for all
//! of it.
//!
//! A *pass* takes what has happened on connections, hands it to the engine, and carries out what the engine wants. The
//! device's loop runs one whenever something has happened, and so does every call that finds nothing to read. Such a call also
//! turns the device's loop; the device's thread does while there is none.

mod buffers;
mod core;
mod events;
mod handshake;
mod lanes;
mod links;
mod looks;
mod neighbours;
mod operations;
mod regions;
mod relay;
mod relays;
mod report;
mod stage;
mod visits;
mod watch;

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use pathweave_datapath::{Device, DeviceConfig, Driving, OpenError, Turned, Unprotected};
use pathweave_shm::{Brought, Ticket};

pub(crate) use self::core::Core;
pub(crate) use operations::{Amo, AtomicFetch, Incoming, MessageKind, Outgoing, Rma, RmaKind, Wanted};
pub(crate) use report::{BoundCounter, BoundQueue, Reporter, Selection};
use watch::{LaneKey, Vigil, Watched};

use crate::abi::errno::*;
use crate::getinfo::Interface;
use crate::guard::{Answer, Errno};
use crate::log::{Level, say, say_once};
use crate::object::domain::{Domain, Mr, OpensMemory};
use crate::object::queue::Entry;
use crate::object::uses::Use;
use crate::object::vector::Vector;
use crate::object::{Next, Progress, crowd, lock};
use crate::settings;

/// Paths of a connection through a network, unless said otherwise. Switches hash source ports: of 16 none takes a given one of four
/// spines in one connection of 100, of 32 in one of 10,000, and its rate is lost to that connection.
const PATHS: u16 = 32;
/// Time for which closing an endpoint waits for operations that the application has not waited for. For what it cannot wait for, as
/// there is no entry of it, that is as long as a peer may be silent.
const LINGER: Duration = Duration::from_secs(1);
/// Time for which closing memory waits for peers on this host to finish what they do to it; for others it is [`LINGER`].
const GRACE: Duration = Duration::from_millis(200);

/// What is bound before the endpoint is enabled.
pub(crate) struct New {
    device: Device,
    pub(crate) reporter: Reporter,
    pub(crate) vector: Option<(Arc<Vector>, Use)>,
}

/// How far an endpoint has come.
pub(crate) enum State {
    New(Box<New>),
    Enabled(Box<Core>),
    Closed,
}

/// An endpoint.
pub(crate) struct Endpoint {
    own: Mutex<SocketAddr>,
    /// Capabilities it was opened with.
    pub(crate) caps: u64,
    pub(crate) domain: Arc<Domain>,
    /// Flags of operations that bring none of their own.
    pub(crate) transmit_flags: AtomicU64,
    pub(crate) receive_flags: AtomicU64,
    /// A multi-receive with less room than this is done, in bytes.
    pub(crate) least_room: AtomicUsize,
    boot: u64,
    /// How often the application has looked.
    looks: AtomicU64,
    /// How often in a row it has found nothing.
    vain: AtomicU64,
    state: Mutex<State>,
}

/// A number that is not the one of the start before.
fn random() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

fn device_config(domain: &Domain, bind: SocketAddr, boot: u64) -> DeviceConfig {
    let settings = &domain.settings;
    let mut config = DeviceConfig::new(bind);
    // Loopback is one path, whatever ports packets have.
    let paths = if bind.ip().is_loopback() { 1 } else { PATHS };
    config.paths = settings.paths.unwrap_or(paths);
    config.protection = settings.protection;
    config.key = settings.key.clone();
    // Only said where protection is given up by name, in the environment.
    config.unprotected = Unprotected::Anywhere;
    config.scheme.clone_from(&settings.scheme);
    let all = || std::iter::once(&domain.interface).chain(&domain.others);
    // Of several at the same port, if one is wanted.
    let others = all().filter(|other| other.address != bind.ip());
    if all().any(|interface| interface.address == bind.ip()) {
        config.also_bind = others.map(|other| SocketAddr::new(other.address, bind.port())).collect();
    }
    if let Some(rate) = settings.rate(all()) {
        config.line_rate = rate;
    }
    let link_mtu = settings.link_mtu.or(all().map(Interface::link_mtu).min()).unwrap_or(1_500);
    // A link too small for packets of ours fails when the device opens.
    let _ = config.fit_link(link_mtu);
    config.driving = match settings.progress {
        settings::Progress::Auto => Driving::Standby,
        settings::Progress::Thread => Driving::Thread { core: None },
        settings::Progress::Caller => Driving::Caller,
    };
    config.waiting = settings.waiting;
    config.peer_timeout = settings.peer_timeout;
    config.connect_timeout = settings.peer_timeout;
    config.max_connections_per_peer = config.max_connections;
    config.answer_data = handshake::Answer { boot }.encode();
    config
}

/// Opens a device on the address of the domain's interface, or of `wish`, and of those used with it, on one of the ports that may
/// be used.
fn open_device(domain: &Domain, wish: Option<SocketAddr>, boot: u64) -> Answer<Device> {
    let ip = wish.map(|wish| wish.ip()).filter(|ip| !ip.is_unspecified()).unwrap_or(domain.interface.address);
    let port = wish.map_or(0, |wish| wish.port());
    let ports = match (&domain.settings.ports, port) {
        (Some(range), 0) => range.clone(),
        _ => port..=port,
    };
    let mut why = Errno(FI_EADDRINUSE);
    for port in ports {
        let config = device_config(domain, SocketAddr::new(ip, port), boot);
        let paths = config.paths;
        match Device::open(config) {
            Ok(device) => {
                if device.paths() < paths {
                    say_once(&format!(
                        "{} paths in place of {paths}: file descriptors or UDP ports are short; raise their limit (ulimit -n) or \
                         set PATHWEAVE_PATHS",
                        device.paths()
                    ));
                }
                return Ok(device);
            }
            Err(OpenError::PortInUse { .. }) => {}
            Err(error) => {
                why = match &error {
                    OpenError::NotLocal { .. } => Errno(FI_EADDRNOTAVAIL),
                    OpenError::Permission { .. } => Errno(FI_EACCES),
                    _ => Errno(FI_EOTHER),
                };
                say_once(&error.to_string());
                break;
            }
        }
    }
    say(Level::Warn, format_args!("no endpoint can be opened on {ip}"));
    Err(why)
}

impl Endpoint {
    /// Opens an endpoint; its address is final from now on.
    ///
    /// # Errors
    /// Why no socket can be had.
    pub(crate) fn open(domain: Arc<Domain>, wish: Option<SocketAddr>, caps: u64) -> Answer<Arc<Self>> {
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

    /// Changes what is bound.
    ///
    /// # Errors
    /// FI_EOPBADSTATE once it is enabled.
    pub(crate) fn bind(&self, change: impl FnOnce(&mut New)) -> Answer {
        match &mut *lock(&self.state) {
            State::New(new) => {
                change(new);
                Ok(())
            }
            State::Enabled(_) | State::Closed => Err(Errno(FI_EOPBADSTATE)),
        }
    }

    /// Its address: final once it is enabled.
    pub(crate) fn own(&self) -> SocketAddr {
        *lock(&self.own)
    }

    /// Opens it on another address.
    ///
    /// # Errors
    /// FI_EOPBADSTATE once it is enabled; why no socket can be had.
    pub(crate) fn rename(&self, to: SocketAddr) -> Answer {
        let State::New(new) = &mut *lock(&self.state) else { return Err(Errno(FI_EOPBADSTATE)) };
        new.device = open_device(&self.domain, Some(to), self.boot)?;
        *lock(&self.own) = new.device.local_addr();
        Ok(())
    }

    /// Begins to work.
    ///
    /// # Errors
    /// FI_ENOAV without an address vector, FI_EOPBADSTATE if it was enabled before.
    pub(crate) fn enable(self: &Arc<Self>) -> Answer {
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
        let core = Core::start(self, self.boot, device.clone(), new.reporter, vector, held)?;
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

    /// Works with what is enabled, and carries out what follows from it.
    ///
    /// # Errors
    /// FI_EOPBADSTATE before it is enabled; what `work` says. After FI_EAGAIN a pass has been run.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Core) -> Answer<T>) -> Answer<T> {
        let mut state = lock(&self.state);
        let State::Enabled(core) = &mut *state else { return Err(Errno(FI_EOPBADSTATE)) };
        let answer = work(core);
        match answer {
            Err(Errno(FI_EAGAIN)) => drop(core.pass()),
            _ => core.carry_out(),
        }
        answer
    }

    /// Does what can be done at once, but for the device, for a caller who looks into a queue. The device, if it is the caller's
    /// to turn and time for it.
    fn look(&self, core: &mut Core, queue: Option<usize>) -> (Next, Option<Entry>, Option<Device>) {
        // Written under the lock alone.
        let add_one = |count: &AtomicU64| count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        add_one(&self.looks);
        core.reporter.tray.hold_out(queue);
        let heard = core.look_at_lanes();
        let entry = core.reporter.tray.take_back();
        let is_callers = self.domain.settings.progress != settings::Progress::Thread;
        if heard {
            self.vain.store(0, Ordering::Relaxed);
            return (Next::Look, entry, None);
        }
        let device =
            (is_callers && core.looks_at_device(self.looks.load(Ordering::Relaxed))).then(|| core.device());
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

    /// Whether nothing is left to do for any peer.
    fn is_idle(&self) -> bool {
        match &*lock(&self.state) {
            State::Enabled(core) => core.is_idle(),
            State::New(_) | State::Closed => true,
        }
    }

    /// True if a peer has yet to get what the application cannot wait for.
    fn owes(&self) -> bool {
        match &*lock(&self.state) {
            State::Enabled(core) => core.owes(),
            State::New(_) | State::Closed => false,
        }
    }

    /// Waits for something for so long, making progress.
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

    /// Ends it. What was accepted without an entry to come is delivered, or fails with one; the loop's thread is gone when this
    /// returns.
    pub(crate) fn close(&self) {
        self.linger(LINGER, || self.is_idle());
        if !self.linger(self.domain.settings.peer_timeout, || !self.owes()) {
            if let State::Enabled(core) = &mut *lock(&self.state) {
                core.give_up_owed();
            }
            // What has failed is told once its memory is nobody's.
            self.linger(LINGER, || self.is_idle());
        }
        // Not under the lock: the loop's thread may wait for it, and is waited for here.
        let before = std::mem::replace(&mut *lock(&self.state), State::Closed);
        if let State::Enabled(core) = &before {
            core.reporter.queues().for_each(|bound| bound.queue.move_on());
        }
        drop(before);
    }

    /// In a child of a fork nothing is waited for: the threads are not there.
    pub(crate) fn abandon(&self) {
        if let Ok(mut state) = self.state.try_lock() {
            std::mem::forget(std::mem::replace(&mut *state, State::Closed));
        }
    }
}

impl Progress for Endpoint {
    fn progress(&self, queue: Option<usize>) -> (Next, Option<Entry>) {
        // Whoever holds the lock makes progress already, if it has a core. Who naps sleeps until it lets go.
        let Ok(mut state) = self.state.try_lock() else {
            return (if crowd::is_crowded() { Next::Nap } else { Next::Yield }, None);
        };
        let State::Enabled(core) = &mut *state else { return (Next::Yield, None) };
        let (next, entry, device) = self.look(core, queue);
        let looks = core.looks(Turned::Elsewhere);
        drop(state);
        let Some(device) = device else { return (next, entry) };
        // Not under the lock: it calls the hook, which runs a pass.
        let turned = device.progress();
        if let Ok(mut state) = self.state.try_lock()
            && let State::Enabled(core) = &mut *state
        {
            core.pass();
        }
        // It may be another thread that it waits for.
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

    fn bed(&self) -> Option<Device> {
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
    fn on_offer(&self, ticket: Ticket, brought: Brought) {
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

    fn keep_watch(&self, looked: &mut u64) -> Vigil {
        let looks = self.looks.load(Ordering::Relaxed);
        if std::mem::replace(looked, looks) != looks {
            // The application looks itself.
            return Vigil::Soon;
        }
        match &mut *lock(&self.state) {
            State::Enabled(core) => core.keep_watch(),
            State::New(_) | State::Closed => Vigil::Asleep,
        }
    }
}

impl OpensMemory for Endpoint {
    fn open(&self, mr: &Arc<Mr>) -> Answer {
        match &mut *lock(&self.state) {
            State::Enabled(core) => core.open_region(mr),
            // It joins when it is enabled.
            State::New(_) | State::Closed => Ok(()),
        }
    }

    fn close(&self, key: u64) -> Answer {
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
            // Who does not answer may be stopped, and goes on some day: it finds nothing under the key then.
            if let State::Enabled(core) = &mut *lock(&self.state) {
                core.withdraw_region(closing);
            }
            // Answers that were sent to a peer may have to be sent again as long as it counts as alive.
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

/// Keeps `Ordering` in one place for the flags.
pub(crate) fn flags(of: &AtomicU64) -> u64 {
    of.load(Ordering::Relaxed)
}
