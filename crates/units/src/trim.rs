//! Trimming of packets, a term shared by fabric, wire format and policies.

/// Place at which a switch has removed a packet's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[cfg_attr(feature = "packed", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub enum TrimmedAt {
    /// At a port that leads to another switch: this path is congested, another one may not be.
    OnTheWay,
    /// At the port that leads to the receiver: no other path would have helped.
    LastHop,
}
