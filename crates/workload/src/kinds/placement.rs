//! Groups of hosts that run a collective.

use serde::{Deserialize, Serialize};

use crate::error::WorkloadError;
use crate::hosts::HostList;
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

/// Number of hosts in a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged, expecting = "expected a number of hosts, or a list with the number for each group")]
pub enum GroupSize {
    /// All groups have as many hosts, and there are as many groups as fit.
    Equal(u32),
    /// One group of each size.
    Each(Vec<u32>),
}

impl From<u32> for GroupSize {
    fn from(size: u32) -> Self {
        GroupSize::Equal(size)
    }
}

/// Divides the hosts into groups of `size` (default: one group of all hosts). Remaining hosts stay idle, with
/// a note.
pub(super) fn groups(
    out: &mut WorkloadBuilder<'_>,
    size: Option<&GroupSize>,
    placement: Placement,
) -> Result<Vec<Vec<u32>>, WorkloadError> {
    let hosts = out.env.hosts;
    let sizes = match size {
        None => equal_sizes(out, hosts)?,
        Some(&GroupSize::Equal(size)) => equal_sizes(out, size)?,
        Some(GroupSize::Each(sizes)) => unequal_sizes(out, sizes)?,
    };
    let mut order: Vec<u32> = (0..hosts).collect();
    if placement == Placement::Random {
        out.rng("placement").shuffle(&mut order);
    }
    let mut next = order.into_iter();
    let mut groups: Vec<Vec<u32>> = sizes.iter().map(|&size| Vec::with_capacity(size as usize)).collect();
    match placement {
        Placement::Consecutive | Placement::Random => {
            for (group, &size) in groups.iter_mut().zip(&sizes) {
                group.extend(next.by_ref().take(size as usize));
            }
        }
        // Each round deals one host to every group that lacks hosts.
        Placement::Strided => {
            for round in 0..sizes.iter().copied().max().unwrap_or(0) {
                for (group, _) in groups.iter_mut().zip(&sizes).filter(|(_, size)| **size > round) {
                    group.extend(next.next());
                }
            }
        }
    }
    Ok(groups)
}

fn equal_sizes(out: &mut WorkloadBuilder<'_>, size: u32) -> Result<Vec<u32>, WorkloadError> {
    let hosts = out.env.hosts;
    if size < 2 || size > hosts {
        return out.field_error("group_size", size, format!("expected 2 to {hosts}, the number of hosts"));
    }
    let count = hosts / size;
    let idle = hosts - count * size;
    if idle > 0 {
        out.note(format_args!("{idle} of {hosts} hosts stay idle, as groups of {size} leave them over"));
    }
    Ok(vec![size; count as usize])
}

fn unequal_sizes(out: &mut WorkloadBuilder<'_>, sizes: &[u32]) -> Result<Vec<u32>, WorkloadError> {
    let hosts = out.env.hosts;
    let shown = || format!("{sizes:?}");
    if sizes.is_empty() || sizes.iter().any(|&size| size < 2) {
        return out.field_error("group_size", shown(), "expected two hosts or more in each group");
    }
    let all: u64 = sizes.iter().map(|&size| u64::from(size)).sum();
    if all > u64::from(hosts) {
        let allowed = format!("expected at most {hosts} hosts together, and these are {all}");
        return out.field_error("group_size", shown(), allowed);
    }
    if all < u64::from(hosts) {
        let idle = u64::from(hosts) - all;
        out.note(format_args!("{idle} of {hosts} hosts stay idle, as the groups have {all}"));
    }
    Ok(sizes.to_vec())
}

/// Returns the groups that the scenario lists, or those of [`groups`] if it lists none.
///
/// # Errors
///
/// Returns an error if the scenario gives both `size` and a list.
pub(super) fn configured_groups(
    out: &mut WorkloadBuilder<'_>,
    listed: &[HostList],
    size: Option<&GroupSize>,
    placement: Placement,
) -> Result<Vec<Vec<u32>>, WorkloadError> {
    if listed.is_empty() {
        return groups(out, size, placement);
    }
    if let Some(size) = size {
        let size = match size {
            GroupSize::Equal(size) => size.to_string(),
            GroupSize::Each(sizes) => format!("{sizes:?}"),
        };
        return out.field_error("group_size", size, "expected group_size or groups, not both");
    }
    if placement != Placement::default() {
        out.note_ineffective("placement", "`groups` lists the hosts");
    }
    let hosts = out.env.hosts;
    let mut groups = Vec::with_capacity(listed.len());
    for list in listed {
        let group = out.hosts("groups", list)?;
        let mut sorted = group.clone();
        sorted.sort_unstable();
        let shown = || format!("{group:?}");
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return out.field_error("groups", shown(), format!("host {} is in it twice", twice[0]));
        }
        if group.len() < 2 {
            return out.field_error("groups", shown(), "expected two hosts or more in each group");
        }
        if sorted.last().is_some_and(|&last| last >= hosts) {
            return out.field_error("groups", shown(), format!("hosts are 0 to {}", hosts - 1));
        }
        groups.push(group);
    }
    Ok(groups)
}

#[cfg(test)]
mod tests {
    use pathweave_units::Rate;

    use super::*;
    use crate::builder::GraphBuilder;
    use crate::env::WorkloadEnv;

    fn groups_of(size: GroupSize, placement: Placement) -> Result<(Vec<Vec<u32>>, Vec<String>), String> {
        let env = WorkloadEnv::new(10, Rate::from_gbps(100));
        let mut graph = GraphBuilder::new(10);
        let start = pathweave_units::Duration::ZERO;
        let mut out = WorkloadBuilder::new(&env, &mut graph, "w", None, None, start).unwrap();
        let made = groups(&mut out, Some(&size), placement).map_err(|why| why.to_string())?;
        Ok((made, graph.notes().to_vec()))
    }

    #[test]
    fn groups_may_have_unequal_sizes() {
        let sizes = || GroupSize::Each(vec![2, 4, 3]);
        let (made, notes) = groups_of(sizes(), Placement::Consecutive).unwrap();
        assert_eq!(made, [vec![0, 1], vec![2, 3, 4, 5], vec![6, 7, 8]]);
        assert_eq!(notes.len(), 1);
        assert!(notes[0].contains("1 of 10 hosts stay idle, as the groups have 9"), "{notes:?}");
        let (made, _) = groups_of(sizes(), Placement::Strided).unwrap();
        assert_eq!(made, [vec![0, 3], vec![1, 4, 6, 8], vec![2, 5, 7]]);
        let (made, _) = groups_of(sizes(), Placement::Random).unwrap();
        let all: std::collections::BTreeSet<_> = made.iter().flatten().collect();
        assert_eq!(all.len(), 9);
        // Equal sizes, both ways.
        let (strided, _) = groups_of(GroupSize::Equal(3), Placement::Strided).unwrap();
        assert_eq!(strided, [vec![0, 3, 6], vec![1, 4, 7], vec![2, 5, 8]]);
        assert_eq!(strided, groups_of(GroupSize::Each(vec![3; 3]), Placement::Strided).unwrap().0);
    }

    #[test]
    fn sizes_that_do_not_fit_are_named() {
        let error =
            |sizes: &[u32]| groups_of(GroupSize::Each(sizes.to_vec()), Placement::Consecutive).unwrap_err();
        let text =
            "workload \"w\": group_size = [8, 4]: expected at most 10 hosts together, and these are 12";
        assert_eq!(error(&[8, 4]), text);
        assert!(error(&[3, 1]).contains("two hosts or more in each group"));
        assert!(error(&[]).contains("two hosts or more"));
    }
}
