//! Several loops as one device.

use std::fmt;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use pathweave_transport::Access;

use super::connection::Connection;
use super::device::Device;
use super::inner::Inner;
use super::listener::Listener;
use super::memory::{Registration, Remote};
use crate::backend::{Backend, SourcePorts, UdpBackend};
use crate::config::{ConfigError, DeviceConfig, Driving, check};
use crate::error::{ConnectError, OpenError, RegisterError, WaitError};
use crate::region::Region;
use crate::threads::Signal;

/// Largest number of loops of one device.
const MOST_LOOPS: usize = 64;

/// Several loops as one device, for hosts whose links are faster than a core. Each loop is a thread with its own
/// sockets, ports and connections, and shares no lock and no counter with the others. A connection belongs to one
/// loop for its life.
///
/// Loops are distinguished by ports: peers know [all of them](Loops::addresses), and connections are
/// [distributed](Loops::connect) over the loops of both ends in turn. Otherwise each loop is a [`Device`].
///
/// ```
/// use pathweave_datapath::{Access, DeviceConfig, Loops, Region};
/// use std::time::Duration;
///
/// let patience = Duration::from_secs(5);
/// let server = Loops::open(&DeviceConfig::loopback(), 2)?;
/// let client = Loops::open(&DeviceConfig::loopback(), 2)?;
/// let listener = server.listen()?;
/// let memory = server.register(&Region::zeroed(100)?, Access::WRITE)?;
/// for number in 0..4 {
///     let near = client.connect(&server.addresses())?;
///     let far = listener.accept(patience)?;
///     // A SEND would tell the peer this.
///     let place = memory.remote(&far, number).expect("a connection of the same device");
///     near.write(number, Region::from_bytes(b"x")?.all(), place)?;
///     assert_eq!(near.wait(patience)?.result(), Ok(1));
/// }
/// assert_eq!(memory.region().to_vec(0..5)?, b"xxxx\0");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Loops {
    devices: Vec<Device>,
    /// Number of connections distributed so far.
    dealt: AtomicUsize,
}

impl Loops {
    /// Opens 1 to 64 loops over UDP sockets. The first one has the port of `config.bind`, the others the ports after
    /// it; with port 0 each has any free port. With a core in `config.driving` the other loops are pinned to the
    /// cores after it.
    ///
    /// # Errors
    /// [`OpenError`]; also if `config.driving` is not [`Driving::Thread`].
    pub fn open(config: &DeviceConfig, loops: usize) -> Result<Self, OpenError> {
        let mut held = hold_ports(config, loops);
        Loops::with_backends(config, loops, |config| {
            drop(held.next());
            UdpBackend::open(&config.udp()).map_err(|(address, error)| OpenError::of_socket(address, error))
        })
    }

    /// Opens loops over another backend; `open` is called for each loop with its configuration.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn with_backends<B: Backend + 'static>(
        config: &DeviceConfig,
        loops: usize,
        mut open: impl FnMut(&DeviceConfig) -> Result<B, OpenError>,
    ) -> Result<Self, OpenError> {
        check((1..=MOST_LOOPS).contains(&loops), "loops", loops, "1 to 64")?;
        let signal = Arc::new(Signal::default());
        let device = |index| {
            let config = of_loop(config, index)?;
            config.validate()?;
            let backend = open(&config)?;
            Device::start(config, backend, signal.clone())
        };
        let devices = (0..loops).map(device).collect::<Result<_, _>>()?;
        Ok(Loops { devices, dealt: AtomicUsize::new(0) })
    }

    /// Returns the device of each loop, for operations on single loops such as statistics.
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// Returns the address of each loop, at which peers reach it.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.devices.iter().map(Device::local_addr).collect()
    }

    /// Opens a connection with the configured scheme to a peer that has loops at these addresses: from the next loop
    /// of this end, to the next loop of the peer.
    ///
    /// # Errors
    /// [`ConnectError`], at the latest after the configured `connect_timeout`.
    pub fn connect(&self, peer: &[SocketAddr]) -> Result<Connection, ConnectError> {
        check(!peer.is_empty(), "peer addresses", "none", "one a loop of the peer's")?;
        let number = self.dealt.fetch_add(1, Ordering::Relaxed);
        self.devices[number % self.devices.len()].connect(peer[number % peer.len()])
    }

    /// Accepts connections from peers to any loop.
    ///
    /// # Errors
    /// [`OpenError::System`] if there is a listener already.
    pub fn listen(&self) -> Result<LoopsListener, OpenError> {
        let listeners = self.devices.iter().map(Device::listen).collect::<Result<_, _>>()?;
        Ok(LoopsListener { listeners })
    }

    /// Opens a region to the peers of all connections; its first byte has address 0.
    ///
    /// # Errors
    /// [`RegisterError`].
    pub fn register(&self, region: &Region, access: Access) -> Result<LoopsRegistration, RegisterError> {
        let of_loop = |device: &Device| device.register(region, access);
        Ok(LoopsRegistration { of_loops: self.devices.iter().map(of_loop).collect::<Result<_, _>>()? })
    }

    /// Waits until `ready` returns a value; returns `None` after `timeout`. Like [`Device::wait_until`], but for
    /// events of any loop.
    ///
    /// # Errors
    /// [`WaitError::DeviceClosed`].
    pub fn wait_until<T>(
        &self,
        timeout: Duration,
        ready: impl FnMut() -> Option<T>,
    ) -> Result<Option<T>, WaitError> {
        wait_at(|| self.devices.iter().map(|device| &device.inner), timeout, ready)
    }
}

