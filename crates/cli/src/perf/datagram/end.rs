//! What both ends do alike: keep receives posted, keep messages under way, check bytes.

use std::time::{Duration, Instant};

use pathweave_datapath::rdm::{Peer, RdmCompletion, RdmEndpoint, RdmPostError};
use pathweave_datapath::{Opcode, Region, Slice, WaitError};

use super::super::client::LOOK_EVERY;
use super::super::flow::region;
use super::super::meter::Meter;
use super::super::pattern::Pattern;
use super::super::test::What;
use super::super::words::Broken;
use super::super::work::{Watch, Work};
use super::words::{Ask, WORDS_BYTES, Word, decode, encode, token_of};

/// Buffers of a measurement take about this much, unless one message is more.
const BUFFER_BYTES: u64 = 256 << 20;
/// Receives for each message under way: the other end may be that far behind.
const RECEIVES_A_MESSAGE: u64 = 4;
/// What is lost is asked for by the next scan but one.
const LOSSES_OF_A_BYE: u32 = 20;
/// Ids of messages: of words, and of what is measured.
const OF_WORDS: u64 = 1 << 62;

/// Something that has come of a measurement.
pub(super) enum Came {
    Word(Word),
    /// A message of data.
    Data,
    /// A message of this end is done.
    Done,
}

/// One end's part in a measurement.
pub(super) struct End {
    endpoint: RdmEndpoint,
    peer: Peer,
    token: u64,
    ask: Ask,
    sends: bool,
    /// Where messages come from, a slot each, and where they go.
    own: Region,
    open: Region,
    slot_bytes: u64,
    pattern: Pattern,
    posted: u64,
    done: u64,
    /// Messages the other end has looked at.
    credited: u64,
    arrived: u64,
    owed: u64,
    wrong: u64,
    first_wrong: Option<String>,
    stopped: bool,
    /// Words on their way.
    words: std::cell::Cell<u64>,
    meter: Meter,
}

impl Ask {
    /// Receives that are posted, each with a slot of its own where bytes are looked at.
    fn receives(&self) -> u64 {
        RECEIVES_A_MESSAGE * u64::from(self.depth)
    }

    /// Slots of each end's memory.
    fn slots(&self) -> u64 {
        let fit = (BUFFER_BYTES / self.slot_bytes()).max(2);
        self.receives().min(fit)
    }

    /// Words must fit, too.
    fn slot_bytes(&self) -> u64 {
        self.size_bytes.max(WORDS_BYTES)
    }

    /// As a server tells of it.
    pub(super) fn what(&self) -> What {
        let kind = if self.latency { "latency" } else { "bandwidth" };
        What { op: "send", kind, size_bytes: self.size_bytes, depth: self.depth }
    }

    /// Memory of an end, for one direction.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.slots() * self.slot_bytes()
    }

    /// Messages under way. Those whose bytes are looked at leave a slot free for words.
    fn window(&self) -> u64 {
        let depth = u64::from(self.depth);
        if self.check { depth.min((self.slots() / 2).max(1)) } else { depth }
    }
}

impl End {
    /// `sends`: this end has data of its own to send.
    ///
    /// # Errors
    /// There is no memory, or what is asked cannot be posted.
    pub(super) fn new(
        endpoint: RdmEndpoint,
        peer: Peer,
        token: u64,
        ask: Ask,
        sends: bool,
    ) -> Result<Self, Broken> {
        let (own, open) = (region(ask.memory_bytes())?, region(ask.memory_bytes())?);
        let end = End {
            endpoint,
            peer,
            token,
            ask,
            sends,
            own,
            open,
            slot_bytes: ask.slot_bytes(),
            pattern: Pattern::new(),
            posted: 0,
            done: 0,
            credited: 0,
            arrived: 0,
            owed: 0,
            wrong: 0,
            first_wrong: None,
            stopped: false,
            words: std::cell::Cell::new(0),
            meter: Meter::default(),
        };
        // Where bytes are looked at, a slot has one receive.
        let receives = if ask.check { ask.slots() } else { ask.receives() };
        (0..receives).try_for_each(|number| end.receive(number % ask.slots()))?;
        Ok(end)
    }

    pub(super) fn endpoint(&self) -> &RdmEndpoint {
        &self.endpoint
    }

    fn receive(&self, slot: u64) -> Result<(), Broken> {
        let room = self.slice(&self.open, slot, self.slot_bytes)?;
        self.endpoint.recv(slot, room).map_err(own)
    }

    fn slice(&self, region: &Region, slot: u64, len: u64) -> Result<Slice, Broken> {
        let start = (slot * self.slot_bytes) as usize;
        Ok(region.slice(start..start + len as usize)?)
    }

    /// Says something.
    ///
    /// # Errors
    /// [`Broken`].
    pub(super) fn say(&self, word: &Word) -> Result<(), Broken> {
        let words = Region::from_bytes(&encode(self.token, word))?;
        self.words.set(self.words.get() + 1);
        self.endpoint.send(OF_WORDS, self.peer, words.all()).map_err(own)
    }

    /// Keeps as many messages under way as there may be.
    ///
    /// # Errors
    /// [`Broken`].
    pub(super) fn post(&mut self) -> Result<(), Broken> {
        while !self.stopped && self.sends {
            let all = self.ask.iterations.is_some_and(|all| self.posted >= all);
            let behind = if self.ask.check { self.credited.min(self.done) } else { self.done };
            if all || self.posted - behind >= self.ask.window() {
                break;
            }
            self.post_one()?;
        }
        Ok(())
    }

