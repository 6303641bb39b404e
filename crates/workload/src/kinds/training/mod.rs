//! Data-parallel training: one ring all-reduce per bucket of gradients, overlapped with the backward pass.

mod buckets;
mod models;
#[cfg(test)]
mod tests;

use pathweave_units::{Bytes, Duration};
use serde::{Deserialize, Serialize};

pub use self::models::Model;

use self::buckets::{Bucket, Bucketing};
use self::models::Layer;
use super::placement::{GroupSize, Placement, groups};
use crate::builder::Draft;
use crate::collective::{Plan, Ranks, Through};
use crate::error::WorkloadError;
use crate::graph::{JobId, Parallelism};
use crate::sink::{Generate, WorkloadBuilder};

/// Groups of hosts that each train a network with data parallelism. Each iteration of each group is a job.
///
/// In an iteration, every host computes forward and then backward, layer by layer from the last to the first.
/// A layer's share of the backward pass is its share of the multiplications. Gradients are collected in
/// buckets in that order.
///
/// A bucket is reduced around a ring once a host knows all its gradients and has finished its part of the
/// previous bucket, because collectives of one stream run one after another. The next forward pass begins at
/// a host when its part of the last bucket has ended. The method is that of PyTorch's DistributedDataParallel
/// (Li et al., VLDB 2020, section 3.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Training {
    /// Network that is trained.
    pub model: Model,
    /// Number of hosts that train together, or a list of numbers, one for each group. Default: one group of
    /// all hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_size: Option<GroupSize>,
    /// Assignment of hosts to groups.
    #[serde(default)]
    pub placement: Placement,
    /// Number of iterations, one after another (default 1).
    #[serde(default = "one")]
    pub iterations: u32,
    /// Duration of the forward pass. Default: 55 ms for resnet-50 and 74 ms for vgg-16. These are a third of
    /// an iteration of 32 images at 195 and 144 images/s (TensorFlow r1 benchmarks, one Tesla P100).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forward: Option<Duration>,
    /// Duration of the backward pass. Default: 109 ms for resnet-50 and 148 ms for vgg-16, two thirds of the
    /// same iteration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backward: Option<Duration>,
    /// Bytes of the gradient of one parameter, 1 to 8: 4 in single precision, 2 in half precision (default
    /// 4).
    #[serde(default = "four")]
    pub bytes_per_parameter: u32,
    /// Size from which a bucket is full, bytes (default 25 MiB, as in PyTorch). "0B" reduces every tensor by
    /// itself. Tensors are not split.
    #[serde(default = "bucket_cap")]
    pub bucket_cap: Bytes,
    /// Size from which the first bucket of an iteration is full, bytes (default 1 MiB, as in PyTorch). It is
    /// smaller so that communication begins early.
    #[serde(default = "first_bucket")]
    pub first_bucket: Bytes,
    /// Factor on all sizes and durations, above 0 and at most 1, for quick runs (default 1). The ratio of
    /// computation to communication stays the same; the ratio to latency does not.
    #[serde(default = "whole")]
    pub scale: f64,
}

fn one() -> u32 {
    1
}
fn four() -> u32 {
    4
}
fn bucket_cap() -> Bytes {
    Bytes::new(25 << 20)
}
fn first_bucket() -> Bytes {
    Bytes::new(1 << 20)
}
fn whole() -> f64 {
    1.0
}

impl Generate for Training {
    fn generate(&self, out: &mut WorkloadBuilder<'_>) -> Result<(), WorkloadError> {
        self.train(out, &self.model.layers())
    }
}

impl Training {
    fn train(&self, out: &mut WorkloadBuilder<'_>, layers: &[Layer]) -> Result<(), WorkloadError> {
        self.check(out)?;
        let (forward, backward) = self.model.passes();
        let (forward, backward) = (self.forward.unwrap_or(forward), self.backward.unwrap_or(backward));
        let bucketing = Bucketing {
            bytes_per_parameter: u64::from(self.bytes_per_parameter),
            first_bytes: self.first_bucket.get(),
            cap_bytes: self.bucket_cap.get(),
        };
        let steps = steps(&bucketing.fill(layers), backward.scale(self.scale), self.scale);
        let groups = groups(out, self.group_size.as_ref(), self.placement)?;
        let n = groups.iter().map(Vec::len).max().unwrap_or_default() as u32;
        let smallest = steps.iter().map(|s| s.size).min().expect("a network has gradients");
        if smallest.get() < u64::from(n) {
            return out.field_error(
                "scale",
                self.scale,
                format!("leaves a bucket of {smallest}; a ring of {n} needs {n}B"),
            );
        }
        // A forward pass, and for each bucket a ring and two computations per host.
        let tasks = |group: &Vec<u32>| {
            let (ranks, hosts) = (group.len(), group.len() as f64);
            hosts + (Plan::ring_all_reduce(ranks, smallest).messages() + 2.0 * hosts) * steps.len() as f64
        };
        out.check_count(groups.iter().map(tasks).sum::<f64>() * f64::from(self.iterations))?;

        for (index, members) in groups.iter().enumerate() {
            let (mut last, mut before) = (Vec::new(), None);
            for number in 0..self.iterations {
                let job = out.next_job(format_args!("ring {index}, iteration {number}"), &mut before)?;
                last = iteration(out, members, forward.scale(self.scale), &steps, &last, job)?;
            }
        }
        Ok(())
    }

