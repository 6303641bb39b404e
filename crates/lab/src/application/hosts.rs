//! Hosts of a lab as applications know them: names, addresses, and host files.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use pathweave_topo::NodeId;
use pathweave_units::{HostId, Rate};

use crate::plan::Plan;

/// Longest host name: the limit of a label of a domain name (RFC 1035, section 2.3.4), and of Linux.
const LONGEST: usize = 63;

/// Host with the name that its programs see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostName {
    /// Node of the host.
    pub node: NodeId,
    /// Host name: the topology's name, with a hyphen for each character that host names do not allow.
    pub name: String,
    /// Name in the topology.
    pub of_topology: String,
    /// Address of the host.
    pub address: Ipv4Addr,
}

impl HostName {
    /// Returns true if `name` denotes the host: its name, its name in the topology, or its address, optionally with a
    /// user in front as for ssh.
    pub fn matches_name(&self, name: &str) -> bool {
        let name = name.rsplit_once('@').map_or(name, |(_, host)| host);
        name == self.name || name == self.of_topology || name.parse() == Ok(self.address)
    }
}

/// Returns the hosts of a lab in the topology's order, with distinct names.
pub fn host_names(plan: &Plan) -> Vec<HostName> {
    let mut taken = BTreeSet::new();
    let hosts = (0..plan.topology().hosts()).map(|host| NodeId::from(HostId(host)));
    let named = hosts.map(|node| {
        let planned = plan.node(node);
        let wanted = sanitized(&planned.name);
        // Names in the topology are distinct, so a number is needed only if characters were replaced or cut.
        let mut name = wanted.clone();
        let mut number = 2;
        while !taken.insert(name.clone()) {
            let ending = format!("-{number}");
            name = format!("{}{ending}", &wanted[..wanted.len().min(LONGEST - ending.len())]);
            number += 1;
        }
        HostName { node, name, of_topology: planned.name.clone(), address: planned.address }
    });
    named.collect()
}

/// Converts a name to a valid host name: letters, digits and hyphens, beginning with a letter, because a number would
/// be taken for an address. Dots are replaced, because some launchers cut names at a dot.
fn sanitized(name: &str) -> String {
    let kept = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
    let name: String = kept.take(LONGEST).collect();
    let name = name.trim_matches('-');
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return name.to_owned();
    }
    let mut name = format!("host-{name}");
    name.truncate(LONGEST);
    name.trim_end_matches('-').to_owned()
}

/// Returns the content of `/etc/hosts` for the hosts of a lab.
pub(super) fn names_and_addresses(hosts: &[HostName]) -> String {
    let lines = hosts.iter().map(|host| format!("{} {}\n", host.address, host.name));
    format!("127.0.0.1 localhost\n{}", lines.collect::<String>())
}

/// Returns a hostfile for Open MPI and PRRTE. Every host gets one process before any gets a second one.
pub(super) fn for_open_mpi(hosts: &[HostName]) -> String {
    hosts.iter().map(|host| format!("{} slots=1\n", host.name)).collect()
}

/// Returns a host file for Hydra, the launcher of MPICH and Intel MPI.
pub(super) fn for_hydra(hosts: &[HostName]) -> String {
    hosts.iter().map(|host| format!("{}:1\n", host.name)).collect()
}

/// Returns the largest rate that a host can send over all its ports. All hosts of an application need the same value,
/// because some launchers give the first host's environment to all.
pub(super) fn line_rate(plan: &Plan) -> Rate {
    let hosts = (0..plan.topology().hosts()).map(|host| plan.node(HostId(host).into()));
    let rates =
        hosts.map(|host| host.ports.iter().map(|port| port.rate).fold(Rate::ZERO, Rate::saturating_add));
    rates.max().unwrap_or(Rate::ZERO)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::settings::{RateScale, Settings};
    use pathweave_topo::{Build, LeafSpine, Topology, parse_topology_file};

    fn plan(topology: Topology) -> Plan {
        Plan::new("t".parse().unwrap(), topology, Settings::new(RateScale::FULL)).unwrap()
    }

    fn file(names: &[&str]) -> Plan {
        let mut text =
            format!("host_names = {names:?}\nrate = \"10Mbps\"\ndelay = \"1us\"\n[[switch]]\nname = \"s\"\n");
        text.extend(names.iter().map(|name| format!("[[link]]\na = {name:?}\nb = \"s\"\n")));
        plan(parse_topology_file("f.toml", &text).unwrap())
    }

    #[test]
    fn the_files_of_a_small_lab() {
        let plan = plan(LeafSpine::new(2, 2, 1).build(Path::new(".")).unwrap());
        let hosts = host_names(&plan);
        assert_eq!(names_and_addresses(&hosts), "127.0.0.1 localhost\n10.1.0.1 host0\n10.1.0.2 host1\n");
        assert_eq!(for_open_mpi(&hosts), "host0 slots=1\nhost1 slots=1\n");
        assert_eq!(for_hydra(&hosts), "host0:1\nhost1:1\n");
        assert_eq!(line_rate(&plan), Rate::from_gbps(100));
    }

    #[test]
    fn names_are_host_names_and_differ() {
        let (long, other) = ("x".repeat(64), format!("{}y", "x".repeat(63)));
        let plan = file(&["gpu/0", "gpu:0", "gpu-0", "7", "-", "a.b", &long, &other]);
        let names: Vec<String> = host_names(&plan).into_iter().map(|host| host.name).collect();
        assert_eq!(names[..6], ["gpu-0", "gpu-0-2", "gpu-0-3", "host-7", "host", "a-b"]);
        assert_eq!(names[6..], ["x".repeat(63), format!("{}-2", "x".repeat(61))]);
    }

    #[test]
    fn a_host_is_called_by_names_and_address() {
        let plan = file(&["gpu/0", "gpu/1"]);
        let hosts = host_names(&plan);
        for name in ["gpu-1", "gpu/1", "10.1.0.2", "root@gpu-1"] {
            let found: Vec<&str> =
                hosts.iter().filter(|host| host.matches_name(name)).map(|host| &host.name[..]).collect();
            assert_eq!(found, ["gpu-1"], "{name}");
        }
        assert!(!hosts.iter().any(|host| host.matches_name("gpu") || host.matches_name("10.1.0.3")));
    }

    #[test]
    fn hosts_with_several_ports_send_over_all_of_them() {
        let text = "hosts = 2\nrate = \"25Mbps\"\ndelay = \"1us\"\n[[switch]]\nname = \"s\"\n\
            [[link]]\na = \"host0\"\nb = \"s\"\ncount = 4\n[[link]]\na = \"host1\"\nb = \"s\"\n";
        assert_eq!(line_rate(&plan(parse_topology_file("f.toml", text).unwrap())), Rate::from_mbps(100));
    }
}
