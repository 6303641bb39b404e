//! Simulated links, NIC ports, switches and faults
