//! Mean utilisation of the links between switches, and the resulting wait of the last packet of a sprayed message.
//! Packets that are spread at random collide on these links.

use pathweave_units::Time;

use crate::network::SwitchLinks;

/// Wait of the last packet relative to a random walk over the time of a message, in standard deviations for 16 links.
/// Fitted to permutations of 2 and 8 MB among 1,024 hosts. The last packet waits at the longest queue, and the
/// largest of n normal values grows with the root of log(2n).
const OF_WALK: f64 = 2.4;
const LOG2_OF_LINKS: f64 = 5.0;
/// Wait of the last packet in mean waits of a queue with random arrivals, which applies if the links have spare
/// capacity.
const OF_QUEUE: f64 = 6.0;

/// Total load of several links over time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LinkLoad {
    load: f64,
    /// Bytes until `since`.
    sum: f64,
    since: u64,
}

impl LinkLoad {
    /// Returns the bytes that have crossed the links until `now`.
    pub(crate) fn crossed(&self, now: Time) -> f64 {
        self.sum + self.load * (now.as_ps() - self.since) as f64
    }

    /// Changes the load by `change` from `now` on.
    pub(crate) fn change(&mut self, now: Time, change: f64) {
        self.sum = self.crossed(now);
        self.since = now.as_ps();
        self.load = (self.load + change).max(0.0);
    }

    /// Adds a message that was never a flow.
    pub(crate) fn add(&mut self, bytes: f64) {
        self.sum += bytes;
    }
}

/// Returns the time in picoseconds that the last packet of a sprayed message waits at the links of the sender's and
/// of the receiver's switch. The message took `span` picoseconds. `links` has the bytes that crossed the links of
/// either switch in that time. `ordered` is the fraction of the receiver's bytes that the sender's switch sent: these
/// keep their order and do not collide again.
pub(crate) fn collision_wait(span: f64, packet: f64, links: [(SwitchLinks, f64); 2], ordered: f64) -> f64 {
    if span <= 0.0 {
        return 0.0;
    }
    let of = |(gauge, crossed): (SwitchLinks, f64)| {
        if gauge.capacity == 0.0 {
            return 0.0;
        }
        let full = (crossed / (gauge.capacity * span)).clamp(0.0, 0.999);
        let time = packet / gauge.link_capacity;
        let walk = OF_WALK * (span * time * full * (1.0 + log2(gauge.links)) / LOG2_OF_LINKS).sqrt();
        walk.min(OF_QUEUE * time * full / (2.0 * (1.0 - full)))
    };
    let [a, b] = links.map(of);
    // A single link offers no choice, so nothing collides.
    let a = if links[0].0.links > 1.0 { a } else { 0.0 };
    ((a * a + b * b * (1.0 - ordered.clamp(0.0, 1.0))) / 2.0).sqrt()
}

/// Returns the base-2 logarithm of a number above 1, linear between powers of two. The result is the same on every
/// machine.
fn log2(mut x: f64) -> f64 {
    let mut whole = 0.0;
    while x >= 2.0 {
        x /= 2.0;
        whole += 1.0;
    }
    whole + (x - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_straight_between_powers_of_two() {
        assert_eq!([1.0, 2.0, 3.0, 4.0, 16.0].map(log2), [0.0, 1.0, 1.5, 2.0, 4.0]);
    }

    #[test]
    fn an_integral_over_steps() {
        let mut level = LinkLoad::default();
        level.change(Time::from_ps(10), 2.0);
        level.change(Time::from_ps(20), -1.0);
        level.add(5.0);
        assert_eq!(level.crossed(Time::from_ps(30)), 20.0 + 10.0 + 5.0);
    }

    /// 2 MB at 100 Gb/s over full links, packets of 4,178 bytes: sqrt(163 us x 334 ns) x 2.4 = 17.7 us.
    #[test]
    fn full_links_delay_by_a_random_walk() {
        let gauge = SwitchLinks { capacity: 0.2, link_capacity: 0.0125, links: 16.0 };
        let span = 163e6;
        let wait = collision_wait(span, 4_178.0, [(gauge, gauge.capacity * span); 2], 0.0);
        assert!((17.6e6..17.8e6).contains(&wait), "{wait}");
        let idle = collision_wait(span, 4_178.0, [(gauge, 0.0); 2], 0.0);
        assert_eq!(idle, 0.0);
        // Packets of one switch collide only there. With fewer links the longest queue is shorter.
        let ordered = collision_wait(span, 4_178.0, [(gauge, gauge.capacity * span); 2], 1.0);
        assert!((wait / ordered - 2f64.sqrt()).abs() < 1e-9, "{wait} {ordered}");
        let four = SwitchLinks { capacity: 0.05, link_capacity: 0.0125, links: 4.0 };
        let of_four = collision_wait(span, 4_178.0, [(four, four.capacity * span); 2], 0.0);
        assert!((of_four / wait - (3.0 / 5.0f64).sqrt()).abs() < 1e-9, "{of_four} {wait}");
        // A single link offers no choice, and the packets of one switch keep their order.
        let one = SwitchLinks { capacity: 0.0125, link_capacity: 0.0125, links: 1.0 };
        assert_eq!(collision_wait(span, 4_178.0, [(one, one.capacity * span); 2], 1.0), 0.0);
    }
}
