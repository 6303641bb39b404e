//! A device: sockets, a loop, and what hangs on them.

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
use crate::shared::{Command, ConnectionShared, Dial, Listening, Reach, Shared};
use crate::stats::DeviceStats;
use crate::threads::Signal;

/// Sockets and the loop that drives them. Clones are the same device, which closes with the last clone and the last of
/// its connections.
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

    /// Opens a device over whatever carries packets.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn with_backend(config: DeviceConfig, backend: impl Backend + 'static) -> Result<Self, OpenError> {
        config.validate()?;
        Device::start(config, backend, Arc::default())
    }

    /// `signal`: what those who wait for anything at the device are told by.
    pub(super) fn start(
        mut config: DeviceConfig,
        backend: impl Backend + 'static,
        signal: Arc<Signal>,
    ) -> Result<Self, OpenError> {
        let (local, addresses) = (backend.local_addr(), backend.addresses());
        config.paths = config.paths.min(backend.paths());
        let paths = config.paths;
        let (driving, waiting, scheme) = (config.driving, config.waiting, config.scheme.clone());
        let shared = Arc::new(Shared::telling(backend.waker(), signal));
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

    /// From now on the loop calls `hook` when something has happened: a request was completed, a connection opened, refused,
    /// accepted or closed, a region released, or the loop has ended. In the loop's thread, once for all that a look at
    /// arrivals and timers has brought, and once soon after this call for what was before. What the hook posts goes out in
    /// the same turn and costs no system call.
    ///
    /// The hook must return soon: nothing moves meanwhile. It may use all of the library that does not wait for the loop; the
    /// rest panics there, for the loop would wait for itself. A panic of the hook is in the log and in
    /// [`DeviceStats::panics`], and otherwise changes nothing. A hook that holds a handle of the device keeps it open for
    /// ever: let it hold them by a [`Weak`](std::sync::Weak). Should it be the last to hold one, the device is closed
    /// without waiting for its thread.
    ///
    /// Where [callers](crate::Driving) turn the loop, the hook is called by who polls, waits or
    /// [turns](Device::progress), and never in a call that posts; and not for the end of the loop, which callers see.
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

    /// A new stream of what happens on connections, without any yet.
    pub fn events(&self) -> Events {
        Events::new(&self.inner)
    }

    /// Where peers reach it.
    pub fn local_addr(&self) -> SocketAddr {
        self.inner.local
    }

    /// All addresses at which they do; [`local_addr`](Device::local_addr) is the first.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.inner.addresses
    }

    /// Paths that it sends on: as many as were asked for, or fewer where the system had no more descriptors or ports.
    pub fn paths(&self) -> u16 {
        self.inner.paths
    }

    /// A new protection domain.
    ///
    /// # Errors
    /// [`TooManyDomains`].
    pub fn domain(&self) -> Result<ProtectionDomain, TooManyDomains> {
        self.inner.domains.take()
    }

    /// Lets peers open connections.
    ///
    /// # Errors
    /// [`OpenError::System`] if there is a listener already.
    pub fn listen(&self) -> Result<Listener, OpenError> {
        self.listen_for(None)
    }

    /// Lets peers open connections, which are in a protection domain.
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

    /// Opens a connection with the device's scheme.
    ///
    /// # Errors
    /// [`ConnectError`], at the latest after the configured `connect_timeout`.
    pub fn connect(&self, peer: SocketAddr) -> Result<Connection, ConnectError> {
        self.connect_with(peer, &self.inner.scheme.clone(), &[])
    }

    /// Opens a connection with a scheme of its own, and says something to the peer's application (at most 196 bytes,
    /// which it finds in [`ConnectionInfo::private_data`](crate::ConnectionInfo)).
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

    /// The same with a peer that is at `peer` and at the addresses of `others`: whichever answers is where the connection
    /// begins. All addresses that the peer listens at it uses in any case, once it is there; this is for the first contact, where one
    /// may be dead.
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

    /// The same with a connection that is in a protection domain.
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

    /// Waits for the outcome.
    fn finish(&self, mut opening: Opening) -> Result<Connection, ConnectError> {
        match self.inner.wait(None, || opening.outcome()) {
            Ok(outcome) => outcome.expect("nothing but an outcome ends a wait without a deadline"),
            Err(reason) => Err(ConnectError::DeviceClosed(reason)),
        }
    }

    /// Begins to open a connection that tells its own handle what happens on it.
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
        self.inner.ask(Command::Connect(Box::new(Dial {
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

    /// Opens a region to the peers of all connections that are in no protection domain of their own; its first byte has
    /// address 0. Nothing is waited for, so this may be called from the device's hook: the key is there at once, and whatever a peer
    /// sends after it was told of the key finds the region open, however it was told.
    ///
    /// # Errors
    /// [`RegisterError`].
    pub fn register(&self, region: &Region, access: Access) -> Result<Registration, RegisterError> {
        self.register_at(region, 0, access)
    }

    /// The same with its first byte under `address`.
    ///
    /// # Errors
    /// [`RegisterError`].
    pub fn register_at(
        &self,
        region: &Region,
        address: u64,
        access: Access,
    ) -> Result<Registration, RegisterError> {
        Registration::open(&self.inner, region, address, access, Reach::Domain(None))
    }

    /// Opens a region to the peers of the connections in a protection domain, its first byte under `address`, as
    /// [`register`](Device::register) does.
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
        Registration::open(&self.inner, region, address, access, Reach::Domain(Some(domain.clone())))
    }

    /// What it has counted; `None` once its loop has ended.
    pub fn stats(&self) -> Option<DeviceStats> {
        let answer = Arc::new(Mutex::new(None));
        self.inner.answer(Command::DeviceStats { answer: answer.clone() }, &answer).ok()
    }

    /// Waits until `ready` gives something; `None` after `timeout`. For waiting on several connections and a listener at
    /// once: `ready` is asked whenever something may have happened, and may only look, with
    /// [`Connection::take`], [`Connection::ended`] and [`Listener::take`](super::Listener::take). A connection that is over
    /// completes nothing more: who waits for one looks whether it has ended, too.
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

    /// Whether a domain is one of this device's.
    #[cfg(feature = "tokio")]
    pub(crate) fn knows(&self, domain: &ProtectionDomain) -> bool {
        self.inner.domains.know(domain)
    }

    /// The scheme of connections for which no other is named.
    #[cfg(feature = "tokio")]
    pub(crate) fn scheme(&self) -> &str {
        &self.inner.scheme
    }

    /// What the loop and this end have in common.
    #[cfg(feature = "tokio")]
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.inner.shared
    }

    /// Turns the loop once, where callers do ([`Driving::Caller`](crate::Driving), [`Driving::Standby`](crate::Driving)) and none
    /// does just now. Says whether this call has.
    pub fn progress(&self) -> Turned {
        self.inner.driver.nudge(&self.inner.shared)
    }

    /// The caller goes to sleep where it does not see what arrives here. With [`Driving::Standby`](crate::Driving) the
    /// device's thread takes the loop over at once, without waiting for a lull; otherwise this does nothing.
    pub fn rest(&self) {
        self.inner.driver.rest();
    }

    /// Has all that are in [`wait_until`](Device::wait_until) ask once more whether they are `ready`: what they wait for has come
    /// about elsewhere.
    pub fn rouse(&self) {
        self.inner.shared.rouse();
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").field("addresses", &self.inner.addresses).finish_non_exhaustive()
    }
}
