//! What the queue pairs of an endpoint share.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use pathweave_units::HostId;
use pathweave_wire::Segment;

use crate::config::EndpointConfig;
use crate::events::Event;
use crate::line::Line;
use crate::memory::Memory;
use crate::scheduler::Scheduler;
use crate::timers::Timers;

/// What the queue pairs of an endpoint share.
// What every packet looks at comes first, up to the beginning of the scheduler; see `Endpoint`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Common {
    pub(crate) timers: Timers,
    pub(crate) events: VecDeque<Event>,
    /// Control packets to send, oldest first.
    control: VecDeque<(HostId, Segment)>,
    pub(crate) config: EndpointConfig,
    pub(crate) scheduler: Scheduler,
    pub(crate) memory: Line<Memory>,
    /// Packets just declared lost; empty between calls, kept for its allocation.
    pub(crate) lost: Vec<u64>,
}

impl Common {
    pub(crate) fn new(config: EndpointConfig) -> Self {
        Common {
            timers: Timers::new(),
            events: VecDeque::new(),
            control: VecDeque::new(),
            config,
            scheduler: Scheduler::new(config.nic_ports),
            memory: Line(Memory::new()),
            lost: Vec::new(),
        }
    }

    /// Queues a control packet.
    #[inline]
    pub(crate) fn push_control(&mut self, to: HostId, segment: Segment) {
        self.control.push_back((to, segment));
    }

    /// The next control packet.
    #[inline]
    pub(crate) fn pop_control(&mut self) -> Option<(HostId, Segment)> {
        let packet = self.control.pop_front();
        if packet.is_some() && self.control.is_empty() {
            // So that the next one is put in the same place, not round the ring through memory long unused.
            self.control.clear();
        }
        packet
    }
}
