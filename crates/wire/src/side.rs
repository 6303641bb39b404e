//! Messages of the side channel of datagram queue pairs (ERD): reports of missing packets and complete messages.
//!
//! The channel is reliable and keeps order (a TCP connection on the datapath). Each message is self-contained;
//! docs/wire.md has the format. PSNs are 64-bit, or relative to one that is, so none needs extension.

use pathweave_units::QpNum;
use thiserror::Error;

/// Version of this format.
pub const SIDE_VERSION: u8 = 3;
/// First byte of every message.
pub const SIDE_MAGIC: u8 = 0x73;
/// Largest number of runs in a NACK.
pub const MAX_NACK_RUNS: usize = u16::MAX as usize;
/// Largest number of PSNs in a run, and largest distance from the first PSN of a NACK to that of its last run.
const MAX_RUN: u64 = 1 << 8;
const MAX_SPAN: u64 = 1 << 24;

const HEAD_LEN: usize = 12;
const START_LEN: usize = 32;
const DONE_LEN: usize = 20;
const ABORT_LEN: usize = 24;
const NACK_LEN: usize = 20;
/// Bytes of the longest message.
pub const MAX_SIDE_LEN: usize = NACK_LEN + 4 * MAX_NACK_RUNS;

/// Offsets of the fields. The head is the same in all messages.
mod at {
    pub(super) const MAGIC: usize = 0;
    pub(super) const VERSION: usize = 1;
    pub(super) const KIND: usize = 2;
    pub(super) const FLAGS: usize = 3;
    pub(super) const SRC_QP: usize = 4;
    pub(super) const DST_QP: usize = 7;
    /// Message number; in a NACK, the number of runs.
    pub(super) const MSG_ID: usize = 10;
    pub(super) const PSN: usize = 12;
    pub(super) const PACKETS: usize = 20;
    pub(super) const TOTAL: usize = 24;
    pub(super) const RUNS: usize = 20;
}

/// Flag of a Start that repeats an earlier one.
const FLAG_REPEATED: u8 = 1;

/// Pair of queue pairs that a message of the side channel concerns, in the direction of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "packed", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub struct RdFlow {
    /// Queue pair that sends the data.
    pub src_qp: QpNum,
    /// Queue pair that receives it.
    pub dst_qp: QpNum,
}

/// A run of consecutive PSNs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "packed", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub struct PsnRun {
    /// First PSN.
    pub first: u64,
    /// Number of PSNs, 1 to 256.
    pub count: u16,
}

/// A message of the side channel. `R` is the type of the runs of a NACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "packed", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub enum SideMessage<R> {
    /// Sender: announces the start of a message and its length.
    Start {
        /// Pair of queue pairs.
        flow: RdFlow,
        /// Message number.
        msg_id: u16,
        /// PSN of the first packet of the message.
        first_psn: u64,
        /// Number of packets of the message.
        packets: u32,
        /// Bytes of the message, 1 to 2^32.
        total: u64,
        /// True if the same Start was sent before, on a channel that broke.
        again: bool,
    },
    /// Sender: every packet before `end_psn` has left at least once. One that has not arrived is late or lost.
    Sent {
        /// Pair of queue pairs.
        flow: RdFlow,
        /// One more than the PSN of the last packet that has left.
        end_psn: u64,
    },
    /// Receiver: the message is complete. The sender may release it.
    Done {
        /// Pair of queue pairs.
        flow: RdFlow,
        /// Message number.
        msg_id: u16,
        /// PSN of the first packet of the message.
        first_psn: u64,
    },
    /// Sender: aborts a message. The receiver need not request its packets any more.
    Abort {
        /// Pair of queue pairs.
        flow: RdFlow,
        /// Message number.
        msg_id: u16,
        /// PSN of the first packet of the message.
        first_psn: u64,
        /// Number of packets of the message.
        packets: u32,
    },
    /// Receiver: requests retransmission of missing packets.
    Nack {
        /// Pair of queue pairs.
        flow: RdFlow,
        /// Runs of missing PSNs: 1 to 65,535 of them, ascending, without overlap, within 2^24 PSNs.
        runs: R,
    },
    /// Receiver: not ready, because it has neither a receive nor buffer space for this message. Packets that it has
    /// not accepted of this message, and of those posted after it, wait for a [`SideMessage::Ready`].
    Wait {
        /// Pair of queue pairs.
        flow: RdFlow,
        /// Message number.
        msg_id: u16,
        /// PSN of the first packet of the message.
        first_psn: u64,
    },
    /// Receiver: the sender may send the message that had to wait, and those after it.
    Ready {
        /// Pair of queue pairs.
        flow: RdFlow,
        /// Message number.
        msg_id: u16,
        /// First PSN to send or retransmit. Earlier packets have arrived or are requested by NACK.
        from_psn: u64,
    },
    /// Either end: asks to close the flow, because nothing is in progress here.
    Close {
        /// Pair of queue pairs. The source is the end that sends this message.
        flow: RdFlow,
    },
    /// Answer to a [`SideMessage::Close`]: nothing is in progress here either, and the state of the peer is released.
    Closed {
        /// Pair of queue pairs. The source is the end that sends this message.
        flow: RdFlow,
    },
}

