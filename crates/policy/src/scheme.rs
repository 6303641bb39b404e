//! A scheme: a named preset of policy, loss recovery, acknowledgements and queue pairs.

use pathweave_units::{Bytes, Duration, Forwarding, Rate, Rng};

use crate::cc::dcqcn::Reaction;
use crate::cc::{CcConfig, Dcqcn, UnlimitedConfig, Window};
use crate::error::check;
use crate::fluid::{AsFluid, Control, Fluid};
use crate::{
    AnyPolicy, ConfigError, CreditConfig, CreditTerms, DlbfConfig, PolicyConfig, PolicyEnv, Reordering,
    Service, Slows, SplitConfig,
};

/// A named preset, or one with overrides. In a scenario it is a name (`scheme = "rps"`) or a table whose `base` is a
/// name and whose other fields are these, merged over the preset's: `{ base = "rps", paths = 64 }`. Merging is by
/// table, except that a `kind` that differs from the base's replaces its table whole.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, rename_all = "snake_case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Scheme {
    /// When a packet may leave, and on which path.
    pub policy: PolicyConfig,
    /// Loss recovery.
    pub recovery: Recovery,
    /// When the receiver acknowledges.
    pub acks: AckPolicy,
    /// Whether and when the receiver sends congestion notifications.
    pub cnp: CnpPolicy,
    /// What the receiver says of packets that arrive ahead of a gap.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Reordering::is_silent"))]
    pub reordering: Reordering,
    /// Receivers grant credit, without which senders send no more than a first window. Absent: they do not.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub credit: Option<CreditConfig>,
    /// Queue pairs a message is split over evenly (QP scaling); 1 for everything else.
    pub queue_pairs: u16,
    /// Paths (UDP source ports) each queue pair may choose from, for each NIC port that leads to its peer.
    pub paths: u16,
    /// Which ports these are.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "is_any"))]
    pub ports: Ports,
    /// Load balancing that the switches of a simulated fabric must do for this scheme. Absent: any; where no scheme and
    /// no `switch.forwarding.kind` says otherwise, they hash.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub forwarding: Option<Forwarding>,
    /// Whom a queue pair serves: "connection" (default) one process at the other end.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Service::is_connection"))]
    pub service: Service,
}

/// Most bytes of an acknowledgement.
const MAX_ACK_BYTES: u64 = 16_000_000;

/// Congestion control of a datagram queue pair: a reaction point for each destination, since congestion is on the way to
/// one of them and the others shall not pay; driven by the notifications of that destination. ERD describes none; this is
/// RoCE's.
#[derive(Clone, Copy, Debug)]
pub struct DestinationControl {
    /// State of a destination to which nothing has been sent.
    pub fresh: Dcqcn,
    /// When this end notifies others of marks.
    pub cnp: CnpPolicy,
    /// Whom a notification slows down. If it is the queue pair, its policy has the reaction point, and a destination's
    /// stays at line rate.
    pub slows: Slows,
}

impl Scheme {
    /// Paths of a queue pair to whose peer so many NIC ports lead: [`paths`](Scheme::paths) for each port, as far as 16 bits tell
    /// them apart.
    pub fn paths_over(&self, nic_ports: u16) -> u16 {
        let ports = nic_ports.max(1);
        self.paths.min(u16::MAX / ports) * ports
    }

    /// What it is to a model of flows as fluids, whatever the switches do.
    pub fn as_fluid(&self) -> Fluid {
        let fluid = self.policy.as_fluid();
        // Receivers keep queues as short as congestion controls by delay do, after a first window as theirs.
        if self.credit.is_some() { Fluid { control: Control::BY_DELAY, ..fluid } } else { fluid }
    }

