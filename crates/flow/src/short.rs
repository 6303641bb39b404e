//! What short messages take of links: a mean over time, taken off the capacity that flows share.

use pathweave_units::{Duration, Time};

use crate::solver::{ResourceId, Solver};

/// Over which the mean is taken.
const OVER: Duration = Duration::from_us(50);
/// A change below this share of the capacity is left.
const NOTICED: f64 = 0.02;
/// What flows have at least of a capacity, however much is short.
const LEFT: f64 = 0.05;

/// Bytes of short messages by resource.
pub(crate) struct ShortLoads {
    bytes: Vec<f64>,
    /// What is taken off now, bytes a picosecond.
    taken: Vec<f64>,
    listed: Vec<bool>,
    list: Vec<ResourceId>,
    /// When the next mean is to be taken.
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

    /// A short message sends so much over a resource.
    pub(crate) fn add(&mut self, now: Time, resource: ResourceId, bytes: f64) {
        let at = resource as usize;
        self.bytes[at] += bytes;
        if !std::mem::replace(&mut self.listed[at], true) {
            self.list.push(resource);
        }
        if self.due == Time::MAX {
            self.due = now + OVER;
        }
    }

    /// Takes the means.
    pub(crate) fn tick(&mut self, now: Time, capacities: &[f64], solver: &mut Solver) {
        let mut kept = Vec::new();
        for resource in std::mem::take(&mut self.list) {
            let at = resource as usize;
            let capacity = capacities[at];
            let load = std::mem::take(&mut self.bytes[at]) / OVER.as_ps() as f64;
            if (load - self.taken[at]).abs() > NOTICED * capacity || load == 0.0 {
                self.taken[at] = load;
                solver.set_capacity(resource, (capacity - load).max(LEFT * capacity));
            }
            self.listed[at] = self.taken[at] > 0.0;
            if self.listed[at] {
                kept.push(resource);
            }
        }
        self.due = if kept.is_empty() { Time::MAX } else { now + OVER };
        self.list = kept;
    }
}
