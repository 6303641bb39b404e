//! What an endpoint lends its policies, for tests that have no endpoint.

use pathweave_units::Rng;

use crate::{PolicyCx, Shared};

/// A queue pair's random stream, and what it shares with others.
#[derive(Debug)]
pub struct Host {
    /// The stream.
    pub rng: Rng,
    /// What is shared; empty at first.
    pub shared: Shared,
}

impl Host {
    /// With the stream of the first queue pair of a run with this seed.
    pub fn new(seed: u64) -> Self {
        Host::with_stream(seed, 0)
    }
    /// With the stream of the queue pair of this number.
    pub fn with_stream(seed: u64, number: u64) -> Self {
        Host { rng: Rng::for_component(seed, "qp", number), shared: Shared::new() }
    }
    /// The context of one call.
    pub fn cx(&mut self) -> PolicyCx<'_> {
        PolicyCx { rng: &mut self.rng, shared: &mut self.shared }
    }
}
