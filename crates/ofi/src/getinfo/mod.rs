//! Offers of the provider: the rules of `fi_getinfo`.

mod check;
mod limits;
mod nic;
mod offer;

pub use limits::capability_names;
pub(crate) use limits::*;
pub(crate) use nic::Nic;
pub(crate) use offer::{DomainHints, FabricHints, Hints, Offer, Question, Refusal, offers};
pub(crate) use pathweave_door::Interface;

#[cfg(test)]
mod tests;
