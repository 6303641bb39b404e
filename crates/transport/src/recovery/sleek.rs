//! SLEEK, the recovery of Ultra Ethernet without trimming, as in uet-htsim 40ccb05. Packets ahead of a gap prove it a
//! loss once they are more than any spread of paths explains; the congestion window measures that spread.
//!
//! *Recovery* lasts until all packets that had left when it began have arrived. In it, the missing packets of one
//! window from the oldest packet on are retransmitted, each packet once, even if the window is full. The window has
//! been cut for the losses already, while the lost packets still count as in flight. Each acknowledgement moves the
//! range on.
//!
//! A *probe* finds losses that no acknowledgement shows: the last packets of a message, or a window lost as a whole.
//! Some round trips after the last acknowledgement, it follows the data through the same queues. If its answer shows
//! no queue and the data is still unacknowledged, the data is lost.
//!
//! Differences from uet-htsim:
//!
//! - Packets that left after a recovery began, or after its probe, are not declared lost by it.
//! - Packets ahead are counted from acknowledgements, not by the receiver's own count.
//! - The probe takes the path of the latest acknowledgement; the next one in a row takes the path of the next packet.
//! - The answer to a probe is no sample for the window's control law.
//! - A timeout during recovery waits once, then counts.

use alloc::vec;
use alloc::vec::Vec;

use pathweave_policy::{Policy, SendWindow};
use pathweave_units::{Duration, PathId, Time};

use super::contract::{
    BlockedBy, Cx, Departed, LossRecovery, NextCheck, NextPath, Probes, Setup, Verdict, time_out,
};
use super::transmissions::Transmissions;
use crate::common::EndpointShared;
use crate::send::flight::Flight;

/// Conditions for recovery and for probes. See [`Recovery::Sleek`](pathweave_policy::Recovery::Sleek).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    pub(crate) reorder_windows: f64,
    pub(crate) reorder_packets: u32,
    pub(crate) probe_rtts: f64,
    pub(crate) probe_again_rtts: f64,
}

/// A recovery in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Recovering {
    /// Recovery ends when everything before this PSN has arrived.
    until: u64,
    /// Missing packets below this PSN have been declared lost.
    mark: u64,
    /// Packets that left later are not lost.
    before: Time,
}

/// A probe that has not been answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Probe {
    sent_at: Time,
    /// PSN behind the last packet that left before the probe.
    behind: u64,
}

#[derive(Debug)]
pub(crate) struct Sender {
    /// Transmission order of the packets, for the timer.
    packets: Transmissions,
    rule: Rule,
    recovering: Option<Recovering>,
    probe: Option<Probe>,
    /// Time at which the next probe leaves; [`Time::MAX`] while nothing is outstanding.
    probe_at: Time,
    /// Number of consecutive probes since anything arrived.
    probes: u32,
    /// Path of the latest acknowledgement.
    heard_on: Option<PathId>,
}

impl Sender {
    fn new(rule: Rule) -> Self {
        Sender {
            packets: Transmissions::new(0),
            rule,
            recovering: None,
            probe: None,
            probe_at: Time::MAX,
            probes: 0,
            heard_on: None,
        }
    }

    /// Schedules the first probe after a packet has left. `waits`: new data waits to be sent.
    fn left(&mut self, now: Time, waits: bool, window: &SendWindow) -> Time {
        if self.probe_at == Time::MAX {
            self.probe_at = self.first_probe(now, waits, window);
        }
        self.probe_at
    }

    fn first_probe(&self, now: Time, waits: bool, window: &SendWindow) -> Time {
        now.saturating_add(if waits {
            times(window.base_rtt, self.rule.probe_rtts)
        } else {
            window.base_rtt + window.delay_target
        })
    }

    /// Declares packets lost after an acknowledgement that came by `path` has been processed. `waits`: new data waits
    /// to be sent. `mtu` is the payload of a full packet in bytes.
    #[expect(clippy::too_many_arguments, reason = "what one acknowledgement comes with")]
    fn heard(
        &mut self,
        now: Time,
        path: PathId,
        waits: bool,
        window: &SendWindow,
        mtu: u16,
        flight: &mut Flight,
        lost: &mut Vec<u64>,
    ) {
        self.heard_on = Some(path);
        self.probes = 0;
        let is_idle = flight.una() == flight.next() && !waits;
        self.probe_at = if is_idle { Time::MAX } else { self.first_probe(now, waits, window) };
        if self.recovering.is_some_and(|recovering| flight.una() >= recovering.until) {
            self.recovering = None;
        }
        let begins = self.recovering.is_none()
            && flight.lost_packets() == 0
            && ahead(flight) >= self.proof_packets(window, mtu);
        if begins {
            self.recovering = Some(Recovering { until: flight.next(), mark: flight.una(), before: now });
        }
        self.resend(window, mtu, flight, lost);
    }

