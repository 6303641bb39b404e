//! Weave.

use super::{SchemeInfo, common};
use crate::{PolicyConfig, WeaveConfig};

pub(super) const WEAVE: SchemeInfo = SchemeInfo {
    name: "weave",
    aliases: &[],
    help: "Reuse of paths that returned in time, a window on the low round-trip times, losses found by time",
    source: "pathweave: docs/weave.md; the ring of paths is that of REPS (arXiv 2407.21625)",
    make: || common::clocked(PolicyConfig::Weave(WeaveConfig::default())),
};
