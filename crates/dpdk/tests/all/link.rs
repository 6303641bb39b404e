//! Network namespaces and frames, shared with the tests of the XDP backend.

#[path = "../../../xdp/tests/support/hostile.rs"]
pub(crate) mod hostile;
#[path = "../../../xdp/tests/support/namespaces.rs"]
pub(crate) mod namespaces;
#[path = "../../../xdp/tests/support/raw.rs"]
pub(crate) mod raw;

pub(crate) use namespaces as net;
