//! The interface between the endpoint and a scheme.

use core::ops::Range;

use pathweave_units::{Duration, PathId, Rate, Rng, Time, TrimmedAt};
use pathweave_wire::{Control, Measurement, NoticePermission};

use crate::{Egress, QueuePairId, Shared};

/// Packet that the endpoint would send next.
#[derive(Clone, Copy, Debug)]
pub struct SendRequest {
    /// PSN of the packet.
    pub psn: u64,
    /// Payload bytes.
    pub payload_bytes: u32,
    /// Bytes on the wire, headers and gaps included.
    pub wire_bytes: u32,
    /// Message of the packet. Pickers that choose per message choose again when it changes.
    pub msn: u32,
    /// True if the packet is a retransmission.
    pub retransmit: bool,
    /// Data packets sent and neither acknowledged nor declared lost, excluding this one. Short packets count by their
    /// bytes: as the number of full packets of the same size, rounded up, and at most their own number. A window in
    /// packets is therefore a window of full packets.
    pub inflight_packets: u32,
    /// Wire bytes of the packets in flight.
    pub inflight_bytes: u64,
    /// NIC ports by which the packet may leave.
    pub egress: Egress,
}

impl SendRequest {
    /// Returns true if the packet fits into a window. With nothing in flight it always does: a window smaller than a
    /// packet must slow a sender down, never stop it.
    #[inline]
    pub fn fits(&self, window_bytes: u64) -> bool {
        self.inflight_packets == 0
            || self.inflight_bytes.saturating_add(u64::from(self.wire_bytes)) <= window_bytes
    }
}

/// Result of [`Policy::poll_send`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// Send the packet now, on this path.
    Send(PathId),
    /// Send a control packet of the scheme on this path ([`Policy::make_control`] creates it), then poll again.
    Control(PathId),
    /// Send a copy of this packet, which is not yet acknowledged, on this path, then poll again. A copy is not a
    /// retransmission: the packets in flight stay the same.
    Copy {
        /// PSN of the packet.
        psn: u64,
        /// Path of the copy.
        path: PathId,
    },
    /// Send nothing before this instant (pacing). Must be later than now.
    At(Time),
    /// Send nothing before feedback arrives or a timer expires. With nothing in flight and no timer this is a
    /// deadlock, which tests treat as a bug.
    Blocked,
}

/// Eight bytes that a policy attaches to a packet and gets back with the feedback on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memo(pub u64);

impl Memo {
    /// Creates the memo of a packet whose rate and path are decided separately ([`Split`](crate::SplitPolicy)): each part
    /// has one half.
    #[inline]
    pub const fn of_halves(cc: u32, picker: u32) -> Self {
        Memo((picker as u64) << 32 | cc as u64)
    }
    /// Returns the half that congestion control returned when the packet left.
    #[inline]
    pub const fn cc_half(self) -> u32 {
        self.0 as u32
    }
    /// Returns the half that the path picker returned when the packet left.
    #[inline]
    pub const fn picker_half(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// A packet that has left.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Path of the packet.
    pub path: PathId,
    /// PSN of the packet.
    pub psn: u64,
    /// Message of the packet.
    pub msn: u32,
    /// Payload bytes.
    pub payload_bytes: u32,
    /// Bytes on the wire.
    pub wire_bytes: u32,
    /// True if the packet is a retransmission.
    pub retransmit: bool,
    /// Data packets in flight, counted as in [`SendRequest`], including this one as a full packet.
    pub inflight_packets: u32,
}

/// Kind of feedback on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedbackKind {
    /// The packet is acknowledged, cumulatively or selectively. Reported once a packet, in PSN order within one
    /// acknowledgement. Only the packet that triggered the acknowledgement is `timed`.
    Ack {
        /// True if `rtt` and `one_way_ps` are measurements of this packet, and `marked` is its own mark.
        timed: bool,
        /// True if the acknowledgement reported Congestion Experienced for the packet.
        marked: bool,
    },
    /// A congestion notification packet arrived. `path` is that of the marked packet. `psn` and `memo` are
    /// meaningless.
    Cnp,
    /// Loss recovery declared the packet lost (gap, reordering bound, NACK). It will be retransmitted.
    Lost,
    /// The packet is declared lost because the retransmission timer expired.
    Timeout,
    /// A switch without room trimmed the payload, and the receiver got only the header. The packet will be
    /// retransmitted. `rtt` is the time from the packet's departure to now.
    Trimmed {
        /// Place of the trimming.
        at: TrimmedAt,
        /// True if the trimmed packet carried Congestion Experienced.
        marked: bool,
    },
    /// A switch on the path has replied for the network behind it. `rtt` is the round-trip time to the switch.
    /// Nothing is acknowledged; `psn` and `memo` are meaningless.
    EdgeRtt,
    /// The acknowledgement of a packet that another one has reported before: a measurement of its path and nothing
    /// else. Only under [`Recovery::PathOrder`](crate::Recovery::PathOrder), which processes the acknowledgements of
    /// each path separately.
    PathSample,
    /// A packet arrived that was already accounted for: a copy that the policy requested, the original after a
    /// retransmission or a copy, or a packet that another acknowledgement reported before. `path`, `rtt` and
    /// `one_way_ps` are those of this arrival. Copies that the network makes are not reported.
    Duplicate {
        /// True if it was marked Congestion Experienced.
        marked: bool,
    },
    /// The receiver misses this packet and considers it late, not lost. `path` and `memo` are those of its latest
    /// transmission.
    Late,
    /// The receiver reports whether it accepts notices. `path`, `psn` and `memo` are meaningless.
    NoticeFlow(NoticePermission),
}

