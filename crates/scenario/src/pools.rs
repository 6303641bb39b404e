//! Choice of the hosts of pools: named hosts first, then whole servers, then numbers of hosts; pools of each of these
//! in the order of their names.

use std::collections::BTreeMap;

use pathweave_topo::{NodeId, Topology};
use pathweave_units::Rng;
use pathweave_workload::{HostList, WorkloadEnv};

use crate::model::pool::PoolSize;
use crate::model::validate::out_of_range;
use crate::model::{Pool, PoolPlacement, Scenario};
use crate::text::{Diagnostic, FieldPath};

/// Returns the hosts of each pool, in the order in which its workloads number them.
///
/// # Errors
/// Hosts do not exist, belong to two pools that may not overlap, or are too few.
pub(crate) fn members<'a>(
    scenario: &'a Scenario,
    env: &WorkloadEnv,
) -> Result<BTreeMap<&'a String, Vec<u32>>, Diagnostic> {
    let mut placer = Placer::new(scenario, env);
    for (name, pool) in &scenario.pools {
        if let Some(hosts) = pool.named() {
            placer.name(name, pool, &hosts)?;
        }
    }
    let sized = || scenario.pools.iter().filter_map(|(name, pool)| Some((name, pool, pool.size()?)));
    for (name, pool, size) in sized() {
        if let PoolSize::Servers(count) = size {
            placer.place_servers(name, pool, count as usize)?;
        }
    }
    for (name, pool, size) in sized() {
        if let PoolSize::Hosts(count) = size {
            placer.place_hosts(name, pool, count as usize)?;
        }
    }
    Ok(placer.members)
}

/// Assignment of hosts to pools.
struct Placer<'a, 'e> {
    scenario: &'a Scenario,
    env: &'e WorkloadEnv,
    /// Pools that have each host.
    owners: Vec<Vec<&'a String>>,
    members: BTreeMap<&'a String, Vec<u32>>,
}

impl<'a, 'e> Placer<'a, 'e> {
    fn new(scenario: &'a Scenario, env: &'e WorkloadEnv) -> Self {
        Placer { scenario, env, owners: vec![Vec::new(); env.hosts as usize], members: BTreeMap::new() }
    }

    fn give(&mut self, name: &'a String, members: Vec<u32>) {
        members.iter().for_each(|&host| self.owners[host as usize].push(name));
        self.members.insert(name, members);
    }

    /// Gives named hosts to a pool.
    fn name(&mut self, name: &'a String, pool: &Pool, hosts: &HostList) -> Result<(), Diagnostic> {
        let path = match pool {
            Pool::Placed(_) => field(name).key("hosts"),
            _ => field(name),
        };
        let numbers = resolve(&path, hosts, self.env)?;
        let mut seen = vec![false; self.env.hosts as usize];
        for &host in &numbers {
            if std::mem::replace(&mut seen[host as usize], true) {
                let allowed = format!("expected each host once; {} is in it twice", self.host_name(host));
                return Err(out_of_range(path, &text_of(hosts), &allowed));
            }
            let forbids = |other: &&&String| {
                let theirs = &self.scenario.pools[**other];
                !pool.may_overlap(other) && !theirs.may_overlap(name)
            };
            if let Some(other) = self.owners[host as usize].iter().find(forbids) {
                let message = format!("pools \"{other}\" and \"{name}\" both have {}", self.host_name(host));
                let help = format!("choose other hosts, or allow it with overlaps = [\"{other}\"]");
                return Err(Diagnostic::new(path, message).help(help));
            }
        }
        self.give(name, numbers);
        Ok(())
    }

    /// Gives whole servers to a pool.
    fn place_servers(&mut self, name: &'a String, pool: &Pool, count: usize) -> Result<(), Diagnostic> {
        let path = field(name).key("servers");
        let Some((topology, servers)) = self.env.topology.as_deref().and_then(|t| Some((t, t.servers()?)))
        else {
            let allowed = "absent: only kind = \"cluster\" has servers";
            return Err(out_of_range(path, &count.to_string(), allowed));
        };
        let allowed = self.within(name, pool)?;
        let gpus = servers.gpus();
        let hosts_of = |server: u32| server * gpus..(server + 1) * gpus;
        let is_free = |server: &u32| {
            hosts_of(*server).all(|host| allowed[host as usize] && self.owners[host as usize].is_empty())
        };
        let mut order: Vec<u32> = (0..servers.count()).collect();
        if placement(pool) == PoolPlacement::Random {
            Rng::for_component(self.scenario.seed, "pools of servers", 0).shuffle(&mut order);
        }
        let free: Vec<u32> = order.into_iter().filter(is_free).collect();
        let mut chosen = match placement(pool) {
            PoolPlacement::Spread => in_turns(&free, |server| unit_of(topology, server * gpus)),
            PoolPlacement::Random | PoolPlacement::Packed => free,
        };
        if chosen.len() < count {
            let (free, where_) = (chosen.len(), scope(pool));
            let allowed = format!("expected at most {free}, the whole servers that are free{where_}");
            return Err(out_of_range(path, &count.to_string(), &allowed));
        }
        chosen.truncate(count);
        chosen.sort_unstable();
        self.give(name, chosen.into_iter().flat_map(hosts_of).collect());
        Ok(())
    }

