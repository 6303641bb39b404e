//! What a pointer of libfabric stands for: the structure of C, and behind it our object.

use std::ptr;
use std::sync::Arc;

use crate::abi::errno::FI_EINVAL;
use crate::abi::fabric::{Fid, Ops};
use crate::guard::{Answer, Process, refused};
use crate::object::uses::{Use, Uses};

/// An object that was handed out. `face` is what C sees, and it begins with its `fid`.
#[repr(C)]
pub(crate) struct Handle<F, T> {
    pub(crate) face: F,
    pub(crate) object: Arc<T>,
    pub(crate) process: Process,
    /// What it is opened on cannot be closed before it.
    _parent: Option<Use>,
}

/// What is handed out begins with a fid.
///
/// # Safety
/// `repr(C)`, and the first field is a [`Fid`].
pub(crate) unsafe trait Face {}

macro_rules! faces {
    ($($face:ty),*) => {
        $(
            // SAFETY: repr(C), and its first field is its fid.
            unsafe impl Face for $face {}
        )*
    };
}
faces!(
    crate::abi::fabric::FidFabric,
    crate::abi::domain::FidDomain,
    crate::abi::domain::FidAv,
    crate::abi::domain::FidMr,
    crate::abi::eq::FidEq,
    crate::abi::eq::FidCq,
    crate::abi::eq::FidCntr,
    crate::abi::endpoint::FidEp
);

impl<F: Face + 'static, T: 'static> Handle<F, T> {
    /// Hands an object out.
    ///
    /// # Safety
    /// `to` can be written.
    pub(crate) unsafe fn give(face: F, object: Arc<T>, parent: Option<Use>, to: *mut *mut F) {
        let process = Process::this();
        let handle = Box::new(Handle { face, object, process, _parent: parent });
        // SAFETY: as the caller says. The face is the first field, so both have one address.
        unsafe { to.write(Box::into_raw(handle).cast()) };
    }

    /// The object behind a pointer.
    ///
    /// # Safety
    /// From [`give`](Handle::give) with the same types, and not taken back.
    pub(crate) unsafe fn of<'a, P>(pointer: *const P) -> &'a Self {
        // SAFETY: as the caller says.
        unsafe { &*pointer.cast::<Self>() }
    }

    /// The same, if this is still the process that opened it.
    ///
    /// # Errors
    /// FI_EIO in a child, FI_EINVAL for NULL.
    ///
    /// # Safety
    /// As [`of`](Handle::of), or NULL.
    pub(crate) unsafe fn here<'a, P>(pointer: *const P) -> Answer<&'a Arc<T>> {
        if pointer.is_null() {
            return Err(refused(FI_EINVAL, "an object is NULL"));
        }
        // SAFETY: as the caller says.
        let handle = unsafe { Self::of(pointer) };
        handle.process.check()?;
        Ok(&handle.object)
    }

    /// Closes what nobody uses. In a child of a fork it is freed whoever does: there is nobody any more.
    ///
    /// # Errors
    /// FI_EBUSY.
    ///
    /// # Safety
    /// As [`of`](Handle::of); the pointer is not used again if this succeeds.
    pub(crate) unsafe fn close<P>(pointer: *mut P, uses: impl FnOnce(&T) -> &Uses) -> Answer {
        // SAFETY: as the caller says.
        unsafe {
            let handle = Self::of(pointer);
            if handle.process.is_this() {
                uses(&handle.object).check_none()?;
            }
            drop(Self::take(pointer));
        }
        Ok(())
    }

    /// Takes a pointer back: the handle goes, the object with its last owner.
    ///
    /// # Safety
    /// As [`of`](Handle::of); the pointer is not used again.
    pub(crate) unsafe fn take<P>(pointer: *mut P) -> Box<Self> {
        // SAFETY: it is the one Box::into_raw gave.
        unsafe { Box::from_raw(pointer.cast::<Self>()) }
    }
}

/// The fid of a new object.
pub(crate) fn fid(fclass: usize, context: *mut std::ffi::c_void, ops: &'static Ops) -> Fid {
    Fid { fclass, context, ops: ptr::from_ref(ops) }
}

/// The class of an object, by which others know what to make of it.
///
/// # Errors
/// FI_EINVAL for NULL.
///
/// # Safety
/// NULL, or points to a fid.
pub(crate) unsafe fn class_of(pointer: *const Fid) -> Answer<usize> {
    // SAFETY: as the caller says.
    unsafe { pointer.as_ref() }.map(|fid| fid.fclass).ok_or_else(|| refused(FI_EINVAL, "an object is NULL"))
}