    /// Names the first field that is wrong, or the combination that cannot work.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.policy.validate().map_err(|error| error.within("policy"))?;
        check(self.queue_pairs > 0, "queue_pairs", self.queue_pairs, "at least 1")?;
        check(self.paths > 0, "paths", self.paths, "at least 1")?;
        check(self.acks.every_packets > 0, "acks.every_packets", self.acks.every_packets, "at least 1")?;
        if let Some(bytes) = self.acks.every_bytes {
            let in_range = (1..=MAX_ACK_BYTES).contains(&bytes.get());
            check(in_range, "acks.every_bytes", bytes, "1B to 16MB")?;
        }
        if let Some(window_packets) = self.recovery.window_packets() {
            check(window_packets > 0, "recovery.window_packets", window_packets, "at least 1")?;
            let sent = self.recovery.sender_window_packets().unwrap_or(window_packets);
            check(
                sent >= window_packets,
                "recovery.sender_window_packets",
                sent,
                "at least `window_packets`",
            )?;
        }
        if let Recovery::PathOrder { rto_min, .. } = self.recovery {
            let min = rto_min > Duration::ZERO && rto_min <= Duration::from_ms(10_000);
            check(min, "recovery.rto_min", rto_min, "more than 0s, at most 10s")?;
            check(
                self.acks.every_packets == 1 && self.acks.every_bytes.is_none(),
                "acks.every_packets",
                self.acks.every_packets,
                "1 with recovery \"path_order\": a packet that is not answered by itself counts as lost",
            )?;
        }
        self.validate_sleek()?;
        if let Recovery::Timeouts { exponent, alike, retries, .. } = self.recovery {
            let exponent = exponent.unwrap_or_default();
            check(exponent <= 24, "recovery.exponent", exponent, "0 to 24")?;
            check((1..=7).contains(&alike), "recovery.alike", alike, "1 to 7")?;
            check((1..=25).contains(&retries), "recovery.retries", retries, "1 to 25 (25: never)")?;
        }
        self.reordering.validate(self.recovery).map_err(|error| error.within("reordering"))?;
        if let Some(credit) = &self.credit {
            credit.validate().map_err(|error| error.within("credit"))?;
            let connections = self.service.is_connection();
            check(connections, "credit", "(this table)", "absent where the service is not \"connection\"")?;
        }
        self.service.validate().map_err(|error| error.within("service"))?;
        if matches!(self.service, Service::Datagram(_)) {
            let window = match &self.policy {
                PolicyConfig::Split(SplitConfig { cc: CcConfig::None(config), .. }) => Some(config.window),
                PolicyConfig::Split(SplitConfig { cc: CcConfig::Dcqcn(config), .. }) => {
                    Some(config.params().window)
                }
                _ => None,
            };
            let allowed = "a split policy with congestion control \"none\" or \"dcqcn\" and no window: datagrams \
                           are not acknowledged";
            check(window == Some(Window::Unlimited), "policy", "(this policy)", allowed)?;
            let mode = self.cnp.mode;
            let on_gap = "\"off\" or \"on_mark\": datagrams may arrive in any order";
            check(mode != CnpMode::OnMarkOrGap, "cnp.mode", "\"on_mark_or_gap\"", on_gap)?;
            check(
                self.queue_pairs == 1,
                "queue_pairs",
                self.queue_pairs,
                "1, as a datagram queue pair serves everybody",
            )?;
        }
        if let Some(dcqcn) = self.dcqcn() {
            let p = dcqcn.params();
            let spaced = p.decrease_interval > Duration::ZERO || self.cnp.interval > Duration::ZERO;
            check(
                p.reaction == Reaction::Sampled || spaced,
                "cnp.interval",
                self.cnp.interval,
                "more than 0s (the DCQCN paper has 50us), because this DCQCN reacts to every notification",
            )?;
        }
        Ok(())
    }
    /// SLEEK reckons with a window, and has bounds of its own.
    fn validate_sleek(&self) -> Result<(), ConfigError> {
        let Recovery::Sleek { reorder_windows, reorder_packets, probe_rtts, probe_again_rtts, .. } =
            self.recovery
        else {
            return Ok(());
        };
        let has_window = matches!(&self.policy, PolicyConfig::Split(split) if split.cc.has_window());
        let allowed = "one of the others with this policy: \"sleek\" needs a split policy whose congestion control \
                       has a window (\"nscc\", \"smartt\", \"strack\", \"swift\", \"mswift\", \"dctcp\")";
        check(has_window, "recovery.kind", "\"sleek\"", allowed)?;
        let windows = (0.1..=1e3).contains(&reorder_windows);
        check(windows, "recovery.reorder_windows", reorder_windows, "0.1 to 1000")?;
        check(reorder_packets > 0, "recovery.reorder_packets", reorder_packets, "at least 1")?;
        let rtts = |field, rtts: f64| check((0.1..=1e3).contains(&rtts), field, rtts, "0.1 to 1000");
        rtts("recovery.probe_rtts", probe_rtts)?;
        rtts("recovery.probe_again_rtts", probe_again_rtts)
    }
    /// What credit means for a queue pair whose end's own link has this rate, where receivers grant any.
    pub fn credit_terms(&self, env: &PolicyEnv, link: Rate) -> Option<CreditTerms> {
        self.credit.map(|credit| credit.terms(env, link))
    }
    /// For a datagram queue pair: its policy, which picks paths and sends as fast as the line or the rate of all
    /// destinations together allows, and the rate control that each destination has of its own, if the scheme has any.
    pub fn datagram_policy(&self, env: &PolicyEnv, rng: &mut Rng) -> (AnyPolicy, Option<DestinationControl>) {
        let mut policy = self.policy.clone();
        let mut control = None;
        if let PolicyConfig::Split(split) = &mut policy
            && let CcConfig::Dcqcn(config) = &split.cc
        {
            let fresh = Dcqcn::new(config, env);
            let slows = match &self.service {
                Service::Datagram(behaviour) => behaviour.slows,
                _ => Slows::Destination,
            };
            control = Some(DestinationControl { fresh, cnp: self.cnp, slows });
            if slows == Slows::Destination {
                split.cc = CcConfig::None(UnlimitedConfig::default());
            }
        }
        (policy.build(env, rng), control)
    }
    /// Senders slow down where the network is congested, by themselves or by the credit of receivers.
    pub fn controls_congestion(&self) -> bool {
        let none = match &self.policy {
            PolicyConfig::Split(SplitConfig { cc, .. }) | PolicyConfig::Dlbf(DlbfConfig { cc, .. }) => {
                matches!(cc, CcConfig::None(_))
            }
            _ => false,
        };
        !none || self.credit.is_some()
    }
    /// The DCQCN parameters, where the scheme has any.
    pub fn dcqcn(&self) -> Option<&crate::cc::DcqcnConfig> {
        match &self.policy {
            PolicyConfig::Split(SplitConfig { cc: CcConfig::Dcqcn(config), .. })
            | PolicyConfig::Dlbf(DlbfConfig { cc: CcConfig::Dcqcn(config), .. }) => Some(config),
            _ => None,
        }
    }
}

