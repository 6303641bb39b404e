//! `pathweave perf --transport erd`: measurements of reliable datagrams between two hosts.
//!
//! A client sends a request to the server's endpoint. The server opens an endpoint for each measurement, so that its
//! counters cover nothing else, and returns its port. Client and server then measure between these endpoints and
//! report the end to each other.

mod client;
mod end;
mod server;
mod side;
mod words;

pub(crate) use client::Datagrams;
pub(crate) use server::serve;

use pathweave_datapath::rdm::{RdmConfig, RdmEndpoint};
use pathweave_datapath::{ConnectError, DeviceConfig};

use crate::console::Failure;
use crate::open as device;

/// Returns the configuration of an endpoint with the device's sockets, loop and protection.
fn config(device: DeviceConfig, scheme: Option<&str>) -> RdmConfig {
    let mut config = RdmConfig::new(device.bind);
    let scheme = scheme.map_or(config.device.scheme, str::to_owned);
    config.device = DeviceConfig { scheme, ..device };
    config
}

/// # Errors
/// If the endpoint cannot be opened, with a message for the user.
fn open(config: RdmConfig) -> Result<RdmEndpoint, Failure> {
    RdmEndpoint::open(config).map_err(device::open_error)
}

/// Converts the error of an unreachable peer to a message for the user.
fn unreachable(why: &ConnectError) -> Failure {
    let also = match why {
        ConnectError::Refused { reason: pathweave_datapath::secure::Refusal::Transport, .. } => {
            " (the server was started without --transport erd)"
        }
        ConnectError::Hello(_) => " (--mtu)",
        _ => "",
    };
    Failure::Input(format!("{why}{also}"))
}
