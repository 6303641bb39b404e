//! Limits on the number of connections, in total and for each peer.

use core::net::IpAddr;
use std::collections::BTreeMap;

use super::negotiate::Refusal;

/// Limits of [`Admission`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Total number of connections, including half-open ones.
    pub connections: usize,
    /// Number of connections with one address, including half-open ones.
    pub connections_per_peer: usize,
    /// Total number of half-open connections. Their initiator has proven that it has the cluster key, but has not
    /// confirmed yet.
    pub half_open: usize,
    /// Number of half-open connections with one address.
    pub half_open_per_peer: usize,
}

impl Default for Limits {
    /// Returns the defaults: 4,096 connections, 1,024 with one address; 1,024 half-open, 128 with one address.
    fn default() -> Self {
        Limits { connections: 4_096, connections_per_peer: 1_024, half_open: 1_024, half_open_per_peer: 128 }
    }
}

/// Counter of connections with limits. All addresses of an IPv6 /64 count as one peer, because a host with one of
/// them has all.
#[derive(Clone, Debug)]
pub struct Admission {
    limits: Limits,
    total: Count,
    peers: BTreeMap<IpAddr, Count>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    open: usize,
    half_open: usize,
}

impl Count {
    fn all(self) -> usize {
        self.open + self.half_open
    }
}

impl Admission {
    /// Creates a counter without connections.
    pub fn new(limits: Limits) -> Self {
        Admission { limits, total: Count::default(), peers: BTreeMap::new() }
    }
    /// Counts a half-open connection.
    ///
    /// # Errors
    ///
    /// [`Refusal::Busy`] or [`Refusal::PeerLimit`] if a limit is reached. Nothing is counted then.
    pub fn add_half_open(&mut self, peer: IpAddr) -> Result<(), Refusal> {
        self.check_limits(peer)?;
        let of_peer = self.peers.get(&group(peer)).copied().unwrap_or_default();
        if of_peer.half_open >= self.limits.half_open_per_peer {
            return Err(Refusal::PeerLimit);
        }
        if self.total.half_open >= self.limits.half_open {
            return Err(Refusal::Busy);
        }
        self.total.half_open += 1;
        self.peers.entry(group(peer)).or_default().half_open += 1;
        Ok(())
    }
    /// Counts a connection that this end has initiated.
    ///
    /// # Errors
    ///
    /// As for [`begin`](Admission::add_half_open).
    pub fn add_open(&mut self, peer: IpAddr) -> Result<(), Refusal> {
        self.check_limits(peer)?;
        self.total.open += 1;
        self.peers.entry(group(peer)).or_default().open += 1;
        Ok(())
    }
    /// Turns a half-open connection into an open one.
    pub fn promote(&mut self, peer: IpAddr) {
        let of_peer = self.peers.get_mut(&group(peer)).expect("what is confirmed was begun");
        for count in [&mut self.total, of_peer] {
            count.half_open -= 1;
            count.open += 1;
        }
    }
    /// Removes a half-open connection.
    pub fn remove_half_open(&mut self, peer: IpAddr) {
        self.remove(peer, |count| count.half_open -= 1);
    }
    /// Removes an open connection.
    pub fn remove_open(&mut self, peer: IpAddr) {
        self.remove(peer, |count| count.open -= 1);
    }
    /// Returns the number of open connections.
    pub fn open_connections(&self) -> usize {
        self.total.open
    }
    /// Returns the number of half-open connections.
    pub fn half_open_connections(&self) -> usize {
        self.total.half_open
    }

    fn check_limits(&self, peer: IpAddr) -> Result<(), Refusal> {
        let of_peer = self.peers.get(&group(peer)).copied().unwrap_or_default();
        if of_peer.all() >= self.limits.connections_per_peer {
            return Err(Refusal::PeerLimit);
        }
        if self.total.all() >= self.limits.connections {
            return Err(Refusal::Busy);
        }
        Ok(())
    }
    fn remove(&mut self, peer: IpAddr, one_less: impl Fn(&mut Count)) {
        let of_peer = self.peers.get_mut(&group(peer)).expect("what ends was begun");
        one_less(of_peer);
        one_less(&mut self.total);
        if of_peer.all() == 0 {
            self.peers.remove(&group(peer));
        }
    }
}

/// Returns the address under which a peer is counted.
fn group(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6((u128::from(v6) & !u128::from(u64::MAX)).into()),
        v4 => v4,
    }
}
