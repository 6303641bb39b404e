//! The circuits of `hardware/laps`, simulated by Verilator, against what `policy::laps::pipeline` says they do. Where there is no
//! Verilator each test says so and ends.

#![allow(clippy::print_stdout)] // What is skipped is said, and what long tests have measured.

mod arithmetic;
mod chooser;
mod deparser;
mod frames;
mod in_the_loop;
mod line;
mod parser;
mod paths;
mod rate;
mod receive;
mod registers;
mod rings;
mod search;
mod support;
mod top;
