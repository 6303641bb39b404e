//! The functions of version 12, which do the work.
#![allow(unsafe_code, reason = "takes pointers from NCCL and gives pointers to NCCL")]

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Arc;

use crate::abi::{
    Code, Fault, HANDLE_BYTES, Logger, MAX_BYTES, MAX_RECEIVES, Members, NAME, POINTER_HOST, Properties12,
    Start9,
};
use crate::comm::{Comm, Request};
use crate::connecting::Listener;
use crate::guard::{Outcome, entry, log_with};
use crate::memory::Mr;
use crate::plugin::{self, plugin};
use crate::receive::Wanted;
use crate::send::Message;

/// Largest number of connections that NCCL is told.
const MAX_COMMS: c_int = 65_536;

/// Returns what a pointer of NCCL points to.
///
/// # Errors
/// [`Fault::Usage`] for NULL.
///
/// # Safety
/// The pointer is NULL, or what it points to lives and is not changed meanwhile.
unsafe fn at<'a, T>(pointer: *const T) -> Outcome<&'a T> {
    // SAFETY: guaranteed by the caller.
    unsafe { pointer.as_ref() }.ok_or(Fault::Usage)
}

/// Writes where a pointer of NCCL points.
///
/// # Safety
/// The pointer is NULL, or valid for writes.
pub(crate) unsafe fn put<T>(pointer: *mut T, value: T) -> Outcome {
    if pointer.is_null() {
        return Err(Fault::Usage);
    }
    // SAFETY: guaranteed by the caller.
    unsafe { pointer.write(value) };
    Ok(())
}

/// Gives an object to NCCL.
fn lend<T>(object: Arc<T>) -> *mut c_void {
    Arc::into_raw(object).cast_mut().cast()
}

/// All communicators share the process's devices, so a context is nothing but a pointer that is not NULL.
pub(crate) unsafe extern "C" fn init(
    context: *mut *mut c_void,
    _communicator: u64,
    _config: *const c_void,
    logger: Option<Logger>,
    _profiler: *const c_void,
) -> Code {
    entry(|| {
        log_with(logger);
        plugin::open()?;
        // SAFETY: NCCL's variable.
        unsafe { put(context, NAME.cast_mut().cast()) }
    })
}

pub(crate) unsafe extern "C" fn finalize(_context: *mut c_void) -> Code {
    entry(|| Ok(()))
}

pub(crate) unsafe extern "C" fn devices(count: *mut c_int) -> Code {
    entry(|| {
        plugin()?;
        // SAFETY: NCCL's variable.
        unsafe { put(count, 1) }
    })
}

/// Checks the index of a device: there is one.
fn check_device(device: c_int) -> Outcome {
    if device == 0 { Ok(()) } else { Err(Fault::Usage) }
}

/// Returns the fields that versions 9 to 12 have in common.
pub(crate) fn start9(device: c_int) -> Outcome<Start9> {
    check_device(device)?;
    let known = &plugin()?.properties;
    Ok(Start9 {
        name: known.name.as_ptr(),
        pci_path: known.pci_path.as_ref().map_or(ptr::null(), |path| path.as_ptr()),
        guid: known.guid,
        pointers: POINTER_HOST,
        registration_is_global: 0,
        force_flush: 0,
        speed_mbps: c_int::try_from(known.speed_mbps).unwrap_or(c_int::MAX),
        port: 0,
        latency_us: 0.0,
        max_comms: MAX_COMMS,
        max_receives: MAX_RECEIVES as c_int,
        device_type: 0,
        device_version: 0,
    })
}

pub(crate) unsafe extern "C" fn properties(device: c_int, to: *mut Properties12) -> Code {
    entry(|| {
        let found = Properties12 {
            start: start9(device)?,
            members: Members { count: 1, devices: [device, 0, 0, 0, 0, 0, 0, 0] },
            max_p2p_bytes: MAX_BYTES,
            max_collective_bytes: MAX_BYTES,
            max_requests_together: 1,
            // A device of several interfaces is in no single rail or plane.
            rail: -1,
            plane: -1,
        };
        // SAFETY: NCCL's variable of this version.
        unsafe { put(to, found) }
    })
}

/// Bytes of a handle, as NCCL passes them.
pub(crate) type HandleBytes = [u8; HANDLE_BYTES];

pub(crate) unsafe extern "C" fn listen(
    _context: *mut c_void,
    device: c_int,
    handle: *mut HandleBytes,
    to: *mut *mut c_void,
) -> Code {
    entry(|| {
        check_device(device)?;
        // SAFETY: NCCL's buffer of a handle.
        let handle = unsafe { handle.as_mut() }.ok_or(Fault::Usage)?;
        let listener = plugin()?.listen(handle);
        // SAFETY: NCCL's variable.
        unsafe { put(to, lend(listener)) }
    })
}

pub(crate) unsafe extern "C" fn connect(
    _context: *mut c_void,
    device: c_int,
    handle: *mut HandleBytes,
    to: *mut *mut c_void,
    _offload: *mut c_void,
) -> Code {
    entry(|| {
        // SAFETY: NCCL's variable.
        unsafe { put(to, ptr::null_mut()) }?;
        check_device(device)?;
        // SAFETY: NCCL's buffer of a handle, the same one in each call of an attempt.
        let handle = unsafe { handle.as_mut() }.ok_or(Fault::Usage)?;
        match plugin()?.connect(handle)? {
            // SAFETY: as above.
            Some(comm) => unsafe { put(to, lend(comm)) },
            None => Ok(()),
        }
    })
}

