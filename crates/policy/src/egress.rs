//! NIC ports: the ports that lead to a receiver, and those that are free now.

use pathweave_units::PathId;

/// The NIC ports of a host that lead to one receiver, at most 64. Of `n` such ports, path `p` leaves by the one at
/// index `p % n`. `p / n` is its *inner path*, an index that is the same for all ports. If the port of a path does
/// not work, the path leaves by a port that does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortSet {
    /// Bit i: port i leads to the receiver.
    leading: u64,
    /// Ports of `leading` that work; never empty.
    working: u64,
}

impl PortSet {
    /// The only port of a host.
    pub const ONE: PortSet = PortSet { leading: 1, working: 1 };

    /// Creates the set from bitmaps of the ports that lead to a receiver and of the host's working ports. If no port
    /// that leads to the receiver works, all of them count as working: the state may be stale, and the retry limit
    /// ends a connection that is really dead.
    ///
    /// # Panics
    /// Panics if no port leads to the receiver.
    #[inline]
    pub const fn new(leading: u64, working: u64) -> Self {
        assert!(leading != 0, "no port leads to the receiver");
        let both = leading & working;
        PortSet { leading, working: if both == 0 { leading } else { both } }
    }

    /// Returns the first `count` ports, all of which work. `count`: 1 to 64.
    pub const fn first(count: u8) -> Self {
        let all = u64::MAX >> (64 - count as u32);
        PortSet::new(all, all)
    }

    /// Returns the number of ports that lead to the receiver, working or not.
    #[inline]
    pub const fn len(self) -> u32 {
        self.leading.count_ones()
    }

    /// Returns false: at least one port leads to the receiver.
    pub const fn is_empty(self) -> bool {
        false
    }

    /// Returns the bitmap of ports that lead to the receiver and work.
    #[inline]
    pub const fn working(self) -> u64 {
        self.working
    }

    /// Returns the bitmap of ports that lead to the receiver.
    pub const fn leading(self) -> u64 {
        self.leading
    }

    #[inline]
    const fn is_one(self) -> bool {
        self.leading & (self.leading - 1) == 0
    }

    /// Returns the port by which a packet on this path leaves.
    #[inline]
    pub const fn port_of(self, path: PathId) -> u8 {
        if self.is_one() { self.leading.trailing_zeros() as u8 } else { self.port_of_several(path) }
    }

    /// Returns the inner path of a path, and the index of its port among those that lead to the receiver.
    const fn split(self, path: PathId) -> (u32, u32) {
        let count = self.len();
        (path.0 as u32 / count, path.0 as u32 % count)
    }

    const fn port_of_several(self, path: PathId) -> u8 {
        let (inner, place) = self.split(path);
        let port = nth(self.leading, place);
        if self.working >> port & 1 == 1 {
            return port;
        }
        // Paths of a port that does not work are divided among the others.
        nth(self.working, inner % self.working.count_ones())
    }
}

/// Returns the position of the `n`-th set bit.
const fn nth(mut bits: u64, n: u32) -> u8 {
    let mut passed = 0;
    while passed < n {
        bits &= bits - 1;
        passed += 1;
    }
    bits.trailing_zeros() as u8
}

/// The NIC ports by which a packet may leave now.
///
/// A policy that spreads packets grants a path whose port is free, if possible: [`Egress::move_to_free_port`] moves a path to
/// the same inner path at a free port. A granted path whose port is busy waits for that port; policies that keep
/// packets in order rely on this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Egress {
    ports: PortSet,
    /// Bit i: port i leads to the receiver, works and is free.
    free: u64,
}

impl Egress {
    /// One port, which is free.
    pub const ONE: Egress = Egress { ports: PortSet::ONE, free: 1 };

    /// Creates the set from the ports and a bitmap of free ones. Only ports that lead to the receiver and work count.
    #[inline]
    pub const fn new(ports: PortSet, free: u64) -> Self {
        Egress { ports, free: free & ports.working }
    }

    /// Returns the ports that lead to the receiver.
    #[inline]
    pub const fn ports(self) -> PortSet {
        self.ports
    }

    /// Returns the bitmap of ports that lead to the receiver, work and are free.
    #[inline]
    pub const fn free(self) -> u64 {
        self.free
    }

    /// Returns true if a packet on this path could leave now.
    #[inline]
    pub const fn is_free(self, path: PathId) -> bool {
        self.free >> self.ports.port_of(path) & 1 == 1
    }

    /// Returns `path` if its port is free or none is. Otherwise returns its inner path at a free port, if that path
    /// is usable. Ports are tried in order from the path's own.
    #[inline]
    pub fn move_to_free_port(self, path: PathId, usable: impl Fn(PathId) -> bool) -> PathId {
        if self.is_settled(path) { path } else { self.move_to_free(path, usable) }
    }

    /// Returns true if no other port comes into question for this path: there is one port, or the path's own is free.
    #[inline]
    pub(crate) const fn is_settled(self, path: PathId) -> bool {
        self.ports.is_one() || self.is_free(path)
    }

    fn move_to_free(self, path: PathId, usable: impl Fn(PathId) -> bool) -> PathId {
        let count = self.ports.len();
        let (inner, place) = self.ports.split(path);
        let like = (place + 1..place + count).filter_map(|place| {
            let like = u16::try_from(inner * count + place % count).ok().map(PathId)?;
            (self.is_free(like) && usable(like)).then_some(like)
        });
        like.into_iter().next().unwrap_or(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_take_the_ports_that_lead_there_in_turn() {
        let nics = PortSet::new(0b1101, u64::MAX);
        let ports: [u8; 6] = core::array::from_fn(|path| nics.port_of(PathId(path as u16)));
        assert_eq!(ports, [0, 2, 3, 0, 2, 3]);
        assert_eq!(PortSet::ONE.port_of(PathId(7)), 0);
        assert_eq!(PortSet::new(0b100, u64::MAX).port_of(PathId(7)), 2);
        assert_eq!(PortSet::first(64).port_of(PathId(130)), 2);
    }

    #[test]
    fn paths_of_a_dead_port_are_divided_among_the_others() {
        let nics = PortSet::new(0b111, 0b101);
        let ports: [u8; 9] = core::array::from_fn(|path| nics.port_of(PathId(path as u16)));
        // Paths 1, 4 and 7 are the first, second and third inner path of port 1.
        assert_eq!(ports, [0, 0, 2, 0, 2, 2, 0, 0, 2]);
        // If no port works, all are tried.
        assert_eq!(PortSet::new(0b110, 0b001).working(), 0b110);
    }

    #[test]
    fn a_path_moves_to_its_like_at_a_free_port() {
        let ports = PortSet::first(4);
        let all = |_| true;
        // Path 9 is inner path 2 of port 1.
        assert_eq!(Egress::new(ports, 0b0010).move_to_free_port(PathId(9), all), PathId(9));
        assert_eq!(Egress::new(ports, 0b1101).move_to_free_port(PathId(9), all), PathId(10));
        assert_eq!(Egress::new(ports, 0b0001).move_to_free_port(PathId(9), all), PathId(8));
        assert_eq!(Egress::new(ports, 0b0101).move_to_free_port(PathId(9), |path| path.0 < 9), PathId(8));
        assert_eq!(
            Egress::new(ports, 0b0100).move_to_free_port(PathId(9), |path| path.0 < 9),
            PathId(9),
            "it waits"
        );
        assert_eq!(Egress::new(ports, 0).move_to_free_port(PathId(9), all), PathId(9), "no port is free");
        assert_eq!(Egress::ONE.move_to_free_port(PathId(9), all), PathId(9));
    }
}
