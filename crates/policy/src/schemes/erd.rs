//! Reliable datagrams, and the services they are compared with.

use pathweave_units::Duration;

use super::{SchemeInfo, common};
use crate::cc::{CcConfig, DcqcnConfig, UnlimitedConfig};
use crate::picker::PickerConfig;
use crate::{
    AckPolicy, CnpPolicy, DatagramConfig, PolicyConfig, Ports, Recovery, Reordering, Scheme, Service,
    SharedReceiveConfig, SplitConfig,
};

pub(super) const ERD: SchemeInfo = SchemeInfo {
    name: "erd",
    aliases: &["erd-dcqcn"],
    help: "One datagram queue pair a process, packets round robin over 16 paths, packets overtaken on all \
           paths are sent again, DCQCN for each destination",
    source: "ERD (preprint, 2024), with our rules for lost packets, and the reaction point of RoCE, per \
             destination",
    make: || {
        let dcqcn = DcqcnConfig::default();
        // The reaction point checks for a notification once in this time, so more frequent ones have no effect.
        let interval = dcqcn.params().alpha_timer;
        Scheme {
            policy: PolicyConfig::Split(SplitConfig {
                cc: CcConfig::Dcqcn(dcqcn),
                picker: PickerConfig::RoundRobin,
            }),
            cnp: CnpPolicy::OnMark { interval },
            ..uncontrolled()
        }
    },
};

pub(super) const ERD_UNCONTROLLED: SchemeInfo = SchemeInfo {
    name: "erd-uncontrolled",
    aliases: &[],
    help: "As erd without congestion control",
    source: "ERD (preprint, 2024), with our rules for lost packets; it describes no congestion control",
    make: uncontrolled,
};

pub(super) const XRC: SchemeInfo = SchemeInfo {
    name: "xrc",
    aliases: &[],
    help: "As ecmp with a queue pair for each process and remote host",
    source: "IBTA annex A14",
    make: || Scheme {
        service: Service::SharedReceive(SharedReceiveConfig::default()),
        ..common::dcqcn(PickerConfig::Ecmp, Recovery::GoBackN)
    },
};

pub(super) const RD: SchemeInfo = SchemeInfo {
    name: "rd",
    aliases: &[],
    help: "As ecmp with a context for each two hosts that carries one message at a time",
    source: "IBTA, reliable datagrams with end-to-end contexts",
    make: || Scheme { service: Service::EndToEnd, ..common::dcqcn(PickerConfig::Ecmp, Recovery::GoBackN) },
};

/// Recovery and acknowledgements apply to connections and have no effect here.
fn uncontrolled() -> Scheme {
    Scheme {
        policy: PolicyConfig::Split(SplitConfig {
            cc: CcConfig::None(UnlimitedConfig::default()),
            picker: PickerConfig::RoundRobin,
        }),
        recovery: Recovery::GoBackN,
        acks: AckPolicy::by_packets(1, Duration::from_us(1)),
        cnp: CnpPolicy::Off,
        queue_pairs: 1,
        // The paper has 4 ports, which hash to 3 paths. All peers of a queue pair share its ports, so they cannot be
        // chosen for distinct paths.
        paths: 16,
        ports: Ports::Any,
        forwarding: None,
        reordering: Reordering::default(),
        credit: None,
        service: Service::Datagram(DatagramConfig::default()),
    }
}
