//! What datagram queue pairs say to each other on the reliable side channel.

use alloc::vec;
use alloc::vec::Vec;

use pathweave_wire::{
    MAX_NACK_RUNS, PsnRun, RdFlow, SideFrame, emit_nack, emit_side, side_abort_len, side_done_len,
    side_nack_len, side_start_len,
};

/// A message of the side channel. The driver carries it, whole, once and in order, to the host it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SideMessage {
    /// Sender: a message has begun; so long it is.
    Start {
        /// Between which queue pairs.
        flow: RdFlow,
        /// The message.
        msg_id: u16,
        /// PSN of its first packet.
        first_psn: u64,
        /// Its packets.
        packets: u32,
        /// Its bytes.
        total: u64,
        /// Said before on a channel that broke.
        again: bool,
    },
    /// Receiver: a message is whole.
    Done {
        /// Between which queue pairs.
        flow: RdFlow,
        /// The message.
        msg_id: u16,
        /// PSN of its first packet.
        first_psn: u64,
    },
    /// Sender: a message is given up.
    Abort {
        /// Between which queue pairs.
        flow: RdFlow,
        /// The message.
        msg_id: u16,
        /// PSN of its first packet.
        first_psn: u64,
        /// Its packets.
        packets: u32,
    },
    /// Receiver: these are missing.
    Nack {
        /// Between which queue pairs.
        flow: RdFlow,
        /// Ascending, 1 to 65,535 of them.
        runs: Vec<PsnRun>,
    },
}

impl SideMessage {
    /// The pair of queue pairs it is about.
    pub fn flow(&self) -> RdFlow {
        match self {
            SideMessage::Start { flow, .. }
            | SideMessage::Done { flow, .. }
            | SideMessage::Abort { flow, .. }
            | SideMessage::Nack { flow, .. } => *flow,
        }
    }

    /// Bytes it takes on the channel.
    pub fn encoded_len(&self) -> usize {
        match self {
            SideMessage::Start { .. } => side_start_len(),
            SideMessage::Done { .. } => side_done_len(),
            SideMessage::Abort { .. } => side_abort_len(),
            SideMessage::Nack { runs, .. } => side_nack_len(runs.len()),
        }
    }

    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![0; self.encoded_len()];
        match self {
            SideMessage::Nack { flow, runs } => {
                emit_nack(*flow, runs, &mut out);
            }
            &SideMessage::Start { flow, msg_id, first_psn, packets, total, again } => {
                emit_side(&SideFrame::Start { flow, msg_id, first_psn, packets, total, again }, &mut out);
            }
            &SideMessage::Done { flow, msg_id, first_psn } => {
                emit_side(&SideFrame::Done { flow, msg_id, first_psn }, &mut out);
            }
            &SideMessage::Abort { flow, msg_id, first_psn, packets } => {
                emit_side(&SideFrame::Abort { flow, msg_id, first_psn, packets }, &mut out);
            }
        }
        out
    }
}

impl From<SideFrame<'_>> for SideMessage {
    fn from(frame: SideFrame<'_>) -> Self {
        match frame {
            SideFrame::Start { flow, msg_id, first_psn, packets, total, again } => {
                SideMessage::Start { flow, msg_id, first_psn, packets, total, again }
            }
            SideFrame::Done { flow, msg_id, first_psn } => SideMessage::Done { flow, msg_id, first_psn },
            SideFrame::Abort { flow, msg_id, first_psn, packets } => {
                SideMessage::Abort { flow, msg_id, first_psn, packets }
            }
            SideFrame::Nack { flow, runs } => SideMessage::Nack { flow, runs: runs.iter().collect() },
        }
    }
}

/// PSNs that are missing, put together into runs as they are named in ascending order.
#[derive(Debug, Default)]
pub(super) struct Missing {
    pub(super) runs: Vec<PsnRun>,
}

impl Missing {
    /// Room for one more, which may need a run of its own.
    pub(super) fn has_room(&self) -> bool {
        self.runs.len() < MAX_NACK_RUNS
    }

    pub(super) fn push(&mut self, psn: u64) {
        match self.runs.last_mut() {
            Some(run) if run.first + u64::from(run.count) == psn && run.count < 256 => run.count += 1,
            _ => self.runs.push(PsnRun { first: psn, count: 1 }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_units::QpNum;

    #[test]
    fn messages_survive_their_bytes() {
        let flow = RdFlow { src_qp: QpNum(3), dst_qp: QpNum(4) };
        let mut missing = Missing::default();
        (100..400).chain([500, 502]).for_each(|psn| missing.push(psn));
        assert_eq!(missing.runs.iter().map(|run| run.count).collect::<Vec<_>>(), [256, 44, 1, 1]);
        for message in [
            SideMessage::Start {
                flow,
                msg_id: 1,
                first_psn: 1 << 40,
                packets: 2,
                total: 5_000,
                again: false,
            },
            SideMessage::Done { flow, msg_id: 1, first_psn: 1 << 40 },
            SideMessage::Abort { flow, msg_id: 1, first_psn: 9, packets: 2 },
            SideMessage::Nack { flow, runs: missing.runs },
        ] {
            let bytes = message.encode();
            let (frame, len) = SideFrame::parse(&bytes).expect("our own");
            assert_eq!((SideMessage::from(frame), len), (message.clone(), message.encoded_len()));
        }
    }
}
