//! Pools: sets of hosts for workloads, such as the jobs of several tenants.

use pathweave_workload::{HostList, HostRef};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::validate::out_of_range;
use crate::text::{Diagnostic, FieldPath, closest_name};

/// Set of hosts for workloads that select it with `pool`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a number of hosts, hosts by name, or a table")]
pub enum Pool {
    /// Number of hosts, drawn with the seed.
    Count(u32),
    /// Hosts whose names match this pattern.
    Pattern(String),
    /// Hosts by number, name or pattern. Workloads number them in this order.
    List(Vec<HostRef>),
    /// Hosts chosen by a rule.
    Placed(PlacedPool),
}

/// Pool whose hosts are chosen by a rule, or that shares hosts with other pools.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlacedPool {
    /// Number of hosts, or a list of numbers, names and patterns, or a pattern such as "srv[0-3].gpu*". Default: those
    /// of `servers`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<PoolHosts>,
    /// Number of whole servers of a cluster. Set either `hosts` or `servers`. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<u32>,
    /// Rule by which `servers`, or a number of `hosts`, are chosen among those that no other pool has. Default
    /// "random".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<PoolPlacement>,
    /// Hosts among which the rule chooses: a list of numbers, names and patterns, or a pattern. Default: all hosts.
    #[serde(default, skip_serializing_if = "HostList::is_empty")]
    pub within: HostList,
    /// Names of pools that may have the same hosts, if hosts are named. Default: none; that pools have a host in common
    /// is an error.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overlaps: Vec<String>,
}

/// Hosts of a pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a number of hosts, or hosts by name")]
pub enum PoolHosts {
    /// Number of hosts.
    Count(u32),
    /// Hosts whose names match this pattern.
    Pattern(String),
    /// Hosts by number, name or pattern.
    List(Vec<HostRef>),
}

/// Rule by which the hosts of a pool are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PoolPlacement {
    /// Hosts or servers are drawn with the seed.
    #[default]
    Random,
    /// The first free hosts or servers, in order of their numbers: a job stays within few leaves.
    Packed,
    /// Units take turns: a job has hosts or servers of as many units as possible. A unit consists of the servers of a
    /// cluster whose first GPUs share a leaf, and in other networks of the hosts of a leaf.
    Spread,
}

/// Size of a pool whose hosts are not named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PoolSize {
    Hosts(u32),
    Servers(u32),
}

impl Pool {
    /// Returns the named hosts, if hosts are named.
    pub(crate) fn named(&self) -> Option<HostList> {
        match self {
            Pool::Pattern(pattern) => Some(HostList::Pattern(pattern.clone())),
            Pool::List(list) => Some(HostList::List(list.clone())),
            Pool::Placed(PlacedPool { hosts: Some(PoolHosts::Pattern(pattern)), .. }) => {
                Some(HostList::Pattern(pattern.clone()))
            }
            Pool::Placed(PlacedPool { hosts: Some(PoolHosts::List(list)), .. }) => {
                Some(HostList::List(list.clone()))
            }
            Pool::Count(_) | Pool::Placed(_) => None,
        }
    }

    /// Returns the size, if hosts are not named.
    pub(crate) fn size(&self) -> Option<PoolSize> {
        match self {
            Pool::Count(hosts) | Pool::Placed(PlacedPool { hosts: Some(PoolHosts::Count(hosts)), .. }) => {
                Some(PoolSize::Hosts(*hosts))
            }
            Pool::Placed(placed) if placed.hosts.is_none() => placed.servers.map(PoolSize::Servers),
            _ => None,
        }
    }

    pub(crate) fn placed(&self) -> Option<&PlacedPool> {
        match self {
            Pool::Placed(placed) => Some(placed),
            _ => None,
        }
    }

    /// Returns true if this pool allows hosts in common with the other.
    pub(crate) fn may_overlap(&self, other: &str) -> bool {
        self.placed().is_some_and(|placed| placed.overlaps.iter().any(|name| name == other))
    }

    /// Returns the errors that the configuration alone shows. `path` is the field of the pool, `own` its name.
    pub(crate) fn errors<'a>(
        &self,
        path: &FieldPath,
        own: &str,
        names: impl Iterator<Item = &'a String> + Clone,
    ) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        match self {
            Pool::Count(0) => found.push(out_of_range(path.clone(), "0", "1 host or more")),
            Pool::List(list) if list.is_empty() => {
                found.push(out_of_range(path.clone(), "[]", "1 host or more"));
            }
            Pool::Placed(placed) => placed.errors(path, own, names, &mut found),
            _ => {}
        }
        found
    }
}

impl PlacedPool {
    fn errors<'a>(
        &self,
        path: &FieldPath,
        own: &str,
        names: impl Iterator<Item = &'a String> + Clone,
        found: &mut Vec<Diagnostic>,
    ) {
        match (&self.hosts, self.servers) {
            (Some(_), Some(servers)) => {
                let allowed = "absent beside `hosts`";
                found.push(out_of_range(path.key("servers"), &servers.to_string(), allowed));
            }
            (None, None) => {
                let finding = Diagnostic::new(path.clone(), format!("pool \"{own}\" has no hosts"));
                found.push(finding.allowed("set `hosts` or `servers`"));
            }
            (Some(PoolHosts::Count(0)), None) => {
                found.push(out_of_range(path.key("hosts"), "0", "1 host or more"));
            }
            (Some(PoolHosts::List(list)), None) if list.is_empty() => {
                found.push(out_of_range(path.key("hosts"), "[]", "1 host or more"));
            }
            (None, Some(0)) => found.push(out_of_range(path.key("servers"), "0", "1 server or more")),
            _ => {}
        }
        if matches!(self.hosts, Some(PoolHosts::Pattern(_) | PoolHosts::List(_))) {
            for (is_set, field) in
                [(self.placement.is_some(), "placement"), (!self.within.is_empty(), "within")]
            {
                if is_set {
                    let message = format!("`{field}` has no effect on hosts that are named");
                    found.push(Diagnostic::new(path.key(field), message).help("leave it out"));
                }
            }
        } else if !self.overlaps.is_empty() {
            let message = "`overlaps` has no effect on a pool whose hosts are chosen among free ones";
            found
                .push(Diagnostic::new(path.key("overlaps"), message).help("name the hosts, or leave it out"));
        }
        for (i, other) in self.overlaps.iter().enumerate() {
            if other == own || !names.clone().any(|name| name == other) {
                let others = || names.clone().filter(|name| *name != own).map(String::as_str);
                let finding = Diagnostic::new(
                    path.key("overlaps").index(i),
                    format!("no other pool is named \"{other}\""),
                );
                let known = others().collect::<Vec<_>>().join(", ");
                found.push(finding.allowed(format!("pools: {known}")).suggest(closest_name(other, others())));
            }
        }
    }
}
