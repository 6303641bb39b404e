//! Division of a workload into several executions, each of which drives some of the hosts.

use std::sync::Arc;

use pathweave_units::HostId;

/// One of several executions of the same workload, with its hosts.
#[derive(Clone, Debug)]
pub struct Part {
    number: u16,
    of_host: Arc<[u16]>,
}

impl Part {
    /// Creates part `number`. `of_host` has the number of the part for each host. Part 0 also owns the barriers,
    /// which belong to no host.
    pub fn new(number: u16, of_host: Arc<[u16]>) -> Self {
        Part { number, of_host }
    }

    /// Returns true if the host belongs to this part.
    #[inline]
    pub fn owns(&self, host: HostId) -> bool {
        self.of_host[host.index()] == self.number
    }

    /// Returns true if this part owns the barriers.
    pub(crate) fn owns_barriers(&self) -> bool {
        self.number == 0
    }
}
