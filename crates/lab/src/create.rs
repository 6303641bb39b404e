//! Creation of a planned lab, and rollback after a failure.

use std::io;
use std::os::fd::AsFd;
use std::time::Instant;

use pathweave_linux::netlink::{Netlink, SystemError};
use pathweave_topo::{NodeId, Routing};
use pathweave_units::{Duration, Rate};

use crate::error::{LabError, WithContext};
use crate::label::LinkEnd;
use crate::os::device::{self, NewEnd, index_of_port};
use crate::os::netns::{self, Namespace};
use crate::os::queue::{self, TokenBucket};
use crate::os::route::{self, NextHop};
use crate::os::sysctl::{self, HashSeeds};
use crate::plan::{NodePlan, NodeRole, Plan};
use crate::programs::Programs;
use crate::settings::{Settings, SuperPackets};

/// Queue of a host's port in bytes. It never fills, because sockets block their sender long before.
const HOST_QUEUE_BYTES: u64 = 64_000_000;

/// Result of creating a lab.
pub(crate) struct CreatedLab {
    /// Notes on differences from the network that the lab represents.
    pub(crate) notes: Vec<String>,
    /// Programs at its ports, if the kernel lets this process load any.
    pub(crate) programs: Option<Programs>,
}

/// Creates all namespaces, links, queues and routes. `stop` is called repeatedly. Once it returns true, everything
/// created is removed again, as after an error.
pub(crate) fn make(plan: &Plan, stop: &dyn Fn() -> bool) -> Result<CreatedLab, LabError> {
    netns::prepare_folder()?;
    let mut made = Vec::new();
    let first = match build(plan, &mut made, stop) {
        Ok(made) => return Ok(made),
        Err(first) => first,
    };
    let failures: Vec<LabError> = made.iter().filter_map(|namespace| namespace.remove().err()).collect();
    Err(match failures.into_iter().next() {
        None => first,
        Some(then) => LabError::Rollback { first: Box::new(first), then: Box::new(then) },
    })
}

fn build(plan: &Plan, made: &mut Vec<Namespace>, stop: &dyn Fn() -> bool) -> Result<CreatedLab, LabError> {
    let go_on = || if stop() { Err(LabError::Interrupted) } else { Ok(()) };
    let nodes = || plan.nodes().iter().zip((0..).map(NodeId));
    let mut seeds = HashSeeds::default();
    for (node, id) in nodes() {
        go_on()?;
        let namespace = Namespace::named(&node.namespace);
        if !namespace.create()? {
            return Err(LabError::Exists(plan.lab().to_string()));
        }
        made.push(namespace.clone());
        seeds = seeds.max(namespace.inside(|| sysctl::set_up(node.role))??);
        let netlink = &mut namespace.netlink()?;
        prepare_loopback(netlink, plan, node, id).context(|| format!("set up the node {}", node.name))?;
    }
    for (node, _) in nodes() {
        go_on()?;
        connect(plan, node)?;
    }
    let programs = Programs::load(plan);
    for (node, _) in nodes() {
        go_on()?;
        prepare_ports(plan, node, programs.as_ref().ok())?;
    }
    let routing = Routing::all_links_up(plan.topology());
    for (_, id) in nodes() {
        go_on()?;
        set_routes(plan, &routing, id)?;
    }
    for (node, _) in nodes() {
        wait_until_ready(node, &go_on)?;
    }
    Ok(CreatedLab { notes: notes(plan, seeds, programs.as_ref().err()), programs: programs.ok() })
}

fn prepare_loopback(
    netlink: &mut Netlink,
    plan: &Plan,
    node: &NodePlan,
    id: NodeId,
) -> Result<(), SystemError> {
    device::set_alias(netlink, device::LOOPBACK, &plan.node_label(id).to_string())?;
    device::set_up(netlink, device::LOOPBACK)?;
    device::add_address(netlink, device::LOOPBACK, node.address)
}

/// Creates the links whose first end is this node.
fn connect(plan: &Plan, node: &NodePlan) -> Result<(), LabError> {
    let netlink = &mut Namespace::named(&node.namespace).netlink()?;
    let Settings { mtu_bytes, super_packets, .. } = *plan.settings();
    for (port, number) in node.ports.iter().zip(0..).filter(|(port, _)| port.end == LinkEnd::A) {
        let peer = plan.node(port.peer);
        let doing = || format!("connect {} with {}", node.name, peer.name);
        let far_namespace = Namespace::named(&peer.namespace).open().context(doing)?;
        let near = NewEnd { port: number, device: &port.device, mac: port.mac };
        let far_device = &peer.ports[usize::from(port.peer_port)].device;
        let far = NewEnd { port: port.peer_port, device: far_device, mac: port.peer_mac };
        device::create_pair(netlink, &near, &far, far_namespace.as_fd(), mtu_bytes, super_packets)
            .context(doing)?;
    }
    Ok(())
}

