//! What the queue pairs of an endpoint share.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use pathweave_units::HostId;
use pathweave_wire::Segment;

use crate::config::EndpointConfig;
use crate::events::Event;
use crate::memory::Memory;
use crate::scheduler::Scheduler;
use crate::timers::Timers;

/// What the queue pairs of an endpoint share.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) config: EndpointConfig,
    /// Control packets to send, oldest first.
    pub(crate) control: VecDeque<(HostId, Segment)>,
    pub(crate) events: VecDeque<Event>,
    pub(crate) timers: Timers,
    pub(crate) scheduler: Scheduler,
    pub(crate) memory: Memory,
    /// Packets just declared lost; empty between calls, kept for its allocation.
    pub(crate) lost: Vec<u64>,
}

impl Common {
    pub(crate) fn new(config: EndpointConfig) -> Self {
        Common {
            config,
            control: VecDeque::new(),
            events: VecDeque::new(),
            timers: Timers::default(),
            scheduler: Scheduler::new(config.nic_ports),
            memory: Memory::default(),
            lost: Vec::new(),
        }
    }
}
