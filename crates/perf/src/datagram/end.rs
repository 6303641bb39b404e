//! One end of a datagram measurement.

use std::time::{Duration, Instant};

use pathweave_datapath::rdm::{Peer, RdmCompletion, RdmEndpoint, RdmStats};
use pathweave_datapath::{Opcode, Region, Slice, WaitError};

use super::side::Side;
use super::words::{WORDS_BYTES, Word, decode, encode, token_of};
use crate::broken::MeasureError;
use crate::end::{Came, Control, End};
use crate::meet::CHECK_INTERVAL;
use crate::pattern::region_with_turns;
use crate::tally::Counters;
use crate::test::{Check, Role, Test};

/// Approximate memory of a measurement's buffers in bytes, unless one message is larger.
const BUFFER_BYTES: u64 = 256 << 20;
/// Receives posted for each message in flight, as the peer may be that far behind.
const RECEIVES_A_MESSAGE: u64 = 4;
/// Number of losses of the last message for which an end waits. The peer requests a lost message at the next scan but
/// one.
const LOSSES_OF_A_BYE: u32 = 20;
/// Request id of control messages. Smaller ids are data.
const OF_WORDS: u64 = 1 << 62;

/// One end's part in a measurement.
pub(crate) struct DatagramEnd {
    endpoint: RdmEndpoint,
    peer: Peer,
    token: u64,
    tally: Counters,
    /// Source buffers and destination buffers, one slot per message.
    own: Region,
    open: Region,
    slot_bytes: u64,
    /// Number of control messages in flight.
    words: u64,
}

/// Memory layout of messages. Each slot has room for a message or a control message.
pub(crate) struct Layout(pub(crate) Test);

impl Layout {
    /// Returns the number of receives to post. If bytes are checked, each needs its own slot, which may reduce the
    /// number.
    fn receives(&self) -> u64 {
        RECEIVES_A_MESSAGE * u64::from(self.0.depth)
    }

    /// Returns the number of slots in each end's memory.
    fn slots(&self) -> u64 {
        let fit = (BUFFER_BYTES / self.slot_bytes()).max(2);
        self.receives().min(fit)
    }

    /// Returns the size of a slot. A control message must fit.
    fn slot_bytes(&self) -> u64 {
        self.0.size_bytes.max(WORDS_BYTES)
    }

    /// Returns the memory that an end needs for one direction.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.slots() * self.slot_bytes()
    }

    /// Returns the number of messages in flight. If bytes are checked, half of the slots stay free, also for control
    /// messages.
    fn window(&self) -> u64 {
        let depth = u64::from(self.0.depth);
        if self.0.check == Check::EveryByte { depth.min((self.slots() / 2).max(1)) } else { depth }
    }
}

impl DatagramEnd {
    /// # Errors
    /// If memory cannot be allocated, or a receive cannot be posted.
    pub(crate) fn new(
        endpoint: RdmEndpoint,
        peer: Peer,
        token: u64,
        test: Test,
        role: Role,
    ) -> Result<Self, MeasureError> {
        let layout = Layout(test);
        let memory = || region_with_turns(layout.memory_bytes(), || endpoint.progress());
        let (own, open) = (memory()?, memory()?);
        let end = DatagramEnd {
            endpoint,
            peer,
            token,
            tally: Counters::new(test, role),
            own,
            open,
            slot_bytes: layout.slot_bytes(),
            words: 0,
        };
        // If bytes are checked, each slot has one receive.
        let receives = if end.tally.checks() { layout.slots() } else { layout.receives() };
        (0..receives).try_for_each(|number| end.receive(number % layout.slots()))?;
        Ok(end)
    }

    fn receive(&self, slot: u64) -> Result<(), MeasureError> {
        let room = self.slice(&self.open, slot, self.slot_bytes)?;
        Ok(self.endpoint.recv(slot, room)?)
    }

    fn slice(&self, region: &Region, slot: u64, len: u64) -> Result<Slice, MeasureError> {
        let start = (slot * self.slot_bytes) as usize;
        Ok(region.slice(start..start + len as usize)?)
    }

    /// Sends a control message.
    ///
    /// # Errors
    /// [`MeasureError`].
    pub(crate) fn tell(&mut self, word: &Word) -> Result<(), MeasureError> {
        let words = Region::from_bytes(&encode(self.token, word))?;
        self.words += 1;
        Ok(self.endpoint.send(OF_WORDS, self.peer, words.all())?)
    }

    fn complete(&mut self, done: RdmCompletion) -> Result<Came<Side>, MeasureError> {
        if !done.is_success() {
            return Err(MeasureError::Request { opcode: done.opcode, status: done.status, reason: None });
        }
        if done.opcode == Opcode::Send {
            if done.wr_id == OF_WORDS {
                self.words -= 1;
                return Ok(Came::Done);
            }
            self.tally.complete();
            return Ok(Came::Done);
        }
        if done.peer != Some(self.peer) {
            self.receive(done.wr_id)?;
            return Ok(Came::Done);
        }
        let word = if done.byte_len <= WORDS_BYTES { self.word(done.wr_id, done.byte_len)? } else { None };
        let came = match word {
            Some(Word::Checked { count }) => {
                self.tally.credited += count;
                Came::Done
            }
            Some(Word::Finish) => Came::Said(Control::Finish),
            Some(Word::Report(side)) => Came::Said(Control::Report(side)),
            Some(Word::Bye) => Came::Said(Control::Bye),
            Some(word) => return Err(MeasureError::Protocol(format!("unexpected message {word:?}"))),
            None => {
                self.data(done.wr_id, done.byte_len)?;
                Came::Data
            }
        };
        self.receive(done.wr_id)?;
        Ok(came)
    }

