//! What a generator knows about the fabric.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pathweave_units::{HostId, Rate};

/// The fabric as far as workloads care, and the seed.
#[derive(Clone, Debug)]
pub struct WorkloadEnv {
    /// Number of hosts; they are `0..hosts`.
    pub hosts: u32,
    /// Rate at which a host can send, all its ports together.
    pub host_rate: Rate,
    /// Rack (ToR switch) of each host, numbered from 0. Empty: all in one rack.
    pub racks: Vec<u32>,
    /// Pod of each host, numbered from 0. Empty: all in one pod.
    pub pods: Vec<u32>,
    /// Rate of all links from racks upwards together, one direction. `None` if there are none.
    pub rack_uplinks: Option<Rate>,
    /// Seed of the run.
    pub seed: u64,
    /// Paths in the configuration are relative to this folder.
    pub base_dir: PathBuf,
    /// Host identifiers in flow lists and the hosts they mean, where an imported topology numbers its nodes
    /// in its own way. `None`: identifiers are host numbers.
    pub node_ids: Option<BTreeMap<u64, HostId>>,
}

impl WorkloadEnv {
    /// `hosts` hosts in one rack.
    pub fn new(hosts: u32, host_rate: Rate) -> Self {
        WorkloadEnv {
            hosts,
            host_rate,
            racks: Vec::new(),
            pods: Vec::new(),
            rack_uplinks: None,
            seed: 0,
            base_dir: PathBuf::new(),
            node_ids: None,
        }
    }
    /// Rack of a host.
    pub fn rack(&self, host: u32) -> u32 {
        self.racks.get(host as usize).copied().unwrap_or(0)
    }
    /// Pod of a host.
    pub fn pod(&self, host: u32) -> u32 {
        self.pods.get(host as usize).copied().unwrap_or(0)
    }
    /// The host a flow list means by `id`.
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
                _ => format!("no such host; hosts are 0 to {}", self.hosts.saturating_sub(1)),
            }
        })
    }
}
