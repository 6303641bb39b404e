//! The contract between the endpoint and a scheme.

use core::ops::Range;

use pathweave_units::{Duration, PathId, Rate, Rng, Time, TrimmedAt};
use pathweave_wire::{Control, Measures, Notices};

use crate::{Egress, Member, Shared};

/// What the endpoint would send next.
#[derive(Clone, Copy, Debug)]
pub struct Want {
    /// PSN of the packet.
    pub psn: u64,
    /// Payload bytes.
    pub payload_bytes: u32,
    /// Bytes on the wire, headers and gaps included.
    pub wire_bytes: u32,
    /// Message the packet belongs to; per-message pickers choose anew when it changes.
    pub msn: u32,
    /// A retransmission.
    pub retransmit: bool,
    /// Data packets sent and neither acknowledged nor declared lost, this one not counted. Short ones count by their bytes: as
    /// many full packets as take the same, rounded up, and no more than there are. So a window of so many packets is a window of
    /// full ones.
    pub inflight_packets: u32,
    /// Their wire bytes.
    pub inflight_bytes: u64,
    /// NIC ports by which it may leave.
    pub egress: Egress,
}

/// The answer to [`Policy::poll_send`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// Send it now, on this path.
    Send(PathId),
    /// Send a control packet of the scheme's own on this path ([`Policy::compose`] makes it), then ask again.
    Control(PathId),
    /// Send a copy of this packet, which is not yet acknowledged, on this path, then ask again. It is no retransmission:
    /// what is in flight stays as it is.
    Copy {
        /// Its PSN.
        psn: u64,
        /// The path.
        path: PathId,
    },
    /// Not before this instant (pacing). Must be later than now.
    At(Time),
    /// Not before feedback arrives or a timer fires. With nothing in flight and no timer this is a deadlock,
    /// which tests treat as a bug.
    Blocked,
}

/// Eight bytes a policy attaches to a packet and gets back with the feedback on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memo(pub u64);

impl Memo {
    /// The memo of a packet whose rate and whose path are decided apart ([`Split`](crate::Split)): each has half of it.
    #[inline]
    pub const fn of_halves(cc: u32, picker: u32) -> Self {
        Memo((picker as u64) << 32 | cc as u64)
    }
    /// What the congestion control returned when the packet left.
    #[inline]
    pub const fn cc_half(self) -> u32 {
        self.0 as u32
    }
    /// What the path picker returned when the packet left.
    #[inline]
    pub const fn picker_half(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// A packet that left.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// The path it took.
    pub path: PathId,
    /// Its PSN.
    pub psn: u64,
    /// Message it belongs to.
    pub msn: u32,
    /// Payload bytes.
    pub payload_bytes: u32,
    /// Bytes on the wire.
    pub wire_bytes: u32,
    /// A retransmission.
    pub retransmit: bool,
    /// Data packets in flight, counted as in [`Want`], this one as a full one.
    pub inflight_packets: u32,
}

/// What happened to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedbackKind {
    /// Acknowledged, cumulatively or selectively; called once a packet, in PSN order within one
    /// acknowledgement. Only the packet that triggered the acknowledgement is `timed`.
    Ack {
        /// `rtt` and `one_way` are measurements of this very packet, and `marked` is its own.
        timed: bool,
        /// The acknowledgement reported Congestion Experienced for it.
        marked: bool,
    },
    /// A congestion notification packet arrived; `path` is that of the packet it answers. `psn`, `memo` say nothing.
    Cnp,
    /// Declared lost by loss recovery (gap, reordering bound, NACK); will be retransmitted.
    Lost,
    /// Declared lost because the retransmission timer expired.
    Timeout,
    /// A switch had no room for its payload, and the receiver got the header alone; will be retransmitted. `rtt` is from the
    /// packet's departure to now.
    Trimmed {
        /// Where.
        at: TrimmedAt,
        /// What was left of it carried Congestion Experienced.
        marked: bool,
    },
    /// A switch on the way has answered for the network behind it: `rtt` is that of the way to the switch and back.
    /// Acknowledges nothing; `psn` and `memo` say nothing.
    Midway,
    /// The acknowledgement of a packet that another one has told of before: a measurement of its path, and nothing else.
    /// Only under [`Recovery::PathOrder`](crate::Recovery::PathOrder), which listens to each path by itself.
    Echo,
    /// An arrival that is no news of its packet: a copy that the policy asked for, the original after it was sent again or copied, or
    /// one that another acknowledgement told of before. `path`, `rtt` and `one_way_ps` are those of the arrival. Nothing is told of
    /// the copies that a network makes.
    Heard {
        /// It was marked Congestion Experienced.
        marked: bool,
    },
    /// The receiver misses this packet and takes it for late, not lost. `path` and `memo` are those of its latest
    /// transmission.
    Late,
    /// The receiver says whether notices are welcome. `path`, `psn`, `memo` say nothing.
    Notices(Notices),
}

