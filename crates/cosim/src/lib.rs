//! Circuits of `hardware/laps`, simulated by Verilator and driven clock by clock from tests.
//!
//! A circuit is simulated with its bench (`hardware/laps/bench`), a module with a clock and two vectors: what goes in, and what
//! comes out. [`Model::build`] makes a program of it, [`Model::run`] clocks it. [`Writer`] and [`Reader`] pack fields into the
//! vectors, the first at the lowest bit, as the benches have them.
//!
//! The program runs beside the test, with pipes between them: so nothing of it is linked, and where there is no Verilator all
//! that is missing is the test.
#![warn(missing_docs)]

mod bits;
mod model;

pub use bits::{Reader, Writer};
pub use model::{Circuit, Error, Model};
