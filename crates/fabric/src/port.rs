//! An egress port with its queues and the link it feeds.

use pathweave_units::{Duration, Time};

use crate::link::LinkSpec;
use crate::packet::{Header, PortId};
use crate::ring::Ring;

/// The link is down: what is sent vanishes.
pub(crate) const DOWN: u8 = 1;
/// A host's port that is on the list of those with packets queued.
pub(crate) const LISTED: u8 = 1 << 1;
/// Paused by a broken neighbour, whatever resume frames say.
pub(crate) const STORM: u8 = 1 << 2;

/// Its switch has a middlebox.
pub(crate) const BOXED: u8 = 1 << 3;
/// Its link leads to another site.
pub(crate) const WAN: u8 = 1 << 4;

/// In `backlog` and `paused`, beside the classes: the queue a middlebox keeps for flows it throttles.
pub(crate) const CONTROLLED: u8 = 1 << 7;

/// A port with all that a hop looks at: two cache lines for the usual two classes, the second one mostly for a packet
/// that has to wait.
#[repr(C, align(64))]
pub(crate) struct Port<const C: usize> {
    /// When the transmitter is free again.
    pub(crate) tx_free: Time,
    pub(crate) queued_bytes: [u32; C],
    /// Classes with packets queued, a bit each.
    pub(crate) backlog: u8,
    /// Classes the neighbour has paused.
    pub(crate) paused: u8,
    pub(crate) flags: u8,
    /// The node this port belongs to.
    pub(crate) node: u32,
    /// The port at the far end of the cable, and its node.
    pub(crate) peer: PortId,
    pub(crate) peer_node: u32,
    /// Of its [`LinkSpec`].
    delay: Duration,
    ps_per_byte: u32,
    /// Queues above this may be marked; [`u32::MAX`] where marking is off.
    pub(crate) mark_above_bytes: u32,
    pub(crate) sent_packets: u64,
    /// By class.
    pub(crate) queues: [Ring<Header>; C],
    pub(crate) sent_bytes: u64,
    /// Largest queue so far, all classes together.
    pub(crate) max_queue_bytes: u32,
    /// Index of its [`LinkSpec`].
    pub(crate) spec: u16,
    /// Of the frame on its transmitter, or the last one there; 0 where that is no data.
    sending_data_bytes: u16,
}

const _: () = assert!(size_of::<Port<2>>() == 128);

/// A length that no queue has.
const UNMARKED: u32 = u32::MAX;

impl<const C: usize> Port<C> {
    pub(crate) fn new(node: u32, peer: PortId, peer_node: u32) -> Self {
        Port {
            tx_free: Time::ZERO,
            queued_bytes: [0; C],
            backlog: 0,
            paused: 0,
            flags: 0,
            node,
            peer,
            peer_node,
            delay: Duration::ZERO,
            ps_per_byte: 0,
            mark_above_bytes: 0,
            sent_packets: 0,
            queues: std::array::from_fn(|_| Ring::new()),
            sent_bytes: 0,
            max_queue_bytes: 0,
            spec: 0,
            sending_data_bytes: 0,
        }
    }

    /// From now on its link is of this kind, and it marks or not. Only switches do.
    pub(crate) fn set_spec(&mut self, index: u16, specs: &[LinkSpec], marks: bool) {
        let spec = &specs[usize::from(index)];
        self.spec = index;
        self.delay = spec.delay;
        self.ps_per_byte = spec.ps_per_byte;
        self.mark_above_bytes = match &spec.red {
            Some(red) if marks => red.kmin_bytes,
            _ => UNMARKED,
        };
    }

    /// Whether it marks at some length of its queue.
    pub(crate) fn marks(&self) -> bool {
        self.mark_above_bytes != UNMARKED
    }

    pub(crate) fn leave_unmarked(&mut self) {
        self.mark_above_bytes = UNMARKED;
    }

    #[inline(always)]
    pub(crate) fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Classes that have something to send and may, a bit each.
    #[inline(always)]
    pub(crate) fn eligible(&self) -> u8 {
        self.backlog & !self.paused
    }

    /// A packet of this class comes at `now` to a port that is up to date. Whether it is its turn at once: nothing that
    /// may be served waits where the transmitter is free, so unless its class is paused.
    #[inline(always)]
    pub(crate) fn is_turn_of(&mut self, class: usize, now: Time) -> bool {
        let idle = self.tx_free <= now;
        self.tx_free = if idle { now } else { self.tx_free };
        idle & (self.paused >> class & 1 == 0)
    }

