//! Integration tests of this crate, linked as one program.

mod buffer;
mod classes;
mod deadlock;
mod faults;
mod forwarding;
mod marking;
mod pfc;
mod properties;
mod scheduling;
mod support;
mod telemetry;
mod timing;
mod trimming;