/// Feedback on a packet.
#[derive(Clone, Copy, Debug)]
pub struct Feedback {
    /// Kind of the feedback.
    pub kind: FeedbackKind,
    /// Path of the packet.
    pub path: PathId,
    /// PSN of the packet.
    pub psn: u64,
    /// Memo that [`Policy::on_sent`] attached to the packet.
    pub memo: Memo,
    /// Bytes of the packet on the wire.
    pub wire_bytes: u32,
    /// Time from the packet's wire timestamp to now. Zero unless `timed`, or the kind is `Heard`, `Trimmed`, `Echo`
    /// or `Midway`.
    pub rtt: Duration,
    /// Receiver's timestamp minus sender's timestamp, in picoseconds; meaningful up to a constant clock offset.
    pub one_way_ps: i64,
    /// Data packets in flight after this feedback, counted as in [`SendRequest`].
    pub inflight_packets: u32,
    /// True if the queue pair still has data to send (new or to retransmit).
    pub backlogged: bool,
}

/// A control packet that a policy sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Content of the packet.
    pub control: Control,
    /// Treatment of the packet by the network.
    pub treatment: ControlClass,
}

/// Treatment of a policy's control packet by the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlClass {
    /// Same as data: in the class of data, and marked Congestion Experienced where data would be.
    AsData,
    /// In the class of data, which it measures, but never marked.
    AsUnmarkedData,
    /// In the class of acknowledgements, which overtake data.
    AsAcknowledgement,
}

/// A control packet that has arrived for a policy: a reply to one of its own, or a message of a switch.
#[derive(Clone, Copy, Debug)]
pub struct ControlFeedback {
    /// Content of the packet.
    pub control: Control,
    /// Path of the packet that it replies to.
    pub path: PathId,
    /// Time from the timestamp of the packet that it replies to, to now.
    pub rtt: Duration,
    /// Replier's timestamp minus sender's timestamp, in picoseconds; meaningful up to a constant clock offset. Zero
    /// if there is none.
    pub one_way_ps: i64,
    /// Data packets in flight, counted as in [`SendRequest`].
    pub inflight_packets: u32,
    /// True if the queue pair still has data to send (new or to retransmit).
    pub backlogged: bool,
}

impl ControlFeedback {
    /// Creates the feedback of a control packet that arrives at `now`, for a queue pair with nothing in flight and
    /// nothing to send. Returns `None` for requests, and for timestamps in the future.
    pub fn new(now: Time, control: Control, path: PathId) -> Option<Self> {
        let (sent_at, received_at) = match control.measures() {
            Measurement::Path { sent_at, received_at } => (sent_at, received_at),
            Measurement::Part { sent_at } => (sent_at, sent_at),
            Measurement::Nothing => return None,
        };
        Some(ControlFeedback {
            control,
            path,
            rtt: (sent_at <= now).then(|| now - sent_at)?,
            one_way_ps: received_at.as_ps().wrapping_sub(sent_at.as_ps()) as i64,
            inflight_packets: 0,
            backlogged: false,
        })
    }

