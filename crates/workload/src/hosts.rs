//! Hosts in a configuration: by number, by name, or by a pattern of names.

use std::collections::BTreeMap;

use pathweave_units::suggestion;
use serde::{Deserialize, Serialize};

use crate::env::WorkloadEnv;

/// Hosts: a list of numbers, names and patterns, or one pattern.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged, expecting = "expected a list of hosts (numbers, names, patterns), or one pattern")]
pub enum HostList {
    /// Hosts with this name or with names that match this pattern, in order of their numbers.
    Pattern(String),
    /// Hosts in the order of the list.
    List(Vec<HostRef>),
}

/// Host by its number in the workload, or hosts by a name or a pattern of names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged, expecting = "expected the number of a host, a name or a pattern of names")]
pub enum HostRef {
    /// Number of a host.
    Number(u32),
    /// Name, or pattern: `*` any letters, `?` one letter, `[0-15]` a number.
    Pattern(String),
}

impl Default for HostList {
    fn default() -> Self {
        HostList::List(Vec::new())
    }
}

impl From<Vec<u32>> for HostList {
    fn from(numbers: Vec<u32>) -> Self {
        HostList::List(numbers.into_iter().map(HostRef::Number).collect())
    }
}

impl From<&str> for HostList {
    fn from(pattern: &str) -> Self {
        HostList::Pattern(pattern.to_owned())
    }
}

/// Pattern that cannot be resolved, and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownHosts {
    /// Text of the pattern.
    pub pattern: String,
    /// Reason, with the nearest name if there is one.
    pub allowed: String,
}

impl HostList {
    /// Returns true for the empty list.
    pub fn is_empty(&self) -> bool {
        matches!(self, HostList::List(list) if list.is_empty())
    }

    /// Returns the numbers of the hosts, in the order of the list. A pattern stands for its hosts in order of their
    /// numbers. Numbers in the list are not checked.
    ///
    /// # Errors
    /// No host of the environment has a name that a pattern stands for.
    pub fn numbers(&self, env: &WorkloadEnv) -> Result<Vec<u32>, UnknownHosts> {
        match self {
            HostList::Pattern(pattern) => env.hosts_matching(pattern),
            HostList::List(list) => {
                let mut numbers = Vec::with_capacity(list.len());
                for host in list {
                    match host {
                        HostRef::Number(number) => numbers.push(*number),
                        HostRef::Pattern(pattern) => numbers.extend(env.hosts_matching(pattern)?),
                    }
                }
                Ok(numbers)
            }
        }
    }
}

impl WorkloadEnv {
    /// Returns the hosts of the environment whose names match a pattern, in order of their numbers; at least one.
    pub(crate) fn hosts_matching(&self, pattern: &str) -> Result<Vec<u32>, UnknownHosts> {
        let unknown = |allowed: String| UnknownHosts { pattern: format!("\"{pattern}\""), allowed };
        let Some(topology) = &self.topology else {
            return Err(unknown("no host has a name here; expected host numbers".to_owned()));
        };
        let found = topology.hosts_matching(pattern).map_err(|why| match why {
            pathweave_topo::TopoError::UnknownName { nearest, known, .. } => match nearest.as_deref() {
                None => unknown(format!("no host has such a name; there are {known}")),
                nearest => unknown(format!("no host has such a name{}", suggestion(nearest))),
            },
            pathweave_topo::TopoError::Pattern(why) => unknown(format!("no pattern: {}", why.what)),
            other => unknown(format!("no host: {other}")),
        })?;
        if self.members.is_empty() {
            return Ok(found.into_iter().map(|host| host.0).collect());
        }
        let number_of: BTreeMap<u32, u32> = self.members.iter().copied().zip(0..).collect();
        let mut numbers: Vec<u32> =
            found.into_iter().filter_map(|host| number_of.get(&host.0).copied()).collect();
        numbers.sort_unstable();
        match numbers.is_empty() {
            false => Ok(numbers),
            true => {
                let name = |host: Option<&u32>| {
                    host.map_or(String::new(), |&host| {
                        topology.node_name(pathweave_topo::NodeId(host)).into()
                    })
                };
                let (first, last) = (name(self.members.first()), name(self.members.last()));
                Err(unknown(format!("no host of the pool has such a name; it has {first} to {last}")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use pathweave_topo::TopologyConfig;
    use pathweave_units::Rate;
    use serde_json::json;

    use super::*;

    /// Makes two servers of four GPUs.
    fn env() -> WorkloadEnv {
        let config: TopologyConfig = serde_json::from_value(json!({
            "kind": "cluster", "servers": 2, "attach": "server", "server": {"gpus": 4}, "scale_out": {"kind": "star", "hosts": 8}
        }))
        .unwrap();
        let topology = Some(Arc::new(config.build(Path::new("")).unwrap()));
        WorkloadEnv { topology, ..WorkloadEnv::new(8, Rate::from_gbps(100)) }
    }

    fn list(value: serde_json::Value) -> HostList {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn numbers_names_and_patterns_may_be_mixed() {
        let mixed = list(json!(["srv1.gpu[2-3]", 0, "srv0.gpu3"]));
        assert_eq!(mixed.numbers(&env()), Ok(vec![6, 7, 0, 3]));
        assert_eq!(list(json!("srv*.gpu0")).numbers(&env()), Ok(vec![0, 4]));
        assert_eq!(serde_json::to_value(&mixed).unwrap(), json!(["srv1.gpu[2-3]", 0, "srv0.gpu3"]));
        assert!(list(json!([])).is_empty() && !mixed.is_empty());
    }

    /// In a pool, a pattern stands for hosts of the pool, by their numbers there.
    #[test]
    fn a_pattern_in_a_pool_stands_for_its_hosts() {
        let pool = env().of_members(&[7, 5, 1]);
        assert_eq!(list(json!("srv1.*")).numbers(&pool), Ok(vec![0, 1]));
        let error = list(json!("srv0.gpu0")).numbers(&pool).unwrap_err();
        assert_eq!(error.allowed, "no host of the pool has such a name; it has srv1.gpu3 to srv0.gpu1");
    }

    #[test]
    fn what_stands_for_nothing_is_named() {
        let error = |text: &str| HostList::from(text).numbers(&env()).unwrap_err();
        assert_eq!(error("srv[0-1].gpx*").allowed, "no host has such a name; did you mean \"srv0.gpu0\"?");
        assert_eq!(error("srv[0.gpu*").allowed, "no pattern: \"[\" has no \"]\"");
        let nameless = WorkloadEnv::new(8, Rate::from_gbps(100));
        assert!(
            HostList::from("a").numbers(&nameless).unwrap_err().allowed.contains("expected host numbers")
        );
    }
}