/// A message of the side channel that borrows its runs from the bytes it was parsed from.
pub type SideFrame<'a> = SideMessage<NackRuns<'a>>;

/// Source of the runs of a NACK.
pub trait Runs {
    /// Iterates over the runs in ascending order.
    fn iter(&self) -> impl ExactSizeIterator<Item = PsnRun>;
}

impl<T: AsRef<[PsnRun]>> Runs for T {
    fn iter(&self) -> impl ExactSizeIterator<Item = PsnRun> {
        self.as_ref().iter().copied()
    }
}

/// Runs of a NACK in encoded form. They have been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NackRuns<'a> {
    base: u64,
    bytes: &'a [u8],
}

impl Runs for NackRuns<'_> {
    fn iter(&self) -> impl ExactSizeIterator<Item = PsnRun> {
        self.bytes.chunks_exact(4).map(|entry| run(self.base, entry))
    }
}

fn run(base: u64, entry: &[u8]) -> PsnRun {
    let delta = u64::from(entry[1]) << 16 | u64::from(entry[2]) << 8 | u64::from(entry[3]);
    PsnRun { first: base + delta, count: u16::from(entry[0]) + 1 }
}

/// Reason why bytes are not a message of the side channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SideError {
    /// The message is incomplete: more of the stream must be read first.
    #[error("truncated: the message needs {needed} bytes, {available} are there")]
    Truncated {
        /// Bytes of the message, as far as the available ones determine it.
        needed: usize,
        /// Bytes available.
        available: usize,
    },
    /// A field has a value that is not allowed. The stream cannot be read further.
    #[error("{field} is {value}, allowed: {allowed}")]
    Field {
        /// Name of the field.
        field: &'static str,
        /// Value of the field.
        value: u64,
        /// Allowed values.
        allowed: &'static str,
    },
}

fn field_error<T>(field: &'static str, value: u64, allowed: &'static str) -> Result<T, SideError> {
    Err(SideError::Field { field, value, allowed })
}

