//! NDP.

use super::{SchemeInfo, common};
use crate::cc::{CcConfig, UnlimitedConfig};
use crate::picker::PickerConfig;
use crate::{CreditConfig, PolicyConfig, Scheme, SplitConfig};

pub(super) const INFO: SchemeInfo = SchemeInfo {
    name: "ndp",
    aliases: &[],
    help: "NDP: a first window at line rate, then a packet for each pull of the receiver, which serves all \
           senders in turn; made for trimming",
    source: "NDP, SIGCOMM 2017, as csg-htsim 841d9e7 has it; losses without a trim are found by time",
    make: scheme,
};

/// Number of paths of a queue pair, taken in random order.
const PATHS: u16 = 64;

fn scheme() -> Scheme {
    let cc = CcConfig::None(UnlimitedConfig::default());
    let policy = PolicyConfig::Split(SplitConfig { cc, picker: PickerConfig::Oblivious });
    Scheme { paths: PATHS, credit: Some(CreditConfig::ndp()), ..common::clocked(policy) }
}
