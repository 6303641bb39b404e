//! Contract between a queue pair and its loss recovery.

use alloc::vec::Vec;

use pathweave_policy::{FeedbackKind, Policy, SendWindow};
use pathweave_units::{Duration, HostId, PathId, QpNum, Time};
use pathweave_wire::{Nack, NackReason};

use super::clock::{Clock, ClockValues};
use super::path_order::rings::Suspect;
use super::receiver::Receiver;
use super::transmissions::Transmissions;
use crate::common::EndpointShared;
use crate::config::RetransmissionConfig;
use crate::send::echoes::Echo;
use crate::send::flight::{Flight, Slot};

/// State of a new queue pair that its loss recovery may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) peer: HostId,
    /// Time from a packet to its acknowledgement in an idle network, or zero if unknown.
    pub(crate) idle_wait: Duration,
    /// Longest time between timeouts.
    pub(crate) max_timeout: Duration,
}

/// State of a queue pair and of its endpoint that loss recovery reads and changes.
pub(crate) struct Cx<'a, P> {
    pub(crate) now: Time,
    pub(crate) num: QpNum,
    pub(crate) flight: &'a mut Flight,
    pub(crate) clock: Clock<'a>,
    /// PSN behind the last packet of the last message.
    pub(crate) end_psn: u64,
    pub(crate) policy: &'a P,
    /// Packets that are declared lost are marked in `flight` and appended to its `lost`.
    pub(crate) common: &'a mut EndpointShared,
}

impl<P: Policy> Cx<'_, P> {
    /// Returns true if new data waits to be sent.
    pub(super) fn has_new(&self) -> bool {
        self.flight.next() < self.end_psn
    }
    /// Window of the policy, if it has one.
    pub(super) fn window(&self) -> Option<SendWindow> {
        self.policy.window()
    }
    /// Payload of a full packet in bytes.
    pub(super) fn mtu_payload(&self) -> u16 {
        self.common.mtu_payload(self.num)
    }
}

/// A packet that has just left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departed {
    pub(crate) psn: u64,
    /// Number of the transmission.
    pub(crate) tx: u32,
    pub(crate) path: PathId,
}

/// Stamps that an acknowledgement echoes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamps {
    pub(crate) sent_at: Time,
    pub(crate) received_at: Time,
    /// Path of the packet, which distinguishes a copy from the original.
    pub(crate) path: PathId,
}

impl Stamps {
    /// Time from the packet's departure to `now`, which is not before it.
    pub(crate) fn rtt(self, now: Time) -> Duration {
        now - self.sent_at
    }
    /// Receiver's stamp minus sender's, in picoseconds. The clocks may differ.
    pub(crate) fn one_way_ps(self) -> i64 {
        self.received_at.as_ps().wrapping_sub(self.sent_at.as_ps()) as i64
    }
}

/// Packet that triggered an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trigger {
    pub(crate) psn: u64,
    pub(crate) stamps: Stamps,
    pub(crate) marked: bool,
    /// Result of [`LossRecovery::expects`] before the acknowledgement was processed.
    pub(crate) expected: bool,
    /// True if the policy has got its measurement.
    pub(crate) measured: bool,
}

/// Next check for losses after an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextCheck {
    /// The check for which the retransmission timer is armed already.
    AsArmed,
    At(Time),
    /// The check at [`LossRecovery::deadline`] or [`LossRecovery::probe_at`].
    AtDeadline,
}

/// Reason why a packet that must be retransmitted does not leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockedBy {
    /// Nothing, or only its turn or its pacing time.
    Nothing,
    /// The policy: too much is in flight.
    Policy,
    /// The peer, which was not ready.
    Peer,
}

/// Action of the queue pair.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Waits on.
    Wait,
    /// Sends probes.
    Probe(Probes),
    /// Reports the packets declared lost to the policy as this kind of loss.
    Lost(FeedbackKind),
    /// Counts a timeout of this packet, and reports the packets declared lost.
    Timeout(u64),
    /// Counts a timeout of this packet and fails: the retry limit is exceeded.
    GiveUp(u64),
}

/// Probes to send.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Probes {
    pub(crate) paths: Vec<PathId>,
    pub(crate) next: NextPath,
}

/// Path of the next packet, on which a further probe may leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum NextPath {
    /// No probe leaves on it.
    #[default]
    Unprobed,
    /// A probe leaves on it if the policy grants a packet now, and if no other probe takes this path.
    IfGranted,
    /// A probe leaves on it, regardless of the window.
    BeyondWindow,
}

/// Loss recovery of a queue pair: decides which packets count as lost, and when.
///
/// The defaults are those of selective repeat whose losses only the retransmission timer finds.
pub(crate) trait LossRecovery: Sized {
    /// Fields of the configuration that this kind uses.
    type Config: Copy;

