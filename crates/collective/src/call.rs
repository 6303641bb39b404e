//! A call as all ranks of a group must make it.

use std::fmt;

use crate::dtype::{Dtype, ReduceOp};

/// Collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Every rank gets the combination of all values.
    AllReduce,
    /// Every rank gets the root's values.
    Broadcast,
    /// The root gets the combination of all values.
    Reduce,
    /// Every rank gets the blocks of all ranks.
    AllGather,
    /// Each rank gets one block of the combination.
    ReduceScatter,
    /// Each rank sends a block to each other one; the blocks may differ in size.
    AllToAll,
    /// The root gets the blocks of all ranks.
    Gather,
    /// Each rank gets one block of the root.
    Scatter,
    /// No rank goes on before all are there.
    Barrier,
    /// A message from one rank to another one.
    Message,
}

impl Kind {
    /// All operations.
    pub const ALL: [Kind; 10] = [
        Kind::AllReduce,
        Kind::Broadcast,
        Kind::Reduce,
        Kind::AllGather,
        Kind::ReduceScatter,
        Kind::AllToAll,
        Kind::Gather,
        Kind::Scatter,
        Kind::Barrier,
        Kind::Message,
    ];

    fn name(self) -> &'static str {
        match self {
            Kind::AllReduce => "all_reduce",
            Kind::Broadcast => "broadcast",
            Kind::Reduce => "reduce",
            Kind::AllGather => "all_gather",
            Kind::ReduceScatter => "reduce_scatter",
            Kind::AllToAll => "all_to_all",
            Kind::Gather => "gather",
            Kind::Scatter => "scatter",
            Kind::Barrier => "barrier",
            Kind::Message => "send",
        }
    }
}

/// The parts of a call that must be the same at all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Operation.
    pub kind: Kind,
    /// Combination, of those that combine values.
    pub op: Option<ReduceOp>,
    /// Type of the elements.
    pub dtype: Dtype,
    /// Root, of those that have one.
    pub root: Option<u32>,
    /// Elements of a rank's tensor, or of each block; 0 where they may differ.
    pub elements: u64,
}

/// Bytes of a call on the wire.
pub(crate) const CALL_BYTES: usize = 16;
const NONE: u8 = 0xff;

impl Call {
    pub(crate) fn encode(&self, to: &mut Vec<u8>) {
        to.extend([self.kind as u8, self.op.map_or(NONE, |op| op as u8), self.dtype as u8, 0]);
        to.extend(self.root.unwrap_or(u32::MAX).to_le_bytes());
        to.extend(self.elements.to_le_bytes());
    }

    pub(crate) fn decode(bytes: &[u8; CALL_BYTES]) -> Option<Self> {
        let kind = Kind::ALL.into_iter().find(|kind| *kind as u8 == bytes[0])?;
        let op = if bytes[1] == NONE { None } else { Some(ReduceOp::from_wire(bytes[1])?) };
        let root = u32::from_le_bytes(bytes[4..8].try_into().ok()?);
        Some(Call {
            kind,
            op,
            dtype: Dtype::from_wire(bytes[2])?,
            root: Some(root).filter(|root| *root != u32::MAX),
            elements: u64::from_le_bytes(bytes[8..16].try_into().ok()?),
        })
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.kind.name())?;
        if let Some(op) = self.op {
            write!(f, "{op}, ")?;
        }
        match self.kind {
            Kind::Barrier => {}
            Kind::AllToAll => write!(f, "{}", self.dtype)?,
            _ => write!(f, "{} x {}", self.elements, self.dtype)?,
        }
        if let Some(root) = self.root {
            write!(f, ", root {root}")?;
        }
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_come_back_and_have_a_text() {
        for kind in Kind::ALL {
            for (op, root) in [(None, None), (Some(ReduceOp::Avg), Some(3))] {
                let call = Call { kind, op, dtype: Dtype::Bf16, root, elements: 1 << 40 };
                let mut bytes = Vec::new();
                call.encode(&mut bytes);
                let mut bytes: [u8; CALL_BYTES] = bytes.try_into().unwrap();
                assert_eq!(Call::decode(&bytes), Some(call));
                for wrong in 0..3 {
                    let right = std::mem::replace(&mut bytes[wrong], 99);
                    assert_eq!(Call::decode(&bytes), None, "byte {wrong}");
                    bytes[wrong] = right;
                }
            }
        }
        let call = Call {
            kind: Kind::Reduce,
            op: Some(ReduceOp::Sum),
            dtype: Dtype::F32,
            root: Some(2),
            elements: 10,
        };
        assert_eq!(call.to_string(), "reduce(sum, 10 x float32, root 2)");
    }
}
