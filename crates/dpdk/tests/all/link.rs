//! Namespaces and frames, as tests of the other backend that bypasses the kernel have them.

#[path = "../../../xdp/tests/support/hostile.rs"]
pub(crate) mod hostile;
#[path = "../../../xdp/tests/support/namespaces.rs"]
pub(crate) mod namespaces;
#[path = "../../../xdp/tests/support/raw.rs"]
pub(crate) mod raw;

pub(crate) use namespaces as net;
