//! A policy bench that needs no network: what a scheme decides, tested apart from everything else.
//!
//! - [`Checked`] wraps a policy and asserts the contract's invariants at every call.
//! - [`Scenario`] runs one or many policies over a scripted channel of several paths (rate, delay, jitter, marking,
//!   loss, competing traffic) and returns a [`Report`] of integers. [`Scenario::steady`] and its neighbours are the
//!   scenarios every scheme owes.
//! - [`subjects()`] is everything that is registered and has to pass.
//! - [`random_operations`] throws random operations at a policy, then requires that it still sends.
//!
//! Everything is a function of the seed; a failure names seed and step.

mod bench;
mod channel;
mod checked;
mod host;
mod operations;
#[cfg(test)]
mod ports;
mod report;
mod scenario;
mod subjects;
#[cfg(test)]
mod tests;

pub use channel::Hop;
pub use checked::Checked;
pub use host::Host;
pub use operations::random_operations;
pub use report::{Report, SenderReport};
pub use scenario::{AcksTell, Change, Overtaken, Scenario};
pub use subjects::{Subject, policies, subjects};
