//! Time of packets that take paths side by side between the first hop and the last, where short ones overtake long ones.

use pathweave_units::{Duration, Rate};

use super::packets::{Packets, Sizes};
use super::{PathProfile, Servers, over};

/// Returns the time until the last packet has passed the last hop, which serves packets in the order of their arrival.
/// The full packets leave before the short ones, as far apart as the narrowest hop lets them. `None` if no packet can
/// overtake another: all have one size, or the last hop is several links or the only one behind the first.
pub(super) fn time(path: &PathProfile, packets: Packets) -> Option<Duration> {
    let (end, before) = path.hops.split_last()?;
    packets.last_full()?;
    if end.0 < path.most || before.len() < 2 {
        return None;
    }
    let Sizes { first, middle, last } = packets.sizes;
    let pace = (0..before.len()).map(|hop| path.pace(hop)).min().expect("there are two");
    let leaving = Servers::new(before[0].0, path.pace(0));
    let at_end = |start: Duration, wire_bytes| start + over(before, wire_bytes);
    let long = Arrivals {
        first: at_end(Duration::ZERO, first),
        apart: pace.time_for(u64::from(middle)),
        count: packets.full(),
        service: end.0.time_for(u64::from(middle)),
    };
    let short = at_end(leaving.start_of(packets.full(), packets), last);
    let last_arrival = at_end(leaving.start_of(packets.count() - 1, packets), last);
    let served = long.with_others(short, end.0, packets.short_bytes());
    Some(served.max(last_arrival + end.0.time_for(u64::from(last))))
}

/// Packets that reach a link at equal intervals.
struct Arrivals {
    first: Duration,
    apart: Duration,
    count: u64,
    /// Transmission time of each.
    service: Duration,
}

impl Arrivals {
    /// Returns the end of service of all, with other `bytes` that arrive at `at` and are served in turn.
    fn with_others(&self, at: Duration, rate: Rate, bytes: u64) -> Duration {
        let earlier = if at < self.first {
            0
        } else {
            let since = at.saturating_sub(self.first);
            (since.as_ps() / self.apart.as_ps().max(1) + 1).min(self.count)
        };
        let others = at.max(self.end_of(earlier)) + rate.time_for(bytes);
        let behind = others + self.service * (self.count - earlier);
        behind.max(self.end_of(self.count))
    }

    /// Returns the end of service of the first `count`, without others.
    fn end_of(&self, count: u64) -> Duration {
        match count {
            0 => Duration::ZERO,
            _ => self.first + self.service + self.apart.max(self.service) * (count - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use pathweave_wire::Framing;

    use crate::config::Verb;
    use crate::ideal::ideal_fct;
    use crate::paths::{PacketOrder, PathProfile};
    use pathweave_units::{Duration, Rate};

    /// Hops of these rates without delay, over several paths.
    fn fabric(gbps: &[u64]) -> PathProfile {
        let hops = gbps.iter().map(|gbps| (Rate::from_gbps(*gbps), Duration::ZERO)).collect();
        PathProfile { order: PacketOrder::Free, ..PathProfile::chosen(hops, None) }
    }

    fn time(path: &PathProfile, size: u64, queue_pairs: usize) -> u64 {
        ideal_fct(path, size, queue_pairs, 4_096, Framing::Rocev2, Verb::Send).as_ps()
    }

    #[test]
    fn a_short_packet_that_is_earlier_leaves_the_long_one_alone() {
        // 4,178 B and 182 B at 100, 400, 400, 100 Gb/s: 334.24, 83.56 ns and 14.56, 3.64 ns. The short one reaches the last
        // hop after 334.24 + 14.56 + 2 x 3.64 ns = 356.08 ns, has passed it after 370.64 ns, and the long one comes after
        // 334.24 + 2 x 83.56 = 501.36 ns.
        let path = fabric(&[100, 400, 400, 100]);
        assert_eq!(time(&path, 4_196, 1), 501_360 + 334_240);
        // In order it would wait behind the long one.
        let kept = PathProfile { order: PacketOrder::Kept, ..path };
        assert_eq!(time(&kept, 4_196, 1), 501_360 + 334_240 + 14_560);
    }

    #[test]
    fn a_busy_last_hop_serves_all_bytes() {
        // Two full packets: the last hop is busy from the arrival of the first, after 501.36 ns, and the short one is there
        // before its end.
        assert_eq!(time(&fabric(&[100, 400, 400, 100]), 2 * 4_096 + 100, 1), 501_360 + 2 * 334_240 + 14_560);
    }

    #[test]
    fn a_fast_last_hop_has_gaps_for_short_packets() {
        // The second full packet: 2 x 334.24 + 2 x 83.56 ns and 83.56 ns at the last hop. The short one is faster.
        assert_eq!(time(&fabric(&[100, 400, 400, 400]), 2 * 4_096 + 100, 1), 2 * 334_240 + 3 * 83_560);
    }

    #[test]
    fn parts_of_one_packet_are_a_pipeline_of_small_packets() {
        // 16 queue pairs with 100 B each, 182 B on the wire: 14.56 ns at each of two hops.
        assert_eq!(time(&fabric(&[100, 100]), 1_600, 16), 17 * 14_560);
        // Three bytes are three packets of 86 B, a word each: 6.88 ns, whatever the number of queue pairs.
        assert_eq!(time(&fabric(&[100, 100]), 3, 16), 4 * 6_880);
    }
}