    fn word(&self, slot: u64, len: u64) -> Result<Option<Word>, MeasureError> {
        let start = (slot * self.slot_bytes) as usize;
        let bytes = self.open.to_vec(start..start + (len as usize).min(16))?;
        // Most messages are data. Their first bytes rule out a control message.
        if len < 16 || token_of(&bytes) != Some(self.token) {
            return Ok(None);
        }
        let bytes = self.open.to_vec(start..start + len as usize)?;
        Ok(decode(Some(self.token), &bytes).map(|(_, word)| word))
    }

    fn data(&mut self, slot: u64, len: u64) -> Result<(), MeasureError> {
        let number = self.tally.arrived;
        self.tally.arrived += 1;
        if !self.tally.checks() {
            return Ok(());
        }
        let start = (slot * self.slot_bytes) as usize;
        let size = self.tally.test.size_bytes as usize;
        // Delivery is in order if bytes are checked, so the arrival order identifies the message.
        let wrong = match self
            .tally
            .pattern
            .first_wrong(&self.open, start, size, number, || self.endpoint.progress())?
        {
            Some(offset) => Some(format!("message {number}, byte {offset} of {size}")),
            None if len != self.tally.test.size_bytes => {
                Some(format!("message {number} has {len} bytes of {size}"))
            }
            None => None,
        };
        if let Some(wrong) = wrong {
            self.tally.note_wrong(|_| wrong);
        }
        self.tally.pattern.fill_inverted(&self.open, start, size, number, || self.endpoint.progress())?;
        if let Some(count) = self.tally.count_checked(Layout(self.tally.test).window().div_ceil(4)) {
            self.tell(&Word::Checked { count })?;
        }
        Ok(())
    }

    /// Returns true if all control messages of this end have been delivered.
    pub(crate) fn all_delivered(&self) -> bool {
        self.words == 0
    }
}

impl End for DatagramEnd {
    type Side = Side;

    fn tally(&self) -> &Counters {
        &self.tally
    }
    fn tally_mut(&mut self) -> &mut Counters {
        &mut self.tally
    }
    fn post(&mut self) -> Result<(), MeasureError> {
        loop {
            let Counters { done, credited, .. } = self.tally;
            let behind = if self.tally.checks() { credited.min(done) } else { done };
            if !self.tally.may_post(behind, Layout(self.tally.test).window()) {
                return Ok(());
            }
            self.post_one()?;
        }
    }
    fn post_one(&mut self) -> Result<(), MeasureError> {
        let slot = self.tally.posted % Layout(self.tally.test).slots();
        if self.tally.checks() {
            let start = (slot * self.slot_bytes) as usize;
            self.tally.pattern.fill(
                &self.own,
                start,
                self.tally.test.size_bytes as usize,
                self.tally.posted,
                || self.endpoint.progress(),
            )?;
        }
        let message = self.slice(&self.own, slot, self.tally.test.size_bytes)?;
        self.endpoint.send(self.tally.posted, self.peer, message)?;
        self.tally.post();
        Ok(())
    }
    fn next(&mut self) -> Result<Option<Came<Side>>, MeasureError> {
        match self.endpoint.wait(CHECK_INTERVAL) {
            Ok(completion) => self.complete(completion).map(Some),
            Err(WaitError::Timeout(_)) => Ok(None),
            Err(why) => Err(MeasureError::Local(why.to_string())),
        }
    }
    fn send_control(&mut self, said: Control<Side>) -> Result<(), MeasureError> {
        match said {
            // The endpoint serves this measurement only, so the measurement begins as soon as the client appears.
            Control::Start => Ok(()),
            Control::Finish => self.tell(&Word::Finish),
            Control::Report(side) => self.tell(&Word::Report(side)),
            // The peer waits for this message and leaves when it arrives, perhaps without an acknowledgement. So this
            // end waits for its delivery, but no longer than a few losses of it would take.
            Control::Bye => {
                let scan = self.endpoint.stats().map_or(Duration::ZERO, |stats| stats.scan_period);
                let until = Instant::now() + CHECK_INTERVAL.max(LOSSES_OF_A_BYE * scan);
                if self.tell(&Word::Bye).is_ok() {
                    while !self.all_delivered() && Instant::now() < until && self.next().is_ok() {}
                }
                Ok(())
            }
        }
    }
    fn stats(&self) -> Option<RdmStats> {
        self.endpoint.stats()
    }
    /// The bytes sent are those of completed messages.
    fn moved_bytes(&self) -> (u64, u64) {
        let received = self.endpoint.stats().map_or(0, |stats| stats.counters.payload_bytes_received);
        (received, self.tally.done * self.tally.test.size_bytes)
    }
}
