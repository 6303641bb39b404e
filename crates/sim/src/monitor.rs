//! Watching a run from outside: progress, and stopping it.

use pathweave_units::Time;

/// How far a run has come.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot {
    /// Simulated time.
    pub now: Time,
    /// Events executed.
    pub events: u64,
    /// Packets that crossed one link each.
    pub packet_hops: u64,
    /// Message bytes delivered, and of how many.
    pub bytes_done: u128,
    /// Message bytes in all.
    pub bytes_total: u128,
    /// Flows done, and of how many.
    pub flows_done: usize,
    /// Flows in all.
    pub flows_total: usize,
}

/// What a monitor wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Go on.
    Continue,
    /// End the run here; what is finished is kept, and the result is marked interrupted.
    Stop,
}

/// Is asked every 2^16 events, a few dozen times a second.
pub trait Monitor {
    /// How far the run has come. Cannot influence results other than by stopping.
    fn look(&mut self, snapshot: &Snapshot) -> Control;
}

/// Watches nothing.
pub struct Quiet;

impl Monitor for Quiet {
    fn look(&mut self, _: &Snapshot) -> Control {
        Control::Continue
    }
}
