//! LAPS as a circuit computes it: integers of fixed width, every bit defined. The circuit is in `hardware/laps`; this crate
//! says what it must do, and the scheme `laps-hw` runs simulations with it.
//!
//! - [`Ticks`]: delays, in units of 1.024 ns.
//! - [`Scale`] and [`weight`]: the exponential of the softmax as a multiplication, a table and a shift.
//! - [`Chooser`]: weights of the paths of all destinations, and the draw.
//! - [`Paths`]: the delay of each path, and which is to be probed.
//! - [`Extremes`]: the fastest and slowest path of each destination.
//! - [`Rates`]: the rate of each flow.
//! - [`Rings`]: what is under way on each path, and what is lost.
//! - [`Answers`]: what has arrived of each flow, and what its packets are answered.
//!
//! It has no clock: an operation sees exactly those before it. How many clocks each takes is the circuit's business.

mod answers;
mod chooser;
mod extremes;
mod paths;
mod rate;
mod rings;
mod ticks;
mod weight;

pub use answers::{Answer, Answers, Arrivals, WINDOW};
pub use chooser::{Choice, Chooser};
pub use extremes::Extremes;
pub use paths::{LOOKED_AT, PathEntry, Paths};
pub use rate::{Cut, PathDelays, RateEntry, Rates};
pub use rings::{InFlight, Rings};
pub use ticks::Ticks;
pub use weight::{EXP2, FULL_WEIGHT, MAX_FACTOR, Scale, weight};
