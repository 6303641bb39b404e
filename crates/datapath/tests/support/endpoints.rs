//! Datagram endpoints for tests.

use pathweave_datapath::rdm::{RdmConfig, RdmEndpoint, RdmStats};

pub(crate) fn open(config: &RdmConfig) -> RdmEndpoint {
    RdmEndpoint::open(config.clone()).expect("an endpoint")
}

pub(crate) fn stats(endpoint: &RdmEndpoint) -> RdmStats {
    endpoint.stats().expect("its loop runs")
}
