//! Servers of a cluster: the hosts (GPUs) that share a chassis, NICs and a scale-up network.

use crate::scale_up::ScaleUp;

/// Servers of a topology whose hosts are GPUs. All servers are alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Servers {
    pub(crate) servers: u32,
    pub(crate) gpus: u32,
    pub(crate) nics: u32,
    pub(crate) nic_ports: u32,
    pub(crate) planes: u32,
    /// Number of switches that are parts of servers: shared NICs, or PCIe links. They precede all other switches.
    pub(crate) parts: u32,
    pub(crate) scale_up: Option<ScaleUp>,
}

impl Servers {
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
    /// Returns the number of switches that are parts of servers: shared NICs, or PCIe links. They precede all others.
    pub fn parts(&self) -> u32 {
        self.parts
    }
    /// Returns true if a switch, by its index, is part of a server: a shared NIC, or a PCIe link.
    pub fn has_part(&self, switch: usize) -> bool {
        switch < self.parts as usize
    }
    /// Returns the networks that join the GPUs of a server or rack, if there are any.
    pub fn scale_up(&self) -> Option<&ScaleUp> {
        self.scale_up.as_ref()
    }
}
