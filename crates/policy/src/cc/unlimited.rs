//! No congestion control: the NIC is the only pacer. Optionally a fixed window.

use pathweave_units::{Rate, Time};

use super::{CongestionControl, Permit, Window};
use crate::fluid::{ControlModel, HasControlModel, OverUnequalPaths};
use crate::{Adapt, ConfigError, PolicyCx, PolicyEnv, SendRequest, Sent};

/// Parameters of [`Unlimited`].
#[derive(Clone, Debug, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct UnlimitedConfig {
    /// Largest amount of data in flight of a queue pair: "unlimited" (default), { bdp = 1.0 } or { packets = 64 }.
    pub window: Window,
}

impl HasControlModel for UnlimitedConfig {
    fn control(&self) -> ControlModel {
        ControlModel { over_unequal_paths: OverUnequalPaths::KeepsRate, ..ControlModel::BY_MARKS }
    }
}

impl Adapt for UnlimitedConfig {}

impl UnlimitedConfig {
    /// Returns an error that names the first invalid field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.window.validate()
    }
}

/// Sends at line rate, within its window.
#[derive(Clone, Copy, Debug)]
pub struct Unlimited {
    window_bytes: u64,
}

impl Unlimited {
    /// Creates the state of one queue pair.
    pub fn new(config: &UnlimitedConfig, env: &PolicyEnv) -> Self {
        Unlimited { window_bytes: config.window.bytes(env) }
    }
}

impl CongestionControl for Unlimited {
    crate::ignores!(on_open, on_close, on_feedback, on_timer, window);
    #[inline]
    fn permit(&mut self, _now: Time, want: &SendRequest, _cx: &mut PolicyCx<'_>) -> Permit {
        if want.fits(self.window_bytes) { Permit::Now } else { Permit::Blocked }
    }
    #[inline]
    fn on_sent(&mut self, _now: Time, _sent: &Sent, _cx: &mut PolicyCx<'_>) -> u32 {
        0
    }
    fn rate(&self, _now: Time) -> Option<Rate> {
        None
    }
}
