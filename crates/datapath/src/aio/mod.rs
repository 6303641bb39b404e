//! Asynchronous interface for tokio (feature `tokio`): waits are futures.
//!
//! A call posts its request at once and as quickly as in the blocking interface; the returned future only waits for
//! the completion. Requests therefore leave in the order of the calls, however their futures are polled. A future may
//! be dropped at any time: the request is carried out nevertheless, and its memory belongs to the network until then.
//! No message is lost with a future of [`Connection::recv`]. Receives are posted separately, with
//! [`Connection::give`], and a filled receive waits for the next task that asks. The thread of the device's loop
//! wakes only the task that waits for a completion.
//!
//! ```
//! use pathweave_datapath::{DeviceConfig, Region, aio};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let server = aio::Device::open(DeviceConfig::loopback())?;
//! let client = aio::Device::open(DeviceConfig::loopback())?;
//! let listener = server.listen()?;
//! let near = client.connect(server.local_addr()).await?;
//! let far = listener.accept().await?;
//!
//! far.give(Region::zeroed(100)?.all())?;
//! let sent = near.send(Region::from_bytes(b"a message")?.all());
//! assert_eq!(far.recv().await?.to_vec()?, b"a message");
//! assert_eq!(sent.await?.byte_len, 9);
//! # Ok(()) })
//! # }
//! ```

mod connection;
mod hub;

use std::net::SocketAddr;
use std::sync::Arc;

use pathweave_transport::Access;

pub use connection::{Connection, Received, Request, RequestError};

use crate::api;
use crate::config::{DeviceConfig, Driving};
use crate::error::{ConnectError, OpenError, RegisterError, TooManyDomains, WaitError};
use crate::region::Region;
use crate::stats::DeviceStats;
use hub::Hub;

/// A device: sockets and the loop that drives them, in its own thread. Clones refer to the same device, which closes
/// with the last clone and the last of its connections.
#[derive(Clone, Debug)]
pub struct Device {
    device: api::Device,
    hub: Arc<Hub>,
}

impl Device {
    /// Opens a device over UDP sockets. Its loop always has a thread, even if `config` selects callers, since waiting
    /// tasks do not drive the loop.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(mut config: DeviceConfig) -> Result<Self, OpenError> {
        if matches!(config.driving, Driving::Caller | Driving::Standby) {
            config.driving = Driving::Thread { core: None };
        }
        let device = api::Device::open(config)?;
        let hub = Hub::of(&device);
        Ok(Device { device, hub })
    }

    /// Returns the address at which peers reach the device.
    pub fn local_addr(&self) -> SocketAddr {
        self.device.local_addr()
    }

    /// Accepts connections from peers.
    ///
    /// # Errors
    /// [`OpenError::System`] if there is a listener already.
    pub fn listen(&self) -> Result<Listener, OpenError> {
        Ok(Listener { listener: self.device.listen()?, device: self.clone() })
    }

    /// Accepts connections from peers into a protection domain.
    ///
    /// # Errors
    /// [`OpenError::System`] if there is a listener already, or the domain is another device's.
    pub fn listen_in(&self, domain: &api::ProtectionDomain) -> Result<Listener, OpenError> {
        Ok(Listener { listener: self.device.listen_in(domain)?, device: self.clone() })
    }

    /// Opens a connection with the device's scheme. If the future is dropped, the attempt is given up, and a
    /// connection that has opened is closed.
    ///
    /// # Errors
    /// [`ConnectError`], at the latest after the configured `connect_timeout`.
    pub async fn connect(&self, peer: SocketAddr) -> Result<Connection, ConnectError> {
        self.open_for(None, peer, self.device.scheme(), &[]).await
    }

    /// Opens a connection with the given scheme and private data; see
    /// [`api::Device::connect_with`](crate::Device::connect_with).
    ///
    /// # Errors
    /// [`ConnectError`], at the latest after the configured `connect_timeout`.
    pub async fn connect_with(
        &self,
        peer: SocketAddr,
        scheme: &str,
        private_data: &[u8],
    ) -> Result<Connection, ConnectError> {
        self.open_for(None, peer, scheme, private_data).await
    }

    /// Opens a connection in a protection domain.
    ///
    /// # Errors
    /// [`ConnectError`], at the latest after the configured `connect_timeout`.
    pub async fn connect_in(
        &self,
        domain: &api::ProtectionDomain,
        peer: SocketAddr,
        scheme: &str,
        private_data: &[u8],
    ) -> Result<Connection, ConnectError> {
        if !self.device.knows(domain) {
            return Err(ConnectError::OtherDevice);
        }
        self.open_for(Some(domain.clone()), peer, scheme, private_data).await
    }

    async fn open_for(
        &self,
        domain: Option<api::ProtectionDomain>,
        peer: SocketAddr,
        scheme: &str,
        private_data: &[u8],
    ) -> Result<Connection, ConnectError> {
        let mut opening = self.device.begin_connect(domain, peer, scheme, private_data);
        loop {
            // Created before the checks, so that no later notification is missed.
            let stirred = self.hub.stirred();
            if let Some(outcome) = opening.outcome() {
                return Ok(Connection::new(outcome?, &self.hub));
            }
            stirred.await;
        }
    }

    /// Creates a protection domain; see [`crate::Device::domain`].
    ///
    /// # Errors
    /// [`TooManyDomains`].
    pub fn domain(&self) -> Result<api::ProtectionDomain, TooManyDomains> {
        self.device.domain()
    }

    /// Opens a region to the peers of the connections in a protection domain; see [`crate::Device::register_in`].
    ///
    /// # Errors
    /// [`RegisterError`].
    pub fn register_in(
        &self,
        domain: &api::ProtectionDomain,
        region: &Region,
        address: u64,
        access: Access,
    ) -> Result<api::Registration, RegisterError> {
        self.device.register_in(domain, region, address, access)
    }

    /// Opens a region to the peers of all connections that are in the device's own protection domain; its first byte
    /// has address 0.
    ///
    /// # Errors
    /// [`RegisterError`].
    pub fn register(&self, region: &Region, access: Access) -> Result<api::Registration, RegisterError> {
        self.device.register(region, access)
    }

    /// Returns the device's statistics; `None` once the loop has ended. Blocks for a turn of the loop.
    pub fn stats(&self) -> Option<DeviceStats> {
        self.device.stats()
    }
}

/// Accepts connections from peers, until it is dropped. Without one they are refused.
#[derive(Debug)]
pub struct Listener {
    listener: api::Listener,
    device: Device,
}

impl Listener {
    /// Waits for the next connection that a peer has opened, and returns it. None is lost if the future is dropped.
    ///
    /// # Errors
    /// [`WaitError::DeviceClosed`].
    pub async fn accept(&self) -> Result<Connection, WaitError> {
        loop {
            // Created before the checks, so that no later notification is missed.
            let called = self.device.hub.called();
            if let Some(connection) = self.listener.take() {
                return Ok(Connection::new(connection, &self.device.hub));
            }
            if let Some(reason) = self.device.device.shared().broken.get() {
                return Err(WaitError::DeviceClosed(reason.clone()));
            }
            called.await;
        }
    }
}