    /// Number of packets ahead of the gap that prove it a loss.
    fn proof_packets(&self, window: &SendWindow, mtu: u16) -> u64 {
        let (mtu, least) = (u64::from(mtu), u64::from(self.rule.reorder_packets));
        let windows = (self.rule.reorder_windows * window.bytes as f64) as u64;
        windows.min(window.most_bytes).max(least * mtu) / mtu
    }

    /// In recovery, declares the missing packets of one window from the oldest packet on lost.
    fn resend(&mut self, window: &SendWindow, mtu: u16, flight: &mut Flight, lost: &mut Vec<u64>) {
        let Some(recovering) = &mut self.recovering else { return };
        let reach = (window.bytes / u64::from(mtu)).max(1);
        let end = recovering.until.min(flight.una().saturating_add(reach)).min(flight.next());
        for psn in recovering.mark.max(flight.una())..end {
            if flight.can_lose(psn) && flight.slot(psn).sent_at <= recovering.before {
                flight.lose(psn);
                lost.push(psn);
            }
        }
        recovering.mark = recovering.mark.max(end);
    }

    /// Records a probe that leaves now. Returns its path, or `None` if it takes that of the next packet.
    fn probes(&mut self, now: Time, window: &SendWindow, flight: &Flight) -> Option<PathId> {
        self.probe = Some(Probe { sent_at: now, behind: flight.next() });
        self.probe_at = now.saturating_add(times(window.base_rtt, self.rule.probe_again_rtts));
        self.probes += 1;
        self.heard_on.filter(|_| self.probes % 2 == 1)
    }

    /// Processes the answer to a probe that left at `sent_at`. Returns false unless that was this end's latest one.
    /// If the probe met no queue, packets that left before it are lost.
    fn answered(
        &mut self,
        now: Time,
        sent_at: Time,
        window: &SendWindow,
        mtu: u16,
        flight: &mut Flight,
        lost: &mut Vec<u64>,
    ) -> bool {
        let Some(probe) = self.probe.filter(|probe| probe.sent_at == sent_at) else { return false };
        self.probe = None;
        self.probes = 0;
        let queued = now.saturating_since(sent_at).saturating_sub(window.base_rtt);
        if queued < window.delay_target && flight.una() < probe.behind {
            let until = self.recovering.map_or(0, |recovering| recovering.until).max(probe.behind);
            self.recovering = Some(Recovering { until, mark: flight.una(), before: sent_at });
            self.resend(window, mtu, flight, lost);
        }
        true
    }
}

impl LossRecovery for Sender {
    type Config = Rule;

    fn open(rule: Rule, _setup: &Setup, _common: &mut EndpointShared) -> Self {
        Sender::new(rule)
    }
    fn transmissions(&mut self) -> Option<&mut Transmissions> {
        Some(&mut self.packets)
    }
    fn exceeds_window(&self) -> bool {
        self.recovering.is_some()
    }
    /// The answer to a probe asks for all that is known.
    fn path_of_held_ack(&self, _probe: PathId, own: PathId) -> Option<PathId> {
        Some(own)
    }
    fn on_sent<P: Policy>(&mut self, cx: &mut Cx<'_, P>, sent: Departed) -> Option<Time> {
        self.packets.sent(sent.psn, sent.tx);
        let deadline = cx.now.saturating_add(*cx.clock.timeout);
        let probe_at = cx.window().map(|window| self.left(cx.now, cx.has_new(), &window));
        Some(probe_at.map_or(deadline, |at| at.min(deadline)))
    }
    fn on_ack<P: Policy>(&mut self, cx: &mut Cx<'_, P>, path: PathId) -> NextCheck {
        let Some(window) = cx.window() else { return NextCheck::AsArmed };
        let (waits, mtu) = (cx.has_new(), cx.mtu_payload());
        self.heard(cx.now, path, waits, &window, mtu, cx.flight, &mut cx.common.lost);
        NextCheck::AtDeadline
    }
    /// A timeout during recovery waits once, then counts.
    fn on_timer<P: Policy>(&mut self, cx: &mut Cx<'_, P>, _blocked: BlockedBy) -> Verdict {
        if *cx.clock.timeouts == 0 && self.recovering.is_some() {
            *cx.clock.timeouts = 1;
            *cx.clock.base = cx.now;
            return Verdict::Wait;
        }
        time_out(self, cx)
    }
    fn probe_at(&self, flight: &Flight) -> Option<Time> {
        (self.probe_at != Time::MAX && flight.una() < flight.next()).then_some(self.probe_at)
    }
    fn probe<P: Policy>(&mut self, cx: &mut Cx<'_, P>) -> Probes {
        let Some(window) = cx.window() else { return Probes::default() };
        match self.probes(cx.now, &window, cx.flight) {
            Some(path) => Probes { paths: vec![path], next: NextPath::Unprobed },
            None => Probes { paths: Vec::new(), next: NextPath::BeyondWindow },
        }
    }
    fn on_probe_answered<P: Policy>(&mut self, cx: &mut Cx<'_, P>, sent_at: Time, _path: PathId) -> bool {
        let Some(window) = cx.window() else { return false };
        let mtu = cx.mtu_payload();
        self.answered(cx.now, sent_at, &window, mtu, cx.flight, &mut cx.common.lost)
    }
}

