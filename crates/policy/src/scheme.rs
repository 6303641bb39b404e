//! A scheme: a named preset of policy, loss recovery, acknowledgements and queue pairs.

use pathweave_units::{Bytes, Duration, Forwarding, Rate, Rng, Spread};

use crate::cc::dcqcn::Reaction;
use crate::cc::{CcConfig, Dcqcn, HPCC_PATHS, UnlimitedConfig, Window};
use crate::credit::FabricControl;
use crate::error::{check, within};
use crate::fluid::{AsFluid, ControlModel, Fluid};
use crate::{
    Adapt, AnyPolicy, ConfigError, CreditConfig, CreditParams, DatagramConfig, DlbfConfig, MarkUse,
    NotificationScope, PolicyConfig, PolicyEnv, Reordering, Service, SplitConfig,
};

/// A named preset, or a preset with overrides. In a scenario it is a name (`scheme = "rps"`) or a table. The field
/// `base` of the table is the name of a preset, and the other fields are merged over the preset's:
/// `{ base = "rps", paths = 64 }`. Merging is by table, except that a `kind` that differs from the base's replaces
/// its table as a whole.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, rename_all = "snake_case"))]
pub struct Scheme {
    /// Policy: decides when a packet may leave, and on which path.
    pub policy: PolicyConfig,
    /// Loss recovery.
    pub recovery: Recovery,
    /// Acknowledgements of the receiver.
    pub acks: AckPolicy,
    /// Congestion notifications of the receiver.
    pub cnp: CnpPolicy,
    /// Reports of the receiver about packets that arrive ahead of a gap. Default: none.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Reordering::is_silent"))]
    pub reordering: Reordering,
    /// Receiver credit, without which senders send no more than a first window. Absent: no credit.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub credit: Option<CreditConfig>,
    /// Queue pairs over which a message is split evenly (QP scaling); 1 in all other schemes.
    pub queue_pairs: u16,
    /// Paths (UDP source ports) that each queue pair may choose from, for each NIC port that leads to its peer.
    pub paths: u16,
    /// Choice of these source ports. Default "any".
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "is_any"))]
    pub ports: Ports,
    /// Load balancing that the switches of a simulated fabric must perform for this scheme. Absent: no requirement;
    /// switches then use `switch.forwarding.kind`, or ECMP hashing if that is absent too.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub forwarding: Option<Forwarding>,
    /// Transport service: the peers that a queue pair serves. Default "connection": one process at the peer.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Service::is_connection"))]
    pub service: Service,
}

/// Largest value of `acks.every_bytes`, bytes.
const MAX_ACK_BYTES: u64 = 16_000_000;

/// Congestion control of a datagram queue pair: one reaction point for each destination, driven by the notifications
/// of that destination. Congestion on the route to one destination therefore does not slow the others. ERD describes
/// no congestion control; this is that of RoCE.
#[derive(Clone, Copy, Debug)]
pub struct DestinationControl {
    /// State of a destination to which nothing has been sent.
    pub fresh: Dcqcn,
    /// Policy by which this end sends notifications of marks.
    pub cnp: CnpPolicy,
    /// Scope of a notification. If it is the queue pair, its policy holds the reaction point, and that of a
    /// destination stays at line rate.
    pub slows: NotificationScope,
}

impl Scheme {
    /// Returns true if connections between real hosts can use the scheme. Other services have endpoints of their own, and
    /// real switches write no telemetry.
    pub fn connects_real_hosts(&self) -> bool {
        self.service.is_connection() && !self.policy.reads_telemetry()
    }
    /// Returns the number of paths of a queue pair whose peer is reached over `nic_ports` NIC ports:
    /// [`paths`](Scheme::paths) for each port, as far as 16 bits suffice.
    pub fn paths_over(&self, nic_ports: u16) -> u16 {
        let ports = nic_ports.max(1);
        self.paths.min(u16::MAX / ports) * ports
    }

    /// Returns the use of marks by senders. DCQCN hears of marks by notifications, as senders of datagrams do, and
    /// receivers may grant less credit after marks.
    pub fn marks(&self) -> MarkUse {
        let paced = self.credit.as_ref().is_some_and(|credit| credit.fabric != FabricControl::Off);
        let by_notifications =
            matches!(&self.policy, PolicyConfig::Split(SplitConfig { cc: CcConfig::Dcqcn(_), .. }));
        let of_sender = match self.cnp {
            CnpPolicy::Off if by_notifications => MarkUse::Ignored,
            CnpPolicy::Off => self.policy.marks(),
            _ if self.service.is_connection() => self.policy.marks(),
            _ => MarkUse::Alone,
        };
        if paced { of_sender.max(MarkUse::BesideDelay) } else { of_sender }
    }