    /// Sends the next message.
    ///
    /// # Errors
    /// [`Broken`].
    pub(super) fn post_one(&mut self) -> Result<(), Broken> {
        if self.posted == 0 {
            self.meter.begin();
        }
        let slot = self.posted % self.ask.slots();
        if self.ask.check {
            let start = (slot * self.slot_bytes) as usize;
            self.pattern.fill(&self.own, start, self.ask.size_bytes as usize, self.posted)?;
        }
        let message = self.slice(&self.own, slot, self.ask.size_bytes)?;
        self.endpoint.send(self.posted, self.peer, message).map_err(own)?;
        self.posted += 1;
        Ok(())
    }

    /// The next thing that comes, waiting a little for it.
    ///
    /// # Errors
    /// [`Broken`].
    pub(super) fn next(&mut self) -> Result<Option<Came>, Broken> {
        match self.endpoint.wait(LOOK_EVERY) {
            Ok(completion) => self.complete(completion),
            Err(WaitError::Timeout(_)) => Ok(None),
            Err(why) => Err(Broken::Own(why.to_string())),
        }
    }

    fn complete(&mut self, done: RdmCompletion) -> Result<Option<Came>, Broken> {
        if !done.is_success() {
            return Err(Broken::Request { opcode: done.opcode, status: done.status, reason: None });
        }
        if done.opcode == Opcode::Send {
            if done.wr_id == OF_WORDS {
                self.words.set(self.words.get() - 1);
                return Ok(None);
            }
            self.done += 1;
            self.meter.note(self.ask.size_bytes);
            return Ok(Some(Came::Done));
        }
        if done.peer != Some(self.peer) {
            self.receive(done.wr_id)?;
            return Ok(None);
        }
        let word = if done.byte_len <= WORDS_BYTES { self.word(done.wr_id, done.byte_len)? } else { None };
        let came = match word {
            Some(Word::Checked { count }) => {
                self.credited += count;
                None
            }
            Some(word) => Some(Came::Word(word)),
            None => {
                self.data(done.wr_id, done.byte_len)?;
                Some(Came::Data)
            }
        };
        self.receive(done.wr_id)?;
        Ok(came)
    }

    fn word(&self, slot: u64, len: u64) -> Result<Option<Word>, Broken> {
        let start = (slot * self.slot_bytes) as usize;
        let bytes = self.open.to_vec(start..start + (len as usize).min(16))?;
        // Most messages are data, which the first bytes tell.
        if len < 16 || token_of(&bytes) != Some(self.token) {
            return Ok(None);
        }
        let bytes = self.open.to_vec(start..start + len as usize)?;
        Ok(decode(Some(self.token), &bytes).map(|(_, word)| word))
    }

    fn data(&mut self, slot: u64, len: u64) -> Result<(), Broken> {
        let number = self.arrived;
        self.arrived += 1;
        if !self.ask.check {
            return Ok(());
        }
        let start = (slot * self.slot_bytes) as usize;
        let size = self.ask.size_bytes as usize;
        // Delivery is in order where bytes are looked at, so the message is known by its place among the others.
        let wrong = match self.pattern.first_wrong(&self.open, start, size, number)? {
            Some(offset) => Some(format!("message {number}, byte {offset} of {size}")),
            None if len != self.ask.size_bytes => Some(format!("message {number} has {len} bytes of {size}")),
            None => None,
        };
        if let Some(wrong) = wrong {
            self.wrong += 1;
            self.first_wrong.get_or_insert(wrong);
        }
        self.pattern.spoil(&self.open, start, size, number)?;
        self.owed += 1;
        if self.owed >= self.ask.window().div_ceil(4) {
            let count = std::mem::take(&mut self.owed);
            self.say(&Word::Checked { count })?;
        }
        Ok(())
    }

    /// No more is to be posted.
    pub(super) fn stop(&mut self) {
        self.stopped = true;
    }

    /// All this end wanted is done.
    pub(super) fn is_done(&self) -> bool {
        let all = self.ask.iterations.is_some_and(|all| self.posted >= all);
        (!self.sends || self.stopped || all) && self.done == self.posted
    }

    /// Whatever this end has said has been heard.
    pub(super) fn has_said_all(&self) -> bool {
        self.words.get() == 0
    }

    /// Says that nothing follows, and stays until that has been heard, but no longer than a few losses of it would take:
    /// the other end, which waits for it, is gone when it has heard it, maybe without a word.
    pub(super) fn part(mut self) {
        let scan = self.endpoint.stats().map_or(Duration::ZERO, |stats| stats.scan_period);
        let until = Instant::now() + LOOK_EVERY.max(LOSSES_OF_A_BYE * scan);
        if self.say(&Word::Bye).is_ok() {
            while !self.has_said_all() && Instant::now() < until && self.next().is_ok() {}
        }
    }

    pub(super) fn done(&self) -> u64 {
        self.done
    }

    /// What this end has sent since the watch was started.
    pub(super) fn work(&self, watch: &Watch) -> Work {
        Work {
            checked_messages: if self.ask.check { self.arrived } else { 0 },
            wrong_messages: self.wrong,
            first_wrong: self.first_wrong.clone(),
            ..watch.work(self.done, self.ask.size_bytes, &self.meter)
        }
    }
}

fn own(why: RdmPostError) -> Broken {
    Broken::Own(why.to_string())
}