#[cfg(feature = "serde")]
fn is_any(ports: &Ports) -> bool {
    *ports == Ports::Any
}

/// Which source ports a queue pair uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Ports {
    /// Any: several may take the same way, as switches hash them.
    #[default]
    Any,
    /// One for each way the fabric has to the receiver, up to `paths` of them, found by evaluating the hashes of the
    /// switches. For simulations: hosts do not know these hashes, but can find as much by tracing.
    Distinct,
}

/// Loss recovery of the sender and what the receiver does with packets out of order.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, rename_all = "snake_case", tag = "kind"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Recovery {
    /// The receiver drops what is out of order and NACKs once a gap; the sender goes back to the gap.
    GoBackN,
    /// As go-back-N, and what arrives ahead of the same gap `repeat` after the last NACK makes another, upon which the sender goes
    /// back again (conweave-ns3: 4 us).
    GoBackNRepeated {
        /// Least time between two NACKs of a gap.
        repeat: Duration,
    },
    /// The receiver places packets in any order; the sender resends what is missing.
    SelectiveRepeat {
        /// A packet counts as lost once one sent this many packets later is acknowledged. 0: never, only the
        /// timer finds losses; right for lossless fabrics under spraying.
        reorder_packets: u32,
        /// Packets beyond the first gap that the receiver tracks; further ones are dropped and NACKed. Absent: 4,096,
        /// or as many as fill two bandwidth-delay products of the path.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
        window_packets: Option<u32>,
        /// Packets beyond the first gap that the sender sends, at least `window_packets`: more than those the receiver drops
        /// (UDMP, section III-D). Absent: `window_packets`.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
        sender_window_packets: Option<u32>,
    },
    /// As selective repeat, with losses found by time, learned from round-trip times (in the spirit of RACK and its tail
    /// loss probe, RFC 8985). What left before a packet that has arrived, and longer ago than any of late took, is lost; where
    /// switches pause or trim, only if a probe that followed it on its path comes back before it, or after twice that time.
    /// Where nothing arrives any more, probes follow the oldest packet after that time, after twice that time, and so on. Only
    /// if nothing answers for the configured retransmission timeout is that a timeout; a message fails after as long as the
    /// configured timeouts last in all.
    Timed {
        /// A packet also counts as lost once one sent this many packets later is acknowledged. 0: never.
        #[cfg_attr(feature = "serde", serde(default))]
        reorder_packets: u32,
        /// Packets beyond the first gap that the receiver tracks; further ones are dropped and NACKed. Absent: 4,096,
        /// or as many as fill two bandwidth-delay products of the path.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
        window_packets: Option<u32>,
    },
    /// As selective repeat without a bound, with the timer of MRC's NICs in place of the configured one: 1.024 us times a power
    /// of two. Apart from what trims tell, only it finds losses.
    Timeouts {
        /// Packets beyond the first gap that the receiver tracks; further ones are dropped and NACKed. MRC has multiples
        /// of 128. Absent: 1,024, or the multiple of 128 that fills two bandwidth-delay products of the path.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
        window_packets: Option<u32>,
        /// The power of two, 0 to 24. Absent: the least one that makes eight idle round trips.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
        exponent: Option<u8>,
        /// Timeouts in a row that are alike, 1 to 7; the following ones double.
        alike: u8,
        /// Timeouts in a row without progress after which a message fails, 1 to 25; 25: never.
        retries: u8,
    },
    /// SLEEK, Ultra Ethernet's recovery without trimming, for congestion controls with a window. Once more packets ahead of a
    /// gap are acknowledged than 1.5 windows hold, all that is missing of a window from the gap on is sent again, each packet
    /// once, whatever the window says. Where no acknowledgement comes, a probe follows the data: if it met no queue and the
    /// data has not arrived, that is lost. The configured retransmission timer is for what no probe tells.
    Sleek {
        /// Packets beyond the first gap that the receiver tracks; further ones are dropped and NACKed. Absent: 4,096,
        /// or as many as fill two bandwidth-delay products of the path.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
        window_packets: Option<u32>,
        /// Packets ahead of a gap that prove it a loss, in windows, of which the product is at most the largest window.
        #[cfg_attr(feature = "serde", serde(default = "sleek::reorder_windows"))]
        reorder_windows: f64,
        /// The least of that, in packets.
        #[cfg_attr(feature = "serde", serde(default = "sleek::reorder_packets"))]
        reorder_packets: u32,
        /// Base round-trip times from an acknowledgement to the probe, while new data waits. Where none does: one, and the
        /// delay that the congestion control aims at.
        #[cfg_attr(feature = "serde", serde(default = "sleek::probe_rtts"))]
        probe_rtts: f64,
        /// From a probe to the next.
        #[cfg_attr(feature = "serde", serde(default = "sleek::probe_again_rtts"))]
        probe_again_rtts: f64,
    },
    /// As selective repeat, with losses found by the order of packets on each path, which keeps it there and back: once a
    /// packet is acknowledged, what left before it on its path and is not is lost. Wants an acknowledgement for every
    /// packet. What leaves last on a path is found lost by the path's timer (LAPS, algorithm 3).
    PathOrder {
        /// Packets beyond the first gap that the receiver tracks; further ones are dropped and NACKed. Absent: 4,096,
        /// or as many as fill two bandwidth-delay products of the path.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
        window_packets: Option<u32>,
        /// Whose packets keep one order.
        scope: RingScope,
        /// How long a path may say nothing.
        rto: PathRto,
        /// The least of that: 8 ms where PFC may hold packets up, 100 us where it does not.
        rto_min: Duration,
        /// Added to it: 16 packets on the slowest link.
        rto_slack: Duration,
    },
}

