//! Servers of a cluster: the hosts (GPUs) that share a chassis, NICs and a scale-up network.

use pathweave_units::HostId;

use crate::scale_up::ScaleUp;

/// Servers of a topology whose hosts are GPUs. All servers are alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Servers {
    servers: u32,
    gpus: u32,
    nics: u32,
    nic_ports: u32,
    planes: u32,
    scale_up: Option<ScaleUp>,
}

impl Servers {
    pub(crate) fn new(
        servers: u32,
        gpus: u32,
        nics: u32,
        nic_ports: u32,
        planes: u32,
        scale_up: Option<ScaleUp>,
    ) -> Self {
        Servers { servers, gpus, nics, nic_ports, planes, scale_up }
    }

    /// Returns the number of servers.
    pub fn count(&self) -> u32 {
        self.servers
    }
    /// Returns the number of GPUs of a server.
    pub fn gpus(&self) -> u32 {
        self.gpus
    }
    /// Returns the number of NICs of a server.
    pub fn nics(&self) -> u32 {
        self.nics
    }
    /// Returns the number of ports of a NIC.
    pub fn nic_ports(&self) -> u32 {
        self.nic_ports
    }
    /// Returns the number of planes of the scale-out network, at least 1.
    pub fn planes(&self) -> u32 {
        self.planes
    }
    /// Returns the networks that join the GPUs of a server or rack, if there are any.
    pub fn scale_up(&self) -> Option<&ScaleUp> {
        self.scale_up.as_ref()
    }
    /// Returns the server of a host.
    pub fn of_host(&self, host: HostId) -> u32 {
        host.0 / self.gpus
    }
}
