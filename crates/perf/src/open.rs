//! Opens devices and connections, with error messages for the user.

use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use std::time::Duration;

use pathweave_datapath::{
    ConfigError, ConnectError, Device, DeviceConfig, OpenError, Waiting, queue_pairs_of,
};
use pathweave_dpdk::DpdkConfig;
use pathweave_xdp::{XdpBackend, XdpConfig};

use crate::connection::{Bundle, Member};
use crate::console::{Console, Failure, Note};

/// Carrier of packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Carrier {
    /// UDP sockets.
    #[default]
    Udp,
    /// AF_XDP on a network interface.
    AfXdp {
        /// Name of the interface.
        interface: String,
        /// Behaviour if AF_XDP is not available.
        otherwise: Otherwise,
    },
    /// DPDK port.
    Dpdk(PortOfDpdk),
}

/// DPDK port. The device's configuration supplies the rest: addresses, paths, packet length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortOfDpdk {
    /// DPDK device behind the port.
    pub device: pathweave_dpdk::Device,
    /// Address of the port with its network. Required if the kernel does not know the port.
    pub local: Option<pathweave_dpdk::Local>,
    /// Gateway to other networks.
    pub gateway: Option<IpAddr>,
    /// Size of the largest IP packet in bytes.
    pub mtu_bytes: u32,
    /// Memory in which packets are stored.
    pub huge_pages: pathweave_dpdk::HugePages,
}

/// Behaviour if AF_XDP is not available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Otherwise {
    /// Fails.
    Fail,
    /// Uses UDP sockets, and reports the reason in a remark.
    Udp,
}

/// Time for which an end that never sleeps polls the driver for packets.
const BUSY_POLL: Duration = Duration::from_micros(20);

/// # Errors
/// If the device cannot be opened, with a message for the user.
pub(crate) fn open(
    config: DeviceConfig,
    carrier: &Carrier,
    console: &dyn Console,
) -> Result<Device, Failure> {
    let (device, words) = open_device(config, carrier)?;
    words.iter().for_each(|words| console.note(Note::Remark(&format!("note: packets go over {words}"))));
    Ok(device)
}

/// Opens a device over a carrier. Returns a description of the carrier as well, unless it is plain UDP sockets.
///
/// # Errors
/// If the device cannot be opened, with a message for the user.
pub fn open_device(config: DeviceConfig, carrier: &Carrier) -> Result<(Device, Option<String>), Failure> {
    // Mistakes in the configuration are reported before deficiencies of the interface.
    config.validate().map_err(|why| wrong_setting(&why))?;
    match carrier {
        Carrier::Udp => Ok((Device::open(config).map_err(opening)?, None)),
        Carrier::AfXdp { interface, otherwise } => open_af_xdp(config, (interface, *otherwise)),
        Carrier::Dpdk(port) => open_dpdk(config, port),
    }
}

fn open_dpdk(config: DeviceConfig, port: &PortOfDpdk) -> Result<(Device, Option<String>), Failure> {
    let PortOfDpdk { device, local, gateway, mtu_bytes, huge_pages } = port.clone();
    let port = DpdkConfig { device, udp: config.udp(), local, gateway, mtu_bytes, huge_pages };
    let opened =
        pathweave_dpdk::open(&port).map_err(|why| Failure::Input(format!("--backend dpdk: {why}")))?;
    Ok((Device::with_backend(config, opened.backend).map_err(opening)?, Some(opened.description)))
}

fn open_af_xdp(
    config: DeviceConfig,
    (interface, otherwise): (&str, Otherwise),
) -> Result<(Device, Option<String>), Failure> {
    let mut bypass = XdpConfig::new(interface, config.udp());
    bypass.busy_poll = (config.waiting == Waiting::Busy).then_some(BUSY_POLL);
    match XdpBackend::open(&bypass) {
        Ok(backend) => {
            let words = backend.describe();
            Ok((Device::with_backend(config, backend).map_err(opening)?, Some(words)))
        }
        Err(why) if otherwise == Otherwise::Udp => {
            Ok((Device::open(config).map_err(opening)?, Some(format!("UDP sockets, for {why}"))))
        }
        Err(why) => Err(Failure::Input(format!("--backend af-xdp: {why}"))),
    }
}

/// Converts an error of opening a device to a message for the user.
pub(crate) fn opening(why: OpenError) -> Failure {
    match why {
        OpenError::Config(why) => wrong_setting(&why),
        why => Failure::Input(why.to_string()),
    }
}

fn wrong_setting(why: &ConfigError) -> Failure {
    Failure::Input(match why {
        ConfigError::UnknownScheme { .. }
        | ConfigError::NotConnections { .. }
        | ConfigError::NotDatagrams { .. } => format!("--scheme: {why}"),
        why => why.to_string(),
    })
}

/// Opens the number of queue pairs over which the scheme divides a flow, as one connection.
///
/// # Errors
/// If no connection can be established.
pub(crate) fn connect(
    device: &Device,
    (peer, others): (SocketAddr, &[SocketAddr]),
    scheme: &str,
    hello: &[u8],
) -> Result<Bundle, Failure> {
    let of = queue_pairs_of(scheme).map_err(|why| wrong_setting(&why))?;
    let tag = RandomState::new().hash_one(std::process::id());
    let connect = |index| {
        let said = if of == 1 { Vec::new() } else { Member { tag, index, of }.encode() };
        device.connect_any(peer, others, scheme, &[&said, hello].concat()).map_err(|why| match why {
            ConnectError::Config(why) => wrong_setting(&why),
            ConnectError::LinkMtu { .. } => {
                Failure::Input(format!("{why} (with --mtu, which is that of the link)"))
            }
            why => Failure::Input(why.to_string()),
        })
    };
    let connections = (0..of).map(connect).collect::<Result<_, _>>()?;
    Ok(Bundle::new(device, connections))
}

/// Adds a remark if there are fewer paths than requested.
pub(crate) fn note_paths(connection: &Bundle, wanted: u16, console: &dyn Console) {
    let has = connection.info().paths;
    if has < wanted {
        let why = "because the server has no more (--paths)";
        console.note(Note::Remark(&format!("note: {has} paths instead of {wanted}, {why}")));
    }
}

/// Returns the unspecified address with any port, in the address family of `peer`.
pub fn any_port_for(peer: SocketAddr) -> SocketAddr {
    match peer {
        SocketAddr::V4(_) => SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
        SocketAddr::V6(_) => SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0),
    }
}
