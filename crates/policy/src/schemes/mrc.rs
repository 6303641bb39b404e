//! MRC.

use pathweave_units::{Bytes, Duration};

use super::{SchemeInfo, common};
use crate::{AckPolicy, MrcConfig, PolicyConfig, Recovery, Scheme};

pub(super) const INFO: SchemeInfo = SchemeInfo {
    name: "mrc",
    aliases: &[],
    help: "MRC: paths in turn, each with a state that marks, trims, losses and probes change; NSCC's window; timeouts of NICs; made for trimming",
    source: "MRC (OCP 1.0, arXiv 2605.04333), as understood from second-hand descriptions; its unpublished figures are parameters with values of ours",
    make: scheme,
};

/// Number of entropy values: the most that MRC has in use; here half of them are backups.
const PATHS: u16 = 256;

/// Bytes of new packets per acknowledgement, as in Ultra Ethernet.
const ACK_BYTES: u64 = 16_384;
const ACK_DELAY: Duration = Duration::from_us(10);

fn scheme() -> Scheme {
    let acks = AckPolicy::by_bytes(Bytes::new(ACK_BYTES), ACK_DELAY);
    // Seven equal timeouts, the most that MRC has, and seven more, as RoCE NICs have.
    let recovery = Recovery::Timeouts { window_packets: None, exponent: None, alike: 7, retries: 14 };
    Scheme { paths: PATHS, acks, recovery, ..common::clocked(PolicyConfig::Mrc(MrcConfig::default())) }
}
