//! Validation: the same flows over the same network with the same parameters, here and in simulators of others, and here and
//! by laws that are exact. Cases are data (`validation/`): a scenario, what a peer measured, and how far the ratio of the two may
//! be from 1.

mod catalogue;
mod error;
mod figures;
mod judge;
mod law;
mod model;
mod packets;
mod page;
mod pair;
mod picture;
mod ports;
mod run;

pub use catalogue::{Case, Catalogue, ONE_PORT, PACKETS, load_all};
pub use error::ValidateError;
pub use figures::{Curve, Figures, flows_digest};
pub use judge::{Outcome, Row, Trial};
pub use law::Law;
pub use model::{Band, Bands, CaseFile, Cause, Experiment, Measure, Packets, Peer, Stat, Theirs};
pub use packets::{Tally, cell, markdown};
pub use page::{Settings, html};
pub use run::{Missed, runs};
