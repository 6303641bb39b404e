//! DLBF, and the variant that waits instead of copying.

use super::{SchemeInfo, common};
use crate::{
    CnpPolicy, DlbfConfig, MarkedRate, OnSwitch, PolicyConfig, Ports, Reordering, ReportPolicy, Scheme,
};
use pathweave_units::Duration;

pub(super) const INFO: SchemeInfo = SchemeInfo {
    name: "dlbf",
    aliases: &[],
    help: "DLBF: leaves a path when it marks; copies of packets that would be late go first on the new one",
    source: "DLBF (BUPT et al.), section III, with our repairs of what it leaves open",
    make: || make(DlbfConfig::default()),
};

pub(super) const WAIT: SchemeInfo = SchemeInfo {
    name: "dlbf-wait",
    aliases: &[],
    help: "As dlbf without copies: data waits on the new path so that it overtakes nothing, and marks of a path that was \
           left do not count",
    source: "DLBF (BUPT et al.), section III, changed by us",
    make: || {
        make(DlbfConfig {
            on_switch: OnSwitch::Wait,
            marked_rate: MarkedRate::OfItsPath,
            ..DlbfConfig::default()
        })
    },
};

fn make(config: DlbfConfig) -> Scheme {
    Scheme {
        recovery: common::UNORDERED,
        cnp: CnpPolicy::OnMark { interval: Duration::ZERO },
        reordering: Reordering::Reported(ReportPolicy::default()),
        // The number of paths between pods of the paper's network; the paper does not mention ports.
        paths: 16,
        ports: Ports::Distinct,
        ..common::clocked(PolicyConfig::Dlbf(config))
    }
}
