//! LAPS with the weights of its circuit.

use super::{SchemeInfo, laps};
use crate::Scheme;
use crate::laps::{Arithmetic, LapsConfig};

pub(super) const INFO: SchemeInfo = SchemeInfo {
    name: "laps-hw",
    aliases: &[],
    help: "LAPS with its softmax computed in integers, as in the circuit",
    source: "LAPS (IEEE ToN 2026), section III-H; the circuit of hardware/laps",
    make,
};

/// Everything else is the same, so that only the arithmetic differs.
fn make() -> Scheme {
    laps::scheme(LapsConfig { arithmetic: Arithmetic::Fixed, ..LapsConfig::default() })
}
