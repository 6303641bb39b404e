//! Conversion of a question to offers: interfaces, addresses and capabilities.

use std::ffi::c_int;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};

use pathweave_units::Rate;
use thiserror::Error;

use super::check::check;
use super::limits::*;
use crate::abi::fabric::*;
use crate::settings::{Settings, Where};
use pathweave_door::Interface;

/// Hints of an application. Attributes are copies; their pointers are not followed, except for the values in
/// the fields beside them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hints {
    pub(crate) caps: u64,
    pub(crate) addr_format: u32,
    pub(crate) src: Option<SocketAddr>,
    pub(crate) dest: Option<SocketAddr>,
    pub(crate) tx: Option<TxAttr>,
    pub(crate) rx: Option<RxAttr>,
    pub(crate) ep: Option<EpAttr>,
    pub(crate) domain: Option<DomainHints>,
    pub(crate) fabric: Option<FabricHints>,
}

/// Hints about the domain.
#[derive(Clone, Debug)]
pub(crate) struct DomainHints {
    pub(crate) attr: DomainAttr,
    pub(crate) name: Option<String>,
    /// Memory registration mode of an open domain, if the hints contain one.
    pub(crate) open_mr_mode: Option<c_int>,
}

/// Hints about the fabric.
#[derive(Clone, Debug)]
pub(crate) struct FabricHints {
    pub(crate) attr: FabricAttr,
    pub(crate) name: Option<String>,
    pub(crate) prov_name: Option<String>,
}

/// Arguments of `fi_getinfo`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Question {
    pub(crate) version: u32,
    pub(crate) node: Option<String>,
    pub(crate) service: Option<String>,
    pub(crate) flags: u64,
    pub(crate) hints: Option<Hints>,
}

/// Reason why there is no offer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum Refusal {
    /// The application asks for a capability that the provider lacks.
    #[error("{what} is {found}; offered: {allowed}")]
    Lacking { what: &'static str, found: String, allowed: String },
    /// No interface fits.
    #[error("no interface that is up has {0}")]
    NoInterface(String),
    /// A host or port name cannot be resolved.
    #[error("{0} does not resolve")]
    Unresolved(String),
    /// FI_SOURCE declares a local address, and there is none.
    #[error("FI_SOURCE needs a node or a service")]
    NoSource,
}

/// One answer, except the values that are the same in all answers.
#[derive(Clone, Debug)]
pub(crate) struct Offer {
    /// Interface; the first one, if several are used together.
    pub(crate) interface: Interface,
    /// Total rate of all interfaces that are used together, bit/s; zero if unknown.
    pub(crate) bits_per_second: u64,
    pub(crate) src: SocketAddr,
    pub(crate) dest: Option<SocketAddr>,
    pub(crate) caps: Capabilities,
}

/// Capabilities of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Capabilities {
    /// Capabilities of the whole, including those of both halves.
    pub(crate) whole: u64,
    /// Capabilities of the transmit half.
    pub(crate) tx: u64,
    /// Capabilities of the receive half.
    pub(crate) rx: u64,
}

impl Offer {
    pub(crate) fn addr_format(&self) -> u32 {
        if self.src.is_ipv4() { FI_SOCKADDR_IN } else { FI_SOCKADDR_IN6 }
    }
}

/// Addresses that a question names.
struct Ends {
    src: Option<SocketAddr>,
    dest: Option<SocketAddr>,
}

/// Returns the offers, best first.
///
/// # Errors
///
/// Returns the reason why there is no offer.
pub(crate) fn offers(
    question: &Question,
    settings: &Settings,
    interfaces: &[Interface],
) -> Result<Vec<Offer>, Refusal> {
    let hints = question.hints.clone().unwrap_or_default();
    check(&hints, question.version)?;
    let ends = ends(question, &hints)?;
    let caps = capabilities(&hints);
    let interfaces = settings.place.all(interfaces);
    if let Some(missing) = settings.place.missing(&interfaces) {
        return Err(Refusal::NoInterface(missing));
    }
    let mut found: Vec<Offer> = Vec::new();
    for interface in candidates(&hints, settings, &interfaces, &ends) {
        // Of several addresses of an interface in a subnet, or of several interfaces in it, only the first
        // one is offered. An interface is not offered again by its IPv6 address, because applications take
        // each offer for a separate link.
        let same = |offer: &Offer| {
            let known = &offer.interface;
            known.subnet() == interface.subnet()
                || known.name == interface.name && known.address.is_ipv4() != interface.address.is_ipv4()
        };
        if found.iter().any(same) {
            continue;
        }
        let port = ends.src.map_or(0, |src| src.port());
        let src = SocketAddr::new(interface.address, port);
        let others = settings.place.others(interface, &interfaces).unwrap_or_default();
        let rate = settings.rate(std::iter::once(interface).chain(&others));
        let bits_per_second = rate.map_or(0, Rate::as_bps);
        found.push(Offer { interface: interface.clone(), bits_per_second, src, dest: ends.dest, caps });
    }
    if found.is_empty() { Err(nothing_fits(&hints, settings, &ends)) } else { Ok(found) }
}

