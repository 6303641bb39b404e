//! What both ends do alike: keep receives posted, keep requests under way, check bytes.

use std::collections::VecDeque;

use pathweave_datapath::{CloseReason, Completion, Opcode, Region, Remote, Slice, Status};

use super::bundle::Bundle;
use super::words::{LARGEST_COUNT, Word};
use crate::broken::Broken;
use crate::pattern::region;
use crate::tally::Tally;
use crate::test::{Kind, Op, Role, Test};

/// Request ids: receives, control messages, everything else.
const RECEIVE: u64 = 1 << 63;
const CONTROL: u64 = 1 << 62;

/// One end's part in a test: requests of its own and what arrives from the other.
pub(crate) struct Flow {
    pub(crate) tally: Tally,
    /// Where own messages come from, and what is read goes to.
    own: Region,
    /// What the other end sends to, writes to or reads from.
    open: Region,
    /// The other end's `open`.
    remote: Remote,
    nothing: Region,
    /// Buffer of each posted receive, in order.
    receives: VecDeque<u64>,
    /// Buffers of receives that are to be posted again.
    spent: Vec<u64>,
}

impl Flow {
    /// `open` has been registered for the other end, whose memory is `remote`. `turn` turns the loop while memory is prepared.
    ///
    /// # Errors
    /// There is no memory.
    pub(crate) fn new(
        test: Test,
        role: Role,
        (open, remote): (Region, Remote),
        mut turn: impl FnMut(),
    ) -> Result<Flow, Broken> {
        let tally = Tally::new(test, role);
        let bytes = if tally.sends() { test.memory_bytes() } else { 0 };
        let mut flow = Flow {
            tally,
            own: region(bytes)?,
            open,
            remote,
            nothing: region(0)?,
            receives: VecDeque::new(),
            spent: Vec::new(),
        };
        if flow.tally.checks() && test.op == Op::Read {
            for slot in 0..test.slots() {
                let (start, len) = flow.place(slot);
                flow.tally.pattern.fill(&flow.open, start, len, slot, &mut turn)?;
            }
        }
        Ok(flow)
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
        (0..self.tally.test.receives()).try_for_each(|number| self.post_receive(connection, number))
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
        let slot = number % self.tally.test.slots();
        let into =
            if self.tally.test.op == Op::Send { self.slot(&self.open, slot)? } else { self.nothing.all() };
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
        let Tally { test, posted, credited, done, .. } = &self.tally;
        // A buffer of the other end is free again once it has looked at what was written to it.
        let announced_write = self.tally.checks() && test.op == Op::Write;
        let free = !announced_write || posted - credited < test.slots();
        free && self.tally.may_post(*done, test.window())
    }

    /// Posts the next message.
    ///
    /// # Errors
    /// [`Broken`].
    pub(crate) fn post_one(&mut self, connection: &Bundle) -> Result<(), Broken> {
        let (number, slot) = (self.tally.posted, self.tally.posted % self.tally.test.slots());
        if self.tally.checks() {
            let (start, len) = self.place(slot);
            let turn = || connection.turn();
            match self.tally.test.op {
                Op::Send | Op::Write => self.tally.pattern.fill(&self.own, start, len, number, turn)?,
                Op::Read => self.tally.pattern.spoil(&self.own, start, len, slot, turn)?,
            }
        }
        let own = self.slot(&self.own, slot)?;
        let address = self.remote.address + slot * self.tally.test.size_bytes;
        let remote = Remote { address, ..self.remote };
        match self.tally.test.op {
            Op::Send => connection.send(number, own)?,
            Op::Write if self.tally.test.is_announced() => {
                connection.write_imm(number, own, remote, Word::Data.encode())?;
            }
            Op::Write => connection.write(number, own, remote)?,
            Op::Read => connection.read(number, own, remote)?,
        }
        self.tally.post();
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
                if self.tally.test.kind != Kind::Latency {
                    self.refill(connection)?;
                }
                Ok(word)
            }
            Opcode::Send | Opcode::Write | Opcode::Read => {
                if completion.wr_id & CONTROL == 0 {
                    self.completed(connection, completion.wr_id)?;
                }
                Ok(None)
            }
        }
    }

    fn completed(&mut self, connection: &Bundle, number: u64) -> Result<(), Broken> {
        if self.tally.test.op == Op::Read && self.tally.checks() {
            let slot = number % self.tally.test.slots();
            self.check(connection, (number, slot), self.own.clone(), slot)?;
        }
        self.tally.complete();
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
                let (number, announced) = (self.tally.arrived, word.is_some());
                let at = if announced { number % self.tally.test.slots() } else { slot };
                if completion.byte_len != self.tally.test.size_bytes {
                    let (is, should) = (completion.byte_len, self.tally.test.size_bytes);
                    return Err(Broken::Nonsense(format!("a message of {is} bytes instead of {should}")));
                }
                self.tally.arrived += 1;
                if self.tally.checks() {
                    self.check(connection, (number, number), self.open.clone(), at)?;
                }
                self.spent.push(slot);
                if announced && self.tally.test.kind == Kind::Bandwidth {
                    self.credit(connection)?;
                }
                Ok(word.map(|word| (word, 0)).or(Some((Word::Data, 0))))
            }
            Some(word) => {
                self.spent.push(slot);
                if let Word::Checked(count) = word {
                    self.tally.credited += u64::from(count);
                }
                Ok(Some((word, completion.byte_len)))
            }
        }
    }

    /// Tells the other end of checked messages, several at a time.
    fn credit(&mut self, connection: &Bundle) -> Result<(), Broken> {
        let enough = (self.tally.test.slots() / 4).clamp(1, LARGEST_COUNT.into());
        if let Some(owed) = self.tally.owes(enough) {
            self.say(connection, Word::Checked(owed as u32))?;
        }
        Ok(())
    }

    /// Compares message `number`, which is in a buffer of `region` and should have `contents`.
    fn check(
        &mut self,
        connection: &Bundle,
        (number, contents): (u64, u64),
        region: Region,
        slot: u64,
    ) -> Result<(), Broken> {
        let (start, len) = self.place(slot);
        let Some(offset) =
            self.tally.pattern.first_wrong(&region, start, len, contents, || connection.turn())?
        else {
            return Ok(());
        };
        self.tally
            .note_wrong(|role| format!("message {number}, byte {offset} of {len}, as seen by the {role:?}"));
        Ok(())
    }

    /// Says something without a text.
    ///
    /// # Errors
    /// [`Broken`].
    pub(crate) fn say(&self, connection: &Bundle, word: Word) -> Result<(), Broken> {
        Ok(connection.send_imm(CONTROL, self.nothing.all(), word.encode())?)
    }

    /// First byte and length of a buffer.
    fn place(&self, slot: u64) -> (usize, usize) {
        ((slot * self.tally.test.size_bytes) as usize, self.tally.test.size_bytes as usize)
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
