//! What a backend is opened with.

use std::time::Duration;

use pathweave_datapath::backend::UdpConfig;

/// What a backend is opened with.
#[derive(Clone, Debug)]
pub struct XdpConfig {
    /// The network interface, by name: `eth0`.
    pub interface: String,
    /// Address, paths and ports, as for sockets. An unspecified address stands for the interface's first.
    pub udp: UdpConfig,
    /// How long who waits for packets looks for them at the driver, with the adapter's interrupts off; `None`: packets come by
    /// interrupts. Drivers without it do not mind.
    pub busy_poll: Option<Duration>,
}

impl XdpConfig {
    /// An interface, with packets that come by interrupts.
    pub fn new(interface: impl Into<String>, udp: UdpConfig) -> Self {
        XdpConfig { interface: interface.into(), udp, busy_poll: None }
    }
}