    /// Returns the equivalent [`Feedback`] for congestion control, if the packet measures the round trip to a switch.
    pub fn midway(&self) -> Option<Feedback> {
        matches!(self.control.measures(), Measurement::Part { .. }).then_some(Feedback {
            kind: FeedbackKind::EdgeRtt,
            path: self.path,
            psn: 0,
            memo: Memo::default(),
            wire_bytes: 0,
            rtt: self.rtt,
            one_way_ps: self.one_way_ps,
            inflight_packets: self.inflight_packets,
            backlogged: self.backlogged,
        })
    }
}

/// State of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathState {
    /// Usable.
    Up,
    /// Known to be unusable.
    Down,
}

/// Properties of a path that a policy can see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathView {
    /// Identifier of the path.
    pub id: PathId,
    /// State of the path.
    pub state: PathState,
    /// Round-trip time of a full packet and its acknowledgement when idle, if known.
    pub base_rtt: Option<Duration>,
    /// Time from the first bit sent to the last bit received of a full packet when idle, if known.
    pub base_one_way: Option<Duration>,
    /// Part of `base_one_way` that the transmitters of all links take, one after another; the rest is propagation.
    pub transmission: Option<Duration>,
    /// Bottleneck rate when idle, if known.
    pub rate: Option<Rate>,
    /// Links from host to host, if known: one more than the number of switches.
    pub links: Option<u8>,
}

impl PathView {
    /// Creates a path without known properties.
    pub const fn new(id: PathId, state: PathState) -> Self {
        PathView {
            id,
            state,
            base_rtt: None,
            base_one_way: None,
            transmission: None,
            rate: None,
            links: None,
        }
    }
}

/// Resources that a policy may use beyond its own state.
pub struct PolicyCx<'a> {
    /// The queue pair's random stream.
    pub rng: &'a mut Rng,
    /// State shared by the queue pairs of this endpoint.
    pub shared: &'a mut Shared,
}

/// Environment in which a policy is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "packed", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub struct PolicyEnv {
    /// Rate of the NIC port: the most the queue pair can send.
    pub line_rate: Rate,
    /// Round-trip time of a full packet and its acknowledgement to the peer when the fabric is idle, on the path that
    /// [`Adapt::base_path`](crate::Adapt::base_path) chooses.
    pub base_rtt: Duration,
    /// Wire bytes of a full packet, headers and gaps included.
    pub mtu_wire_bytes: u32,
    /// Payload bytes of a full packet.
    pub mtu_payload_bytes: u32,
    /// Number of paths the queue pair may choose from: [`PathId`] 0 to `paths - 1`. A policy starts with all of them
    /// up, so [`Policy::on_paths`] is called only if a path is down or more is known of the paths.
    pub paths: u16,
    /// Section of the network that round-trip times measure: to the peer and back, unless a policy defines it
    /// otherwise.
    pub measured: MeasuredSection,
    /// Section to the switch that replies for the network behind it ([`FeedbackKind::EdgeRtt`]), if there is one.
    pub edge: Option<MeasuredSection>,
}

/// A section of the fabric, measured there and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "packed", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub struct MeasuredSection {
    /// Round-trip time when the fabric is idle.
    pub base_rtt: Duration,
    /// Links in one direction; 0 if unknown.
    pub links: u8,
}

impl MeasuredSection {
    /// Creates a section of unknown length.
    pub const fn with_rtt(base_rtt: Duration) -> Self {
        MeasuredSection { base_rtt, links: 0 }
    }
}

impl PolicyEnv {
    /// Returns a network without a replying edge whose full packets have 4,096 bytes of payload and 82 of headers and
    /// gaps, and whose links are not counted.
    pub const fn new(line_rate: Rate, base_rtt: Duration, paths: u16) -> Self {
        PolicyEnv {
            line_rate,
            base_rtt,
            mtu_wire_bytes: 4_178,
            mtu_payload_bytes: 4_096,
            paths,
            measured: MeasuredSection::with_rtt(base_rtt),
            edge: None,
        }
    }
    /// Returns the bytes in flight that keep the line busy when the fabric is idle.
    pub const fn bdp_bytes(&self) -> u64 {
        self.line_rate.bytes_in(self.base_rtt)
    }
    /// Returns the full packets in flight that keep the line busy when the fabric is idle.
    pub fn path_packets(&self) -> u64 {
        self.bdp_bytes().div_ceil(u64::from(self.mtu_wire_bytes).max(1))
    }
}