    /// Gives a number of hosts to a pool.
    fn place_hosts(&mut self, name: &'a String, pool: &Pool, count: usize) -> Result<(), Diagnostic> {
        let allowed = self.within(name, pool)?;
        let mut order: Vec<u32> = (0..self.env.hosts).collect();
        if placement(pool) == PoolPlacement::Random {
            Rng::for_component(self.scenario.seed, "pools", 0).shuffle(&mut order);
        }
        order.retain(|&host| allowed[host as usize] && self.owners[host as usize].is_empty());
        if let (PoolPlacement::Spread, Some(topology)) = (placement(pool), self.env.topology.as_deref()) {
            order = in_turns(&order, |host| unit_of(topology, host));
        }
        if order.len() < count {
            return Err(self.too_few(name, pool, order.len(), count));
        }
        order.truncate(count);
        order.sort_unstable();
        self.give(name, order);
        Ok(())
    }

    fn too_few(&self, name: &str, pool: &Pool, free: usize, count: usize) -> Diagnostic {
        let of_pool = |pool: &Pool| match pool.size() {
            Some(PoolSize::Hosts(hosts)) => u64::from(hosts),
            _ => 0,
        };
        let others: u64 = self.members.values().map(|members| members.len() as u64).sum();
        let to_come = self.scenario.pools.iter().filter(|(name, _)| !self.members.contains_key(name));
        let all = others + to_come.map(|(_, pool)| of_pool(pool)).sum::<u64>();
        if all > u64::from(self.env.hosts) {
            let message = format!("pools of {all} hosts together, but the topology has {}", self.env.hosts);
            return Diagnostic::new(field(name), message);
        }
        let message = format!("pool \"{name}\" needs {count} hosts, but {free} are free{}", scope(pool));
        Diagnostic::new(field(name), message)
    }

    /// Returns for each host whether the pool may choose it.
    fn within(&self, name: &str, pool: &Pool) -> Result<Vec<bool>, Diagnostic> {
        let within = pool.placed().map(|placed| &placed.within).filter(|within| !within.is_empty());
        let Some(within) = within else { return Ok(vec![true; self.env.hosts as usize]) };
        let mut allowed = vec![false; self.env.hosts as usize];
        for host in resolve(&field(name).key("within"), within, self.env)? {
            allowed[host as usize] = true;
        }
        Ok(allowed)
    }

    fn host_name(&self, host: u32) -> String {
        let name = self.env.topology.as_ref().map(|topology| topology.node_name(NodeId(host)).into_owned());
        name.unwrap_or_else(|| format!("host {host}"))
    }
}

fn field(pool: &str) -> FieldPath {
    FieldPath::root().key("pools").key(pool)
}

fn placement(pool: &Pool) -> PoolPlacement {
    pool.placed().and_then(|placed| placed.placement).unwrap_or_default()
}

/// Returns the end of a message about the hosts among which a pool chooses.
fn scope(pool: &Pool) -> &'static str {
    match pool.placed().is_some_and(|placed| !placed.within.is_empty()) {
        true => " in `within`",
        false => "",
    }
}

fn text_of(hosts: &HostList) -> String {
    serde_json::to_string(hosts).unwrap_or_default()
}

/// Returns the numbers of hosts, all of which exist.
fn resolve(path: &FieldPath, hosts: &HostList, env: &WorkloadEnv) -> Result<Vec<u32>, Diagnostic> {
    let numbers = hosts.numbers(env).map_err(|why| out_of_range(path.clone(), &why.pattern, &why.allowed))?;
    match numbers.iter().find(|&&host| host >= env.hosts) {
        None => Ok(numbers),
        Some(beyond) => {
            let allowed = format!("0 to {}", env.hosts.saturating_sub(1));
            Err(out_of_range(path.clone(), &beyond.to_string(), &allowed))
        }
    }
}

