//! A low average of round-trip times that vary because packets are sprayed.
//!
//! Random collisions delay some of the sprayed packets. A queue at the last hop delays all of them, and only such a
//! queue requires a lower rate. An average that falls fast and rises slowly shows this queue: it settles near the
//! minimum, because an excursion below weighs sixteen times as much as one above. A window of long round-trip times
//! raises the average; a single short one lowers it again.

/// Returns the weight of a round-trip time that is above (`rises`) or below the low average. Both weights are exact
/// in single and double precision.
#[inline]
pub(crate) fn gain(rises: bool) -> f32 {
    if rises { 1.0 / 32.0 } else { 0.5 }
}
