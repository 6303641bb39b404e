//! Receive operations.

use crate::engine::Engine;
use crate::inbox::{Arrival, Body};
use crate::memory::{Memory, PeerId, Piece};
use crate::operations::MatchedReceive;
use crate::output::{Completion, Failure, Kind, Release};
use crate::peer::{Connection, Link, Peer};
use crate::request::{Claim, Found, Label, MatchOn, Peek, PostError, Receive, ReceiveCount, Report};

impl Engine {
    /// Posts a receive, which takes the oldest unexpected message that matches, or waits.
    ///
    /// # Errors
    ///
    /// [`PostError::Lengths`] if a multi-receive has no room.
    pub fn post_receive(&mut self, receive: Receive, memory: &mut dyn Memory) -> Result<(), PostError> {
        if matches!(receive.take, ReceiveCount::Many { .. }) && receive.into.len == 0 {
            return Err(PostError::Lengths);
        }
        let id = self.core.inbox.post(receive);
        while let Some((arrival, landing)) = self.core.inbox.next(id) {
            self.land(landing, arrival, memory);
        }
        self.resume_starved_peers(memory);
        Ok(())
    }

    /// Searches for an unexpected message. The result is a completion, even if there is none.
    pub fn peek(&mut self, peek: Peek, memory: &mut dyn Memory) {
        let Peek { from, want, found, context } = peek;
        let Some((space, turn, arrival)) = self.core.inbox.find_unexpected(from, want) else {
            self.core.completions.push_back(nothing(&peek));
            return;
        };
        self.core.completions.push_back(arrival.envelope.peek_completion(context));
        if found == Found::Stays {
            return;
        }
        let Some(arrival) = self.core.inbox.take_unexpected(space, turn) else { return };
        let dropped = match found {
            Found::Claimed => self.core.inbox.hide(context, arrival),
            Found::Stays | Found::Dropped => Some(arrival),
        };
        if let Some(arrival) = dropped {
            self.discard(arrival, memory);
        }
        self.resume_starved_peers(memory);
    }

    /// Receives or drops the message that a peek claimed with this context.
    ///
    /// # Errors
    ///
    /// [`PostError::NotClaimed`] if no message was claimed with this context.
    pub fn claim(&mut self, claim: Claim, memory: &mut dyn Memory) -> Result<(), PostError> {
        let arrival = self.core.inbox.claim(claim.context).ok_or(PostError::NotClaimed)?;
        match claim.into {
            Some(into) => {
                let landing = arrival.envelope.landing(claim.context, into, claim.report);
                self.land(landing, arrival, memory);
            }
            None => {
                let seen = arrival.envelope.peek_completion(claim.context);
                self.core.completions.push_back(Completion { report: claim.report, ..seen });
                self.discard(arrival, memory);
            }
        }
        self.resume_starved_peers(memory);
        Ok(())
    }

    /// Cancels a receive with this context that has not been matched; if there are several, any one of them. The
    /// cancellation is reported by the receive's completion. Nothing happens if no receive is found.
    pub fn cancel(&mut self, context: u64) {
        let cancelled = self.core.inbox.cancel(context);
        self.core.completions.extend(cancelled);
    }

    fn land(&mut self, landing: MatchedReceive, arrival: Arrival, memory: &mut dyn Memory) {
        let from = arrival.envelope.from;
        let connection = connection_of(self.peers.get_mut(&from));
        let waits = matches!(arrival.body, Body::Announced { .. });
        self.core.land(landing, arrival.body, connection, memory);
        if waits {
            self.pump(from, memory);
        }
    }

    fn discard(&mut self, arrival: Arrival, memory: &mut dyn Memory) {
        let from = arrival.envelope.from;
        let connection = connection_of(self.peers.get_mut(&from));
        self.core.discard(arrival.body, connection, memory);
        self.pump(from, memory);
    }
}

fn connection_of(peer: Option<&mut Peer>) -> Option<&mut Connection> {
    match peer {
        Some(Peer { link: Link::Up(connection), .. }) => Some(connection),
        _ => None,
    }
}

/// Returns the completion of a peek that found nothing.
fn nothing(peek: &Peek) -> Completion {
    let label = match peek.want {
        MatchOn::Message => Label::Message,
        MatchOn::Tagged { tag, .. } => Label::Tagged(tag),
    };
    Completion {
        context: peek.context,
        kind: Kind::Receive(label),
        report: Report::Entry,
        result: Err(Failure::NoMessage),
        len: 0,
        data: None,
        peer: peek.from.filter(|peer| *peer != PeerId::SELF),
        into: Piece::NONE,
        release: Release::No,
        region: None,
    }
}
