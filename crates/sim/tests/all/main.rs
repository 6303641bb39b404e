//! Tests of this crate in one program, so that it is linked only once.

mod capture;
mod cluster;
mod contract;
mod credit;
mod crowd;
mod datagram;
mod determinism;
mod dlbf;
mod followed;
mod forwarding;
mod hpcc;
mod ideal;
mod laps;
mod next_hops;
mod observe;
mod ports;
mod reflex;
mod repaired;
mod schemes;
mod sender_switch;
mod source_routes;
mod support;
mod timeouts;
mod trimming;
mod unequal;
mod waits;
