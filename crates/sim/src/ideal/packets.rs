//! Packets of a message in the order in which they leave.

/// Wire bytes of the first packet of a part, of each packet between, and of the last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) first: u32,
    pub(super) middle: u32,
    pub(super) last: u32,
}

/// Packets of a message whose equal parts leave side by side: the first packet of each part, and so on to the last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packets {
    pub(super) parts: u64,
    /// At least one. The only packet of a part has the size of the last.
    pub(super) packets_per_part: u64,
    pub(super) sizes: Sizes,
}

/// A packet by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packet {
    pub(super) index: u64,
    pub(super) wire_bytes: u32,
}

impl Packets {
    pub(super) fn count(self) -> u64 {
        self.parts * self.packets_per_part
    }

    /// Returns the wire bytes of the first `count` packets.
    pub(super) fn wire_bytes(self, count: u64) -> u64 {
        let Sizes { first, middle, last } = self.sizes;
        if self.packets_per_part == 1 {
            return count * u64::from(last);
        }
        let firsts = count.min(self.parts);
        let middles = (count - firsts).min(self.parts * (self.packets_per_part - 2));
        firsts * u64::from(first) + middles * u64::from(middle) + (count - firsts - middles) * u64::from(last)
    }

    /// Returns the last packet that is not the last of its part, if there is one.
    pub(super) fn last_full(self) -> Option<Packet> {
        let wire_bytes = match self.packets_per_part {
            1 => return None,
            2 => self.sizes.first,
            _ => self.sizes.middle,
        };
        Some(Packet { index: self.full() - 1, wire_bytes })
    }

    /// Returns the number of packets that are not the last of their part.
    pub(super) fn full(self) -> u64 {
        self.parts * (self.packets_per_part - 1)
    }

    /// Returns the wire bytes of the last packets of all parts.
    pub(super) fn short_bytes(self) -> u64 {
        self.parts * u64::from(self.sizes.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_parts_of_three_packets_leave_side_by_side() {
        let sizes = Sizes { first: 100, middle: 90, last: 10 };
        let packets = Packets { parts: 2, packets_per_part: 3, sizes };
        let sums = [0, 100, 200, 290, 380, 390, 400];
        assert_eq!((0..=packets.count()).map(|count| packets.wire_bytes(count)).collect::<Vec<_>>(), sums);
        assert_eq!(packets.last_full(), Some(Packet { index: 3, wire_bytes: 90 }));
        assert_eq!((packets.full(), packets.short_bytes()), (4, 20));
        let alone = Packets { parts: 3, packets_per_part: 1, sizes };
        assert_eq!((alone.wire_bytes(3), alone.last_full(), alone.full()), (30, None, 0));
    }
}
