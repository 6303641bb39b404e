//! Variants of a curve: the scheme as printed, ours, and readings of points that the publication leaves open.

use serde::{Deserialize, Serialize};
use toml::Table;

/// Name of a variant. Curves with the same name differ in their variant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Variant(String);

impl Variant {
    /// The scheme as the publication prints it.
    pub const AS_PRINTED: &str = "as printed";
    /// The scheme with this project's repairs.
    pub const OURS: &str = "ours";
    /// Results measured on real hosts, in a lab.
    pub const MEASURED: &str = "measured";
    /// Results simulated for comparison with a measurement.
    pub const SIMULATED: &str = "simulated";
    /// Names that need no `[[reading]]`.
    pub(crate) const BUILT_IN: [&str; 2] = [Self::AS_PRINTED, Self::OURS];

    /// Creates the variant of this name.
    pub fn new(name: &str) -> Self {
        Variant(name.to_owned())
    }

    /// Returns the name, as files and pages write it.
    pub fn name(&self) -> &str {
        &self.0
    }
}

/// Interpretation of a point that the publication leaves open. Figures are repeated under it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// Name of the variant.
    pub name: String,
    /// Text or code that supports it: section, equation, file.
    pub source: String,
    /// Scenario fields that the reading changes, applied after those of the curve.
    #[serde(default)]
    pub set: Table,
}
