//! Datagram endpoints, and what comes of them in time.

use std::time::{Duration, Instant};

use pathweave_datapath::rdm::{RdmConfig, RdmEndpoint, RdmStats};

use super::PATIENCE;

pub(crate) fn open(config: &RdmConfig) -> RdmEndpoint {
    RdmEndpoint::open(config.clone()).expect("an endpoint")
}

pub(crate) fn stats(endpoint: &RdmEndpoint) -> RdmStats {
    endpoint.stats().expect("its loop runs")
}

/// Waits until something is as it should be.
#[track_caller]
pub(crate) fn until(mut is: impl FnMut() -> bool, context: impl Fn() -> String) {
    let deadline = Instant::now() + PATIENCE;
    while !is() {
        assert!(Instant::now() < deadline, "{}", context());
        std::thread::sleep(Duration::from_millis(1));
    }
}
