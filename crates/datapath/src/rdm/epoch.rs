//! Reset of the clock for datagrams, as for connections (`engine/epoch.rs`): without associations no state holds an
//! instant. Peers are asked to agree, so that no message is lost: messages posted meanwhile wait for a new
//! association. A peer with outstanding work is waited for at most for the peer timeout.

use pathweave_transport::Status;

use super::engine::DatagramService;
use super::handshakes::Handshakes;
use super::queue_pair::queue_pair;
use super::remote::{BUSY, Opening};
use crate::event_loop::{MAY_BEGIN_ANEW, MUST_BEGIN_ANEW};
use crate::scheme::span;

impl DatagramService {
    /// Resets the clock if nothing prevents it. Ends all associations first if the reset can no longer be postponed.
    #[cold]
    pub(super) fn renew(&mut self) {
        if self.io.now >= MUST_BEGIN_ANEW {
            let until = self.renewing.unwrap_or(self.io.now.saturating_add(span(self.give_up())));
            self.renewing = Some(until);
            for index in self.remotes.indices() {
                if self.io.now >= until {
                    self.break_association(index);
                } else if self.association(index).is_some() && self.is_quiet(index) {
                    self.retire(index);
                }
            }
            self.flush_side();
            self.io.look_by(self.io.now.saturating_add(BUSY));
        }
        let over = self.renewing.is_some_and(|until| self.io.now >= until);
        if self.remotes.associations() == 0 && (over || self.handshakes.is_unused()) {
            self.begin_anew();
        }
    }

    /// Ends the association with a peer without the peer's agreement.
    fn break_association(&mut self, index: u32) {
        if let Some(peer) = self.association(index).map(|association| association.peer()) {
            log::warn!("{peer}: its messages in progress end, because the clock restarts after 200 days");
            self.end_association(index, Status::RetryExceeded);
        }
    }

    fn begin_anew(&mut self) {
        // Both need random numbers. If there are none, a later call tries again.
        let (Ok(handshakes), Ok(rd)) = (Handshakes::new(&self.config), queue_pair(&self.config, self.qp))
        else {
            return;
        };
        self.drain_outputs();
        self.hang_up_all();
        self.handshakes = handshakes;
        self.io.begin_anew(&self.config.device);
        self.rd.begin_anew(rd);
        self.lines.begin_anew();
        (self.upkeep_at, self.io.next_upkeep) = (self.io.now, MAY_BEGIN_ANEW);
        self.renewing = None;
        for index in self.remotes.indices() {
            let Some(remote) = self.remotes.get_mut(index) else { continue };
            (remote.met, remote.opening) = (self.io.now, Opening::No);
            if remote.asked.is_empty() {
                self.post_pending(index);
            } else {
                self.ask(index);
            }
            self.drop_if_transient(index);
        }
        log::info!("datagrams of queue pair {}: time has begun anew", self.qp.0);
    }

    /// Returns true while requests must wait for the clock reset.
    #[inline]
    pub(super) fn defers(&self) -> bool {
        self.renewing.is_some()
    }
}

#[cfg(test)]
#[path = "epoch_test.rs"]
mod tests;
