//! Process groups of a trace, from three sources: an accompanying file, the trace itself, and the dimensions
//! of its ranks.

use std::collections::BTreeMap;

use crate::error::{FileError, WorkloadError};
use crate::files::{ChakraGroup, ChakraRanks, short};
use crate::sink::WorkloadBuilder;

/// Largest size of a file of process groups, bytes.
const MAX_GROUPS: u64 = 64 << 20;

/// Ranks of each process group, by its name.
type ProcessGroups = BTreeMap<String, Vec<u32>>;

/// Ranks that take part in the same collectives.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Group {
    /// Name of the group, if the trace has one. Several groups may have the same ranks.
    pub(super) name: Option<String>,
    pub(super) members: Vec<u32>,
}

/// All groups of a trace.
pub(super) struct Groups {
    ranks: u32,
    /// Sizes of dimensions, innermost first; empty if not configured.
    dims: Vec<u32>,
    /// Groups of the accompanying file, if there is one.
    of_file: Option<ProcessGroups>,
    /// Groups in the traces, by rank and name.
    of_rank: BTreeMap<(u32, String), Vec<u32>>,
}

impl Groups {
    /// Makes groups from a JSON file, if given, and dimensions of these sizes.
    pub(super) fn new(
        out: &WorkloadBuilder<'_>,
        file: Option<&str>,
        dims: &[u32],
        ranks: usize,
    ) -> Result<Self, WorkloadError> {
        let product = dims.iter().try_fold(1u32, |all, &size| all.checked_mul(size));
        if !dims.is_empty() && product != Some(ranks as u32) {
            let allowed =
                format!("expected sizes of dimensions whose product is {ranks}, the ranks of the trace");
            return out.field_error("dims", format!("{dims:?}"), allowed);
        }
        let of_file = match file {
            Some(file) => Some(parse(&out.read_at_most(file, MAX_GROUPS)?, file, ranks)?),
            None => None,
        };
        Ok(Groups { ranks: ranks as u32, dims: dims.to_vec(), of_file, of_rank: BTreeMap::new() })
    }

    /// Adds the groups that the trace of a rank lists.
    pub(super) fn add(&mut self, rank: u32, groups: Vec<ChakraGroup>) -> Result<(), String> {
        for ChakraGroup { name, ranks, size } in groups {
            let members = match size {
                // A group of all ranks has no list.
                _ if !ranks.is_empty() => ranks,
                None => self.all(),
                Some(size) if size == self.ranks => self.all(),
                Some(size) => {
                    return Err(format!(
                        "process group \"{}\" has {size} ranks and no list of them, which is allowed for all \
                         ranks only; the trace has {}",
                        short(&name),
                        self.ranks
                    ));
                }
            };
            if let Some(beyond) = members.iter().find(|&&member| member >= self.ranks) {
                let allowed = crate::error::valid_ranks(self.ranks.into());
                return Err(format!("process group \"{}\": rank {beyond}: {allowed}", short(&name)));
            }
            self.of_rank.insert((rank, name), members);
        }
        Ok(())
    }

    /// Returns the group of a collective of this rank.
    pub(super) fn of(&self, rank: u32, among: &ChakraRanks) -> Result<Group, String> {
        match among {
            ChakraRanks::All => Ok(Group { name: None, members: self.all() }),
            ChakraRanks::Group(name) => {
                let members = self.named(rank, name)?;
                Ok(Group { name: Some(name.clone()), members })
            }
            ChakraRanks::Dimensions(involved) => {
                let members = self.along(rank, involved)?;
                Ok(Group { name: None, members })
            }
        }
    }

    fn all(&self) -> Vec<u32> {
        (0..self.ranks).collect()
    }

    fn named(&self, rank: u32, name: &str) -> Result<Vec<u32>, String> {
        let of_file = self.of_file.as_ref().and_then(|groups| groups.get(name));
        if let Some(members) = of_file.or_else(|| self.of_rank.get(&(rank, name.to_owned()))) {
            return Ok(members.clone());
        }
        // PyTorch's first group. ASTRA-sim treats it as the group of all ranks.
        if name == "0" {
            return Ok(self.all());
        }
        let known = if self.of_file.is_some() {
            "process_groups"
        } else {
            "the trace, and there are no `process_groups`"
        };
        Err(format!("pg_name = \"{}\": no such group in {known}", short(name)))
    }

    /// Returns the ranks that differ from this one in the involved dimensions only.
    fn along(&self, rank: u32, involved: &[bool]) -> Result<Vec<u32>, String> {
        if self.dims.is_empty() {
            return Err(format!(
                "involved_dim = {involved:?}: the sizes of dimensions are not in the trace; set `dims`, that of neighbours first"
            ));
        }
        if involved.len() < self.dims.len() {
            let (has, dims) = (involved.len(), self.dims.len());
            return Err(format!("involved_dim = {involved:?}: {has} dimensions, `dims` has {dims}"));
        }
        let mut members = vec![rank];
        let mut stride = 1;
        // Dimensions beyond those of `dims` have one rank.
        for (&size, &is_involved) in self.dims.iter().zip(involved) {
            let own = rank / stride % size;
            if is_involved {
                let of = |member: u32| (0..size).map(move |at| member - own * stride + at * stride);
                members = members.into_iter().flat_map(of).collect();
            }
            stride *= size;
        }
        members.sort_unstable();
        Ok(members)
    }
}

fn parse(text: &str, file: &str, ranks: usize) -> Result<ProcessGroups, FileError> {
    let groups: ProcessGroups = serde_json::from_str(text).map_err(|why| {
        FileError::at(file, why.line() as u64, format!("expected {{\"name\": [ranks], ...}}: {why}"))
    })?;
    for (name, members) in &groups {
        let mut sorted = members.clone();
        sorted.sort_unstable();
        let what = match (sorted.last(), sorted.windows(2).find(|pair| pair[0] == pair[1])) {
            (None, _) => "no ranks".to_owned(),
            (_, Some(twice)) => format!("rank {} is in it twice", twice[0]),
            (Some(&last), None) if last as usize >= ranks => {
                format!("rank {last}: {}", crate::error::valid_ranks(ranks as u64))
            }
            _ => continue,
        };
        return Err(FileError::whole(file, format!("group \"{name}\": {what}")));
    }
    Ok(groups)
}
