//! Limits and capability bits of the provider.

use std::ffi::c_int;

use crate::abi::fabric::*;
use crate::abi::version;

/// Version of the provider. If two providers have the same name, libfabric uses the one with the higher
/// version.
pub(crate) const PROVIDER_VERSION: u32 = version(1, 0);
/// Version of libfabric's interface that the provider implements: the layouts of [`crate::abi`].
pub(crate) const API_VERSION: u32 = version(2, 6);
/// Protocol number: provider-specific protocols have the highest bit set; the rest is "PW".
pub(crate) const PROTOCOL: u32 = FI_PROV_SPECIFIC | 0x5057;
pub(crate) const PROTOCOL_VERSION: u32 = 1;

pub(crate) const INJECT_BYTES: usize = 1_024;
pub(crate) const IOV_LIMIT: usize = 4;
pub(crate) const RMA_IOV_LIMIT: usize = 4;
pub(crate) const QUEUE_SIZE: usize = 4_096;
pub(crate) const OBJECTS: usize = 256;
pub(crate) const MAX_MESSAGE_BYTES: usize = 1 << 40;
pub(crate) const MR_KEY_BYTES: usize = 8;
pub(crate) const CQ_DATA_BYTES: usize = 8;
pub(crate) const MR_COUNT: usize = 1 << 20;
/// Tag format: all 64 bits of a tag are matched. Alternating bits denote one field.
pub(crate) const TAG_FORMAT: u64 = 0xaaaa_aaaa_aaaa_aaaa;

/// Capabilities that an application has only if it asks for them.
pub(crate) const PRIMARY: u64 = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | DIRECTIONS | FI_DIRECTED_RECV;
/// Capabilities that an application has without asking, if they make sense.
pub(crate) const FREE: u64 = FI_MULTI_RECV | FI_LOCAL_COMM | FI_REMOTE_COMM;
/// Capabilities that cost something, and are given only on request.
pub(crate) const ON_REQUEST: u64 = FI_SOURCE | FI_RMA_EVENT;
pub(crate) const ALL: u64 = PRIMARY | FREE | ON_REQUEST;

pub(crate) const MESSAGE_DIRECTIONS: u64 = FI_SEND | FI_RECV;
pub(crate) const MEMORY_DIRECTIONS: u64 = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
pub(crate) const DIRECTIONS: u64 = MESSAGE_DIRECTIONS | MEMORY_DIRECTIONS;

const SERVICES: u64 = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
/// Capabilities of the transmit half.
pub(crate) const TX_CAPS: u64 = SERVICES | FI_SEND | FI_READ | FI_WRITE | DOMAIN_CAPS;
/// Capabilities of the receive half.
pub(crate) const RX_CAPS: u64 = SERVICES
    | FI_RECV
    | FI_REMOTE_READ
    | FI_REMOTE_WRITE
    | FI_MULTI_RECV
    | FI_SOURCE
    | FI_RMA_EVENT
    | FI_DIRECTED_RECV
    | DOMAIN_CAPS;
pub(crate) const DOMAIN_CAPS: u64 = FI_LOCAL_COMM | FI_REMOTE_COMM;

/// Flags that may be defaults of transmit operations.
pub(crate) const TX_OP_FLAGS: u64 =
    FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE;
pub(crate) const RX_OP_FLAGS: u64 = FI_COMPLETION | FI_MULTI_RECV;

/// Message orders that are guaranteed. Pathweave completes messages in order, but places packets as they
/// arrive. It reads the bytes of a READ response when it transmits them. So the order of writes among each
/// other and after reads is not guaranteed.
pub(crate) const MSG_ORDER: u64 = FI_ORDER_SAS
    | FI_ORDER_SAW
    | FI_ORDER_RAS
    | FI_ORDER_RMA_RAW
    | FI_ORDER_ATOMIC_RAR
    | FI_ORDER_ATOMIC_RAW
    | FI_ORDER_ATOMIC_WAR
    | FI_ORDER_ATOMIC_WAW;

/// `Yes` if peers access registered memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Yes,
    No,
}

impl Target {
    /// Derives the value from capabilities. Capabilities without directions have all directions.
    pub(crate) fn of(caps: u64) -> Self {
        let remote = FI_REMOTE_READ | FI_REMOTE_WRITE;
        let reached = caps & remote != 0 || caps & MEMORY_DIRECTIONS == 0;
        if caps & (FI_RMA | FI_ATOMIC) != 0 && reached { Target::Yes } else { Target::No }
    }
}

/// Bits of `mr_mode` that are kept if they are hinted. Applications that offer them leave the choice of keys
/// to the provider, and some request the same key repeatedly.
const KEPT_MR_MODE: c_int = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY;

/// Name of an open fabric or domain of another provider. No interface and no subnet has this name.
pub(crate) const FOREIGN: &str = "one of another provider";

/// Returns the bits that every user of a domain with this `mr_mode` must support.
pub(crate) fn needed_mr_mode(mode: c_int) -> c_int {
    mode & (FI_MR_BASIC | KEPT_MR_MODE)
}

/// Returns the mode of an answer, given the hinted one. It never has a bit that was not hinted.
pub(crate) fn mr_mode(hinted: c_int, api: u32, target: Target) -> c_int {
    match hinted {
        FI_MR_BASIC => FI_MR_BASIC,
        // Before 1.5 the field is an enumeration with two values.
        _ if api < version(1, 5) => FI_MR_SCALABLE,
        FI_MR_SCALABLE => FI_MR_SCALABLE,
        _ if target == Target::No => 0,
        bits => bits & KEPT_MR_MODE,
    }
}

/// Returns the names of the capabilities that are set, as in libfabric's manual without `FI_`.
pub fn capability_names(caps: u64) -> Vec<&'static str> {
    let named = [
        (FI_MSG, "MSG"),
        (FI_TAGGED, "TAGGED"),
        (FI_RMA, "RMA"),
        (FI_ATOMIC, "ATOMIC"),
        (FI_SEND, "SEND"),
        (FI_RECV, "RECV"),
        (FI_READ, "READ"),
        (FI_WRITE, "WRITE"),
        (FI_REMOTE_READ, "REMOTE_READ"),
        (FI_REMOTE_WRITE, "REMOTE_WRITE"),
        (FI_MULTI_RECV, "MULTI_RECV"),
        (FI_SOURCE, "SOURCE"),
        (FI_DIRECTED_RECV, "DIRECTED_RECV"),
        (FI_RMA_EVENT, "RMA_EVENT"),
        (FI_LOCAL_COMM, "LOCAL_COMM"),
        (FI_REMOTE_COMM, "REMOTE_COMM"),
    ];
    named.into_iter().filter(|(bit, _)| caps & bit != 0).map(|(_, name)| name).collect()
}
