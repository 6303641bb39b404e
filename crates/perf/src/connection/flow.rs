//! What both ends do alike: keep receives posted, keep requests under way, check bytes.

use std::collections::VecDeque;

use pathweave_datapath::{CloseReason, Completion, Opcode, Region, Remote, Slice, Status};

use super::bundle::Bundle;
use super::words::{LARGEST_COUNT, Word};
use crate::broken::Broken;
use crate::meter::Meter;
use crate::pattern::{Pattern, region};
use crate::test::{Check, Directions, Kind, Op, Role, Test};
use crate::work::{Watch, Work};

/// Request ids: receives, control messages, everything else.
const RECEIVE: u64 = 1 << 63;
const CONTROL: u64 = 1 << 62;

/// One end's part in a test: requests of its own and what arrives from the other.
pub(crate) struct Flow {
    test: Test,
    role: Role,
    /// Where own messages come from, and what is read goes to.
    own: Region,
    /// What the other end sends to, writes to or reads from.
    open: Region,
    /// The other end's `open`.
    remote: Remote,
    nothing: Region,
    pattern: Pattern,
    posting: Posting,
    posted: u64,
    done: u64,
    /// Messages the other end has checked.
    credited: u64,
    arrived: u64,
    /// Checked messages of the other end that it has not been told of.
    owed: u32,
    wrong: u64,
    first_wrong: Option<String>,
    meter: Meter,
    /// Buffer of each posted receive, in order.
    receives: VecDeque<u64>,
    /// Buffers of receives that are to be posted again.
    spent: Vec<u64>,
}

/// Whether there is more to post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Posting {
    On,
    Over,
}

impl Flow {
    /// `open` has been registered for the other end, whose memory is `remote`.
    ///
    /// # Errors
    /// There is no memory.
    pub(crate) fn new(test: Test, role: Role, open: Region, remote: Remote) -> Result<Flow, Broken> {
        let sends = role == Role::Client || test.directions == Directions::Both || test.kind == Kind::Latency;
        let bytes = if sends { test.memory_bytes() } else { 0 };
        let mut flow = Flow {
            test,
            role,
            own: region(bytes)?,
            open,
            remote,
            nothing: region(0)?,
            pattern: Pattern::new(),
            posting: if sends && test.kind == Kind::Bandwidth { Posting::On } else { Posting::Over },
            posted: 0,
            done: 0,
            credited: 0,
            arrived: 0,
            owed: 0,
            wrong: 0,
            first_wrong: None,
            meter: Meter::default(),
            receives: VecDeque::new(),
            spent: Vec::new(),
        };
        if test.check == Check::EveryByte && test.op == Op::Read {
            for slot in 0..test.slots() {
                let (start, len) = flow.place(slot);
                flow.pattern.fill(&flow.open, start, len, slot)?;
            }
        }
        Ok(flow)
    }

    pub(crate) fn test(&self) -> &Test {
        &self.test
    }

    /// The other end's memory is there.
    pub(crate) fn aim(&mut self, remote: Remote) {
        self.remote = remote;
    }

    /// Posts all receives.
    ///
    /// # Errors
    /// [`Broken`].
    pub(crate) fn prepare(&mut self, connection: &Bundle) -> Result<(), Broken> {
        (0..self.test.receives()).try_for_each(|number| self.post_receive(connection, number))
    }

    /// Posts receives again that are done. Where times are measured, after what the other end waits for.
    ///
    /// # Errors
    /// [`Broken`].
    pub(crate) fn refill(&mut self, connection: &Bundle) -> Result<(), Broken> {
        while let Some(slot) = self.spent.pop() {
            self.post_receive(connection, slot)?;
        }
        Ok(())
    }

    fn post_receive(&mut self, connection: &Bundle, number: u64) -> Result<(), Broken> {
        let slot = number % self.test.slots();
        let into = if self.test.op == Op::Send { self.slot(&self.open, slot)? } else { self.nothing.all() };
        connection.recv(RECEIVE | slot, into)?;
        self.receives.push_back(slot);
        Ok(())
    }

