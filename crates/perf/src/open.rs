//! Opens devices and connections, with error messages for the user.

use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use pathweave_bypass::{Carrier, CarrierError};
use pathweave_datapath::{ConfigError, ConnectError, Device, DeviceConfig, OpenError, queue_pairs_of};

use crate::connection::{Bundle, Member};
use crate::console::{Console, Failure, Note};

/// Opens a device over a carrier, and notes on the console if the carrier is not UDP sockets.
///
/// # Errors
/// The device or the carrier cannot be opened, in the words of the options.
pub(crate) fn open(
    config: DeviceConfig,
    carrier: &Carrier,
    console: &dyn Console,
) -> Result<Device, Failure> {
    let opened = pathweave_bypass::open(config, carrier).map_err(|why| match why {
        CarrierError::Device(why) => open_error(why),
        CarrierError::Xdp(why) => Failure::Input(format!("--backend af-xdp: {why}")),
        CarrierError::Dpdk(why) => Failure::Input(format!("--backend dpdk: {why}")),
    })?;
    if let Some(words) = opened.description {
        console.note(Note::Remark(&format!("note: packets go over {words}")));
    }
    Ok(opened.device)
}

/// Translates an error of opening a device into the words of the options.
pub(crate) fn open_error(why: OpenError) -> Failure {
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

/// Connects to a peer with as many queue pairs as the scheme divides a flow over, and bundles them.
///
/// # Errors
/// A connection cannot be established; the text says why.
pub(crate) fn connect(
    device: &Device,
    (peer, others): (SocketAddr, &[SocketAddr]),
    scheme: &str,
    hello: &[u8],
) -> Result<Bundle, Failure> {
    let of = queue_pairs_of(scheme).map_err(|why| wrong_setting(&why))?;
    let tag = RandomState::new().hash_one(std::process::id());
    let connect = |index| {
        let said = if of == 1 { Vec::new() } else { Member { tag, index, count: of }.encode() };
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

/// Notes on the console that the connection has fewer paths or shorter packets than were asked for.
pub(crate) fn note_less(connection: &Bundle, wanted: &DeviceConfig, console: &dyn Console) {
    let (paths, payload) = (connection.info().paths, connection.info().mtu_payload);
    if paths < wanted.paths {
        let why = "because the server has no more (--paths)";
        console.note(Note::Remark(&format!("note: {paths} paths instead of {}, {why}", wanted.paths)));
    }
    if payload < wanted.mtu_payload {
        let why = "because that of the server is smaller";
        let wanted = wanted.mtu_payload;
        console.note(Note::Remark(&format!(
            "note: the payload of a packet is {payload} bytes, not the {wanted} of this --mtu, {why}"
        )));
    }
}

/// Returns the unspecified address with port 0, in the address family of `peer`.
pub fn any_port_for(peer: SocketAddr) -> SocketAddr {
    match peer {
        SocketAddr::V4(_) => SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
        SocketAddr::V6(_) => SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0),
    }
}
