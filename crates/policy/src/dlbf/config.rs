//! Parameters of DLBF.

use core::fmt;

use alloc::boxed::Box;

use pathweave_units::{Duration, Rng};

use super::Dlbf;
use crate::cc::{CcConfig, DcqcnConfig, DcqcnPreset};
use crate::error::{above, within};
use crate::fluid::{AsFluid, ControlModel, Fluid, HasControlModel, OverUnequalPaths, Spread};
use crate::{Adapt, ConfigError, PolicyEnv};

/// Variant of the algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum DlbfVariant {
    /// The rules as printed. One delay gap, that of the path just left, applies to all packets in flight (equations 1
    /// to 3). Every marked acknowledgement of the path in use triggers a switch.
    Published,
    /// The rules with four repairs. First, the delay gap of a packet is that of the path it took, so that two
    /// switches in quick succession do not hide a slow path. Second, there is at most one switch per round-trip time,
    /// because otherwise marks of unknown paths use up all of them. Third, a timeout counts as congestion. Fourth, a
    /// path of unknown delay is measured by a notice while data stays on the old path, and is used if the reply is
    /// unmarked. A switch before the gap is known would gain nothing, because early packets wait at the receiver, and
    /// would cost the order.
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

/// Scope of the path state: the queue pairs whose acknowledgements update it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum DlbfScope {
    /// All queue pairs between the two hosts.
    #[default]
    HostPair,
    /// The queue pair itself.
    QueuePair,
}

/// Packets sent on a new path before its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum OnSwitch {
    /// None. Data waits until it can no longer overtake packets in flight on other paths. A notice is sent if the
    /// delay of the path is unknown (section III-D). Copies would take as long as waiting, and cost their bytes.
    Wait,
    /// Copies of the packets that would arrive late, and a notice if the delay of the path is unknown (sections III-C
    /// and III-D).
    #[default]
    CopiesAndNotices,
    /// Copies always, and no notices. An unknown delay is taken from the path's last measurement, or else from the
    /// fastest path.
    Copies,
    /// Notices if the delay of the path is unknown, and no copies.
    Notices,
    /// None, and data does not wait.
    Nothing,
}

/// Effect of a marked packet on the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum MarkedRate {
    /// A congestion notification reduces the rate only while the packet's path is in use. It has no effect if that
    /// path has been left. If the path is left because of the marks, the rate returns to its value before them.
    OfItsPath,
    /// A congestion notification reduces the rate, as without DLBF, and the path is left as well (the paper's "DCQCN
    /// enabled").
    #[default]
    Reduced,
    /// A congestion notification has no effect while there is another path that is not known to be congested.
    Kept,
}

/// Parameters of DLBF. The paper gives symbols for its times and no values. The defaults are derived from the time
/// for which each must hold, and results state them.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct DlbfConfig {
    /// Congestion control. Default: DCQCN with preset `hpcc`, the same as that of ECMP.
    pub cc: CcConfig,
    /// Variant of the algorithm: "repaired" (default) or "published".
    pub variant: DlbfVariant,
    /// T_avail: time for which a path without marks counts as available after its last acknowledgement. Default 100
    /// us. This is longer than a queue at ECN's upper threshold takes to drain (3,200 KB at 400 Gb/s: 64 us), so that
    /// no delay is used after a full cycle of a queue. The repaired variant uses four round trips of the idle network
    /// if they are longer, because on a slow or wide network no acknowledgement is younger.
    pub available_for: Duration,
    /// T_unavail: time for which a path counts as congested after its last marked acknowledgement. Default 200 us,
    /// twice `available_for`. The repaired variant uses eight round trips of the idle network if they are longer.
    pub unavailable_for: Duration,
    /// Packets sent on a new path before its data. Default "copies_and_notices" (the paper).
    pub on_switch: OnSwitch,
    /// Effect of a marked packet on the rate. Default "reduced" (the paper).
    pub marked_rate: MarkedRate,
    /// Queue pairs whose acknowledgements update the state of the paths. Default "host_pair".
    pub scope: DlbfScope,
}

impl Default for DlbfConfig {
    fn default() -> Self {
        DlbfConfig {
            cc: CcConfig::Dcqcn(DcqcnConfig::preset(DcqcnPreset::default())),
            variant: DlbfVariant::default(),
            available_for: Duration::from_us(100),
            unavailable_for: Duration::from_us(200),
            on_switch: OnSwitch::default(),
            marked_rate: MarkedRate::default(),
            scope: DlbfScope::default(),
        }
    }
}

impl AsFluid for DlbfConfig {
    fn as_fluid(&self) -> Fluid {
        // The model is not held to runs over unequal paths.
        let over_unequal_paths = OverUnequalPaths::IsDisturbed;
        let control = ControlModel { over_unequal_paths, ..self.cc.control() };
        Fluid { spread: Some(Spread::ByCapacity), control }
    }
}

impl Adapt for DlbfConfig {
    crate::forwards!({ cc } adapt);
}

impl DlbfConfig {
    /// Returns an error that names the first invalid field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.cc.validate().map_err(|error| error.within("cc"))?;
        let time = |name, time| within(name, time, above(Duration::ZERO, Duration::from_ms(1_000)), "");
        time("available_for", self.available_for)?;
        time("unavailable_for", self.unavailable_for)
    }
    /// Builds the policy of one direction of one queue pair.
    pub fn build(&self, env: &PolicyEnv, rng: &mut Rng) -> Dlbf {
        let mut config = Box::new(self.clone());
        if config.variant == DlbfVariant::Repaired {
            config.available_for = config.available_for.max(env.base_rtt * 4);
            config.unavailable_for = config.unavailable_for.max(env.base_rtt * 8);
        }
        Dlbf::new(config, env, rng)
    }
}
