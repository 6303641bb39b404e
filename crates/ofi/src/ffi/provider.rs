//! The exported symbol, and the functions that libfabric calls through it.

use std::cell::UnsafeCell;
use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use super::{fabric, info};
use crate::abi::errno::{FI_EINVAL, FI_ENODATA};
use crate::abi::fabric::{FabricAttr, FidFabric, Info};
use crate::abi::provider::Provider;
use crate::getinfo::{API_VERSION, PROVIDER_VERSION, Question, Refusal, offers};
use crate::guard::{Errno, FiResult, Process, refused, status};
use crate::log::{Level, log, log_once};
use crate::settings;

/// Cell for the provider structure. libfabric writes to it, so it cannot be a plain static.
struct Shared(UnsafeCell<Provider>);

// SAFETY: this crate never accesses the content. libfabric does, under a lock of its own.
unsafe impl Sync for Shared {}

static PROVIDER: Shared = Shared(UnsafeCell::new(Provider {
    version: PROVIDER_VERSION,
    fi_version: API_VERSION,
    context: [ptr::null_mut(); 4],
    name: c"pathweave".as_ptr(),
    getinfo,
    fabric: open_fabric,
    cleanup,
}));

/// Entry point that libfabric looks up in each library of its provider folder.
#[unsafe(no_mangle)]
pub extern "C" fn fi_prov_ini() -> *mut Provider {
    // Fork handlers must be registered before the first fork.
    Process::this();
    PROVIDER.0.get()
}

/// Does nothing. Objects that the application did not close still belong to it, and running threads keep what
/// they need. The library stays loaded (link argument nodelete).
unsafe extern "C" fn cleanup() {}

unsafe extern "C" fn getinfo(
    version: u32,
    node: *const c_char,
    service: *const c_char,
    flags: u64,
    hints: *const Info,
    to: *mut *mut Info,
) -> c_int {
    status(|| {
        if to.is_null() {
            return Err(refused(FI_EINVAL, "the place of fi_getinfo's answer is NULL"));
        }
        // SAFETY: the arguments are those of fi_getinfo.
        let question = unsafe { info::question(version, node, service, flags, hints) };
        // SAFETY: as above.
        let echo = unsafe { info::Echo::of(&question, hints) };
        let named = is_named(&question);
        let settings = settings::from_environment().map_err(|error| unusable(named, &error.to_string()))?;
        let offers = offers(&question, &settings, &pathweave_door::interfaces())
            .map_err(|refusal| nothing_for(named, &refusal))?;
        let list = info::list(&offers, &echo)?;
        // SAFETY: not NULL, and the caller waits for the value.
        unsafe { to.write(list) };
        Ok(())
    })
}

/// Returns true if the application asks for this provider by name.
fn is_named(question: &Question) -> bool {
    let fabric = question.hints.as_ref().and_then(|hints| hints.fabric.as_ref());
    fabric.is_some_and(|fabric| fabric.prov_name.as_deref() == Some(crate::NAME))
}

/// Handles an error of the environment. It is printed if the application or the environment asks for this
/// provider; otherwise the provider just has no offer.
fn unusable(named: bool, error: &str) -> Errno {
    if named || settings::is_asked_for() {
        log_once(error);
    } else {
        log(Level::Info, format_args!("nothing is offered: {error}"));
    }
    Errno(FI_ENODATA)
}

fn nothing_for(named: bool, refusal: &Refusal) -> Errno {
    match refusal {
        Refusal::NoSource => refused(FI_EINVAL, refusal),
        // An interface that the environment names and this host lacks is an error of the environment. An
        // application that asks for this provider by name is informed as well.
        Refusal::NoInterface(what) if named || what.contains("PATHWEAVE_") => {
            unusable(named, &refusal.to_string())
        }
        _ => {
            log(Level::Info, format_args!("nothing is offered: {refusal}"));
            Errno(FI_ENODATA)
        }
    }
}

unsafe extern "C" fn open_fabric(
    attr: *mut FabricAttr,
    to: *mut *mut FidFabric,
    context: *mut c_void,
) -> c_int {
    status(|| -> FiResult {
        if attr.is_null() || to.is_null() {
            return Err(refused(FI_EINVAL, "an argument of fi_fabric is NULL"));
        }
        // SAFETY: not NULL, and the arguments are those of fi_fabric.
        unsafe { fabric::open(&*attr, to, context) }
    })
}
