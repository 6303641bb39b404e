//! A workload in execution, on a simulated and on a real network alike.
//!
//! [`Execution`] does no I/O and knows no clock. The caller says what happened and when: a part of a message was
//! delivered, its sender learnt how it ended. The execution says what to post next, and keeps the record of each flow.
//! It decides which tasks of a [`pathweave_workload::MessageGraph`] are free and when their hosts know it, which messages
//! share queue pairs ([`Connections`]), how a message is divided over them ([`shares`]), and which counters count for which
//! message ([`SenderTally`], [`ReceiverTally`]). How a message is posted, and what a queue pair is, are the caller's.

mod activities;
mod causes;
mod chunks;
mod connections;
mod execution;
mod flow;
mod packed;
mod part;
mod pending;
mod shares;
mod tally;
mod tasks;

pub use activities::labels;
pub use chunks::messages_in_a_chunk;
pub use connections::{ConnId, Connection, Connections, QueuePairs};
pub use execution::{Completed, Execution, GroupSpec};
pub use part::Part;
pub use pending::Outstanding;
pub use shares::{Share, shares};
pub use tally::{ReceiverTally, SenderTally};
pub use tasks::{Due, Step};
