//! An egress port with its queues and the link it feeds.

use pathweave_units::{Duration, Time};

use crate::link::LinkSpec;
use crate::packet::{Header, PortId};
use crate::ring::Ring;

/// The link is down: packets sent are lost.
pub(crate) const DOWN: u8 = 1;
/// A host's port that is on the list of ports with packets queued.
pub(crate) const LISTED: u8 = 1 << 1;
/// Paused by a broken peer, and not resumed by resume frames.
pub(crate) const STORM: u8 = 1 << 2;

/// The switch of the port has a middlebox.
pub(crate) const HAS_MIDDLEBOX: u8 = 1 << 3;
/// The link of the port leads to another site.
pub(crate) const WAN: u8 = 1 << 4;

/// A bit of `backlog` and `paused` beside the classes: the queue of a middlebox for flows that it throttles.
pub(crate) const CONTROLLED: u8 = 1 << 7;

/// A port with all state that a hop uses. It has two cache lines for the usual two classes; the second one is used
/// mostly by packets that have to wait.
#[repr(C, align(64))]
pub(crate) struct Port<const C: usize> {
    /// Time at which the transmitter is free again.
    pub(crate) tx_free: Time,
    pub(crate) queued_bytes: [u32; C],
    /// Classes with packets queued, one bit each.
    pub(crate) backlog: u8,
    /// Classes that the peer has paused, one bit each.
    pub(crate) paused: u8,
    pub(crate) flags: u8,
    /// Node that the port belongs to.
    pub(crate) node: u32,
    /// Port at the far end of the cable, and its node.
    pub(crate) peer: PortId,
    pub(crate) peer_node: u32,
    /// Copies of fields of the port's [`LinkSpec`].
    delay: Duration,
    ps_per_byte: u32,
    /// Queue length above which packets may be marked; [`u32::MAX`] if marking is off.
    pub(crate) mark_above_bytes: u32,
    pub(crate) sent_packets: u64,
    /// Queue of each class.
    pub(crate) queues: [Ring<Header>; C],
    pub(crate) sent_bytes: u64,
    /// Largest queue so far, all classes together.
    pub(crate) max_queue_bytes: u32,
    /// Index of the port's [`LinkSpec`].
    pub(crate) spec: u16,
    /// Size of the frame in transmission or last transmitted; 0 if it is no data.
    sending_data_bytes: u16,
}

const _: () = assert!(size_of::<Port<2>>() == 128);

/// Queue length that is never exceeded.
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

    /// Sets the kind of the port's link, and whether the port marks. Only ports of switches mark.
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

    /// Returns true if the port marks at some length of its queue.
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

    /// Returns the classes that have packets to send and are not paused, one bit each.
    #[inline(always)]
    pub(crate) fn eligible(&self) -> u8 {
        self.backlog & !self.paused
    }

    /// Returns true if a packet of this class that arrives at `now` is served at once. The port is up to date: if its
    /// transmitter is free, no eligible packet waits. So the packet is served unless its class is paused.
    #[inline(always)]
    pub(crate) fn starts_at_once(&mut self, class: usize, now: Time) -> bool {
        let idle = self.tx_free <= now;
        self.tx_free = if idle { now } else { self.tx_free };
        idle & (self.paused >> class & 1 == 0)
    }

    /// Returns the eligible classes, if a service begins up to `now`.
    #[inline(always)]
    pub(crate) fn eligible_by(&self, now: Time) -> Option<u8> {
        let eligible = self.eligible();
        // One branch for both conditions, because each alone is unpredictable.
        if (eligible == 0) | (self.tx_free > now) { None } else { Some(eligible) }
    }

    #[inline(always)]
    pub(crate) fn total_queued_bytes(&self) -> u32 {
        self.queued_bytes.iter().sum()
    }

    /// Returns true if a class's queue is long enough for marking. There is no branch on the class, which is
    /// unpredictable.
    #[inline(always)]
    pub(crate) fn may_mark(&self, class: usize) -> bool {
        (class > 0) & (self.queued_bytes[class] > self.mark_above_bytes)
    }

    /// Appends a packet to the queue of its class.
    #[inline(always)]
    pub(crate) fn push(&mut self, class: usize, header: &Header) {
        self.queues[class].push(*header);
        self.queued_bytes[class] += u32::from(header.wire_bytes());
        self.backlog |= 1 << class;
        self.max_queue_bytes = self.max_queue_bytes.max(self.total_queued_bytes());
    }

    /// Removes the first packet of a class in `backlog`.
    #[inline(always)]
    pub(crate) fn pop(&mut self, class: usize) -> Header {
        let header = self.queues[class].pop();
        self.backlog &= !(u8::from(self.queues[class].is_empty()) << class);
        self.queued_bytes[class] -= u32::from(header.wire_bytes());
        header
    }

    /// Removes the last packet of a class in `backlog`.
    pub(crate) fn pop_newest(&mut self, class: usize) -> Header {
        let header = self.queues[class].pop_back();
        self.backlog &= !(u8::from(self.queues[class].is_empty()) << class);
        self.queued_bytes[class] -= u32::from(header.wire_bytes());
        header
    }

    /// Returns the size of the data packet in transmission, which is in no queue any more. The port is up to date.
    pub(crate) fn data_being_sent(&self, now: Time) -> u16 {
        if self.tx_free > now { self.sending_data_bytes } else { 0 }
    }

    /// Returns an upper bound of [`Port::data_being_sent`] until the next service.
    pub(crate) fn most_data_being_sent(&self) -> u16 {
        self.sending_data_bytes
    }

    /// Records the size of the frame in transmission, 0 if it is no data.
    #[inline(always)]
    pub(crate) fn set_data_being_sent(&mut self, wire_bytes: u16) {
        self.sending_data_bytes = wire_bytes;
    }

    /// Returns the picoseconds a byte of the link; 0 if that is no integer.
    #[inline(always)]
    pub(crate) fn ps_per_byte(&self) -> u32 {
        self.ps_per_byte
    }

    /// Returns the delay of the link.
    #[inline(always)]
    pub(crate) fn delay(&self) -> Duration {
        self.delay
    }

    /// Prefetches the packets that are served next.
    #[inline(always)]
    pub(crate) fn prefetch_waiting(&self) {
        self.queues.iter().for_each(Ring::prefetch_first::<2>);
    }

    /// Prefetches the slot of the next packet to be queued.
    #[inline(always)]
    pub(crate) fn prefetch_end(&self) {
        self.queues[1.min(C - 1)].prefetch_end();
    }

    /// Starts the transmission of a packet when the transmitter is free. Returns the arrival time at the far end.
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
    /// Packets lost at this port: refused by the buffer, on a dead link, or by an impairment.
    pub dropped_packets: u64,
    /// Packets marked Congestion Experienced.
    pub marked_packets: u64,
    /// Packets whose header alone was forwarded, for want of room.
    pub trimmed_packets: u64,
    /// Largest queue, all classes together, in bytes.
    pub max_queue_bytes: u64,
    /// Number of times that the peer paused this port.
    pub pauses: u64,
    /// Total time with a class paused.
    pub paused: Duration,
}
