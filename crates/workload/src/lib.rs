//! Workloads as graphs of messages: permutations, collectives, size distributions, flow files.
//!
//! A generator declares messages in a [`GraphBuilder`], which puts them in an order that does not depend on
//! the order of declaration; a run executes the [`MessageGraph`] with the help of [`Progress`].

mod builder;
mod error;
mod graph;
mod progress;

pub use builder::{Draft, GraphBuilder, MAX_TASKS, NewMessage, Stream};
pub use error::{FileError, GraphError, WorkloadError};
pub use graph::{Compute, Group, GroupId, Job, JobId, MAX_MESSAGE_SIZE, Message, MessageGraph, Task, TaskId};
pub use progress::{Due, Progress};
