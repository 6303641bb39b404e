//! Mixture-of-experts layers: each token is sent to the hosts of its experts, and the results are sent back.

use pathweave_units::{Bytes, Duration};
use serde::{Deserialize, Serialize};

use super::placement::{GroupSize, Placement, configured_groups};
use crate::algorithm::Algorithm;
use crate::builder::Draft;
use crate::collective::{GraphMedium, Sizes, direct_except, pairwise_except};
use crate::error::WorkloadError;
use crate::graph::{JobId, MAX_MESSAGE_SIZE, Parallelism};
use crate::hosts::HostList;
use crate::sink::{Generate, Steps, WorkloadBuilder};

/// Groups of hosts that share the experts of a model. Each iteration of each group is a job.
///
/// In a layer, each host computes (attention and router), sends its tokens to the hosts of their experts
/// (dispatch), computes the tokens it has received, and sends the results back (combine).
///
/// Hosts are not equally popular. The k-th most popular host gets tokens in proportion to k^-`skew`, the same
/// number from each host, but no token twice. The order of popularity is drawn by seed for each layer. Token
/// counts are expected values rounded to whole tokens, not draws.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Moe {
    /// Number of tokens of each host.
    pub tokens: u32,
    /// Size of a token, such as 14,336 B: 7,168 values of 2 B (DeepSeek-V3).
    pub token_size: Bytes,
    /// Number of hosts to which each token is sent, at most the number of hosts in a group (default 2, as in
    /// Mixtral).
    #[serde(default = "two")]
    pub top_k: u32,
    /// Exponent of the popularity of hosts, 0 to 10: 0 for equal popularity, 1 for Zipf's law (default 0).
    #[serde(default)]
    pub skew: f64,
    /// Number of layers in an iteration (default 1).
    #[serde(default = "one")]
    pub layers: u32,
    /// Duration of a host's computation before its dispatch (default 0).
    #[serde(default)]
    pub attention: Duration,
    /// Duration of a host's computation between dispatch and combine, for the mean number of tokens (default
    /// 0). It is proportional to the number of tokens that the host has received.
    #[serde(default)]
    pub expert: Duration,
    /// Concurrency of the messages of dispatch and combine.
    #[serde(default)]
    pub exchange: Exchange,
    /// Number of hosts in a group, or a list of numbers, one for each group. Default: one group of all
    /// hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_size: Option<GroupSize>,
    /// Assignment of hosts to groups.
    #[serde(default)]
    pub placement: Placement,
    /// Hosts of each group: a list of numbers, names and patterns, or a pattern such as "srv[0-3].gpu*".
    /// Replaces `group_size` and `placement`. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<HostList>,
    /// Number of iterations, one after another (default 1).
    #[serde(default = "one")]
    pub repetitions: u32,
}

/// Concurrency of the messages of an exchange of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Exchange {
    /// Each host sends all its messages at once.
    #[default]
    Direct,
    /// Each host sends one message at a time: first to the next host, then to the one after it, and so on.
    Pairwise,
}

fn one() -> u32 {
    1
}
fn two() -> u32 {
    2
}

impl Generate for Moe {
    fn generate(&self, out: &mut WorkloadBuilder<'_>) -> Result<(), WorkloadError> {
        let groups = configured_groups(out, &self.groups, self.group_size.as_ref(), self.placement)?;
        self.check(out, &groups)?;
        let messages = |group: &Vec<u32>| 2.0 * (group.len() * group.len()) as f64;
        let layers = f64::from(self.layers) * f64::from(self.repetitions);
        out.check_count(groups.iter().map(messages).sum::<f64>() * layers)?;
        for (number, members) in groups.iter().enumerate() {
            let mut popular = out.rng(&format!("popular in {number}"));
            let (mut ready, mut before): (Vec<Draft>, _) = (Vec::new(), None);
            for iteration in 0..self.repetitions {
                let job = out.next_job(format_args!("group {number}, iteration {iteration}"), &mut before)?;
                for layer in 0..self.layers {
                    let mut order: Vec<usize> = (0..members.len()).collect();
                    popular.shuffle(&mut order);
                    let tokens = tokens_by_host(self.tokens, self.top_k, self.skew, &order);
                    ready = self.layer(out, members, &tokens, &ready, (job, layer))?;
                }
            }
        }
        Ok(())
    }
}

