//! The byte format: [`emit()`] turns a [`Segment`](crate::Segment) into a RoCEv2 frame, and [`Packet`] checks a frame
//! and returns the segment. docs/wire.md describes the format.

mod checksum;
mod datagram;
#[cfg(test)]
mod doc_test;
mod emit;
mod error;
pub(crate) mod fields;
pub mod layout;
mod opcode;
mod outer_headers;
mod packet;
mod psn;
mod read;
mod route;
mod standard;
mod write;

pub use datagram::{Datagram, DatagramLayout, datagram_crc, emit_datagram_header};
pub use emit::{emit, ip_packet_len};
pub use error::{EmitError, ParseError};
pub use packet::Packet;
pub use psn::{PSN_BITS, extend_psn, wire_psn};
pub use route::{Ecn, EthernetAddresses, FrameAddressing, entropy_port};
pub use standard::emit_standard;
