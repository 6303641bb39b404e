//! What the data of a queue pair waits for at its sender.

use pathweave_policy::Policy;

use super::{Health, Qp};
use crate::scheduler::Turn;

/// What a queue pair with messages under way waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Waiting {
    /// A NIC port that is free: it could send.
    Port,
    /// The instant that its policy has named.
    Pacing,
    /// Its policy, which lets no further packet leave for now.
    Policy,
    /// Credit of the receiver.
    Credit,
    /// Room in the window of loss recovery: as many packets lie between the first gap and the newest one as the receiver tracks.
    Window,
    /// The receiver, which has posted no receive.
    Receiver,
    /// Answers: all is sent.
    Answers,
}

impl<P: Policy> Qp<P> {
    /// `None` with no message under way.
    pub(crate) fn waiting(&self) -> Option<Waiting> {
        if self.send.messages().len() == 0 {
            return None;
        }
        Some(match self.turn {
            _ if self.health == Health::BackingOff => Waiting::Receiver,
            Turn::Ready | Turn::Port => Waiting::Port,
            Turn::Paced => Waiting::Pacing,
            Turn::Off if !self.send.backlogged() => Waiting::Answers,
            // A window that is full of packets that are not in flight waits for what is missing.
            Turn::Off if !self.send.sendable() && !self.is_mostly_in_flight() => Waiting::Answers,
            Turn::Off if !self.send.sendable() => Waiting::Window,
            Turn::Off if self.has_credit() => Waiting::Credit,
            Turn::Off => Waiting::Policy,
        })
    }

    fn is_mostly_in_flight(&self) -> bool {
        u64::from(self.send.flight.inflight_packets()) * 2 >= u64::from(self.send.flight.window())
    }
}
