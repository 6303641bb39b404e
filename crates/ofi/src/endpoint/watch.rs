//! The thread that looks after lanes when the application does not: it takes in newcomers, hears bells and ends, and has peers
//! ring once nobody looks any more.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pathweave_shm::{Brought, Meeting, Newcomer, Offer, Ticket, Watch};
use slab::Slab;

use crate::log::{Level, say};

/// What can be read at the door: somebody has come.
pub(super) const DOOR: u64 = 0;
/// Who has come and not said what for.
const NEWCOMERS: u64 = 1 << 32;
/// Of these at most so many: the rest is sent away.
const MOST_NEWCOMERS: usize = 1024;
/// How long the application may not have looked before peers are to ring.
const LULL: Duration = Duration::from_millis(2);

/// A lane, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LaneKey(pub(super) usize);

/// Whose lanes are looked after: an endpoint.
pub(super) trait Watched: Send + Sync {
    /// A process on this host hands over memory.
    fn on_offer(&self, ticket: Ticket, brought: Brought);
    /// A peer on this host has rung, or is gone.
    fn on_bell(&self, lane: LaneKey);
    /// Does what the application has not done for a while. `looked` is how often it had looked when this was called before.
    fn keep_watch(&self, looked: &mut u64) -> Vigil;
}

/// What a lane is called here.
pub(super) fn token(key: LaneKey) -> u64 {
    key.0 as u64 + 1
}

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vigil {
    /// Nothing until somebody rings.
    Asleep,
    /// Look again soon: the application looks itself, or something waits for room.
    Soon,
    /// Look again at once.
    Now,
}

/// The thread's body.
pub(super) fn run(endpoint: &Weak<impl Watched>, watch: &Watch, door: &Meeting, stop: &AtomicBool) {
    let mut newcomers = Slab::new();
    let mut vigil = Vigil::Asleep;
    let mut looked = 0;
    loop {
        let timeout = match vigil {
            Vigil::Asleep => None,
            Vigil::Soon => Some(LULL),
            Vigil::Now => Some(Duration::ZERO),
        };
        let Ok(ready) = watch.wait(timeout) else { return };
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let Some(endpoint) = endpoint.upgrade() else { return };
        let round = || {
            for token in ready {
                match token {
                    DOOR => welcome(&*endpoint, watch, door, &mut newcomers),
                    NEWCOMERS.. => hear_out(&*endpoint, watch, &mut newcomers, (token - NEWCOMERS) as usize),
                    lane => endpoint.on_bell(LaneKey(lane as usize - 1)),
                }
            }
            endpoint.keep_watch(&mut looked)
        };
        vigil = catch_unwind(AssertUnwindSafe(round)).unwrap_or_else(|_| {
            say(Level::Warn, format_args!("a bug struck while peers of this host were looked after"));
            Vigil::Soon
        });
    }
}

/// Takes in all who have come.
fn welcome(endpoint: &impl Watched, watch: &Watch, door: &Meeting, newcomers: &mut Slab<Option<Newcomer>>) {
    while let Some(newcomer) = door.newcomer() {
        if newcomers.len() >= MOST_NEWCOMERS {
            continue;
        }
        let entry = newcomers.vacant_entry();
        let at = entry.key();
        if watch.add(&newcomer, NEWCOMERS + at as u64).is_ok() {
            entry.insert(Some(newcomer));
            hear_out(endpoint, watch, newcomers, at);
        }
    }
}

/// Takes what a newcomer has brought, if it has.
fn hear_out(endpoint: &impl Watched, watch: &Watch, newcomers: &mut Slab<Option<Newcomer>>, at: usize) {
    let Some(newcomer) = newcomers.get_mut(at).and_then(Option::take) else { return };
    watch.remove(&newcomer);
    match newcomer.offer() {
        Offer::NotYet(newcomer) => {
            if watch.add(&newcomer, NEWCOMERS + at as u64).is_ok() {
                newcomers[at] = Some(newcomer);
                return;
            }
        }
        Offer::Memory(ticket, brought) => endpoint.on_offer(ticket, brought),
        Offer::Nonsense => say(Level::Info, format_args!("somebody came and brought nothing")),
    }
    newcomers.remove(at);
}
