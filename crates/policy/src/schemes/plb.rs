//! PLB, and DCTCP, which it balances.

use super::{SchemeInfo, common};
use crate::cc::{CcConfig, DctcpConfig};
use crate::picker::{PickerConfig, PlbConfig};
use crate::{PolicyConfig, Scheme, SplitConfig};

pub(super) const DCTCP: SchemeInfo = SchemeInfo {
    name: "dctcp",
    aliases: &[],
    help: "One path a queue pair by ECMP hash, DCTCP's window, selective repeat",
    source: "DCTCP (SIGCOMM 2010, RFC 8257)",
    make: || scheme(PickerConfig::Ecmp),
};

pub(super) const PLB: SchemeInfo = SchemeInfo {
    name: "plb",
    aliases: &[],
    help: "DCTCP with a change of path after rounds of congestion, preferably when nothing is in flight",
    source: "PLB (SIGCOMM 2022), with the defaults of Linux",
    make: || scheme(PickerConfig::Plb(PlbConfig::default())),
};

/// Acknowledgements, one for every packet, carry the marks, so that the fraction of each round is exact. Packets
/// overtake each other when the path changes, so losses are detected by time.
fn scheme(picker: PickerConfig) -> Scheme {
    common::clocked(PolicyConfig::Split(SplitConfig { cc: CcConfig::Dctcp(DctcpConfig::default()), picker }))
}
