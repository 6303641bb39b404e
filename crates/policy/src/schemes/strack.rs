//! STrack.

use super::{SchemeInfo, common};
use crate::cc::{CcConfig, StrackConfig};
use crate::picker::PickerConfig;
use crate::{PolicyConfig, Scheme, SplitConfig};

pub(super) const STRACK: SchemeInfo = SchemeInfo {
    name: "strack",
    aliases: &[],
    help: "Path after path, a marked one passed over once; a window for delay and ECN; selective repeat",
    source: "STrack (arXiv 2407.15266), from second-hand descriptions; its probes and their timer are left out",
    make: scheme,
};

/// Entropy values of a queue pair: the most that Ultra Ethernet recommends. A round of them is a bandwidth-delay product or
/// two, so that a mark is known when its path's turn comes again.
const PATHS: u16 = 256;

fn scheme() -> Scheme {
    let cc = CcConfig::Strack(StrackConfig::default());
    let policy = PolicyConfig::Split(SplitConfig { cc, picker: PickerConfig::Bitmap });
    Scheme { paths: PATHS, ..common::clocked(policy) }
}