impl<'a> SideFrame<'a> {
    /// Parses the message at the beginning of `bytes`. Returns the message and its length.
    ///
    /// # Errors
    /// [`SideError::Truncated`] asks for more of the stream. Any other error ends the stream.
    pub fn parse(bytes: &'a [u8]) -> Result<(SideFrame<'a>, usize), SideError> {
        let need = |needed: usize| {
            bytes.get(..needed).ok_or(SideError::Truncated { needed, available: bytes.len() })
        };
        let head = need(HEAD_LEN)?;
        if head[at::MAGIC] != SIDE_MAGIC {
            return field_error("magic", head[at::MAGIC].into(), "115");
        }
        if head[at::VERSION] != SIDE_VERSION {
            return field_error("version", head[at::VERSION].into(), "3");
        }
        let kind = head[at::KIND];
        let allowed_flags = if kind == 1 { FLAG_REPEATED } else { 0 };
        if head[at::FLAGS] & !allowed_flags != 0 {
            return field_error("flags", head[at::FLAGS].into(), "0; 1 for a repeated Start");
        }
        let u24 = |at: usize| {
            QpNum(u32::from(head[at]) << 16 | u32::from(head[at + 1]) << 8 | u32::from(head[at + 2]))
        };
        let flow = RdFlow { src_qp: u24(at::SRC_QP), dst_qp: u24(at::DST_QP) };
        let msg_id = u16::from_be_bytes([head[at::MSG_ID], head[at::MSG_ID + 1]]);
        let len = match kind {
            1 => START_LEN,
            2 => DONE_LEN,
            3 => ABORT_LEN,
            4 => NACK_LEN + 4 * usize::from(msg_id),
            5 | 6 | 9 => DONE_LEN,
            7 | 8 => HEAD_LEN,
            other => return field_error("kind", other.into(), "1 to 9"),
        };
        let all = need(len)?;
        // Close, Closed and Sent concern no message.
        if kind >= 7 && msg_id != 0 {
            return field_error("message", msg_id.into(), "0");
        }
        if len == HEAD_LEN {
            return Ok((if kind == 7 { SideFrame::Close { flow } } else { SideFrame::Closed { flow } }, len));
        }
        let first_psn = number::<8>(all, at::PSN);
        if first_psn > 1 << 62 {
            return field_error("PSN", first_psn, "up to 2^62");
        }
        let packets = || match number::<4>(all, at::PACKETS) {
            0 => field_error("packets", 0, "1 or more"),
            packets => Ok(packets as u32),
        };
        let frame = match kind {
            1 => {
                let (packets, total) = (packets()?, number::<8>(all, at::TOTAL));
                if total == 0 || total > 1 << 32 {
                    return field_error("total", total, "1 to 2^32");
                }
                let again = head[at::FLAGS] & FLAG_REPEATED != 0;
                SideFrame::Start { flow, msg_id, first_psn, packets, total, again }
            }
            2 => SideFrame::Done { flow, msg_id, first_psn },
            3 => SideFrame::Abort { flow, msg_id, first_psn, packets: packets()? },
            5 => SideFrame::Wait { flow, msg_id, first_psn },
            6 => SideFrame::Ready { flow, msg_id, from_psn: first_psn },
            9 => SideFrame::Sent { flow, end_psn: first_psn },
            _ => {
                let runs = NackRuns { base: first_psn, bytes: &all[at::RUNS..] };
                if runs.bytes.is_empty() {
                    return field_error("runs", 0, "1 to 65535");
                }
                let mut next = first_psn;
                for run in runs.iter() {
                    if run.first < next {
                        return field_error("run", run.first, "ascending, without overlap");
                    }
                    next = run.first + u64::from(run.count);
                }
                SideFrame::Nack { flow, runs }
            }
        };
        Ok((frame, len))
    }
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + N].iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn head(out: &mut [u8], kind: u8, flags: u8, flow: RdFlow, msg_id: u16, psn: u64) {
    short_head(out, kind, flags, flow, msg_id);
    out[at::PSN..at::PSN + 8].copy_from_slice(&psn.to_be_bytes());
}

fn short_head(out: &mut [u8], kind: u8, flags: u8, flow: RdFlow, msg_id: u16) {
    out[..at::SRC_QP].copy_from_slice(&[SIDE_MAGIC, SIDE_VERSION, kind, flags]);
    out[at::SRC_QP..at::DST_QP].copy_from_slice(&flow.src_qp.0.to_be_bytes()[1..]);
    out[at::DST_QP..at::MSG_ID].copy_from_slice(&flow.dst_qp.0.to_be_bytes()[1..]);
    out[at::MSG_ID..at::PSN].copy_from_slice(&msg_id.to_be_bytes());
}

