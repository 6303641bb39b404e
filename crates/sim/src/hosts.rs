//! Hosts of one shard. Hosts of other shards are not allocated: at a million hosts they would take most of a gigabyte
//! in each thread.

use std::ops::{Index, IndexMut};

use crate::host::Host;
use crate::partition::ShardLayout;

/// Hosts of a shard, indexed by their number in the network.
pub(crate) struct Hosts {
    own: Vec<Host>,
    /// Index in `own`, by host number. Empty if the shard owns all hosts of the network.
    index_of: Vec<u32>,
}

/// Value in `place` of a host that belongs to another shard.
const NOT_OWNED: u32 = u32::MAX;

impl Hosts {
    /// Creates those hosts, of `hosts` in the network, that belong to the shard.
    pub(crate) fn new(hosts: u32, part: &ShardLayout, make: impl Fn(u32) -> Host) -> Self {
        if part.is_all() {
            return Hosts { own: (0..hosts).map(make).collect(), index_of: Vec::new() };
        }
        let mut own = Vec::with_capacity((0..hosts).filter(|&host| part.has(host)).count());
        let mut place = vec![NOT_OWNED; hosts as usize];
        for host in (0..hosts).filter(|&host| part.has(host)) {
            place[host as usize] = own.len() as u32;
            own.push(make(host));
        }
        Hosts { own, index_of: place }
    }

    /// Iterates over the hosts of this shard, ordered by number.
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Host> {
        self.own.iter()
    }

    /// Returns the index in this shard's list of hosts, which [`Hosts::at`] takes.
    ///
    /// # Panics
    /// Panics if the number is that of no host of the network.
    #[inline(always)]
    pub(crate) fn place_of(&self, host: usize) -> usize {
        if self.index_of.is_empty() { host } else { self.index_of[host] as usize }
    }
}

impl Hosts {
    /// Returns the host at a place. The turn of a host looks the place up once.
    #[inline(always)]
    pub(crate) fn at(&self, place: usize) -> &Host {
        &self.own[place]
    }

    #[inline(always)]
    pub(crate) fn at_mut(&mut self, place: usize) -> &mut Host {
        &mut self.own[place]
    }
}

impl Index<usize> for Hosts {
    type Output = Host;

    /// # Panics
    /// Panics if the host belongs to another shard.
    #[inline(always)]
    fn index(&self, host: usize) -> &Host {
        &self.own[self.place_of(host)]
    }
}

impl IndexMut<usize> for Hosts {
    #[inline(always)]
    fn index_mut(&mut self, host: usize) -> &mut Host {
        let place = self.place_of(host);
        &mut self.own[place]
    }
}
