//! The event loop, common to both transport services. Arrivals, timers and requests go in; packets, completions and
//! wake-ups come out.
//!
//! [`Engine`] is the loop over a [`Backend`]. [`Io`] is its state common to all services: clock, pacing, batches,
//! counts. [`Service`] is what connections (`engine`) and datagrams (`rdm`) add.

pub(crate) mod anticipation;
pub(crate) mod frame;
mod io;
pub(crate) mod outbound;
pub(crate) mod pacing;
mod service;

use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

use pathweave_units::{Duration as Span, Time};

use crate::backend::{Arrivals, Backend, Wait};
use crate::config::Waiting;
use anticipation::PollMode;
pub(crate) use io::{Io, MAY_BEGIN_ANEW, MUST_BEGIN_ANEW};
use service::WhenToCall;
pub(crate) use service::{Origin, Service, message};

/// Largest number of receive calls in one turn.
const RECEIVES_A_TURN: usize = 4;
/// Largest number of receive calls in one turn when a packet is about to count as lost: the content of several socket
/// buffers.
const RECEIVES_BEFORE_TIMEOUT: usize = 256;
/// Waits shorter than this are spent polling: a sleep and a wake-up take about as long.
const SHORTEST_SLEEP: Duration = Duration::from_micros(15);
/// Held packets that are due this soon leave at once: no sleep is that short.
const HELD_GRACE: Span = Span::from_us(15);
/// Time by which a sleep ends before its timer, to be awake when the timer is due.
const WAKE_EARLY: Duration = Duration::from_micros(5);

/// Result of a turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    /// True if there is more to do at once.
    pub(crate) more: bool,
    /// True if there was something to do.
    pub(crate) active: bool,
    /// Time at which the next timer is due.
    pub(crate) until: Option<Time>,
    /// True if the loop has ended.
    pub(crate) stopped: bool,
}

/// Bound on the length of a sleep, in addition to the loop's own timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// Do not sleep.
    AtOnce,
    /// No caller waits: only the timers bound the sleep.
    Timer,
    /// A caller waits until this instant.
    Deadline(Instant),
}

/// State of the work after sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// There was nothing to do.
    Idle,
    /// Everything is done.
    Done,
    /// There is more to do.
    More,
}

/// Interface of the thread that drives a loop, independent of service and backend.
pub(crate) trait Drive: Send {
    /// Does all work that is due now, and returns without waiting.
    fn turn(&mut self) -> std::io::Result<Turn>;
    /// Carries out the application's latest requests, and leaves arrivals for the next turn.
    fn push(&mut self);
    /// Sleeps until there is something to do, at most until the turn's timer and `until`.
    fn park(&mut self, turn: &Turn, until: Until) -> std::io::Result<()>;
    /// Fails all outstanding work, since the loop has ended.
    fn abandon(&mut self);
}

/// The loop of a service over a backend.
pub(crate) struct Engine<B, S> {
    pub(crate) backend: B,
    pub(crate) core: S,
}