/// Feedback on a packet.
#[derive(Clone, Copy, Debug)]
pub struct Feedback {
    /// What happened.
    pub kind: FeedbackKind,
    /// The path the packet took.
    pub path: PathId,
    /// Its PSN.
    pub psn: u64,
    /// What [`Policy::on_sent`] attached to it.
    pub memo: Memo,
    /// Bytes on the wire of the packet.
    pub wire_bytes: u32,
    /// From the packet's wire timestamp to now. Zero unless `timed`, heard, trimmed, an echo or midway.
    pub rtt: Duration,
    /// Receiver's stamp minus sender's stamp, in picoseconds; meaningful up to a constant clock offset.
    pub one_way_ps: i64,
    /// Data packets in flight after this feedback, counted as in [`Want`].
    pub inflight_packets: u32,
    /// The queue pair still has data to send (new or to retransmit).
    pub backlogged: bool,
}

/// A control packet to be sent for a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// What it says.
    pub control: Control,
    /// How it travels.
    pub treatment: Treatment,
}

/// How the network treats a control packet of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// As data: in its class, and marked Congestion Experienced where data would be.
    AsData,
    /// In the class of data, which it measures, but never marked.
    AsUnmarkedData,
    /// In the class of acknowledgements, which overtake data.
    AsAcknowledgement,
}

/// A control packet that has arrived for a policy: an answer to one of its own, or what a switch says.
#[derive(Clone, Copy, Debug)]
pub struct ControlFeedback {
    /// What it says.
    pub control: Control,
    /// The path of what it answers.
    pub path: PathId,
    /// From the stamp of what it answers to now.
    pub rtt: Duration,
    /// The answerer's stamp minus that one, in picoseconds; meaningful up to a constant clock offset. Zero where there is
    /// none.
    pub one_way_ps: i64,
    /// Data packets in flight, counted as in [`Want`].
    pub inflight_packets: u32,
    /// The queue pair still has data to send (new or to retransmit).
    pub backlogged: bool,
}

