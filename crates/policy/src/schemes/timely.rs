//! Delay-based congestion control on one path: TIMELY.

use super::{SchemeInfo, common};
use crate::cc::{CcConfig, TimelyConfig};

pub(super) const TIMELY: SchemeInfo = SchemeInfo {
    name: "timely",
    aliases: &[],
    help: "One path a queue pair, TIMELY's rate by the gradient of round-trip times, go-back-N",
    source: "TIMELY (SIGCOMM 2015), parameters of the HPCC simulator; recovery as ConWeave's",
    make: || common::by_delay(CcConfig::Timely(TimelyConfig::default())),
};
