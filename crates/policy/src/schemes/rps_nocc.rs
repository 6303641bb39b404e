//! Spraying without congestion control.

use super::{SchemeInfo, common};
use crate::cc::{CcConfig, UnlimitedConfig};
use crate::picker::PickerConfig;
use crate::{CnpPolicy, PolicyConfig, Scheme, SplitConfig};

pub(super) const RPS_NOCC: SchemeInfo = SchemeInfo {
    name: "rps-nocc",
    aliases: &[],
    help: "As rps without congestion control: line rate always, PFC alone holds senders back",
    source: "pathweave: spraying alone",
    make: scheme,
};

fn scheme() -> Scheme {
    let mut scheme = common::dcqcn(PickerConfig::Rps, common::UNORDERED);
    scheme.policy = PolicyConfig::Split(SplitConfig {
        cc: CcConfig::None(UnlimitedConfig::default()),
        picker: PickerConfig::Rps,
    });
    scheme.cnp = CnpPolicy::Off;
    scheme
}