    fn check(&self, out: &WorkloadBuilder<'_>) -> Result<(), WorkloadError> {
        if self.iterations == 0 {
            return out.field_error("iterations", 0, "expected 1 or more");
        }
        if !(1..=8).contains(&self.bytes_per_parameter) {
            return out.field_error("bytes_per_parameter", self.bytes_per_parameter, "expected 1 to 8");
        }
        if !(self.scale > 0.0 && self.scale <= 1.0) {
            return out.field_error("scale", self.scale, "expected a factor above 0 and at most 1");
        }
        Ok(())
    }
}

/// One bucket in the course of an iteration.
struct Step {
    /// Computation between the gradients of the previous bucket and those of this one.
    compute: Duration,
    /// Size of the reduction.
    size: Bytes,
}

/// Converts the work of buckets to shares of the backward pass. All shares together are exactly the pass.
fn steps(buckets: &[Bucket], backward: Duration, scale: f64) -> Vec<Step> {
    let total = buckets.last().map_or(1, |b| b.macs.max(1));
    let until = |macs: u64| {
        let ps = u128::from(backward.as_ps()) * u128::from(macs) / u128::from(total);
        Duration::from_ps(u64::try_from(ps).expect("a share of the pass is not longer than the pass"))
    };
    let mut before = Duration::ZERO;
    buckets
        .iter()
        .map(|bucket| {
            let end = until(bucket.macs);
            let compute = end - std::mem::replace(&mut before, end);
            Step { compute, size: Bytes::new((bucket.bytes as f64 * scale + 0.5) as u64) }
        })
        .collect()
}

/// Declares one iteration of one group. `last` holds the messages of each host in the last reduction of the
/// previous iteration; it is empty in the first. Returns those of this iteration.
fn iteration(
    out: &mut WorkloadBuilder<'_>,
    members: &[u32],
    forward: Duration,
    steps: &[Step],
    last: &[Through],
    job: JobId,
) -> Result<Vec<Through>, WorkloadError> {
    let mut last = last.to_vec();
    // Last computation of each host.
    let mut computed = Vec::with_capacity(members.len());
    out.label_activity("forward");
    for (i, &host) in members.iter().enumerate() {
        let pass = out.compute(host, forward, job)?;
        if let Some(last) = last.get(i) {
            join(out, pass, last)?;
        }
        computed.push(pass);
    }
    for (number, step) in steps.iter().enumerate() {
        let mut ready = Vec::with_capacity(members.len());
        out.doing("backward", format_args!("to bucket {number}"));
        for (i, &host) in members.iter().enumerate() {
            let gradients = out.compute(host, step.compute, job)?;
            out.after(gradients, computed[i])?;
            computed[i] = gradients;
            if number == 0 {
                ready.push(Some(gradients));
                continue;
            }
            // Its predecessors are the gradients and the end of the previous bucket.
            let begin = out.compute(host, Duration::ZERO, job)?;
            out.after(begin, gradients)?;
            join(out, begin, &last[i])?;
            ready.push(Some(begin));
        }
        let plan = Plan::ring_all_reduce(members.len(), step.size);
        out.collective(format_args!("bucket {number}"), plan.steps(Some(Parallelism::Data)));
        last = plan.put(out, Ranks { members, alike: None, ready: &ready, stream: 0, job })?;
        // Around a ring, the last message that a host sends and the last that it receives end last.
        last.iter_mut().for_each(|part| drop(part.drain(..part.len() - 2)));
    }
    Ok(last)
}

/// Makes `task` wait for the end of its host's part of a reduction.
fn join(out: &mut WorkloadBuilder<'_>, task: Draft, part: &Through) -> Result<(), WorkloadError> {
    part.iter().try_for_each(|&(message, moment)| out.after_moment(task, message, moment))
}
