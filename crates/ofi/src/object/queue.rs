//! Completion queues. No entry is ever lost: the size in the attributes is only a hint.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use super::makers::Feeders;
use super::uses::Uses;
use super::wait::{Arming, Object, Waiting, Woken};
use super::{Next, Progress, contention, lock};
use crate::abi::eq::*;
use crate::abi::errno::{FI_EAGAIN, FI_EAVAIL, FI_EINVAL};
use crate::guard::{Errno, FiResult, refused};

/// Longest sleep of a call that only polls.
const NAP: Duration = Duration::from_micros(200);

/// Fields of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Context,
    Message,
    Data,
    Tagged,
}

impl Format {
    /// Converts the attribute of a completion queue.
    ///
    /// # Errors
    ///
    /// Returns FI_EINVAL for an unknown format.
    pub(crate) fn of(format: u32) -> FiResult<Self> {
        match format {
            FI_CQ_FORMAT_UNSPEC | FI_CQ_FORMAT_TAGGED => Ok(Format::Tagged),
            FI_CQ_FORMAT_CONTEXT => Ok(Format::Context),
            FI_CQ_FORMAT_MSG => Ok(Format::Message),
            FI_CQ_FORMAT_DATA => Ok(Format::Data),
            _ => Err(refused(FI_EINVAL, format_args!("there is no completion format {format}"))),
        }
    }

    /// Returns the bytes of an entry. All formats are prefixes of the longest one.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Format::Context => 8,
            Format::Message => 24,
            Format::Data => 40,
            Format::Tagged => 48,
        }
    }
}

/// A finished operation. Pointers are stored as numbers and never dereferenced.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entry {
    pub(crate) context: usize,
    pub(crate) flags: u64,
    pub(crate) len: usize,
    pub(crate) buf: usize,
    pub(crate) data: u64,
    pub(crate) tag: u64,
    /// Number of the sender in the address vector.
    pub(crate) source: u64,
    pub(crate) error: Option<EntryError>,
    /// Counter that is increased when the entry is read. It bounds the number of stored entries that peers
    /// cause.
    pub(crate) notice: Option<Arc<AtomicU64>>,
}

/// Error of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryError {
    /// Positive number of `rdma/fi_errno.h`.
    pub(crate) errno: i32,
    /// Number of bytes that did not fit.
    pub(crate) cut: usize,
}

/// Request to endpoints that make entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProgressRequest {
    ForEntry,
    ForNothing,
}

struct State {
    entries: VecDeque<Entry>,
    arming: Arming,
}

impl AsMut<Arming> for State {
    fn as_mut(&mut self) -> &mut Arming {
        &mut self.arming
    }
}

/// A completion queue.
pub(crate) struct Queue {
    pub(crate) format: Format,
    pub(crate) uses: Uses,
    waiting: Waiting,
    /// Number of entries, to check for entries without the lock.
    count: AtomicUsize,
    state: Mutex<State>,
    makers: Feeders,
    /// Longest sleep without polling; short if no other thread makes progress.
    nap: Duration,
}

impl Queue {
    /// Makes a completion queue.
    ///
    /// # Errors
    ///
    /// Returns FI_ENOMEM if no file descriptor is available.
    pub(crate) fn new(format: Format, object: Object, nap: Duration) -> FiResult<Self> {
        let state = State { entries: VecDeque::new(), arming: Arming::default() };
        let waiting = Waiting::new(object)?;
        let (uses, count, state) = (Uses::default(), AtomicUsize::new(0), Mutex::new(state));
        Ok(Queue { format, uses, waiting, count, state, makers: Feeders::default(), nap })
    }

    pub(crate) fn waiting(&self) -> &Waiting {
        &self.waiting
    }

    /// Adds an endpoint whose operations end here.
    pub(crate) fn fed_by(&self, maker: Weak<dyn Progress>) {
        self.makers.add(maker);
    }

    /// Adds the entry of a finished operation.
    pub(crate) fn push(&self, entry: Entry) {
        let mut state = lock(&self.state);
        state.entries.push_back(entry);
        self.count.store(state.entries.len(), Ordering::Relaxed);
        self.waiting.notify(&mut state.arming);
    }

