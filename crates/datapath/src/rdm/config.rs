//! What a datagram endpoint is opened with.

use std::net::SocketAddr;
use std::time::Duration;

use pathweave_policy::Delivery;

use crate::config::{ConfigError, DeviceConfig, check};
use crate::scheme;

/// Most peers an endpoint can know: a session number has 20 bits for them and for those that are passing through.
pub(super) const MAX_PEERS: usize = (1 << 20) - super::address_vector::MOST_PASSING;

/// What a datagram endpoint is opened with. Start with [`RdmConfig::new`] and change what you like.
#[derive(Clone, Debug)]
pub struct RdmConfig {
    /// Sockets, loop, protection and times, as of a device for connections. Its `scheme` is one of datagrams: `erd`
    /// unless changed, which slows down for each destination whose packets switches mark; `erd` sends at `line_rate`
    /// whatever the network does, as published. Its `mtu_payload` must be the same at both ends; its `max_connections`
    /// say nothing here. `base_rtt` and `host_delay` together are the round-trip time in which the period of the scan is
    /// measured. A peer of which something is awaited and that says nothing for `peer_timeout`, although it is asked, is
    /// given up: messages to it fail, receives that one of its messages was on its way into wait for others.
    pub device: DeviceConfig,
    /// Order in which messages of one source are delivered. Default: as they become whole.
    pub delivery: Delivery,
    /// Peers at a time, those included that have spoken first; 1 to 1,044,480. Where there are as many, those make room
    /// that have nothing under way and have been silent longest; who asks while all others are busy is refused. Default
    /// 16,384.
    pub max_peers: usize,
    /// A peer with which nothing has been under way for so long is forgotten; when it or this end speaks again, keys are
    /// agreed on anew. At least 10 ms. Default 300 s.
    pub peer_idle: Duration,
    /// Bytes kept of messages for which no receive is posted yet. A message beyond them, and those its sender has posted
    /// after it, wait at the sender until a receive is posted or there is room. Default 64 MiB.
    pub unexpected_bytes: usize,
    /// Receives that messages of one peer may be on their way into at a time, 1 to 32,768; further messages of it wait at
    /// their sender. So no peer that begins messages and never ends them takes all receives that are for anybody, if more
    /// are posted. Default 1,024.
    pub receives_a_peer: usize,
    /// TCP connections of the side channel at a time, 1 to 65,536; the one used least recently makes room. Default
    /// 4,096.
    pub side_channels: usize,
    /// A TCP connection that was not used for so long is closed, and made anew when needed. Default 10 s.
    pub side_idle: Duration,
    /// Bytes that may wait for a TCP connection; beyond them it counts as broken. 1 KiB to 1 GiB, default 4 MiB.
    pub side_buffer_bytes: usize,
}

impl RdmConfig {
    /// Paths unless said otherwise: the paper's three or four.
    pub const DEFAULT_PATHS: u16 = 4;

    /// Scheme unless said otherwise: ERD with congestion control for each destination, of which the paper has none.
    pub const DEFAULT_SCHEME: &str = "erd";

    /// The defaults: those of [`DeviceConfig::new`], but four paths and the scheme `erd`.
    pub fn new(bind: SocketAddr) -> Self {
        RdmConfig::of(DeviceConfig::new(bind))
    }

    /// An endpoint on loopback, unprotected: for tests and examples in one machine. Bound to another address it does not
    /// open, unless [`DeviceConfig::unprotected`] says that it may.
    pub fn loopback() -> Self {
        RdmConfig::of(DeviceConfig::loopback())
    }

    /// With the sockets, loop and protection of `device`.
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

    /// Names the first field that is wrong.
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
    fn what_is_wrong_is_named_with_what_is_allowed() {
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
        assert!(open_to_all.starts_with("bind is 0.0.0.0:0, which others can send to"), "{open_to_all}");
        assert_eq!(wrong(|c| c.side_channels = 0), "side_channels is 0; allowed: 1 to 65536");
        assert_eq!(
            wrong(|c| c.device.scheme = "udmp".into()),
            "scheme \"udmp\" is one of connections; of datagrams there are: erd, erd-uncontrolled"
        );
        let none = wrong(|c| c.device.scheme = "edr".into());
        assert!(none.starts_with("there is no scheme \"edr\"; did you mean \"erd\"?"), "{none}");
    }
}