/// Number of packets known to have arrived ahead of the oldest missing one.
fn ahead(flight: &Flight) -> u64 {
    let missing = u64::from(flight.inflight_packets()) + u64::from(flight.lost_packets());
    flight.next() - flight.una() - missing
}

fn times(span: Duration, factor: f64) -> Duration {
    Duration::from_ps((span.as_ps() as f64 * factor) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_policy::Memo;

    const MTU: u16 = 4_086;
    const US: fn(u64) -> Duration = Duration::from_us;

    fn window(bytes: u64) -> SendWindow {
        SendWindow { bytes, most_bytes: 262_926, base_rtt: US(12), delay_target: US(9) }
    }
    fn sender() -> Sender {
        Sender::new(Rule { reorder_windows: 1.5, reorder_packets: 5, probe_rtts: 3.0, probe_again_rtts: 5.0 })
    }
    /// A flight of that many packets, one per nanosecond.
    fn flight_of(sender: &mut Sender, packets: u64) -> Flight {
        let mut flight = Flight::new(1 << 20);
        for psn in 0..packets {
            let tx = flight.sent(psn, Time::from_ns(psn), PathId(0), 4_150, Memo(0));
            sender.packets.sent(psn, tx);
        }
        flight
    }
    /// Acknowledges `psns` at `at` and returns the losses that follow.
    fn heard(
        sender: &mut Sender,
        flight: &mut Flight,
        at: Time,
        psns: core::ops::Range<u64>,
        bytes: u64,
    ) -> Vec<u64> {
        for psn in psns {
            if let Some(slot) = flight.ack(psn) {
                sender.packets.acked(&slot, true);
            }
        }
        flight.advance_over_acked();
        let mut lost = Vec::new();
        sender.heard(at, PathId(3), true, &window(bytes), MTU, flight, &mut lost);
        lost
    }

    /// 1.5 x 100,000 bytes are 36.7 payloads of 4,086 bytes; 100,000 are 24.5.
    #[test]
    fn thirty_six_packets_ahead_of_a_gap_prove_it_and_thirty_five_do_not() {
        let mut sender = sender();
        let mut flight = flight_of(&mut sender, 60);
        let at = Time::from_us(20);
        assert!(heard(&mut sender, &mut flight, at, 1..36, 100_000).is_empty());
        assert!(!sender.exceeds_window());
        assert_eq!(heard(&mut sender, &mut flight, at, 36..37, 100_000), [0]);
        assert!(sender.exceeds_window());
    }

    #[test]
    fn five_packets_are_the_least_and_the_largest_window_the_most() {
        let sender = sender();
        assert_eq!(sender.proof_packets(&window(4_150), MTU), 5);
        assert_eq!(sender.proof_packets(&window(13_000), MTU), 5);
        assert_eq!(sender.proof_packets(&window(20_000), MTU), 7);
        // 1.5 x 262,926 is more than the largest window, which is 64.3 payloads.
        assert_eq!(sender.proof_packets(&window(262_926), MTU), 64);
    }

    /// A window of 20,000 bytes is four packets: those of them from the oldest on are retransmitted, each once.
    #[test]
    fn a_window_is_sent_again_from_the_gap_on_each_packet_once() {
        let mut sender = sender();
        let mut flight = flight_of(&mut sender, 40);
        let at = Time::from_us(20);
        // Only 20..27 have arrived: none of the first four.
        assert_eq!(heard(&mut sender, &mut flight, at, 20..27, 20_000), [0, 1, 2, 3]);
        assert!(heard(&mut sender, &mut flight, at, 27..30, 20_000).is_empty(), "each once");
        for psn in 0..4 {
            assert_eq!(flight.first_to_resend(), Some(psn));
            let tx = flight.sent(psn, Time::from_us(21), PathId(1), 4_150, Memo(0));
            sender.packets.sent(psn, tx);
        }
        // The gap is at 2 now, so the range ends at 5.
        assert_eq!(heard(&mut sender, &mut flight, Time::from_us(33), 0..2, 20_000), [4, 5]);
        // The rest arrives after all, which ends recovery: everything below 40 has arrived.
        assert!(heard(&mut sender, &mut flight, Time::from_us(34), 2..40, 20_000).is_empty());
        assert!(!sender.exceeds_window() && flight.una() == 40);
    }

    #[test]
    fn pending_retransmissions_prevent_another_recovery() {
        let mut sender = sender();
        let mut flight = flight_of(&mut sender, 40);
        flight.lose(3);
        assert!(heard(&mut sender, &mut flight, Time::from_us(20), 4..20, 20_000).is_empty());
        assert!(!sender.exceeds_window());
    }

    #[test]
    fn a_probe_follows_an_acknowledgement_and_another_the_probe() {
        let mut sender = sender();
        let mut flight = flight_of(&mut sender, 4);
        let w = window(100_000);
        assert_eq!(sender.probe_at(&flight), None);
        // Three base round trips; or one and the delay target, if no new data waits.
        assert_eq!(sender.left(Time::ZERO, true, &w), Time::from_us(36));
        assert_eq!(sender.left(Time::from_us(5), true, &w), Time::from_us(36), "what left first counts");
        let mut lost = Vec::new();
        flight.ack(0);
        flight.advance_over_acked();
        sender.heard(Time::from_us(12), PathId(3), false, &w, MTU, &mut flight, &mut lost);
        assert_eq!(sender.probe_at(&flight), Some(Time::from_us(33)));
        // The path of the latest acknowledgement, then another, five round trips later.
        assert_eq!(sender.probes(Time::from_us(33), &w, &flight), Some(PathId(3)));
        assert_eq!(sender.probe_at(&flight), Some(Time::from_us(93)));
        assert_eq!(sender.probes(Time::from_us(93), &w, &flight), None);
        assert_eq!(sender.probes(Time::from_us(153), &w, &flight), Some(PathId(3)));
        (1..4).for_each(|psn| assert!(flight.ack(psn).is_some()));
        flight.advance_over_acked();
        sender.heard(Time::from_us(160), PathId(3), false, &w, MTU, &mut flight, &mut lost);
        assert_eq!((sender.probe_at(&flight), lost.len()), (None, 0));
    }

    #[test]
    fn a_probe_that_met_no_queue_proves_the_loss_of_what_left_before_it() {
        let w = window(100_000);
        for (took, lost_by_it) in [(US(20), &[0, 1, 2][..]), (US(21), &[][..])] {
            let mut sender = sender();
            let mut flight = flight_of(&mut sender, 3);
            sender.probes(Time::from_us(30), &w, &flight);
            let tx = flight.sent(3, Time::from_us(31), PathId(0), 4_150, Memo(0));
            sender.packets.sent(3, tx);
            let at = Time::from_us(30) + took;
            let mut lost = Vec::new();
            assert!(!sender.answered(at, Time::from_us(29), &w, MTU, &mut flight, &mut lost));
            assert!(sender.answered(at, Time::from_us(30), &w, MTU, &mut flight, &mut lost));
            // 12 us without a queue; the delay target is 9 us.
            assert_eq!(lost, lost_by_it, "{took}");
            assert!(!sender.answered(at, Time::from_us(30), &w, MTU, &mut flight, &mut lost), "once");
        }
    }

    /// A window of one packet: the probe's recovery continues with each acknowledgement.
    #[test]
    fn a_small_window_goes_packet_by_packet() {
        let mut sender = sender();
        let mut flight = flight_of(&mut sender, 3);
        let w = window(4_150);
        sender.probes(Time::from_us(30), &w, &flight);
        let mut lost = Vec::new();
        sender.answered(Time::from_us(42), Time::from_us(30), &w, MTU, &mut flight, &mut lost);
        assert_eq!(lost, [0]);
        let tx = flight.sent(0, Time::from_us(42), PathId(0), 4_150, Memo(0));
        sender.packets.sent(0, tx);
        assert_eq!(heard(&mut sender, &mut flight, Time::from_us(54), 0..1, 4_150), [1]);
    }
}
