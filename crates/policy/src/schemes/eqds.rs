//! EQDS.

use super::{SchemeInfo, uet_rccc};
use crate::cc::{CcConfig, UnlimitedConfig};
use crate::picker::{Forgives, PenaltiesConfig, PickerConfig};
use crate::{CreditConfig, PolicyConfig, Scheme, SplitConfig};

pub(super) const INFO: SchemeInfo = SchemeInfo {
    name: "eqds",
    aliases: &[],
    help: "EQDS: receivers grant credit in steps of 4 KiB, first for trimmed packets; paths by a bitmap; \
           made for trimming",
    source: "EQDS, NSDI 2022, as csg-htsim 841d9e7 has it; losses without a trim are found by time",
    make: scheme,
};

/// Penalties with which a path that marks, trims or loses a packet is skipped once.
const PENALTIES: PenaltiesConfig =
    PenaltiesConfig { marked: 1, refused: 1, silent: 1, most: 1, forgives: Forgives::Each };

fn scheme() -> Scheme {
    let cc = CcConfig::None(UnlimitedConfig::default());
    let picker = PickerConfig::Penalties(PENALTIES);
    let policy = PolicyConfig::Split(SplitConfig { cc: cc.clone(), picker });
    Scheme { policy, ..uet_rccc::with(cc, CreditConfig::eqds()) }
}