fn ends(question: &Question, hints: &Hints) -> Result<Ends, Refusal> {
    let named = question.node.is_some() || question.service.is_some();
    let is_source = question.flags & FI_SOURCE != 0;
    if is_source && !named {
        return Err(Refusal::NoSource);
    }
    let mut ends = Ends { src: hints.src, dest: hints.dest };
    if named {
        let family = family(hints);
        let address = resolve(question, family, is_source)?;
        if is_source {
            ends.src = Some(address);
        } else if question.node.is_some() {
            ends.dest = Some(address);
        } else {
            // A service without a node is a port of a peer on this host.
            ends.dest.get_or_insert(address);
        }
    }
    Ok(ends)
}

/// Returns the address family that is asked for, 4 or 6, or `None` for any.
fn family(hints: &Hints) -> Option<u8> {
    match hints.addr_format {
        FI_SOCKADDR_IN => Some(4),
        FI_SOCKADDR_IN6 => Some(6),
        _ => None,
    }
}

fn is_of(address: &IpAddr, family: Option<u8>) -> bool {
    family.is_none_or(|family| (family == 4) == address.is_ipv4())
}

fn resolve(question: &Question, family: Option<u8>, is_source: bool) -> Result<SocketAddr, Refusal> {
    let unresolved = |name: &str| Refusal::Unresolved(name.to_owned());
    let port: u16 = match question.service.as_deref() {
        Some(text) => text.parse().map_err(|_| unresolved(text))?,
        None => 0,
    };
    let Some(node) = question.node.as_deref() else {
        let any: IpAddr = match (family, is_source) {
            (Some(6), true) => Ipv6Addr::UNSPECIFIED.into(),
            (Some(6), false) => Ipv6Addr::LOCALHOST.into(),
            (_, true) => Ipv4Addr::UNSPECIFIED.into(),
            (_, false) => Ipv4Addr::LOCALHOST.into(),
        };
        return Ok(SocketAddr::new(any, port));
    };
    if question.flags & FI_NUMERICHOST != 0 {
        let address: IpAddr = node.parse().map_err(|_| unresolved(node))?;
        return if is_of(&address, family) {
            Ok(SocketAddr::new(address, port))
        } else {
            Err(unresolved(node))
        };
    }
    let found = (node, port).to_socket_addrs().map_err(|_| unresolved(node))?;
    let mut fitting: Vec<SocketAddr> = found.filter(|address| is_of(&address.ip(), family)).collect();
    fitting.sort_by_key(SocketAddr::is_ipv6);
    fitting.first().copied().ok_or_else(|| unresolved(node))
}

/// Returns the interfaces that may be offered, IPv4 before IPv6. Loopback is among them only if no other
/// interface is, or if it is asked for.
fn candidates<'a>(
    hints: &'a Hints,
    settings: &'a Settings,
    interfaces: &'a [Interface],
    ends: &Ends,
) -> Vec<&'a Interface> {
    let domain_name = hints.domain.as_ref().and_then(|domain| domain.name.as_deref());
    let fabric_name = hints.fabric.as_ref().and_then(|fabric| fabric.name.as_deref());
    let family = ends.dest.or(ends.src).map(|end| if end.is_ipv4() { 4 } else { 6 }).or(family(hints));
    let src = ends.src.map(|src| src.ip()).filter(|src| !src.is_unspecified());
    let route = src.or_else(|| ends.dest.and_then(route_to));
    // Of several interfaces used together, any of them may have the address.
    let is_on_route = |interface: &Interface, address: IpAddr| {
        interface.address == address
            || src.is_none()
                && settings
                    .place
                    .others(interface, interfaces)
                    .is_some_and(|others| others.iter().any(|other| other.address == address))
    };
    let fits = |interface: &&Interface| {
        interface.is_routable()
            && interface.is_up()
            && is_of(&interface.address, family)
            && settings.place.allows(interface, src, interfaces)
            && domain_name.is_none_or(|name| interface.name == name)
            && fabric_name.is_none_or(|name| interface.subnet().to_string() == name)
            && route.is_none_or(|address| is_on_route(interface, address))
    };
    let mut found: Vec<&Interface> = interfaces.iter().filter(fits).collect();
    let loopback_is_meant = route.is_some()
        || domain_name.is_some()
        || fabric_name.is_some()
        || settings.place != Where::Anywhere;
    if !loopback_is_meant && found.iter().any(|interface| !interface.address.is_loopback()) {
        found.retain(|interface| !interface.address.is_loopback());
    }
    // In routed fabrics, a host may have its address on loopback as well, while packets leave by the other
    // interface.
    found.sort_by_key(|interface| (interface.address.is_ipv6(), interface.is_loopback()));
    found
}

