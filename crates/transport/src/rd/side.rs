//! Messages of datagram queue pairs on the reliable side channel.

use alloc::vec::Vec;

use pathweave_wire::{MAX_NACK_RUNS, PsnRun};

/// A message of the side channel. The driver delivers it to its host, complete, once and in order.
pub type SideMessage = pathweave_wire::SideMessage<Vec<PsnRun>>;

/// Missing PSNs, collected in ascending order as runs.
#[derive(Debug, Default)]
pub(super) struct Missing {
    pub(super) runs: Vec<PsnRun>,
}

impl Missing {
    /// Returns true if one more PSN fits, which may need a run of its own.
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
    use alloc::vec;
    use pathweave_units::QpNum;
    use pathweave_wire::{RdFlow, SideFrame};

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
            let mut bytes = vec![0; message.encoded_len()];
            message.emit(&mut bytes);
            let (frame, len) = SideFrame::parse(&bytes).expect("our own");
            assert_eq!((frame.to_owned(), len), (message.clone(), message.encoded_len()));
        }
    }
}