    /// The classes of which one is served next, if that service begins up to `now`.
    #[inline(always)]
    pub(crate) fn serves_by(&self, now: Time) -> Option<u8> {
        let eligible = self.eligible();
        // One branch: either half alone is a coin toss.
        if (eligible == 0) | (self.tx_free > now) { None } else { Some(eligible) }
    }

    #[inline(always)]
    pub(crate) fn total_queued_bytes(&self) -> u32 {
        self.queued_bytes.iter().sum()
    }

    /// Whether a class's queue is in reach of marking. No branch hangs on the class, which is a coin toss.
    #[inline(always)]
    pub(crate) fn may_mark(&self, class: usize) -> bool {
        (class > 0) & (self.queued_bytes[class] > self.mark_above_bytes)
    }

    /// Puts a packet behind those of its class.
    #[inline(always)]
    pub(crate) fn push(&mut self, class: usize, header: &Header) {
        self.queues[class].push(*header);
        self.queued_bytes[class] += u32::from(header.wire_bytes());
        self.backlog |= 1 << class;
        self.max_queue_bytes = self.max_queue_bytes.max(self.total_queued_bytes());
    }

    /// Takes the first packet of a class in `backlog`.
    #[inline(always)]
    pub(crate) fn pop(&mut self, class: usize) -> Header {
        let header = self.queues[class].pop();
        self.backlog &= !(u8::from(self.queues[class].is_empty()) << class);
        self.queued_bytes[class] -= u32::from(header.wire_bytes());
        header
    }

    /// Takes the last packet of a class in `backlog`.
    pub(crate) fn pop_newest(&mut self, class: usize) -> Header {
        let header = self.queues[class].pop_back();
        self.backlog &= !(u8::from(self.queues[class].is_empty()) << class);
        self.queued_bytes[class] -= u32::from(header.wire_bytes());
        header
    }

    /// Bytes of the data packet that is being sent, which is in no queue any more. The port is up to date.
    pub(crate) fn data_being_sent(&self, now: Time) -> u16 {
        if self.tx_free > now { self.sending_data_bytes } else { 0 }
    }

    /// The most that [`Port::data_being_sent`] can say from now on without another service.
    pub(crate) fn most_data_being_sent(&self) -> u16 {
        self.sending_data_bytes
    }

    /// Begins to load the packets served next.
    #[inline(always)]
    pub(crate) fn prefetch_waiting(&self) {
        self.queues.iter().for_each(Ring::prefetch_first::<2>);
    }

    /// Begins to load the place of the packet that comes next.
    #[inline(always)]
    pub(crate) fn prefetch_end(&self) {
        self.queues[1.min(C - 1)].prefetch_end();
    }

    /// Lets the transmitter send a packet from when it is free; returns when it is at the far end.
    #[inline(always)]
    pub(crate) fn transmit(&mut self, header: &Header, specs: &[LinkSpec]) -> Time {
        let wire_bytes = header.wire_bytes();
        self.sending_data_bytes = wire_bytes * u16::from(header.class() > 0);
        self.tx_free += if self.ps_per_byte != 0 {
            Duration::from_ps(u64::from(wire_bytes) * u64::from(self.ps_per_byte))
        } else {
            specs[usize::from(self.spec)].time_for(wire_bytes)
        };
        self.tx_free + self.delay
    }
}

/// Counters of a port.
#[derive(Clone, Debug, Default, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub struct PortStats {
    /// Bytes sent onto the link, gaps included.
    pub tx_bytes: u64,
    /// Packets sent onto the link.
    pub tx_packets: u64,
    /// Packets lost here: refused by the buffer, on a dead link, or by an impairment.
    pub dropped_packets: u64,
    /// Packets marked Congestion Experienced.
    pub marked_packets: u64,
    /// Packets whose header alone was sent on, for want of room.
    pub trimmed_packets: u64,
    /// Largest queue, all classes together, in bytes.
    pub max_queue_bytes: u64,
    /// Times the neighbour paused this port.
    pub pauses: u64,
    /// Total time with a class paused.
    pub paused: Duration,
}
