//! A scheme under the name it has in results.

use pathweave_policy::Scheme;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A scheme under the name it has in results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NamedScheme {
    /// Name in results. Default: that of `base`, with "*" behind it if anything was changed.
    pub name: String,
    /// The scheme.
    #[serde(flatten)]
    pub scheme: Scheme,
}
