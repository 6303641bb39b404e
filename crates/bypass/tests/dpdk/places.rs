//! Ports of each kind at two ends.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};

use pathweave_bypass::dpdk::{Device as Port, DpdkBackend, DpdkConfig, DpdkError, HugePages};
use pathweave_bypass::ether::{Counters, Local};
use pathweave_datapath::{Device, DeviceConfig};
use tempfile::TempDir;

use crate::link::net::{End, Family, INTERFACE, Net, address, config};

/// Returns a number that no other port of the process has.
fn number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Returns the configuration of a port.
pub(crate) fn config_of(
    vdev: &str,
    local: Option<Local>,
    mtu_bytes: u32,
    config: &DeviceConfig,
) -> DpdkConfig {
    let device = Port::Vdev(vdev.parse().expect("a device"));
    DpdkConfig { device, udp: config.udp(), local, gateway: None, mtu_bytes, huge_pages: HugePages::Never }
}

/// Returns the address of an end with its network.
pub(crate) fn local(end: End, family: Family) -> Local {
    let prefix = if family == Family::V4 { 24 } else { 64 };
    Local::new(address(end, family), prefix).expect("an address")
}

/// Two ends with a port each.
pub(crate) trait Ends: Sync {
    /// Opens the port of an end, in this thread's namespace.
    fn backend(&self, end: End, mtu_bytes: u32, config: &DeviceConfig) -> Result<DpdkBackend, DpdkError>;
    /// Runs `work` in the namespace of an end.
    fn within<T: Send>(&self, end: End, work: impl FnOnce() -> T + Send) -> T;

    /// Opens the device of an end.
    fn open(&self, end: End, mtu_bytes: u32, config: DeviceConfig) -> (Device, Counters) {
        self.within(end, || {
            let backend = self.backend(end, mtu_bytes, &config).expect("a port");
            let counters = backend.counters();
            (Device::with_backend(config, backend).expect("a device"), counters)
        })
    }
}

/// Packet sockets on a pair of virtual interfaces.
impl Ends for Net {
    fn backend(&self, _end: End, mtu_bytes: u32, config: &DeviceConfig) -> Result<DpdkBackend, DpdkError> {
        let vdev = format!("net_af_packet{},iface={INTERFACE}", number());
        DpdkBackend::open(&config_of(&vdev, None, mtu_bytes, config))
    }
    fn within<T: Send>(&self, end: End, work: impl FnOnce() -> T + Send) -> T {
        Net::within(self, end, work)
    }
}

/// Shared memory of two ports, a server and a client.
pub(crate) struct Memif {
    folder: TempDir,
    server: End,
}

impl Memif {
    pub(crate) fn new(server: End) -> Self {
        Memif { folder: tempfile::tempdir().expect("a folder"), server }
    }
}

impl Ends for Memif {
    fn backend(&self, end: End, mtu_bytes: u32, config: &DeviceConfig) -> Result<DpdkBackend, DpdkError> {
        // The driver identifies sockets by name for the whole process, so both ends need different names for one
        // socket.
        let (role, folder) = if end == self.server { ("server", ".") } else { ("client", "././.") };
        let socket = self.folder.path().join(folder).join("memif.sock");
        let (number, socket) = (number(), socket.display());
        let vdev = format!("net_memif{number},role={role},socket={socket},socket-abstract=no");
        let family = if config.bind.is_ipv4() { Family::V4 } else { Family::V6 };
        DpdkBackend::open(&config_of(&vdev, Some(local(end, family)), mtu_bytes, config))
    }
    fn within<T: Send>(&self, _end: End, work: impl FnOnce() -> T + Send) -> T {
        work()
    }
}

/// Returns the configuration of an end's device for packets of this length.
pub(crate) fn config_for_mtu(end: End, family: Family, mtu_bytes: u32) -> DeviceConfig {
    let mut config = config(end, family);
    config.fit_link(mtu_bytes as usize).expect("an MTU");
    config
}

/// Returns any port at the address of an end.
pub(crate) fn any_port(end: End, family: Family) -> SocketAddr {
    SocketAddr::new(address(end, family), 0)
}
