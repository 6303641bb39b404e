//! Trimming, as fabric, wire and policies speak of it.

/// Where a switch has taken a packet's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[cfg_attr(feature = "packed", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub enum TrimmedAt {
    /// At a port that leads to another switch: the path is congested, and another one may not be.
    OnTheWay,
    /// At the port that leads to the receiver: no other path would have helped.
    LastHop,
}
