//! Conversion of the nodes of all ranks to messages and computations.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use pathweave_units::{Bytes, Duration};

use super::Chakra;
use super::groups::{Group, Groups};
use crate::builder::{Draft, Stream};
use crate::collective::{Operation, Ranks};
use crate::error::{FileError, WorkloadError};
use crate::files::{ChakraAction, ChakraNode, ChakraOperation, ChakraRanks, ChakraReader, short};
use crate::graph::JobId;
use crate::kinds::ranks::{Matching, SendOrRecv, cycle};
use crate::sink::WorkloadBuilder;

/// A record of a rank's trace, for error messages.
#[derive(Clone, Copy)]
struct Place {
    rank: usize,
    record: u64,
}

/// A node that is part of the graph.
struct ConvertedNode {
    id: u64,
    record: u64,
    /// Task that waits for the node's dependencies.
    begin: Draft,
    /// Task that the node's dependents wait for.
    end: Draft,
    deps: Vec<u64>,
}

/// A rank's part of a collective.
struct CollectivePart {
    place: Place,
    /// Name of the node.
    name: String,
    operation: ChakraOperation,
    bytes: u64,
    connection: Option<u32>,
    begin: Draft,
    end: Draft,
}

/// State of the conversion, which reads the ranks of a trace one after another.
struct Converter<'a, 's> {
    config: &'a Chakra,
    out: &'a mut WorkloadBuilder<'s>,
    files: &'a [(String, PathBuf)],
    hosts: &'a [u32],
    job: JobId,
    pairing: Matching<Place>,
    groups: Groups,
    /// Collectives by process group and rank, in the order of the files.
    calls: BTreeMap<Group, BTreeMap<u32, Vec<CollectivePart>>>,
    /// Collectives of the rank that is being read. Their groups may be declared later in its file.
    of_rank: Vec<(ChakraRanks, CollectivePart)>,
    /// Unknown attributes, and the number of host calls that accompany the real communication.
    unknown: BTreeSet<String>,
    host_calls: u64,
    /// Number of computations for which the trace states operations but no duration.
    untimed: u64,
}

pub(super) fn play(
    config: &Chakra,
    out: &mut WorkloadBuilder<'_>,
    files: &[(String, PathBuf)],
    hosts: &[u32],
    groups: Groups,
) -> Result<(), WorkloadError> {
    let job = out.job("trace")?;
    let mut play = Converter {
        config,
        out,
        files,
        hosts,
        job,
        pairing: Matching::default(),
        groups,
        calls: BTreeMap::new(),
        of_rank: Vec::new(),
        unknown: BTreeSet::new(),
        host_calls: 0,
        untimed: 0,
    };
    for rank in 0..files.len() {
        play.rank(rank)?;
    }
    play.join_receives()?;
    play.run_collectives()?;
    if play.host_calls > 0 {
        let count = play.host_calls;
        play.out.note(format_args!(
            "{count} communications of the host in the trace have no particulars; they are work of the processor, the kernels behind them communicate"
        ));
    }
    if !play.unknown.is_empty() {
        let names = play.unknown.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        play.out.note(format_args!("attributes of the trace that are not read: {names}"));
    }
    if play.untimed == 0 && config.peak_tflops.is_some() {
        play.out
            .note_ineffective("peak_tflops", "no computation of the trace has operations and no duration");
    }
    if play.untimed > 0 && config.peak_tflops.is_none() {
        let count = play.untimed;
        play.out.note(format_args!(
            "{count} computations of the trace have operations and no duration; they take no time unless peak_tflops is set"
        ));
    }
    Ok(())
}

impl Converter<'_, '_> {
    fn fail<T>(&self, place: Place, what: impl std::fmt::Display) -> Result<T, WorkloadError> {
        let file = &self.files[place.rank].0;
        Err(FileError::whole(file, format!("record {}: {what}", place.record)).into())
    }