/// Returns the local address from which the kernel's routes reach `dest`.
fn route_to(dest: SocketAddr) -> Option<IpAddr> {
    let any: SocketAddr =
        if dest.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() };
    let socket = UdpSocket::bind(any).ok()?;
    // The connect sends no packet. Port 0 is not a valid destination.
    socket.connect(SocketAddr::new(dest.ip(), dest.port().max(1))).ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}

fn nothing_fits(hints: &Hints, settings: &Settings, ends: &Ends) -> Refusal {
    let mut wanted = Vec::new();
    match &settings.place {
        Where::Anywhere => {}
        Where::Interfaces(names) => wanted.push(format!("the name {} (PATHWEAVE_IFACE)", names.join(" or "))),
        Where::Addresses(addresses) => {
            let addresses: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
            wanted.push(format!("the address {} (PATHWEAVE_ADDRESS)", addresses.join(" or ")));
        }
    }
    if let Some(name) = hints.domain.as_ref().and_then(|domain| domain.name.as_deref()) {
        wanted.push(format!("the domain's name {name}"));
    }
    if let Some(name) = hints.fabric.as_ref().and_then(|fabric| fabric.name.as_deref()) {
        wanted.push(format!("the fabric's subnet {name}"));
    }
    wanted.extend(ends.src.map(|src| format!("the source address {}", src.ip())));
    wanted.extend(ends.dest.map(|dest| format!("a route to {}", dest.ip())));
    if wanted.is_empty() {
        wanted.push("an address".into());
    }
    Refusal::NoInterface(wanted.join(", "))
}

/// Returns the capabilities of an answer: the requested ones and those they imply. A half that names none has
/// those of the whole; a whole that names none has those of its halves.
fn capabilities(hints: &Hints) -> Capabilities {
    let whole = if hints.caps == 0 { ALL } else { completed(hints.caps) };
    let tx = half(hints.tx.map_or(0, |tx| tx.caps), TX_CAPS, whole);
    let rx = half(hints.rx.map_or(0, |rx| rx.caps), RX_CAPS, whole);
    // A receive half with multi-receive buffers adds them to the whole.
    let free = FI_MULTI_RECV & !hints.caps;
    let named = if hints.caps == 0 { 0 } else { whole & !free };
    Capabilities { whole: named | tx | rx | DOMAIN_CAPS, tx, rx }
}

/// Adds the capabilities that the requested ones imply.
fn completed(asked: u64) -> u64 {
    let mut caps = asked & (PRIMARY | ON_REQUEST | FREE) | FI_LOCAL_COMM | FI_REMOTE_COMM;
    if caps & (FI_MSG | FI_TAGGED) != 0 && caps & MESSAGE_DIRECTIONS == 0 {
        caps |= MESSAGE_DIRECTIONS;
    }
    if caps & (FI_RMA | FI_ATOMIC) != 0 && caps & MEMORY_DIRECTIONS == 0 {
        caps |= MEMORY_DIRECTIONS;
    }
    if caps & FI_MSG != 0 {
        caps |= FI_MULTI_RECV;
    }
    caps
}

/// Returns the capabilities of a half that names these. A half without directions has those of the whole. It
/// has domain capabilities only if it names them, because libfabric's test of `fi_getinfo` treats anything
/// else as an error.
fn half(named: u64, ours: u64, whole: u64) -> u64 {
    if named == 0 {
        return whole & ours & !DOMAIN_CAPS;
    }
    let mut caps = named;
    for (services, directions) in
        [(FI_MSG | FI_TAGGED, MESSAGE_DIRECTIONS), (FI_RMA | FI_ATOMIC, MEMORY_DIRECTIONS)]
    {
        if caps & services != 0 && caps & directions == 0 {
            caps |= whole & directions;
        }
    }
    if caps & FI_MSG != 0 {
        caps |= FI_MULTI_RECV;
    }
    caps & ours
}
