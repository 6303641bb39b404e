//! Operations that both ends of a connection share: keep receives posted, keep requests in flight, check bytes.

use std::collections::VecDeque;

use pathweave_datapath::{CloseReason, Completion, Opcode, Region, Remote, Slice, Status};

use super::bundle::Bundle;
use super::control::{ControlMessage, LARGEST_COUNT};
use crate::broken::MeasureError;
use crate::pattern::{region, region_with_turns};
use crate::tally::Counters;
use crate::test::{Kind, Op, Role, Test};

/// Flags in request ids, for receives and for control messages. All other ids are data.
const RECEIVE: u64 = 1 << 63;
const CONTROL: u64 = 1 << 62;

/// One end's part in a test: its own requests, and the messages that arrive.
pub(crate) struct Flow {
    pub(crate) tally: Counters,
    /// Source buffers of own messages, and destination of READs.
    local_buffers: Region,
    /// Memory that the peer sends to, writes to or reads from.
    exposed_buffers: Region,
    /// Remote address of the peer's `open`.
    remote: Remote,
    empty: Region,
    /// Slots of the posted receives, in order.
    receives: VecDeque<u64>,
    /// Slots of completed receives that must be posted again.
    completed_receives: Vec<u64>,
}

impl Flow {
    /// Creates a flow. `open` is registered for the peer, whose memory is `remote`. `turn` runs the event loop while
    /// memory is filled.
    ///
    /// # Errors
    /// If memory cannot be allocated.
    pub(crate) fn new(
        test: Test,
        role: Role,
        (open, remote): (Region, Remote),
        mut turn: impl FnMut(),
    ) -> Result<Flow, MeasureError> {
        let tally = Counters::new(test, role);
        let bytes = if tally.sends() { test.memory_bytes() } else { 0 };
        let mut flow = Flow {
            tally,
            local_buffers: region_with_turns(bytes, &mut turn)?,
            exposed_buffers: open,
            remote,
            empty: region(0)?,
            receives: VecDeque::new(),
            completed_receives: Vec::new(),
        };
        if flow.tally.checks() && test.op == Op::Read {
            for slot in 0..test.slots() {
                let (start, len) = flow.slot_range(slot);
                flow.tally.pattern.fill(&flow.exposed_buffers, start, len, slot, &mut turn)?;
            }
        }
        Ok(flow)
    }

    /// Sets the address of the peer's memory.
    pub(crate) fn set_remote(&mut self, remote: Remote) {
        self.remote = remote;
    }

    /// Posts all receives.
    ///
    /// # Errors
    /// [`MeasureError`].
    pub(crate) fn prepare(&mut self, connection: &Bundle) -> Result<(), MeasureError> {
        (0..self.tally.test.receives()).try_for_each(|number| self.post_receive(connection, number))
    }

    /// Posts the completed receives again. Latency tests do so after they have sent the message for which the peer
    /// waits.
    ///
    /// # Errors
    /// [`MeasureError`].
    pub(crate) fn refill(&mut self, connection: &Bundle) -> Result<(), MeasureError> {
        while let Some(slot) = self.completed_receives.pop() {
            self.post_receive(connection, slot)?;
        }
        Ok(())
    }

    fn post_receive(&mut self, connection: &Bundle, number: u64) -> Result<(), MeasureError> {
        let slot = number % self.tally.test.slots();
        let into = if self.tally.test.op == Op::Send {
            self.slot(&self.exposed_buffers, slot)?
        } else {
            self.empty.all()
        };
        connection.recv(RECEIVE | slot, into)?;
        self.receives.push_back(slot);
        Ok(())
    }

    /// Posts messages until the window is full.
    ///
    /// # Errors
    /// [`MeasureError`].
    pub(crate) fn post(&mut self, connection: &Bundle) -> Result<(), MeasureError> {
        while self.may_post() {
            self.post_one(connection)?;
        }
        Ok(())
    }

    fn may_post(&self) -> bool {
        let Counters { test, posted, credited, done, .. } = &self.tally;
        // A buffer of the peer is free again when the peer has checked its content.
        let announced_write = self.tally.checks() && test.op == Op::Write;
        let free = !announced_write || posted - credited < test.slots();
        free && self.tally.may_post(*done, test.window())
    }

    /// Posts the next message.
    ///
    /// # Errors
    /// [`MeasureError`].
    pub(crate) fn post_one(&mut self, connection: &Bundle) -> Result<(), MeasureError> {
        let (number, slot) = (self.tally.posted, self.tally.posted % self.tally.test.slots());
        if self.tally.checks() {
            let (start, len) = self.slot_range(slot);
            let turn = || connection.turn();
            match self.tally.test.op {
                Op::Send | Op::Write => {
                    self.tally.pattern.fill(&self.local_buffers, start, len, number, turn)?;
                }
                Op::Read => self.tally.pattern.fill_inverted(&self.local_buffers, start, len, slot, turn)?,
            }
        }
        let own = self.slot(&self.local_buffers, slot)?;
        let address = self.remote.address + slot * self.tally.test.size_bytes;
        let remote = Remote { address, ..self.remote };
        match self.tally.test.op {
            Op::Send => connection.send(number, own)?,
            Op::Write if self.tally.test.is_announced() => {
                connection.write_imm(number, own, remote, ControlMessage::Data.encode())?;
            }
            Op::Write => connection.write(number, own, remote)?,
            Op::Read => connection.read(number, own, remote)?,
        }
        self.tally.post();
        Ok(())
    }