/// Waits for events of all loops; fails if one has ended. All loops share one signal, so waiting at the first covers
/// all.
fn wait_at<'l, T, I: Iterator<Item = &'l Arc<Inner>>>(
    loops: impl Fn() -> I,
    timeout: Duration,
    mut ready: impl FnMut() -> Option<T>,
) -> Result<Option<T>, WaitError> {
    let look = || {
        let broken = || loops().find_map(|of_loop| of_loop.shared.broken.get());
        ready().map(Ok).or_else(|| broken().map(|reason| Err(reason.clone())))
    };
    let deadline = Instant::now().checked_add(timeout);
    let first = loops().next().expect("there is a loop");
    first.wait(deadline, look).and_then(Option::transpose).map_err(WaitError::DeviceClosed)
}

/// Reserves the ports of all loops, so that no path of one loop takes the port of a later one. Errors are reported
/// when the loop itself opens.
fn hold_ports(config: &DeviceConfig, loops: usize) -> impl Iterator<Item = Vec<UdpSocket>> + use<> {
    let of_loop = |index| {
        let config = of_loop(config, index).ok()?;
        let addresses = std::iter::once(config.bind).chain(config.also_bind);
        let named = addresses.filter(|address| address.port() != 0);
        Some(named.filter_map(|address| UdpSocket::bind(address).ok()).collect())
    };
    (0..loops.min(MOST_LOOPS)).map_while(of_loop).collect::<Vec<_>>().into_iter()
}

/// Returns the configuration of one loop.
fn of_loop(config: &DeviceConfig, index: usize) -> Result<DeviceConfig, ConfigError> {
    let mut config = config.clone();
    let offset = u16::try_from(index).unwrap_or(u16::MAX);
    for address in std::iter::once(&mut config.bind).chain(&mut config.also_bind) {
        if address.port() != 0 {
            let port = address.port().checked_add(offset);
            check(port.is_some(), "bind port", *address, "a port with one a loop after it, up to 65535")?;
            address.set_port(port.unwrap_or_default());
        }
    }
    if let SourcePorts::From(first) = config.source_ports {
        let moved = config.paths.checked_mul(offset).and_then(|by| first.checked_add(by));
        let allowed = "a port with all paths of all loops after it, up to 65535";
        check(moved.is_some(), "first source port", first, allowed)?;
        config.source_ports = SourcePorts::From(moved.unwrap_or_default());
    }
    config.driving = match config.driving {
        Driving::Thread { core } => Driving::Thread { core: core.map(|core| core + index) },
        other @ (Driving::Caller | Driving::Standby) => {
            let allowed = "Thread: each loop has one of its own";
            return Err(ConfigError::OutOfRange { field: "driving", value: format!("{other:?}"), allowed });
        }
    };
    // Loops with the same seed would choose the same paths.
    config.seed = config.seed.map(|seed| seed.wrapping_add(index as u64));
    Ok(config)
}

/// Accepts connections from peers to any loop, until it is dropped.
pub struct LoopsListener {
    listeners: Vec<Listener>,
}

impl LoopsListener {
    /// Waits for the next connection that a peer has opened, and returns it.
    ///
    /// # Errors
    /// [`WaitError`] if none has come within `timeout`, or if a loop has ended.
    pub fn accept(&self, timeout: Duration) -> Result<Connection, WaitError> {
        let loops = || self.listeners.iter().map(|listener| &listener.inner);
        wait_at(loops, timeout, || self.take())?.ok_or(WaitError::Timeout(timeout))
    }

    /// Returns the next connection that a peer has opened, if there is one.
    pub fn take(&self) -> Option<Connection> {
        self.listeners.iter().find_map(Listener::take)
    }
}

/// A region that the peers of all loops' connections can access, until it is dropped. Each loop has its own key.
pub struct LoopsRegistration {
    of_loops: Vec<Registration>,
}

impl LoopsRegistration {
    /// Returns the address and key of the byte at `offset` of the region, for the peer of this connection; `None` if
    /// the connection belongs to another device.
    pub fn remote(&self, connection: &Connection, offset: u64) -> Option<Remote> {
        let of_loop = self.of_loops.iter().find(|registration| connection.is_of(registration.inner()));
        of_loop.map(|registration| registration.remote(offset))
    }

    /// Returns the region.
    pub fn region(&self) -> &Region {
        self.of_loops[0].region()
    }
}

impl fmt::Debug for Loops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loops").field("addresses", &self.addresses()).finish_non_exhaustive()
    }
}

impl fmt::Debug for LoopsListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoopsListener").field("listeners", &self.listeners).finish()
    }
}

impl fmt::Debug for LoopsRegistration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoopsRegistration").field("of_loops", &self.of_loops).finish()
    }
}
