//! The paths a topology means its sources to use, from its own arithmetic.

use std::collections::BTreeSet;

use super::config::{AllShortest, OwnPathsConfig};
use super::plan::{MAX_PATHS, PathSets, Plan};
use super::shortest;
use crate::error::{TopoError, refuse};
use crate::graph::NodeId;

pub(super) fn build(config: &OwnPathsConfig, plan: Plan<'_>) -> Result<PathSets, TopoError> {
    let max = max_paths(config.max_paths)?;
    let Some(own) = plan.topology.own_paths().0.clone() else {
        return shortest::build(&AllShortest { max_paths: config.max_paths }, plan);
    };
    let first_switch = plan.topology.hosts();
    let mut found: Vec<Vec<NodeId>> = Vec::new();
    plan.collect(|_, ends, out| {
        let [from, to] = ends.switches.map(|switch| switch.0 - first_switch);
        found.clear();
        own.emit(from, to, &mut |switches| {
            found.push(switches.iter().map(|switch| NodeId(first_switch + switch)).collect());
        });
        // The shortest ones first; once each, where a way is the same over several of parallel links.
        found.sort_by_key(Vec::len);
        let mut known = BTreeSet::new();
        found.retain(|path| known.insert(path.clone()));
        for path in evenly(found.len() as u64, max) {
            out.path_over(&found[path as usize]);
        }
        Ok(())
    })
}

pub(super) fn max_paths(value: u32) -> Result<u32, TopoError> {
    if (1..=MAX_PATHS).contains(&value) {
        return Ok(value);
    }
    Err(refuse("max_paths", value, format!("must be 1 to {MAX_PATHS}")))
}

/// At most `max` of `0..count`, evenly spaced, the first one among them.
pub(super) fn evenly(count: u64, max: u32) -> impl Iterator<Item = u64> {
    let taken = count.min(u64::from(max));
    (0..taken).map(move |i| (u128::from(i) * u128::from(count) / u128::from(taken)) as u64)
}