impl Moe {
    fn check(&self, out: &WorkloadBuilder<'_>, groups: &[Vec<u32>]) -> Result<(), WorkloadError> {
        for (field, value) in
            [("tokens", self.tokens), ("layers", self.layers), ("repetitions", self.repetitions)]
        {
            if value == 0 {
                return out.field_error(field, 0, "expected 1 or more");
            }
        }
        let fewest = groups.iter().map(Vec::len).min().unwrap_or_default();
        if self.top_k == 0 || self.top_k as usize > fewest {
            return out.field_error(
                "top_k",
                self.top_k,
                format!("expected 1 to {fewest}, the hosts of a group"),
            );
        }
        if !(0.0..=10.0).contains(&self.skew) {
            return out.field_error("skew", self.skew, "expected 0 to 10");
        }
        let most = MAX_MESSAGE_SIZE.get() / u64::from(self.tokens);
        if self.token_size == Bytes::ZERO || self.token_size.get() > most {
            return out.field_error("token_size", self.token_size, format!("expected 1 to {most} bytes"));
        }
        Ok(())
    }

    /// Declares one layer, in which host j gets `tokens[j]` from each host. `ready` holds the tasks after
    /// which each host begins; it is empty in the first layer. Returns those tasks for the next layer.
    fn layer(
        &self,
        out: &mut WorkloadBuilder<'_>,
        members: &[u32],
        tokens: &[u32],
        ready: &[Draft],
        (job, layer): (JobId, u32),
    ) -> Result<Vec<Draft>, WorkloadError> {
        let layer = format!("layer {layer}");
        out.doing("attention", &layer);
        let bytes = |to: usize| u64::from(tokens[to]) * self.token_size.get();
        let mut routed = Vec::with_capacity(members.len());
        for (i, &host) in members.iter().enumerate() {
            let task = out.compute(host, self.attention, job)?;
            if let Some(&before) = ready.get(i) {
                out.after(task, before)?;
            }
            routed.push(task);
        }
        out.collective(&layer, self.steps("dispatch", members.len()));
        let arrived = self.exchange(out, members, &routed, &|_, dst| bytes(dst), job)?;
        let mean = f64::from(self.tokens) * f64::from(self.top_k);
        out.doing("expert", &layer);
        let mut computed = Vec::with_capacity(members.len());
        for (j, &host) in members.iter().enumerate() {
            let load = members.len() as f64 * f64::from(tokens[j]) / mean;
            computed.push(self.join(out, (host, self.expert.scale(load)), routed[j], &arrived[j], job)?);
        }
        out.collective(&layer, self.steps("combine", members.len()));
        let back = self.exchange(out, members, &computed, &|src, _| bytes(src), job)?;
        let mut done = Vec::with_capacity(members.len());
        for (i, &host) in members.iter().enumerate() {
            done.push(self.join(out, (host, Duration::ZERO), computed[i], &back[i], job)?);
        }
        Ok(done)
    }

