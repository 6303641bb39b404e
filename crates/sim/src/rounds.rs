//! Threads that work in rounds. In a round all threads do their parts in parallel. Between rounds only the lead
//! thread runs; it decides what the next round does.
//!
//! A simulation makes 100,000 rounds a second, most of them some ten microseconds long. A waiting thread therefore
//! spins for about the length of a round, and sleeps only afterwards. Thread pools for tasks (rayon) take a few
//! microseconds to begin and end each round, and their threads yield to the kernel in between.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Thread};

/// Iterations of the spin loop before a waiting thread sleeps: 20 to 100 us.
const SPINS: u32 = 1 << 11;

type Panic = Box<dyn std::any::Any + Send>;

/// A condition that one thread waits for, first spinning, then parked.
struct Waiter {
    thread: Thread,
    asleep: AtomicBool,
}

impl Waiter {
    /// Creates the waiter of the calling thread, which is the thread that waits.
    fn new() -> Self {
        Waiter { thread: thread::current(), asleep: AtomicBool::new(false) }
    }

    /// Returns once `ready` returns true. The thread that makes it true calls [`Waiter::wake`] afterwards.
    fn wait(&self, ready: impl Fn() -> bool) {
        for _ in 0..SPINS {
            if ready() {
                return;
            }
            std::hint::spin_loop();
        }
        self.asleep.store(true, SeqCst);
        while !ready() {
            thread::park();
        }
        self.asleep.store(false, SeqCst);
    }

    fn wake(&self) {
        if self.asleep.load(SeqCst) {
            self.thread.unpark();
        }
    }
}

/// State shared by the lead and its helpers.
struct Shared {
    /// Number of the round. A change begins a round.
    round: AtomicU32,
    /// Helpers that have not finished the current round.
    left: AtomicUsize,
    over: AtomicBool,
    lead: Waiter,
    helpers: Vec<std::sync::OnceLock<Waiter>>,
    panic: Mutex<Option<Panic>>,
}

impl Shared {
    fn begin(&self) {
        self.left.store(self.helpers.len(), SeqCst);
        self.round.fetch_add(1, SeqCst);
        self.helpers.iter().filter_map(|helper| helper.get()).for_each(Waiter::wake);
    }

    fn help(&self, index: usize, work: &(impl Fn(usize) + Sync)) {
        let waiter = self.helpers[index - 1].get_or_init(Waiter::new);
        let mut seen = 0;
        loop {
            waiter.wait(|| self.round.load(SeqCst) != seen);
            seen = seen.wrapping_add(1);
            if self.over.load(SeqCst) {
                return;
            }
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| work(index))) {
                self.panic.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(panic);
            }
            if self.left.fetch_sub(1, SeqCst) == 1 {
                self.lead.wake();
            }
        }
    }
}

/// Ends the helper threads on drop, even if the lead panics.
struct Dismissal<'s>(&'s Shared);

impl Drop for Dismissal<'_> {
    fn drop(&mut self) {
        self.0.over.store(true, SeqCst);
        self.0.begin();
    }
}

/// Handle with which the lead runs rounds.
pub(crate) struct Rounds<'s, W: Fn(usize) + Sync> {
    shared: Option<&'s Shared>,
    parts: usize,
    work: &'s W,
}

impl<W: Fn(usize) + Sync> Rounds<'_, W> {
    /// Runs a round in which each part of the work is done once, in parallel. Returns when all parts are done. A
    /// panic in a part resumes in the caller.
    pub(crate) fn together(&mut self) {
        let Some(shared) = self.shared else { return self.alone() };
        shared.begin();
        let own = catch_unwind(AssertUnwindSafe(|| (self.work)(0)));
        shared.lead.wait(|| shared.left.load(SeqCst) == 0);
        let panic = shared.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(panic) = own.err().or(panic) {
            resume_unwind(panic);
        }
    }

    /// Runs a round in which the lead does every part itself, one by one. Faster if a round has so little work that
    /// waking the helpers would take longer.
    pub(crate) fn alone(&mut self) {
        (0..self.parts).for_each(self.work);
    }
}

