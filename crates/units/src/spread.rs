//! Spreading of packets over paths, for models without packets.

/// Spreading of packets over paths, by hosts or by switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Spread {
    /// All packets of a queue pair take one path for its whole life.
    OnePath,
    /// All packets of a message take one path, chosen when the message begins.
    PathPerMessage,
    /// Each packet takes a random path, all with equal probability, so that packets collide.
    Random,
    /// Each path gets an equal number of packets, and each packet takes a free path.
    Even,
    /// Each packet takes a random path with probability in proportion to the path's current capacity, so that packets
    /// collide.
    ByCapacity,
    /// Each path gets packets in proportion to its current capacity, and each packet takes a free path.
    Balanced,
}

impl Spread {
    /// Returns true if all packets of a message take one path.
    pub const fn is_single(self) -> bool {
        matches!(self, Spread::OnePath | Spread::PathPerMessage)
    }
    /// Returns true if shares are in proportion to the paths' capacity.
    pub const fn is_by_capacity(self) -> bool {
        matches!(self, Spread::ByCapacity | Spread::Balanced)
    }
    /// Returns true if packets are spread at random and thus collide.
    pub const fn is_random(self) -> bool {
        matches!(self, Spread::Random | Spread::ByCapacity)
    }
}