    /// Posts as much as may be under way.
    ///
    /// # Errors
    /// [`Broken`].
    pub(crate) fn post(&mut self, connection: &Bundle) -> Result<(), Broken> {
        while self.may_post() {
            self.post_one(connection)?;
        }
        Ok(())
    }

    fn may_post(&self) -> bool {
        let left = self.test.iterations.is_none_or(|all| self.posted < all);
        // A buffer of the other end is free again once it has looked at what was written to it.
        let announced_write = self.test.check == Check::EveryByte && self.test.op == Op::Write;
        let free = !announced_write || self.posted - self.credited < self.test.slots();
        self.posting == Posting::On && left && free && self.posted - self.done < self.test.window()
    }

    /// Posts the next message.
    ///
    /// # Errors
    /// [`Broken`].
    pub(crate) fn post_one(&mut self, connection: &Bundle) -> Result<(), Broken> {
        let (number, slot) = (self.posted, self.posted % self.test.slots());
        if self.test.check == Check::EveryByte {
            let (start, len) = self.place(slot);
            match self.test.op {
                Op::Send | Op::Write => self.pattern.fill(&self.own, start, len, number)?,
                Op::Read => self.pattern.spoil(&self.own, start, len, slot)?,
            }
        }
        let own = self.slot(&self.own, slot)?;
        let address = self.remote.address + slot * self.test.size_bytes;
        let remote = Remote { address, ..self.remote };
        match self.test.op {
            Op::Send => connection.send(number, own)?,
            Op::Write if self.test.is_announced() => {
                connection.write_imm(number, own, remote, Word::Data.encode())?;
            }
            Op::Write => connection.write(number, own, remote)?,
            Op::Read => connection.read(number, own, remote)?,
        }
        if number == 0 {
            self.meter.begin();
        }
        self.posted += 1;
        Ok(())
    }

    /// Takes in a completion. What the other end says with it is returned, with the length of its text. Where times are
    /// measured, [`refill`](Flow::refill) is left to the caller.
    ///
    /// # Errors
    /// [`Broken`].
    pub(crate) fn complete(
        &mut self,
        connection: &Bundle,
        completion: Completion,
    ) -> Result<Option<(Word, u64)>, Broken> {
        if !completion.is_success() {
            let (opcode, status) = (completion.opcode, completion.status);
            let reason = connection.close_reason();
            let closed = status == Status::Flushed && reason == Some(CloseReason::Peer);
            return Err(if closed { Broken::Closed } else { Broken::Request { opcode, status, reason } });
        }
        match completion.opcode {
            Opcode::Recv | Opcode::RecvWriteImm => {
                let word = self.received(connection, completion)?;
                if self.test.kind != Kind::Latency {
                    self.refill(connection)?;
                }
                Ok(word)
            }
            Opcode::Send | Opcode::Write | Opcode::Read => {
                if completion.wr_id & CONTROL == 0 {
                    self.completed(completion.wr_id)?;
                }
                Ok(None)
            }
        }
    }

    fn completed(&mut self, number: u64) -> Result<(), Broken> {
        if self.test.op == Op::Read && self.test.check == Check::EveryByte {
            let slot = number % self.test.slots();
            self.check(number, slot, self.own.clone(), slot)?;
        }
        self.done += 1;
        self.meter.note(self.test.size_bytes);
        Ok(())
    }

