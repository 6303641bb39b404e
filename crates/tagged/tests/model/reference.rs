//! Matching as the manual pages have it, in lists: what must come of the order in which headers arrive and calls are made.
use crate::world::Bytes;

/// A message as it arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    pub from: usize,
    pub tag: u64,
    /// Number of the message.
    pub id: u64,
    pub len: u64,
    pub bytes: Bytes,
}

/// A receive as it is posted.
#[derive(Clone, Copy, Debug)]
pub struct Posted {
    pub context: u64,
    pub from: Option<usize>,
    pub tag: u64,
    pub ignore: u64,
    /// Bytes that are free, of the whole buffer.
    pub room: u64,
    pub size: u64,
    /// A multi-receive is over when less is left.
    pub least: Option<u64>,
}

impl Posted {
    fn fits(&self, message: &Message) -> bool {
        (self.tag ^ message.tag) & !self.ignore == 0 && self.from.is_none_or(|from| from == message.from)
    }
}

/// What a receive must get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    pub context: u64,
    pub message: Message,
    pub offset: u64,
    pub len: u64,
}

/// One process.
#[derive(Debug, Default)]
pub struct Reference {
    pub posted: Vec<Posted>,
    pub unexpected: Vec<Message>,
    /// By context; `None` is one whose sender has died.
    pub claimed: Vec<(u64, Option<Message>)>,
    pub matches: Vec<Match>,
}

impl Reference {
    /// A message: the oldest receive that it fits takes it.
    pub fn arrive(&mut self, message: Message) {
        match self.posted.iter().position(|posted| posted.fits(&message)) {
            Some(at) => self.fill(at, message),
            None => self.unexpected.push(message),
        }
    }
    fn fill(&mut self, at: usize, message: Message) {
        let posted = &mut self.posted[at];
        let len = message.len.min(posted.room);
        let offset = posted.size - posted.room;
        self.matches.push(Match { context: posted.context, message, offset, len });
        posted.room -= len;
        if posted.least.is_none_or(|least| posted.room < least) {
            self.posted.remove(at);
        }
    }
    /// A receive: it takes the oldest message that fits, a multi-receive as many as go in.
    pub fn post(&mut self, posted: Posted) {
        self.posted.push(posted);
        let is_posted = |posts: &[Posted]| posts.last().is_some_and(|p| p.context == posted.context);
        while is_posted(&self.posted) {
            let Some(at) = self.find(&posted) else { break };
            let message = self.unexpected.remove(at);
            self.fill(self.posted.len() - 1, message);
        }
    }
    fn find(&self, posted: &Posted) -> Option<usize> {
        self.unexpected.iter().position(|message| posted.fits(message))
    }
    /// Whether a receive was still there to be cancelled.
    pub fn cancel(&mut self, context: u64) -> bool {
        let before = self.posted.len();
        self.posted.retain(|posted| posted.context != context);
        self.posted.len() < before
    }
    /// What a peek finds.
    pub fn peek(&mut self, wanted: &Posted, takes: bool) -> Option<Message> {
        let at = self.find(wanted)?;
        Some(if takes { self.unexpected.remove(at) } else { self.unexpected[at] })
    }
    /// A peer is gone: what it has only announced is lost.
    pub fn lose(&mut self, peer: usize) {
        let lost = |m: &Message| m.from == peer && m.bytes == Bytes::Announced;
        self.unexpected.retain(|message| !lost(message));
        for (_, claimed) in &mut self.claimed {
            *claimed = claimed.filter(|message| !lost(message));
        }
    }
}
