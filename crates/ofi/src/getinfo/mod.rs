//! What is offered: the rules of `fi_getinfo`.

mod check;
mod limits;
mod offer;
mod places;

pub(crate) use limits::*;
pub(crate) use offer::{Offer, Question, Refusal, offers};
pub(crate) use places::{Interface, Subnet};

#[cfg(test)]
mod tests;
