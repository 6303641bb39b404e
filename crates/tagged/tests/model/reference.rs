//! Reference for matching according to the manual pages, with plain lists. Its input is the order in which headers
//! arrive and calls are made.
use crate::world::Bytes;

/// Message as it arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    pub from: usize,
    pub tag: u64,
    /// Number of the message.
    pub id: u64,
    pub len: u64,
    pub bytes: Bytes,
}

/// Receive as it is posted.
#[derive(Clone, Copy, Debug)]
pub struct Posted {
    pub context: u64,
    pub from: Option<usize>,
    pub tag: u64,
    pub ignore: u64,
    /// Free bytes, and size of the whole buffer.
    pub room: u64,
    pub size: u64,
    /// A multi-receive is released when fewer bytes than this are left.
    pub least: Option<u64>,
}

impl Posted {
    fn fits(&self, message: &Message) -> bool {
        (self.tag ^ message.tag) & !self.ignore == 0 && self.from.is_none_or(|from| from == message.from)
    }
}

/// Expected result of a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    pub context: u64,
    pub message: Message,
    pub offset: u64,
    pub len: u64,
}

/// State of one process.
#[derive(Debug, Default)]
pub struct Reference {
    pub posted: Vec<Posted>,
    pub unexpected: Vec<Message>,
    /// Claimed messages by context; `None` if the sender has died.
    pub claimed: Vec<(u64, Option<Message>)>,
    pub matches: Vec<Match>,
}

impl Reference {
    /// Handles an arriving message: the oldest receive that matches takes it.
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
    /// Posts a receive, which takes the oldest matching message; a multi-receive takes as many as fit.
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
    /// Returns true if there was a receive to cancel.
    pub fn cancel(&mut self, context: u64) -> bool {
        let before = self.posted.len();
        self.posted.retain(|posted| posted.context != context);
        self.posted.len() < before
    }
    /// Returns the message that a peek finds.
    pub fn peek(&mut self, wanted: &Posted, takes: bool) -> Option<Message> {
        let at = self.find(wanted)?;
        Some(if takes { self.unexpected.remove(at) } else { self.unexpected[at] })
    }
    /// Handles the loss of a peer: its announced messages are lost.
    pub fn lose(&mut self, peer: usize) {
        let lost = |m: &Message| m.from == peer && m.bytes == Bytes::Announced;
        self.unexpected.retain(|message| !lost(message));
        for (_, claimed) in &mut self.claimed {
            *claimed = claimed.filter(|message| !lost(message));
        }
    }
}
