//! REPS.

use super::{SchemeInfo, common};
use crate::{PolicyConfig, RepsConfig};

pub(super) const REPS: SchemeInfo = SchemeInfo {
    name: "reps",
    aliases: &[],
    help: "Recycled entropies, a window for delay and ECN together, selective repeat",
    source: "REPS (arXiv 2407.21625); window in the spirit of NSCC (Ultra Ethernet 1.0) and SMaRTT",
    make: || common::clocked(PolicyConfig::Reps(RepsConfig::default())),
};
