//! Context that an endpoint passes to its policies, for tests without an endpoint.

use pathweave_units::Rng;

use crate::{PolicyCx, Shared};

/// A queue pair's random stream, and its shared state.
#[derive(Debug)]
pub struct Host {
    /// Random stream.
    pub rng: Rng,
    /// Shared state; initially empty.
    pub shared: Shared,
}

impl Host {
    /// Creates the context with the stream of the first queue pair of a run with this seed.
    pub fn new(seed: u64) -> Self {
        Host::with_stream(seed, 0)
    }
    /// Creates the context with the stream of the queue pair with this number.
    pub fn with_stream(seed: u64, number: u64) -> Self {
        Host { rng: Rng::for_component(seed, "qp", number), shared: Shared::new() }
    }
    /// Returns the context of one call.
    pub fn cx(&mut self) -> PolicyCx<'_> {
        PolicyCx { rng: &mut self.rng, shared: &mut self.shared }
    }
}
