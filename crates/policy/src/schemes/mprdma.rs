//! MP-RDMA.

use super::{SchemeInfo, common};
use crate::{MpRdmaConfig, PolicyConfig};

pub(super) const MPRDMA: SchemeInfo = SchemeInfo {
    name: "mprdma",
    aliases: &[],
    help: "An ECN window over all paths, ACK-clocked: +1/window a clean ACK, -1/2 packet a marked one",
    source: "MP-RDMA (NSDI 2018)",
    make: || common::clocked(PolicyConfig::Mprdma(MpRdmaConfig::default())),
};