    /// Describes the scheme for fluid models, whatever the switches do.
    pub fn as_fluid(&self) -> Fluid {
        let fluid = self.policy.as_fluid();
        if self.credit.is_none() {
            return fluid;
        }
        // After the first window, receiver credit keeps queues as short as congestion control by delay does.
        let control = ControlModel { alone: fluid.control.alone, ..ControlModel::BY_DELAY };
        Fluid { control, ..fluid }
    }

    /// Returns an error that names the first invalid field, or the combination that cannot work.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.policy.validate().map_err(|error| error.within("policy"))?;
        within("queue_pairs", self.queue_pairs, 1.., "")?;
        within("paths", self.paths, 1.., "")?;
        within("acks.every_packets", self.acks.every_packets, 1.., "")?;
        if let Some(bytes) = self.acks.every_bytes {
            let in_range = (1..=MAX_ACK_BYTES).contains(&bytes.get());
            check(in_range, "acks.every_bytes", bytes, "1B to 16MB")?;
        }
        if let Some(window_packets) = self.recovery.window_packets() {
            within("recovery.window_packets", window_packets, 1.., "")?;
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
        self.validate_telemetry()?;
        self.validate_sleek()?;
        if let Recovery::Timeouts { exponent, alike, retries, .. } = self.recovery {
            let exponent = exponent.unwrap_or_default();
            check(exponent <= Recovery::MOST_TIMER_EXPONENT, "recovery.exponent", exponent, "0 to 24")?;
            within("recovery.alike", alike, 1..=7, "")?;
            within("recovery.retries", retries, 1..=25, "25: never")?;
        }
        self.reordering.validate(self.recovery).map_err(|error| error.within("reordering"))?;
        if let Some(credit) = &self.credit {
            credit.validate().map_err(|error| error.within("credit"))?;
            let connections = self.service.is_connection();
            check(connections, "credit", "(this table)", "absent where the service is not \"connection\"")?;
        }
        self.service.validate().map_err(|error| error.within("service"))?;
        if let Service::Datagram(datagrams) = &self.service {
            self.validate_datagrams(datagrams)?;
        }
        if let Some(dcqcn) = self.dcqcn() {
            let p = dcqcn.params();
            let interval = self.cnp.interval().unwrap_or(Duration::MAX);
            let spaced = p.decrease_interval > Duration::ZERO || interval > Duration::ZERO;
            check(
                p.reaction == Reaction::Sampled || spaced,
                "cnp.interval",
                interval,
                "more than 0s (the DCQCN paper has 50us), because this DCQCN reacts to every notification",
            )?;
        }
        Ok(())
    }
    /// Validates a scheme whose queue pairs send datagrams, which are not acknowledged one by one.
    fn validate_datagrams(&self, datagrams: &DatagramConfig) -> Result<(), ConfigError> {
        let repaired = "absent with service \"datagram\": service.repair decides what is sent again";
        check(self.recovery == Recovery::GoBackN, "recovery", "(this table)", repaired)?;
        let unacknowledged = self.acks == AckPolicy::by_packets(1, self.acks.max_delay);
        check(unacknowledged, "acks", "(this table)", repaired)?;
        let ports = "\"any\": a datagram queue pair has the same ports for all its peers";
        check(self.ports == Ports::Any, "ports", "\"distinct\"", ports)?;
        if self.dcqcn().is_none() {
            let off =
                "\"off\" unless congestion control is \"dcqcn\": nothing else is slowed by notifications";
            check(self.cnp == CnpPolicy::Off, "cnp.kind", "\"on_mark\"", off)?;
            let usual = "\"destination\" unless congestion control is \"dcqcn\"";
            let by_destination = datagrams.slows == NotificationScope::Destination;
            check(by_destination, "service.slows", "\"queue_pair\"", usual)?;
        }
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
        let on_gap = "\"off\" or \"on_mark\": datagrams may arrive in any order";
        check(!self.cnp.notifies_of_gaps(), "cnp.kind", "\"on_mark_or_gap\"", on_gap)?;
        check(
            self.queue_pairs == 1,
            "queue_pairs",
            self.queue_pairs,
            "1, as a datagram queue pair serves everybody",
        )
    }
    /// Validates HPCC, which compares packets of the same path.
    fn validate_telemetry(&self) -> Result<(), ConfigError> {
        let PolicyConfig::Split(SplitConfig { cc: CcConfig::Hpcc(_), picker }) = &self.policy else {
            return Ok(());
        };
        let few = picker.spread().is_some_and(Spread::is_single) || usize::from(self.paths) <= HPCC_PATHS;
        let allowed = "1 to 64 with congestion control \"hpcc\" and a picker that spreads the packets of a message: \
                       telemetry is kept for 64 paths";
        check(few, "paths", self.paths, allowed)
    }
    /// Validates SLEEK, which requires a window and has bounds of its own.
    fn validate_sleek(&self) -> Result<(), ConfigError> {
        let Recovery::Sleek { reorder_windows, reorder_packets, probe_rtts, probe_again_rtts, .. } =
            self.recovery
        else {
            return Ok(());
        };
        let has_window = matches!(&self.policy, PolicyConfig::Split(split) if split.cc.has_window());
        let allowed = "one of the others with this policy: \"sleek\" needs a split policy whose congestion control \
                       has a window (\"nscc\", \"smartt\", \"strack\", \"swift\", \"mswift\", \"dctcp\", \"hpcc\")";
        check(has_window, "recovery.kind", "\"sleek\"", allowed)?;
        within("recovery.reorder_windows", reorder_windows, 0.1..=1e3, "")?;
        within("recovery.reorder_packets", reorder_packets, 1.., "")?;
        let rtts = |field, rtts: f64| check((0.1..=1e3).contains(&rtts), field, rtts, "0.1 to 1000");
        rtts("recovery.probe_rtts", probe_rtts)?;
        rtts("recovery.probe_again_rtts", probe_again_rtts)
    }
    /// Returns the credit terms of a queue pair whose host's own link has rate `link`, if receivers grant credit.
    pub fn credit_terms(&self, env: &PolicyEnv, link: Rate) -> Option<CreditParams> {
        self.credit.map(|credit| credit.terms(env, link))
    }
    /// Builds the policy of a datagram queue pair, and the rate control of each destination if the scheme has any.
    /// The policy picks paths and sends at line rate or at the rate of all destinations together.
    pub fn datagram_policy(&self, env: &PolicyEnv, rng: &mut Rng) -> (AnyPolicy, Option<DestinationControl>) {
        let mut policy = self.policy.clone();
        let mut control = None;
        if let PolicyConfig::Split(split) = &mut policy
            && let CcConfig::Dcqcn(config) = &split.cc
        {
            let fresh = Dcqcn::new(config, env);
            let slows = match &self.service {
                Service::Datagram(behaviour) => behaviour.slows,
                _ => NotificationScope::Destination,
            };
            control = Some(DestinationControl { fresh, cnp: self.cnp, slows });
            if slows == NotificationScope::Destination {
                split.cc = CcConfig::None(UnlimitedConfig::default());
            }
        }
        (policy.build(env, rng), control)
    }
    /// Returns true if senders slow down when the network is congested, by themselves or by receiver credit.
    pub fn controls_congestion(&self) -> bool {
        let none = match &self.policy {
            PolicyConfig::Split(SplitConfig { cc, .. }) | PolicyConfig::Dlbf(DlbfConfig { cc, .. }) => {
                matches!(cc, CcConfig::None(_))
            }
            _ => false,
        };
        !none || self.credit.is_some()
    }
    /// Returns the DCQCN parameters, if the scheme has any.
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

/// Choice of the source ports of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Ports {
    /// Any source ports: several may hash to the same route.
    #[default]
    Any,
    /// One source port for each route that the fabric has to the receiver, up to `paths` of them, found by evaluating
    /// the hashes of the switches. For simulations: hosts do not know these hashes, but can find such ports by
    /// tracing.
    Distinct,
}

