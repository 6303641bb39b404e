//! MP-RDMA as implemented by weak baselines.

use super::{SchemeInfo, common};
use crate::{Decrease, MpRdmaConfig, PolicyConfig, Scheme};

pub(super) const MPRDMA_HALF_WINDOW: SchemeInfo = SchemeInfo {
    name: "mprdma-half-window",
    aliases: &[],
    help: "As mprdma, but a mark halves the window, at most once a round trip",
    source: "UDMP (IEEE ToN 2026), section I, if its 1/2 is of the window",
    make: || {
        let config = MpRdmaConfig { decrease: Decrease::HalfWindow, ..MpRdmaConfig::default() };
        Scheme { recovery: common::BY_COUNT, ..common::clocked(PolicyConfig::Mprdma(config)) }
    },
};
