//! What goes from one part of a run to another between windows: packets, and what hosts do to each other apart from them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pathweave_fabric::{Crossings, Fabric, PortId};
use pathweave_units::{HostId, Time};

use crate::agenda::{Item, Rank};
use crate::host::Content;
use crate::partition::Place;

/// Something that a host of another part does to this one at a time.
pub(crate) struct Letter {
    pub(crate) at: Time,
    pub(crate) to: HostId,
    pub(crate) rank: Rank,
    pub(crate) item: Item,
}

/// All that goes from one part to another with a window.
#[derive(Default)]
pub(crate) struct Post {
    pub(crate) packets: Crossings<Content>,
    pub(crate) letters: Vec<Letter>,
}

impl Post {
    fn is_empty(&self) -> bool {
        self.packets.is_empty() && self.letters.is_empty()
    }
}

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
            std::mem::swap(post, &mut boxes.place(window, from, to));
        }
        first
    }
}

/// A mail box for each pair of parts, with places for even windows and for odd ones: what is sent in one is taken in the
/// next, while others send again.
pub(crate) struct Boxes {
    parts: u16,
    places: [Vec<Mutex<Post>>; 2],
}

impl Boxes {
    pub(crate) fn new(parts: u16) -> Self {
        let pairs = usize::from(parts) * usize::from(parts);
        let places = [(); 2].map(|()| (0..pairs).map(|_| Mutex::default()).collect());
        Boxes { parts, places }
    }

    /// What was sent from one part to another in this window, of which only it matters whether its number is even.
    pub(crate) fn place(&self, window: usize, from: u16, to: u16) -> MutexGuard<'_, Post> {
        let pair = usize::from(from) * usize::from(self.parts) + usize::from(to);
        self.places[window & 1][pair].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