    /// Returns the description of an exchange. It has no bandwidth, because hosts send different amounts.
    fn steps(&self, kind: &'static str, ranks: usize) -> Steps<'static> {
        let algorithm = match self.exchange {
            Exchange::Direct => Algorithm::Direct,
            Exchange::Pairwise => Algorithm::Pairwise,
        };
        Steps {
            kind,
            ranks,
            algorithm: algorithm.name(),
            measure: None,
            parallelism: Some(Parallelism::Expert),
        }
    }

    /// Declares a message of `bytes(src, dst)` for each pair of hosts. Returns the messages that each host
    /// sends and receives.
    fn exchange(
        &self,
        out: &mut WorkloadBuilder<'_>,
        members: &[u32],
        ready: &[Draft],
        bytes: &dyn Fn(usize, usize) -> u64,
        job: JobId,
    ) -> Result<Vec<Vec<Draft>>, WorkloadError> {
        let nothing = |src, dst| bytes(src, dst) == 0;
        let mut wires = GraphMedium::new(out, members, ready, Sizes::Pairs(bytes), Some(job));
        match self.exchange {
            Exchange::Direct => direct_except(&mut wires, members.len(), nothing)?,
            Exchange::Pairwise => pairwise_except(&mut wires, members.len(), nothing)?,
        }
        Ok(wires.through)
    }

    fn join(
        &self,
        out: &mut WorkloadBuilder<'_>,
        (host, duration): (u32, Duration),
        before: Draft,
        all: &[Draft],
        job: JobId,
    ) -> Result<Draft, WorkloadError> {
        let task = out.compute(host, duration, job)?;
        for &one in all.iter().chain([&before]) {
            out.after(task, one)?;
        }
        Ok(task)
    }
}

/// Returns the tokens that each host gets from each host. `order` lists the hosts by popularity. Shares are
/// proportional to rank^-`skew`, none exceeds `tokens`, and the rounded shares add up to `tokens` times
/// `top_k`.
fn tokens_by_host(tokens: u32, top_k: u32, skew: f64, order: &[usize]) -> Vec<u32> {
    let n = order.len();
    let weight: Vec<f64> = (1..=n).map(|rank| libm::pow(rank as f64, -skew)).collect();
    // The most popular hosts reach the limit one after another. The other hosts share the rest.
    let (mut full, mut left) = (0, f64::from(tokens) * f64::from(top_k));
    let mut rest: f64 = weight.iter().sum();
    while full < n && left * weight[full] / rest >= f64::from(tokens) {
        left -= f64::from(tokens);
        rest -= weight[full];
        full += 1;
    }
    let share = |k: usize| if k < full { f64::from(tokens) } else { left * weight[k] / rest };
    let mut counts: Vec<u32> = (0..n).map(|k| share(k) as u32).collect();
    // Largest remainders come first. Among equal ones, the more popular host comes first.
    let mut by_remainder: Vec<usize> = (full..n).collect();
    by_remainder.sort_by(|&a, &b| (share(b).fract()).total_cmp(&share(a).fract()));
    let given: u64 = counts.iter().map(|&c| u64::from(c)).sum();
    let missing = (u64::from(tokens) * u64::from(top_k)).saturating_sub(given);
    by_remainder.iter().take(missing as usize).for_each(|&k| counts[k] += 1);
    let mut by_host = vec![0; n];
    order.iter().zip(counts).for_each(|(&host, count)| by_host[host] = count);
    by_host
}

#[cfg(test)]
mod tests {
    use pathweave_units::Time;
    use proptest::prelude::*;

    use super::*;
    use crate::bounds::JobSpans;
    use crate::kinds::Traffic;
    use crate::testing::{error_of, graph_of, job_ends};

    fn moe(tokens: u32, top_k: u32, skew: f64) -> Moe {
        Moe {
            tokens,
            token_size: Bytes::new(10),
            top_k,
            skew,
            layers: 1,
            attention: Duration::from_us(5),
            expert: Duration::from_us(20),
            exchange: Exchange::Direct,
            group_size: None,
            placement: Placement::Consecutive,
            groups: Vec::new(),
            repetitions: 1,
        }
    }

