//! Parameters of DLBF.

use core::fmt;

use alloc::boxed::Box;

use pathweave_units::{Duration, Rng};

use super::Dlbf;
use crate::cc::{CcConfig, DcqcnConfig, DcqcnPreset};
use crate::error::check;
use crate::fluid::{AsFluid, Controls, Fluid, Spread};
use crate::{Adapt, ConfigError, FabricEnv, HostDelay, HostEnv, PolicyEnv};

/// Which reading of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum DlbfVariant {
    /// As printed: one delay gap for all packets in flight, that of the path just left (equations 1 to 3), and a switch
    /// for every marked acknowledgement of the path in use.
    Published,
    /// The gap of each packet is that of the path it took, so that two quick switches do not hide a slow one; at most
    /// one switch a round-trip time, or marks of unknown paths use up all of them; a timeout counts as congestion. A
    /// path of which nothing is known is measured by the notice while data stays where it is, and used if the answer is
    /// unmarked: what overtakes has to wait at the receiver for what it overtook, so a switch before the gap is known
    /// gains nothing and costs the order.
    #[default]
    Repaired,
}

impl fmt::Display for DlbfVariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DlbfVariant::Published => "published",
            DlbfVariant::Repaired => "repaired",
        })
    }
}

/// Whose acknowledgements tell a queue pair of its paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum DlbfScope {
    /// Those of all queue pairs between the two hosts.
    #[default]
    HostPair,
    /// Its own.
    QueuePair,
}

/// What leaves on a new path before its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum OnSwitch {
    /// Nothing, but data waits until what is on its way on other paths will have arrived before it; a notice where the
    /// delay of the path is not known (section III-D). Copies would take as long, and their bytes.
    #[default]
    Wait,
    /// Copies of what would arrive late; a notice where the delay of the path is not known (sections III-C and III-D).
    CopiesAndNotices,
    /// Copies always, by the last delay known of a path or else the least of any: no notices.
    Copies,
    /// Notices where the delay is not known, nothing otherwise: no copies.
    Notices,
    /// Nothing.
    Nothing,
}

/// What a marked packet does to the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum MarkedRate {
    /// Its notification slows the queue pair as long as the packet's path is used: not if that has been left; and once it
    /// is left for what marks told, the rate is again what it was before them.
    #[default]
    OfItsPath,
    /// Its notification slows the queue pair, as without DLBF; the path is left as well (the paper's "DCQCN enabled").
    Reduced,
    /// Its notification does nothing while there is a path to go to that is not known to be congested.
    Kept,
}

/// Parameters of DLBF. The paper gives symbols for its times and no values; these are chosen by what they must outlast,
/// and results state them.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DlbfConfig {
    /// Congestion control. Default: DCQCN with preset `hpcc`, as that of ECMP.
    pub cc: CcConfig,
    /// Which reading of the paper: "repaired" (default) or "published".
    pub variant: DlbfVariant,
    /// T_avail: a path without marks counts as available for this long after its last acknowledgement. Longer than a
    /// queue at ECN's upper threshold takes to drain (3,200 KB at 400 Gb/s: 64 us), so that a delay older than a full
    /// cycle of a queue is not trusted. Default 100 us. The repaired variant takes four round trips of the idle network
    /// where that is longer: on a slow or wide network no acknowledgement is younger.
    pub available_for: Duration,
    /// T_unavail: a path counts as congested for this long after its last marked acknowledgement. Default 200 us, twice
    /// `available_for`; and eight round trips in the same way.
    pub unavailable_for: Duration,
    /// Added to the delay gap of every packet: delays are half a round trip old when they are used, and a growing queue
    /// makes the true gap larger. Default 0s (the paper).
    pub gap_margin: Duration,
    /// What leaves on a new path before its data.
    pub on_switch: OnSwitch,
    /// What a marked packet does to the rate.
    pub marked_rate: MarkedRate,
    /// Whose acknowledgements tell a queue pair of its paths.
    pub scope: DlbfScope,
}

impl Default for DlbfConfig {
    fn default() -> Self {
        DlbfConfig {
            cc: CcConfig::Dcqcn(DcqcnConfig::preset(DcqcnPreset::default())),
            variant: DlbfVariant::default(),
            available_for: Duration::from_us(100),
            unavailable_for: Duration::from_us(200),
            gap_margin: Duration::ZERO,
            on_switch: OnSwitch::default(),
            marked_rate: MarkedRate::default(),
            scope: DlbfScope::default(),
        }
    }
}

impl AsFluid for DlbfConfig {
    fn as_fluid(&self) -> Fluid {
        Fluid { spread: Some(Spread::ByCapacity), control: self.cc.control() }
    }
}

impl Adapt for DlbfConfig {
    fn adapt_to_fabric(&mut self, fabric: &FabricEnv<'_>) {
        self.cc.adapt_to_fabric(fabric);
    }
    fn wants_longest_path(&self) -> bool {
        self.cc.wants_longest_path()
    }
    fn host_delay(&self) -> HostDelay {
        self.cc.host_delay()
    }
    fn adapt_to_host(&mut self, host: &HostEnv) {
        self.cc.adapt_to_host(host);
    }
}

impl DlbfConfig {
    /// Names the first field that is wrong.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.cc.validate().map_err(|error| error.within("cc"))?;
        let time = |name, time: Duration| {
            let allowed = time > Duration::ZERO && time <= Duration::from_ms(1_000);
            check(allowed, name, time, "more than 0s, at most 1s")
        };
        time("available_for", self.available_for)?;
        time("unavailable_for", self.unavailable_for)?;
        check(self.gap_margin <= Duration::from_ms(1_000), "gap_margin", self.gap_margin, "at most 1s")
    }
    /// The policy of one direction of one queue pair.
    pub fn build(&self, env: &PolicyEnv, rng: &mut Rng) -> Dlbf {
        let mut config = Box::new(self.clone());
        if config.variant == DlbfVariant::Repaired {
            config.available_for = config.available_for.max(env.base_rtt * 4);
            config.unavailable_for = config.unavailable_for.max(env.base_rtt * 8);
        }
        Dlbf::new(config, env, rng)
    }
}
