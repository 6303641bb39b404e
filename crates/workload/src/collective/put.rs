//! A collective on the graph: with all of its ranks, or with those that stand for the others.

use super::{Folded, Plan, Wires};
use crate::builder::Draft;
use crate::error::WorkloadError;
use crate::graph::{JobId, Moment};
use crate::sink::Sink;

/// What a rank sends and receives of a collective, with when it knows.
pub(crate) type Through = Vec<(Draft, Moment)>;

/// Who runs a collective, and when.
#[derive(Clone, Copy)]
pub(crate) struct Ranks<'a> {
    /// Host of each.
    pub(crate) members: &'a [u32],
    /// By rank, the one that stands for it; `None`: each for itself.
    pub(crate) alike: Option<&'a [usize]>,
    /// By rank that stands for itself, what its input waits for.
    pub(crate) ready: &'a [Option<Draft>],
    /// Messages of the same two hosts and label follow each other on one connection.
    pub(crate) stream: u32,
    pub(crate) job: JobId,
}

impl Plan {
    /// Puts all transfers on the graph that ranks send which stand for themselves. Returns by rank of those what it sends and
    /// receives: the collective is through there after that. The plan must have been checked.
    pub(crate) fn put(&self, out: &mut Sink<'_>, ranks: Ranks<'_>) -> Result<Vec<Through>, WorkloadError> {
        let Ranks { members, alike, ready, stream, job } = ranks;
        if let Some(alike) = alike {
            let mut wires = Folded::new(out, (members, alike), ready, self.sizes(), Some(job));
            wires.stream = stream;
            self.run(&mut wires)?;
            return Ok(wires.through);
        }
        // All of them, or none.
        let ready: Vec<Draft> = ready.iter().flatten().copied().collect();
        let mut wires = Wires::new(out, members, &ready, self.sizes(), Some(job));
        wires.stream = stream;
        self.run(&mut wires)?;
        // Whoever waits for a delivery at the sender knows of it with its completion.
        let delivered = |through: Vec<Draft>| through.into_iter().map(|task| (task, Moment::Delivery));
        Ok(wires.through.into_iter().map(|through| delivered(through).collect()).collect())
    }
}
