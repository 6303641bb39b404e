//! Functions shared by the tests over AF_XDP.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::print_stderr, reason = "what is skipped is said")]

pub(crate) mod hostile;
pub(crate) mod namespaces;
pub(crate) mod raw;

pub(crate) use namespaces::*;

use pathweave_bypass::ether::Counters;
use pathweave_bypass::xdp::{XdpBackend, XdpConfig, XdpError};
use pathweave_datapath::{Device, DeviceConfig};

/// Creates namespaces that support AF_XDP. Returns `None`, with a clear message, if this process may not create
/// namespaces or has no AF_XDP.
pub(crate) fn make(test: &str, mtu_bytes: u32, queues: u32) -> Option<Net> {
    let net = Net::make(test, mtu_bytes, queues)?;
    match net.within(End::Near, || backend(&config(End::Near, Family::V4))) {
        Ok(_) => Some(net),
        // Limits of this kernel, not mistakes of the test.
        Err(
            why @ (XdpError::Permission { .. }
            | XdpError::NoSockets
            | XdpError::NoXdp { .. }
            | XdpError::Mtu { .. }),
        ) => {
            eprintln!("\n*** SKIPPED: {test}: {why} ***\n");
            None
        }
        Err(why) => panic!("{why}"),
    }
}

/// Opens a backend on the interface of this thread's namespace.
pub(crate) fn backend(config: &DeviceConfig) -> Result<XdpBackend, XdpError> {
    XdpBackend::open(&XdpConfig::new(INTERFACE, config.udp()))
}

/// Opens a device over AF_XDP.
pub(crate) fn bypass(net: &Net, end: End, config: DeviceConfig) -> (Device, Counters) {
    net.within(end, || {
        let backend = backend(&config).expect("AF_XDP");
        let counters = backend.counters();
        (Device::with_backend(config, backend).expect("a device"), counters)
    })
}