impl<R> SideMessage<R> {
    /// Pair of queue pairs that the message concerns.
    pub const fn flow(&self) -> RdFlow {
        match self {
            SideMessage::Start { flow, .. }
            | SideMessage::Sent { flow, .. }
            | SideMessage::Done { flow, .. }
            | SideMessage::Abort { flow, .. }
            | SideMessage::Nack { flow, .. }
            | SideMessage::Wait { flow, .. }
            | SideMessage::Ready { flow, .. }
            | SideMessage::Close { flow }
            | SideMessage::Closed { flow } => *flow,
        }
    }

    /// Returns true if the source of the flow sends the message. Otherwise the destination sends it.
    pub const fn is_from_source(&self) -> bool {
        match self {
            SideMessage::Start { .. }
            | SideMessage::Sent { .. }
            | SideMessage::Abort { .. }
            | SideMessage::Close { .. }
            | SideMessage::Closed { .. } => true,
            SideMessage::Done { .. }
            | SideMessage::Nack { .. }
            | SideMessage::Wait { .. }
            | SideMessage::Ready { .. } => false,
        }
    }

    /// Converts the runs of a NACK. Other messages stay the same.
    pub fn map<S>(self, runs_of: impl FnOnce(R) -> S) -> SideMessage<S> {
        match self {
            SideMessage::Start { flow, msg_id, first_psn, packets, total, again } => {
                SideMessage::Start { flow, msg_id, first_psn, packets, total, again }
            }
            SideMessage::Sent { flow, end_psn } => SideMessage::Sent { flow, end_psn },
            SideMessage::Done { flow, msg_id, first_psn } => SideMessage::Done { flow, msg_id, first_psn },
            SideMessage::Abort { flow, msg_id, first_psn, packets } => {
                SideMessage::Abort { flow, msg_id, first_psn, packets }
            }
            SideMessage::Nack { flow, runs } => SideMessage::Nack { flow, runs: runs_of(runs) },
            SideMessage::Wait { flow, msg_id, first_psn } => SideMessage::Wait { flow, msg_id, first_psn },
            SideMessage::Ready { flow, msg_id, from_psn } => SideMessage::Ready { flow, msg_id, from_psn },
            SideMessage::Close { flow } => SideMessage::Close { flow },
            SideMessage::Closed { flow } => SideMessage::Closed { flow },
        }
    }
}

impl SideFrame<'_> {
    /// Copies the runs out of the bytes.
    pub fn to_owned<S: FromIterator<PsnRun>>(self) -> SideMessage<S> {
        self.map(|runs| runs.iter().collect())
    }
}

impl<R: Runs> SideMessage<R> {
    /// Encoded length in bytes.
    pub fn encoded_len(&self) -> usize {
        match self {
            SideMessage::Start { .. } => START_LEN,
            SideMessage::Done { .. }
            | SideMessage::Wait { .. }
            | SideMessage::Ready { .. }
            | SideMessage::Sent { .. } => DONE_LEN,
            SideMessage::Close { .. } | SideMessage::Closed { .. } => HEAD_LEN,
            SideMessage::Abort { .. } => ABORT_LEN,
            SideMessage::Nack { runs, .. } => NACK_LEN + 4 * runs.iter().len(),
        }
    }

    /// Writes the message at the beginning of `out` and returns its length.
    ///
    /// # Panics
    /// If `out` is shorter than [`encoded_len`](SideMessage::encoded_len), or the runs violate the conditions of
    /// [`SideMessage::Nack`].
    pub fn emit(&self, out: &mut [u8]) -> usize {
        match self {
            &SideMessage::Start { flow, msg_id, first_psn, packets, total, again } => {
                head(out, 1, u8::from(again), flow, msg_id, first_psn);
                out[at::PACKETS..at::TOTAL].copy_from_slice(&packets.to_be_bytes());
                out[at::TOTAL..START_LEN].copy_from_slice(&total.to_be_bytes());
            }
            &SideMessage::Done { flow, msg_id, first_psn } => head(out, 2, 0, flow, msg_id, first_psn),
            &SideMessage::Abort { flow, msg_id, first_psn, packets } => {
                head(out, 3, 0, flow, msg_id, first_psn);
                out[at::PACKETS..ABORT_LEN].copy_from_slice(&packets.to_be_bytes());
            }
            SideMessage::Nack { flow, runs } => emit_runs(*flow, runs, out),
            &SideMessage::Wait { flow, msg_id, first_psn } => head(out, 5, 0, flow, msg_id, first_psn),
            &SideMessage::Ready { flow, msg_id, from_psn } => head(out, 6, 0, flow, msg_id, from_psn),
            &SideMessage::Close { flow } => short_head(out, 7, 0, flow, 0),
            &SideMessage::Closed { flow } => short_head(out, 8, 0, flow, 0),
            &SideMessage::Sent { flow, end_psn } => head(out, 9, 0, flow, 0, end_psn),
        }
        self.encoded_len()
    }
}

