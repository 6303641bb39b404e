//! What goes in and out of an endpoint besides events: packets and places for their payload.

use pathweave_units::HostId;
use pathweave_wire::{Body, Segment};

use crate::work::Buffer;

/// What the driver can send now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// Bit i: NIC port i is free, so data may leave by it now.
    pub data_ports: u64,
}

impl Gate {
    /// Control packets only; every port is busy with data.
    pub const CONTROL: Gate = Gate { data_ports: 0 };
    /// Every port is free.
    pub const OPEN: Gate = Gate { data_ports: u64::MAX };

    /// Data may leave by this port alone.
    pub const fn port(port: u8) -> Gate {
        Gate { data_ports: 1 << port }
    }
}

/// A packet to send now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The host it goes to.
    pub to: HostId,
    /// NIC port it leaves by ([`PortSet`](pathweave_policy::PortSet)).
    pub port: u8,
    /// Its traffic class.
    pub class: Class,
    /// Whether switches may mark it Congestion Experienced instead of dropping it (ECT set).
    pub ecn_capable: bool,
    /// Bytes it takes on the link, gaps included.
    pub wire_bytes: u32,
    /// The packet.
    pub segment: Segment,
    /// The payload to put behind its headers; `None` where it carries none.
    pub payload: Option<PayloadRef>,
}

/// Traffic class of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// ACK, NACK, CNP, answer to a question: small, and others wait for them.
    Control,
    /// Data, and questions of schemes that measure what data meets.
    Data,
}

impl Transmit {
    /// Whether it answers a packet, and so goes back over the links of that.
    pub fn is_answer(&self) -> bool {
        self.class == Class::Control
            && !matches!(&self.segment.body, Body::Control(control) if control.is_question())
    }
}

/// Payload to be read from the application's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadRef {
    /// The buffer given in the work request or memory region.
    pub buffer: Buffer,
    /// Where in the buffer, in bytes.
    pub offset: u64,
    /// How many bytes.
    pub len: u16,
}

/// Where the payload of a packet that arrived goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The buffer given in the receive, work request or memory region.
    pub buffer: Buffer,
    /// Where in the buffer, in bytes.
    pub offset: u64,
    /// How many bytes.
    pub len: u16,
}
