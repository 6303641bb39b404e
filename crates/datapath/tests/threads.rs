//! Synchronization of the application's threads and the loop, under all interleavings that processors and compilers
//! permit: the code of `src/threads` itself, with the primitives of loom.
#![allow(dead_code, reason = "the library uses the rest")]

mod sync {
    pub(super) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, fence};
    pub(super) use loom::sync::{Condvar, Mutex, MutexGuard};
    pub(super) use std::sync::PoisonError;
}
#[path = "../src/threads/parking.rs"]
mod parking;
#[path = "../src/threads/room.rs"]
mod room;
#[path = "../src/threads/signal.rs"]
mod signal;

use std::collections::VecDeque;

use loom::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use loom::sync::{Arc, Mutex, Notify};
use loom::thread;
use parking::Parking;
use room::Room;
use signal::Signal;

/// A queue that imposes no order on other memory, as the library's queue is lock-free.
#[derive(Default)]
struct Queue(Mutex<VecDeque<u32>>);

impl Queue {
    fn push(&self, item: u32) {
        self.0.lock().unwrap().push_back(item);
    }
    fn pop(&self) -> Option<u32> {
        self.0.lock().unwrap().pop_front()
    }
    fn is_empty(&self) -> bool {
        self.0.lock().unwrap().is_empty()
    }
}

/// Explores all executions with at most `preemptions` involuntary context switches.
fn model(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(body);
}

/// The loop sleeps only while no command is queued, or it is woken: no command waits for a sleeping loop. A flag
/// stands for the queue, with the weakest possible ordering.
#[test]
fn no_command_waits_for_a_loop_that_sleeps() {
    model(3, || {
        let shared = Arc::new((Parking::new(), AtomicBool::new(false), Notify::new()));
        let asker = {
            let shared = shared.clone();
            thread::spawn(move || {
                let (parking, command, waker) = &*shared;
                command.store(true, Ordering::Relaxed);
                if parking.must_wake() {
                    waker.notify();
                }
            })
        };
        let (parking, command, waker) = &*shared;
        while !command.load(Ordering::Relaxed) {
            if parking.park(|| !command.load(Ordering::Relaxed)) {
                // A loop that sleeps and is never woken is a deadlock, which the model detects.
                waker.wait();
            }
            parking.unpark();
        }
        asker.join().unwrap();
    });
}

/// Two threads queue commands, and the loop takes all of them.
#[test]
fn commands_of_several_threads_are_all_taken() {
    model(2, || {
        let shared = Arc::new((Parking::new(), Queue::default(), Notify::new()));
        let askers: Vec<_> = [1, 2]
            .into_iter()
            .map(|command| {
                let shared = shared.clone();
                thread::spawn(move || {
                    let (parking, commands, waker) = &*shared;
                    commands.push(command);
                    if parking.must_wake() {
                        waker.notify();
                    }
                })
            })
            .collect();
        let (parking, commands, waker) = &*shared;
        let mut taken = 0;
        while taken < 3 {
            while let Some(command) = commands.pop() {
                taken += command;
            }
            if taken < 3 {
                if parking.park(|| commands.is_empty()) {
                    waker.wait();
                }
                parking.unpark();
            }
        }
        askers.into_iter().for_each(|asker| asker.join().unwrap());
    });
}

/// A waiter sees every change, whether it happens before or after the wait begins.
#[test]
fn no_waiter_sleeps_over_what_has_happened() {
    model(3, || {
        let shared = Arc::new((Signal::default(), AtomicBool::new(false)));
        let teller = {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.1.store(true, Ordering::Relaxed);
                shared.0.notify();
            })
        };
        let seen = shared.0.wait(None, || shared.1.load(Ordering::Relaxed).then_some(7));
        assert_eq!(seen, Some(7));
        teller.join().unwrap();
    });
}

