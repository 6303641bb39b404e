//! Location of the two ends: on loopback, in two namespaces, or on two hosts of a lab.

use std::process::{Command, Stdio};

use crate::paths::Net;
use crate::transport::place::{End, Location};
use crate::transport::process::Running;

pub(super) enum Site<'a> {
    /// Both ends on loopback, or in two namespaces whose link has this MTU.
    Place(&'a Location, Option<u32>),
    Lab(&'a Net),
}

impl Site<'_> {
    pub(super) fn address(&self, end: End) -> String {
        match self {
            Site::Place(place, _) => place.address(end).to_owned(),
            Site::Lab(net) => net.lab.plan().node(net.host(end)).address.to_string(),
        }
    }

    /// Returns the variables that describe the network of an end to the provider, which cannot read it from `/sys`.
    /// That shows the devices of this program's namespace.
    pub(super) fn variables(&self, end: End) -> Vec<(&'static str, String)> {
        match self {
            Site::Place(_, mtu_bytes) => {
                let mtu = mtu_bytes.map(|bytes| ("PATHWEAVE_MTU", bytes.to_string()));
                [("PATHWEAVE_ADDRESS", self.address(end))].into_iter().chain(mtu).collect()
            }
            Site::Lab(net) => {
                // Hosts of a lab also have their address on loopback, which is not the interface to the network.
                let port = &net.lab.plan().node(net.host(end)).ports[0];
                vec![
                    ("PATHWEAVE_IFACE", port.device.clone()),
                    ("PATHWEAVE_LINE_RATE", Net::line_rate().to_string()),
                    ("PATHWEAVE_MTU", Net::mtu_bytes().to_string()),
                ]
            }
        }
    }

    /// Returns a command that will run at an end, with its output piped.
    pub(super) fn command(&self, end: End, program: &str) -> Command {
        match self {
            Site::Place(place, _) => place.command(end, program),
            Site::Lab(_) => {
                let mut command = Command::new(program);
                command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
                command
            }
        }
    }

    pub(super) fn start(&self, end: End, command: Command) -> Result<Running, String> {
        match self {
            Site::Place(..) => Running::start(command),
            Site::Lab(net) => {
                let started = net.lab.inside(net.host(end), || Running::start(command));
                started.map_err(|why| why.to_string())?
            }
        }
    }
}

impl Net {
    fn host(&self, end: End) -> pathweave_topo::NodeId {
        match end {
            End::Client => self.hosts[0],
            End::Server => self.hosts[1],
        }
    }
}