/// What SLEEK has in uet-htsim 40ccb05.
mod sleek {
    pub(super) const fn reorder_windows() -> f64 {
        1.5
    }
    pub(super) const fn reorder_packets() -> u32 {
        5
    }
    pub(super) const fn probe_rtts() -> f64 {
        3.0
    }
    pub(super) const fn probe_again_rtts() -> f64 {
        5.0
    }
}

impl Recovery {
    /// SLEEK with the figures of uet-htsim 40ccb05.
    pub const fn sleek() -> Self {
        Recovery::Sleek {
            window_packets: None,
            reorder_windows: sleek::reorder_windows(),
            reorder_packets: sleek::reorder_packets(),
            probe_rtts: sleek::probe_rtts(),
            probe_again_rtts: sleek::probe_again_rtts(),
        }
    }
    /// The number of retries of [`Recovery::Timeouts`] that stands for any number.
    pub const RETRIES_FOR_EVER: u8 = 25;

    /// Whether packets out of order are dropped, and the sender goes back to the first.
    pub const fn goes_back(&self) -> bool {
        matches!(self, Recovery::GoBackN | Recovery::GoBackNRepeated { .. })
    }
    /// Packets beyond the first gap that the receiver tracks, where it takes any and was told how many.
    pub const fn given_window_packets(&self) -> Option<u32> {
        match *self {
            Recovery::GoBackN | Recovery::GoBackNRepeated { .. } => None,
            Recovery::SelectiveRepeat { window_packets, .. }
            | Recovery::Timed { window_packets, .. }
            | Recovery::Sleek { window_packets, .. }
            | Recovery::Timeouts { window_packets, .. }
            | Recovery::PathOrder { window_packets, .. } => window_packets,
        }
    }
    /// Packets beyond the first gap that the receiver tracks, where it takes any, on a short path.
    pub const fn window_packets(&self) -> Option<u32> {
        match self.given_window_packets() {
            Some(packets) => Some(packets),
            None if self.goes_back() => None,
            None if matches!(self, Recovery::Timeouts { .. }) => Some(LEAST_WINDOW_PACKETS_OF_NICS),
            None => Some(LEAST_WINDOW_PACKETS),
        }
    }
    /// Packets beyond the first gap that the sender sends, of which the receiver drops some; `None` if it keeps to those that the
    /// receiver tracks.
    pub const fn sender_window_packets(&self) -> Option<u32> {
        match *self {
            Recovery::SelectiveRepeat { sender_window_packets, .. } => sender_window_packets,
            _ => None,
        }
    }
    /// The same with so many packets, where it takes any ahead of a gap.
    pub const fn with_window_packets(mut self, packets: u32) -> Self {
        if let Recovery::SelectiveRepeat { window_packets, .. }
        | Recovery::Timed { window_packets, .. }
        | Recovery::Sleek { window_packets, .. }
        | Recovery::Timeouts { window_packets, .. }
        | Recovery::PathOrder { window_packets, .. } = &mut self
        {
            *window_packets = Some(packets);
        }
        self
    }
    /// The same for a path that holds so many full packets: where nothing was said, its window is twice that, so that a
    /// packet that is lost and sent again does not stop those behind it.
    pub fn for_path(self, path_packets: u64) -> Self {
        match (self.given_window_packets(), self.window_packets()) {
            (None, Some(least)) => {
                let most = u64::from(MOST_WINDOW_PACKETS);
                let wanted = path_packets.saturating_mul(2).min(most);
                let wanted = wanted.next_multiple_of(u64::from(WINDOW_STEP_PACKETS)).min(most);
                self.with_window_packets(least.max(wanted as u32))
            }
            _ => self,
        }
    }
}

