//! STrack.

use super::{SchemeInfo, common};
use crate::cc::{CcConfig, StrackConfig};
use crate::picker::PickerConfig;
use crate::{PolicyConfig, Recovery, Scheme, SplitConfig};

pub(super) const STRACK: SchemeInfo = SchemeInfo {
    name: "strack",
    aliases: &[],
    help: "Path after path, a marked path is skipped once; a window for delay and ECN; losses by packets \
           ahead of a gap and by probes",
    source: "STrack (arXiv 2407.15266), from second-hand descriptions; loss recovery is SLEEK, its descendant, as uet-htsim 40ccb05 has it",
    make: scheme,
};

/// Number of entropy values of a queue pair: the most that Ultra Ethernet recommends. A round of them is one or two
/// bandwidth-delay products, so that a mark arrives before the next turn of its path.
const PATHS: u16 = 256;

fn scheme() -> Scheme {
    let cc = CcConfig::Strack(StrackConfig::default());
    let policy = PolicyConfig::Split(SplitConfig { cc, picker: PickerConfig::Bitmap });
    let recovery = Recovery::sleek();
    Scheme { paths: PATHS, recovery, ..common::clocked(policy) }
}
