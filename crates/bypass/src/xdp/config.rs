//! Configuration of a backend.

use std::time::Duration;

use pathweave_datapath::backend::UdpConfig;

/// Configuration of a backend.
#[derive(Clone, Debug)]
pub struct XdpConfig {
    /// Name of the network interface, for instance `eth0`.
    pub interface: String,
    /// Address, paths and ports, as for sockets. An unspecified address stands for the interface's first address.
    pub udp: UdpConfig,
    /// Time for which a waiting thread polls the driver, with the adapter's interrupts off. `None`: packets arrive by
    /// interrupts. Has no effect with drivers that do not support it.
    pub busy_poll: Option<Duration>,
}

impl XdpConfig {
    /// Returns the configuration for an interface, with packets by interrupts.
    pub fn new(interface: impl Into<String>, udp: UdpConfig) -> Self {
        XdpConfig { interface: interface.into(), udp, busy_poll: None }
    }
}