    /// Handles a completion. Returns a received control message or data, with the length of its text. In latency
    /// tests the caller must call [`refill`](Flow::refill).
    ///
    /// # Errors
    /// [`MeasureError`].
    pub(crate) fn complete(
        &mut self,
        connection: &Bundle,
        completion: Completion,
    ) -> Result<Option<(ControlMessage, u64)>, MeasureError> {
        if !completion.is_success() {
            let (opcode, status) = (completion.opcode, completion.status);
            let reason = connection.close_reason();
            let closed = status == Status::Flushed && reason == Some(CloseReason::Peer);
            return Err(if closed {
                MeasureError::Closed
            } else {
                MeasureError::Request { opcode, status, reason }
            });
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

    fn completed(&mut self, connection: &Bundle, number: u64) -> Result<(), MeasureError> {
        if self.tally.test.op == Op::Read && self.tally.checks() {
            let slot = number % self.tally.test.slots();
            self.check(connection, (number, slot), self.local_buffers.clone(), slot)?;
        }
        self.tally.complete();
        Ok(())
    }

    fn received(
        &mut self,
        connection: &Bundle,
        completion: Completion,
    ) -> Result<Option<(ControlMessage, u64)>, MeasureError> {
        let slot = self.receives.pop_front();
        let slot = slot.filter(|slot| completion.wr_id == RECEIVE | slot);
        let slot =
            slot.ok_or_else(|| MeasureError::Local("receives complete in another order than posted".into()))?;
        let word = match completion.imm {
            None => None,
            Some(imm) => {
                let word = ControlMessage::decode(imm);
                Some(word.ok_or_else(|| MeasureError::Protocol(format!("an immediate of {imm:#x}")))?)
            }
        };
        match word {
            None | Some(ControlMessage::Data) => {
                let (number, announced) = (self.tally.arrived, word.is_some());
                let at = if announced { number % self.tally.test.slots() } else { slot };
                if completion.byte_len != self.tally.test.size_bytes {
                    let (is, should) = (completion.byte_len, self.tally.test.size_bytes);
                    return Err(MeasureError::Protocol(format!(
                        "a message of {is} bytes instead of {should}"
                    )));
                }
                self.tally.arrived += 1;
                if self.tally.checks() {
                    self.check(connection, (number, number), self.exposed_buffers.clone(), at)?;
                }
                self.completed_receives.push(slot);
                if announced && self.tally.test.kind == Kind::Bandwidth {
                    self.credit(connection)?;
                }
                Ok(word.map(|word| (word, 0)).or(Some((ControlMessage::Data, 0))))
            }
            Some(word) => {
                self.completed_receives.push(slot);
                if let ControlMessage::Checked(count) = word {
                    self.tally.credited += u64::from(count);
                }
                Ok(Some((word, completion.byte_len)))
            }
        }
    }

    /// Reports checked messages to the peer, in batches.
    fn credit(&mut self, connection: &Bundle) -> Result<(), MeasureError> {
        let enough = (self.tally.test.slots() / 4).clamp(1, LARGEST_COUNT.into());
        if let Some(owed) = self.tally.count_checked(enough) {
            self.send_control(connection, ControlMessage::Checked(owed as u32))?;
        }
        Ok(())
    }

    /// Checks message `number` in a slot of `region`. It should have the pattern of message `contents`.
    fn check(
        &mut self,
        connection: &Bundle,
        (number, contents): (u64, u64),
        region: Region,
        slot: u64,
    ) -> Result<(), MeasureError> {
        let (start, len) = self.slot_range(slot);
        let Some(offset) =
            self.tally.pattern.first_wrong(&region, start, len, contents, || connection.turn())?
        else {
            return Ok(());
        };
        self.tally
            .note_wrong(|role| format!("message {number}, byte {offset} of {len}, as seen by the {role:?}"));
        Ok(())
    }

    /// Sends a control message without a text.
    ///
    /// # Errors
    /// [`MeasureError`].
    pub(crate) fn send_control(&self, connection: &Bundle, word: ControlMessage) -> Result<(), MeasureError> {
        Ok(connection.send_imm(CONTROL, self.empty.all(), word.encode())?)
    }

    /// Returns the first byte and the length of a slot.
    fn slot_range(&self, slot: u64) -> (usize, usize) {
        ((slot * self.tally.test.size_bytes) as usize, self.tally.test.size_bytes as usize)
    }

    fn slot(&self, region: &Region, slot: u64) -> Result<Slice, MeasureError> {
        let (start, len) = self.slot_range(slot);
        Ok(region.slice(start..start + len)?)
    }
}

/// Sends a control message with a text, which is written to the peer's memory.
///
/// # Errors
/// [`MeasureError`].
pub(crate) fn send_control_with_text(
    connection: &Bundle,
    word: ControlMessage,
    text: &[u8],
    to: Remote,
) -> Result<(), MeasureError> {
    Ok(connection.write_imm(CONTROL, Region::from_bytes(text)?.all(), to, word.encode())?)
}
