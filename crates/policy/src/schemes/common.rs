//! What the schemes built from parts have in common.

use pathweave_units::{Duration, Rate};

use crate::cc::{CcConfig, DcqcnConfig, DcqcnPreset, HopScaling, SwiftConfig};
use crate::picker::PickerConfig;
use crate::{
    AckPolicy, CnpMode, CnpPolicy, Forwarding, PolicyConfig, Ports, Recovery, Reordering, Scheme, Service,
    SplitConfig,
};

/// Source ports a queue pair may use: the dynamic range 49152 to 65535 that RoCEv2 leaves for entropy. So many
/// that hashing them over 16 paths gives each its share within 3 % (one standard deviation).
const SOURCE_PORTS: u16 = 16_384;

/// An acknowledgement for every packet. Who sets it to several has 10 us for them, as [`super::laps`] has for a TCP: a
/// round trip or so of a data centre, in which 29 full packets arrive at 100 Gb/s. In 1 us, three do.
const EACH_PACKET: AckPolicy = AckPolicy::by_packets(1, Duration::from_us(10));

/// The same where round-trip times are measured, of which the time that an acknowledgement is held is part.
const EACH_PACKET_TIMED: AckPolicy = AckPolicy::by_packets(1, Duration::from_us(1));

/// DCQCN's reaction point (preset `hpcc`), and notifications for every marked packet, as that preset expects.
pub(super) fn dcqcn(picker: PickerConfig, recovery: Recovery) -> Scheme {
    let preset = DcqcnPreset::default();
    Scheme {
        policy: PolicyConfig::Split(SplitConfig { cc: CcConfig::Dcqcn(DcqcnConfig::preset(preset)), picker }),
        recovery,
        acks: EACH_PACKET,
        cnp: CnpPolicy { mode: CnpMode::OnMark, interval: preset.info().cnp_interval },
        reordering: Reordering::Silent,
        credit: None,
        queue_pairs: 1,
        paths: SOURCE_PORTS,
        ports: Ports::Any,
        forwarding: None,
        service: Service::Connection,
    }
}

/// RoCEv2 as deployed over switches that balance load: one path for the hosts, whatever the switches make of it.
pub(super) fn balanced(forwarding: Forwarding, recovery: Recovery) -> Scheme {
    Scheme { forwarding: Some(forwarding), ..dcqcn(PickerConfig::Ecmp, recovery) }
}

/// Selective repeat where packets of a queue pair overtake each other: time tells which are lost.
pub(super) const UNORDERED: Recovery = Recovery::Timed { reorder_packets: 0, window_packets: None };

/// Selective repeat where they do not: a packet is also lost once a later one is acknowledged.
pub(super) const ORDERED: Recovery = Recovery::Timed { reorder_packets: 1, window_packets: None };

/// Selective repeat of papers that spread packets over paths and have only a timer for losses, for schemes that stay as
/// printed: a packet also counts as lost once one sent so much later is acknowledged that no skew of paths explains it. More
/// than the 1.5 bandwidth-delay products UDMP ever has in flight, up to 400 Gb/s and 1,400 bytes over 12 us.
///
/// The papers have a bitmap of one BDP at the receiver, drop what is beyond it, and NACK. Here the bitmap is larger
/// and nothing is dropped; whether one BDP would have done is what the degree of reordering in the results says.
pub(super) const BY_COUNT: Recovery =
    Recovery::SelectiveRepeat { reorder_packets: 768, window_packets: None, sender_window_packets: None };

/// A policy that acknowledgements clock: one for every packet, its mark in it, no notifications.
pub(super) fn clocked(policy: PolicyConfig) -> Scheme {
    Scheme {
        policy,
        recovery: UNORDERED,
        acks: EACH_PACKET_TIMED,
        cnp: CnpPolicy { mode: CnpMode::Off, interval: Duration::ZERO },
        reordering: Reordering::Silent,
        credit: None,
        queue_pairs: 1,
        paths: SOURCE_PORTS,
        ports: Ports::Any,
        forwarding: None,
        service: Service::Connection,
    }
}

/// Congestion control by delay on one path: an acknowledgement for every packet, none for marks, go-back-N.
pub(super) fn by_delay(cc: CcConfig) -> Scheme {
    let policy = PolicyConfig::Split(SplitConfig { cc, picker: PickerConfig::Ecmp });
    Scheme { recovery: Recovery::GoBackN, ..clocked(policy) }
}

/// Swift as the evaluation of Reflex has it: a target by the nodes of the way, a window of at most one BDP and of no least
/// rate.
pub(super) fn swift_by_hops() -> SwiftConfig {
    SwiftConfig {
        hop_scaling: Some(HopScaling::default()),
        queue_target: Some(Duration::from_us(9)),
        scaling_range: Some(Duration::from_us(1)),
        min_rate: Some(Rate::ZERO),
        max_bdp: 1.0,
        ..SwiftConfig::default()
    }
}
