//! Object types behind the structures of C.

use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex};

use super::handle::Handle;
use crate::abi::domain::{FidAv, FidDomain, FidMr};
use crate::abi::endpoint::FidEp;
use crate::abi::eq::{FidCntr, FidCq, FidEq};
use crate::abi::errno::{FI_EINVAL, FI_ENOSYS};
use crate::abi::fabric::{FI_GETWAIT, FI_GETWAITOBJ, FidFabric};
use crate::endpoint::Endpoint;
use crate::guard::{FiResult, refused};
use crate::object::counter::Counter;
use crate::object::domain::{Domain, Fabric, Mr};
use crate::object::events::EventQueue;
use crate::object::queue::Queue;
use crate::object::uses::Use;
use crate::object::vector::Vector;
use crate::object::wait::Waiting;

pub(super) type FabricHandle = Handle<FidFabric, Fabric>;
pub(super) type DomainHandle = Handle<FidDomain, Domain>;
pub(super) type EpHandle = Handle<FidEp, Endpoint>;
pub(super) type AvHandle = Handle<FidAv, Addresses>;
pub(super) type MrHandle = Handle<FidMr, Registered>;
pub(super) type EqHandle = Handle<FidEq, EventQueue>;
pub(super) type CqHandle = Handle<FidCq, Completions>;
pub(super) type CntrHandle = Handle<FidCntr, Counter>;

/// A completion queue, and the interface version that the application was built for.
pub(crate) struct Completions {
    pub(crate) queue: Arc<Queue>,
    pub(super) api_version: u32,
}

impl std::ops::Deref for Completions {
    type Target = Arc<Queue>;
    fn deref(&self) -> &Arc<Queue> {
        &self.queue
    }
}

/// An address vector, and the event queue that reports insertions.
pub(crate) struct Addresses {
    pub(crate) vector: Arc<Vector>,
    /// Bytes of one address in the application's arrays.
    pub(super) address_bytes: usize,
    pub(super) family_is_4: bool,
    pub(super) events: Mutex<Option<(Arc<EventQueue>, Use)>>,
}

/// A region and its domain.
pub(crate) struct Registered {
    pub(super) mr: Arc<Mr>,
    pub(super) domain: Arc<Domain>,
}

/// Executes FI_GETWAIT and FI_GETWAITOBJ.
///
/// # Safety
///
/// The argument has the type that the command requires.
pub(super) unsafe fn get_wait(waiting: &Waiting, command: c_int, arg: *mut c_void) -> FiResult {
    if arg.is_null() {
        return Err(refused(FI_EINVAL, "the place of a wait object is NULL"));
    }
    match command {
        // SAFETY: guaranteed by the caller.
        FI_GETWAIT => unsafe { arg.cast::<c_int>().write(waiting.descriptor()?) },
        // SAFETY: guaranteed by the caller.
        FI_GETWAITOBJ => unsafe { arg.cast::<u32>().write(waiting.object().number()) },
        _ => return Err(refused(FI_ENOSYS, format_args!("command {command} is not offered"))),
    }
    Ok(())
}
