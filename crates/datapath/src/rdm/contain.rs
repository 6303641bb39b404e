//! A bug that strikes while a packet of one peer is taken in costs what is under way with that peer, and no other.
//!
//! The transport's queue pair is one for all peers, so it cannot be dropped as that of a connection: the peer is removed
//! from it, as one that has not answered. If even that panics, the loop ends, and the endpoint says so. So it does where
//! nobody's packet was at work: timers and what leaves are for all peers together.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use pathweave_transport::Status;

use super::engine::Core;
use super::remote::index_of;
use crate::engine::contain::message;

impl Core {
    /// Takes in packets, each of which says whose it is (`acting`) as soon as that is known.
    #[inline]
    pub(super) fn contain(&mut self, work: impl FnOnce(&mut Core)) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| work(self))) {
            self.panicked(panic);
        }
    }

    #[cold]
    fn panicked(&mut self, panic: Box<dyn Any + Send>) {
        let Some(id) = self.acting.take() else { resume_unwind(panic) };
        self.counts.panics += 1;
        log::error!(
            "what is under way with peer {} is given up: the loop has panicked over its packet, which is a bug: {}",
            index_of(id),
            message(&*panic)
        );
        self.fail(index_of(id), Status::LocalOperation);
    }
}

#[cfg(test)]
#[path = "contain_test.rs"]
mod tests;
