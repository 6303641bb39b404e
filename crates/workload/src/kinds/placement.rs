//! Groups of hosts that run a collective.

use serde::{Deserialize, Serialize};

use crate::error::WorkloadError;
use crate::sink::WorkloadBuilder;

/// Assignment of hosts to groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Consecutive hosts form a group: group 0 is hosts 0, 1, 2, ...
    #[default]
    Consecutive,
    /// Hosts at equal distances form a group: with G groups, group 0 is hosts 0, G, 2G, ...
    Strided,
    /// Groups are drawn by seed.
    Random,
}

/// Divides the hosts into groups of `size` (default: one group of all hosts). Remaining hosts stay idle, with
/// a note.
pub(super) fn groups(
    out: &mut WorkloadBuilder<'_>,
    size: Option<u32>,
    placement: Placement,
) -> Result<Vec<Vec<u32>>, WorkloadError> {
    let hosts = out.env.hosts;
    let size = size.unwrap_or(hosts);
    if size < 2 || size > hosts {
        return out.field_error("group_size", size, format!("expected 2 to {hosts}, the number of hosts"));
    }
    let count = hosts / size;
    let idle = hosts - count * size;
    if idle > 0 {
        out.note(format_args!("{idle} of {hosts} hosts stay idle, as groups of {size} leave them over"));
    }
    let mut order: Vec<u32> = (0..hosts).collect();
    if placement == Placement::Random {
        out.rng("placement").shuffle(&mut order);
    }
    let member = |group: u32, k: u32| match placement {
        Placement::Consecutive | Placement::Random => group * size + k,
        Placement::Strided => group + k * count,
    };
    Ok((0..count).map(|g| (0..size).map(|k| order[member(g, k) as usize]).collect()).collect())
}

/// Returns the groups that the scenario lists, or those of [`groups`] if it lists none.
///
/// # Errors
///
/// Returns an error if the scenario gives both `size` and a list.
pub(super) fn configured_groups(
    out: &mut WorkloadBuilder<'_>,
    listed: &[Vec<u32>],
    size: Option<u32>,
    placement: Placement,
) -> Result<Vec<Vec<u32>>, WorkloadError> {
    if listed.is_empty() {
        return groups(out, size, placement);
    }
    if let Some(size) = size {
        return out.field_error("group_size", size, "expected group_size or groups, not both");
    }
    for group in listed {
        let mut sorted = group.clone();
        sorted.sort_unstable();
        let shown = || format!("{group:?}");
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return out.field_error("groups", shown(), format!("host {} is in it twice", twice[0]));
        }
        if group.len() < 2 {
            return out.field_error("groups", shown(), "expected two hosts or more in each group");
        }
        let hosts = out.env.hosts;
        if sorted.last().is_some_and(|&last| last >= hosts) {
            return out.field_error("groups", shown(), format!("hosts are 0 to {}", hosts - 1));
        }
    }
    Ok(listed.to_vec())
}