/// Loss recovery of the sender, and treatment of out-of-order packets at the receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, rename_all = "snake_case", tag = "kind"))]
pub enum Recovery {
    /// Go-back-N: the receiver drops packets out of order and sends a NACK per gap; the sender goes back to the
    /// gap.
    GoBackN,
    /// Go-back-N with repeated NACKs. If a packet arrives ahead of the same gap `repeat` or more after the last NACK,
    /// the receiver sends another NACK, and the sender goes back again (conweave-ns3: 4 us).
    GoBackNRepeated {
        /// Shortest time between two NACKs of a gap.
        repeat: Duration,
    },
    /// Selective repeat: the receiver places packets in any order; the sender retransmits missing ones.
    SelectiveRepeat {
        /// Reordering threshold in packets: a packet counts as lost once one sent this many packets later is
        /// acknowledged. 0 means that only the timer detects losses, which is right for lossless fabrics with
        /// spraying.
        reorder_packets: u32,
        /// Packets beyond the first gap that the receiver tracks; further ones are dropped and NACKed. Absent: 4,096,
        /// or the number that fills two bandwidth-delay products of the path if that is more.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
        window_packets: Option<u32>,
        /// Packets beyond the first gap that the sender sends, at least `window_packets`; the receiver drops the
        /// excess (UDMP, section III-D). Absent: `window_packets`.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
        sender_window_packets: Option<u32>,
    },
    /// Selective repeat with loss detection by time, learned from round-trip times (in the spirit of RACK and its
    /// tail loss probe, RFC 8985). A packet is late if a packet that left after it has arrived, and if it left longer
    /// ago than any recent packet took; that time is the patience. A late packet is lost. If switches pause or trim,
    /// it is lost only if a probe that followed it on its path returns first, or after twice the patience (weave: 1.25
    /// times). If nothing arrives any more, probes follow the oldest packet after the patience, after twice the patience,
    /// and so on. A timeout occurs only if nothing arrives for the configured retransmission timeout, and for three
    /// patiences; until a packet has returned, the patience is that timeout. A message fails after the sum of the
    /// configured timeouts.
    Timed {
        /// Reordering threshold in packets: a packet also counts as lost once one sent this many packets later is
        /// acknowledged. 0 (default) disables the threshold.
        #[cfg_attr(feature = "serde", serde(default))]
        reorder_packets: u32,
        /// Packets beyond the first gap that the receiver tracks; further ones are dropped and NACKed. Absent: 4,096,
        /// or the number that fills two bandwidth-delay products of the path if that is more.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
        window_packets: Option<u32>,
    },
    /// Selective repeat without a reordering threshold, with the timer of MRC's NICs instead of the configured one:
    /// 1.024 us times a power of two. Except for trimmed packets, only this timer detects losses.
    Timeouts {
        /// Packets beyond the first gap that the receiver tracks; further ones are dropped and NACKed. MRC has
        /// multiples of 128. Absent: 1,024, or the multiple of 128 that fills two bandwidth-delay products of the
        /// path if that is more.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
        window_packets: Option<u32>,
        /// Exponent of the power of two, 0 to 24. Absent: the smallest one that gives at least eight idle round
        /// trips where switches trim, and at least `network.retransmission.timeout` elsewhere, where packets wait in
        /// deep queues.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
        exponent: Option<u8>,
        /// Number of timeouts in a row with the same duration, 1 to 7; the following ones double.
        alike: u8,
        /// Number of timeouts in a row without progress after which a message fails, 1 to 25; 25 means never.
        retries: u8,
    },
    /// SLEEK, Ultra Ethernet's recovery without trimming, for congestion controls with a window. A gap counts as loss
    /// once more packets ahead of it are acknowledged than 1.5 windows hold. All packets that are missing within a
    /// window from the gap on are then retransmitted, each once, regardless of the window. If no acknowledgement
    /// arrives, a probe follows the data. If the probe met no queue and the data has not arrived, the data is lost.
    /// The configured retransmission timer handles the remaining losses.
    Sleek {
        /// Packets beyond the first gap that the receiver tracks; further ones are dropped and NACKed. Absent: 4,096,
        /// or the number that fills two bandwidth-delay products of the path if that is more.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
        window_packets: Option<u32>,
        /// Packets ahead of a gap that prove a loss, in windows; the product is at most the largest window. Default
        /// 1.5.
        #[cfg_attr(feature = "serde", serde(default = "sleek::reorder_windows"))]
        reorder_windows: f64,
        /// Smallest number of packets ahead of a gap that proves a loss. Default 5.
        #[cfg_attr(feature = "serde", serde(default = "sleek::reorder_packets"))]
        reorder_packets: u32,
        /// Time from an acknowledgement to the probe while new data waits, in base round-trip times. Default 3. If no
        /// new data waits, the time is one base round-trip time plus the delay that the congestion control aims at.
        #[cfg_attr(feature = "serde", serde(default = "sleek::probe_rtts"))]
        probe_rtts: f64,
        /// Time from one probe to the next, in base round-trip times. Default 5.
        #[cfg_attr(feature = "serde", serde(default = "sleek::probe_again_rtts"))]
        probe_again_rtts: f64,
    },
    /// Selective repeat with loss detection by the order of packets on each path, which the path keeps in both
    /// directions. Once a packet is acknowledged, earlier packets of its path that are not acknowledged are lost.
    /// Requires an acknowledgement for every packet. The path's timer detects the loss of the last packet on a path
    /// (LAPS, algorithm 3).
    PathOrder {
        /// Packets beyond the first gap that the receiver tracks; further ones are dropped and NACKed. Absent: 4,096,
        /// or the number that fills two bandwidth-delay products of the path if that is more.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
        window_packets: Option<u32>,
        /// Scope of the order on a path.
        scope: RingScope,
        /// Rule for the timeout of a path.
        rto: PathRto,
        /// Shortest timeout of a path: 8 ms where PFC may hold packets up, 100 us where it does not.
        rto_min: Duration,
        /// Time added to the timeout: that of 16 packets on the slowest link.
        rto_slack: Duration,
    },
}

