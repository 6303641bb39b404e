//! How packets are spread over paths, for models that have no packets.

/// How packets are spread over paths: by hosts, or by switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Spread {
    /// All those of a queue pair take one path as long as it lives.
    OnePath,
    /// All those of a message take one path, chosen when the message begins.
    PathAMessage,
    /// Each takes any path, all alike likely; so some collide.
    Random,
    /// As many take each path, and each takes one that it finds free.
    Even,
    /// More take a path that can carry more at the time, at random; so some collide.
    ByCapacity,
    /// More take a path that can carry more at the time, and each takes one that it finds free.
    Balanced,
}

impl Spread {
    /// Whether all packets of a message take one path.
    pub const fn is_single(self) -> bool {
        matches!(self, Spread::OnePath | Spread::PathAMessage)
    }
    /// Whether more take a path that can carry more.
    pub const fn is_by_capacity(self) -> bool {
        matches!(self, Spread::ByCapacity | Spread::Balanced)
    }
    /// Whether packets collide that are spread at random.
    pub const fn is_random(self) -> bool {
        matches!(self, Spread::Random | Spread::ByCapacity)
    }
}