    /// Reads a rank's file. Drops its nodes once their dependencies are in the graph.
    fn rank(&mut self, rank: usize) -> Result<(), WorkloadError> {
        let (name, path) = &self.files[rank];
        let file =
            File::open(path).map_err(|why| FileError::whole(name, format!("cannot read it: {why}")))?;
        let mut placed: Vec<ConvertedNode> = Vec::new();
        let mut reader = ChakraReader::new(BufReader::new(file), name)?;
        for node in reader.by_ref() {
            placed.push(self.node(rank, node?)?);
        }
        self.host_calls += reader.host_calls();
        self.unknown.extend(reader.unknown().iter().cloned());
        for (among, call) in std::mem::take(&mut self.of_rank) {
            let group = self.groups.of(rank as u32, &among).or_else(|what| self.fail(call.place, what))?;
            self.calls.entry(group).or_default().entry(rank as u32).or_default().push(call);
        }
        let mut by_id: Vec<(u64, u32)> = placed.iter().zip(0..).map(|(node, i)| (node.id, i)).collect();
        by_id.sort_unstable();
        if let Some(twice) = by_id.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            let (first, second) = (&placed[twice[0].1 as usize], &placed[twice[1].1 as usize]);
            let place = Place { rank, record: second.record };
            return self
                .fail(place, format_args!("id = {}: that of record {} already", second.id, first.record));
        }
        let of_id =
            |id: u64| by_id.binary_search_by_key(&id, |entry| entry.0).ok().map(|at| by_id[at].1 as usize);
        let mut before: Vec<Vec<u32>> = Vec::with_capacity(placed.len());
        for node in &placed {
            let mut rows = Vec::with_capacity(node.deps.len());
            for &dep in &node.deps {
                let Some(other) = of_id(dep) else {
                    let place = Place { rank, record: node.record };
                    return self.fail(
                        place,
                        format_args!("node {} waits for node {dep}, which is not in the file", node.id),
                    );
                };
                self.out.after(node.begin, placed[other].end)?;
                rows.push(other as u32);
            }
            before.push(rows);
        }
        match cycle(&before) {
            None => Ok(()),
            Some(cycle) => {
                let place = Place { rank, record: placed[cycle[0] as usize].record };
                let ids: Vec<String> =
                    cycle.iter().take(8).map(|&i| placed[i as usize].id.to_string()).collect();
                let more = if cycle.len() > 8 { ", ..." } else { "" };
                self.fail(
                    place,
                    format_args!("nodes wait for each other in a cycle: {}{more}", ids.join(" for ")),
                )
            }
        }
    }

    fn node(&mut self, rank: usize, node: ChakraNode) -> Result<ConvertedNode, WorkloadError> {
        let place = Place { rank, record: node.record };
        let activity = match &node.action {
            ChakraAction::Nothing | ChakraAction::Groups(_) => "metadata",
            ChakraAction::Compute { .. } => "compute",
            ChakraAction::Send { .. } => "send",
            ChakraAction::Receive { .. } => "receive",
            ChakraAction::Collective { operation, .. } => operation.name(),
        };
        self.out.doing(activity, short(&node.name));
        let (begin, end) = match node.action {
            ChakraAction::Nothing => self.compute(rank, Duration::ZERO).map(|task| (task, task))?,
            ChakraAction::Groups(groups) => {
                self.groups.add(rank as u32, groups).or_else(|what| self.fail(place, what))?;
                self.compute(rank, Duration::ZERO).map(|task| (task, task))?
            }
            ChakraAction::Compute { duration, operations } => {
                let duration =
                    if duration == Duration::ZERO { self.time_of(place, operations)? } else { duration };
                self.compute(rank, duration).map(|task| (task, task))?
            }
            ChakraAction::Send { to, bytes, tag, connection } => {
                self.check_peer(place, "comm_dst", to)?;
                let pair = (self.hosts[rank], self.hosts[to as usize]);
                // The smallest message has one byte.
                let size = Bytes::new(bytes.max(1));
                let stream = connection.unwrap_or(Stream::Shared(0));
                let message = self.out.message(pair, size, Duration::ZERO, stream, Some(self.job));
                let message = message.or_else(|why| self.fail(place, why))?;
                self.out.name_task(message, &format!("record {} of rank {rank}", node.record));
                self.pairing.send((rank as u32, to, tag), SendOrRecv { place, task: message, bytes });
                (message, message)
            }
            ChakraAction::Receive { from, bytes, tag } => {
                self.check_peer(place, "comm_src", from)?;
                let task = self.compute(rank, Duration::ZERO)?;
                self.pairing.receive((from, rank as u32, tag), SendOrRecv { place, task, bytes });
                (task, task)
            }
            ChakraAction::Collective { operation, bytes, ranks: among, connection } => {
                let (begin, end) = (self.compute(rank, Duration::ZERO)?, self.compute(rank, Duration::ZERO)?);
                self.out.name_task(begin, &format!("{} of rank {rank}", short(&node.name)));
                self.out.after(end, begin)?;
                let name = short(&node.name).to_string();
                let call = CollectivePart { place, name, operation, bytes, connection, begin, end };
                self.of_rank.push((among, call));
                (begin, end)
            }
        };
        Ok(ConvertedNode { id: node.id, record: node.record, begin, end, deps: node.deps })
    }

    fn compute(&mut self, rank: usize, duration: Duration) -> Result<Draft, WorkloadError> {
        self.out.compute(self.hosts[rank], duration, self.job)
    }

    /// Returns the duration of a number of operations.
    fn time_of(&mut self, place: Place, operations: u64) -> Result<Duration, WorkloadError> {
        self.untimed += u64::from(operations > 0);
        let Some(peak) = self.config.peak_tflops else { return Ok(Duration::ZERO) };
        // 10^12 operations per second are one operation per picosecond.
        let ps = operations as f64 / peak;
        if ps > 1e18 {
            return self.fail(place, format_args!("num_ops = {operations}: takes longer than a run can"));
        }
        Ok(Duration::from_ps(ps as u64))
    }

    fn check_peer(&self, place: Place, field: &str, peer: u32) -> Result<(), WorkloadError> {
        let ranks = self.files.len();
        if peer as usize >= ranks {
            let (name, _) = &self.files[place.rank];
            let rank = format!(".{}.et", place.rank);
            let missing = name.strip_suffix(rank.as_str()).map(|prefix| format!("{prefix}.{peer}.et"));
            let missing = missing.unwrap_or_else(|| "its file".to_owned());
            let there = match ranks {
                1 => "only the file of rank 0 is".to_owned(),
                _ => format!("only files of ranks 0 to {} are", ranks - 1),
            };
            return self.fail(place, format_args!("{field} = {peer}: {missing} is missing, {there} there"));
        }
        if peer as usize == place.rank {
            return self.fail(place, format_args!("{field} = {peer}: the rank itself"));
        }
        Ok(())
    }

    /// Makes each receive wait for the matching message.
    fn join_receives(&mut self) -> Result<(), WorkloadError> {
        let joined = std::mem::take(&mut self.pairing).matched("comm_size");
        for (receive, message) in joined.or_else(|(place, what)| self.fail(place, what))? {
            self.out.after(receive, message)?;
        }
        Ok(())
    }

    fn run_collectives(&mut self) -> Result<(), WorkloadError> {
        for (number, (Group { name, members }, mut by_rank)) in (1u32..).zip(std::mem::take(&mut self.calls))
        {
            let some = first_place(&by_rank);
            let mut calls: Vec<Vec<CollectivePart>> = Vec::with_capacity(members.len());
            for rank in &members {
                calls.push(by_rank.remove(rank).unwrap_or_default());
            }
            if let Some(outsider) = by_rank.values().next().and_then(|calls| calls.first()) {
                return self.fail(outsider.place, "this rank is not of the process group");
            }
            let most = calls.iter().map(Vec::len).max().unwrap_or_default();
            if let Some(fewer) = calls.iter().position(|calls| calls.len() < most) {
                let (rank, has) = (members[fewer], calls[fewer].len());
                let group = name.map_or(String::new(), |name| format!(" \"{}\"", short(&name)));
                return self.fail(
                    some,
                    format_args!(
                        "rank {rank} takes part in {has} collectives of the group{group}, another in {most}"
                    ),
                );
            }
            let hosts: Vec<u32> = members.iter().map(|&rank| self.hosts[rank as usize]).collect();
            for round in 0..most {
                let parts: Vec<&CollectivePart> = calls.iter().map(|calls| &calls[round]).collect();
                self.collective(number, &hosts, &parts)?;
            }
        }
        Ok(())
    }

    fn collective(
        &mut self,
        group: u32,
        hosts: &[u32],
        parts: &[&CollectivePart],
    ) -> Result<(), WorkloadError> {
        let CollectivePart { operation, bytes, connection, place, .. } = *parts[0];
        if let Some(other) = parts.iter().find(|part| part.connection != connection) {
            let number =
                |connection: Option<u32>| connection.map_or("none".to_owned(), |number| number.to_string());
            let (one, of_first) = (number(other.connection), number(connection));
            let what = format!("pathweave_connection = {one}, where rank {} has {of_first}", place.rank);
            return self.fail(other.place, what);
        }
        let stream = connection.unwrap_or(group);
        if let Some(other) = parts.iter().find(|part| (part.operation, part.bytes) != (operation, bytes)) {
            let what = format!(
                "{} of {} bytes, where rank {} has {} of {bytes} bytes",
                other.operation.name(),
                other.bytes,
                place.rank,
                operation.name()
            );
            return self.fail(other.place, what);
        }
        if parts.len() < 2 {
            return Ok(());
        }
        let name = format!("{} of record {}, group {group}", operation.name(), place.record);
        let ChakraOperation::Algorithm(operation) = operation else {
            let job = self.out.job_within(self.job, name)?;
            return self.one_by_one((stream, job), hosts, parts);
        };
        // ASTRA-sim counts the part that each rank contributes to an all-gather.
        let factor = if operation == Operation::AllGather { parts.len() as u64 } else { 1 };
        let bytes = bytes.saturating_mul(factor);
        let plan = match self.config.algorithms.planned(self.out.env, operation, hosts, bytes) {
            Ok(plan) => plan,
            Err((field, value, allowed)) => {
                return self.fail(place, format_args!("algorithms.{field} = {value}: {allowed}"));
            }
        };
        self.out.check_count(plan.messages())?;
        let job = self.out.job_within(self.job, name)?;
        let steps = plan.steps(None);
        if let Some(measure) = steps.measure {
            self.out.measure(job, measure);
        }
        self.out.collective(&parts[0].name, steps);
        let ready: Vec<Option<Draft>> = parts.iter().map(|part| Some(part.begin)).collect();
        let all = plan.put(self.out, Ranks { members: hosts, alike: None, ready: &ready, stream, job })?;
        for (part, through) in parts.iter().zip(all) {
            for (message, moment) in through {
                self.out.after_moment(part.end, message, moment)?;
            }
        }
        Ok(())
    }

    /// Declares a gather or a scatter: a message between the first rank and each other rank.
    fn one_by_one(
        &mut self,
        (stream, job): (u32, JobId),
        hosts: &[u32],
        parts: &[&CollectivePart],
    ) -> Result<(), WorkloadError> {
        let CollectivePart { operation, bytes, .. } = *parts[0];
        self.out.doing(operation.name(), &parts[0].name);
        for other in 1..parts.len() {
            let (from, to) = if operation == ChakraOperation::Gather { (other, 0) } else { (0, other) };
            let size = Bytes::new(bytes.max(1));
            let pair = (hosts[from], hosts[to]);
            let message = self.out.message(pair, size, Duration::ZERO, Stream::Shared(stream), Some(job))?;
            self.out.after(message, parts[from].begin)?;
            self.out.after(parts[from].end, message)?;
            self.out.after(parts[to].end, message)?;
        }
        Ok(())
    }
}

fn first_place(by_rank: &BTreeMap<u32, Vec<CollectivePart>>) -> Place {
    by_rank.values().next().and_then(|calls| calls.first()).expect("a group is known from a call").place
}