/// Default parameters of SLEEK, those of uet-htsim 40ccb05.
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
    /// Returns SLEEK with the values of uet-htsim 40ccb05.
    pub const fn sleek() -> Self {
        Recovery::Sleek {
            window_packets: None,
            reorder_windows: sleek::reorder_windows(),
            reorder_packets: sleek::reorder_packets(),
            probe_rtts: sleek::probe_rtts(),
            probe_again_rtts: sleek::probe_again_rtts(),
        }
    }
    /// Value of `retries` in [`Recovery::Timeouts`] that means any number.
    pub const RETRIES_FOR_EVER: u8 = 25;
    /// Unit of the timer of [`Recovery::Timeouts`].
    pub const TIMER_UNIT: Duration = Duration::from_ns(1_024);
    /// Largest exponent of the timer of [`Recovery::Timeouts`].
    pub const MOST_TIMER_EXPONENT: u8 = 24;

    /// Returns the smallest exponent with which the timer of [`Recovery::Timeouts`] lasts that long, or the largest.
    pub fn timer_exponent(at_least: Duration) -> u8 {
        let units = at_least.as_ps().div_ceil(Self::TIMER_UNIT.as_ps()).max(1);
        let exponent = units.checked_next_power_of_two().map_or(u64::BITS, u64::trailing_zeros);
        exponent.min(u32::from(Self::MOST_TIMER_EXPONENT)) as u8
    }
    /// Returns the recovery on a network that does not trim, where late packets wait in deep queues: the timer of
    /// [`Recovery::Timeouts`] lasts as long as the configured timeout, unless its exponent is configured.
    pub fn without_trimming(mut self, configured: Duration) -> Self {
        if let Recovery::Timeouts { exponent: exponent @ None, .. } = &mut self {
            *exponent = Some(Self::timer_exponent(configured));
        }
        self
    }

    /// Returns true if out-of-order packets are dropped, and the sender goes back to the first missing one.
    pub const fn goes_back(&self) -> bool {
        matches!(self, Recovery::GoBackN | Recovery::GoBackNRepeated { .. })
    }
    /// Returns the configured number of packets beyond the first gap that the receiver tracks, if it accepts any and
    /// the number is configured.
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
    /// Returns the number of packets beyond the first gap that the receiver tracks on a short path, if it accepts
    /// any.
    pub const fn window_packets(&self) -> Option<u32> {
        match self.given_window_packets() {
            Some(packets) => Some(packets),
            None if self.goes_back() => None,
            None if matches!(self, Recovery::Timeouts { .. }) => Some(LEAST_WINDOW_PACKETS_OF_NICS),
            None => Some(LEAST_WINDOW_PACKETS),
        }
    }
    /// Returns the number of packets beyond the first gap that the sender sends, of which the receiver drops some.
    /// `None` if the sender stays within the packets that the receiver tracks.
    pub const fn sender_window_packets(&self) -> Option<u32> {
        match *self {
            Recovery::SelectiveRepeat { sender_window_packets, .. } => sender_window_packets,
            _ => None,
        }
    }
    /// Returns the recovery with a window of `packets`, if it accepts packets ahead of a gap.
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
    /// Returns the recovery for a path that holds `path_packets` full packets. A window that is not configured
    /// becomes twice that, so that a lost and retransmitted packet does not stop those behind it.
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

