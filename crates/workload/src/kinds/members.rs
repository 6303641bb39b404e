//! Groups of hosts that run a collective.

use serde::{Deserialize, Serialize};

use crate::error::WorkloadError;
use crate::sink::Sink;

/// Which hosts form a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Neighbours: group 0 is hosts 0, 1, 2, ...
    #[default]
    Consecutive,
    /// Far apart: with G groups, group 0 is hosts 0, G, 2G, ...
    Strided,
    /// Drawn by seed.
    Random,
}

/// Divides the hosts into groups of `size` (default: one group of all); hosts left over stay idle, with a note.
pub(super) fn groups(
    out: &mut Sink<'_>,
    size: Option<u32>,
    placement: Placement,
) -> Result<Vec<Vec<u32>>, WorkloadError> {
    let hosts = out.env.hosts;
    let size = size.unwrap_or(hosts);
    if size < 2 || size > hosts {
        return out.bad("group_size", size, format!("expected 2 to {hosts}, the number of hosts"));
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
