//! Executed collectives as messages of the graph.

use pathweave_units::{Bytes, Duration};

use super::plan::Plan;
use super::wires::{Hop, Waits, Way, Wires};
use crate::builder::{Draft, Stream};
use crate::collective::{Ranks, Through};
use crate::counts::Counts;
use crate::error::WorkloadError;
use crate::graph::{JobId, MAX_MESSAGE_SIZE, Moment};
use crate::sink::WorkloadBuilder;

/// Bits of a connection's label that its collective determines. The channel and its queue pair are above them.
const STREAM_BITS: u32 = 20;
/// Labels of channels and queue pairs.
const LABELS: u32 = 1 << (31 - STREAM_BITS);

/// The graph, as the ranks of a collective use it.
struct GraphWires<'s, 'e> {
    out: &'s mut WorkloadBuilder<'e>,
    plan: &'s Plan,
    members: &'s [u32],
    /// Task with which each rank takes part.
    begun: Vec<Draft>,
    stream: u32,
    job: JobId,
    through: Vec<Through>,
}

/// Counts messages and what they wait for.
#[derive(Default)]
struct Tally {
    counts: Counts,
}

pub(super) fn duration(us: f64) -> Duration {
    Duration::from_ps((us * 1e6).round() as u64)
}

impl Plan {
    /// Puts all messages on the graph. Returns the messages that each rank sends and receives; the collective has ended
    /// there after them.
    pub(crate) fn put(
        &self,
        out: &mut WorkloadBuilder<'_>,
        ranks: Ranks<'_>,
    ) -> Result<Vec<Through>, WorkloadError> {
        let Ranks { members, ready, stream, job, .. } = ranks;
        let base = duration(self.base_us());
        let mut begun = Vec::with_capacity(members.len());
        for (&host, ready) in members.iter().zip(ready) {
            let begin = out.latency(host, base, job)?;
            if let Some(before) = *ready {
                out.after(begin, before)?;
            }
            begun.push(begin);
        }
        let through = vec![Vec::new(); members.len()];
        let mut wires = GraphWires { out, plan: self, members, begun, stream, job, through };
        self.run(&mut wires)?;
        Ok(wires.through)
    }

    /// Returns the tasks and dependencies that [`Plan::put`] declares if every rank waits for a task, and the number of
    /// dependencies of later tasks that wait for all messages of a rank.
    pub(crate) fn count(&self) -> Result<(Counts, u64), WorkloadError> {
        let mut tally = Tally::default();
        self.run(&mut tally)?;
        let ranks = self.team.ranks() as u64;
        tally.counts.add(Counts { messages: 0, computations: ranks, dependencies: ranks });
        Ok((tally.counts, 2 * tally.counts.messages))
    }
}

impl GraphWires<'_, '_> {
    /// Returns the label of the connection. Messages over NICs take its queue pairs in turn.
    fn label(&self, hop: &Hop, number: u64) -> u32 {
        let qps = self.plan.qps;
        let qp = if hop.way == Way::Net { (number % u64::from(qps)) as u32 } else { 0 };
        let way = if hop.way == Way::Staged { LABELS / 2 } else { 0 };
        let number = (hop.channel * qps + qp + way) % LABELS;
        number << STREAM_BITS | self.stream & ((1 << STREAM_BITS) - 1)
    }

    /// Makes a message wait. The latency of the hop counts from the arrival of its content only.
    fn wait(&mut self, message: Draft, hop: &Hop, waits: Waits<'_, Draft>) -> Result<(), WorkloadError> {
        let latency = duration(self.plan.hop_us(hop));
        if waits.for_begin() {
            self.out.after(message, self.begun[hop.src])?;
        }
        waits.slots.iter().try_for_each(|&before| self.out.after(message, before))?;
        if waits.data.is_empty() && waits.for_begin() {
            self.out.delay(message, latency);
        }
        let mut content = message;
        if !waits.data.is_empty() && latency > Duration::ZERO {
            if waits.slots.is_empty() {
                self.out.delay(message, latency);
            } else {
                content = self.out.latency(self.members[hop.src], latency, self.job)?;
                self.out.after(message, content)?;
            }
        }
        waits.data.iter().try_for_each(|&before| self.out.after(content, before))
    }
}

impl Wires for GraphWires<'_, '_> {
    type Sent = Draft;

    fn send(&mut self, hop: &Hop, waits: Waits<'_, Draft>) -> Result<Draft, WorkloadError> {
        let pair = (self.members[hop.src], self.members[hop.dst]);
        let size = Bytes::new(self.plan.wire_bytes(hop)).min(MAX_MESSAGE_SIZE);
        let stream = Stream::Shared(self.label(hop, waits.number));
        let message = self.out.message(pair, size, Duration::ZERO, stream, Some(self.job))?;
        self.wait(message, hop, waits)?;
        for rank in [hop.src, hop.dst] {
            self.through[rank].push((message, Moment::Delivery));
        }
        Ok(message)
    }
}

impl Wires for Tally {
    type Sent = ();

    fn send(&mut self, _: &Hop, waits: Waits<'_, ()>) -> Result<(), WorkloadError> {
        let latency = u64::from(!waits.data.is_empty() && !waits.slots.is_empty());
        self.counts.messages += 1;
        self.counts.computations += latency;
        let begin = u64::from(waits.for_begin());
        self.counts.dependencies += begin + latency + (waits.data.len() + waits.slots.len()) as u64;
        Ok(())
    }
}
