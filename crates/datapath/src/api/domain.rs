//! Protection domains: which peers reach which memory.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex};

use pathweave_transport::Domain;

use crate::error::TooManyDomains;
use crate::shared::lock;

/// A part of a device that is apart from the others: regions that are registered in it can be reached over connections in
/// it, and over no others. Clones are the same domain; it ends with the last of them, of its connections and its regions.
///
/// A device has one of its own, in which everything is that is not said to be elsewhere.
#[derive(Clone)]
pub struct ProtectionDomain(Arc<Lease>);

/// A number, given back when it is no longer in use.
struct Lease {
    number: Domain,
    numbers: Arc<Numbers>,
}

/// The domains of a device.
#[derive(Debug)]
pub(super) struct Numbers(Mutex<Free>);

#[derive(Debug)]
struct Free {
    /// The first that was never given; 0 is the device's own domain.
    next: u16,
    /// Those given back, the oldest first.
    again: VecDeque<u16>,
}

impl Numbers {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Numbers(Mutex::new(Free { next: 1, again: VecDeque::new() })))
    }

    pub(super) fn take(self: &Arc<Self>) -> Result<ProtectionDomain, TooManyDomains> {
        let mut free = lock(&self.0);
        let number = match free.next.checked_add(1) {
            Some(next) => std::mem::replace(&mut free.next, next),
            None => free.again.pop_front().ok_or(TooManyDomains { limit: u16::MAX - 1 })?,
        };
        Ok(ProtectionDomain(Arc::new(Lease { number: Domain(number), numbers: self.clone() })))
    }

    /// Whether a domain is one of these.
    pub(super) fn know(self: &Arc<Self>, domain: &ProtectionDomain) -> bool {
        Arc::ptr_eq(self, &domain.0.numbers)
    }
}

impl ProtectionDomain {
    /// As the endpoint numbers it; without one it is the device's own.
    pub(crate) fn number(domain: Option<&ProtectionDomain>) -> Domain {
        domain.map_or(Domain::default(), |domain| domain.0.number)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        lock(&self.numbers.0).again.push_back(self.number.0);
    }
}

impl fmt::Debug for ProtectionDomain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProtectionDomain").field(&self.0.number.0).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_when_the_last_handle_goes() {
        let numbers = Numbers::new();
        let first = numbers.take().unwrap();
        let clone = first.clone();
        assert_eq!(ProtectionDomain::number(Some(&first)), Domain(1));
        assert_eq!(ProtectionDomain::number(None), Domain(0));
        let others: Vec<_> = std::iter::from_fn(|| numbers.take().ok()).collect();
        assert_eq!(others.len(), usize::from(u16::MAX) - 2);
        drop(first);
        assert_eq!(numbers.take().unwrap_err(), TooManyDomains { limit: 65_534 });
        drop(clone);
        assert_eq!(ProtectionDomain::number(numbers.take().ok().as_ref()), Domain(1));
        assert!(numbers.know(&others[0]) && !Numbers::new().know(&others[0]));
    }
}
