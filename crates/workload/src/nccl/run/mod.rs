//! Collectives as NCCL executes them: messages with dependencies.
//!
//! [`Plan::new`] chooses algorithm, protocol and channels. [`Plan::run`] declares the messages on a medium
//! (`Wires`): the graph, or in tests sets of contributions. Each channel carries a part of the vector, in loops of
//! chunks. A connection has slots, which the receiver frees when it has used their content.

mod chunks;
mod direct;
mod graph_wires;
mod orders;
mod pat;
mod plan;
mod ring;
#[cfg(test)]
mod tests;
mod tree;
mod wanted;
mod wires;

pub use chunks::DEFAULT_MESSAGES;
pub(crate) use chunks::MOST_MESSAGES;
pub(crate) use plan::Plan;
pub(crate) use wanted::Wanted;
pub use wanted::{NcclAlgorithm, NcclProtocol};
