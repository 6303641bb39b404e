//! Protection domains: they restrict which peers can access which memory.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex};

use pathweave_transport::Domain;

use crate::error::TooManyDomains;
use crate::shared::lock;

/// A protection domain: regions registered in it can be accessed over connections in it, and over no others. Clones
/// refer to the same domain. It ends with the last clone and the last of its connections and regions.
///
/// A device has a domain of its own, for all connections and regions without a named one.
#[derive(Clone)]
pub struct ProtectionDomain(Arc<Lease>);

/// A domain's number, returned when it is no longer in use.
struct Lease {
    number: Domain,
    numbers: Arc<Numbers>,
}

/// Allocator of a device's domain numbers.
#[derive(Debug)]
pub(super) struct Numbers(Mutex<Free>);

#[derive(Debug)]
struct Free {
    /// First number that has never been used; 0 is the device's own domain.
    next: u16,
    /// Returned numbers, the oldest first.
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

    /// Returns true if a domain has one of these numbers.
    pub(super) fn know(self: &Arc<Self>, domain: &ProtectionDomain) -> bool {
        Arc::ptr_eq(self, &domain.0.numbers)
    }
}

impl ProtectionDomain {
    /// Returns the endpoint's number of a domain; that of the device's own domain for `None`.
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
