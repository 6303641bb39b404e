//! The tests of this crate as one program: it is linked once.

mod buffer;
mod deadlock;
mod faults;
mod forwarding;
mod marking;
mod pfc;
mod properties;
mod scheduling;
mod support;
mod timing;
mod trimming;
