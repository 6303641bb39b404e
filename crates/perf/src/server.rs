//! The server.

use std::net::SocketAddr;

use pathweave_datapath::DeviceConfig;
use pathweave_datapath::secure::Protection;

use crate::clients::Clients;
use crate::console::{Console, Failure, Service};
use crate::{connection, datagram};
use pathweave_bypass::Carrier;

/// How a server serves.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// What carries messages; the same at both ends.
    pub service: Service,
    /// How this end is opened.
    pub device: DeviceConfig,
    /// What carries packets. Datagrams go over UDP sockets.
    pub carrier: Carrier,
    /// Memory a client may ask for, in each direction.
    pub max_memory_bytes: u64,
    /// It ends after so many clients; `None`: when it is interrupted.
    pub clients: Option<u64>,
}

/// What the clients of a server have measured.
#[derive(Clone, Debug)]
pub struct Served {
    /// For people; `None` if there were none.
    pub text: Option<String>,
    /// For programs.
    pub json: String,
}

impl Served {
    pub(crate) fn of(
        clients: &Clients,
        local: SocketAddr,
        protection: Protection,
        interrupted: bool,
    ) -> Self {
        let text = clients.has_any().then(|| clients.text());
        Served { text, json: clients.json(local, &protection.to_string(), interrupted) }
    }
}

/// Serves clients, one after the other and several at once.
///
/// # Errors
/// What cannot even begin.
pub fn serve(options: &ServerOptions, console: &dyn Console) -> Result<Served, Failure> {
    match options.service {
        Service::Connection => connection::serve(options, console),
        Service::Datagram => datagram::serve(options, console),
    }
}
