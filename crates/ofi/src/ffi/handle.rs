//! Objects behind libfabric's pointers: the structure of C, followed by the object of this provider.

use std::ptr;
use std::sync::Arc;

use crate::abi::errno::FI_EINVAL;
use crate::abi::fabric::{Fid, Ops};
use crate::guard::{FiResult, Process, refused};
use crate::object::uses::{Use, Uses};

/// An object that was handed out. `face` is the part that C sees; it begins with its `fid`.
#[repr(C)]
pub(crate) struct Handle<F, T> {
    pub(crate) face: F,
    pub(crate) object: Arc<T>,
    pub(crate) process: Process,
    /// Use of the parent object, which therefore cannot be closed before this one.
    _parent: Option<Use>,
}

/// A structure of C that begins with a fid.
///
/// # Safety
///
/// The type is `repr(C)`, and its first field is a [`Fid`].
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
    /// Hands out an object.
    ///
    /// # Safety
    ///
    /// `to` is writable.
    pub(crate) unsafe fn give(face: F, object: Arc<T>, parent: Option<Use>, to: *mut *mut F) {
        let process = Process::this();
        let handle = Box::new(Handle { face, object, process, _parent: parent });
        // SAFETY: guaranteed by the caller. The face is the first field, so both have the same address.
        unsafe { to.write(Box::into_raw(handle).cast()) };
    }

    /// Returns the object behind a pointer.
    ///
    /// # Safety
    ///
    /// The pointer comes from [`give`](Handle::give) with the same types, and was not taken back.
    pub(crate) unsafe fn of<'a, P>(pointer: *const P) -> &'a Self {
        // SAFETY: guaranteed by the caller.
        unsafe { &*pointer.cast::<Self>() }
    }

    /// Returns the object behind a pointer, if this is still the process that opened it.
    ///
    /// # Errors
    ///
    /// Returns FI_EIO in a child process, and FI_EINVAL for NULL.
    ///
    /// # Safety
    ///
    /// The pointer is NULL or meets the conditions of [`of`](Handle::of).
    pub(crate) unsafe fn here<'a, P>(pointer: *const P) -> FiResult<&'a Arc<T>> {
        if pointer.is_null() {
            return Err(refused(FI_EINVAL, "an object is NULL"));
        }
        // SAFETY: guaranteed by the caller.
        let handle = unsafe { Self::of(pointer) };
        crate::guard::check(handle.process)?;
        Ok(&handle.object)
    }

    /// Closes an object that is not in use. In the child of a fork it is always freed, because its users do
    /// not exist there.
    ///
    /// # Errors
    ///
    /// Returns FI_EBUSY if the object is in use.
    ///
    /// # Safety
    ///
    /// The pointer meets the conditions of [`of`](Handle::of), and is not used again if this succeeds.
    pub(crate) unsafe fn close<P>(pointer: *mut P, uses: impl FnOnce(&T) -> &Uses) -> FiResult {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let handle = Self::of(pointer);
            if handle.process.is_this() {
                uses(&handle.object).check_none()?;
            }
            drop(Self::take(pointer));
        }
        Ok(())
    }

    /// Takes a pointer back. The handle is freed; the object is freed with its last owner.
    ///
    /// # Safety
    ///
    /// The pointer meets the conditions of [`of`](Handle::of), and is not used again.
    pub(crate) unsafe fn take<P>(pointer: *mut P) -> Box<Self> {
        // SAFETY: the pointer came from Box::into_raw.
        unsafe { Box::from_raw(pointer.cast::<Self>()) }
    }
}

/// Makes the fid of a new object.
pub(crate) fn fid(fclass: usize, context: *mut std::ffi::c_void, ops: &'static Ops) -> Fid {
    Fid { fclass, context, ops: ptr::from_ref(ops) }
}

/// Returns the class of an object, which identifies its type.
///
/// # Errors
///
/// Returns FI_EINVAL for NULL.
///
/// # Safety
///
/// `pointer` is NULL or points to a fid.
pub(crate) unsafe fn class_of(pointer: *const Fid) -> FiResult<usize> {
    // SAFETY: guaranteed by the caller.
    unsafe { pointer.as_ref() }.map(|fid| fid.fclass).ok_or_else(|| refused(FI_EINVAL, "an object is NULL"))
}
