//! `pathweave perf --transport erd`: what reliable datagrams achieve between two hosts.
//!
//! A client says hello to the server's endpoint. For each measurement the server opens an endpoint of its own, whose
//! counts are then of nothing else, and tells the client where it is; there they measure, and say when they are done.

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

/// An endpoint with these sockets, loop and protection.
fn config(device: DeviceConfig, scheme: Option<&str>) -> RdmConfig {
    let mut config = RdmConfig::new(device.bind);
    let scheme = scheme.map_or(config.device.scheme, str::to_owned);
    config.device = DeviceConfig { scheme, ..device };
    config
}

/// # Errors
/// What the endpoint says, as a user can understand it.
fn open(config: RdmConfig) -> Result<RdmEndpoint, Failure> {
    RdmEndpoint::open(config).map_err(device::opening)
}

/// What a peer that cannot be reached means to the user.
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
