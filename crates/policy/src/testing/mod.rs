//! A policy test bench without a network: the decisions of a scheme, tested apart from everything else.
//!
//! - [`Checked`] wraps a policy and asserts the contract's invariants at every call.
//! - [`Scenario`] runs one or many policies over a scripted channel of several paths (rate, delay, jitter, marking,
//!   loss, competing traffic) and returns a [`Report`] of integers. [`Scenario::steady`] and the other presets are
//!   the scenarios that every scheme must pass.
//! - [`subjects()`] lists everything that is registered and must pass.
//! - [`random_operations`] applies random operations to a policy, then requires that it still sends.
//!
//! Everything is a function of the seed; a failure message names seed and step.

#[cfg(test)]
mod alike;
mod bench;
mod channel;
mod checked;
mod examples;
mod host;
mod operations;
#[cfg(test)]
mod ports;
mod report;
mod scenario;
mod subjects;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use alike::assert_alike;
pub use channel::Hop;
pub use checked::Checked;
pub use examples::{ACK, ENV, REQUEST, SENT};
pub use host::Host;
pub use operations::random_operations;
pub use report::{Report, SenderReport};
pub use scenario::{AcksTell, Change, Overtaken, Scenario};
pub use subjects::{Subject, policies, subjects};