    /// Creates the state of a queue pair.
    fn open(config: Self::Config, setup: &Setup, common: &mut EndpointShared) -> Self;

    /// Releases the queue pair's share of the state in `common`.
    fn close(&mut self, _common: &mut EndpointShared) {}

    /// Creates the receiving half, which accepts this number of packets from the first missing one on.
    fn receiver(_config: Self::Config, window_packets: u32) -> Receiver {
        Receiver::any_order(window_packets, 0)
    }

    /// Configuration of the retransmission timer. `idle`: time of a full packet and its acknowledgement in an idle
    /// network, zero if unknown.
    fn timer(
        _config: Self::Config,
        configured: RetransmissionConfig,
        _idle: Duration,
    ) -> RetransmissionConfig {
        configured
    }

    /// Order of the transmissions, if this kind keeps it.
    #[inline]
    fn transmissions(&mut self) -> Option<&mut Transmissions> {
        None
    }

    /// Returns true if a packet can be retransmitted without those after it, because the receiver accepts packets in
    /// any order.
    #[inline]
    fn is_selective(&self) -> bool {
        true
    }

    /// Returns true if retransmissions may leave even if the window is full.
    #[inline]
    fn exceeds_window(&self) -> bool {
        false
    }

    /// Returns true if a lost packet's path does not even answer probes.
    #[inline]
    fn is_silent(&self, _slot: &Slot) -> bool {
        false
    }

    /// Path of a delayed acknowledgement that leaves before the answer to a probe of the peer, if it leaves then. The
    /// probe came by `probe`; the acknowledgement alone would take `own`.
    fn path_of_held_ack(&self, _probe: PathId, _own: PathId) -> Option<PathId> {
        None
    }

    /// Number of doublings of the retransmission timer after `timeouts` successive timeouts.
    fn doublings(&self, timeouts: u32) -> u32 {
        timeouts
    }

    /// Time from the departure of a packet to its timeout.
    #[inline]
    fn timeout(&self, clock: ClockValues<'_>) -> Duration {
        clock.timeout
    }

    /// Records a packet that has left. Returns the time of the next check, for which the retransmission timer is
    /// armed; `None` if a timer of the endpoint covers the packet.
    #[inline]
    fn on_sent<P: Policy>(&mut self, cx: &mut Cx<'_, P>, sent: Departed) -> Option<Time> {
        if let Some(transmissions) = self.transmissions() {
            transmissions.sent(sent.psn, sent.tx);
        }
        Some(cx.now.saturating_add(self.timeout(cx.clock.values())))
    }

    /// Records an acknowledged packet. `echoed`: the acknowledgement echoes the stamps of its latest transmission.
    #[inline]
    fn on_acked<P: Policy>(&mut self, _cx: &mut Cx<'_, P>, slot: &Slot, echoed: bool) {
        if let Some(transmissions) = self.transmissions() {
            transmissions.acked(slot, echoed || !slot.retransmitted);
        }
    }

    /// Returns true if this kind tracks a transmission by itself and it is unacknowledged. Called before the
    /// acknowledgement is processed that echoes the transmission.
    #[inline]
    fn expects(&self, _flight: &Flight, _psn: u64, _sent_at: Time) -> bool {
        false
    }

    /// Processes the packet that triggered an acknowledgement, after the packets that the acknowledgement reports.
    /// Returns the kind of sample that the policy gets for its stamps, if any. By default only the first echo of a
    /// departure is one: any other measures the age of a copy, not the path.
    #[inline]
    fn on_trigger<P: Policy>(&mut self, cx: &mut Cx<'_, P>, trigger: Trigger) -> Option<FeedbackKind> {
        if trigger.measured { None } else { first_echo(cx.now, cx.flight, trigger) }
    }

    /// Declares packets lost after an acknowledgement, which came by `path`.
    #[inline]
    fn on_ack<P: Policy>(&mut self, cx: &mut Cx<'_, P>, _path: PathId) -> NextCheck {
        self.detect(cx)
    }

    /// Declares packets lost that what is known now proves lost.
    #[inline]
    fn detect<P: Policy>(&mut self, _cx: &mut Cx<'_, P>) -> NextCheck {
        NextCheck::AsArmed
    }

    /// Handles a packet that the peer refused or misses. Arrivals that the message reports have been processed
    /// before. By default only this packet is lost.
    fn on_nack(&mut self, nack: &Nack, flight: &mut Flight, lost: &mut Vec<u64>) {
        let psn = if nack.reason == NackReason::Sequence { nack.expected } else { nack.psn };
        if flight.can_lose(psn) {
            flight.lose(psn);
            lost.push(psn);
        }
    }