/// Returns the things in an order in which units take turns. Units come in order of their first thing.
fn in_turns(things: &[u32], unit_of: impl Fn(u32) -> NodeId) -> Vec<u32> {
    let mut number_of: BTreeMap<NodeId, usize> = BTreeMap::new();
    let mut units: Vec<Vec<u32>> = Vec::new();
    for &thing in things {
        let number = *number_of.entry(unit_of(thing)).or_insert(units.len());
        if number == units.len() {
            units.push(Vec::new());
        }
        units[number].push(thing);
    }
    let rounds = units.iter().map(Vec::len).max().unwrap_or(0);
    (0..rounds).flat_map(|round| units.iter().filter_map(move |unit| unit.get(round).copied())).collect()
}

/// Returns the leaf of a host, or that of the first GPU of its server.
fn unit_of(topology: &Topology, host: u32) -> NodeId {
    let first = topology.servers().map_or(host, |servers| host / servers.gpus() * servers.gpus());
    let mut node = NodeId(first);
    // Between a GPU and its leaf there may be a NIC or a PCIe link.
    loop {
        let is_part = |switch: usize| topology.servers().is_some_and(|servers| servers.has_part(switch));
        let up = topology.ports(node).iter().find(|port| !topology.is_host(port.peer));
        let Some(up) = up else { return node };
        node = up.peer;
        match topology.switch_index(node) {
            Some(switch) if is_part(switch) => {}
            _ => return node,
        }
    }
}

