//! Execution of a workload, on a simulated and on a real network alike.
//!
//! [`Execution`] does no I/O and reads no clock. The caller reports each event with its time: the delivery of a part
//! of a message, or the completion of a part at its sender. The execution returns the messages to post next, and
//! keeps the record of each flow. It decides which tasks of a [`pathweave_workload::MessageGraph`] are free, and when
//! their hosts know that they are. It also decides which messages share queue pairs ([`Connections`]), how a message
//! is divided over them ([`shares()`]), and which counters count for which message ([`SenderCounters`],
//! [`ReceiverCounters`]). The caller defines queue pairs and posts the messages.

mod activities;
mod causes;
mod chunks;
mod connections;
mod execution;
mod flow;
pub mod max_min;
mod packed;
mod part;
mod pending;
mod scale_up;
mod shares;
mod tally;
mod tasks;

pub use activities::labels;
pub use chunks::messages_in_a_chunk;
pub use connections::{ConnId, Connection, Connections, QueuePairs};
pub use execution::{Execution, GroupSpec, PartCompletion};
pub use part::Part;
pub use pending::Outstanding;
pub use scale_up::{ScaleUpAction, ScaleUpArrival, ScaleUpCarrier, ScaleUpChange, ScaleUpMessage};
pub use shares::{MessagePart, shares};
pub use tally::{ReceiverCounters, SenderCounters};
pub use tasks::{ScheduledStep, Step};
