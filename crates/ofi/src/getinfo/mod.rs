//! Offers of the provider: the rules of `fi_getinfo`.

mod bonding;
mod check;
mod interfaces;
mod limits;
mod nic;
mod offer;

pub(crate) use interfaces::{Interface, Link};
pub use limits::capability_names;
pub(crate) use limits::*;
pub(crate) use nic::Nic;
pub(crate) use offer::{DomainHints, FabricHints, Hints, Offer, Question, Refusal, offers};

#[cfg(test)]
mod tests;
