//! Share of its link that a receiver grants if the fabric cannot carry more: uet-htsim's control of oversubscribed
//! trees (`oversubscribed_cc`, commit 40ccb05). Arriving data drives it, without a timer: the end of a round is
//! detected at the next packet or grant, and rounds in which nothing arrived count as quiet rounds.

use pathweave_policy::credit::FabricPace;
use pathweave_units::{Duration, Time, TrimmedAt, mix64};

/// Number of rounds without a packet that are evaluated one by one. Longer silence restarts the rounds at the present
/// time.
const MOST_IDLE_ROUNDS: u64 = 64;

/// State in which a data packet has crossed the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Crossing {
    Whole { marked: bool },
    Trimmed(TrimmedAt),
}

/// Packets that arrived in a round.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    packets: u32,
    marked: u32,
    /// Trimmed at the last hop, which is the receiver's own link, and at earlier hops.
    last_hop: u32,
    on_the_way: u32,
}

/// Share of its link that one host grants.
#[derive(Clone, Debug)]
pub(crate) struct Fabric {
    pace: FabricPace,
    base_rtt: Duration,
    share: f64,
    /// Moving average of the share of marked packets.
    marked: f64,
    /// Number of consecutive rounds that raised the share.
    raised: u32,
    seen: Seen,
    ends_at: Time,
}

impl Fabric {
    pub(crate) fn new(now: Time, pace: FabricPace, base_rtt: Duration) -> Self {
        let mut fabric = Fabric {
            pace,
            base_rtt,
            share: 1.0,
            marked: 0.0,
            raised: 0,
            seen: Seen::default(),
            ends_at: now,
        };
        fabric.ends_at = now.saturating_add(fabric.round(now));
        fabric
    }

    /// Length of a round: three quarters to five quarters of the configured time. The random part depends on the time
    /// at which packets arrive, which differs from host to host, so that hosts do not act in step.
    fn round(&self, now: Time) -> Duration {
        let random = (mix64(now.as_ps()) >> 11) as f64 / (1u64 << 53) as f64;
        let ps = (0.75 + random / 2.0) * self.pace.every_rtts * self.base_rtt.as_ps() as f64;
        Duration::from_ps((ps as u64).max(1))
    }

    /// Counts an arriving data packet.
    pub(crate) fn note(&mut self, now: Time, crossing: Crossing) {
        self.advance(now);
        let seen = &mut self.seen;
        seen.packets += 1;
        match crossing {
            Crossing::Whole { marked } => seen.marked += u32::from(marked),
            Crossing::Trimmed(TrimmedAt::LastHop) => seen.last_hop += 1,
            Crossing::Trimmed(TrimmedAt::OnTheWay) => seen.on_the_way += 1,
        }
    }

    /// Share of the link that is granted now.
    pub(crate) fn share(&mut self, now: Time) -> f64 {
        self.advance(now);
        self.share
    }

    /// Ends the rounds that are over.
    fn advance(&mut self, now: Time) {
        let mut ended = 0;
        while self.ends_at <= now {
            let seen = core::mem::take(&mut self.seen);
            self.judge(seen);
            ended += 1;
            let from = if ended > MOST_IDLE_ROUNDS { now } else { self.ends_at };
            self.ends_at = from.saturating_add(self.round(from));
        }
    }

    /// Updates the share at the end of a round.
    fn judge(&mut self, seen: Seen) {
        let FabricPace { least, increase, decrease, marked: good, gain, .. } = self.pace;
        let whole = seen.packets - seen.last_hop - seen.on_the_way;
        let marked = if whole > 0 { f64::from(seen.marked) / f64::from(whole) } else { 0.0 };
        self.marked += gain * (marked - self.marked);
        let mut lowered = false;
        if seen.on_the_way > 0 {
            self.share -= f64::from(seen.on_the_way) / f64::from(seen.packets);
            lowered = true;
        }
        if self.marked > good && decrease > 0.0 {
            self.share *= 1.0 - decrease * (self.marked - good);
            lowered = true;
        }
        if lowered {
            self.raised = 0;
        } else {
            let times = if seen.marked == 0 { (1u64 << self.raised.min(32)) as f64 } else { 1.0 };
            self.share += increase * times;
            self.raised += 1;
        }
        self.share = self.share.clamp(least, 1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const RTT: Duration = Duration::from_us(10);

    fn fabric() -> Fabric {
        Fabric::new(Time::ZERO, FabricPace::default(), RTT)
    }

    fn seen(packets: u32, marked: u32, last_hop: u32, on_the_way: u32) -> Seen {
        Seen { packets, marked, last_hop, on_the_way }
    }

    /// Shares after each round, in ten-thousandths.
    fn shares(rounds: &[Seen]) -> Vec<u32> {
        let mut fabric = fabric();
        let after = |&seen| {
            fabric.judge(seen);
            (fabric.share * 1e4 + 0.5) as u32
        };
        rounds.iter().map(after).collect()
    }

    /// A tenth is trimmed before the last hop: 1 - 0.1. 72 of the 90 whole packets are marked, a share of 0.8: the
    /// average is 0.4, which exceeds the limit by 0.1, so the share becomes 0.8 x (1 - 0.05). Then nothing is marked
    /// and the average falls to 0.2: the share grows by 0.01, 0.02, 0.04. In a round with a mark it grows by 0.01.
    #[test]
    fn trims_and_marks_lower_it_and_their_absence_raises_it_by_hand() {
        let quiet = seen(100, 0, 0, 0);
        let rounds = [seen(100, 0, 0, 10), seen(100, 72, 0, 10), quiet, quiet, quiet, seen(100, 1, 0, 0)];
        assert_eq!(shares(&rounds), [9_000, 7_600, 7_700, 7_900, 8_300, 8_400]);
    }

    /// Packets trimmed at the last hop show nothing about the fabric. They do not count in the share of marked
    /// packets either.
    #[test]
    fn the_last_hop_lowers_nothing() {
        assert_eq!(shares(&[seen(100, 0, 90, 0)]), [10_000]);
        // 5 of 10 are marked: average 0.25. Then 6 of 10: 0.125 + 0.3, which exceeds the limit by 0.125.
        assert_eq!(shares(&[seen(100, 5, 90, 0), seen(100, 6, 90, 0)]), [10_000, 9_375]);
    }

    #[test]
    fn it_stays_within_its_bounds() {
        assert_eq!(shares(&[seen(4, 0, 0, 4), seen(4, 0, 0, 4)]), [2_250, 2_250]);
    }

    /// Rounds take 11.25 to 18.75 us. All packets of the first are marked: 1 - 0.5 x (0.5 - 0.3). Then there is no
    /// packet for a millisecond.
    #[test]
    fn rounds_end_by_what_is_heard_later() {
        let mut fabric = fabric();
        for ns in 0..10 {
            fabric.note(Time::from_ns(ns), Crossing::Whole { marked: true });
        }
        assert_eq!(fabric.share(Time::from_ns(11_249)), 1.0);
        assert!((fabric.share(Time::from_ns(18_751)) - 0.9).abs() < 1e-9);
        fabric.note(Time::from_ns(18_800), Crossing::Trimmed(TrimmedAt::OnTheWay));
        // All packets of the round were trimmed: the least share. Steps that double from 0.01 on take seven rounds to
        // reach 1.
        assert!(fabric.share(Time::from_us(38)) < 0.24);
        assert_eq!(fabric.share(Time::from_us(1_000)), 1.0);
        let end = Time::from_us(100_000_000);
        assert_eq!(fabric.share(end), 1.0);
        assert!(fabric.ends_at > end);
    }
}
