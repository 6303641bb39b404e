//! Reason why the data of a queue pair waits at its sender.

use pathweave_policy::Policy;

use super::{Health, Qp};
use crate::scheduler::SchedState;

/// Reason why a queue pair with messages in progress waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Waiting {
    /// Waits for a free NIC port, and could send otherwise.
    Port,
    /// Waits until the time that its policy has granted.
    Pacing,
    /// Waits for its policy, which lets no further packet leave for now.
    Policy,
    /// Waits for credit from the receiver.
    Credit,
    /// Waits for the window of loss recovery: as many packets lie between the first gap and the newest packet as the
    /// receiver tracks.
    Window,
    /// Waits for the receiver, which has posted no receive.
    Receiver,
    /// Waits for acknowledgements and READ responses: everything is sent.
    Answers,
}

impl<P: Policy> Qp<P> {
    /// Returns `None` if no message is in progress.
    pub(crate) fn waiting(&self) -> Option<Waiting> {
        if self.send.messages().len() == 0 {
            return None;
        }
        Some(match self.turn {
            _ if self.health == Health::BackingOff => Waiting::Receiver,
            SchedState::Ready | SchedState::Port => Waiting::Port,
            SchedState::Paced => Waiting::Pacing,
            SchedState::Off if !self.send.backlogged() => Waiting::Answers,
            // A window full of packets that are not in flight waits for the missing ones.
            SchedState::Off if !self.send.sendable() && !self.is_mostly_in_flight() => Waiting::Answers,
            SchedState::Off if !self.send.sendable() => Waiting::Window,
            SchedState::Off if self.has_credit() => Waiting::Credit,
            SchedState::Off => Waiting::Policy,
        })
    }

    fn is_mostly_in_flight(&self) -> bool {
        u64::from(self.send.flight.inflight_packets()) * 2 >= u64::from(self.send.flight.window())
    }
}