fn emit_runs(flow: RdFlow, runs: &impl Runs, out: &mut [u8]) {
    let mut each = runs.iter().peekable();
    let count = each.len();
    assert!((1..=MAX_NACK_RUNS).contains(&count), "{count} runs in a NACK");
    let base = each.peek().map_or(0, |run| run.first);
    head(out, 4, 0, flow, count as u16, base);
    for (run, entry) in each.zip(out[at::RUNS..NACK_LEN + 4 * count].chunks_exact_mut(4)) {
        let delta = run.first - base;
        assert!(delta < MAX_SPAN && (1..=MAX_RUN).contains(&u64::from(run.count)), "{run:?} after {base}");
        entry.copy_from_slice(&(delta as u32).to_be_bytes());
        entry[0] = (run.count - 1) as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    const FLOW: RdFlow = RdFlow { src_qp: QpNum(0x01_0203), dst_qp: QpNum(0x0a_0b0c) };

    /// Compares with bytes that were written by hand from docs/wire.md.
    #[test]
    fn golden() {
        let mut out = [0; 64];
        let start: SideFrame<'_> = SideMessage::Start {
            flow: FLOW,
            msg_id: 7,
            first_psn: 0x1_0000_0005,
            packets: 3,
            total: 10_000,
            again: true,
        };
        let expected = [
            0x73, 3, 1, 1, 1, 2, 3, 10, 11, 12, 0, 7, 0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0,
            0x27, 0x10,
        ];
        assert_eq!(start.emit(&mut out), 32);
        assert_eq!(out[..32], expected);
        assert_eq!(SideFrame::parse(&expected), Ok((start, 32)));
        let done: SideFrame<'_> = SideMessage::Done { flow: FLOW, msg_id: 7, first_psn: 5 };
        let expected = [0x73, 3, 2, 0, 1, 2, 3, 10, 11, 12, 0, 7, 0, 0, 0, 0, 0, 0, 0, 5];
        assert_eq!((done.emit(&mut out), &out[..20]), (20, &expected[..]));
        let wait: SideFrame<'_> = SideMessage::Wait { flow: FLOW, msg_id: 7, first_psn: 5 };
        let expected = [0x73, 3, 5, 0, 1, 2, 3, 10, 11, 12, 0, 7, 0, 0, 0, 0, 0, 0, 0, 5];
        assert_eq!((wait.emit(&mut out), &out[..20]), (20, &expected[..]));
        let ready: SideFrame<'_> = SideMessage::Ready { flow: FLOW, msg_id: 7, from_psn: 6 };
        let expected = [0x73, 3, 6, 0, 1, 2, 3, 10, 11, 12, 0, 7, 0, 0, 0, 0, 0, 0, 0, 6];
        assert_eq!((ready.emit(&mut out), &out[..20]), (20, &expected[..]));
        let sent: SideFrame<'_> = SideMessage::Sent { flow: FLOW, end_psn: 8 };
        let expected = [0x73, 3, 9, 0, 1, 2, 3, 10, 11, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8];
        assert_eq!((sent.emit(&mut out), &out[..20]), (20, &expected[..]));
        assert_eq!(SideFrame::parse(&expected), Ok((sent, 20)));
        for (close, kind) in [(SideFrame::Close { flow: FLOW }, 7), (SideFrame::Closed { flow: FLOW }, 8)] {
            let expected = [0x73, 3, kind, 0, 1, 2, 3, 10, 11, 12, 0, 0];
            assert_eq!((close.emit(&mut out), &out[..12]), (12, &expected[..]));
            assert_eq!(SideFrame::parse(&expected), Ok((close, 12)));
        }
        let runs = [
            PsnRun { first: 2, count: 1 },
            PsnRun { first: 5, count: 2 },
            PsnRun { first: 0x1_0002, count: 256 },
        ];
        let len = SideMessage::Nack { flow: FLOW, runs }.emit(&mut out);
        let expected = [
            0x73, 3, 4, 0, 1, 2, 3, 10, 11, 12, 0, 3, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 1, 0, 0, 3, 255, 1,
            0, 0,
        ];
        assert_eq!((len, &out[..len]), (32, &expected[..]));
        let Ok((SideFrame::Nack { flow, runs: read }, 32)) = SideFrame::parse(&expected) else {
            panic!("a NACK")
        };
        assert_eq!(flow, FLOW);
        assert!(read.iter().eq(runs));
    }

    #[test]
    fn invalid_values_are_named() {
        let mut good = vec![0; 32];
        let start: SideFrame<'_> = SideMessage::Start {
            flow: FLOW,
            msg_id: 7,
            first_psn: 5,
            packets: 3,
            total: 9_000,
            again: false,
        };
        start.emit(&mut good);
        let after = |change: &[(usize, u8)]| {
            let mut bytes = good.clone();
            change.iter().for_each(|&(at, value)| bytes[at] = value);
            match SideFrame::parse(&bytes) {
                Err(SideError::Field { field, value, .. }) => (field, value),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(after(&[(0, 0)]), ("magic", 0));
        assert_eq!(after(&[(1, 2)]), ("version", 2));
        assert_eq!(after(&[(2, 10)]), ("kind", 10));
        assert_eq!(after(&[(2, 9)]), ("message", 7));
        assert_eq!(after(&[(2, 7)]), ("message", 7));
        assert_eq!(after(&[(3, 2)]), ("flags", 2));
        assert_eq!(after(&[(2, 2), (3, 1)]), ("flags", 1));
        assert_eq!(after(&[(23, 0)]), ("packets", 0));
        assert_eq!(after(&[(27, 1), (31, 1)]), ("total", 0x1_0000_2301));
        assert_eq!(after(&[(12, 0xff)]).0, "PSN");
        for len in 0..32 {
            assert!(matches!(SideFrame::parse(&good[..len]), Err(SideError::Truncated { .. })), "{len}");
        }
        let mut nack = [0; 32];
        let runs = [PsnRun { first: 9, count: 4 }, PsnRun { first: 14, count: 1 }];
        SideMessage::Nack { flow: FLOW, runs }.emit(&mut nack);
        nack[27] = 3;
        assert!(matches!(SideFrame::parse(&nack), Err(SideError::Field { field: "run", value: 12, .. })));
        nack[11] = 0;
        assert!(matches!(SideFrame::parse(&nack), Err(SideError::Field { field: "runs", .. })));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_refused_or_mean_what_they_say(mut bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..64), forge: bool) {
            if forge && bytes.len() >= 4 {
                bytes[..2].copy_from_slice(&[SIDE_MAGIC, SIDE_VERSION]);
                bytes[2] = bytes[2] % 9 + 1;
                bytes[3] = 0;
            }
            if let Ok((frame, len)) = SideFrame::parse(&bytes) {
                let mut again = vec![0; len];
                // A foreign NACK may have a base below its first run; ours begins at its first run.
                if let SideFrame::Nack { runs, .. } = frame
                    && runs.iter().next().map(|run| run.first) != Some(number::<8>(&bytes, at::PSN))
                {
                    return Ok(());
                }
                let written = frame.emit(&mut again);
                proptest::prop_assert_eq!((&again[..], written), (&bytes[..len], len));
            }
        }
    }
}
