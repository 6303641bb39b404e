//! Cables between the nodes of a fabric.

use pathweave_units::{Duration, Rate};

/// A cable between two nodes. Hosts have the lowest node numbers.
#[derive(Clone, Copy, Debug)]
pub struct Cable {
    /// Node at one end.
    pub a: u32,
    /// Node at the other end.
    pub b: u32,
    /// Rate of each direction, or from `a` to `b`.
    pub rate: Rate,
    /// Delay of each direction, or from `a` to `b`.
    pub delay: Duration,
    /// Rate and delay from `b` to `a`, if they differ.
    pub back: Option<(Rate, Duration)>,
    /// Local to a site, or between sites.
    pub span: Span,
}

/// Extent of a cable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Span {
    /// Within a site.
    #[default]
    Local,
    /// Between two external switches.
    Wan {
        /// True if the two switches pause each other while PFC is on.
        pfc: bool,
    },
}
