//! What a part of a workload knows when the run is over, on its way into another process.

use std::io;

use borsh::{BorshDeserialize, BorshSerialize};
use pathweave_workload::{Progress, TaskId};

use crate::execution::Execution;
use crate::flow::{Receiving, Sending};

/// All that records are made from.
#[derive(BorshDeserialize)]
struct Known {
    progress: Progress,
    /// Tasks, with that whose end each began after.
    causes: Vec<(TaskId, TaskId)>,
    bytes_done: u128,
    flows_done: u64,
    /// By message.
    sending: Vec<(u32, Sending)>,
    receiving: Vec<(u32, Receiving)>,
}

impl<Q> Execution<Q> {
    /// Adds to `out` all that is known here of the hosts of this part, for [`Execution::join_packed`].
    ///
    /// # Errors
    /// `out` fails.
    pub fn pack(&self, out: &mut impl io::Write) -> io::Result<()> {
        let graph = &self.tasks.graph;
        let here = |flow: u32| {
            self.tasks.part.as_ref().is_none_or(|part| part.has(graph.messages()[flow as usize].dst))
        };
        let receiving = self.receiving.iter().map(|(flow, receiving)| (flow, *receiving));
        let receiving: Vec<(u32, Receiving)> =
            receiving.filter(|&(flow, receiving)| receiving != Receiving::UNKNOWN && here(flow)).collect();
        let sending: Vec<(u32, &Sending)> =
            self.sending.iter().filter_map(|(flow, sending)| Some((flow, sending.as_ref()?))).collect();
        let causes: Vec<_> = self.tasks.causes.known().collect();
        // In the order of the fields of `Known`.
        (&self.tasks.progress, causes, self.bytes_done, self.flows_done as u64, sending, receiving)
            .serialize(out)
    }

    /// Takes what [`Execution::pack`] has written of another part, for records.
    ///
    /// # Errors
    /// `packed` was not written by it, or of another workload.
    pub fn join_packed(&mut self, packed: &mut impl io::Read) -> io::Result<()> {
        let known = Known::deserialize_reader(packed)?;
        let unknown = || io::Error::new(io::ErrorKind::InvalidData, "a message of another workload");
        self.tasks.progress.join(&self.tasks.graph, &known.progress);
        for (task, by) in known.causes {
            self.tasks.causes.released(task, by);
        }
        self.bytes_done += known.bytes_done;
        self.flows_done += known.flows_done as usize;
        let messages = self.flows() as u32;
        let of_this = |flow: u32| (flow < messages).then_some(flow).ok_or_else(unknown);
        for (flow, sending) in known.sending {
            *self.sending.at(of_this(flow)?) = Some(sending);
        }
        for (flow, receiving) in known.receiving {
            *self.receiving.at(of_this(flow)?) = receiving;
        }
        Ok(())
    }
}
