//! What the queue pairs of an endpoint share.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use pathweave_policy::Shared;
use pathweave_units::{HostId, QpNum};
use pathweave_wire::Segment;

use crate::config::EndpointConfig;
use crate::events::Event;
use crate::memory::Memory;
use crate::recovery::path_order::Rings;
use crate::scheduler::Scheduler;
use crate::sizes::Sizes;
use crate::timers::Timers;

/// What the queue pairs of an endpoint share.
// What every packet looks at comes first, up to the beginning of the memory; see `Endpoint`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Common {
    pub(crate) timers: Timers,
    pub(crate) events: VecDeque<Event>,
    /// Control packets to send, oldest first.
    control: VecDeque<(HostId, Segment)>,
    pub(crate) config: EndpointConfig,
    pub(crate) sizes: Sizes,
    pub(crate) scheduler: Scheduler,
    /// What policies share.
    pub(crate) shared: Shared,
    /// What is outstanding path by path; made for the first queue pair that wants it.
    pub(crate) rings: Option<Box<Rings>>,
    /// Payload of a full packet of queue pairs whose other end takes less than this endpoint does.
    #[expect(clippy::box_collection, reason = "a third of the size, beside what every packet touches")]
    smaller: Option<Box<BTreeMap<QpNum, u16>>>,
    pub(crate) memory: Memory,
    /// Packets just declared lost; empty between calls, kept for its allocation.
    pub(crate) lost: Vec<u64>,
}

impl Common {
    pub(crate) fn new(config: EndpointConfig) -> Self {
        Common {
            timers: Timers::new(),
            events: VecDeque::new(),
            control: VecDeque::new(),
            sizes: Sizes::new(&config),
            config,
            scheduler: Scheduler::new(config.nic_ports),
            shared: Shared::new(),
            rings: None,
            smaller: None,
            memory: Memory::new(),
            lost: Vec::new(),
        }
    }

    /// Payload of a full packet of a queue pair, in bytes.
    #[inline(always)]
    pub(crate) fn mtu_payload(&self, qp: QpNum) -> u16 {
        match &self.smaller {
            None => self.config.mtu_payload,
            Some(smaller) => smaller.get(&qp).copied().unwrap_or(self.config.mtu_payload),
        }
    }

    /// Sets it, or with `None` makes it the endpoint's again.
    pub(crate) fn set_mtu_payload(&mut self, qp: QpNum, bytes: Option<u16>) {
        match bytes.filter(|bytes| *bytes < self.config.mtu_payload) {
            Some(bytes) => {
                self.smaller.get_or_insert_default().insert(qp, bytes);
            }
            None => {
                if let Some(smaller) = &mut self.smaller {
                    smaller.remove(&qp);
                }
                self.smaller.take_if(|smaller| smaller.is_empty());
            }
        }
    }

    /// Sees to it that the endpoint is woken for the rings.
    #[inline]
    pub(crate) fn arm_rings(&mut self) {
        if let Some(rings) = &mut self.rings
            && let Some(at) = rings.next_timer()
            && at < rings.armed
        {
            rings.armed = at;
            self.timers.arm_path_order(at);
        }
    }

    /// Queues a control packet.
    #[inline]
    pub(crate) fn push_control(&mut self, to: HostId, segment: Segment) {
        self.control.push_back((to, segment));
    }

    /// The next control packet.
    #[inline(always)]
    pub(crate) fn first_control(&self) -> Option<&(HostId, Segment)> {
        self.control.front()
    }

    #[inline(always)]
    pub(crate) fn has_control(&self) -> bool {
        !self.control.is_empty()
    }

    /// The next control packet has left.
    #[inline(always)]
    pub(crate) fn drop_control(&mut self) {
        if self.control.len() > 1 {
            self.control.pop_front();
        } else {
            // So that the next one is put in the same place, not round the ring through memory long unused.
            self.control.clear();
        }
    }
}
