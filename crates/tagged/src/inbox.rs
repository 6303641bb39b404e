//! Posted receives, unexpected and claimed messages.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use crate::matching::{Labelled, Pattern, Posted, Unexpected};
use crate::memory::{PeerId, Piece, Remote};
use crate::operations::{Landing, Slot, Ticket};
use crate::output::{Completion, Failure, Kind, Release};
use crate::request::{Label, Receive, Report, Take, Want};
use crate::table::Table;

/// What is known of a message before its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Envelope {
    pub(crate) from: PeerId,
    pub(crate) label: Label,
    pub(crate) data: Option<u64>,
    pub(crate) len: u64,
}

impl Envelope {
    fn ticket(&self, context: u64, report: Report) -> Ticket {
        Ticket {
            context,
            kind: Kind::Receive(self.label),
            report,
            peer: self.from,
            len: self.len,
            data: self.data,
            slot: Slot::Free,
        }
    }
    /// What a peek says of it.
    pub(crate) fn seen(&self, context: u64) -> Completion {
        self.ticket(context, Report::Entry).done(Ok(()))
    }
    /// Matched with room for it.
    pub(crate) fn landing(&self, context: u64, room: Piece, report: Report) -> Landing {
        Landing {
            ticket: self.ticket(context, report),
            into: room.within(0, self.len),
            cut: self.len.saturating_sub(room.len),
            many: None,
        }
    }
}

/// A message that no receive was found for.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) envelope: Envelope,
    pub(crate) body: Body,
}

/// Where its bytes are.
#[derive(Debug)]
pub(crate) enum Body {
    /// Here.
    Held(Box<[u8]>),
    /// With the sender.
    Announced { id: u64, remote: Remote },
    /// In this application's memory, of the message of this number.
    Own { sent: u64, piece: Piece },
    /// Gone with the sender. Only claimed messages are kept so long.
    Lost(Failure),
}

impl Arrival {
    fn held(&self) -> u64 {
        if let Body::Held(bytes) = &self.body { bytes.len() as u64 } else { 0 }
    }
}

impl Labelled for Arrival {
    fn label(&self) -> (PeerId, u64) {
        (self.envelope.from, place_of(self.envelope.label).1)
    }
}

/// A receive that is posted, or a multi-receive with messages on their way.
#[derive(Debug)]
struct Posting {
    space: usize,
    pattern: Pattern,
    receive: Receive,
    /// Bytes taken of a multi-receive.
    used: u64,
    /// Its messages on their way.
    landing: u32,
    state: PostingState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PostingState {
    Posted,
    /// No message is put into it any more.
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
    receives: Table<Posting>,
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

fn pattern_of(from: Option<PeerId>, want: Want) -> (usize, Pattern) {
    match want {
        Want::Message => (0, Pattern { from, tag: 0, ignore: 0 }),
        Want::Tagged { tag, ignore } => (1, Pattern { from, tag, ignore }),
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
    /// Bytes of unexpected payload.
    pub(crate) fn held(&self) -> u64 {
        self.held
    }
    /// Unexpected messages, and claimed ones.
    pub(crate) fn messages(&self) -> usize {
        self.spaces.iter().map(|space| space.unexpected.len()).sum::<usize>() + self.claimed.len()
    }
    pub(crate) fn receives(&self) -> usize {
        self.receives.len()
    }

    /// The receive for a message that arrives, which is taken.
    pub(crate) fn find(&mut self, envelope: &Envelope) -> Option<Landing> {
        let (space, tag) = place_of(envelope.label);
        let id = self.spaces[space].posted.find(envelope.from, tag)?;
        self.take(id, envelope)
    }

    /// Takes room of a receive.
    fn take(&mut self, id: u64, envelope: &Envelope) -> Option<Landing> {
        let posting = self.receives.get_mut(id)?;
        let Receive { into, take, report, context, .. } = posting.receive;
        let mut landing = envelope.landing(context, into.within(posting.used, u64::MAX), report);
        let is_over = match take {
            Take::One => true,
            Take::Many { least } => {
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

    /// A message has been put where it belongs, or failed.
    pub(crate) fn landed(&mut self, landing: &Landing) -> Release {
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

    /// No receive was found for a message.
    pub(crate) fn keep(&mut self, arrival: Arrival) {
        let (space, _) = place_of(arrival.envelope.label);
        self.held += arrival.held();
        self.spaces[space].unexpected.push(arrival);
    }

    /// Posts a receive. Then [`next`](Self::next) says which unexpected messages it takes.
    pub(crate) fn post(&mut self, receive: Receive) -> u64 {
        let (space, pattern) = pattern_of(receive.from, receive.want);
        let posting = Posting { space, pattern, receive, used: 0, landing: 0, state: PostingState::Posted };
        let id = self.receives.insert(posting);
        self.spaces[space].posted.post(pattern, id);
        id
    }

    /// The next unexpected message that a receive takes.
    pub(crate) fn next(&mut self, id: u64) -> Option<(Arrival, Landing)> {
        let posting = self.receives.get(id).filter(|p| p.state == PostingState::Posted)?;
        let unexpected = &mut self.spaces[posting.space].unexpected;
        let turn = unexpected.find(posting.pattern)?;
        let arrival = unexpected.take(turn)?;
        self.held -= arrival.held();
        let landing = self.take(id, &arrival.envelope)?;
        Some((arrival, landing))
    }

    /// The oldest unexpected message that fits.
    pub(crate) fn look(&mut self, from: Option<PeerId>, want: Want) -> Option<(usize, u64, &Arrival)> {
        let (space, pattern) = pattern_of(from, want);
        let unexpected = &mut self.spaces[space].unexpected;
        let turn = unexpected.find(pattern)?;
        Some((space, turn, unexpected.get(turn)?))
    }

    /// Takes out what [`look`](Self::look) found.
    pub(crate) fn take_unexpected(&mut self, space: usize, turn: u64) -> Option<Arrival> {
        let arrival = self.spaces[space].unexpected.take(turn)?;
        self.held -= arrival.held();
        Some(arrival)
    }

    /// Hides a message for the claim with this context. A message that was claimed with it before is given back.
    pub(crate) fn hide(&mut self, context: u64, arrival: Arrival) -> Option<Arrival> {
        self.held += arrival.held();
        let before = self.claimed.insert(context, arrival)?;
        self.held -= before.held();
        Some(before)
    }
    /// The message that was claimed.
    pub(crate) fn claim(&mut self, context: u64) -> Option<Arrival> {
        let arrival = self.claimed.remove(&context)?;
        self.held -= arrival.held();
        Some(arrival)
    }

    /// Takes back a receive of this context; what to say of it, if one was posted.
    pub(crate) fn cancel(&mut self, context: u64) -> Option<Completion> {
        let fits = |p: &Posting| p.receive.context == context && p.state == PostingState::Posted;
        let id = self.receives.iter().find(|(_, posting)| fits(posting))?.0;
        self.withdraw(id, Failure::Cancelled)
    }

    /// Takes back the receives that only this peer could fill.
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
            if matches!(receive.take, Take::Many { .. }) {
                release = Release::Released;
            }
            self.receives.remove(id);
        }
        self.spaces[space].posted.remove(pattern, id);
        let label = match receive.want {
            Want::Message => Label::Message,
            Want::Tagged { tag, .. } => Label::Tagged(tag),
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

    /// A peer is gone, and with it what it has only announced.
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
