//! UDMP as printed.

use super::{SchemeInfo, common};
use crate::{PolicyConfig, Scheme, UdmpPublishedConfig};

pub(super) const UDMP_PUBLISHED: SchemeInfo = SchemeInfo {
    name: "udmp-published",
    aliases: &[],
    help: "UDMP as printed, with the restart that it needs to finish",
    source: "UDMP (IEEE ToN 2026), algorithms 1 and 2",
    make: || Scheme {
        recovery: common::BY_COUNT,
        ..common::clocked(PolicyConfig::UdmpPublished(UdmpPublishedConfig::default()))
    },
};
