//! The softmax in either arithmetic.

use pathweave_units::Duration;

use super::circuit::Circuit;
use super::config::Arithmetic;
use super::spray::Spray;

/// Weights of the paths of a host pair.
#[derive(Clone, Debug)]
pub(super) enum Weights {
    Float(Spray),
    Fixed(Circuit),
}

impl Weights {
    /// Creates weights for `paths` paths; [`Weights::rebuild`] fills them.
    pub(super) fn new(arithmetic: Arithmetic, paths: usize) -> Self {
        match arithmetic {
            Arithmetic::Float => Weights::Float(Spray::new(paths)),
            Arithmetic::Fixed => Weights::Fixed(Circuit::new(paths)),
        }
    }

    /// Recomputes all weights: a path that takes `unit` / `alpha` longer has 1/e of the share. `delay_ps` is `None`
    /// for a path that must not be drawn; at least one path can be drawn.
    pub(super) fn rebuild(
        &mut self,
        alpha: f64,
        unit: Duration,
        delays_ps: impl Iterator<Item = Option<u64>> + Clone,
    ) {
        match self {
            Weights::Float(spray) => spray.rebuild(alpha / unit.as_ps() as f64, delays_ps),
            Weights::Fixed(circuit) => circuit.rebuild(alpha, unit, delays_ps),
        }
    }

    /// Updates the delay of one path. Returns false if the weights must be rebuilt.
    #[inline]
    #[must_use]
    pub(super) fn set(&mut self, path: usize, delay_ps: u64) -> bool {
        match self {
            Weights::Float(spray) => spray.set(path, delay_ps),
            Weights::Fixed(circuit) => circuit.set(path, delay_ps),
        }
    }

    /// Returns the path at `draw` (0 to less than 1) of the sum, never one of weight 0.
    #[inline]
    pub(super) fn at(&self, draw: f64) -> usize {
        match self {
            Weights::Float(spray) => spray.at(draw),
            Weights::Fixed(circuit) => circuit.at(draw),
        }
    }

    /// Returns the probability that a path is drawn.
    #[inline]
    pub(super) fn share(&self, path: usize) -> f64 {
        match self {
            Weights::Float(spray) => spray.share(path),
            Weights::Fixed(circuit) => circuit.share(path),
        }
    }

    /// Returns the memory that the weights take, bytes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Weights::Float(spray) => spray.bytes(),
            Weights::Fixed(circuit) => circuit.bytes(),
        }
    }
}