impl ControlFeedback {
    /// What arrives at `now`, of a queue pair with nothing in flight and nothing to send. `None` for questions, and where
    /// the stamp is of the future.
    pub fn new(now: Time, control: Control, path: PathId) -> Option<Self> {
        let (sent_at, received_at) = match control.measures() {
            Measures::Path { sent_at, received_at } => (sent_at, received_at),
            Measures::Part { sent_at } => (sent_at, sent_at),
            Measures::Nothing => return None,
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

    /// The same as [`Feedback`], where it measures the way to a switch: what congestion controls are told of it.
    pub fn midway(&self) -> Option<Feedback> {
        matches!(self.control.measures(), Measures::Part { .. }).then_some(Feedback {
            kind: FeedbackKind::Midway,
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

/// Whether a path can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathState {
    /// Usable.
    Up,
    /// Known to be dead.
    Down,
}

/// A path as the policy sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathView {
    /// Its index.
    pub id: PathId,
    /// Whether it can be used.
    pub state: PathState,
    /// Time of a full packet and its acknowledgement there and back when idle, if known.
    pub base_rtt: Option<Duration>,
    /// Time of a full packet from its first bit sent to its last bit received when idle, if known.
    pub base_one_way: Option<Duration>,
    /// Of `base_one_way`, what the transmitters of all its links take, one after another; the rest is propagation.
    pub transmission: Option<Duration>,
    /// Bottleneck rate when idle, if known.
    pub rate: Option<Rate>,
    /// Links from host to host, if known: one more than it has switches.
    pub links: Option<u8>,
}

impl PathView {
    /// A path of which nothing else is known.
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

/// What a policy may use beyond its own state.
pub struct PolicyCx<'a> {
    /// The queue pair's random stream.
    pub rng: &'a mut Rng,
    /// What the queue pairs of this endpoint share.
    pub shared: &'a mut Shared,
}

/// What a policy is told when it is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "packed", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub struct PolicyEnv {
    /// Rate of the NIC port: the most the queue pair can send.
    pub line_rate: Rate,
    /// Round-trip time to the peer when the fabric is idle.
    pub base_rtt: Duration,
    /// Wire bytes of a full packet, headers and gaps included.
    pub mtu_wire_bytes: u32,
    /// Payload bytes of a full packet.
    pub mtu_payload_bytes: u32,
    /// Paths the queue pair may choose from: [`PathId`] 0 to `paths - 1`. A policy starts with all of them up, so
    /// [`Policy::on_paths`] need only be called when that is not so or when more is known of them.
    pub paths: u16,
    /// The way that round-trip times measure: to the peer and back, unless a policy has it otherwise.
    pub measured: Leg,
    /// The way to the switch that answers for the network behind it ([`FeedbackKind::Midway`]), where one does.
    pub edge: Option<Leg>,
}

/// A way through the fabric and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "packed", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub struct Leg {
    /// Its round-trip time when the fabric is idle.
    pub base_rtt: Duration,
    /// Links one way; 0 where that is not known.
    pub links: u8,
}

impl Leg {
    /// A way of unknown length.
    pub const fn with_rtt(base_rtt: Duration) -> Self {
        Leg { base_rtt, links: 0 }
    }
}

impl PolicyEnv {
    /// Bytes in flight that keep the line busy when the fabric is idle.
    pub const fn bdp_bytes(&self) -> u64 {
        self.line_rate.bytes_in(self.base_rtt)
    }
    /// Full packets in flight that keep the line busy when the fabric is idle.
    pub fn path_packets(&self) -> u64 {
        self.bdp_bytes().div_ceil(u64::from(self.mtu_wire_bytes).max(1))
    }
}

/// The window of a policy that has one, for loss recovery that reckons with it ([`Recovery::Sleek`](crate::Recovery::Sleek)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendWindow {
    /// Wire bytes that may be in flight now.
    pub bytes: u64,
    /// The most that ever may be.
    pub most_bytes: u64,
    /// Round-trip time of a full packet while nothing queues, as known now.
    pub base_rtt: Duration,
    /// Queueing delay that the policy aims at.
    pub delay_target: Duration,
}

/// Decides when a packet may leave and on which path. State of one direction of one queue pair.
///
/// Invariants (asserted by the test bench after every step): `now` never decreases; a grant that is not used
/// changes nothing that matters; only paths that are up are granted while any is; `Blocked` never with nothing in flight
/// and no timer.
///
/// No method has a body here: [`ignores!`](crate::ignores) supplies empty ones, and a policy that wraps another forwards
/// every call.
pub trait Policy {
    /// Its queue pair is opened; comes before any other call, once. Where a policy shares state with others of the
    /// endpoint it joins them here.
    fn on_open(&mut self, now: Time, member: &Member, cx: &mut PolicyCx<'_>);
    /// Its queue pair is closed; the last call. What was in flight will not be heard of.
    fn on_close(&mut self, cx: &mut PolicyCx<'_>);
    /// May this packet leave now, and on which path? It has left only once [`Policy::on_sent`] is called.
    fn poll_send(&mut self, now: Time, want: &Want, cx: &mut PolicyCx<'_>) -> Grant;
    /// Commits a granted packet.
    fn on_sent(&mut self, now: Time, sent: &Sent, cx: &mut PolicyCx<'_>) -> Memo;
    /// A control packet granted leaves on this path now: which one? `in_flight` has the PSNs from the first that is not
    /// acknowledged to the next new one.
    fn compose(&mut self, now: Time, path: PathId, in_flight: Range<u64>, cx: &mut PolicyCx<'_>) -> Outgoing;
    /// A copy granted has left; `wire_bytes` it took.
    fn on_copy_sent(&mut self, now: Time, psn: u64, path: PathId, wire_bytes: u32, cx: &mut PolicyCx<'_>);
    /// Feedback on one packet.
    fn on_feedback(&mut self, now: Time, feedback: &Feedback, cx: &mut PolicyCx<'_>);
    /// A control packet has arrived, of any kind: also such as this policy has never sent or heard of.
    fn on_control(&mut self, now: Time, feedback: &ControlFeedback, cx: &mut PolicyCx<'_>);
    /// The set of paths, whenever it changes. Never empty. Where every path is down a policy sends as if all were
    /// up: what it knows may be stale, and the retry limit of the endpoint ends what is truly dead.
    fn on_paths(&mut self, now: Time, paths: &[PathView], cx: &mut PolicyCx<'_>);
    /// The instant of [`Policy::next_timer`] has come.
    fn on_timer(&mut self, now: Time, cx: &mut PolicyCx<'_>);
    /// When [`Policy::on_timer`] is to be called; `None`: not at all.
    fn next_timer(&self) -> Option<Time>;
    /// Current sending rate or its window equivalent, for observers; `None` where the policy sets no limit.
    fn rate(&self, now: Time) -> Option<Rate>;
    /// Its window; `None` where it has none in bytes or packets.
    fn window(&self) -> Option<SendWindow>;
    /// The path of a packet that loss recovery sends whatever the window says; of the same meaning as that of
    /// [`Policy::poll_send`]. Asked only of policies that have a window.
    fn path_beyond_window(&mut self, now: Time, want: &Want, cx: &mut PolicyCx<'_>) -> PathId;
}
