//! Lower bound of the time of an iteration, from the work of stages and the rates of hosts, without messages.
//!
//! A GPU does its steps one after another, and each collective that it takes part in needs the time of the bytes that
//! it has to send or receive, by any algorithm. Stages wait for each other along the pipeline. A server's GPUs together
//! send or receive outside of it no faster than its NICs.

use std::collections::BTreeMap;

use pathweave_topo::{Servers, Topology};
use pathweave_units::{Duration, HostId, Rate};

use super::axes::Span;
use super::fold::Groups;
use super::layers::{Comm, Step};
use super::schedule::PipelineSchedule;
use super::staged::{Program, Staged};
use crate::collective::Operation;

/// Part of the bound that remains after rounding of scaled sizes and durations.
const ROUNDING: f64 = 1.0 - 1e-6;

/// Rates of the links of a GPU and of its server, bytes per second.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Links {
    /// Links inside the server; 0 without scale-up network.
    inside: f64,
    /// Ports of the GPU to other servers.
    outside: f64,
    /// All NICs of the server.
    nics: f64,
}

/// Members of the groups of one kind in the server of a stage's first GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Members {
    /// Members of the group of the first GPU.
    own: usize,
    /// Members of each group.
    all: Vec<usize>,
}

/// A stage as its first GPU sees it.
struct StageView {
    links: Links,
    members: BTreeMap<Span, Members>,
}

/// Smallest times of a stage, in seconds.
#[derive(Clone, Copy, Debug, Default)]
struct StageTimes {
    /// Time until its weights are there: for the first GPU, and for the last one of its server.
    gather: [f64; 2],
    /// A microbatch forward, and backward, in the stage's first chunk.
    forward: f64,
    backward: f64,
    /// All steps of all microbatches.
    work: f64,
    /// Time from the last backward pass to the end of the optimizer: for the first GPU, and for the last one of its server.
    end: [f64; 2],
    /// Time until activations are at the next stage.
    pass: f64,
    /// All bytes that leave or enter its server, at the rate of the NICs.
    nics: f64,
}

fn bytes_per_second(rate: Rate) -> f64 {
    rate.as_bps() as f64 / 8.0
}

fn seconds(time: Duration) -> f64 {
    time.as_ps() as f64 * 1e-12
}