    fn received(
        &mut self,
        connection: &Bundle,
        completion: Completion,
    ) -> Result<Option<(Word, u64)>, Broken> {
        let slot = self.receives.pop_front();
        let slot = slot.filter(|slot| completion.wr_id == RECEIVE | slot);
        let slot =
            slot.ok_or_else(|| Broken::Own("receives complete in another order than posted".into()))?;
        let word = match completion.imm {
            None => None,
            Some(imm) => {
                let word = Word::decode(imm);
                Some(word.ok_or_else(|| Broken::Nonsense(format!("an immediate of {imm:#x}")))?)
            }
        };
        match word {
            None | Some(Word::Data) => {
                let (number, announced) = (self.arrived, word.is_some());
                let at = if announced { number % self.test.slots() } else { slot };
                if completion.byte_len != self.test.size_bytes {
                    let (is, should) = (completion.byte_len, self.test.size_bytes);
                    return Err(Broken::Nonsense(format!("a message of {is} bytes instead of {should}")));
                }
                self.arrived += 1;
                if self.test.check == Check::EveryByte {
                    self.check(number, number, self.open.clone(), at)?;
                }
                self.spent.push(slot);
                if announced && self.test.kind == Kind::Bandwidth {
                    self.credit(connection)?;
                }
                Ok(word.map(|word| (word, 0)).or(Some((Word::Data, 0))))
            }
            Some(word) => {
                self.spent.push(slot);
                if let Word::Checked(count) = word {
                    self.credited += u64::from(count);
                }
                Ok(Some((word, completion.byte_len)))
            }
        }
    }

    /// Tells the other end of checked messages, several at a time.
    fn credit(&mut self, connection: &Bundle) -> Result<(), Broken> {
        self.owed += 1;
        let enough = (self.test.slots() / 4).clamp(1, u64::from(LARGEST_COUNT));
        if u64::from(self.owed) >= enough {
            let owed = std::mem::take(&mut self.owed);
            self.say(connection, Word::Checked(owed))?;
        }
        Ok(())
    }

    /// Compares message `number`, which is in a buffer of `region` and should have `contents`.
    fn check(&mut self, number: u64, contents: u64, region: Region, slot: u64) -> Result<(), Broken> {
        let (start, len) = self.place(slot);
        let Some(offset) = self.pattern.first_wrong(&region, start, len, contents)? else { return Ok(()) };
        self.wrong += 1;
        let what = || format!("message {number}, byte {offset} of {len}, as seen by the {:?}", self.role);
        self.first_wrong.get_or_insert_with(what);
        Ok(())
    }

    /// Says something without a text.
    ///
    /// # Errors
    /// [`Broken`].
    pub(crate) fn say(&self, connection: &Bundle, word: Word) -> Result<(), Broken> {
        Ok(connection.send_imm(CONTROL, self.nothing.all(), word.encode())?)
    }

    /// No more is to be posted.
    pub(crate) fn stop(&mut self) {
        self.posting = Posting::Over;
    }

    /// All this end wanted is posted and completed.
    pub(crate) fn is_done(&self) -> bool {
        let all = self.test.iterations.is_some_and(|all| self.posted >= all);
        (self.posting == Posting::Over || all) && self.done == self.posted
    }

    pub(crate) fn done(&self) -> u64 {
        self.done
    }

    /// What this end has done since the watch was started: what it has sent, or read.
    pub(crate) fn work(&self, watch: &Watch) -> Work {
        let arrived = if self.test.op == Op::Read { self.done } else { self.arrived };
        Work {
            checked_messages: if self.test.check == Check::EveryByte { arrived } else { 0 },
            wrong_messages: self.wrong,
            first_wrong: self.first_wrong.clone(),
            ..watch.work(self.done, self.test.size_bytes, &self.meter)
        }
    }

    /// First byte and length of a buffer.
    fn place(&self, slot: u64) -> (usize, usize) {
        ((slot * self.test.size_bytes) as usize, self.test.size_bytes as usize)
    }

    fn slot(&self, region: &Region, slot: u64) -> Result<Slice, Broken> {
        let (start, len) = self.place(slot);
        Ok(region.slice(start..start + len)?)
    }
}

/// Says something with a text: it is written to the other end's memory.
///
/// # Errors
/// [`Broken`].
pub(crate) fn tell(connection: &Bundle, word: Word, text: &[u8], to: Remote) -> Result<(), Broken> {
    Ok(connection.write_imm(CONTROL, Region::from_bytes(text)?.all(), to, word.encode())?)
}