/// Runs `lead`, which makes rounds of `work`. A round calls `work` once for each part, 0 to `parts - 1`, one part a
/// thread; the lead's thread does part 0. Returns the result of `lead` and the CPU time of the other threads, in
/// seconds.
///
/// # Panics
/// Panics if the lead or the work does, after the other threads have ended.
pub(crate) fn with_crew<R, W: Fn(usize) + Sync>(
    parts: usize,
    work: W,
    lead: impl FnOnce(&mut Rounds<'_, W>) -> R,
) -> (R, f64) {
    if parts <= 1 {
        return (lead(&mut Rounds { shared: None, parts, work: &work }), 0.0);
    }
    let shared = Shared {
        round: AtomicU32::new(0),
        left: AtomicUsize::new(0),
        over: AtomicBool::new(false),
        lead: Waiter::new(),
        helpers: (1..parts).map(|_| std::sync::OnceLock::new()).collect(),
        panic: Mutex::new(None),
    };
    let (shared, work) = (&shared, &work);
    thread::scope(|scope| {
        let helper = |index| {
            scope.spawn(move || {
                shared.help(index, work);
                thread_cpu_s()
            })
        };
        let helpers: Vec<_> = (1..parts).map(helper).collect();
        let result = {
            let _dismissal = Dismissal(shared);
            lead(&mut Rounds { shared: Some(shared), parts, work })
        };
        let cpu_s = helpers.into_iter().map(|helper| helper.join().expect("panics of work are caught")).sum();
        (result, cpu_s)
    })
}

/// Applies `make` to every item in parallel, one thread an item, the last item on the caller's thread. Returns the
/// results in the order of the items.
///
/// # Panics
/// Panics if `make` does.
pub(crate) fn make_all<I: Send, T: Send>(mut of: Vec<I>, make: impl Fn(I) -> T + Sync) -> Vec<T> {
    let make = &make;
    let Some(last) = of.pop() else { return Vec::new() };
    thread::scope(|scope| {
        let others: Vec<_> = of.into_iter().map(|of| scope.spawn(move || make(of))).collect();
        let last = make(last);
        let made = others.into_iter().map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        made.chain([last]).collect()
    })
}

/// Returns the CPU time of the calling thread, seconds.
#[cfg(unix)]
fn thread_cpu_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Returns 0, where no clock counts the CPU time of a thread. A browser has one thread, so nothing calls it there.
#[cfg(not(unix))]
fn thread_cpu_s() -> f64 {
    0.0
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Each round adds up the counts of all parts from the round before: none is lost, and no round begins early.
    #[test]
    fn a_round_sees_all_of_the_one_before() {
        for parts in [1, 2, 5] {
            let counts: Vec<AtomicUsize> = (0..parts).map(|_| AtomicUsize::new(0)).collect();
            let expected = AtomicUsize::new(0);
            let work = |index: usize| {
                assert_eq!(counts[index].fetch_add(1, SeqCst), expected.load(SeqCst));
            };
            let ((), cpu_s) = with_crew(parts, work, |rounds| {
                for round in 0..2_000 {
                    expected.store(round, SeqCst);
                    // Now and then let the helpers fall asleep.
                    if round % 500 == 499 {
                        thread::sleep(Duration::from_millis(5));
                    }
                    if round % 7 == 0 {
                        rounds.alone();
                    } else {
                        rounds.together();
                    }
                    assert!(counts.iter().all(|count| count.load(SeqCst) == round + 1));
                }
            });
            assert_eq!(cpu_s > 0.0, parts > 1);
        }
    }

    #[test]
    fn a_panic_of_a_helper_ends_the_round_at_the_lead() {
        let work = |index: usize| assert!(index < 2, "the third fails");
        let caught = catch_unwind(|| {
            with_crew(3, work, |rounds| {
                rounds.together();
                rounds.together();
            })
        });
        let panic = caught.map(drop).expect_err("it goes on at the lead");
        assert!(panic.downcast_ref::<&str>().is_some_and(|text| text.contains("the third fails")));
    }

    #[test]
    fn a_panic_of_the_lead_lets_the_helpers_go() {
        let caught = catch_unwind(|| {
            with_crew(
                3,
                |_| {},
                |rounds| {
                    rounds.together();
                    panic!("enough");
                },
            )
        });
        assert!(caught.is_err());
    }

    #[test]
    fn all_are_made_in_order() {
        assert_eq!(make_all(vec![3, 1, 2], |number| number * 10), [30, 10, 20]);
        assert!(make_all(Vec::<u8>::new(), |number| number).is_empty());
    }
}