    #[test]
    fn tokens_by_hand() {
        assert_eq!(tokens_by_host(100, 2, 0.0, &[0, 1, 2, 3]), [50, 50, 50, 50]);
        // Weights 1, 1/2, 1/3, 1/4 add up to 25/12, which gives shares of 48, 24, 16 and 12 tokens.
        assert_eq!(tokens_by_host(100, 1, 1.0, &[2, 0, 3, 1]), [24, 12, 48, 16]);
        // Twice as many tokens give 96, 48, 32 and 24. With three times as many, the first host reaches its
        // limit of 100. The others share 200 by 6 : 4 : 3; 92.31 + 61.54 + 46.15 leave one token for the
        // largest remainder.
        assert_eq!(tokens_by_host(100, 3, 1.0, &[0, 1, 2, 3]), [100, 92, 62, 46]);
        assert_eq!(tokens_by_host(100, 4, 1.0, &[0, 1, 2, 3]), [100; 4]);
    }

    proptest! {
        #[test]
        fn no_token_is_lost(tokens in 1u32..5000, n in 2usize..40, k in 0.0..1.0, skew in 0.0..4.0) {
            let top_k = 1 + ((n - 1) as f64 * k) as u32;
            let order: Vec<usize> = (0..n).collect();
            let counts = tokens_by_host(tokens, top_k, skew, &order);
            prop_assert_eq!(counts.iter().map(|&c| u64::from(c)).sum::<u64>(), u64::from(tokens) * u64::from(top_k));
            prop_assert!(counts.iter().all(|&c| c <= tokens));
            prop_assert!(counts.windows(2).all(|w| w[0] >= w[1]), "{counts:?}");
        }
    }

    #[test]
    fn a_layer_by_hand() {
        // Four hosts get 50 tokens of 10 B from each host: 5 us of attention, 500 ns out, 20 us of expert,
        // 500 ns back.
        let graph = graph_of(4, Traffic::Moe(moe(100, 2, 0.0)));
        assert_eq!(graph.messages().len(), 24);
        assert_eq!(graph.total_bytes(), 24 * 500);
        assert_eq!(job_ends(&graph), [Time::from_us(26)]);
        assert_eq!(JobSpans::from_graph(&graph).span(JobId(0)), Duration::from_us(25));
        // With one message at a time, each direction takes three times as long.
        let pairwise = Moe { exchange: Exchange::Pairwise, repetitions: 2, ..moe(100, 2, 0.0) };
        assert_eq!(job_ends(&graph_of(4, Traffic::Moe(pairwise))), [Time::from_us(28), Time::from_us(56)]);
    }

    #[test]
    fn popular_hosts_compute_longer() {
        // The host with 48 of 100 tokens from each of four hosts has 1.92 times the mean: 38.4 us. Its
        // messages are the largest: 480 ns each way.
        let graph = graph_of(4, Traffic::Moe(moe(100, 1, 1.0)));
        assert_eq!(job_ends(&graph), [Time::from_ns(5_000 + 480 + 38_400 + 480)]);
        // Every host sends 100 tokens, less those for itself.
        assert_eq!(graph.total_bytes(), 2 * 3 * 100 * 10);
        // Each layer has its own popular experts.
        let graph = graph_of(8, Traffic::Moe(Moe { layers: 8, ..moe(100, 1, 1.0) }));
        let most = |m: &&crate::graph::Message| m.size.get() >= 360;
        let popular: std::collections::BTreeSet<_> =
            graph.messages().iter().filter(most).map(|m| m.dst).collect();
        assert!(popular.len() > 2, "{popular:?}");
    }

    #[test]
    fn fields_out_of_range_are_named() {
        let error = |config: Moe| error_of(4, Traffic::Moe(config));
        assert!(error(moe(0, 1, 0.0)).contains("tokens = 0: expected 1 or more"));
        assert!(error(moe(9, 5, 0.0)).contains("top_k = 5: expected 1 to 4, the hosts of a group"));
        assert!(error(moe(9, 1, -1.0)).contains("skew = -1: expected 0 to 10"));
        assert!(error(Moe { layers: 0, ..moe(9, 1, 0.0) }).contains("layers = 0"));
        assert!(error(Moe { token_size: Bytes::ZERO, ..moe(9, 1, 0.0) }).contains("token_size = 0B"));
    }
}
