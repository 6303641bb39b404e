//! DLBF.

use super::{SchemeInfo, common};
use crate::{CnpMode, CnpPolicy, DlbfConfig, PolicyConfig, Ports, Reordering, ReportPolicy, Scheme};
use pathweave_units::Duration;

pub(super) const INFO: SchemeInfo = SchemeInfo {
    name: "dlbf",
    aliases: &[],
    help: "DLBF: leaves a path when it marks; data waits on the new one so that it overtakes nothing",
    source: "DLBF (BUPT et al.), section III",
    make,
};

fn make() -> Scheme {
    Scheme {
        recovery: common::UNORDERED,
        cnp: CnpPolicy { mode: CnpMode::OnMark, interval: Duration::ZERO },
        reordering: Reordering::Reported(ReportPolicy::default()),
        // The number of paths between pods of the paper's network; the paper does not mention ports.
        paths: 16,
        ports: Ports::Distinct,
        ..common::clocked(PolicyConfig::Dlbf(DlbfConfig::default()))
    }
}
