//! How many bytes a segment takes on a link.

use crate::segment::{Body, Operation, Segment};

/// A named accounting of header bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Framing {
    /// Real RoCEv2 over Ethernet: preamble and gap 20, Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4, FCS 4, and
    /// RETH 16, AETH 4, ImmDt 4 where due; frames are padded to Ethernet's minimum of 64 bytes.
    #[default]
    Rocev2,
    /// What the ns-3 RDMA simulators count: 48 bytes of header on every packet, 60 bytes for an acknowledgement.
    Ns3,
}

impl Framing {
    /// Bytes `segment` occupies on a link, gaps included.
    pub fn wire_bytes(self, segment: &Segment) -> u32 {
        let (payload, extension) = match segment.body {
            Body::Data(data) => {
                let reth = match data.op {
                    Operation::Write | Operation::WriteImm if data.offset == 0 => 16,
                    Operation::ReadRequest => 16,
                    _ => 0,
                };
                let imm = match data.op {
                    Operation::SendImm | Operation::WriteImm if data.last => 4,
                    _ => 0,
                };
                (u32::from(data.len), reth + imm)
            }
            Body::Ack(_) | Body::Nack(_) => (0, 4),
            Body::Cnp => (0, 16),
            Body::Probe { .. } | Body::ProbeReply { .. } => (0, 16),
        };
        match self {
            Framing::Rocev2 => 20 + (14 + 20 + 8 + 12 + extension + payload + 4 + 4).max(64),
            Framing::Ns3 => match segment.body {
                Body::Data(_) | Body::Probe { .. } => payload + 48,
                _ => 60,
            },
        }
    }
}
