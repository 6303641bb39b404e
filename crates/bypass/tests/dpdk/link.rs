//! Network namespaces and frames, shared with the tests of the XDP backend.

#[path = "../support/hostile.rs"]
pub(crate) mod hostile;
#[path = "../support/namespaces.rs"]
pub(crate) mod namespaces;
#[path = "../support/raw.rs"]
pub(crate) mod raw;

pub(crate) use namespaces as net;
