//! Mixture-of-experts layers: tokens go to the hosts of their experts and come back.

use pathweave_units::{Bytes, Duration};
use serde::{Deserialize, Serialize};

use super::members::{Placement, listed_or_groups};
use crate::algorithm::Algorithm;
use crate::builder::Draft;
use crate::collective::{Sizes, Wires, direct_unless, pairwise_unless};
use crate::error::WorkloadError;
use crate::graph::{JobId, MAX_MESSAGE_SIZE, Parallelism};
use crate::sink::{Generate, Sink, Steps};

/// Groups of hosts that share the experts of a model. Each iteration of each group is a job.
///
/// In a layer each host computes (attention and router), sends its tokens to the hosts of their experts (dispatch),
/// computes what it was sent, and sends the results back (combine). Hosts are not equally popular: the k-th most popular
/// one draws tokens in proportion to k^-`skew`, from each host alike, but at most every token once. Who is popular is
/// drawn by seed for each layer. Token counts are these expectations rounded to whole tokens, not draws.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Moe {
    /// Tokens of each host.
    pub tokens: u32,
    /// Size of a token, such as 14,336 B: 7,168 values of 2 B (DeepSeek-V3).
    pub token_size: Bytes,
    /// Hosts each token goes to, at most the hosts of a group (default 2, as in Mixtral).
    #[serde(default = "two")]
    pub top_k: u32,
    /// How unequal hosts are: 0 for equal, 1 for the law of Zipf.
    #[serde(default)]
    pub skew: f64,
    /// Layers of an iteration.
    #[serde(default = "one")]
    pub layers: u32,
    /// Time a host computes before it dispatches.
    #[serde(default)]
    pub attention: Duration,
    /// Time a host computes between dispatch and combine if it got as many tokens as the mean; others in proportion.
    #[serde(default)]
    pub expert: Duration,
    /// Which messages are sent at once.
    #[serde(default)]
    pub exchange: Exchange,
    /// Hosts in a group. Default: one group of all hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_size: Option<u32>,
    /// Which hosts form a group.
    #[serde(default)]
    pub placement: Placement,
    /// The hosts of each group, instead of `group_size` and `placement`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Vec<u32>>,
    /// Iterations, one after another.
    #[serde(default = "one")]
    pub repetitions: u32,
}

/// Which messages of an exchange of tokens are sent at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Exchange {
    /// All.
    #[default]
    Direct,
    /// One a host: to the next host, then to the one after it, and so on.
    Pairwise,
}

fn one() -> u32 {
    1
}
fn two() -> u32 {
    2
}

