//! Packets to send, and positions of their payload at both ends.

use pathweave_units::HostId;
use pathweave_wire::{Body, Segment};

use crate::work::Buffer;

/// NIC ports by which the driver can send data now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreePorts {
    /// Bit i: NIC port i is free, so data may leave by it now.
    pub data_ports: u64,
}

impl FreePorts {
    /// Control packets only: every port is busy with data.
    pub const CONTROL: FreePorts = FreePorts { data_ports: 0 };
    /// Every port is free.
    pub const OPEN: FreePorts = FreePorts { data_ports: u64::MAX };

    /// Opens this port alone for data.
    pub const fn port(port: u8) -> FreePorts {
        FreePorts { data_ports: 1 << port }
    }
}

/// A packet to send now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Destination host.
    pub to: HostId,
    /// NIC port by which the packet leaves ([`PortSet`](pathweave_policy::PortSet)).
    pub port: u8,
    /// Traffic class.
    pub class: Class,
    /// True if switches may mark the packet Congestion Experienced instead of dropping it (ECT set).
    pub ecn_capable: bool,
    /// Bytes that the packet occupies on the link, gaps included.
    pub wire_bytes: u32,
    /// The packet.
    pub segment: Segment,
    /// Payload to put behind the headers, or `None` if the packet carries none.
    pub payload: Option<PayloadRef>,
}

/// Traffic class of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// ACK, NACK, CNP or answer to a question: small packets that others wait for.
    Control,
    /// Data, and questions of schemes that measure the queues of data.
    Data,
}

impl Transmit {
    /// Returns true if the packet answers another one, so that it returns over the links of that packet.
    pub fn is_answer(&self) -> bool {
        self.class == Class::Control
            && !matches!(&self.segment.body, Body::Control(control) if control.is_question())
    }
}

/// Position of payload to be read from the application's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadRef {
    /// Buffer given in the work request or memory region.
    pub buffer: Buffer,
    /// Offset in the buffer, in bytes.
    pub offset: u64,
    /// Number of bytes.
    pub len: u16,
}

/// Position for the payload of a packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Buffer given in the receive, work request or memory region.
    pub buffer: Buffer,
    /// Offset in the buffer, in bytes.
    pub offset: u64,
    /// Number of bytes.
    pub len: u16,
}