/// Packets beyond a gap that receivers track at least, if nothing was said. Beyond the skew that queues at ECN's upper
/// threshold cause between paths (400 KB for each 25 Gb/s, 1,600 packets of 1,000 bytes at 100 Gb/s).
const LEAST_WINDOW_PACKETS: u32 = 4_096;
/// Those of NICs as MRC has them: its example.
const LEAST_WINDOW_PACKETS_OF_NICS: u32 = 1_024;
/// Steps in which a window follows its path: MRC's.
const WINDOW_STEP_PACKETS: u32 = 128;
/// Most packets between the oldest unacknowledged and the newest, whatever the recovery: a quarter of the wire's 24-bit PSN
/// space, so that every PSN can be told from its neighbours of other rounds.
pub const MOST_WINDOW_PACKETS: u32 = 1 << 22;

/// Whose packets keep one order on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum RingScope {
    /// Those of all queue pairs to a host: what is heard of one shows the losses of another (LAPS, its code).
    #[default]
    Host,
    /// Those of a queue pair (LAPS, section III-D).
    QueuePair,
}

/// How long a path may say nothing before all that is outstanding on it counts as lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum PathRto {
    /// Twice its delay and `rto_slack`, at least `rto_min`.
    #[default]
    Guarded,
    /// Twice its latest one-way delay, which any growing queue exceeds (LAPS, section III-D). Needs clocks that agree.
    Published,
    /// `rto_min` always (LAPS, its code).
    Fixed,
}