/// Smallest default number of packets beyond a gap that receivers track. It exceeds the skew that queues at ECN's
/// upper threshold cause between paths (400 KB for each 25 Gb/s, 1,600 packets of 1,000 bytes at 100 Gb/s).
const LEAST_WINDOW_PACKETS: u32 = 4_096;
/// Smallest default of [`Recovery::Timeouts`]: the example of MRC.
const LEAST_WINDOW_PACKETS_OF_NICS: u32 = 1_024;
/// Granularity of a window that follows its path: that of MRC.
const WINDOW_STEP_PACKETS: u32 = 128;
/// Largest number of packets between the oldest unacknowledged one and the newest, for any recovery: a quarter of the
/// 24-bit PSN space, so that every PSN is distinct from those of the previous and the next cycle.
pub const MOST_WINDOW_PACKETS: u32 = 1 << 22;

/// Scope of the order of packets on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum RingScope {
    /// Packets of all queue pairs to a host: an acknowledgement of one detects losses of another (LAPS, its code).
    #[default]
    Host,
    /// Packets of one queue pair (LAPS, section III-D).
    QueuePair,
}

/// Timeout of a path: time without an acknowledgement after which all packets in flight on the path count as lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum PathRto {
    /// Twice the path's delay plus `rto_slack`, at least `rto_min`, from the first outstanding packet. Each timeout
    /// in a row doubles it.
    #[default]
    Guarded,
    /// Twice the path's latest one-way delay, which any growing queue exceeds (LAPS, section III-G). Needs
    /// synchronized clocks. Every packet sent resets the timer, and timeouts do not double it.
    Published,
    /// `rto_min` always (LAPS, its code). Every packet sent resets the timer, and timeouts do not double it.
    Fixed,
}

