//! State that the queue pairs of an endpoint share.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use pathweave_policy::{PeerKind, PortSet, Shared};
use pathweave_units::{HostId, QpNum, Time};
use pathweave_wire::{Body, Control, Segment};

use crate::config::EndpointConfig;
use crate::control::ControlQueue;
use crate::credit::{CreditSender, HostCredit, Pull};
use crate::events::Event;
use crate::memory::Memory;
use crate::ports::PortTable;
use crate::recovery::Rings;
use crate::scheduler::Scheduler;
use crate::sizes::Sizes;
use crate::timers::{TimerKind, Timers};

/// State that the queue pairs of an endpoint share.
// Fields that every packet reads come first, up to the beginning of `memory`; see `Endpoint`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct EndpointShared {
    pub(crate) timers: Timers,
    pub(crate) events: VecDeque<Event>,
    pub(crate) control: ControlQueue,
    pub(crate) config: EndpointConfig,
    pub(crate) sizes: Sizes,
    pub(crate) scheduler: Scheduler,
    /// Stores that policies share.
    pub(crate) shared: Shared,
    /// Allocated once a queue pair needs any of it.
    rare: Option<Box<RareState>>,
    pub(crate) memory: Memory,
    /// Packets just declared lost. Empty between calls; kept for its allocation.
    pub(crate) lost: Vec<u64>,
    /// True if each retransmission and timeout is reported as an event.
    pub(crate) reports_losses: bool,
    /// Credit, if a queue pair uses any.
    pub(crate) credit: Option<Box<HostCredit>>,
}

/// State that most endpoints do not need.
#[derive(Debug, Default)]
struct RareState {
    /// Outstanding packets by path.
    rings: Option<Rings>,
    /// Payload of a full packet, for queue pairs whose peer accepts less than this endpoint does.
    smaller: BTreeMap<QpNum, u16>,
    /// NIC ports, if there are several, and not all of them are up and lead to all peers.
    ports: Option<PortTable>,
}

impl EndpointShared {
    pub(crate) fn new(config: EndpointConfig, peers: PeerKind) -> Self {
        EndpointShared {
            timers: Timers::new(),
            events: VecDeque::new(),
            control: ControlQueue::default(),
            sizes: Sizes::new(&config),
            config,
            scheduler: Scheduler::new(config.nic_ports),
            shared: Shared::for_peers(peers),
            rare: None,
            memory: Memory::new(),
            lost: Vec::new(),
            reports_losses: false,
            credit: None,
        }
    }

    /// Payload of a full packet of a queue pair, in bytes.
    #[inline(always)]
    pub(crate) fn mtu_payload(&self, qp: QpNum) -> u16 {
        match &self.rare {
            None => self.config.mtu_payload,
            Some(rare) => rare.smaller.get(&qp).copied().unwrap_or(self.config.mtu_payload),
        }
    }

    /// Sets the payload of a full packet of a queue pair. `None` resets it to the endpoint's.
    pub(crate) fn set_mtu_payload(&mut self, qp: QpNum, bytes: Option<u16>) {
        match bytes.filter(|bytes| *bytes < self.config.mtu_payload) {
            Some(bytes) => {
                self.rare.get_or_insert_default().smaller.insert(qp, bytes);
            }
            None => {
                if let Some(rare) = &mut self.rare {
                    rare.smaller.remove(&qp);
                }
                self.rare
                    .take_if(|rare| rare.smaller.is_empty() && rare.rings.is_none() && rare.ports.is_none());
            }
        }
    }

    /// NIC ports for packets to a peer.
    #[inline(always)]
    pub(crate) fn ports_to(&self, peer: HostId) -> PortSet {
        if self.config.nic_ports == 1 { PortSet::ONE } else { self.several_ports_to(peer) }
    }

    fn several_ports_to(&self, peer: HostId) -> PortSet {
        let table = self.rare.as_ref().and_then(|rare| rare.ports.as_ref());
        table.map_or(PortSet::first(self.config.nic_ports), |table| table.to(peer))
    }

    /// Returns the table of NIC ports for changes, and creates it if necessary.
    pub(crate) fn port_table(&mut self) -> &mut PortTable {
        let count = self.config.nic_ports;
        self.rare.get_or_insert_default().ports.get_or_insert_with(|| PortTable::new(count))
    }

    /// Outstanding packets by path, if a queue pair uses them.
    #[inline(always)]
    pub(crate) fn rings(&self) -> Option<&Rings> {
        self.rare.as_ref()?.rings.as_ref()
    }

    #[inline(always)]
    pub(crate) fn rings_mut(&mut self) -> Option<&mut Rings> {
        self.rare.as_mut()?.rings.as_mut()
    }

    /// Creates the rings for the first queue pair that needs them.
    pub(crate) fn make_rings(&mut self) -> &mut Rings {
        self.rare.get_or_insert_default().rings.get_or_insert_with(Rings::new)
    }

    /// Arms the timer of the rings.
    #[inline]
    pub(crate) fn arm_rings(&mut self) {
        if let Some(RareState { rings: Some(rings), .. }) = self.rare.as_deref_mut()
            && let Some(at) = rings.next_timer()
            && at < rings.armed
        {
            rings.armed = at;
            self.timers.arm_endpoint(TimerKind::PathOrder, at);
        }
    }

    /// Returns the credit of the host, and creates it for the first queue pair that needs it.
    pub(crate) fn credit_mut(&mut self) -> &mut HostCredit {
        self.credit.get_or_insert_with(|| Box::new(HostCredit::new()))
    }

    /// Credit granted to a sending queue pair, if it needs any.
    pub(crate) fn spender(&self, qp: QpNum) -> Option<&CreditSender> {
        self.credit.as_ref()?.spender(qp)
    }

    /// Removes a queue pair that no longer needs or grants credit.
    pub(crate) fn leave_credit(&mut self, qp: QpNum) {
        if let Some(credit) = &mut self.credit {
            credit.leave(qp);
            self.credit.take_if(|credit| credit.is_empty());
        }
    }

    /// Creates the grants that are due.
    pub(crate) fn grant_credit(&mut self, now: Time) {
        while let Some(pull) = self.credit.as_mut().and_then(|credit| credit.pacer.next(now)) {
            self.queue_pull(&pull);
        }
        self.arm_credit();
    }

    /// Queues a grant for its sender.
    pub(crate) fn queue_pull(&mut self, pull: &Pull) {
        let Pull { qp, to, granted } = *pull;
        let body = Body::Control(Control::Pull { granted });
        let segment = Segment { dst_qp: to.qp, src_qp: qp, path: to.path, pull_target: None, body };
        self.control.push(to.host, segment);
    }

    /// Arms the credit timer.
    pub(crate) fn arm_credit(&mut self) {
        if let Some(credit) = &mut self.credit
            && let Some(at) = credit.next_at()
            && at < credit.armed
        {
            credit.armed = at;
            self.timers.arm_endpoint(TimerKind::Credit, at);
        }
    }

    /// Restarts time at zero, without queue pairs: drops all state that holds a time.
    pub(crate) fn reset_clock(&mut self) {
        self.timers = Timers::new();
        self.control = ControlQueue::default();
        self.shared = Shared::for_peers(self.shared.peers());
        self.rare = None;
        self.credit = None;
    }

    /// Drops all state of queue pairs to a peer that were removed in the middle of an operation.
    pub(crate) fn drop_peer_state(&mut self, peer: HostId) {
        self.lost.clear();
        self.control.retain(|to, _| to != peer);
        self.shared.forget(peer);
        if let Some(rings) = self.rings_mut() {
            rings.forget(peer);
        }
        self.arm_rings();
    }
}