    /// Lets endpoints make progress. If `asks` is `ForEntry`, the caller has found no entry and takes one;
    /// the first entry may then be returned directly.
    fn make_progress(&self, asks: ProgressRequest) -> (Next, Option<Entry>) {
        let (mut next, mut found) = (None, None);
        self.makers.each(|maker| {
            let asker = (asks == ProgressRequest::ForEntry && found.is_none()).then(|| self.address());
            let (wish, entry) = maker.progress(asker);
            found = found.take().or(entry);
            next = next.max(Some(wish));
        });
        (next.unwrap_or(Next::Yield), found)
    }

    /// Returns the address by which endpoints identify the queue.
    pub(crate) fn address(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    /// Returns true if there is no entry.
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Prepares the endpoints for a sleep of the caller.
    fn rest(&self) {
        self.makers.each(|maker| maker.rest());
    }

    /// Passes up to `count` entries to `take`, after a progress pass if there are none.
    ///
    /// # Errors
    ///
    /// Returns FI_EAGAIN without entries, and FI_EAVAIL if the next entry is an error.
    pub(crate) fn read(&self, count: usize, mut take: impl FnMut(usize, &Entry)) -> FiResult<usize> {
        match self.take(count, &mut take) {
            Err(Errno(FI_EAGAIN)) => {}
            // A caller that asks for no entries wants progress.
            Ok(0) => {
                self.make_progress(ProgressRequest::ForNothing);
                return Ok(0);
            }
            other => return other,
        }
        let (next, first) = self.make_progress(if count == 0 {
            ProgressRequest::ForNothing
        } else {
            ProgressRequest::ForEntry
        });
        if let Some(first) = first {
            if let Some(notice) = &first.notice {
                notice.fetch_add(1, Ordering::Relaxed);
            }
            take(0, &first);
            // Takes the entries after it. An error is reported by the next call.
            let behind = match count {
                1 => 0,
                _ => self.take(count - 1, &mut |index, entry| take(index + 1, entry)).unwrap_or(0),
            };
            return Ok(1 + behind);
        }
        let found = self.take(count, &mut take);
        match next {
            Next::Look => found,
            _ if !matches!(found, Err(Errno(FI_EAGAIN))) => found,
            // A polling caller yields its core to the thread that it waits for, if there are too few cores.
            Next::Yield => {
                std::thread::yield_now();
                found
            }
            Next::Nap => {
                self.nap();
                self.take(count, &mut take)
            }
        }
    }

    /// Sleeps for a short time until data arrives. It is short because the application may poll for other
    /// events as well.
    fn nap(&self) {
        let begun = Instant::now();
        match self.sleep_at_device(Some(begun + NAP)) {
            // The signal was meant for a sleep of the application.
            Some(Woken::Signalled) => self.waiting.signal_again(&mut lock(&self.state).arming),
            Some(Woken::Perhaps | Woken::TooLate) => {}
            None => return std::thread::yield_now(),
        }
        contention::slept(begun.elapsed());
    }

    fn take(&self, count: usize, take: &mut dyn FnMut(usize, &Entry)) -> FiResult<usize> {
        // A relaxed load is enough: a thread that knows of an entry has pushed it, or was told of it after it
        // was counted.
        if self.count.load(Ordering::Relaxed) == 0 {
            return Err(Errno(FI_EAGAIN));
        }
        let mut state = lock(&self.state);
        match state.entries.front() {
            None => return Err(Errno(FI_EAGAIN)),
            Some(Entry { error: Some(_), .. }) => return Err(Errno(FI_EAVAIL)),
            Some(_) => {}
        }
        let mut taken = 0;
        while taken < count && state.entries.front().is_some_and(|entry| entry.error.is_none()) {
            let entry = state.entries.pop_front().expect("just looked at");
            if let Some(notice) = &entry.notice {
                notice.fetch_add(1, Ordering::Relaxed);
            }
            take(taken, &entry);
            taken += 1;
        }
        self.count.store(state.entries.len(), Ordering::Relaxed);
        Ok(taken)
    }

    /// Works as [`read`](Queue::read), but sleeps until there is an entry.
    ///
    /// # Errors
    ///
    /// Returns the errors of `read`, and FI_EAGAIN after the timeout or a signal.
    pub(crate) fn read_waiting(
        &self,
        count: usize,
        deadline: Option<Instant>,
        mut take: impl FnMut(usize, &Entry),
    ) -> FiResult<usize> {
        loop {
            match self.take(count, &mut take) {
                Err(Errno(FI_EAGAIN)) => {}
                other => return other,
            }
            self.make_progress(ProgressRequest::ForNothing);
            if self.count.load(Ordering::Relaxed) > 0 {
                continue;
            }
            match self.sleep_at_device(deadline) {
                Some(Woken::Perhaps) => continue,
                Some(Woken::Signalled | Woken::TooLate) => return Err(Errno(FI_EAGAIN)),
                None => {}
            }
            self.rest();
            let state = lock(&self.state);
            if !state.entries.is_empty() {
                continue;
            }
            match self.waiting.sleep(state, deadline, self.nap) {
                (_, Woken::Perhaps) => {}
                (_, Woken::Signalled | Woken::TooLate) => return Err(Errno(FI_EAGAIN)),
            }
        }
    }

    /// Sleeps at the device, if the caller has to drive it and it is the only source of entries.
    fn sleep_at_device(&self, deadline: Option<Instant>) -> Option<Woken> {
        let device = self.makers.only()?.sleep_device()?;
        let is_there = || self.count.load(Ordering::Relaxed) > 0;
        self.waiting.sleep_at(&device, &self.state, is_there, deadline, self.nap)
    }

    /// Wakes sleeping callers because the endpoint that feeds the queue is closing.
    pub(crate) fn move_on(&self) {
        self.waiting.recheck_sleep_place(&mut lock(&self.state).arming);
    }

    /// Returns the next entry, if it is an error.
    ///
    /// # Errors
    ///
    /// Returns FI_EAGAIN if it is not an error.
    pub(crate) fn read_error(&self) -> FiResult<Entry> {
        let mut state = lock(&self.state);
        let is_error = state.entries.front().is_some_and(|entry| entry.error.is_some());
        let next = if is_error { state.entries.pop_front() } else { None };
        self.count.store(state.entries.len(), Ordering::Relaxed);
        next.ok_or(Errno(FI_EAGAIN))
    }

    /// Ends the sleep of all waiting callers. If no caller waits, it ends the next sleep.
    pub(crate) fn signal(&self) {
        self.waiting.signal(&mut lock(&self.state).arming);
    }

    /// Prepares for a wait on the descriptor: there is no entry, and none can be made at once.
    ///
    /// # Errors
    ///
    /// Returns FI_EAGAIN if there is an entry, or a signal since the last sleep.
    pub(crate) fn try_wait(&self) -> FiResult {
        if !lock(&self.state).entries.is_empty() {
            return Err(Errno(FI_EAGAIN));
        }
        self.rest();
        let mut state = lock(&self.state);
        if !state.entries.is_empty() || state.arming.take_signal() {
            return Err(Errno(FI_EAGAIN));
        }
        self.waiting.arm(&mut state.arming);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::errno::FI_ETRUNC;
    use pathweave_datapath::Device;
    use std::thread;

    fn entry(context: usize) -> Entry {
        Entry { context, ..Entry::default() }
    }

    fn queue() -> Queue {
        Queue::new(Format::Tagged, Object::Descriptor, Duration::from_secs(1)).unwrap()
    }

    fn read(queue: &Queue, count: usize) -> FiResult<Vec<usize>> {
        let mut contexts = Vec::new();
        queue.read(count, |_, entry| contexts.push(entry.context)).map(|_| contexts)
    }

    #[test]
    fn entries_come_in_order_and_an_error_stops_them() {
        let queue = queue();
        assert_eq!(read(&queue, 4), Err(Errno(FI_EAGAIN)));
        queue.push(entry(1));
        queue.push(entry(2));
        queue.push(Entry { error: Some(EntryError { errno: FI_ETRUNC, cut: 9 }), ..entry(3) });
        queue.push(entry(4));
        assert!(queue.read_error().is_err(), "two successes are before it");
        assert_eq!(read(&queue, 8), Ok(vec![1, 2]));
        assert_eq!(read(&queue, 8), Err(Errno(FI_EAVAIL)));
        assert_eq!(queue.read_error().unwrap().error.unwrap().cut, 9);
        assert_eq!(read(&queue, 8), Ok(vec![4]));
    }

    /// Makes the entries 1 and 2 at each poll, and hands the first one to the caller directly if possible.
    struct Maker(Weak<Queue>);

    impl Progress for Maker {
        fn progress(&self, asker: Option<usize>) -> (Next, Option<Entry>) {
            let queue = self.0.upgrade().unwrap();
            let handed = (asker == Some(queue.address())).then(|| entry(1));
            if handed.is_none() {
                queue.push(entry(1));
            }
            queue.push(entry(2));
            (Next::Look, handed)
        }
        fn rest(&self) {}
        fn sleep_device(&self) -> Option<Device> {
            None
        }
    }

    #[test]
    fn entries_handed_to_the_caller_come_before_the_queue() {
        let queue = Arc::new(queue());
        let maker: Arc<dyn Progress> = Arc::new(Maker(Arc::downgrade(&queue)));
        queue.fed_by(Arc::downgrade(&maker));
        assert_eq!(read(&queue, 8), Ok(vec![1, 2]));
        assert_eq!(read(&queue, 1), Ok(vec![1]));
        assert_eq!(read(&queue, 8), Ok(vec![2]));
        assert_eq!(read(&queue, 0), Ok(vec![]), "who asks for none gets none, and it is kept");
        assert_eq!(read(&queue, 8), Ok(vec![1, 2]));
    }

    #[test]
    fn ten_thousand_unread_entries_are_kept() {
        let queue = queue();
        (0..10_000).for_each(|context| queue.push(entry(context)));
        assert_eq!(read(&queue, 20_000), Ok((0..10_000).collect()));
    }

    #[test]
    fn a_timeout_is_kept_and_a_signal_ends_the_sleep() {
        let queue = Arc::new(queue());
        let start = Instant::now();
        let soon = start + Duration::from_millis(100);
        assert_eq!(queue.read_waiting(1, Some(soon), |_, _| ()), Err(Errno(FI_EAGAIN)));
        assert!(
            start.elapsed() >= Duration::from_millis(100) && start.elapsed() < Duration::from_millis(900)
        );
        let other = queue.clone();
        let sleeper = thread::spawn(move || other.read_waiting(1, None, |_, _| ()));
        // Until it sleeps, a signal has no thread to wake.
        while lock(&queue.state).arming.sleepers == 0 {
            thread::yield_now();
        }
        queue.signal();
        assert_eq!(sleeper.join().unwrap(), Err(Errno(FI_EAGAIN)));
    }

    /// A signal without a sleeping caller is not lost, and counts once.
    #[test]
    fn a_signal_before_the_sleep_ends_it() {
        let queue = queue();
        let sleep = |ms| {
            let start = Instant::now();
            let slept = queue.read_waiting(1, Some(start + Duration::from_millis(ms)), |_, _| ());
            assert_eq!(slept, Err(Errno(FI_EAGAIN)));
            start.elapsed()
        };
        queue.signal();
        queue.signal();
        assert!(sleep(20_000) < Duration::from_secs(10));
        assert!(sleep(50) >= Duration::from_millis(50), "the next sleep is a whole one");
        queue.signal();
        assert_eq!((queue.try_wait(), queue.try_wait()), (Err(Errno(FI_EAGAIN)), Ok(())));
    }

    #[test]
    fn no_wake_of_the_descriptor_is_lost() {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let queue = Arc::new(queue());
        let other = queue.clone();
        let rounds = 20_000;
        let pusher = thread::spawn(move || (0..rounds).for_each(|context| other.push(entry(context))));
        let mut seen = 0;
        while seen < rounds {
            if queue.try_wait().is_ok() {
                let descriptor = queue.waiting.descriptor.as_ref().unwrap();
                let mut polled = [PollFd::new(descriptor, PollFlags::IN)];
                let long = Timespec { tv_sec: 20, tv_nsec: 0 };
                assert_eq!(poll(&mut polled, Some(&long)), Ok(1), "lost a wake after {seen}");
            }
            seen += read(&queue, 7).map_or(0, |contexts| contexts.len());
        }
        pusher.join().unwrap();
    }
}