/// The window of a policy, for loss recovery that depends on it ([`Recovery::Sleek`](crate::Recovery::Sleek)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendWindow {
    /// Wire bytes that may be in flight now.
    pub bytes: u64,
    /// Largest number of wire bytes that may ever be in flight.
    pub most_bytes: u64,
    /// Current estimate of the round-trip time of a full packet without queueing.
    pub base_rtt: Duration,
    /// Queueing delay that the policy aims at.
    pub delay_target: Duration,
}

/// Decides when a packet may leave and on which path. State of one direction of one queue pair.
///
/// The test bench asserts these invariants after every step: `now` never decreases. A grant that is not used has no
/// relevant effect. Only paths that are up are granted while any is up. `Blocked` is never returned with nothing in
/// flight and no timer.
///
/// No method has a default body. [`ignores!`](crate::ignores!) supplies empty ones, and a policy that wraps another
/// forwards every call.
pub trait Policy {
    /// Called once, before any other call, when the queue pair opens. A policy that shares state with others of the
    /// endpoint joins them here.
    fn on_open(&mut self, now: Time, member: &QueuePairId, cx: &mut PolicyCx<'_>);
    /// Called last, when the queue pair closes. Packets in flight get no more feedback.
    fn on_close(&mut self, cx: &mut PolicyCx<'_>);
    /// Returns whether this packet may leave now, and on which path. The packet has left only once
    /// [`Policy::on_sent`] is called.
    fn poll_send(&mut self, now: Time, want: &SendRequest, cx: &mut PolicyCx<'_>) -> Grant;
    /// Commits a granted packet.
    fn on_sent(&mut self, now: Time, sent: &Sent, cx: &mut PolicyCx<'_>) -> Memo;
    /// Creates a granted control packet, which leaves on this path now. `in_flight` is the range of PSNs from the
    /// first unacknowledged one to the next new one.
    fn make_control(
        &mut self,
        now: Time,
        path: PathId,
        in_flight: Range<u64>,
        cx: &mut PolicyCx<'_>,
    ) -> Outgoing;
    /// Commits a granted copy of `wire_bytes`.
    fn on_copy_sent(&mut self, now: Time, psn: u64, path: PathId, wire_bytes: u32, cx: &mut PolicyCx<'_>);
    /// Processes feedback on one packet.
    fn on_feedback(&mut self, now: Time, feedback: &Feedback, cx: &mut PolicyCx<'_>);
    /// Processes a control packet of any kind, also kinds that this policy never sends.
    fn on_control(&mut self, now: Time, feedback: &ControlFeedback, cx: &mut PolicyCx<'_>);
    /// Called with the set of paths whenever it changes. The set is never empty. If every path is down, a policy
    /// sends as if all were up: its state may be stale, and the endpoint's retry limit ends a connection that is
    /// really dead.
    fn on_paths(&mut self, now: Time, paths: &[PathView], cx: &mut PolicyCx<'_>);
    /// Called at the instant of [`Policy::next_timer`].
    fn on_timer(&mut self, now: Time, cx: &mut PolicyCx<'_>);
    /// Returns the instant at which [`Policy::on_timer`] is to be called; `None` if no timer is set.
    fn next_timer(&self) -> Option<Time>;
    /// Returns the current sending rate, or the rate equivalent of the window, for observers; `None` if the policy
    /// sets no limit.
    fn rate(&self, now: Time) -> Option<Rate>;
    /// Returns the window; `None` if the policy has no window in bytes or packets.
    fn window(&self) -> Option<SendWindow>;
    /// Returns the path of a packet that loss recovery sends regardless of the window. Has the meaning of the path of
    /// [`Policy::poll_send`]. Called only on policies that have a window.
    fn path_beyond_window(&mut self, now: Time, want: &SendRequest, cx: &mut PolicyCx<'_>) -> PathId;
}