/// Acknowledgements of the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct AckPolicy {
    /// Data packets per acknowledgement; 1 acknowledges each packet. Some packets are acknowledged at once: the last
    /// of a message, duplicates, retransmissions while packets are missing, the packet that proves another one lost
    /// (`recovery.reorder_packets`), and the packet that completes a message. Out-of-order packets are not, because
    /// an acknowledgement reports 64 of them. Go-back-N NACKs out-of-order packets at once.
    pub every_packets: u16,
    /// Longest delay of an acknowledgement.
    pub max_delay: Duration,
    /// Bytes of new packets per acknowledgement, headers and gaps included, at most a quarter of the bandwidth-delay
    /// product of a simulated path; overrides `every_packets`. Absent: packets count. Some packets are acknowledged at once: the first of a queue pair, marked packets, duplicates,
    /// retransmissions, packets in which the sender requests an acknowledgement, and the packet that closes the gap
    /// before such a request. A sender requests an acknowledgement if it may send no more, or has no more to send
    /// (Ultra Ethernet 1.0, section 3.6.12).
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub every_bytes: Option<Bytes>,
}

impl AckPolicy {
    /// Returns the policy of one acknowledgement for `every_packets` packets.
    pub const fn by_packets(every_packets: u16, max_delay: Duration) -> Self {
        AckPolicy { every_packets, max_delay, every_bytes: None }
    }
    /// Returns the policy of one acknowledgement for `every_bytes` bytes.
    pub const fn by_bytes(every_bytes: Bytes, max_delay: Duration) -> Self {
        AckPolicy { every_packets: 1, max_delay, every_bytes: Some(every_bytes) }
    }
    /// Returns the policy for a path that holds `bdp_bytes` bytes: an acknowledgement for at most a quarter of them. A
    /// window little larger than that is then reported in parts, and the sender does not wait for its end.
    pub fn for_path(self, bdp_bytes: u64) -> Self {
        let most = Bytes::new((bdp_bytes / 4).max(1));
        AckPolicy { every_bytes: self.every_bytes.map(|bytes| bytes.min(most)), ..self }
    }
    /// Returns true if an acknowledgement may be delayed.
    pub const fn may_wait(&self) -> bool {
        self.every_packets > 1 || self.every_bytes.is_some()
    }
    /// Returns the number of full packets of `wire_bytes` bytes for each acknowledgement that is not requested. At
    /// least 1.
    pub fn packets_an_ack(&self, wire_bytes: u64) -> u64 {
        match self.every_bytes {
            Some(bytes) => bytes.get().div_ceil(wire_bytes.max(1)).max(1),
            None => u64::from(self.every_packets),
        }
    }
}

