//! Servers of a cluster: the hosts (GPUs) that share a chassis, NICs and a scale-up network.

use std::ops::Range;

use pathweave_units::HostId;

use crate::scale_up::{PacketNodes, ScaleUp};

/// Servers of a topology whose hosts are GPUs. All servers are alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Servers {
    pub(crate) servers: u32,
    pub(crate) gpus: u32,
    pub(crate) nics: u32,
    pub(crate) nic_ports: u32,
    pub(crate) planes: u32,
    /// Number of servers of a scalable unit, if there are units.
    pub(crate) unit: Option<u32>,
    /// Number of switches that are parts of servers: shared NICs, or PCIe links. They precede all other switches.
    pub(crate) parts: u32,
    /// First switch that belongs to a scale-up network of packets: a chip, or the router of a GPU. These follow all
    /// other switches.
    pub(crate) first_chip: u32,
    /// Indices of the links outside servers. PCIe links precede them, those of a scale-up network of packets follow.
    pub(crate) cables: Range<usize>,
    pub(crate) scale_up: Option<ScaleUp>,
    pub(crate) carriage: ScaleUpCarriage,
}

/// Form of the messages in a scale-up network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScaleUpCarriage {
    /// The connections of a domain share its links by max-min fairness, each with one message at a time.
    Fluid,
    /// The links are links of the network.
    Packets,
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
    /// Returns the number of servers of a scalable unit, whose leaves are shared with no other unit, or `None` without
    /// units.
    pub fn unit(&self) -> Option<u32> {
        self.unit
    }
    /// Returns the number of switches that are parts of servers: shared NICs, or PCIe links. They precede all others.
    pub fn parts(&self) -> u32 {
        self.parts
    }
    /// Returns true if a switch, by its index, is part of a server: a shared NIC, or a PCIe link.
    pub fn has_part(&self, switch: usize) -> bool {
        switch < self.parts as usize
    }
    /// Returns true if a switch, by its index, belongs to a scale-up network whose messages are packets: a chip, or the
    /// router of a GPU.
    pub fn has_chip(&self, switch: usize) -> bool {
        switch >= self.first_chip as usize
    }
    /// Returns the switch, by its index, by which a GPU forwards packets of its scale-up network, if GPUs forward.
    pub fn router(&self, host: HostId) -> Option<usize> {
        let forwards = self.packet_network()?.packet_nodes() == PacketNodes::Routers;
        forwards.then_some(self.first_chip as usize + host.index())
    }
    /// Returns the networks that join the GPUs of a server or rack, whose messages are fluid, if there are any.
    pub fn scale_up(&self) -> Option<&ScaleUp> {
        self.scale_up.as_ref().filter(|_| self.carriage == ScaleUpCarriage::Fluid)
    }
    /// Returns true if a scale-up network whose messages are packets joins both hosts.
    pub(crate) fn joins_by_packets(&self, a: HostId, b: HostId) -> bool {
        self.packet_network().is_some_and(|network| network.joins(a, b))
    }
    fn packet_network(&self) -> Option<&ScaleUp> {
        self.scale_up.as_ref().filter(|_| self.carriage == ScaleUpCarriage::Packets)
    }
    /// Returns the networks that join the GPUs of a server or rack, if there are any. Their messages may be packets.
    pub fn any_scale_up(&self) -> Option<&ScaleUp> {
        self.scale_up.as_ref()
    }
}
