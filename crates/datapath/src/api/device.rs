//! A device: sockets, a loop, and what hangs on them.

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crossbeam_queue::SegQueue;

use pathweave_transport::Access;

use super::connection::Connection;
use super::domain::{Numbers, ProtectionDomain};
use super::driver::Driver;
use super::inner::Inner;
use super::listener::Listener;
use super::memory::Registration;
use crate::backend::{Backend, UdpBackend};
use crate::config::DeviceConfig;
use crate::engine::{self, QUEUE_DEPTH};
use crate::error::{ConnectError, OpenError, RegisterError, TooManyDomains, WaitError};
use crate::event_loop::Drive;
use crate::region::Region;
use crate::shared::{Command, ConnectionShared, Listening, Reach, Shared};
use crate::state::ConnectionState;
use crate::stats::DeviceStats;

/// Sockets and the loop that drives them. Clones are the same device, which closes with the last clone and the last of
/// its connections.
#[derive(Clone)]
pub struct Device {
    inner: Arc<Inner>,
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
        let ports = backend.source_ports();
        Device::start(config, backend, ports)
    }

    /// Opens a device over whatever carries packets.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn with_backend(config: DeviceConfig, backend: impl Backend + 'static) -> Result<Self, OpenError> {
        config.validate()?;
        Device::start(config, backend, Vec::new())
    }

    fn start(
        mut config: DeviceConfig,
        backend: impl Backend + 'static,
        ports: Vec<u16>,
    ) -> Result<Self, OpenError> {
        let local = backend.local_addr();
        config.paths = config.paths.min(backend.paths());
        let (driving, waiting, scheme) = (config.driving, config.waiting, config.scheme.clone());
        let shared = Arc::new(Shared::new(backend.waker()));
        let engine = engine::open(config, backend, ports, shared.clone())
            .map_err(|error| OpenError::System { address: local, source: std::io::Error::other(error) })?;
        let engine: Box<dyn Drive> = Box::new(engine);
        let driver = Driver::start(engine, &shared, local, driving, waiting)?;
        let listening = AtomicBool::new(false);
        let domains = Numbers::new();
        Ok(Device { inner: Arc::new(Inner { shared, driver, local, scheme, listening, domains }) })
    }

    /// Where peers reach it.
    pub fn local_addr(&self) -> SocketAddr {
        self.inner.local
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
        if !self.inner.domains.know(domain) {
            let source = std::io::Error::other("the protection domain is not one of this device's");
            return Err(OpenError::System { address: self.inner.local, source });
        }
        self.listen_for(Some(domain.clone()))
    }

    fn listen_for(&self, domain: Option<ProtectionDomain>) -> Result<Listener, OpenError> {
        if self.inner.listening.swap(true, Ordering::AcqRel) {
            let source = std::io::Error::other("the device has a listener already");
            return Err(OpenError::System { address: self.inner.local, source });
        }
        self.inner.ask(Command::Listen(Some(Listening(domain))));
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
        let completions = Arc::new(SegQueue::new());
        let shared = Arc::new(ConnectionShared::new(completions, QUEUE_DEPTH, QUEUE_DEPTH));
        self.inner.ask(Command::Connect {
            peer,
            private_data: private_data.to_vec(),
            scheme: scheme.into(),
            domain,
            connection: shared.clone(),
        });
        let decided = || (shared.state() != ConnectionState::Opening).then_some(());
        self.inner.wait(None, decided).map_err(ConnectError::DeviceClosed)?;
        match shared.refused.get() {
            Some(error) => Err(error.clone()),
            None => Ok(Connection::new(self.inner.clone(), shared)),
        }
    }

    /// Opens a region to the peers of all connections that are in no protection domain of their own; its first byte has
    /// address 0.
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

    /// Opens a region to the peers of the connections in a protection domain, its first byte under `address`.
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

    /// What the loop and this end have in common.
    #[cfg(feature = "tokio")]
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.inner.shared
    }

    /// Turns the loop once, where [`Driving::Caller`](crate::Driving::Caller) says that callers do.
    pub fn progress(&self) {
        self.inner.driver.nudge(&self.inner.shared);
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").field("local_addr", &self.inner.local).finish_non_exhaustive()
    }
}
