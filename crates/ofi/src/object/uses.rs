//! Use counts: an object in use cannot be closed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::abi::errno::FI_EBUSY;
use crate::guard::{Errno, FiResult};

/// Number of users of an object.
#[derive(Debug, Default)]
pub(crate) struct Uses(Arc<AtomicUsize>);

/// One use, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Use(Arc<AtomicUsize>);

impl Uses {
    /// Begins a use.
    pub(crate) fn begin(&self) -> Use {
        self.0.fetch_add(1, Ordering::Relaxed);
        Use(self.0.clone())
    }

    /// Returns FI_EBUSY if there are users.
    pub(crate) fn check_none(&self) -> FiResult {
        if self.0.load(Ordering::Acquire) == 0 { Ok(()) } else { Err(Errno(FI_EBUSY)) }
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_in_use_are_busy() {
        let uses = Uses::default();
        let (first, second) = (uses.begin(), uses.begin());
        drop(first);
        assert_eq!(uses.check_none(), Err(Errno(FI_EBUSY)));
        drop(second);
        assert_eq!(uses.check_none(), Ok(()));
    }
}