impl Staged<'_> {
    /// Returns a time that no iteration falls below, on a network that is limited by the links of hosts only. `hosts`
    /// are the hosts of the GPUs.
    pub(super) fn lower_bound(&self, hosts: Vec<HostId>, topology: &Topology) -> Duration {
        let program = self.program();
        let groups: Groups =
            Span::ALL.into_iter().map(|span| (span, self.layers.axes.groups(span))).collect();
        let of_stage = |stage: usize| {
            let first = self.layers.axes.stage(stage)[0];
            let view = self.view(stage, first, &groups, &hosts, topology);
            self.times(stage, &view, &program)
        };
        let stages: Vec<StageTimes> = (0..self.layers.axes.pp).map(of_stage).collect();
        // Bounds of a server hold for some GPU of it, which may not be the first unless all are alike.
        let ways: &[[usize; 2]] =
            if is_regular(&groups, &hosts, topology) { &[[1, 0], [0, 1]] } else { &[[0, 0]] };
        let longest = ways
            .iter()
            .map(|&[gather, end]| path(&stages, gather, end, self.pipeline.schedule))
            .chain(stages.iter().map(|stage| stage.nics))
            .fold(0.0, f64::max);
        Duration::from_ps((longest * self.scale * ROUNDING * 1e12) as u64)
    }

    fn view(
        &self,
        stage: usize,
        first: usize,
        groups: &Groups,
        hosts: &[HostId],
        topology: &Topology,
    ) -> StageView {
        let here = hosts[first];
        let scale_up = topology.servers().and_then(Servers::any_scale_up);
        let joins = |host: HostId| host == here || scale_up.is_some_and(|up| up.joins(here, host));
        let members = |(span, stages): &(Span, Vec<Vec<Vec<usize>>>)| {
            let mut found = Members::default();
            for group in &stages[stage] {
                let count = group.iter().filter(|&&gpu| joins(hosts[gpu])).count();
                if group.binary_search(&first).is_ok() {
                    found.own = count;
                }
                if count > 0 {
                    found.all.push(count);
                }
            }
            (*span, found)
        };
        let server = (0..topology.hosts()).map(HostId).filter(|&host| joins(host));
        let links = Links {
            inside: scale_up.map_or(0.0, |up| bytes_per_second(up.rate_of(here))),
            outside: bytes_per_second(topology.scale_out_rate(here)),
            nics: rate_of_nics(topology, server),
        };
        StageView { links, members: groups.iter().map(members).collect() }
    }

    fn times(&self, stage: usize, view: &StageView, program: &Program) -> StageTimes {
        let batches = f64::from(self.pipeline.microbatches);
        let walk = |steps: &[Step]| self.walk(steps, view);
        let first = &program.chunks[stage];
        let mut times = StageTimes {
            forward: walk(&first.forward),
            backward: walk(&first.backward),
            pass: self.layers.activations() as f64
                / self.layers.axes.tp as f64
                / view.links.outside.max(view.links.inside),
            ..StageTimes::default()
        };
        let mut outside = 0.0;
        for place in (stage..self.chunks.len()).step_by(self.layers.axes.pp) {
            let work = &program.chunks[place];
            for steps in [&work.forward, &work.backward, &work.weights] {
                times.work += batches * walk(steps);
            }
            let of_steps = work.steps().filter_map(|step| Some((step, step.comm()?)));
            outside += of_steps
                .map(|(step, comm)| match step {
                    Step::Last(_) => self.outside(comm, view),
                    _ => batches * self.outside(comm, view),
                })
                .sum::<f64>();
            outside += program.gathers[place].iter().map(|comm| self.outside(*comm, view)).sum::<f64>();
        }
        times.nics = outside / view.links.nics;
        times.gather = program.gathers[stage].iter().fold([0.0f64, 0.0], |[own, server], &comm| {
            let time = self.time(comm, view);
            [own.max(time), server.max(time).max(self.outside(comm, view) / view.links.nics)]
        });
        let update = seconds(program.updates[stage]);
        let last = if self.layers.splits_backward { &first.weights } else { &first.backward };
        times.end = self.after(last, view).map(|time| time + update);
        times
    }

    /// Returns the time from the end of the last microbatch's last pass to that of the reductions which begin in it:
    /// for the first GPU, and for the last one of its server. Those of the same ranks share their links.
    fn after(&self, steps: &[Step], view: &StageView) -> [f64; 2] {
        let mut begins: Vec<(Comm, f64)> = Vec::new();
        let whole = self.walk_with(steps, view, |comm, now| begins.push((comm, now)));
        let mut sums: BTreeMap<Span, [f64; 2]> = BTreeMap::new();
        let mut longest = [0.0f64; 2];
        for (comm, begin) in begins.into_iter().rev() {
            let [own, nics] = sums.entry(comm.over).or_default();
            *own += self.time(comm, view);
            *nics += self.outside(comm, view) / view.links.nics;
            let left = whole - begin;
            longest = [longest[0].max(*own - left), longest[1].max(own.max(*nics) - left)];
        }
        longest
    }

    /// Returns the time of the steps of a GPU.
    fn walk(&self, steps: &[Step], view: &StageView) -> f64 {
        self.walk_with(steps, view, |_, _| {})
    }

    /// Returns the time of the steps of a GPU. `at_last` takes each reduction of the last microbatch and its begin.
    fn walk_with(&self, steps: &[Step], view: &StageView, mut at_last: impl FnMut(Comm, f64)) -> f64 {
        let mut now = 0.0;
        let mut slots: BTreeMap<u32, f64> = BTreeMap::new();
        for step in steps {
            match *step {
                Step::Compute { time, .. } => now += seconds(time),
                Step::Start { slot, comm } => {
                    let end = slots.entry(slot).or_insert(0.0);
                    *end = end.max(now + self.time(comm, view));
                }
                Step::Await { slot } => now = now.max(slots.remove(&slot).unwrap_or(0.0)),
                Step::Beside(_) => {}
                Step::Last(comm) => at_last(comm, now),
            }
        }
        now
    }

    /// Returns the time of a collective at the first GPU: that of the bytes which it has to send or receive itself, and
    /// of those which its group has to send to other servers or receive from them.
    fn time(&self, comm: Comm, view: &StageView) -> f64 {
        let ranks = self.layers.axes.ranks(comm.over) as f64;
        let members = &view.members[&comm.over];
        let within = members.own as f64 >= ranks;
        let Links { inside, outside, nics } = view.links;
        let own = comm.bytes as f64 * (ranks - 1.0) / ranks;
        let rate = if within && inside > 0.0 { inside } else { inside + outside };
        (own / rate).max(outside_of_group(comm, ranks, members.own) / nics)
    }

    /// Returns the bytes that the groups of the stage have to send out of the server, or receive there.
    fn outside(&self, comm: Comm, view: &StageView) -> f64 {
        let ranks = self.layers.axes.ranks(comm.over) as f64;
        view.members[&comm.over].all.iter().map(|&count| outside_of_group(comm, ranks, count)).sum()
    }
}

