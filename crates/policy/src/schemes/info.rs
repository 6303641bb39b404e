//! What a named scheme is listed with.

use crate::Scheme;

/// A scheme as `pathweave list schemes` shows it.
#[derive(Clone, Copy, Debug)]
pub struct SchemeInfo {
    /// Name in a scenario.
    pub name: &'static str,
    /// Other names it answers to.
    pub aliases: &'static [&'static str],
    /// One line.
    pub help: &'static str,
    /// Where the combination comes from.
    pub source: &'static str,
    /// The preset.
    pub make: fn() -> Scheme,
}
