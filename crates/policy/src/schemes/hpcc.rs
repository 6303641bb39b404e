//! HPCC.

use super::{SchemeInfo, common};
use crate::cc::{CcConfig, HpccConfig};

pub(super) const HPCC: SchemeInfo = SchemeInfo {
    name: "hpcc",
    aliases: &[],
    help: "One path a queue pair, HPCC's window by the telemetry of simulated switches, go-back-N",
    source: "HPCC (SIGCOMM 2019), as the authors' simulator 9f4be2a has it",
    make: || common::by_delay(CcConfig::Hpcc(HpccConfig::default())),
};
