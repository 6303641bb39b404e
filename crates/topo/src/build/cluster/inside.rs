//! Scale-up networks whose messages are packets: their switches and links in the graph of a cluster.
//!
//! The chips of a switch are switches of the network, and the links of a full mesh join GPUs. In all other networks GPUs
//! forward: each has a router, which is a switch with the links of the GPU.

use pathweave_units::{Duration, HostId, Rate};

use crate::graph::{Link, NodeId, Switch};
use crate::scale_up::{PacketNodes, ScaleUp};

/// Delay between a GPU and its router, which are one chip.
const TO_ROUTER: Duration = Duration::from_ps(1);

/// Returns the number of links of a domain.
pub(super) fn links_of_domain(network: &ScaleUp) -> u32 {
    let to_routers = match network.packet_nodes() {
        PacketNodes::Routers => network.domain_size(),
        PacketNodes::Chips | PacketNodes::None => 0,
    };
    to_routers + network.links_of_chips().len() as u32 / 2
}

/// Adds the switches and links of all domains to a cluster of `hosts` GPUs, of which a server has `gpus`. With chips, the
/// latency of a message is divided among the links to and from a chip. Otherwise each link between two GPUs has it.
pub(super) fn add(
    network: &ScaleUp,
    (hosts, gpus): (u32, u32),
    switches: &mut Vec<Switch>,
    links: &mut Vec<Link>,
) {
    let tier = switches.iter().map(|switch| switch.tier).max().unwrap_or(0).saturating_add(1);
    for domain in 0..hosts / network.domain_size() {
        let first_switch = hosts + switches.len() as u32;
        let of_domain = (0..network.packet_switches()).map(|number| Switch {
            name: name(network, gpus, domain, number),
            tier,
            group: None,
        });
        switches.extend(of_domain);
        add_links(network, domain, first_switch, links);
    }
}

/// Returns the name of a switch of a domain.
fn name(network: &ScaleUp, gpus: u32, domain: u32, number: u32) -> String {
    match network.packet_nodes() {
        PacketNodes::Routers => {
            let gpu = domain * network.domain_size() + number;
            format!("srv{}.router{}", gpu / gpus, gpu % gpus)
        }
        PacketNodes::Chips | PacketNodes::None => {
            format!("{}{domain}.chip{number}", network.prefix(gpus))
        }
    }
}

fn add_links(network: &ScaleUp, domain: u32, first_switch: u32, links: &mut Vec<Link>) {
    let size = network.domain_size();
    let first_gpu = domain * size;
    let mut add = |a: u32, b: u32, rate: Rate, delay: Duration| {
        links.push(Link { a: NodeId(a), b: NodeId(b), rate, delay, error_rate: 0.0 });
    };
    if network.packet_nodes() == PacketNodes::Routers {
        for gpu in 0..size {
            add(first_gpu + gpu, first_switch + gpu, network.rate_of(HostId(gpu)), TO_ROUTER);
        }
    }
    for link in network.links_of_chips().into_iter().filter(|link| link.from < link.to) {
        match network.packet_nodes() {
            PacketNodes::Routers => {
                add(first_switch + link.from, first_switch + link.to, link.rate, network.delay());
            }
            PacketNodes::None => add(first_gpu + link.from, first_gpu + link.to, link.rate, network.delay()),
            PacketNodes::Chips => {
                let half = Duration::from_ps((network.delay().as_ps() / 2).max(1));
                add(first_gpu + link.from, first_switch + link.to - size, link.rate, half);
            }
        }
    }
}
