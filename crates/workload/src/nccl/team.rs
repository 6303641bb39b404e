//! Ranks of a communicator, by the server that each is in.

use std::collections::{BTreeMap, BTreeSet};

use pathweave_topo::{ScaleUp, Servers, Topology};
use pathweave_units::{HostId, Rate};

use super::gpu::Gpu;
use super::local_nics::LocalNics;
use super::system::{Cpu, System};
use crate::collective::BadPlan;

/// Connection of the GPUs of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inside {
    /// Nothing joins them: each GPU counts as a server.
    Nothing,
    /// A switch, such as NVSwitch.
    Switch,
    /// Links between pairs of GPUs.
    Links,
}

/// Ranks of a communicator. All servers have equally many.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Team {
    /// Ranks of each server, in the order of their GPUs.
    servers: Vec<Vec<usize>>,
    /// Server of each rank, and the rank's number there.
    places: Vec<(usize, usize)>,
    /// NICs of a server that are beside its ranks. Servers with more use as many.
    nics: usize,
    /// GPU beside each NIC of each server, by its number among the ranks there.
    entries: Vec<Vec<usize>>,
    /// Rail of the NIC of each rank.
    rails: Vec<usize>,
    inside: Inside,
    system: System,
}

/// Network as a team sees it.
pub(crate) struct Site<'a> {
    pub(crate) topology: Option<&'a Topology>,
    /// Rate at which a host sends to the network.
    pub(crate) host_rate: Rate,
    pub(crate) gpu: Gpu,
    pub(crate) cpu: Option<Cpu>,
}

impl Team {
    /// Groups ranks by server. `hosts` are those of the ranks, in the fabric.
    ///
    /// # Errors
    /// If servers have different numbers of ranks.
    pub(crate) fn of(hosts: &[HostId], site: &Site<'_>) -> Result<Self, BadPlan> {
        let known = site.topology.and_then(|topology| Some((topology, topology.servers()?)));
        let scale_up = known.and_then(|(_, servers)| servers.any_scale_up());
        let mut of_domain: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (rank, &host) in hosts.iter().enumerate() {
            let domain = scale_up.map_or(host.0, |network| network.domain_of(host));
            of_domain.entry(domain).or_default().push(rank);
        }
        let mut servers: Vec<Vec<usize>> = of_domain.into_values().collect();
        servers.iter_mut().for_each(|ranks| ranks.sort_by_key(|&rank| hosts[rank]));
        let gpus = servers.first().map_or(0, Vec::len);
        if let Some(other) = servers.iter().find(|ranks| ranks.len() != gpus) {
            let value = format!("{} and {} GPUs a server", gpus, other.len());
            let allowed = "NCCL's channels are computed for servers with equally many GPUs of a group";
            return Err(("groups", value, allowed.to_owned()));
        }
        let inside = match scale_up {
            None => Inside::Nothing,
            Some(network) if network.chips() > 0 => Inside::Switch,
            Some(_) => Inside::Links,
        };
        let base = System::new(site.gpu, servers.len() as u32, gpus as u32);
        let local = known.map(|(topology, servers)| LocalNics::new(topology, servers));
        let entries_of = |ranks: &Vec<usize>| match local {
            Some(local) => local.entries(&ranks.iter().map(|&rank| hosts[rank]).collect::<Vec<_>>()),
            None => (0..gpus).collect(),
        };
        let entries: Vec<Vec<usize>> = servers.iter().map(entries_of).collect();
        let rails = hosts.iter().map(|&host| local.map_or(0, |local| local.rail(host))).collect();
        let nics = entries.iter().map(Vec::len).min().unwrap_or(0);
        let nic_rate = local.map_or(site.host_rate, LocalNics::rate);
        let system = System {
            nics: nics as u32,
            nic_rate,
            scale_up_gbs: scale_up.map_or(base.scale_up_gbs, scale_up_gbs),
            cpu: site.cpu.unwrap_or(base.cpu),
            ..base
        };
        let mut places = vec![(0, 0); hosts.len()];
        for (server, ranks) in servers.iter().enumerate() {
            ranks.iter().enumerate().for_each(|(gpu, &rank)| places[rank] = (server, gpu));
        }
        Ok(Team { servers, places, nics, entries, rails, inside, system })
    }

    pub(crate) fn system(&self) -> &System {
        &self.system
    }
    pub(crate) fn inside(&self) -> Inside {
        self.inside
    }
    pub(crate) fn ranks(&self) -> usize {
        self.servers.len() * self.gpus()
    }
    /// Returns the number of servers.
    pub(crate) fn count(&self) -> usize {
        self.servers.len()
    }
    /// Returns the number of ranks of a server.
    pub(crate) fn gpus(&self) -> usize {
        self.servers[0].len()
    }
    /// Returns the rank of a GPU, by its number in its server. The number counts around.
    pub(crate) fn rank(&self, server: usize, gpu: usize) -> usize {
        self.servers[server][gpu % self.gpus()]
    }
    /// Returns the server of a rank, and the rank's number there.
    pub(crate) fn place(&self, rank: usize) -> (usize, usize) {
        self.places[rank]
    }
    /// Returns true if a scale-up network joins two ranks.
    pub(crate) fn same_server(&self, a: usize, b: usize) -> bool {
        self.places[a].0 == self.places[b].0
    }
    /// Returns the GPU of a channel's NIC, at which the channel enters a server and leaves it.
    pub(crate) fn entry(&self, server: usize, channel: u32) -> usize {
        self.entries[server][channel as usize % self.nics]
    }
    /// Returns the number of channels that enter at all GPUs at which channels enter.
    pub(crate) fn entries(&self) -> usize {
        let of_server = |nics: &Vec<usize>| nics[..self.nics].iter().collect::<BTreeSet<_>>().len();
        self.entries.iter().map(of_server).max().unwrap_or(0)
    }
    /// Returns the rank of a server that sends on the rail of a receiver for `src`: `src` itself if it is there or if no
    /// rank of its server is.
    pub(crate) fn on_rail_of(&self, src: usize, dst: usize) -> usize {
        let on_rail = |&rank: &usize| self.rails[rank] == self.rails[dst];
        if on_rail(&src) {
            return src;
        }
        self.servers[self.places[src].0].iter().copied().find(on_rail).unwrap_or(src)
    }
}

fn scale_up_gbs(network: &ScaleUp) -> f64 {
    network.rate_of(HostId(0)).as_bps() as f64 / 8e9
}

impl System {
    /// Returns the servers of a topology with GPUs of a model. The GPUs that one scale-up network joins count as one
    /// server.
    pub fn of_servers(topology: &Topology, servers: &Servers, gpu: Gpu) -> Self {
        let joined = servers.any_scale_up().map_or(servers.gpus(), ScaleUp::domain_size);
        let chassis = joined / servers.gpus();
        let local = LocalNics::new(topology, servers);
        let domain: Vec<HostId> = (0..joined).map(HostId).collect();
        System {
            nics: local.entries(&domain).len() as u32,
            nic_rate: local.rate(),
            scale_up_gbs: servers.any_scale_up().map_or(0.0, scale_up_gbs),
            ..System::new(gpu, servers.count() / chassis, joined)
        }
    }
}