    /// Handles packets in flight that the peer reports as lost.
    fn on_missing(&mut self, psns: &[u64], flight: &mut Flight, lost: &mut Vec<u64>) {
        if let Some(transmissions) = self.transmissions() {
            transmissions.lose_overtaken(psns, flight, lost);
        }
    }

    /// Handles the failure of a path that is known to the policy.
    fn on_path_down(&mut self, _path: PathId, _common: &mut EndpointShared) {}

    /// Declares all packets in flight on dead paths lost.
    fn abandon<P: Policy>(&mut self, cx: &mut Cx<'_, P>, dead: &[PathId]) -> Verdict {
        let flight = &mut *cx.flight;
        for psn in flight.una()..flight.next() {
            if flight.can_lose(psn) && dead.contains(&flight.slot(psn).path) {
                flight.lose(psn);
                cx.common.lost.push(psn);
            }
        }
        Verdict::Lost(FeedbackKind::Lost)
    }

    /// Departure of the oldest transmission in flight, if the retransmission timer covers it.
    fn oldest_in_flight(&mut self, flight: &Flight) -> Option<Time> {
        self.transmissions()?.oldest_in_flight(flight)
    }

    /// Time at which the retransmission timer must fire for the packets in flight.
    fn deadline(&mut self, flight: &Flight, clock: &Clock<'_>) -> Option<Time> {
        let from = self.oldest_in_flight(flight)?.max(*clock.base);
        Some(from.saturating_add(*clock.timeout))
    }

    /// Handles the retransmission timer at the [`deadline`](LossRecovery::deadline).
    fn on_timer<P: Policy>(&mut self, cx: &mut Cx<'_, P>, _blocked: BlockedBy) -> Verdict {
        time_out(self, cx)
    }

    /// Declares packets lost that left at `before` or earlier.
    fn lose_before(&mut self, before: Time, flight: &mut Flight, lost: &mut Vec<u64>) {
        if let Some(transmissions) = self.transmissions() {
            transmissions.lose_before(before, flight, lost);
        }
    }

    /// Handles a transmission on a silent path. Called only if it is unacknowledged.
    fn on_suspect<P: Policy>(&mut self, _cx: &mut Cx<'_, P>, _suspect: &Suspect) -> Verdict {
        Verdict::Wait
    }

    /// Time at which a probe must leave, if any.
    #[inline]
    fn probe_at(&self, _flight: &Flight) -> Option<Time> {
        None
    }

    /// Returns the probes that leave now, at [`probe_at`](LossRecovery::probe_at).
    fn probe<P: Policy>(&mut self, _cx: &mut Cx<'_, P>) -> Probes {
        Probes::default()
    }

    /// Records a probe that leaves now.
    fn on_probe_sent(&mut self, _now: Time, _path: PathId) {}

    /// Processes the answer to a probe that left at `sent_at` on a path. Returns false if it is not one of this queue
    /// pair. Packets that it proves lost are declared lost.
    fn on_probe_answered<P: Policy>(&mut self, _cx: &mut Cx<'_, P>, _sent_at: Time, _path: PathId) -> bool {
        false
    }

    /// Panics unless a timer covers all packets in flight. `is_armed`: the retransmission timer is armed.
    fn assert_covered(&self, _num: QpNum, flight: &Flight, _common: &EndpointShared, is_armed: bool) {
        assert!(is_armed || flight.inflight_packets() == 0, "what is outstanding has a timer");
    }
}

/// Returns the sample of a transmission that is already known to have arrived, if this is the first echo of its
/// departure. Otherwise the network has duplicated the packet or its acknowledgement.
#[cold]
pub(super) fn first_echo(now: Time, flight: &mut Flight, trigger: Trigger) -> Option<FeedbackKind> {
    let Trigger { psn, stamps, marked, .. } = trigger;
    // The peer may echo stamps that this end never sent.
    let is_first = stamps.sent_at <= now && flight.echoed(psn, stamps.sent_at, stamps.path) == Echo::First;
    is_first.then_some(FeedbackKind::Duplicate { marked })
}

/// Handles the end of the retransmission timer.
pub(super) fn time_out<R: LossRecovery, P: Policy>(recovery: &mut R, cx: &mut Cx<'_, P>) -> Verdict {
    let oldest = cx.flight.una();
    if !cx.clock.count(|timeouts| recovery.doublings(timeouts)) {
        return Verdict::GiveUp(oldest);
    }
    // One timer covers all packets in flight. Packets that left soon after the oldest would otherwise time out one by
    // one, each after a longer time. So every packet that left half a timeout ago or earlier is declared lost with
    // it.
    let grace_ps = cx.clock.rto.timeout.as_ps() / 2;
    let before = Time::from_ps(cx.now.as_ps().saturating_sub(grace_ps));
    recovery.lose_before(before, cx.flight, &mut cx.common.lost);
    *cx.clock.base = cx.now;
    Verdict::Timeout(oldest)
}
