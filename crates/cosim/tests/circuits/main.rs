//! Tests of the circuits of `hardware/laps`, simulated by Verilator, against `policy::laps::pipeline`. Without Verilator
//! each test is skipped with a message.

#![allow(clippy::print_stdout)] // Skipped tests and results of long tests are printed.

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
