//! Circuits of `hardware/laps`, simulated by Verilator and clocked from tests.
//!
//! A circuit is simulated with its bench (`hardware/laps/bench`), a module with a clock, an input vector and an
//! output vector. [`Model::build`] builds a program from it, and [`Model::run`] clocks it. [`Writer`] and [`Reader`]
//! pack fields into the vectors, starting at the lowest bit, as the benches expect.
//!
//! The program runs beside the test and is connected by pipes. So nothing of it is linked, and without Verilator only
//! these tests are skipped.
#![warn(missing_docs)]

mod bits;
mod model;

pub use bits::{Reader, Writer};
pub use model::{Circuit, Error, Model};
