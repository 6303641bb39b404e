//! Link capacity used by short messages, as a mean over time that is subtracted from the capacity of flows.

use pathweave_units::{Duration, Time};

use pathweave_execution::max_min::{ResourceId, Solver};

/// Length of the averaging window.
const WINDOW: Duration = Duration::from_us(50);
/// Relative change of the capacity below which the solver is not updated.
const NOTICED: f64 = 0.02;
/// Share of a capacity that flows keep at least.
const MIN_FLOW_SHARE: f64 = 0.05;

/// Bytes of short messages by resource.
pub(crate) struct ShortLoads {
    bytes: Vec<f64>,
    /// Rate that is currently subtracted, in bytes per picosecond.
    taken: Vec<f64>,
    listed: Vec<bool>,
    list: Vec<ResourceId>,
    /// Time of the next update.
    pub(crate) due: Time,
}

impl Default for ShortLoads {
    fn default() -> Self {
        ShortLoads::new(0)
    }
}

impl ShortLoads {
    pub(crate) fn new(resources: usize) -> Self {
        ShortLoads {
            bytes: vec![0.0; resources],
            taken: vec![0.0; resources],
            listed: vec![false; resources],
            list: Vec::new(),
            due: Time::MAX,
        }
    }

    /// Adds the bytes of a short message over a resource.
    pub(crate) fn add(&mut self, now: Time, resource: ResourceId, bytes: f64) {
        let at = resource as usize;
        self.bytes[at] += bytes;
        if !std::mem::replace(&mut self.listed[at], true) {
            self.list.push(resource);
        }
        if self.due == Time::MAX {
            self.due = now + WINDOW;
        }
    }

    /// Updates the mean loads and the capacities.
    pub(crate) fn tick(&mut self, now: Time, capacities: &[f64], solver: &mut Solver) {
        let mut kept = Vec::new();
        for resource in std::mem::take(&mut self.list) {
            let at = resource as usize;
            let capacity = capacities[at];
            let load = std::mem::take(&mut self.bytes[at]) / WINDOW.as_ps() as f64;
            if (load - self.taken[at]).abs() > NOTICED * capacity || load == 0.0 {
                self.taken[at] = load;
                solver.set_capacity(resource, (capacity - load).max(MIN_FLOW_SHARE * capacity));
            }
            self.listed[at] = self.taken[at] > 0.0;
            if self.listed[at] {
                kept.push(resource);
            }
        }
        self.due = if kept.is_empty() { Time::MAX } else { now + WINDOW };
        self.list = kept;
    }
}