/// When the receiver acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AckPolicy {
    /// Data packets an acknowledgement; 1 is one for each. Acknowledged at once are the last packet of a message, what
    /// arrives twice, what was sent again while packets are missing, the packet that proves one lost
    /// (`recovery.reorder_packets`), and what completes a message. Packets out of order are not: the acknowledgement tells
    /// of 64 of them. Go-back-N refuses these at once.
    pub every_packets: u16,
    /// A delayed acknowledgement leaves at the latest after this time.
    pub max_delay: Duration,
    /// Absent: packets count. Given: an acknowledgement for so many bytes of new packets, headers and gaps included, whatever
    /// `every_packets` says; and at once for the first packet of a queue pair, for marked ones, for what arrives twice or was
    /// sent again, for those with which the sender asks, and when such a one stops being ahead of a gap. Senders ask where they
    /// may send no more, or have no more (Ultra Ethernet 1.0, section 3.6.12).
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub every_bytes: Option<Bytes>,
}

impl AckPolicy {
    /// One for so many packets.
    pub const fn by_packets(every_packets: u16, max_delay: Duration) -> Self {
        AckPolicy { every_packets, max_delay, every_bytes: None }
    }
    /// One for so many bytes.
    pub const fn by_bytes(every_bytes: Bytes, max_delay: Duration) -> Self {
        AckPolicy { every_packets: 1, max_delay, every_bytes: Some(every_bytes) }
    }
    /// Whether an acknowledgement may wait for others.
    pub const fn may_wait(&self) -> bool {
        self.every_packets > 1 || self.every_bytes.is_some()
    }
    /// Full packets of so many bytes on the wire for one acknowledgement that nobody asks for. At least 1.
    pub fn packets_an_ack(&self, wire_bytes: u64) -> u64 {
        match self.every_bytes {
            Some(bytes) => bytes.get().div_ceil(wire_bytes.max(1)).max(1),
            None => u64::from(self.every_packets),
        }
    }
}

