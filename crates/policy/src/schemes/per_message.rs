//! Load balancing by message.

use super::{SchemeInfo, common};
use crate::picker::PickerConfig;

pub(super) const PER_MESSAGE: SchemeInfo = SchemeInfo {
    name: "per-message",
    aliases: &[],
    help: "A random path for every message, DCQCN, selective repeat",
    source: "pathweave: the coarsest spraying, between ecmp and rps",
    make: || common::dcqcn(PickerConfig::PerMessage, common::UNORDERED),
};
