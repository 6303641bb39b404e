//! Tests of this crate in one program, so that it is linked only once.

mod architecture;
mod bad_input;
mod circles;
mod claims;
mod clusters;
mod common;
mod convert;
mod help;
mod lab;
mod lab_exec;
mod listings;
mod ofi;
mod outputs;
mod packages;
mod papers;
mod perf;
mod perf_clients;
mod readme;
mod runs;
mod sweeps;
mod testbed;
mod traces;
mod traces_in;
mod validate;
mod view;