pub(crate) unsafe extern "C" fn accept(
    listener: *const c_void,
    to: *mut *mut c_void,
    _offload: *mut c_void,
) -> Code {
    entry(|| {
        // SAFETY: a listener that NCCL has not closed.
        let listener = unsafe { at(listener.cast::<Listener>()) }?;
        let accepted = listener.accept().map_or(ptr::null_mut(), lend);
        // SAFETY: NCCL's variable.
        unsafe { put(to, accepted) }
    })
}

pub(crate) unsafe extern "C" fn register(
    comm: *const c_void,
    data: *mut c_void,
    bytes: usize,
    kind: c_int,
    to: *mut *mut c_void,
) -> Code {
    entry(|| {
        if kind != POINTER_HOST {
            return Err(Fault::Internal);
        }
        // SAFETY: a connection that NCCL has not closed.
        let comm = unsafe { at(comm.cast::<Comm>()) }?;
        // SAFETY: NCCL keeps the memory until it has deregistered it.
        let memory = unsafe { comm.register(data.cast(), bytes) }?;
        // SAFETY: NCCL's variable.
        unsafe { put(to, Box::into_raw(Box::new(memory)).cast()) }
    })
}

pub(crate) unsafe extern "C" fn deregister(comm: *const c_void, memory: *mut c_void) -> Code {
    entry(|| {
        // SAFETY: a connection that NCCL has not closed.
        let comm = unsafe { at(comm.cast::<Comm>()) }?;
        if memory.is_null() {
            return Ok(());
        }
        // SAFETY: made by `register`; NCCL gives it back once.
        let memory = unsafe { Box::from_raw(memory.cast::<Mr>()) };
        comm.deregister(*memory)
    })
}

pub(crate) unsafe extern "C" fn isend(
    comm: *const c_void,
    data: *mut c_void,
    bytes: usize,
    tag: c_int,
    memory: *const c_void,
    _profiler: *mut c_void,
    request: *mut *const Request,
) -> Code {
    entry(|| {
        // SAFETY: NCCL's variable.
        unsafe { put(request, ptr::null()) }?;
        // SAFETY: a connection and memory that NCCL has not closed.
        let (comm, memory) = unsafe { (at(comm.cast::<Comm>())?, memory.cast::<Mr>().as_ref()) };
        let started = comm.isend(&Message { address: data as usize, bytes, tag, memory })?;
        // SAFETY: as above.
        unsafe { put(request, started.map_or(ptr::null(), ptr::from_ref)) }
    })
}

/// NCCL may pass a request that is not NULL, which says that it does not need its completion. That is no use here: the
/// variable always gets NULL or a request.
#[allow(clippy::too_many_arguments, reason = "the arguments of NCCL")]
pub(crate) unsafe extern "C" fn irecv(
    comm: *const c_void,
    count: c_int,
    data: *const *mut c_void,
    bytes: *const usize,
    tags: *const c_int,
    memories: *const *const c_void,
    _profiler: *const *mut c_void,
    request: *mut *const Request,
) -> Code {
    entry(|| {
        // SAFETY: NCCL's variable.
        unsafe { put(request, ptr::null()) }?;
        // SAFETY: a connection that NCCL has not closed.
        let comm = unsafe { at(comm.cast::<Comm>()) }?;
        let count = usize::try_from(count).ok().filter(|count| (1..=MAX_RECEIVES).contains(count));
        let mut wanted = Vec::with_capacity(MAX_RECEIVES);
        for index in 0..count.ok_or(Fault::Usage)? {
            // SAFETY: NCCL passes `count` elements of each, and memory that it has not closed.
            wanted.push(unsafe {
                Wanted {
                    address: data.add(index).read() as usize,
                    bytes: bytes.add(index).read(),
                    tag: tags.add(index).read(),
                    memory: memories.add(index).read().cast::<Mr>().as_ref(),
                }
            });
        }
        let started = comm.irecv(&wanted)?;
        // SAFETY: as above.
        unsafe { put(request, started.map_or(ptr::null(), ptr::from_ref)) }
    })
}

/// Memory of the host needs no flush.
pub(crate) unsafe extern "C" fn iflush(
    _comm: *const c_void,
    _count: c_int,
    _data: *const *mut c_void,
    _bytes: *const c_int,
    _memories: *const *const c_void,
    request: *mut *const Request,
) -> Code {
    // SAFETY: NCCL's variable.
    entry(|| unsafe { put(request, ptr::null()) })
}

pub(crate) unsafe extern "C" fn test(request: *const Request, done: *mut c_int, bytes: *mut c_int) -> Code {
    entry(|| {
        // SAFETY: NCCL's variable.
        unsafe { put(done, 0) }?;
        // SAFETY: a request of a connection that NCCL has not closed.
        let request = unsafe { at(request) }?;
        let comm = request.comm.upgrade().ok_or(Fault::Usage)?;
        let Some(sizes) = comm.test(request.index)? else { return Ok(()) };
        // SAFETY: NCCL's variables: as many sizes as the request has receives, or NULL.
        unsafe {
            put(done, 1)?;
            if !bytes.is_null() {
                for (index, size) in sizes.bytes[..sizes.count].iter().enumerate() {
                    bytes.add(index).write(*size as c_int);
                }
            }
        }
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn close_comm(comm: *const c_void) -> Code {
    entry(|| {
        if !comm.is_null() {
            // SAFETY: given to NCCL as an `Arc`; NCCL gives it back once.
            let comm = unsafe { Arc::from_raw(comm.cast::<Comm>()) };
            comm.lane.close(&comm);
        }
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn close_listen(listener: *const c_void) -> Code {
    entry(|| {
        if !listener.is_null() {
            // SAFETY: as in `close_comm`.
            let listener = unsafe { Arc::from_raw(listener.cast::<Listener>()) };
            listener.close();
        }
        Ok(())
    })
}
