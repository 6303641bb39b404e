//! Common parts of the schemes.

use pathweave_units::{Duration, Rate};

use crate::cc::{CcConfig, DcqcnConfig, DcqcnPreset, HopScaling, SwiftConfig};
use crate::picker::PickerConfig;
use crate::{
    AckPolicy, CnpPolicy, Forwarding, PolicyConfig, Ports, Recovery, Reordering, Scheme, Service, SplitConfig,
};

/// Source ports that a queue pair may use: the dynamic range 49152 to 65535 that RoCEv2 leaves for entropy. They are
/// enough that hashing them over 16 paths gives each its share within 3 % (one standard deviation).
const SOURCE_PORTS: u16 = 16_384;

/// An acknowledgement for every packet. The delay applies if a scenario sets several packets: 10 us, as
/// [`super::laps`] has for a TCP. That is about a round trip of a data centre, in which 29 full packets arrive at 100
/// Gb/s; in 1 us three arrive.
const EACH_PACKET: AckPolicy = AckPolicy::by_packets(1, Duration::from_us(10));

/// An acknowledgement for every packet, for schemes that measure round-trip times, which include the delay of
/// acknowledgements.
const EACH_PACKET_TIMED: AckPolicy = AckPolicy::by_packets(1, Duration::from_us(1));

/// Returns a scheme with DCQCN's reaction point (preset `hpcc`), and notifications for every marked packet, as the
/// preset expects.
pub(super) fn dcqcn(picker: PickerConfig, recovery: Recovery) -> Scheme {
    let preset = DcqcnPreset::default();
    Scheme {
        policy: PolicyConfig::Split(SplitConfig { cc: CcConfig::Dcqcn(DcqcnConfig::preset(preset)), picker }),
        recovery,
        acks: EACH_PACKET,
        cnp: CnpPolicy::OnMark { interval: preset.info().cnp_interval },
        reordering: Reordering::Silent,
        credit: None,
        queue_pairs: 1,
        paths: SOURCE_PORTS,
        ports: Ports::Any,
        forwarding: None,
        service: Service::Connection,
    }
}

/// Returns RoCEv2 as deployed over switches that balance load: the hosts use one path, whatever the switches do.
pub(super) fn balanced(forwarding: Forwarding, recovery: Recovery) -> Scheme {
    Scheme { forwarding: Some(forwarding), ..dcqcn(PickerConfig::Ecmp, recovery) }
}

/// Selective repeat if packets of a queue pair overtake each other: losses are detected by time.
pub(super) const UNORDERED: Recovery = Recovery::Timed { reorder_packets: 0, window_packets: None };

/// Selective repeat if packets stay in order: a packet is also lost once a later one is acknowledged.
pub(super) const ORDERED: Recovery = Recovery::Timed { reorder_packets: 1, window_packets: None };

/// Selective repeat of papers that spread packets over paths and detect losses only by a timer, for schemes that stay
/// as printed. A packet also counts as lost once one sent 768 packets later is acknowledged, which no skew between
/// paths explains. This is more than the 1.5 bandwidth-delay products that UDMP ever has in flight, up to 400 Gb/s
/// and 1,400 bytes over 12 us.
///
/// The papers have a bitmap of one BDP at the receiver, drop packets beyond it, and NACK. Here the bitmap is larger
/// and nothing is dropped; the degree of reordering in the results shows whether one BDP would have sufficed.
pub(super) const BY_COUNT: Recovery =
    Recovery::SelectiveRepeat { reorder_packets: 768, window_packets: None, sender_window_packets: None };

/// Returns a scheme with an ACK-clocked policy: one acknowledgement for every packet, with its mark, and no
/// notifications.
pub(super) fn clocked(policy: PolicyConfig) -> Scheme {
    Scheme {
        policy,
        recovery: UNORDERED,
        acks: EACH_PACKET_TIMED,
        cnp: CnpPolicy::Off,
        reordering: Reordering::Silent,
        credit: None,
        queue_pairs: 1,
        paths: SOURCE_PORTS,
        ports: Ports::Any,
        forwarding: None,
        service: Service::Connection,
    }
}

/// Returns a scheme with congestion control by delay on one path: an acknowledgement for every packet, no
/// notifications, go-back-N.
pub(super) fn by_delay(cc: CcConfig) -> Scheme {
    let policy = PolicyConfig::Split(SplitConfig { cc, picker: PickerConfig::Ecmp });
    Scheme { recovery: Recovery::GoBackN, ..clocked(policy) }
}

/// Returns Swift as in the evaluation of Reflex: a target by the nodes of the path, a window of at most one BDP, and
/// no minimum rate.
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
