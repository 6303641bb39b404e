//! The low one of round-trip times that spraying makes differ.
//!
//! What chance does to sprayed packets reaches some of them. A queue at the last hop, which alone asks for less rate, reaches
//! all. So an average that falls fast and rises slowly tells of the latter: it settles near the least, where what lies below
//! weighs a sixteenth of what lies above. A window of long round trips lifts it, a short one disproves it.

/// Weight of a round trip that is this much longer than the low average, or shorter: exact in either precision.
#[inline]
pub(crate) fn gain(rises: bool) -> f32 {
    if rises { 1.0 / 32.0 } else { 0.5 }
}
