//! Division of a run among processes and their threads.

use std::ops::Range;

use borsh::{BorshDeserialize, BorshSerialize};
use pathweave_records::Fidelity;

use crate::fingerprint::fingerprint;
use crate::partition::{Partition, ShardLayout};
use crate::ranks::RankExchange;
use crate::spec::{SimError, SimSpec};

/// Shards of a run and their assignment to ranks.
pub(crate) struct Division {
    partition: Partition,
    /// Range of shard numbers of each rank.
    ranks: Vec<Range<u16>>,
}

/// Data that ranks exchange before a run to check that they agree.
#[derive(BorshSerialize, BorshDeserialize)]
struct Introduction {
    version: String,
    fingerprint: u64,
    threads: u16,
}

impl Division {
    /// Divides a run among ranks, each with the given number of threads.
    pub(crate) fn new(spec: &SimSpec, threads: &[u16]) -> Result<Self, SimError> {
        let ranks = threads.len() as u32;
        let nodes = spec.topology.nodes();
        if ranks > nodes {
            return Err(SimError::Ranks(format!(
                "{ranks} ranks cannot share a network of {nodes} hosts and switches: each needs one at least; start at most \
                 {nodes}"
            )));
        }
        let all = threads.iter().fold(0u16, |sum, &threads| sum.saturating_add(threads));
        let partition = match &spec.partition {
            Some(of_node) => Partition::given(of_node, all),
            None => Partition::new(&spec.topology, &spec.graph, all),
        };
        if let (Some(_), Some((one, other))) = (&spec.partition, partition.divided_domain(&spec.topology)) {
            let [one, other] = [one, other].map(|host| spec.topology.node_name(host).into_owned());
            return Err(SimError::Ranks(format!(
                "the partition divides {one} from {other}; hosts that a scale-up network joins must have one number"
            )));
        }
        let mut division = Division::of(partition, threads, nodes);
        division.partition.unite_domains(&spec.topology);
        Ok(division)
    }

    /// Divides an existing partition among ranks, each with the given number of threads.
    pub(crate) fn of(partition: Partition, threads: &[u16], nodes: u32) -> Self {
        let ranks = threads.len() as u16;
        // So few nodes have traffic that there are fewer shards than ranks.
        let partition =
            if partition.shard_count() < ranks { Partition::even(nodes, ranks) } else { partition };
        let (all, parts) =
            (threads.iter().map(|&threads| u64::from(threads)).sum::<u64>(), partition.shard_count());
        let mut start = 0;
        let mut before = 0;
        let ranks = threads.iter().zip(1..).map(|(&own, number)| {
            before += u64::from(own);
            // The share of shards is proportional to the rank's threads, with at least one shard for this rank and each
            // that follows.
            let fair = (before * u64::from(parts) / all.max(1)) as u16;
            let end = fair.max(start + 1).min(parts - (ranks - number));
            std::mem::replace(&mut start, end)..end
        });
        Division { ranks: ranks.collect(), partition }
    }

    /// Divides a run among all ranks that take part in it.
    ///
    /// # Errors
    /// Ranks have different runs or versions, a run is without packets, or there are more ranks than nodes. All ranks
    /// return the same error.
    pub(crate) fn among(spec: &SimSpec, meeting: &mut RankExchange<'_>) -> Result<Self, SimError> {
        let own = Introduction {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            fingerprint: fingerprint(spec),
            threads: spec.threads.map_or(1, std::num::NonZeroU16::get),
        };
        let all = meeting.all_gather(own);
        for (rank, other) in all.iter().enumerate() {
            if other.version != all[0].version {
                return Err(SimError::Ranks(format!(
                    "rank 0 is of version {}, rank {rank} of version {}; start the same program on all machines",
                    all[0].version, other.version
                )));
            }
            if other.fingerprint != all[0].fingerprint {
                return Err(SimError::Ranks(format!(
                    "rank 0 and rank {rank} have different runs: the scenario file, a file that it names, or the options differ \
                     between their machines"
                )));
            }
        }
        if spec.run.fidelity != Fidelity::Packet {
            let why = "ranks simulate packets: start a run with run.fidelity = \"flow\" without a launcher, or set it to \"packet\"";
            return Err(SimError::Ranks(why.to_owned()));
        }
        Division::new(spec, &all.iter().map(|other| other.threads).collect::<Vec<u16>>())
    }

    /// Returns the range of shard numbers of each rank.
    pub(crate) fn ranks(&self) -> &[Range<u16>] {
        &self.ranks
    }

    /// Returns the shards of a rank.
    pub(crate) fn places(&self, rank: u16) -> Vec<ShardLayout> {
        let parts = &self.ranks[usize::from(rank)];
        self.partition.shards().filter(|place| parts.contains(&place.number)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(parts: u16, threads: &[u16]) -> Vec<Range<u16>> {
        let of_node = (0..parts).collect();
        Division::of(Partition::of_nodes(of_node), threads, 100).ranks
    }

    #[test]
    fn ranks_have_parts_as_they_have_threads() {
        assert_eq!(ranges(8, &[2, 2, 4]), [0..2, 2..4, 4..8]);
        assert_eq!(ranges(3, &[8, 1, 1]), [0..1, 1..2, 2..3], "each has one");
        assert_eq!(ranges(4, &[1, 1, 30]), [0..1, 1..2, 2..4]);
        assert_eq!(
            ranges(2, &[1, 1, 1]),
            [0..1, 1..2, 2..3],
            "fewer parts than ranks: nodes are dealt out evenly"
        );
        assert_eq!(ranges(1, &[1]).as_slice(), std::slice::from_ref(&(0..1)));
    }
}
