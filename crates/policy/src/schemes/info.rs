//! Description of a named scheme in listings.

use crate::Scheme;

/// A scheme as `pathweave list schemes` shows it.
#[derive(Clone, Copy, Debug)]
pub struct SchemeInfo {
    /// Name in a scenario.
    pub name: &'static str,
    /// Alternative names.
    pub aliases: &'static [&'static str],
    /// Description in one line.
    pub help: &'static str,
    /// Source of the combination.
    pub source: &'static str,
    /// Factory of the preset.
    pub make: fn() -> Scheme,
}
