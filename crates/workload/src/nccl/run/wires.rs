//! Messages of a collective as its algorithm declares them.

use std::collections::{BTreeMap, VecDeque};

use crate::error::WorkloadError;

/// Way of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    /// Over the scale-up network of a server.
    ScaleUp,
    /// Over the scale-up network to the GPU beside the NIC, which sends it on without a step of its own (PXN).
    Staged,
    /// Over NICs.
    Net,
}

/// Use of the links by a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    /// Each byte passes the links once.
    Whole,
    /// Share of what a GPU sends and receives where a switch adds up vectors and distributes the sum.
    SwitchReduces,
    /// Likewise where it does one of both.
    SwitchGathers,
}

/// Effect of a message at its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// The content is added to that of the receiver.
    Reduce,
    /// The content replaces that of the receiver.
    Copy,
    /// The content waits to be sent on by the next message, which has this one as its data.
    Stage,
}

/// One message of a collective.
#[derive(Clone, Debug)]
pub(crate) struct Hop {
    pub(crate) src: usize,
    pub(crate) dst: usize,
    pub(crate) channel: u32,
    /// Payload.
    pub(crate) bytes: u64,
    pub(crate) way: Way,
    pub(crate) load: Load,
    pub(crate) action: Action,
    pub(crate) piece: Piece,
}

/// Piece of the vector that a message carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) id: u32,
    /// Rank that has the piece before a gather, or after a scatter.
    pub(crate) owner: usize,
    /// Further pieces of an aggregated message, with their owners.
    pub(crate) more: Vec<(u32, usize)>,
    pub(crate) portion: Portion,
}

/// Portion of the library's loops that a piece has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Portion {
    /// A loop, or loops that are sent on when they have arrived as a whole.
    Whole,
    /// Merged loops that are sent on while they arrive: all loops between the first and the last.
    Stream,
}

/// Messages that a message waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waits<'a, S> {
    /// Messages whose content it needs.
    pub(crate) data: &'a [S],
    /// Messages that free its connection and its slot.
    pub(crate) slots: &'a [S],
    /// Number of messages before it on its connection.
    pub(crate) number: u64,
}

impl<S> Waits<'_, S> {
    /// Returns true if the message waits by itself until its sender takes part. Each message of `slots` is one of the
    /// sender or has used the content of one, so it came after that. Data may come from a rank that took part earlier.
    pub(crate) const fn for_begin(&self) -> bool {
        self.number == 0 || self.slots.is_empty()
    }
}

/// Target on which an algorithm declares its messages.
pub(crate) trait Wires {
    /// Handle of a message that others may wait for.
    type Sent: Copy;
    /// Declares a message.
    fn send(&mut self, hop: &Hop, waits: Waits<'_, Self::Sent>) -> Result<Self::Sent, WorkloadError>;
}

/// Declared message, with its place on its connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<S> {
    sent: S,
    pipe: u32,
    number: u64,
}

/// Connections of a collective. Each has slots, and a message frees its slot when the receiver has used it.
///
/// Messages of a scale-up connection follow each other, two at a time, as stores of a block of threads do. Those of a NIC
/// are ordered by their queue pair. Merged loops of pipelines are streams: such a message begins when the first loop has
/// arrived, and the last loop, a message of its own, arrives after it.
pub(crate) struct Pipes<'w, W: Wires> {
    wires: &'w mut W,
    slots: usize,
    number_of: BTreeMap<(usize, usize, u32, Way), u32>,
    pipes: Vec<Pipe<W::Sent>>,
}

struct Pipe<S> {
    /// Number of the oldest message in `recent`.
    first: u64,
    /// Messages whose slots are in use.
    recent: VecDeque<Recent<S>>,
}

/// Message whose slot is in use.
struct Recent<S> {
    sent: S,
    portion: Portion,
    /// Messages that used its content.
    used: Vec<S>,
}

impl<S: Copy> Pipe<S> {
    /// Returns the message that must have arrived before another one begins. Two messages are under way at a time over
    /// scale-up, so that the latency between them costs nothing.
    fn before(&self, hop: &Hop) -> Option<S> {
        let place = |back: usize| self.recent.len().checked_sub(back).map(|place| &self.recent[place]);
        let last = place(1)?;
        if hop.piece.portion == Portion::Stream || last.portion == Portion::Stream {
            return Some(last.sent);
        }
        if hop.way == Way::Net { None } else { place(2).map(|recent| recent.sent) }
    }
}

impl<'w, W: Wires> Pipes<'w, W> {
    pub(crate) fn new(wires: &'w mut W, slots: usize) -> Self {
        Pipes { wires, slots: slots.max(2), number_of: BTreeMap::new(), pipes: Vec::new() }
    }

    /// Declares a message that needs the content of `data`, and that also waits for `turns`.
    pub(crate) fn send(
        &mut self,
        hop: &Hop,
        data: &[Token<W::Sent>],
        turns: &[Token<W::Sent>],
    ) -> Result<Token<W::Sent>, WorkloadError> {
        let key = (hop.src, hop.dst, hop.channel, hop.way);
        let pipes = &mut self.pipes;
        let index = *self.number_of.entry(key).or_insert_with(|| {
            pipes.push(Pipe { first: 0, recent: VecDeque::new() });
            pipes.len() as u32 - 1
        });
        let pipe = &mut self.pipes[index as usize];
        let streams = hop.piece.portion == Portion::Stream;
        // The message before a stream had the first loop, whose content has arrived.
        let data: &[Token<W::Sent>] = if streams { &[] } else { data };
        let mut waits: Vec<W::Sent> = turns.iter().map(|token| token.sent).collect();
        waits.extend(pipe.before(hop));
        if pipe.recent.len() == self.slots {
            let Recent { sent, used, .. } = pipe.recent.pop_front().expect("all slots are in use");
            pipe.first += 1;
            if used.is_empty() { waits.push(sent) } else { waits.extend(used) }
        }
        let number = pipe.first + pipe.recent.len() as u64;
        let content: Vec<W::Sent> = data.iter().map(|token| token.sent).collect();
        let sent = self.wires.send(hop, Waits { data: &content, slots: &waits, number })?;
        let portion = hop.piece.portion;
        self.pipes[index as usize].recent.push_back(Recent { sent, portion, used: Vec::new() });
        for token in data {
            let of = &mut self.pipes[token.pipe as usize];
            let place = token.number.checked_sub(of.first).map(|place| place as usize);
            if let Some(recent) = place.and_then(|place| of.recent.get_mut(place)) {
                recent.used.push(sent);
            }
        }
        Ok(Token { sent, pipe: index, number })
    }
}