/// Congestion notification point (DCQCN NP).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CnpPolicy {
    /// Whether notifications are sent.
    pub mode: CnpMode,
    /// At most one notification a queue pair in this time (DCQCN's N). Zero: one for every marked packet.
    pub interval: Duration,
}

/// Whether the receiver sends congestion notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum CnpMode {
    /// Never.
    #[default]
    Off,
    /// For packets marked Congestion Experienced.
    OnMark,
    /// For these, and for packets that arrive ahead of a gap, which RoCE adapters take for a sign of loss and answer
    /// with a notification even where only the missing packet is sent again (so the ConWeave simulator: a selective
    /// acknowledgement of a gap carries the notification bit). Under DCQCN reordering then costs rate. With go-back-N,
    /// which drops what is behind a gap, the notification goes with the NACK, one a gap.
    OnMarkOrGap,
}

#[cfg(all(test, feature = "serde"))]
mod tests {
    use super::*;
    use crate::cc::DcqcnPreset;
    use crate::{find_scheme, schemes};
    use serde_json::{Value, from_value, json, to_value};
    use std::string::ToString;

    fn preset(name: &str) -> Scheme {
        (find_scheme(name).expect("a scheme").make)()
    }

    #[test]
    fn every_scheme_survives_writing_and_reading() {
        for info in schemes() {
            let scheme = (info.make)();
            let text = to_value(&scheme).expect("a scheme can be written");
            assert_eq!(from_value::<Scheme>(text).expect("and read"), scheme);
        }
    }

    #[test]
    fn the_written_form_is_short_and_an_override_changes_one_field() {
        let mut text = to_value(preset("rps")).expect("a scheme can be written");
        let policy = json!({ "kind": "split", "cc": { "kind": "dcqcn", "preset": "hpcc" }, "picker": "rps" });
        assert_eq!(text["policy"], policy);
        text["policy"]["cc"]["preset"] = json!("laps");
        text["policy"]["cc"]["additive_increase"] = json!("40Mbps");
        let scheme: Scheme = from_value(text).expect("an override");
        let dcqcn = scheme.dcqcn().expect("DCQCN");
        let params = dcqcn.params();
        assert_eq!(params.additive_increase.as_bps(), 40_000_000);
        assert_eq!(params.min_rate, DcqcnPreset::Laps.info().params.min_rate);
        assert_eq!(scheme.validate(), Ok(()));
    }

    fn complaint(change: impl FnOnce(&mut Value)) -> std::string::String {
        let mut text = to_value(preset("rps")).expect("a scheme can be written");
        change(&mut text);
        match from_value::<Scheme>(text) {
            Ok(scheme) => scheme.validate().expect_err("must be refused").to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let unknown = complaint(|text| text["policy"]["cc"]["gian"] = json!(0.5));
        assert!(unknown.contains("gian") && unknown.contains("`gain`"), "{unknown}");
        let preset = complaint(|text| text["policy"]["cc"]["preset"] = json!("papper"));
        assert!(preset.contains("papper") && preset.contains("`paper`"), "{preset}");
        let range = complaint(|text| text["policy"]["cc"]["gain"] = json!(2.0));
        assert_eq!(range, "policy.cc.gain = 2 is not allowed: more than 0, at most 1");
        let paths = complaint(|text| text["paths"] = json!(0));
        assert_eq!(paths, "paths = 0 is not allowed: at least 1");
        let spacing = complaint(|text| text["policy"]["cc"]["preset"] = json!("paper"));
        assert!(spacing.starts_with("cnp.interval = 0s is not allowed: more than 0s"), "{spacing}");
    }

    #[cfg(feature = "schema")]
    #[test]
    fn the_json_schema_carries_the_help_texts() {
        let schema = serde_json::to_string(&schemars::schema_for!(Scheme)).expect("a schema is JSON");
        assert!(schema.contains("step of rate increase") && schema.contains("selective_repeat"));
    }
}
