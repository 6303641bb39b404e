//! Ultra Ethernet with receiver-based congestion control.

use pathweave_units::{Bytes, Duration};

use super::{SchemeInfo, common};
use crate::cc::{CcConfig, UnlimitedConfig};
use crate::picker::{PenaltiesConfig, PickerConfig};
use crate::{AckPolicy, CreditConfig, PolicyConfig, Scheme, SplitConfig};

pub(super) const INFO: SchemeInfo = SchemeInfo {
    name: "uet-rccc",
    aliases: &["rccc"],
    help: "Ultra Ethernet's RCCC: receivers grant credit, paced for the whole host; paths recycled or by a bitmap; made for trimming",
    source: "Ultra Ethernet 1.0 as uet-htsim 40ccb05 has it; losses without a trim are found by time",
    make: scheme,
};

/// Number of entropy values of a queue pair.
const PATHS: u16 = 64;

/// Bytes of new packets per acknowledgement: four packets of 4,150 bytes.
const ACK_BYTES: u64 = 16_384;

/// Longest delay of an acknowledgement, for slow applications. Senders request the acknowledgements that they wait
/// for.
const ACK_DELAY: Duration = Duration::from_us(10);

/// Returns an Ultra Ethernet scheme with these parts.
pub(super) fn with(cc: CcConfig, credit: CreditConfig) -> Scheme {
    let picker = PickerConfig::Mixed(PenaltiesConfig::default());
    let acks = AckPolicy::by_bytes(Bytes::new(ACK_BYTES), ACK_DELAY);
    let policy = PolicyConfig::Split(SplitConfig { cc, picker });
    Scheme { paths: PATHS, acks, credit: Some(credit), ..common::clocked(policy) }
}

fn scheme() -> Scheme {
    with(CcConfig::None(UnlimitedConfig::default()), CreditConfig::rccc())
}
