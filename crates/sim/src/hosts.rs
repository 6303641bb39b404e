//! The hosts of a part of a run. Those of other parts are not there: at a million hosts, each thread would take most of a gigabyte
//! for them.

use std::ops::{Index, IndexMut};

use crate::host::Host;
use crate::partition::Place;

/// The hosts of a part, by their numbers in the network.
pub(crate) struct Hosts {
    own: Vec<Host>,
    /// By number: where in `own` it is. Empty where all of the network are here.
    place: Vec<u32>,
}

/// In `place`: it belongs to another part.
const ELSEWHERE: u32 = u32::MAX;

impl Hosts {
    /// Makes those of so many hosts that belong to a part.
    pub(crate) fn new(hosts: u32, part: &Place, make: impl Fn(u32) -> Host) -> Self {
        if part.is_all() {
            return Hosts { own: (0..hosts).map(make).collect(), place: Vec::new() };
        }
        let mut own = Vec::with_capacity((0..hosts).filter(|&host| part.has(host)).count());
        let mut place = vec![ELSEWHERE; hosts as usize];
        for host in (0..hosts).filter(|&host| part.has(host)) {
            place[host as usize] = own.len() as u32;
            own.push(make(host));
        }
        Hosts { own, place }
    }

    /// Those that are here, by number.
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Host> {
        self.own.iter()
    }

    #[inline(always)]
    fn place_of(&self, host: usize) -> usize {
        if self.place.is_empty() { host } else { self.place[host] as usize }
    }
}

impl Index<usize> for Hosts {
    type Output = Host;

    /// # Panics
    /// If the host belongs to another part.
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
