//! Variants of a curve: the scheme as printed, ours, and readings of what the publication leaves open.

use serde::{Deserialize, Serialize};
use toml::Table;

/// Name of a variant. Curves of one name differ in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Variant(String);

impl Variant {
    /// The scheme as the publication prints it.
    pub const AS_PRINTED: &str = "as printed";
    /// The scheme with this project's repairs.
    pub const OURS: &str = "ours";
    /// Measured on real hosts, in a lab.
    pub const MEASURED: &str = "measured";
    /// Simulated beside what was measured.
    pub const SIMULATED: &str = "simulated";
    /// The names that need no `[[reading]]`.
    pub(crate) const BUILT_IN: [&str; 2] = [Self::AS_PRINTED, Self::OURS];

    /// The variant of this name.
    pub fn new(name: &str) -> Self {
        Variant(name.to_owned())
    }

    /// The name, as files and pages have it.
    pub fn name(&self) -> &str {
        &self.0
    }
}

/// A reading of what the publication leaves open, by which figures are repeated.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// Name of the variant.
    pub name: String,
    /// Text or code that supports it: section, equation, file.
    pub source: String,
    /// Fields changed, after those of the curve, where a figure lists the reading.
    #[serde(default)]
    pub set: Table,
}
