//! Thread that serves lanes while the application does not poll. It accepts new lanes, handles bells and
//! closed lanes, and makes peers ring the bell once no thread polls.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pathweave_shm::{Listener, Offer, OfferedMemory, PendingPeer, Ticket, Watch};
use slab::Slab;

use crate::log::{Level, log};

/// Token of the meeting socket: a process has connected.
pub(super) const LISTENER: u64 = 0;
/// First token of connected processes that have not sent their offer.
const FIRST_PENDING: u64 = 1 << 32;
/// Largest number of such processes. Others are disconnected.
const MOST_NEWCOMERS: usize = 1024;
/// Time without a poll of the application after which peers are to ring the bell.
const IDLE_BEFORE_BELLS: Duration = Duration::from_millis(2);

/// Key of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LaneKey(pub(super) usize);

/// An endpoint whose lanes are watched.
pub(super) trait Watched: Send + Sync {
    /// Handles memory that a process on this host hands over.
    fn on_offer(&self, ticket: Ticket, brought: OfferedMemory);
    /// Handles the bell of a peer on this host, or its end.
    fn on_bell(&self, lane: LaneKey);
    /// Makes progress that the application has not made for a while. `looked` is the application's number of
    /// polls at the previous call.
    fn keep_watch(&self, looked: &mut u64) -> NextPoll;
}

/// Returns the token of a lane for the watch.
pub(super) fn token(key: LaneKey) -> u64 {
    key.0 as u64 + 1
}

/// Next step of the watching thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextPoll {
    /// Sleep until a bell rings.
    Asleep,
    /// Poll again soon: the application polls by itself, or an item waits for room.
    Soon,
    /// Poll again at once.
    Now,
}

/// Runs the watching thread.
pub(super) fn run(endpoint: &Weak<impl Watched>, watch: &Watch, door: &Listener, stop: &AtomicBool) {
    let mut newcomers = Slab::new();
    let mut vigil = NextPoll::Asleep;
    let mut looked = 0;
    loop {
        let timeout = match vigil {
            NextPoll::Asleep => None,
            NextPoll::Soon => Some(IDLE_BEFORE_BELLS),
            NextPoll::Now => Some(Duration::ZERO),
        };
        let Ok(ready) = watch.wait(timeout) else { return };
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let Some(endpoint) = endpoint.upgrade() else { return };
        let round = || {
            for token in ready {
                match token {
                    LISTENER => accept_all(&*endpoint, watch, door, &mut newcomers),
                    FIRST_PENDING.. => {
                        read_offer(&*endpoint, watch, &mut newcomers, (token - FIRST_PENDING) as usize);
                    }
                    lane => endpoint.on_bell(LaneKey(lane as usize - 1)),
                }
            }
            endpoint.keep_watch(&mut looked)
        };
        vigil = catch_unwind(AssertUnwindSafe(round)).unwrap_or_else(|_| {
            log(Level::Warn, format_args!("a bug struck while peers of this host were looked after"));
            NextPoll::Soon
        });
    }
}

/// Accepts all processes that have connected.
fn accept_all(
    endpoint: &impl Watched,
    watch: &Watch,
    door: &Listener,
    newcomers: &mut Slab<Option<PendingPeer>>,
) {
    while let Some(newcomer) = door.newcomer() {
        if newcomers.len() >= MOST_NEWCOMERS {
            continue;
        }
        let entry = newcomers.vacant_entry();
        let at = entry.key();
        if watch.add(&newcomer, FIRST_PENDING + at as u64).is_ok() {
            entry.insert(Some(newcomer));
            read_offer(endpoint, watch, newcomers, at);
        }
    }
}

/// Takes the offer of a connected process, if it has arrived.
fn read_offer(endpoint: &impl Watched, watch: &Watch, newcomers: &mut Slab<Option<PendingPeer>>, at: usize) {
    let Some(newcomer) = newcomers.get_mut(at).and_then(Option::take) else { return };
    watch.remove(&newcomer);
    match newcomer.offer() {
        Offer::NotYet(newcomer) => {
            if watch.add(&newcomer, FIRST_PENDING + at as u64).is_ok() {
                newcomers[at] = Some(newcomer);
                return;
            }
        }
        Offer::Memory(ticket, brought) => endpoint.on_offer(ticket, brought),
        Offer::Invalid => {
            log(Level::Info, format_args!("a local connection without an offer of shared memory"));
        }
    }
    newcomers.remove(at);
}
