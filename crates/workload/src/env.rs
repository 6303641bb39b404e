//! Environment of a generator: the fabric as far as workloads depend on it, and the seed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use pathweave_topo::Topology;
use pathweave_units::{HostId, Rate};

use crate::fold::Fold;
use crate::nccl::Gpu;

/// The fabric as far as workloads depend on it, and the seed.
#[derive(Clone, Debug)]
pub struct WorkloadEnv {
    /// Number of hosts. The hosts are `0..hosts`.
    pub hosts: u32,
    /// Rate at which the slowest host can send, over all its ports together.
    pub host_rate: Rate,
    /// Rack (ToR switch) of each host, numbered from 0. Empty if all are in one rack.
    pub racks: Vec<u32>,
    /// Pod of each host, numbered from 0. Empty if all are in one pod.
    pub pods: Vec<u32>,
    /// Data centre of each host, numbered from 0. Empty if all are in one data centre.
    pub sites: Vec<u32>,
    /// Total rate of all links from racks upwards, one direction. `None` if there are none.
    pub rack_uplinks: Option<Rate>,
    /// Seed of the run.
    pub seed: u64,
    /// Folder to which paths in the configuration are relative.
    pub base_dir: PathBuf,
    /// Host of each identifier in flow lists, if an imported topology has its own numbers for nodes. `None`
    /// if identifiers are host numbers.
    pub node_ids: Option<BTreeMap<u64, HostId>>,
    /// Hosts of the fabric that hosts `0..hosts` correspond to, if the workload uses a subset. Empty if it
    /// uses all.
    pub members: Vec<u32>,
    /// Network whose host names the configuration may use. `None`: hosts have numbers only.
    pub topology: Option<Arc<Topology>>,
    /// Model of the GPUs of the hosts, if the scenario names one.
    pub gpu: Option<Gpu>,
    /// Permission to leave out ranks that other ranks represent.
    pub fold: Fold,
}

impl WorkloadEnv {
    /// Makes an environment of `hosts` hosts in one rack.
    pub fn new(hosts: u32, host_rate: Rate) -> Self {
        WorkloadEnv {
            hosts,
            host_rate,
            racks: Vec::new(),
            pods: Vec::new(),
            sites: Vec::new(),
            rack_uplinks: None,
            seed: 0,
            base_dir: PathBuf::new(),
            node_ids: None,
            members: Vec::new(),
            topology: None,
            gpu: None,
            fold: Fold::Never("no setting requires it".to_owned()),
        }
    }
    /// Returns the environment of a workload that uses only these hosts. Its hosts are numbered from 0 in
    /// their order. Rates stay those of the whole fabric.
    #[must_use]
    pub fn of_members(&self, members: &[u32]) -> Self {
        let of = |list: &[u32]| match list {
            [] => Vec::new(),
            list => members.iter().map(|&host| list[host as usize]).collect(),
        };
        WorkloadEnv {
            hosts: members.len() as u32,
            racks: of(&self.racks),
            pods: of(&self.pods),
            sites: of(&self.sites),
            node_ids: None,
            members: members.to_vec(),
            fold: Fold::Never("the workload runs in a pool".to_owned()),
            ..self.clone()
        }
    }
    /// Returns the host of the fabric that a workload's host corresponds to.
    pub(crate) fn member(&self, host: u32) -> HostId {
        HostId(self.members.get(host as usize).copied().unwrap_or(host))
    }
    /// Returns the rate at which each host can send to the network, in their order. Hosts of the workload that share a
    /// NIC share its rate evenly.
    pub(crate) fn send_rates(&self) -> Vec<Rate> {
        let Some(topology) = &self.topology else { return vec![self.host_rate; self.hosts as usize] };
        let nics: Vec<_> = (0..self.hosts).map(|host| topology.shared_nic(self.member(host))).collect();
        let mut sharers: BTreeMap<usize, u64> = BTreeMap::new();
        nics.iter().flatten().for_each(|&(nic, _)| *sharers.entry(nic).or_default() += 1);
        let of = |(host, nic): (u32, &Option<(usize, Rate)>)| {
            let own = topology.scale_out_rate(self.member(host));
            nic.map_or(own, |(nic, rate)| own.min(Rate::from_bps(rate.as_bps() / sharers[&nic])))
        };
        (0..).zip(&nics).map(of).collect()
    }
    /// Returns the rack of a host.
    pub fn rack(&self, host: u32) -> u32 {
        self.racks.get(host as usize).copied().unwrap_or(0)
    }
    /// Returns the pod of a host.
    pub fn pod(&self, host: u32) -> u32 {
        self.pods.get(host as usize).copied().unwrap_or(0)
    }
    /// Returns the data centre of a host.
    pub fn site(&self, host: u32) -> u32 {
        self.sites.get(host as usize).copied().unwrap_or(0)
    }
    /// Returns the host that `id` denotes in a flow list.
    pub(crate) fn host_of(&self, id: u64) -> Result<HostId, String> {
        let host = match &self.node_ids {
            None => u32::try_from(id).ok().filter(|&h| h < self.hosts).map(HostId),
            Some(map) => map.get(&id).copied(),
        };
        host.ok_or_else(|| {
            match self.node_ids.as_ref().map(|map| (map.first_key_value(), map.last_key_value())) {
                Some((Some((first, _)), Some((last, _)))) => {
                    format!("no host has this id; ids of hosts in the topology are from {first} to {last}")
                }
                _ => format!("no host has this number; hosts are 0 to {}", self.hosts.saturating_sub(1)),
            }
        })
    }
}