impl<B: Backend, S: Service> Drive for Engine<B, S> {
    fn turn(&mut self) -> std::io::Result<Turn> {
        let core = &mut self.core;
        core.io_mut().counts.turns += 1;
        let asked = !core.shared().commands.is_empty() || core.shared().has_events();
        if core.io().drained && core.io().settled && !asked {
            // Nothing new can arrive before a sleep or a timer.
            let (until, stopped) = (core.next_timer(), core.is_finished());
            return Ok(Turn { more: false, active: false, until, stopped });
        }
        let mut active = core.take_commands();
        if core.io().outbound.is_stuck() {
            core.io_mut().outbound.flush(&mut self.backend);
        }
        let mut arrivals = Arrivals::None;
        // If everything has been received and the loop has not slept since, the sleep reports whether there is more.
        if !core.io().drained {
            for receives in 1.. {
                arrivals = self.backend.receive(&mut |received| core.on_received(received))?;
                let io = core.io_mut();
                io.unread = arrivals != Arrivals::None;
                if io.unread {
                    active = true;
                    let looks = io.anticipation.is_looking();
                    io.anticipation.arrived(io.now, if looks { io.clock.now() } else { io.now });
                }
                // Before a packet counts as lost, all arrivals are processed, since one may acknowledge it.
                let wants_all = io.unread && receives < RECEIVES_BEFORE_TIMEOUT && core.is_loss_due();
                if arrivals != Arrivals::More && !wants_all {
                    core.io_mut().drained = true;
                    break;
                }
                if receives >= RECEIVES_A_TURN && !wants_all {
                    break;
                }
                core.after_input(&mut self.backend, WhenToCall::Now);
            }
            if core.is_loss_due() {
                // Set even if arrivals remain, so that a busy loop detects losses, too.
                core.io_mut().unread = false;
            }
        }
        let idle =
            !active && core.io().settled && !core.io().outbound.is_stuck() && !core.shared().has_events();
        if idle && !S::HAS_SIDE_CHANNEL {
            // An idle loop polls far more often than it finds work, so it only reads the clock.
            let (now, until) = (core.io_mut().tick(), core.next_timer());
            if until.into_iter().chain(core.held_until()).all(|due| due > now) {
                return Ok(Turn { more: false, active, until, stopped: core.is_finished() });
            }
        }
        let left = core.after_input(&mut self.backend, WhenToCall::Now);
        active |= left != Left::Idle;
        // Sending may have ended something of which the hook must be informed.
        let told = core.shared().has_events();
        core.io_mut().settled = left != Left::More && !told;
        let more =
            arrivals == Arrivals::More || left == Left::More || told || !core.shared().commands.is_empty();
        Ok(Turn { more, active, until: core.next_timer(), stopped: core.is_finished() })
    }

    fn push(&mut self) {
        let core = &mut self.core;
        if core.take_commands() {
            core.io_mut().unread = true;
            core.io_mut().anticipation.interrupted();
            let left = core.after_input(&mut self.backend, WhenToCall::NextTurn);
            core.io_mut().settled = left != Left::More;
        }
    }

    fn park(&mut self, turn: &Turn, until: Until) -> std::io::Result<()> {
        let core = &mut self.core;
        if turn.more || core.io().waiting == Waiting::Busy {
            core.io_mut().drained = false;
            if !turn.active {
                std::thread::yield_now();
            }
            return Ok(());
        }
        // The turn has just ended, so its time is recent enough.
        let now = core.io().now;
        if core.held_until().is_some_and(|until| until <= now + HELD_GRACE) {
            core.flush_held(&mut self.backend);
        }
        if until == Until::AtOnce {
            core.io_mut().drained = false;
            return Ok(());
        }
        if turn.active {
            core.io_mut().idle_since = now;
        }
        let timer = turn.until.into_iter().chain(core.held_until()).min();
        let left = timer.map(|until| Duration::from_nanos(until.saturating_since(now).as_ns()));
        let io = core.io_mut();
        let look = io.poll_mode(now).or(left.filter(|left| *left < SHORTEST_SLEEP).map(|_| PollMode::Once));
        if let Some(look) = look {
            io.drained = false;
            match look {
                PollMode::Once => std::hint::spin_loop(),
                // Other threads run on this core meanwhile, above all the other end. If both share a core, its answer
                // is here when this returns, without a sleep and a wake-up of either.
                PollMode::Again => std::thread::yield_now(),
            }
            return Ok(());
        }
        if !core.shared().park() {
            return Ok(());
        }
        let io = core.io_mut();
        io.counts.sleeps += 1;
        let left = left.map(|left| left - WAKE_EARLY);
        let deadline = match until {
            Until::Deadline(deadline) => Some(deadline.saturating_duration_since(Instant::now())),
            Until::Timer | Until::AtOnce => None,
        };
        let at_most = left.into_iter().chain(deadline).chain(io.longest_sleep).min();
        let result = self.backend.wait(Wait { at_most, for_room: io.outbound.is_stuck() });
        io.drained = false;
        core.shared().unpark();
        result
    }

    fn abandon(&mut self) {
        // Pairs with the check of a thread that has queued a command: either this loop sees the command, or that
        // thread sees that the loop has ended.
        fence(Ordering::SeqCst);
        while self.core.take_commands() {}
        self.core.abandon();
        self.core.shared().notify();
    }
}
