//! Interfaces that are used together, as the environment names them. The first one that is up is offered. The
//! others carry additional paths as soon as they are up.

use std::net::IpAddr;

use crate::interfaces::Interface;
use crate::settings::Where;

impl Where {
    /// Returns the interfaces of this host, and the named loopback addresses. All addresses of the loopback
    /// network are local, but the system lists only one.
    pub fn all(&self, interfaces: &[Interface]) -> Vec<Interface> {
        let mut all = interfaces.to_vec();
        let Where::Addresses(addresses) = self else { return all };
        for address in addresses.iter().filter(|address| address.is_loopback() && address.is_ipv4()) {
            let of = interfaces.iter().find(|other| other.address.is_loopback() && other.address.is_ipv4());
            if let Some(of) = of.filter(|_| !interfaces.iter().any(|other| other.address == *address)) {
                all.push(Interface { address: *address, ..of.clone() });
            }
        }
        all
    }

    /// Describes a named interface or address that does not exist.
    pub fn missing(&self, all: &[Interface]) -> Option<String> {
        match self {
            Where::Anywhere => None,
            Where::Interfaces(names) => {
                let missing = names.iter().find(|name| !all.iter().any(|other| other.name == **name))?;
                Some(format!("the name {missing} (PATHWEAVE_IFACE)"))
            }
            Where::Addresses(addresses) => {
                let missing = addresses.iter().find(|ip| !all.iter().any(|other| other.address == **ip))?;
                Some(format!("the address {missing} (PATHWEAVE_ADDRESS)"))
            }
        }
    }

    /// Returns true if an interface may be offered. Of several interfaces used together, that is the first
    /// one that is up, or the one with address `src` if the application names it.
    pub fn allows(&self, interface: &Interface, src: Option<IpAddr>, all: &[Interface]) -> bool {
        let is_first = match self {
            Where::Anywhere => true,
            Where::Interfaces(names) => {
                let is_up = |name: &&String| all.iter().any(|other| other.name == **name && other.is_up());
                names.iter().find(is_up) == Some(&interface.name)
            }
            Where::Addresses(addresses) => {
                let is_up = |ip: &&IpAddr| all.iter().any(|other| other.address == **ip && other.is_up());
                addresses.iter().find(is_up) == Some(&interface.address)
            }
        };
        (is_first || src == Some(interface.address)) && self.others(interface, all).is_some()
    }

    /// Returns the interfaces that are used together with this one. Returns `None` if it is not a named one,
    /// or if one of them has no address of its family.
    pub fn others(&self, interface: &Interface, all: &[Interface]) -> Option<Vec<Interface>> {
        let fits = |other: &&Interface| {
            other.is_routable() && other.address.is_ipv4() == interface.address.is_ipv4()
        };
        match self {
            Where::Anywhere => Some(Vec::new()),
            Where::Interfaces(names) => {
                names.contains(&interface.name).then_some(())?;
                let others = names.iter().filter(|name| **name != interface.name);
                others
                    .map(|name| all.iter().filter(fits).find(|other| other.name == *name).cloned())
                    .collect()
            }
            Where::Addresses(addresses) => {
                addresses.contains(&interface.address).then_some(())?;
                let others = addresses.iter().filter(|address| **address != interface.address);
                others.map(|ip| all.iter().filter(fits).find(|other| other.address == *ip).cloned()).collect()
            }
        }
    }
}
