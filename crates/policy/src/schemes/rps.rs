//! Random packet spraying.

use super::{SchemeInfo, common};
use crate::picker::PickerConfig;

pub(super) const RPS: SchemeInfo = SchemeInfo {
    name: "rps",
    aliases: &[],
    help: "A random path for every packet, DCQCN, selective repeat",
    source: "Dixit et al., On the Impact of Packet Spraying in Data Center Networks, INFOCOM 2013",
    make: || common::dcqcn(PickerConfig::Rps, common::UNORDERED),
};
