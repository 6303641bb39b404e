//! Ultra Ethernet with sender-based congestion control.

use pathweave_units::{Bytes, Duration};

use super::{SchemeInfo, common};
use crate::cc::{CcConfig, NsccConfig};
use crate::picker::{PenaltiesConfig, PickerConfig};
use crate::{AckPolicy, PolicyConfig, Scheme, SplitConfig};

pub(super) const INFO: SchemeInfo = SchemeInfo {
    name: "uet-nscc",
    aliases: &["nscc"],
    help: "Ultra Ethernet's NSCC: a window in bytes for delay and ECN, paths recycled or by a bitmap, ACKs by bytes; made for trimming",
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

fn scheme() -> Scheme {
    let cc = CcConfig::Nscc(NsccConfig::default());
    let picker = PickerConfig::Mixed(PenaltiesConfig::default());
    let acks = AckPolicy::by_bytes(Bytes::new(ACK_BYTES), ACK_DELAY);
    Scheme { paths: PATHS, acks, ..common::clocked(PolicyConfig::Split(SplitConfig { cc, picker })) }
}
