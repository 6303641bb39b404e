//! A workload in several executions side by side, each of which knows what happens at some of the hosts.

use std::sync::Arc;

use pathweave_units::HostId;

/// One of several executions of the same workload, and its hosts.
#[derive(Clone, Debug)]
pub struct Part {
    number: u16,
    of_host: Arc<[u16]>,
}

impl Part {
    /// Part `number` of those that `of_host` names for each host. Part 0 is also where barriers are, which are at no host.
    pub fn new(number: u16, of_host: Arc<[u16]>) -> Self {
        Part { number, of_host }
    }

    /// Whether this is a host of the part.
    #[inline]
    pub fn has(&self, host: HostId) -> bool {
        self.of_host[host.index()] == self.number
    }

    /// Whether barriers are here.
    pub(crate) fn is_first(&self) -> bool {
        self.number == 0
    }
}
