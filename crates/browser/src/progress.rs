//! Progress of a run, told to the page while it waits.

#![allow(unsafe_code, reason = "declaration of a function of the page, which takes a number")]

use pathweave_sim::{Monitor, MonitorDecision, Snapshot};

#[cfg(target_family = "wasm")]
#[link(wasm_import_module = "page")]
unsafe extern "C" {
    /// Gets the fraction of the run that is done, from 0 to 1.
    safe fn progress(share: f64);
}

/// Does nothing, outside of a page.
#[cfg(not(target_family = "wasm"))]
fn progress(_: f64) {}

/// Monitor that tells the page how far a run is.
pub(crate) struct Teller;

impl Monitor for Teller {
    fn look(&mut self, snapshot: &Snapshot) -> MonitorDecision {
        progress(snapshot.share_done());
        MonitorDecision::Continue
    }
}
