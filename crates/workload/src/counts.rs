//! Numbers of tasks and dependencies of a graph.

/// Sizes of a graph, or of a part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) messages: u64,
    pub(crate) computations: u64,
    pub(crate) dependencies: u64,
}

impl Counts {
    /// Returns `n` times the counts.
    pub(crate) fn times(self, n: u64) -> Self {
        Counts {
            messages: self.messages.saturating_mul(n),
            computations: self.computations.saturating_mul(n),
            dependencies: self.dependencies.saturating_mul(n),
        }
    }
    /// Returns the counts of one of `n` equal parts.
    pub(crate) fn over(self, n: u64) -> Self {
        Counts {
            messages: self.messages / n,
            computations: self.computations / n,
            dependencies: self.dependencies / n,
        }
    }
    pub(crate) fn add(&mut self, other: Counts) {
        self.messages = self.messages.saturating_add(other.messages);
        self.computations = self.computations.saturating_add(other.computations);
        self.dependencies = self.dependencies.saturating_add(other.dependencies);
    }
    /// Returns the number of messages and computations.
    pub(crate) fn tasks(&self) -> u64 {
        self.messages.saturating_add(self.computations)
    }
}