/// Congestion notifications of the receiver (DCQCN's notification point).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, rename_all = "snake_case", tag = "kind"))]
pub enum CnpPolicy {
    /// No notifications.
    #[default]
    Off,
    /// One for packets marked Congestion Experienced.
    OnMark {
        /// Shortest time between two notifications for a queue pair (DCQCN's N). Default 0s: one notification for
        /// every marked packet.
        #[cfg_attr(feature = "serde", serde(default))]
        interval: Duration,
    },
    /// One for marked packets, and for packets that arrive ahead of a gap. RoCE adapters take a gap as a sign of loss
    /// and notify even if only the missing packet is retransmitted. In the ConWeave simulator a selective
    /// acknowledgement of a gap carries the notification bit. Under DCQCN reordering then reduces the rate. With
    /// go-back-N, which drops packets behind a gap, the notification accompanies the NACK, one per gap.
    OnMarkOrGap {
        /// Shortest time between two notifications for a queue pair (DCQCN's N). Default 0s: one notification for
        /// every marked packet.
        #[cfg_attr(feature = "serde", serde(default))]
        interval: Duration,
    },
}

impl CnpPolicy {
    /// Returns the shortest time between two notifications; `None` if none are sent.
    #[inline]
    pub const fn interval(self) -> Option<Duration> {
        match self {
            CnpPolicy::Off => None,
            CnpPolicy::OnMark { interval } | CnpPolicy::OnMarkOrGap { interval } => Some(interval),
        }
    }
    /// Returns true if a packet ahead of a gap is a reason for a notification.
    #[inline]
    pub const fn notifies_of_gaps(self) -> bool {
        matches!(self, CnpPolicy::OnMarkOrGap { .. })
    }
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
        complaint_of("rps", change)
    }

    fn complaint_of(name: &str, change: impl FnOnce(&mut Value)) -> std::string::String {
        let mut text = to_value(preset(name)).expect("a scheme can be written");
        change(&mut text);
        match from_value::<Scheme>(text) {
            Ok(scheme) => scheme.validate().expect_err("must be refused").to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn invalid_values_are_named() {
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

    #[test]
    fn a_scheme_of_datagrams_has_no_settings_of_acknowledgements() {
        let refused = |field: &str, value: Value| {
            let place = std::format!("/{}", field.replace('.', "/"));
            let found = complaint_of("erd-uncontrolled", |text| match text.pointer_mut(&place) {
                Some(old) => *old = value,
                None => text[field] = value,
            });
            assert!(found.starts_with(&std::format!("{field} = ")), "{found}");
        };
        refused("acks", json!({ "every_packets": 4, "max_delay": "1us" }));
        refused("acks", json!({ "every_packets": 1, "max_delay": "1us", "every_bytes": "16KB" }));
        refused("recovery", to_value(preset("rps").recovery).expect("a table"));
        refused("ports", json!("distinct"));
        refused("service.slows", json!("queue_pair"));
        let marks = complaint_of("erd-uncontrolled", |text| text["cnp"] = json!({ "kind": "on_mark" }));
        assert!(marks.starts_with("cnp.kind = \"on_mark\" is not allowed: \"off\" unless"), "{marks}");
    }

    #[test]
    fn every_mark_is_notified_of_unless_an_interval_is_given() {
        let mut text = to_value(preset("rps")).expect("a scheme can be written");
        text["cnp"] = json!({ "kind": "on_mark_or_gap" });
        let scheme: Scheme = from_value(text).expect("the interval has a default");
        assert_eq!(scheme.cnp, CnpPolicy::OnMarkOrGap { interval: Duration::ZERO });
    }

    #[test]
    fn the_json_schema_carries_the_help_texts() {
        let schema = serde_json::to_string(&schemars::schema_for!(Scheme)).expect("a schema is JSON");
        assert!(schema.contains("step of rate increase") && schema.contains("selective_repeat"));
    }
}
