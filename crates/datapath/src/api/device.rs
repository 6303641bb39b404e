//! A device: sockets and the loop that drives them.

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pathweave_transport::{Access, Keys};

use super::connection::Connection;
use super::domain::{Numbers, ProtectionDomain};
use super::driver::{Driver, Turned};
use super::events::Events;
use super::inner::Inner;
use super::listener::Listener;
use super::memory::Registration;
use super::opening::Opening;
use crate::backend::{Backend, UdpBackend};
use crate::config::DeviceConfig;
use crate::engine;
use crate::error::{ConnectError, HookTaken, OpenError, RegisterError, TooManyDomains, WaitError};
use crate::event_loop::Drive;
use crate::hook::Hook;
use crate::region::Region;
use crate::shared::{AccessScope, Command, ConnectRequest, ConnectionShared, Listening, Shared};
use crate::stats::DeviceStats;
use crate::threads::Signal;

/// A device: sockets and the loop that drives them. Clones refer to the same device, which closes with the last clone
/// and the last of its connections.
#[derive(Clone)]
pub struct Device {
    pub(super) inner: Arc<Inner>,
}

impl Device {
    /// Opens a device over UDP sockets.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(config: DeviceConfig) -> Result<Self, OpenError> {
        config.validate()?;
        let backend = UdpBackend::open(&config.udp())
            .map_err(|(address, error)| OpenError::of_socket(address, error))?;
        Device::start(config, backend, Arc::default())
    }

    /// Opens a device over another backend.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn with_backend(config: DeviceConfig, backend: impl Backend + 'static) -> Result<Self, OpenError> {
        config.validate()?;
        Device::start(config, backend, Arc::default())
    }

    /// `signal`: wakes the threads that wait for anything at the device.
    pub(super) fn start(
        mut config: DeviceConfig,
        backend: impl Backend + 'static,
        signal: Arc<Signal>,
    ) -> Result<Self, OpenError> {
        let (local, addresses) = (backend.local_addr(), backend.addresses());
        config.paths = config.paths.min(backend.paths());
        let paths = config.paths;
        let (driving, waiting, scheme) = (config.driving, config.waiting, config.scheme.clone());
        let shared = Arc::new(Shared::with_signal(backend.waker(), signal));
        let (keys, queue_depth) = (Arc::new(Mutex::new(Keys::new())), config.queue_depth);
        let engine = engine::open(config, backend, shared.clone(), keys.clone())
            .map_err(|error| OpenError::System { address: local, source: std::io::Error::other(error) })?;
        let engine: Box<dyn Drive> = Box::new(engine);
        let driver = Driver::start(engine, &shared, local, driving, waiting)?;
        let listening = AtomicBool::new(false);
        let domains = Numbers::new();
        let inner =
            Inner { shared, driver, local, addresses, paths, scheme, listening, domains, keys, queue_depth };
        Ok(Device { inner: Arc::new(inner) })
    }

    /// Sets a hook that the loop calls when there are events: a request has completed, a connection was opened,
    /// refused, accepted or closed, a region was released, or the loop has ended. The hook runs in the loop's thread,
    /// once for all events that one check of arrivals and timers has produced. It also runs once soon after this
    /// call, for earlier events. Requests that the hook posts leave in the same turn and cost no system call.
    ///
    /// The hook must return soon, since the loop is blocked meanwhile. It may use everything in the library that does
    /// not wait for the loop; other calls panic there, as the loop would wait for itself. A panic of the hook is
    /// recorded in the log and in [`DeviceStats::panics`], and has no other effect. A hook that owns a handle of the
    /// device keeps the device open forever: let it own a [`Weak`](std::sync::Weak) instead. If the hook drops the
    /// last handle, the device is closed without waiting for its thread.
    ///
    /// If [callers](crate::Driving) drive the loop, the hook runs in the thread that polls, waits or
    /// [drives](Device::progress), and never in a call that posts. It is then not called for the end of the loop,
    /// which callers see themselves.
    ///
    /// # Errors
    /// [`HookTaken`].
    ///
    /// ```
    /// use pathweave_datapath::{Device, DeviceConfig, Event, Events, Region};
    /// use std::sync::{Arc, Mutex, mpsc};
    ///
    /// struct Server {
    ///     events: Events,
    ///     receives: Region,
    ///     open: Mutex<Vec<pathweave_datapath::Connection>>,
    /// }
    /// impl Server {
    ///     // Answers each message with itself. Runs in the loop's thread.
    ///     fn progress(&self) -> Result<(), Box<dyn std::error::Error>> {
    ///         let mut open = self.open.lock().unwrap();
    ///         while let Some(event) = self.events.take() {
    ///             match event {
    ///                 Event::Accepted(connection) => {
    ///                     connection.recv(1, self.receives.all())?;
    ///                     open.push(connection);
    ///                 }
    ///                 Event::Completed(done) if done.wr_id == 1 && done.is_success() => {
    ///                     let from = open.iter().find(|open| open.id() == done.connection).unwrap();
    ///                     from.send(2, self.receives.slice(0..done.byte_len as usize)?)?;
    ///                 }
    ///                 _ => {}
    ///             }
    ///         }
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let device = Device::open(DeviceConfig::loopback())?;
    /// let server = Arc::new(Server {
    ///     events: device.events(),
    ///     receives: Region::zeroed(100)?,
    ///     open: Mutex::default(),
    /// });
    /// let _accepting = server.events.accept()?;
    /// let weak = Arc::downgrade(&server);
    /// device.set_hook(move || {
    ///     if let Some(server) = weak.upgrade() {
    ///         server.progress().unwrap();
    ///     }
    /// })?;
    ///
    /// let client = Device::open(DeviceConfig::loopback())?;
    /// let connection = client.connect(device.local_addr())?;
    /// let answer = Region::zeroed(100)?;
    /// connection.recv(1, answer.all())?;
    /// connection.send(2, Region::from_bytes(b"echo")?.all())?;
    /// while connection.wait(std::time::Duration::from_secs(5))?.wr_id != 1 {}
    /// assert_eq!(answer.to_vec(0..4)?, b"echo");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_hook(&self, hook: impl Fn() + Send + Sync + 'static) -> Result<(), HookTaken> {
        self.inner.shared.hook.set(Hook::new(hook)).map_err(|_| HookTaken)?;
        self.inner.ask_for_later(Command::Look);
        Ok(())
    }

    /// Returns a new event stream, without connections yet.
    pub fn events(&self) -> Events {
        Events::new(&self.inner)
    }

    /// Returns the address at which peers reach the device.
    pub fn local_addr(&self) -> SocketAddr {
        self.inner.local
    }

    /// Returns all addresses at which peers reach the device; [`local_addr`](Device::local_addr) is the first.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.inner.addresses
    }

    /// Returns the number of paths to send on: as configured, or fewer if the system had no more descriptors or
    /// ports.
    pub fn paths(&self) -> u16 {
        self.inner.paths
    }

    /// Creates a protection domain.
    ///
    /// # Errors
    /// [`TooManyDomains`].
    pub fn domain(&self) -> Result<ProtectionDomain, TooManyDomains> {
        self.inner.domains.take()
    }

    /// Accepts connections from peers.
    ///
    /// # Errors
    /// [`OpenError::System`] if there is a listener already.
    pub fn listen(&self) -> Result<Listener, OpenError> {
        self.listen_for(None)
    }

    /// Accepts connections from peers into a protection domain.
    ///
    /// # Errors
    /// [`OpenError::System`] if there is a listener already, or the domain is another device's.
    pub fn listen_in(&self, domain: &ProtectionDomain) -> Result<Listener, OpenError> {
        self.listen_for(Some(domain.clone()))
    }

    fn listen_for(&self, domain: Option<ProtectionDomain>) -> Result<Listener, OpenError> {
        self.inner.listen(Listening { domain, stream: None })?;
        Ok(Listener { inner: self.inner.clone() })
    }

    /// Opens a connection with the device's scheme, and waits for it.
    ///
    /// # Errors
    /// [`ConnectError`], at the latest after the configured `connect_timeout`.
    pub fn connect(&self, peer: SocketAddr) -> Result<Connection, ConnectError> {
        self.connect_with(peer, &self.inner.scheme.clone(), &[])
    }

    /// Opens a connection with the given scheme and private data of at most 196 bytes. The peer's application gets
    /// the data in [`ConnectionInfo::private_data`](crate::ConnectionInfo).
    ///
    /// # Errors
    /// [`ConnectError`], at the latest after the configured `connect_timeout`.
    pub fn connect_with(
        &self,
        peer: SocketAddr,
        scheme: &str,
        private_data: &[u8],
    ) -> Result<Connection, ConnectError> {
        self.connect_for(None, peer, scheme, private_data)
    }

    /// Opens a connection like [`connect_with`](Device::connect_with) with a peer that has several addresses: the
    /// connection begins at the first one that answers. An open connection uses all addresses of the peer in any
    /// case; this call is for the first contact, when one of them may be down.
    ///
    /// # Errors
    /// [`ConnectError`], about `peer`, at the latest after the configured `connect_timeout`.
    pub fn connect_any(
        &self,
        peer: SocketAddr,
        others: &[SocketAddr],
        scheme: &str,
        private_data: &[u8],
    ) -> Result<Connection, ConnectError> {
        self.finish(self.dial(None, (peer, others.to_vec()), scheme, private_data))
    }

    /// Opens a connection like [`connect_with`](Device::connect_with) in a protection domain.
    ///
    /// # Errors
    /// [`ConnectError`], at the latest after the configured `connect_timeout`.
    pub fn connect_in(
        &self,
        domain: &ProtectionDomain,
        peer: SocketAddr,
        scheme: &str,
        private_data: &[u8],
    ) -> Result<Connection, ConnectError> {
        if !self.inner.domains.know(domain) {
            return Err(ConnectError::OtherDevice);
        }
        self.connect_for(Some(domain.clone()), peer, scheme, private_data)
    }

    fn connect_for(
        &self,
        domain: Option<ProtectionDomain>,
        peer: SocketAddr,
        scheme: &str,
        private_data: &[u8],
    ) -> Result<Connection, ConnectError> {
        self.finish(self.begin_connect(domain, peer, scheme, private_data))
    }

    /// Waits for the outcome of an attempt.
    fn finish(&self, mut opening: Opening) -> Result<Connection, ConnectError> {
        match self.inner.wait(None, || opening.outcome()) {
            Ok(outcome) => outcome.expect("nothing but an outcome ends a wait without a deadline"),
            Err(reason) => Err(ConnectError::DeviceClosed(reason)),
        }
    }

    /// Starts to open a connection whose events go to its own handle.
    pub(crate) fn begin_connect(
        &self,
        domain: Option<ProtectionDomain>,
        peer: SocketAddr,
        scheme: &str,
        private_data: &[u8],
    ) -> Opening {
        self.dial(domain, (peer, Vec::new()), scheme, private_data)
    }

    fn dial(
        &self,
        domain: Option<ProtectionDomain>,
        (peer, others): (SocketAddr, Vec<SocketAddr>),
        scheme: &str,
        private_data: &[u8],
    ) -> Opening {
        let connection = Arc::new(ConnectionShared::new(self.inner.queue_depth, None));
        self.inner.ask(Command::Connect(Box::new(ConnectRequest {
            peer,
            others,
            private_data: private_data.to_vec(),
            scheme: scheme.into(),
            domain,
            connection: connection.clone(),
            stream: None,
        })));
        Opening { inner: self.inner.clone(), connection: Some(connection) }
    }

    /// Opens a region to the peers of all connections that are in the device's own protection domain; its first byte
    /// has address 0. Does not wait for the loop, so it may be called in the device's hook: the key is valid at once.
    /// A request that a peer sends after it has received the key, by whatever means, finds the region open.
    ///
    /// # Errors
    /// [`RegisterError`].
    pub fn register(&self, region: &Region, access: Access) -> Result<Registration, RegisterError> {
        self.register_at(region, 0, access)
    }

    /// Opens a region like [`register`](Device::register), with its first byte at `address`.
    ///
    /// # Errors
    /// [`RegisterError`].
    pub fn register_at(
        &self,
        region: &Region,
        address: u64,
        access: Access,
    ) -> Result<Registration, RegisterError> {
        Registration::open(&self.inner, region, address, access, AccessScope::Domain(None))
    }

    /// Opens a region like [`register`](Device::register) to the peers of the connections in a protection domain,
    /// with its first byte at `address`.
    ///
    /// # Errors
    /// [`RegisterError`].
    pub fn register_in(
        &self,
        domain: &ProtectionDomain,
        region: &Region,
        address: u64,
        access: Access,
    ) -> Result<Registration, RegisterError> {
        if !self.inner.domains.know(domain) {
            return Err(RegisterError::OtherDevice);
        }
        Registration::open(&self.inner, region, address, access, AccessScope::Domain(Some(domain.clone())))
    }

    /// Returns the device's statistics; `None` once the loop has ended.
    pub fn stats(&self) -> Option<DeviceStats> {
        let answer = Arc::new(Mutex::new(None));
        self.inner.answer(Command::DeviceStats { answer: answer.clone() }, &answer).ok()
    }

    /// Waits until `ready` returns a value; returns `None` after `timeout`. For waiting on several connections and a
    /// listener at once. `ready` is called whenever something may have happened. It may only look for events, with
    /// [`Connection::take`], [`Connection::ended`] and [`Listener::take`](super::Listener::take). A closed connection
    /// produces no completions, so check whether it has ended as well.
    ///
    /// # Errors
    /// [`WaitError::DeviceClosed`].
    pub fn wait_until<T>(
        &self,
        timeout: Duration,
        ready: impl FnMut() -> Option<T>,
    ) -> Result<Option<T>, WaitError> {
        self.inner.wait(Instant::now().checked_add(timeout), ready).map_err(WaitError::DeviceClosed)
    }

    /// Returns true if a domain belongs to this device.
    #[cfg(feature = "tokio")]
    pub(crate) fn knows(&self, domain: &ProtectionDomain) -> bool {
        self.inner.domains.know(domain)
    }

    /// Returns the default scheme of connections.
    #[cfg(feature = "tokio")]
    pub(crate) fn scheme(&self) -> &str {
        &self.inner.scheme
    }

    /// Returns the state shared with the loop.
    #[cfg(feature = "tokio")]
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.inner.shared
    }

    /// Drives the loop once, if callers drive it ([`Driving::Caller`](crate::Driving),
    /// [`Driving::Standby`](crate::Driving)) and no other thread does at the moment. Returns whether this call has
    /// driven it.
    pub fn progress(&self) -> Turned {
        self.inner.driver.drive_once(&self.inner.shared)
    }

    /// Announces that the caller goes to sleep where it does not see arrivals. With
    /// [`Driving::Standby`](crate::Driving) the device's thread takes the loop over at once, without waiting for a
    /// lull. Otherwise this does nothing.
    pub fn rest(&self) {
        self.inner.driver.rest();
    }

    /// Makes all threads in [`wait_until`](Device::wait_until) check again whether they are `ready`, since their
    /// condition may have become true for another reason.
    pub fn rouse(&self) {
        self.inner.shared.interrupt();
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").field("addresses", &self.inner.addresses).finish_non_exhaustive()
    }
}
