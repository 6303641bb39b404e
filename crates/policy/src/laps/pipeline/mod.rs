//! LAPS as a circuit computes it: integers of fixed width, with every bit defined. The circuit is in `hardware/laps`.
//! This module is its reference model, and the scheme `laps-hw` runs simulations with it.
//!
//! - [`Ticks`]: delays, in units of 1.024 ns.
//! - [`Scale`] and [`weight()`]: the exponential of the softmax as a multiplication, a table and a shift.
//! - [`PathSampler`]: weights of the paths of all destinations, and the draw of a path.
//! - [`Paths`]: the delay of each path, and the paths due for a probe.
//! - [`DelayRange`]: the fastest and slowest path of each destination.
//! - [`Rates`]: the rate of each flow.
//! - [`InFlightRings`]: the packets in flight on each path, and loss detection.
//! - [`Receiver`]: the packets of each flow that have arrived, and their acknowledgements.
//!
//! The model has no clock: each operation sees the effect of all operations before it. The circuit defines how many
//! clock cycles each operation takes.

mod chooser;
mod extremes;
mod paths;
mod rate;
mod receiver;
mod rings;
mod ticks;
mod weight;

pub use chooser::{Choice, PathSampler};
pub use extremes::DelayRange;
pub use paths::{EXAMINED_PATHS, PathEntry, Paths};
pub use rate::{DecreaseRule, PathDelays, RateEntry, Rates};
pub use receiver::{AckResult, Arrivals, Receiver, WINDOW};
pub use rings::{InFlight, InFlightRings};
pub use ticks::Ticks;
pub use weight::{EXP2, FULL_WEIGHT, MAX_FACTOR, Scale, weight};
