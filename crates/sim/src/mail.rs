//! How what goes from one part of a run to another between windows gets there.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pathweave_fabric::{Fabric, PortId};
use pathweave_units::Time;

use crate::host::Content;
use crate::letters::{Letter, Post};
use crate::partition::Place;
use crate::ranks::{put, take};

/// A node of another part that links from this one lead to.
struct Exit {
    part: u16,
    node: u32,
    /// Where in `ports` those of its ports are that these links lead to, up to.
    end: u32,
}

/// What a part sends, until the window is over.
pub(crate) struct Outbox {
    /// By part.
    posts: Vec<Post>,
    exits: Vec<Exit>,
    ports: Vec<PortId>,
    /// When the first of it is due.
    first: Time,
}

impl Outbox {
    /// Of the part at this place.
    pub(crate) fn new<const C: usize>(place: &Place, fabric: &Fabric<Content, C>) -> Self {
        let (mut exits, mut ports): (Vec<Exit>, Vec<PortId>) = (Vec::new(), Vec::new());
        if !place.is_all() {
            for port in 0..fabric.port_count() {
                let (node, from) = fabric.ends(port);
                if place.has(node) || !place.has(from) {
                    continue;
                }
                if exits.last().is_none_or(|exit| exit.node != node) {
                    exits.push(Exit { part: place.part_of(node), node, end: 0 });
                }
                ports.push(port);
                exits.last_mut().expect("just made").end = ports.len() as u32;
            }
        }
        let posts = (0..place.parts).map(|_| Post::default()).collect();
        Outbox { posts, exits, ports, first: Time::MAX }
    }

    pub(crate) fn push(&mut self, part: u16, letter: Letter) {
        self.first = self.first.min(letter.at);
        self.posts[usize::from(part)].letters.push(letter);
    }

    /// Puts everything that is to go out into the mail boxes. Returns when the first of it is due.
    pub(crate) fn send<const C: usize>(
        &mut self,
        from: u16,
        boxes: &Boxes,
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
            // The place is empty: what was in it was taken in the window in between.
            let mut place = boxes.place(window, from, to);
            if boxes.here.contains(&to) {
                std::mem::swap(post, &mut *place);
            } else {
                post.pack(&mut place.packed);
            }
        }
        first
    }
}

/// A mail box for each pair of parts, with places for even windows and for odd ones: what is sent in one is taken in the
/// next, while others send again.
pub(crate) struct Boxes {
    parts: u16,
    /// The parts of each rank.
    ranks: Vec<Range<u16>>,
    /// The parts of this one.
    here: Range<u16>,
    places: [Vec<Mutex<Post>>; 2],
}

impl Boxes {
    /// Of a run whose ranks have these parts, as rank `own` has them.
    pub(crate) fn new(ranks: Vec<Range<u16>>, own: u16) -> Self {
        let parts = ranks.last().map_or(0, |last| last.end);
        let here = ranks[usize::from(own)].clone();
        let pairs = usize::from(parts) * usize::from(parts);
        let places = [(); 2].map(|()| (0..pairs).map(|_| Mutex::default()).collect());
        Boxes { parts, ranks, here, places }
    }

    /// What was sent from one part to another in this window, of which only it matters whether its number is even.
    pub(crate) fn place(&self, window: usize, from: u16, to: u16) -> MutexGuard<'_, Post> {
        let pair = usize::from(from) * usize::from(self.parts) + usize::from(to);
        self.places[window & 1][pair].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds to `out` what goes to the parts of another rank.
    pub(crate) fn collect(&self, window: usize, to: u16, out: &mut Vec<u8>) {
        let to = &self.ranks[usize::from(to)];
        for (from, to) in self.here.clone().flat_map(|from| to.clone().map(move |to| (from, to))) {
            let mut place = self.place(window, from, to);
            if !place.packed.is_empty() {
                put(out, &(from, to, &place.packed));
                place.packed.clear();
            }
        }
    }

    /// Puts what another rank has collected for the parts of this one where they take it in.
    pub(crate) fn distribute(&self, window: usize, mut packed: &[u8]) {
        while !packed.is_empty() {
            let (from, to, bytes): (u16, u16, u32) = take(&mut packed);
            let (post, others) = packed.split_at(bytes as usize);
            packed = others;
            let mut place = self.place(window, from, to);
            place.packed.clear();
            place.packed.extend_from_slice(post);
        }
    }
}