/// Returns true if all groups of a kind have as many members in each server in which they have any.
fn is_regular(groups: &Groups, hosts: &[HostId], topology: &Topology) -> bool {
    let scale_up = topology.servers().and_then(Servers::any_scale_up);
    let server = |gpu: usize| scale_up.map_or(hosts[gpu].0, |up| up.domain_of(hosts[gpu]));
    groups.iter().all(|(_, stages)| {
        let mut counts = stages.iter().flatten().flat_map(|group| {
            let mut of_server: BTreeMap<u32, usize> = BTreeMap::new();
            group.iter().for_each(|&gpu| *of_server.entry(server(gpu)).or_default() += 1);
            of_server.into_values()
        });
        let first = counts.next();
        counts.all(|count| Some(count) == first)
    })
}

/// Returns the bytes that `members` of a group have to send to all others, or receive from them, with partial sums
/// added up among them first.
fn outside_of_group(comm: Comm, ranks: f64, members: usize) -> f64 {
    let members = members as f64;
    let part = comm.bytes as f64 * (ranks - members).max(0.0) / ranks;
    match comm.operation {
        Operation::AllToAll => members * part,
        _ => part,
    }
}

/// Returns the total rate of the NICs of these hosts, which may share them.
fn rate_of_nics(topology: &Topology, hosts: impl Iterator<Item = HostId>) -> f64 {
    let (mut own, mut shared) = (0.0, BTreeMap::new());
    for host in hosts {
        own += bytes_per_second(topology.scale_out_rate(host));
        if let Some((nic, rate)) = topology.shared_nic(host) {
            shared.insert(nic, bytes_per_second(rate));
        }
    }
    match shared.is_empty() {
        true => own,
        false => own.min(shared.values().sum()),
    }
}