/// Two threads wait for a completion each: each completion is taken once, and each thread gets one.
#[test]
fn completions_are_neither_lost_nor_doubled() {
    model(2, || {
        let shared = Arc::new((Signal::default(), Queue::default()));
        let wait = |shared: &(Signal, Queue)| shared.0.wait(None, || shared.1.pop()).unwrap();
        let other = {
            let shared = shared.clone();
            thread::spawn(move || wait(&shared))
        };
        let teller = {
            let shared = shared.clone();
            thread::spawn(move || {
                for completion in [1, 2] {
                    shared.1.push(completion);
                    shared.0.notify();
                }
            })
        };
        let own = wait(&shared);
        assert_eq!(own + other.join().unwrap(), 3);
        teller.join().unwrap();
        assert!(shared.1.is_empty());
    });
}

/// A slot is never given twice and never lost, whichever threads take and return it.
#[test]
fn room_is_neither_lost_nor_overdrawn() {
    model(3, || {
        let room = Arc::new(Room::new(1));
        let held = Arc::new(AtomicU8::new(0));
        let work = |room: &Room, held: &AtomicU8| {
            if room.take().is_ok() {
                assert_eq!(held.fetch_add(1, Ordering::Relaxed), 0, "one at a time");
                held.fetch_sub(1, Ordering::Relaxed);
                room.give_back();
            }
        };
        let others: Vec<_> = (0..2)
            .map(|_| {
                let (room, held) = (room.clone(), held.clone());
                thread::spawn(move || work(&room, &held))
            })
            .collect();
        work(&room, &held);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert!(room.is_whole() && room.take().is_ok() && room.take().is_err());
    });
}

const CLOSED: u8 = 2;

/// A connection, as seen by the loop and by threads that post and wait.
struct Ending {
    signal: Signal,
    room: Room,
    state: AtomicU8,
    commands: Queue,
    completions: Queue,
}

impl Ending {
    fn new() -> Arc<Self> {
        let (commands, completions) = (Queue::default(), Queue::default());
        let state = AtomicU8::new(1);
        Arc::new(Ending { signal: Signal::default(), room: Room::new(1), state, commands, completions })
    }

    /// Performs the loop's part of a close.
    fn close(&self) {
        self.room.close();
        self.state.store(CLOSED, Ordering::Release);
        self.signal.notify();
    }

    /// Performs the loop's part of a flush: completes everything posted.
    fn flush(&self) {
        while let Some(posted) = self.commands.pop() {
            self.completions.push(posted);
            self.signal.notify();
        }
    }

    /// Waits for completions until the end. Returns the number of completions before the end.
    fn take_all(&self) -> u32 {
        let next = || match self.completions.pop() {
            Some(completion) => Some(Some(completion)),
            None => (self.state.load(Ordering::Acquire) == CLOSED && self.room.is_whole()).then_some(None),
        };
        let mut taken = 0;
        while self.signal.wait(None, next).is_some_and(|found| found.is_some()) {
            taken += 1;
            if self.room.give_back() {
                self.signal.notify();
            }
        }
        taken
    }
}

/// A connection ends while one thread posts and one waits. Every accepted post completes, and the end is reported
/// only after that.
#[test]
fn the_end_of_a_connection_is_told_after_its_last_completion() {
    model(3, || {
        let shared = Ending::new();
        let poster = {
            let shared = shared.clone();
            thread::spawn(move || {
                let posted = shared.room.take().is_ok();
                if posted {
                    shared.commands.push(1);
                }
                posted
            })
        };
        let the_loop = {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.close();
                let posted = poster.join().unwrap();
                shared.flush();
                posted
            })
        };
        let taken = shared.take_all();
        let posted = the_loop.join().unwrap();
        assert_eq!(taken, u32::from(posted), "before the end");
        assert!(shared.completions.is_empty());
    });
}

/// Two threads wait for the end: the one that takes the last completion wakes the other.
#[test]
fn all_who_wait_hear_of_the_end() {
    model(2, || {
        let shared = Ending::new();
        shared.room.take().unwrap();
        shared.commands.push(1);
        let other = {
            let shared = shared.clone();
            thread::spawn(move || shared.take_all())
        };
        let the_loop = {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.close();
                shared.flush();
            })
        };
        let taken = shared.take_all() + other.join().unwrap();
        assert_eq!(taken, 1);
        the_loop.join().unwrap();
    });
}
