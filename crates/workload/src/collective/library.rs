//! Libraries whose collectives are executed.

use serde::{Deserialize, Serialize};

/// Library whose collectives a trace runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Library {
    /// The algorithms of the other fields, over hosts.
    #[default]
    Blocks,
    /// NCCL, as `kind = "nccl"` executes it with its own choices, instead of the algorithms of the other fields.
    Nccl,
}

impl Library {
    /// Returns true for the default.
    pub fn is_default(&self) -> bool {
        *self == Library::default()
    }
}
