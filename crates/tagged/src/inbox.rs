//! Posted receives, unexpected messages and claimed messages.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use crate::matching::{HasEnvelope, Pattern, Posted, Unexpected};
use crate::memory::{PeerId, Piece, Remote};
use crate::operations::{MatchedReceive, OperationInfo, Slot};
use crate::output::{Completion, Failure, Kind, Release};
use crate::request::{Label, MatchOn, Receive, ReceiveCount, Report};
use crate::table::Table;

/// Properties of a message without its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Envelope {
    pub(crate) from: PeerId,
    pub(crate) label: Label,
    pub(crate) data: Option<u64>,
    pub(crate) len: u64,
}

impl Envelope {
    fn ticket(&self, context: u64, report: Report) -> OperationInfo {
        OperationInfo {
            context,
            kind: Kind::Receive(self.label),
            report,
            peer: self.from,
            len: self.len,
            data: self.data,
            slot: Slot::NotCounted,
        }
    }
    /// Returns the completion of a peek that finds the message.
    pub(crate) fn peek_completion(&self, context: u64) -> Completion {
        self.ticket(context, Report::Entry).done(Ok(()))
    }
    /// Matches the message with a receive that has this room.
    pub(crate) fn landing(&self, context: u64, room: Piece, report: Report) -> MatchedReceive {
        MatchedReceive {
            ticket: self.ticket(context, report),
            into: room.within(0, self.len),
            cut: self.len.saturating_sub(room.len),
            many: None,
        }
    }
}

/// Message that has matched no receive.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) envelope: Envelope,
    pub(crate) body: Body,
}

/// Location of the bytes of a message.
#[derive(Debug)]
pub(crate) enum Body {
    /// Held by this engine.
    Held(Box<[u8]>),
    /// At the sender.
    Announced { id: u64, remote: Remote },
    /// In this application's memory, for a message to itself with number `sent`.
    Own { sent: u64, piece: Piece },
    /// Lost with the sender. Only claimed messages are kept after that.
    Lost(Failure),
}

impl Arrival {
    fn held(&self) -> u64 {
        if let Body::Held(bytes) = &self.body { bytes.len() as u64 } else { 0 }
    }
}

impl HasEnvelope for Arrival {
    fn label(&self) -> (PeerId, u64) {
        (self.envelope.from, place_of(self.envelope.label).1)
    }
}

/// Receive that is posted, or multi-receive with messages in transfer.
#[derive(Debug)]
struct PostedReceive {
    space: usize,
    pattern: Pattern,
    receive: Receive,
    /// Bytes used of a multi-receive.
    used: u64,
    /// Number of its messages in transfer.
    landing: u32,
    state: PostingState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PostingState {
    Posted,
    /// Takes no further messages.
    Full,
}

#[derive(Debug)]
struct Space {
    posted: Posted,
    unexpected: Unexpected<Arrival>,
}

#[derive(Debug)]
pub(crate) struct Inbox {
    spaces: [Space; 2],
    receives: Table<PostedReceive>,
    claimed: BTreeMap<u64, Arrival>,
    /// Bytes of payload held.
    held: u64,
}

fn place_of(label: Label) -> (usize, u64) {
    match label {
        Label::Message => (0, 0),
        Label::Tagged(tag) => (1, tag),
    }
}

fn pattern_of(from: Option<PeerId>, want: MatchOn) -> (usize, Pattern) {
    match want {
        MatchOn::Message => (0, Pattern { from, tag: 0, ignore: 0 }),
        MatchOn::Tagged { tag, ignore } => (1, Pattern { from, tag, ignore }),
    }
}

impl Inbox {
    pub(crate) fn new(seed: u64) -> Self {
        let space = |seed| Space { posted: Posted::new(seed), unexpected: Unexpected::new(seed) };
        Inbox {
            spaces: [space(seed), space(!seed)],
            receives: Table::default(),
            claimed: BTreeMap::new(),
            held: 0,
        }
    }
    /// Returns the bytes of unexpected payload.
    pub(crate) fn held(&self) -> u64 {
        self.held
    }
    /// Returns the number of unexpected and claimed messages.
    pub(crate) fn messages(&self) -> usize {
        self.spaces.iter().map(|space| space.unexpected.len()).sum::<usize>() + self.claimed.len()
    }
    pub(crate) fn receives(&self) -> usize {
        self.receives.len()
    }

    /// Finds and takes the receive for an arriving message.
    pub(crate) fn find(&mut self, envelope: &Envelope) -> Option<MatchedReceive> {
        let (space, tag) = place_of(envelope.label);
        let id = self.spaces[space].posted.find(envelope.from, tag)?;
        self.take(id, envelope)
    }

    /// Takes room in a receive for a message.
    fn take(&mut self, id: u64, envelope: &Envelope) -> Option<MatchedReceive> {
        let posting = self.receives.get_mut(id)?;
        let Receive { into, take, report, context, .. } = posting.receive;
        let mut landing = envelope.landing(context, into.within(posting.used, u64::MAX), report);
        let is_over = match take {
            ReceiveCount::One => true,
            ReceiveCount::Many { least } => {
                posting.used += landing.into.len;
                posting.landing += 1;
                landing.many = Some(id);
                into.len - posting.used < least.max(1)
            }
        };
        if is_over {
            posting.state = PostingState::Full;
            let (space, pattern) = (posting.space, posting.pattern);
            self.spaces[space].posted.remove(pattern, id);
            if landing.many.is_none() {
                self.receives.remove(id);
            }
        }
        Some(landing)
    }