fn prepare_ports(plan: &Plan, node: &NodePlan, programs: Option<&Programs>) -> Result<(), LabError> {
    /// Port on which programs find a host's address, since many ignore the loopback device.
    const FIRST: u16 = 0;
    let netlink = &mut Namespace::named(&node.namespace).netlink()?;
    for (port, number) in node.ports.iter().zip(0..) {
        let index = index_of_port(number);
        let work = |netlink: &mut Netlink| {
            device::set_alias(netlink, index, &plan.link_label(port).to_string())?;
            device::set_up(netlink, index)?;
            if node.role == NodeRole::Host && number == FIRST {
                device::add_subnet_address(netlink, index, node.address)?;
            }
            queue::install_token_bucket(netlink, index, &token_bucket(plan, node, port.rate))?;
            route::set_neighbour(netlink, index, plan.node(port.peer).address, port.peer_mac)
        };
        work(netlink).context(|| format!("set up port {} of {}", port.device, node.name))?;
        if let Some(programs) = programs {
            programs.attach(netlink, plan, node, number)?;
        }
    }
    Ok(())
}

/// Waits until all ports of a node transmit packets. The kernel detects with some delay that both ends of a link are
/// up, and drops all packets until then.
fn wait_until_ready(node: &NodePlan, go_on: &dyn Fn() -> Result<(), LabError>) -> Result<(), LabError> {
    const POLL: std::time::Duration = std::time::Duration::from_millis(2);
    const PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);
    let netlink = &mut Namespace::named(&node.namespace).netlink()?;
    let since = Instant::now();
    loop {
        go_on()?;
        let devices = device::list(netlink).context(|| format!("look at the ports of {}", node.name))?;
        let ready = devices.iter().filter(|device| device::is_port(device) && device.ready).count();
        if ready == node.ports.len() {
            return Ok(());
        }
        if since.elapsed() > PATIENCE {
            let why = format!("{ready} of {} ports of {} came up within 10 s", node.ports.len(), node.name);
            return Err(LabError::Kernel(why));
        }
        std::thread::sleep(POLL);
    }
}

/// Returns the queue in front of a node's port with this rate.
pub(crate) fn token_bucket(plan: &Plan, node: &NodePlan, rate: Rate) -> TokenBucket {
    let settings = plan.settings();
    let queue_bytes = match node.role {
        NodeRole::Host => HOST_QUEUE_BYTES,
        NodeRole::Switch { .. } => settings.queue_bytes,
    };
    let shape = TokenBucket::new(rate, settings.mtu_bytes, queue_bytes);
    match settings.super_packets {
        SuperPackets::On => shape.with_super_packets(),
        SuperPackets::Off => shape,
    }
}

/// Sets the routes of a node. The route to an unreachable host stays unchanged: packets to it are lost on the failed
/// link, as in the simulator. Without the route, the kernel would return an error that no real fabric returns.
pub(crate) fn set_routes(plan: &Plan, routing: &Routing, id: NodeId) -> Result<(), LabError> {
    let node = plan.node(id);
    let netlink = &mut Namespace::named(&node.namespace).netlink()?;
    let source = match node.role {
        NodeRole::Host => Some(node.address),
        NodeRole::Switch { .. } => None,
    };
    for planned in plan.routes(routing, id).iter().filter(|planned| !planned.ports.is_empty()) {
        let hops = planned.ports.iter().map(|&port| NextHop {
            device: index_of_port(port),
            gateway: plan.node(node.ports[usize::from(port)].peer).address,
        });
        let hops: Vec<NextHop> = hops.collect();
        route::set_route(netlink, (planned.to, planned.prefix), &hops, source)
            .context(|| format!("set the route from {} to {}", node.name, planned.to))?;
    }
    Ok(())
}

/// Returns notes on the differences between this lab and the network it represents.
fn notes(plan: &Plan, seeds: HashSeeds, no_programs: Option<&io::Error>) -> Vec<String> {
    let links = plan.topology().links();
    let mut notes = Vec::new();
    if plan.topology().scale_up().is_some() {
        notes.push(
            "scale-up networks are not emulated: messages inside a server take the NICs of its GPUs"
                .to_owned(),
        );
    }
    let longest = links.iter().map(|link| link.delay).max().unwrap_or(Duration::ZERO);
    if longest > Duration::ZERO {
        notes.push(format!("delays of links (up to {longest}) are not emulated"));
    }
    if seeds == HashSeeds::Shared && plan.topology().switches().iter().any(|switch| switch.tier > 0) {
        notes.push(
            "this kernel is older than Linux 6.11: all switches hash alike, so that in more than two tiers some \
             paths are never taken"
                .to_owned(),
        );
    }
    if let Some(why) = no_programs {
        notes.push(format!(
            "this process may load no BPF programs ({why}): connected sockets choose paths by a random number of \
             their own instead of their ports (unconnected ones, as pathweave has, do not)"
        ));
        if plan.settings().marking.is_some() {
            notes.push("for the same reason switches mark nothing".to_owned());
        }
        if links.iter().any(|link| link.error_rate > 0.0) {
            notes.push("for the same reason links lose nothing at random".to_owned());
        }
    }
    notes
}