/// Returns the longest way through the pipeline: forward to a stage, all of its work, and backward to the first stage.
/// `gather` and `end` select the GPU.
fn path(stages: &[StageTimes], gather: usize, end: usize, schedule: PipelineSchedule) -> f64 {
    let (mut ready, mut after, mut longest) = (0.0f64, 0.0f64, 0.0f64);
    for (number, stage) in stages.iter().enumerate() {
        ready = match number.checked_sub(1).map(|before| &stages[before]) {
            None => stage.gather[gather],
            Some(before) => stage.gather[gather].max(ready + before.forward + before.pass),
        };
        after = match number.checked_sub(1).map(|before| &stages[before]) {
            // Gradients of weights may come after the last backward pass.
            Some(before) if !schedule.splits_backward() => {
                stage.end[end].max(before.pass + before.backward + after)
            }
            _ => stage.end[end],
        };
        longest = longest.max(ready + stage.work + after);
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::super::tests::tiny;
    use super::super::{Optimizer, Transformer};
    use super::*;
    use crate::config::WorkloadConfig;
    use crate::env::WorkloadEnv;
    use crate::kinds::Traffic;

    /// Time of a layer forward at an operation a nanosecond, as in the tests of stages, and of the vocabulary's product.
    const LAYER_NS: u64 = 8 * (2 * 4 * 64 * 64 + 2 * 128 * 4 + 2 * 2 * 64 * 128);
    const LOGITS_NS: u64 = 8 * 2 * 100 * 64;

    /// One byte a nanosecond.
    const STAR: &str = "kind = 'star'\nhosts = 4\nrate = '8Gbps'";
    /// Two servers of two GPUs, inside of which ten bytes take a nanosecond.
    const SERVERS: &str = "kind = 'cluster'\nservers = 2\nattach = 'server'\n\
        server = { gpus = 2, nics = 2, port_rate = '8Gbps', scale_up = { kind = 'switch', rate = '80Gbps' } }\n\
        scale_out = { kind = 'star', hosts = 4, rate = '8Gbps' }";

    fn bound_ns(topology: &str, job: Transformer) -> u64 {
        let config: pathweave_topo::TopologyConfig = toml::from_str(topology).unwrap();
        let topology = config.build(std::path::Path::new(".")).unwrap();
        let env = WorkloadEnv::new(topology.hosts(), Rate::from_gbps(8));
        let outlook =
            WorkloadConfig::new(Traffic::Transformer(job)).outlook(&env, &topology).unwrap().unwrap();
        (outlook.bound.expect("stages have one").as_secs_f64() / ROUNDING * 1e9).round() as u64
    }

    fn staged() -> Transformer {
        let schedule = Some(PipelineSchedule::OneForwardOneBackward);
        Transformer { schedule, optimizer: Optimizer::Replicated, ..tiny() }
    }

    /// The stage with the logits works on four microbatches; the other one goes first and last. Half of the GPUs have
    /// the other replica, and half of 2 x 100 x 64 parameters and a layer, in two bytes, leave a GPU after that.
    #[test]
    fn a_pipeline_by_hand() {
        let job = Transformer { pp: 2, microbatches: 4, ..staged() };
        let pass = 8 * 64 * 2;
        let way = 3 * LAYER_NS + 12 * (LAYER_NS + LOGITS_NS) + 2 * pass;
        assert_eq!(bound_ns(STAR, Transformer { gpus: Some(2), ..job.clone() }), way);
        let gradients = (4 * 64 * 64 + 2 * 64 * 128 + 100 * 64) * 2 / 2;
        assert_eq!(bound_ns(STAR, job), way + gradients);
    }

    /// Twelve collectives of 8 x 64 values in two bytes, of which a GPU sends half.
    #[test]
    fn tensor_parallelism_by_hand() {
        let job = Transformer { tp: 2, layers: Some(1), gpus: Some(2), ..staged() };
        let compute = 3 * (LAYER_NS + LOGITS_NS) / 2;
        assert_eq!(bound_ns(STAR, job.clone()), compute + 12 * 512);
        let inside = bound_ns(SERVERS, job);
        assert!(inside.abs_diff(compute + 12 * 512 / 10) <= 1, "{inside}");
    }

    /// Replicas in two servers reduce half of a layer and of two embeddings for each GPU, over two NICs. Those of the
    /// output are complete early. After those of the layer, the last of twelve collectives follows.
    #[test]
    fn replicas_in_servers_by_hand() {
        let job = Transformer { tp: 2, layers: Some(1), ..staged() };
        let compute = 3 * (LAYER_NS + LOGITS_NS) / 2;
        let gradients = (4 * 64 * 64 + 2 * 64 * 128 + 100 * 64) / 2 * 2 / 2;
        let found = bound_ns(SERVERS, job);
        assert!(found.abs_diff(compute + 11 * 512 / 10 + gradients) <= 1, "{found}, {compute}, {gradients}");
    }
}
