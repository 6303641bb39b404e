//! Mailboxes through which shards transfer events to each other between windows.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pathweave_fabric::{Fabric, PortId};
use pathweave_units::Time;

use crate::host::Content;
use crate::network::Network;
use crate::partition::ShardLayout;
use crate::ranks::{put, take};
use crate::transfer::{RemoteItem, Transfer};

/// Node of another shard to which links of this shard lead.
struct RemoteNode {
    part: u16,
    node: u32,
    /// End of this node's range in `ports`. The range holds those ports of the node to which the links lead.
    end: u32,
}

/// Events for other shards, collected until the end of the window.
pub(crate) struct Outbox {
    /// Outgoing transfers, by shard.
    posts: Vec<Transfer>,
    exits: Vec<RemoteNode>,
    /// Far ports, each with its number in the shard of its node.
    ports: Vec<(PortId, PortId)>,
    /// Time of the earliest outgoing item.
    first: Time,
}

impl Outbox {
    /// Creates the outbox of the shard at this place.
    pub(crate) fn new<const C: usize>(place: &ShardLayout, network: &Network<C>) -> Self {
        let (mut exits, mut ports): (Vec<RemoteNode>, Vec<(PortId, PortId)>) = (Vec::new(), Vec::new());
        if !place.is_all() {
            let numbers = network.fabric.numbers();
            for port in 0..numbers.held() as PortId {
                let (node, from) = network.fabric.ends(port);
                if place.has(node) || !place.has(from) {
                    continue;
                }
                if exits.last().is_none_or(|exit| exit.node != node) {
                    exits.push(RemoteNode { part: place.part_of(node), node, end: 0 });
                }
                ports.push((port, network.plan.number_in_own_shard(node, numbers.global(port))));
                exits.last_mut().expect("just made").end = ports.len() as u32;
            }
        }
        let posts = (0..place.parts).map(|_| Transfer::default()).collect();
        Outbox { posts, exits, ports, first: Time::MAX }
    }

    pub(crate) fn push(&mut self, part: u16, letter: RemoteItem) {
        self.first = self.first.min(letter.at);
        self.posts[usize::from(part)].items.push(letter);
    }

    /// Puts all outgoing events into the mailboxes. Returns the time of the earliest one.
    pub(crate) fn send<const C: usize>(
        &mut self,
        from: u16,
        boxes: &Mailboxes,
        window: usize,
        fabric: &mut Fabric<Content, C>,
    ) -> Time {
        let mut first = std::mem::replace(&mut self.first, Time::MAX);
        let mut start = 0;
        for exit in &self.exits {
            let ports = &self.ports[start..exit.end as usize];
            start = exit.end as usize;
            first = first.min(fabric.hand_over(
                exit.node,
                ports,
                &mut self.posts[usize::from(exit.part)].packets,
            ));
        }
        for (post, to) in self.posts.iter_mut().zip(0..).filter(|(post, _)| !post.is_empty()) {
            // The slot is empty: its events were taken during the window in between.
            let mut place = boxes.slot(window, from, to);
            if boxes.here.contains(&to) {
                std::mem::swap(post, &mut *place);
            } else {
                post.pack(&mut place.packed);
            }
        }
        first
    }
}

/// Mailboxes for each pair of shards, with separate slots for even and odd windows. Events sent in one window are
/// taken in the next, while other shards already send again.
pub(crate) struct Mailboxes {
    parts: u16,
    /// Range of shard numbers of each rank.
    ranks: Vec<Range<u16>>,
    /// Range of shard numbers of this process.
    here: Range<u16>,
    places: [Vec<Mutex<Transfer>>; 2],
}

impl Mailboxes {
    /// Creates the mailboxes of rank `own`. `ranks` holds the shards of each rank.
    pub(crate) fn new(ranks: Vec<Range<u16>>, own: u16) -> Self {
        let parts = ranks.last().map_or(0, |last| last.end);
        let here = ranks[usize::from(own)].clone();
        let pairs = usize::from(parts) * usize::from(parts);
        let places = [(); 2].map(|()| (0..pairs).map(|_| Mutex::default()).collect());
        Mailboxes { parts, ranks, here, places }
    }

    /// Returns the slot for events from one shard to another in this window. Only the parity of `window` matters.
    pub(crate) fn slot(&self, window: usize, from: u16, to: u16) -> MutexGuard<'_, Transfer> {
        let pair = usize::from(from) * usize::from(self.parts) + usize::from(to);
        self.places[window & 1][pair].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends to `out` all events for the shards of rank `to`.
    pub(crate) fn collect(&self, window: usize, to: u16, out: &mut Vec<u8>) {
        let to = &self.ranks[usize::from(to)];
        for (from, to) in self.here.clone().flat_map(|from| to.clone().map(move |to| (from, to))) {
            let mut place = self.slot(window, from, to);
            if !place.packed.is_empty() {
                put(out, &(from, to, &place.packed));
                place.packed.clear();
            }
        }
    }

    /// Puts events that another rank collected into the mailboxes of the shards of this rank.
    pub(crate) fn unpack_into_slots(&self, window: usize, mut packed: &[u8]) {
        while !packed.is_empty() {
            let (from, to, bytes): (u16, u16, u32) = take(&mut packed);
            let (post, others) = packed.split_at(bytes as usize);
            packed = others;
            let mut place = self.slot(window, from, to);
            place.packed.clear();
            place.packed.extend_from_slice(post);
        }
    }
}
