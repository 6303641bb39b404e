//! Permutation traffic: every host link has the same load, so contention arises only on paths in the fabric.

use pathweave_units::{Bytes, Duration, Rng};
use serde::{Deserialize, Serialize};

use crate::builder::Stream;
use crate::error::WorkloadError;
use crate::sink::{Generate, WorkloadBuilder};

/// Rule by which receivers are assigned to senders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Random receivers, drawn by seed. No host sends to itself.
    #[default]
    Random,
    /// Random receivers. Every flow is between different racks.
    InterRack,
    /// Random receivers. Every flow is between different pods.
    InterPod,
    /// Host i sends to host i + `shift`, modulo the number of hosts.
    Shift,
}

/// Every host sends to one host and receives from one. The whole permutation is one job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Permutation {
    /// Size of a message, 1 B to 4 GiB.
    pub size: Bytes,
    /// Rule by which receivers are assigned.
    #[serde(default)]
    pub pattern: Pattern,
    /// Distance between sender and receiver, in hosts; only with `pattern = "shift"`. Default: half the
    /// number of hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shift: Option<u32>,
    /// Number of flows, drawn by seed among those of the permutation. A host sends and receives one flow at
    /// most. Default: all flows, one from each host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<u32>,
    /// Number of messages that each host sends to its receiver (default 1). All of them are posted at the
    /// start, on one connection.
    #[serde(default = "one")]
    pub repetitions: u32,
}

fn one() -> u32 {
    1
}

impl Generate for Permutation {
    fn generate(&self, out: &mut WorkloadBuilder<'_>) -> Result<(), WorkloadError> {
        let hosts = out.env.hosts;
        if hosts < 2 {
            return out.field_error("hosts", hosts, "a permutation needs at least 2 hosts");
        }
        if self.repetitions == 0 {
            return out.field_error("repetitions", 0, "expected 1 or more");
        }
        out.check_count(f64::from(hosts) * f64::from(self.repetitions))?;
        let receivers = self.receivers(out)?;
        let mut pairs: Vec<(u32, u32)> = (0..).zip(receivers).collect();
        if let Some(flows) = self.flows {
            if flows == 0 || flows > hosts {
                return out.field_error(
                    "flows",
                    flows,
                    format!("expected 1 to {hosts}, the number of hosts"),
                );
            }
            out.rng("flows").shuffle(&mut pairs);
            pairs.truncate(flows as usize);
        }
        let job = Some(out.job("permutation")?);
        for _ in 0..self.repetitions {
            for &pair in &pairs {
                out.message(pair, self.size, Duration::ZERO, Stream::Shared(0), job)?;
            }
        }
        Ok(())
    }
}

impl Permutation {
    fn receivers(&self, out: &WorkloadBuilder<'_>) -> Result<Vec<u32>, WorkloadError> {
        let hosts = out.env.hosts;
        if self.pattern == Pattern::Shift {
            let shift = self.shift.unwrap_or(hosts / 2);
            if shift == 0 || shift >= hosts {
                return out.field_error("shift", shift, format!("expected 1 to {}", hosts - 1));
            }
            return Ok((0..hosts)
                .map(|src| ((u64::from(src) + u64::from(shift)) % u64::from(hosts)) as u32)
                .collect());
        }
        if let Some(shift) = self.shift {
            return out.field_error("shift", shift, "allowed with pattern = \"shift\" only");
        }
        let class: Vec<u32> = match self.pattern {
            Pattern::Random | Pattern::Shift => (0..hosts).collect(),
            Pattern::InterRack => (0..hosts).map(|h| out.env.rack(h)).collect(),
            Pattern::InterPod => (0..hosts).map(|h| out.env.pod(h)).collect(),
        };
        match between_classes(&class, &mut out.rng("permutation")) {
            Some(receivers) => Ok(receivers),
            None => out.field_error(
                "pattern",
                if self.pattern == Pattern::InterPod { "inter-pod" } else { "inter-rack" },
                "not possible: one of them holds more than half the hosts",
            ),
        }
    }
}

