//! Serialization of the final state of one part of a workload, for transfer into another process.

use std::io;

use borsh::{BorshDeserialize, BorshSerialize};
use pathweave_workload::{Progress, TaskId};

use crate::execution::Execution;
use crate::flow::{Receiving, Sending};

/// The part's state from which records are made.
#[derive(BorshDeserialize)]
struct PackedState {
    progress: Progress,
    /// Tasks with their causes: each task, and the predecessor whose end released it last.
    causes: Vec<(TaskId, TaskId)>,
    bytes_done: u128,
    flows_done: u64,
    /// Sender state by message number.
    sending: Vec<(u32, Sending)>,
    receiving: Vec<(u32, Receiving)>,
}

impl<Q> Execution<Q> {
    /// Writes the state of this part's hosts to `out`, for [`Execution::merge_packed`].
    ///
    /// # Errors
    /// Writing to `out` failed.
    pub fn pack(&self, out: &mut impl io::Write) -> io::Result<()> {
        let graph = &self.tasks.graph;
        let here = |flow: u32| {
            self.tasks.part.as_ref().is_none_or(|part| part.owns(graph.messages()[flow as usize].dst))
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

    /// Merges the state that [`Execution::pack`] of another part has written, for records.
    ///
    /// # Errors
    /// `packed` was not written by [`Execution::pack`], or belongs to another workload.
    pub fn merge_packed(&mut self, packed: &mut impl io::Read) -> io::Result<()> {
        let known = PackedState::deserialize_reader(packed)?;
        let unknown = || io::Error::new(io::ErrorKind::InvalidData, "a message of another workload");
        self.tasks.progress.merge(&self.tasks.graph, &known.progress);
        for (task, by) in known.causes {
            self.tasks.causes.set_cause(task, by);
        }
        self.bytes_done += known.bytes_done;
        self.flows_done += known.flows_done as usize;
        let messages = self.flows() as u32;
        let of_this = |flow: u32| (flow < messages).then_some(flow).ok_or_else(unknown);
        for (flow, sending) in known.sending {
            *self.sending.get_or_allocate(of_this(flow)?) = Some(sending);
        }
        for (flow, receiving) in known.receiving {
            *self.receiving.get_or_allocate(of_this(flow)?) = receiving;
        }
        Ok(())
    }
}
