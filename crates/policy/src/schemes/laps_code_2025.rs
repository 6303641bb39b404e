//! LAPS as in its authors' code of January 2025. Frozen, like the published variant.

use super::{SchemeInfo, laps_published};
use crate::laps::LapsConfig;
use crate::{PathRto, RingScope};

pub(super) const INFO: SchemeInfo = SchemeInfo {
    name: "laps-code-2025",
    aliases: &[],
    help: "LAPS as its authors' code of January 2025 runs: a fixed window, no pacing",
    source: "LAPS (IEEE ToN 2026), repository snapshot 4a4be64",
    make: || laps_published::scheme(LapsConfig::code_2025(), RingScope::Host, PathRto::Fixed),
};
