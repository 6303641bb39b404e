//! A collective on the graph, with all of its ranks or with representatives only.

use super::{FoldedMedium, GraphMedium, Plan};
use crate::builder::Draft;
use crate::error::WorkloadError;
use crate::graph::{JobId, Moment};
use crate::sink::WorkloadBuilder;

/// Messages that a rank sends and receives in a collective, with the moment at which the rank learns of their
/// end.
pub(crate) type Through = Vec<(Draft, Moment)>;

/// Participants of a collective, and the tasks they wait for.
#[derive(Clone, Copy)]
pub(crate) struct Ranks<'a> {
    /// Host of each rank.
    pub(crate) members: &'a [u32],
    /// Representative of each rank; `None` if each rank represents itself only.
    pub(crate) alike: Option<&'a [usize]>,
    /// Task that the input of each representative waits for, by rank.
    pub(crate) ready: &'a [Option<Draft>],
    /// Label of the connections. Messages between the same two hosts with the same label share a connection.
    pub(crate) stream: u32,
    pub(crate) job: JobId,
}

impl Plan {
    /// Puts all transfers of representatives on the graph. Returns the messages that each representative
    /// sends and receives, by rank; the collective has ended there after them. The plan must have been
    /// checked.
    pub(crate) fn put(
        &self,
        out: &mut WorkloadBuilder<'_>,
        ranks: Ranks<'_>,
    ) -> Result<Vec<Through>, WorkloadError> {
        let Ranks { members, alike, ready, stream, job } = ranks;
        if let Some(alike) = alike {
            let mut wires = FoldedMedium::new(out, (members, alike), ready, self.sizes(), Some(job));
            wires.stream = stream;
            self.run(&mut wires)?;
            return Ok(wires.through);
        }
        // Either all ranks wait for a task, or none does.
        let ready: Vec<Draft> = ready.iter().flatten().copied().collect();
        let mut wires = GraphMedium::new(out, members, &ready, self.sizes(), Some(job));
        wires.stream = stream;
        self.run(&mut wires)?;
        // A sender that waits for the delivery of its own message learns of it with the completion.
        let delivered = |through: Vec<Draft>| through.into_iter().map(|task| (task, Moment::Delivery));
        Ok(wires.through.into_iter().map(|through| delivered(through).collect()).collect())
    }
}
