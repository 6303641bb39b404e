//! Waiting for several descriptors at once.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};

/// Token of [`Watch::wake`], which [`Watch::wait`] does not return.
const AWAKE: u64 = u64::MAX;
/// Largest number of events per call.
const MAX_EVENTS: usize = 64;

/// Waits until one of several descriptors is readable. A closed descriptor is removed automatically.
#[derive(Debug)]
pub struct Watch {
    epoll: OwnedFd,
    waker: OwnedFd,
}

impl Watch {
    /// # Errors
    /// If the process has no free descriptor.
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let waker = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &waker, epoll::EventData::new_u64(AWAKE), epoll::EventFlags::IN)?;
        Ok(Watch { epoll, waker })
    }

    /// Adds a descriptor with `token`, which must be below 2^64-1.
    ///
    /// # Errors
    /// If the kernel has no memory for it.
    pub fn add(&self, one: impl AsFd, token: u64) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, one.as_fd(), epoll::EventData::new_u64(token), epoll::EventFlags::IN)?)
    }

    /// Removes a descriptor, which stays open.
    pub fn remove(&self, one: impl AsFd) {
        // An error means that it was not in the set.
        let _ = epoll::delete(&self.epoll, one.as_fd());
    }

    /// Ends the wait of another thread, or the next one.
    pub fn wake(&self) {
        let _ = rustix::io::write(&self.waker, &1u64.to_ne_bytes());
    }

    /// Returns the tokens of readable descriptors. Returns none after `timeout`, or when woken or interrupted.
    ///
    /// # Errors
    /// The errors of the kernel, which indicate bugs.
    pub fn wait(&self, timeout: Option<Duration>) -> io::Result<Vec<u64>> {
        let timeout = timeout.map(|timeout| Timespec {
            tv_sec: timeout.as_secs() as i64,
            tv_nsec: i64::from(timeout.subsec_nanos()),
        });
        let mut events = Vec::with_capacity(MAX_EVENTS);
        match epoll::wait(&self.epoll, spare_capacity(&mut events), timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let tokens = events.iter().map(|event| event.data.u64());
        let found: Vec<u64> = tokens.collect();
        if found.contains(&AWAKE) {
            let _ = rustix::io::read(&self.waker, &mut [0; 8]);
        }
        Ok(found.into_iter().filter(|token| *token != AWAKE).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    #[test]
    fn it_names_readable_sockets_and_forgets_closed_ones() {
        let watch = Watch::new().unwrap();
        let (mut near, far) = UnixStream::pair().unwrap();
        watch.add(&far, 7).unwrap();
        let soon = Some(Duration::from_millis(1));
        assert!(watch.wait(soon).unwrap().is_empty());
        near.write_all(b"x").unwrap();
        assert_eq!(watch.wait(soon).unwrap(), [7]);
        watch.remove(&far);
        assert!(watch.wait(soon).unwrap().is_empty());
        watch.add(&far, 8).unwrap();
        drop(far);
        watch.wake();
        assert!(watch.wait(None).unwrap().is_empty());
        assert!(watch.wait(soon).unwrap().is_empty());
    }
}