/// Returns a random permutation in which no element keeps its class: `class[i] != class[result[i]]`. Returns
/// `None` if one class has more than half of all elements, because then none exists.
///
/// Draws up to 64 whole permutations, so that every valid one is equally likely. If all are invalid, it
/// repairs the last one by swaps.
fn between_classes(class: &[u32], rng: &mut Rng) -> Option<Vec<u32>> {
    let n = class.len();
    let mut sorted = class.to_vec();
    sorted.sort_unstable();
    let largest = sorted.chunk_by(|a, b| a == b).map(<[u32]>::len).max()?;
    if largest * 2 > n {
        return None;
    }
    let mut to: Vec<u32> = (0..n as u32).collect();
    let clash = |i: usize, dst: u32| class[i] == class[dst as usize];
    for _ in 0..64 {
        rng.shuffle(&mut to);
        if (0..n).all(|i| !clash(i, to[i])) {
            return Some(to);
        }
    }
    for i in 0..n {
        if clash(i, to[i]) {
            let from = rng.below(n as u32) as usize;
            // Fewer than n of the n flows touch the class of i, because that class has at most half of the
            // hosts.
            let j = (from..n)
                .chain(0..from)
                .find(|&j| class[j] != class[i] && class[to[j] as usize] != class[i])
                .expect("a partner exists while no class holds more than half");
            to.swap(i, j);
        }
    }
    Some(to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert, proptest};

    proptest! {
        #[test]
        fn no_flow_stays_in_its_class(n in 2usize..200, classes in 1u32..12, seed: u64) {
            let mut rng = Rng::for_component(seed, "classes", 0);
            let class: Vec<u32> = (0..n).map(|_| rng.below(classes)).collect();
            let largest = (0..classes).map(|c| class.iter().filter(|&&x| x == c).count()).max().unwrap();
            match between_classes(&class, &mut rng) {
                None => prop_assert!(largest * 2 > n),
                Some(to) => {
                    prop_assert!((0..n).all(|i| class[i] != class[to[i] as usize]));
                    let mut sorted = to;
                    sorted.sort_unstable();
                    prop_assert!(sorted.iter().zip(0..).all(|(&a, b)| a == b));
                }
            }
        }

        #[test]
        fn a_derangement_has_no_fixed_point(n in 2u32..500, seed: u64) {
            let class: Vec<u32> = (0..n).collect();
            let to = between_classes(&class, &mut Rng::for_component(seed, "d", 0)).unwrap();
            prop_assert!(to.iter().zip(0..).all(|(&dst, src)| dst != src));
        }
    }

    #[test]
    fn some_flows_of_some_hosts() {
        use crate::config::WorkloadConfig;
        use crate::env::WorkloadEnv;
        use crate::kinds::Traffic;
        use pathweave_units::Rate;
        let config = |flows| {
            let size = Bytes::from_mb(1);
            let pattern = Pattern::Random;
            let traffic =
                Traffic::Permutation(Permutation { size, pattern, shift: None, flows, repetitions: 1 });
            WorkloadConfig::new(traffic)
        };
        let fabric = WorkloadEnv::new(20, Rate::from_gbps(100));
        let members = [3, 5, 8, 13, 19];
        let generate = |flows| {
            let mut builder = crate::GraphBuilder::new(fabric.hosts);
            config(flows).generate(&fabric.of_members(&members), &mut builder)?;
            Ok::<_, WorkloadError>(builder.finish().expect("no cycles"))
        };
        let graph = generate(Some(4)).unwrap();
        let ends: Vec<u32> = graph.messages().iter().flat_map(|m| [m.src.0, m.dst.0]).collect();
        assert_eq!(graph.messages().len(), 4);
        assert!(ends.iter().all(|host| members.contains(host)), "{ends:?}");
        for side in [0, 1] {
            let mut once: Vec<u32> = ends.iter().copied().skip(side).step_by(2).collect();
            once.sort_unstable();
            once.dedup();
            assert_eq!(once.len(), 4, "a host sends once and receives once: {ends:?}");
        }
        let error = generate(Some(6)).unwrap_err().to_string();
        assert!(error.ends_with("flows = 6: expected 1 to 5, the number of hosts"), "{error}");
    }

    #[test]
    fn derangements_of_four_are_equally_likely() {
        let mut rng = Rng::for_component(5, "d", 0);
        let mut seen = std::collections::BTreeMap::new();
        for _ in 0..9_000 {
            *seen.entry(between_classes(&[0, 1, 2, 3], &mut rng).unwrap()).or_insert(0u32) += 1;
        }
        assert_eq!(seen.len(), 9);
        assert!(seen.values().all(|&n| (850..1150).contains(&n)), "{seen:?}");
    }
}
