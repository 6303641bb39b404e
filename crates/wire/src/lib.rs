//! Wire format: [`Segment`] is the value of one packet, and this crate converts it from and to bytes.
//!
//! The simulator passes [`Segment`]s as they are. The datapath emits ([`emit`]) and parses ([`Packet`]) them as
//! RoCEv2 frames with the pathweave extension header. [`Framing`] counts the bytes of each on a link.
#![no_std]

#[cfg(any(test, feature = "serde"))]
extern crate std;

mod control;
mod credit;
mod frame;
mod framing;
mod segment;
mod side;
mod source_route;

pub use control::{Control, ControlKind, Measurement};
pub use credit::CreditNumber;
pub use frame::{
    Datagram, DatagramLayout, Ecn, EmitError, EthernetAddresses, FrameAddressing, PSN_BITS, Packet,
    ParseError, datagram_crc, emit, emit_datagram_header, emit_standard, entropy_port, extend_psn,
    ip_packet_len, layout, wire_psn,
};
pub use framing::{Framing, RouteBytes};
pub use segment::{
    Ack, Body, Data, MAX_MTU_PAYLOAD, MIN_MTU_PAYLOAD, Missing, MissingCause, Nack, NackReason,
    NoticePermission, Operation, RdData, Segment,
};
pub use side::{
    MAX_NACK_RUNS, MAX_SIDE_LEN, NackRuns, PsnRun, RdFlow, Runs, SIDE_MAGIC, SIDE_VERSION, SideError,
    SideFrame, SideMessage,
};
pub use source_route::{
    MAX_WAYPOINTS, RouteError, RouteForm, SOURCE_ROUTE_PROTOCOL, SOURCE_ROUTE_VERSION, SourceRoute, Waypoint,
    Waypoints, emit_source_route, pass_waypoint,
};