impl Generate for Moe {
    fn generate(&self, out: &mut Sink<'_>) -> Result<(), WorkloadError> {
        let groups = listed_or_groups(out, &self.groups, self.group_size, self.placement)?;
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
    fn check(&self, out: &Sink<'_>, groups: &[Vec<u32>]) -> Result<(), WorkloadError> {
        for (field, value) in
            [("tokens", self.tokens), ("layers", self.layers), ("repetitions", self.repetitions)]
        {
            if value == 0 {
                return out.bad(field, 0, "expected 1 or more");
            }
        }
        let fewest = groups.iter().map(Vec::len).min().unwrap_or_default();
        if self.top_k == 0 || self.top_k as usize > fewest {
            return out.bad("top_k", self.top_k, format!("expected 1 to {fewest}, the hosts of a group"));
        }
        if !(0.0..=10.0).contains(&self.skew) {
            return out.bad("skew", self.skew, "expected 0 to 10");
        }
        let most = MAX_MESSAGE_SIZE.get() / u64::from(self.tokens);
        if self.token_size == Bytes::ZERO || self.token_size.get() > most {
            return out.bad("token_size", self.token_size, format!("expected 1 to {most} bytes"));
        }
        Ok(())
    }

    /// One layer, of which host j gets `tokens[j]` from each. `ready` are the tasks after which each host begins (none in
    /// the first). Returns those for the next.
    fn layer(
        &self,
        out: &mut Sink<'_>,
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

    /// What the messages of an exchange are steps of. Hosts send different amounts, so it has no bandwidth.
    fn steps(&self, kind: &'static str, ranks: usize) -> Steps<'static> {
        let algorithm = match self.exchange {
            Exchange::Direct => Algorithm::Direct,
            Exchange::Pairwise => Algorithm::Pairwise,
        };
        Steps { kind, ranks, algorithm, measure: None, parallelism: Some(Parallelism::Expert) }
    }

    /// Every host sends every other what `bytes` says. Returns what each sends and receives.
    fn exchange(
        &self,
        out: &mut Sink<'_>,
        members: &[u32],
        ready: &[Draft],
        bytes: &dyn Fn(usize, usize) -> u64,
        job: JobId,
    ) -> Result<Vec<Vec<Draft>>, WorkloadError> {
        let nothing = |src, dst| bytes(src, dst) == 0;
        let mut wires = Wires::new(out, members, ready, Sizes::Pairs(bytes), Some(job));
        match self.exchange {
            Exchange::Direct => direct_unless(&mut wires, members.len(), nothing)?,
            Exchange::Pairwise => pairwise_unless(&mut wires, members.len(), nothing)?,
        }
        Ok(wires.through)
    }

    fn join(
        &self,
        out: &mut Sink<'_>,
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

/// Tokens that each host gets from each, where `order` has them by popularity: shares in proportion to rank^-`skew`, none
/// above `tokens`, rounded so that they add up to `tokens` times `top_k`.
fn tokens_by_host(tokens: u32, top_k: u32, skew: f64, order: &[usize]) -> Vec<u32> {
    let n = order.len();
    let weight: Vec<f64> = (1..=n).map(|rank| libm::pow(rank as f64, -skew)).collect();
    // The most popular are full one after another, and what they cannot take is shared by the others.
    let (mut full, mut left) = (0, f64::from(tokens) * f64::from(top_k));
    let mut rest: f64 = weight.iter().sum();
    while full < n && left * weight[full] / rest >= f64::from(tokens) {
        left -= f64::from(tokens);
        rest -= weight[full];
        full += 1;
    }
    let share = |k: usize| if k < full { f64::from(tokens) } else { left * weight[k] / rest };
    let mut counts: Vec<u32> = (0..n).map(|k| share(k) as u32).collect();
    // Largest remainders first; the more popular first where they are equal.
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
        // Weights 1, 1/2, 1/3, 1/4 add up to 25/12: shares of 48, 24, 16, 12 tokens.
        assert_eq!(tokens_by_host(100, 1, 1.0, &[2, 0, 3, 1]), [24, 12, 48, 16]);
        // Twice as many: 96, 48, 32, 24. Three times: the first is full at 100, the others share 200 by 6 : 4 : 3, where
        // 92.31 + 61.54 + 46.15 leave one over for the largest remainder.
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
        // Four hosts get 50 tokens of 10 B from each: 5 us, 500 ns out, 20 us, 500 ns back.
        let graph = graph_of(4, Traffic::Moe(moe(100, 2, 0.0)));
        assert_eq!(graph.messages().len(), 24);
        assert_eq!(graph.total_bytes(), 24 * 500);
        assert_eq!(job_ends(&graph), [Time::from_us(26)]);
        assert_eq!(JobSpans::from_graph(&graph).span(JobId(0)), Duration::from_us(25));
        // One by one: three times as long each way.
        let pairwise = Moe { exchange: Exchange::Pairwise, repetitions: 2, ..moe(100, 2, 0.0) };
        assert_eq!(job_ends(&graph_of(4, Traffic::Moe(pairwise))), [Time::from_us(28), Time::from_us(56)]);
    }

    #[test]
    fn who_is_popular_computes_longer() {
        // The host with 48 of 100 tokens from each of four has 1.92 times the mean: 38.4 us. Its messages are the largest:
        // 480 ns each way.
        let graph = graph_of(4, Traffic::Moe(moe(100, 1, 1.0)));
        assert_eq!(job_ends(&graph), [Time::from_ns(5_000 + 480 + 38_400 + 480)]);
        // Everybody sends out 100 tokens less its own.
        assert_eq!(graph.total_bytes(), 2 * 3 * 100 * 10);
        // Each layer has popular experts of its own.
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
