//! Namespaces and frames, as tests of the other backend that bypasses the kernel have them.

#[path = "../support/hostile.rs"]
pub(crate) mod hostile;
#[path = "../support/namespaces.rs"]
pub(crate) mod namespaces;
#[path = "../support/raw.rs"]
pub(crate) mod raw;

pub(crate) use namespaces as net;
