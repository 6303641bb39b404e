//! The server: answers the measurements of clients.

use std::net::SocketAddr;

use pathweave_datapath::DeviceConfig;
use pathweave_datapath::secure::Protection;

use crate::clients::Clients;
use crate::console::{Console, Failure, Service};
use crate::{connection, datagram};
use pathweave_bypass::Carrier;

/// Options of a server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Service that carries messages. It must be the same at both ends.
    pub service: Service,
    /// Configuration of this end.
    pub device: DeviceConfig,
    /// Carrier of packets. Datagrams always use UDP sockets.
    pub carrier: Carrier,
    /// Largest memory in bytes that a client may request, in each direction.
    pub max_memory_bytes: u64,
    /// Number of clients after which the server ends. `None`: it runs until it is interrupted.
    pub clients: Option<u64>,
}

/// Measurements of a server's clients.
#[derive(Clone, Debug)]
pub struct Served {
    /// Report for people. `None` if there was no client.
    pub text: Option<String>,
    /// Report as JSON.
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

/// Serves clients, several at once if they come together.
///
/// # Errors
/// If the server cannot start.
pub fn serve(options: &ServerOptions, console: &dyn Console) -> Result<Served, Failure> {
    match options.service {
        Service::Connection => connection::serve(options, console),
        Service::Datagram => datagram::serve(options, console),
    }
}