/// Returns a note for each pool whose hosts are chosen by a rule.
pub(crate) fn notes(
    scenario: &Scenario,
    topology: &Topology,
    members: &BTreeMap<&String, Vec<u32>>,
) -> Vec<String> {
    /// Number of ranges that are shown.
    const SHOWN: usize = 4;
    let mut notes = Vec::new();
    for (name, hosts) in members {
        let pool = &scenario.pools[*name];
        if pool.placed().is_none() || pool.size().is_none() {
            continue;
        }
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for &host in hosts {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == host => *last = host,
                _ => ranges.push((host, host)),
            }
        }
        let host = |host: u32| topology.node_name(NodeId(host));
        let texts: Vec<String> = ranges
            .iter()
            .take(SHOWN)
            .map(|&(first, last)| match first == last {
                true => host(first).into_owned(),
                false => format!("{} to {}", host(first), host(last)),
            })
            .collect();
        let more = if ranges.len() > SHOWN { ", and more" } else { "" };
        notes.push(format!("pool \"{name}\" has {}{more}", texts.join(", ")));
    }
    notes
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::load::{Changes, Loaded};
    use crate::workload_env::workload_env;

    /// Eight servers of two GPUs in two units of four: leaf 0 holds GPU 0 and leaf 1 GPU 1 of servers 0 to 3.
    const CLUSTER: &str = "
        [topology]
        kind = 'cluster'
        servers = 8
        unit = 4
        server = { gpus = 2 }
        scale_out = { kind = 'leaf-spine', leaves = 4, spines = 2, hosts_per_leaf = 4 }
        [[workload]]
        kind = 'permutation'
        size = '64KB'
    ";

    fn loaded(pools: &str) -> Result<Loaded, String> {
        let text = format!("[pools]\n{pools}\n{CLUSTER}");
        let read = Loaded::parse(&text, "test.toml", "", &Changes::default());
        read.map_err(|why| why.to_string())
    }

    fn placed(pools: &str) -> Result<BTreeMap<String, Vec<u32>>, String> {
        let loaded = loaded(pools)?;
        let topology = loaded.topology().map_err(|why| why.to_string())?;
        let config = &loaded.scenario.topology;
        let env = workload_env(config, &topology, loaded.scenario.seed, Path::new(""));
        let found = members(&loaded.scenario, &env);
        let found = found.map_err(|why| {
            let more = why.allowed.into_iter().chain(why.help).collect::<Vec<_>>().join("; ");
            format!("{}: {}: {more}", why.field, why.message)
        })?;
        Ok(found.into_iter().map(|(name, members)| (name.clone(), members)).collect())
    }

    fn of(pools: &str, name: &str) -> Vec<u32> {
        placed(pools).unwrap()[name].clone()
    }

    #[test]
    fn pools_name_hosts() {
        assert_eq!(of("a = 'srv[0-1].gpu*'", "a"), [0, 1, 2, 3]);
        assert_eq!(of("a = ['srv3.gpu1', 0]", "a"), [7, 0], "in the order of the list");
        assert_eq!(of("a = { hosts = 'srv*.gpu1' }", "a"), [1, 3, 5, 7, 9, 11, 13, 15]);
    }

    /// Server 0 is taken. Packed servers follow it; spread ones come from both units in turn: 1, 4, 2.
    #[test]
    fn whole_servers_are_packed_or_spread() {
        let with = |placement: &str, servers: u32| {
            let pools = format!("a = 'srv0.*'\nb = {{ servers = {servers}, placement = '{placement}' }}");
            of(&pools, "b")
        };
        assert_eq!(with("packed", 2), [2, 3, 4, 5]);
        assert_eq!(with("spread", 3), [2, 3, 4, 5, 8, 9]);
        let random = with("random", 3);
        assert!(random.len() == 6 && random.iter().all(|host| *host >= 2), "{random:?}");
        assert!(random.chunks(2).all(|server| server[0] % 2 == 0 && server[1] == server[0] + 1));
        assert_eq!(random, with("random", 3), "by seed");
    }

    #[test]
    fn hosts_are_packed_spread_or_drawn() {
        assert_eq!(of("a = { hosts = 4, placement = 'spread' }", "a"), [0, 1, 8, 9]);
        let packed = "a = { hosts = 3, placement = 'packed', within = 'srv[4-7].*' }\nb = 'srv4.gpu1'";
        assert_eq!(of(packed, "a"), [8, 10, 11]);
        let drawn = placed("x = 6\ny = 10").unwrap();
        assert_eq!(drawn, placed("x = { hosts = 6 }\ny = 10").unwrap());
        let mut all: Vec<u32> = drawn.into_values().flatten().collect();
        all.sort_unstable();
        assert_eq!(all, (0..16).collect::<Vec<_>>());
    }

    #[test]
    fn pools_overlap_only_where_it_is_allowed() {
        let error = placed("a = 'srv[0-1].*'\nb = ['srv5.gpu0', 'srv1.gpu1']").unwrap_err();
        assert_eq!(
            error,
            "pools.b: pools \"a\" and \"b\" both have srv1.gpu1: choose other hosts, or allow it with overlaps = [\"a\"]"
        );
        for pools in [
            "a = 'srv0.*'\nb = { hosts = 'srv0.*', overlaps = ['a'] }",
            "a = { hosts = 'srv0.*', overlaps = ['b'] }\nb = 'srv0.*'",
        ] {
            assert_eq!(of(pools, "a"), of(pools, "b"));
        }
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let error = |pools: &str| placed(pools).unwrap_err();
        assert!(
            error("a = 'srv[0-1].gpx*'").contains("did you mean \"srv0.gpu0\"?"),
            "{}",
            error("a = 'srv[0-1].gpx*'")
        );
        assert!(error("a = [16]").contains("allowed: 0 to 15"));
        assert!(error("a = [1, 'srv0.*']").contains("srv0.gpu1 is in it twice"));
        let whole = error("a = 'srv*.gpu0'\nb = { servers = 1 }");
        assert!(whole.contains("expected at most 0, the whole servers that are free"), "{whole}");
        let few = error("a = { hosts = 9, within = 'srv[0-3].*' }");
        assert!(few.contains("needs 9 hosts, but 8 are free in `within`"), "{few}");
        assert!(error("a = 10\nb = 7").contains("pools of 17 hosts together, but the topology has 16"));
        for (pools, what) in [
            ("a = { placement = 'packed' }", "set `hosts` or `servers`"),
            ("a = { hosts = 2, servers = 1 }", "absent beside `hosts`"),
            ("a = { servers = 0 }", "1 server or more"),
            ("a = []", "1 host or more"),
            ("a = { hosts = 'srv0.*', placement = 'packed' }", "no effect on hosts that are named"),
            ("a = { hosts = 2, overlaps = ['b'] }\nb = 2", "no effect on a pool whose hosts are chosen"),
            ("a = { hosts = 'srv0.*', overlaps = ['c'] }\nbc = 2", "no other pool is named"),
            ("a = { hosts = 2, placement = 'spred' }", "spread"),
        ] {
            let why = loaded(pools).err().unwrap_or_default();
            assert!(why.contains(what), "{pools}: {why}");
        }
    }

    #[test]
    fn notes_name_the_hosts_that_were_chosen() {
        let loaded = loaded("a = { servers = 3, placement = 'spread' }\nb = 2").unwrap();
        let prepared = loaded.draft().unwrap();
        assert!(
            prepared
                .notes
                .contains(&"pool \"a\" has srv0.gpu0 to srv1.gpu1, srv4.gpu0 to srv4.gpu1".to_owned()),
            "{:?}",
            prepared.notes
        );
    }
}
