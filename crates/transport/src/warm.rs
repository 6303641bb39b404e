//! Telling a driver what an endpoint is about to touch, so that it can be loaded in time. Only ever a hint: a
//! simulator with thousands of endpoints spends most of its time waiting for their memory.

use pathweave_policy::Policy;
use pathweave_units::QpNum;

use crate::endpoint::Endpoint;

/// Begins to load places into the processor's caches.
pub trait Warm {
    /// Loads all of `place`.
    fn warm<T>(&mut self, place: &T);
}

impl<P: Policy> Endpoint<P> {
    /// What any call touches first.
    #[inline]
    pub fn warm_endpoint(&self, cache: &mut impl Warm) {
        cache.warm(self);
    }

    /// What a packet for `qp` will touch, once [`Endpoint::warm_endpoint`] has taken effect.
    #[inline]
    pub fn warm_qp(&self, qp: QpNum, cache: &mut impl Warm) {
        if let Some(qp) = self.qp(qp) {
            cache.warm(qp);
        }
    }

    /// What the next data packet to be sent will touch, once [`Endpoint::warm_endpoint`] has taken effect.
    #[inline]
    pub fn warm_next(&self, cache: &mut impl Warm) {
        if let Some(qp) = self.next_ready() {
            self.warm_qp(qp, cache);
        }
    }
}
