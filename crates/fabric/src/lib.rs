//! Simulated links, NIC ports, switches and faults.
pub mod config;
