//! What tests over AF_XDP have in common.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::print_stderr, reason = "what is skipped is said")]

pub(crate) mod hostile;
pub(crate) mod namespaces;
pub(crate) mod raw;

pub(crate) use namespaces::*;

use pathweave_bypass::ether::Counters;
use pathweave_bypass::xdp::{XdpBackend, XdpConfig, XdpError};
use pathweave_datapath::{Device, DeviceConfig};

/// Namespaces between which there is AF_XDP. `None`, said where nobody can overlook it: this process may make none, or has no AF_XDP.
pub(crate) fn make(test: &str, mtu_bytes: u32, queues: u32) -> Option<Net> {
    let net = Net::make(test, mtu_bytes, queues)?;
    match net.within(End::Near, || backend(&config(End::Near, Family::V4))) {
        Ok(_) => Some(net),
        // Of this kernel, not of our making.
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

/// At the interface of this thread's namespace.
pub(crate) fn backend(config: &DeviceConfig) -> Result<XdpBackend, XdpError> {
    XdpBackend::open(&XdpConfig::new(INTERFACE, config.udp()))
}

/// A device over AF_XDP.
pub(crate) fn bypass(net: &Net, end: End, config: DeviceConfig) -> (Device, Counters) {
    net.within(end, || {
        let backend = backend(&config).expect("AF_XDP");
        let counters = backend.counters();
        (Device::with_backend(config, backend).expect("a device"), counters)
    })
}
