//! `pathweave perf server`.

use std::net::SocketAddr;

use super::args::{ServerArgs, Transport};
use super::clients::Clients;
use super::{connection, datagram};
use crate::failure::{Failure, Outcome};
use crate::terminal;

/// # Errors
/// What cannot even begin.
pub(crate) fn server(args: &ServerArgs) -> Result<Outcome, Failure> {
    match args.device.transport {
        Transport::Rc => connection::server(args),
        Transport::Erd => datagram::server(args),
    }
}

/// Says where it serves: on standard output, unless that is for JSON.
pub(super) fn announce(args: &ServerArgs, line: &str) {
    if args.json {
        terminal::note(line);
    } else {
        terminal::out(&format!("{line}\n"));
    }
}

/// Says what clients have measured.
pub(super) fn summarise(
    args: &ServerArgs,
    clients: &Clients,
    local: SocketAddr,
    protection: &str,
    interrupted: bool,
) {
    if args.json {
        terminal::out(&clients.json(local, protection, interrupted));
    } else if !args.quiet && clients.has_any() {
        terminal::out(&clients.text());
    }
}
