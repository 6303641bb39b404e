//! Configuration of a datagram endpoint.

use std::net::SocketAddr;
use std::time::Duration;

use pathweave_policy::Delivery;

use crate::config::{ConfigError, DeviceConfig, check};
use crate::scheme;

/// Largest number of peers of an endpoint. A session number has 20 bits, which peers in transit share.
pub(super) const MAX_PEERS: usize = (1 << 20) - super::address_vector::MOST_PASSING;

/// Configuration of a datagram endpoint. Start with [`RdmConfig::new`] and change fields as needed.
#[derive(Clone, Debug)]
pub struct RdmConfig {
    /// Sockets, loop, protection and timeouts, as for a device with connections. These fields differ:
    ///
    /// - `scheme`: a datagram scheme. Default `erd`, which slows down for each destination whose packets switches
    ///   mark. `erd-uncontrolled` sends at `line_rate` whatever the network does, as published.
    /// - `mtu_payload`: must be the same at both ends.
    /// - `max_connections`: not used.
    /// - `base_rtt` and `host_delay`: their sum is the round-trip time, the unit of the scan's period.
    /// - `peer_timeout`: a peer from which something is awaited, and which stays silent this long although it is
    ///   probed, is given up. Messages to it fail. Receives that held its partial messages wait for other messages.
    pub device: DeviceConfig,
    /// Order in which messages of one source are delivered. Default: as they become complete.
    pub delivery: Delivery,
    /// Largest number of peers at a time, including those that contacted this endpoint first; 1 to 1,044,480. When it
    /// is reached, the peers that have been idle longest make room; a new peer is refused while none is idle. Default
    /// 16,384.
    pub max_peers: usize,
    /// Time for which a peer must be idle before it is forgotten. When it or this end sends again, new keys are
    /// negotiated. At least 10 ms. Default 300 s.
    pub peer_idle: Duration,
    /// Bound on bytes stored of messages for which no receive is posted yet. A message beyond the bound waits at its
    /// sender, with those posted after it, until a receive is posted or there is room. Default 64 MiB.
    pub unexpected_bytes: usize,
    /// Largest number of incomplete messages of one peer that may occupy receives, 1 to 32,768; its further messages
    /// wait at the sender. A peer that starts messages without completing them can thus not take all receives that
    /// are for any peer, if more are posted. Default 1,024.
    pub receives_a_peer: usize,
    /// Largest number of TCP connections of the side channel, 1 to 65,536; beyond it the least recently used one is
    /// closed. Default 4,096.
    pub side_channels: usize,
    /// Time after which an unused TCP connection is closed; it is opened again when needed. At least 10 ms. Default
    /// 10 s.
    pub side_idle: Duration,
    /// Bytes that may be queued for a TCP connection; beyond them it counts as broken. 1 KiB to 1 GiB, default 4 MiB.
    pub side_buffer_bytes: usize,
}

impl RdmConfig {
    /// Default number of paths: the paper uses three or four.
    pub const DEFAULT_PATHS: u16 = 4;

    /// Default scheme: ERD with congestion control for each destination, of which the paper has none.
    pub const DEFAULT_SCHEME: &str = "erd";

    /// Returns the defaults: those of [`DeviceConfig::new`], but with four paths and the scheme `erd`.
    pub fn new(bind: SocketAddr) -> Self {
        RdmConfig::of(DeviceConfig::new(bind))
    }

    /// Returns the configuration of an unprotected endpoint on loopback, for tests and examples on one machine. An
    /// endpoint bound to another address does not open, unless [`DeviceConfig::unprotected`] permits it.
    pub fn loopback() -> Self {
        RdmConfig::of(DeviceConfig::loopback())
    }

    /// Returns the defaults with the sockets, loop and protection of `device`.
    fn of(device: DeviceConfig) -> Self {
        RdmConfig {
            device: DeviceConfig {
                paths: RdmConfig::DEFAULT_PATHS,
                scheme: RdmConfig::DEFAULT_SCHEME.into(),
                ..device
            },
            delivery: Delivery::Unordered,
            max_peers: 16_384,
            peer_idle: Duration::from_secs(300),
            unexpected_bytes: 64 << 20,
            receives_a_peer: 1_024,
            side_channels: 4_096,
            side_idle: Duration::from_secs(10),
            side_buffer_bytes: 4 << 20,
        }
    }

    /// Checks all fields; the error names the first invalid one.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.device.validate_but_scheme()?;
        scheme::find_datagrams(&self.device.scheme)?;
        let more = self.device.also_bind.len();
        check(
            more == 0,
            "also_bind",
            format!("{more} addresses"),
            "none: datagram endpoints have one address",
        )?;
        let peers = (1..=MAX_PEERS).contains(&self.max_peers);
        check(peers, "max_peers", self.max_peers, "1 to 1044480")?;
        let receives = (1..=1 << 15).contains(&self.receives_a_peer);
        check(receives, "receives_a_peer", self.receives_a_peer, "1 to 32768")?;
        let channels = (1..=1 << 16).contains(&self.side_channels);
        check(channels, "side_channels", self.side_channels, "1 to 65536")?;
        let buffer = (1 << 10..=1 << 30).contains(&self.side_buffer_bytes);
        check(buffer, "side_buffer_bytes", self.side_buffer_bytes, "1024 to 1073741824 bytes")?;
        let idle = self.side_idle >= Duration::from_millis(10);
        check(idle, "side_idle", format!("{:?}", self.side_idle), "at least 10 ms")?;
        let idle = self.peer_idle >= Duration::from_millis(10);
        check(idle, "peer_idle", format!("{:?}", self.peer_idle), "at least 10 ms")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_values_are_named_with_the_allowed_ones() {
        assert_eq!(RdmConfig::loopback().validate(), Ok(()));
        let wrong = |change: fn(&mut RdmConfig)| {
            let mut config = RdmConfig::loopback();
            change(&mut config);
            config.validate().unwrap_err().to_string()
        };
        assert_eq!(wrong(|c| c.max_peers = 0), "max_peers is 0; allowed: 1 to 1044480");
        assert_eq!(wrong(|c| c.receives_a_peer = 0), "receives_a_peer is 0; allowed: 1 to 32768");
        assert_eq!(wrong(|c| c.device.paths = 0), "paths is 0; allowed: 1 to 256");
        let open_to_all = wrong(|c| c.device.bind = "0.0.0.0:0".parse().unwrap());
        assert!(
            open_to_all.starts_with("bind is 0.0.0.0:0, an address that other hosts can send to"),
            "{open_to_all}"
        );
        assert_eq!(wrong(|c| c.side_channels = 0), "side_channels is 0; allowed: 1 to 65536");
        assert_eq!(
            wrong(|c| c.device.scheme = "udmp".into()),
            "scheme \"udmp\" is one of connections; of datagrams there are: erd, erd-uncontrolled"
        );
        let none = wrong(|c| c.device.scheme = "edr".into());
        assert!(none.starts_with("there is no scheme \"edr\"; did you mean \"erd\"?"), "{none}");
    }
}