    /// Records that a message has been placed or has failed, and returns whether this releases a multi-receive.
    pub(crate) fn on_placed(&mut self, landing: &MatchedReceive) -> Release {
        let Some((id, posting)) = landing.many.and_then(|id| Some((id, self.receives.get_mut(id)?))) else {
            return Release::No;
        };
        posting.landing -= 1;
        if posting.landing > 0 || posting.state == PostingState::Posted {
            return Release::No;
        }
        self.receives.remove(id);
        Release::Released
    }

    /// Holds a message that matched no receive.
    pub(crate) fn hold_unexpected(&mut self, arrival: Arrival) {
        let (space, _) = place_of(arrival.envelope.label);
        self.held += arrival.held();
        self.spaces[space].unexpected.push(arrival);
    }

    /// Posts a receive and returns its number. The caller then takes the matching unexpected messages with
    /// [`next`](Self::next).
    pub(crate) fn post(&mut self, receive: Receive) -> u64 {
        let (space, pattern) = pattern_of(receive.from, receive.want);
        let posting =
            PostedReceive { space, pattern, receive, used: 0, landing: 0, state: PostingState::Posted };
        let id = self.receives.insert(posting);
        self.spaces[space].posted.post(pattern, id);
        id
    }

    /// Takes the next unexpected message that a receive matches.
    pub(crate) fn next(&mut self, id: u64) -> Option<(Arrival, MatchedReceive)> {
        let posting = self.receives.get(id).filter(|p| p.state == PostingState::Posted)?;
        let unexpected = &mut self.spaces[posting.space].unexpected;
        let turn = unexpected.find(posting.pattern)?;
        let arrival = unexpected.take(turn)?;
        self.held -= arrival.held();
        let landing = self.take(id, &arrival.envelope)?;
        Some((arrival, landing))
    }

    /// Returns the oldest unexpected message that matches.
    pub(crate) fn find_unexpected(
        &mut self,
        from: Option<PeerId>,
        want: MatchOn,
    ) -> Option<(usize, u64, &Arrival)> {
        let (space, pattern) = pattern_of(from, want);
        let unexpected = &mut self.spaces[space].unexpected;
        let turn = unexpected.find(pattern)?;
        Some((space, turn, unexpected.get(turn)?))
    }

    /// Removes the message that [`look`](Self::find_unexpected) found.
    pub(crate) fn take_unexpected(&mut self, space: usize, turn: u64) -> Option<Arrival> {
        let arrival = self.spaces[space].unexpected.take(turn)?;
        self.held -= arrival.held();
        Some(arrival)
    }

    /// Hides a message until the claim with this context. Returns the message that was claimed with the same context
    /// before.
    pub(crate) fn hide(&mut self, context: u64, arrival: Arrival) -> Option<Arrival> {
        self.held += arrival.held();
        let before = self.claimed.insert(context, arrival)?;
        self.held -= before.held();
        Some(before)
    }
    /// Removes and returns a claimed message.
    pub(crate) fn claim(&mut self, context: u64) -> Option<Arrival> {
        let arrival = self.claimed.remove(&context)?;
        self.held -= arrival.held();
        Some(arrival)
    }

    /// Cancels a receive with this context, and returns its completion if one was posted.
    pub(crate) fn cancel(&mut self, context: u64) -> Option<Completion> {
        let fits = |p: &PostedReceive| p.receive.context == context && p.state == PostingState::Posted;
        let id = self.receives.iter().find(|(_, posting)| fits(posting))?.0;
        self.withdraw(id, Failure::Cancelled)
    }

    /// Withdraws the receives that only this peer could fill.
    pub(crate) fn withdraw_of(&mut self, peer: PeerId, failure: Failure, out: &mut impl Extend<Completion>) {
        let ids = self.receives.ids(|p| p.pattern.from == Some(peer) && p.state == PostingState::Posted);
        for id in ids {
            out.extend(self.withdraw(id, failure));
        }
    }

    fn withdraw(&mut self, id: u64, failure: Failure) -> Option<Completion> {
        let posting = self.receives.get_mut(id)?;
        let (space, pattern, receive) = (posting.space, posting.pattern, posting.receive);
        posting.state = PostingState::Full;
        let mut release = Release::No;
        if posting.landing == 0 {
            if matches!(receive.take, ReceiveCount::Many { .. }) {
                release = Release::Released;
            }
            self.receives.remove(id);
        }
        self.spaces[space].posted.remove(pattern, id);
        let label = match receive.want {
            MatchOn::Message => Label::Message,
            MatchOn::Tagged { tag, .. } => Label::Tagged(tag),
        };
        Some(Completion {
            context: receive.context,
            kind: Kind::Receive(label),
            report: Report::Entry,
            result: Err(failure),
            len: 0,
            data: None,
            peer: receive.from,
            into: Piece::NONE,
            release,
            region: None,
        })
    }

    /// Handles the loss of a peer: its announced messages are lost, too.
    pub(crate) fn lose(&mut self, peer: PeerId, failure: Failure) {
        let lost = |a: &Arrival| a.envelope.from == peer && matches!(a.body, Body::Announced { .. });
        for space in &mut self.spaces {
            space.unexpected.drop_where(lost);
        }
        for arrival in self.claimed.values_mut().filter(|arrival| lost(arrival)) {
            arrival.body = Body::Lost(failure);
        }
    }
}
