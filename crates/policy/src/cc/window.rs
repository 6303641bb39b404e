//! Bound on bytes in flight.

use core::fmt;

use crate::error::{above, within};
use crate::{ConfigError, PolicyEnv};

/// Largest amount of data in flight of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Window {
    /// No bound.
    #[default]
    Unlimited,
    /// A number of bandwidth-delay products (line rate times idle round-trip time).
    Bdp(f64),
    /// A number of full packets.
    Packets(u32),
}

impl Window {
    /// Returns the bound in wire bytes; `u64::MAX` if there is none.
    pub fn bytes(self, env: &PolicyEnv) -> u64 {
        match self {
            Window::Unlimited => u64::MAX,
            Window::Bdp(factor) => (env.bdp_bytes() as f64 * factor + 0.5) as u64,
            Window::Packets(packets) => u64::from(packets) * u64::from(env.mtu_wire_bytes),
        }
    }
    pub(crate) fn validate(self) -> Result<(), ConfigError> {
        match self {
            Window::Unlimited => Ok(()),
            Window::Bdp(factor) => within("window.bdp", factor, above(0.0, 1e6), ""),
            Window::Packets(packets) => within("window.packets", packets, 1.., ""),
        }
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Window::Unlimited => f.write_str("unlimited"),
            Window::Bdp(factor) => write!(f, "{factor} BDP"),
            Window::Packets(packets) => write!(f, "{packets} packets"),
        }
    }
}
