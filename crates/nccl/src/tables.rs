//! Tables of functions, one for each version of NCCL's network interface, and the functions in them. NCCL takes the
//! newest table that it knows:
//!
//! | NCCL | 2.17, 2.18 | 2.19 | 2.20 to 2.23 | 2.24, 2.25 | 2.26, 2.27 | 2.28, 2.29 | 2.30 |
//! |---|---|---|---|---|---|---|---|
//! | table | 6 | 7 | 8 | 9 | 10 | 11 | 12 |
//!
//! The functions of version 12 do the work. Those of earlier versions have fewer arguments, or narrower ones.
#![allow(unsafe_code, reason = "takes pointers from NCCL and gives pointers to NCCL")]

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::Arc;

use crate::abi::{
    Code, Fault, HANDLE_BYTES, Logger, MAX_BYTES, MAX_RECEIVES, Members, POINTER_HOST, Properties6,
    Properties7, Properties8, Properties9, Properties11, Properties12, Start9,
};
use crate::comm::{Comm, Request};
use crate::connecting::Listener;
use crate::guard::{Outcome, entry, log_with};
use crate::memory::Mr;
use crate::plugin::{self, plugin};
use crate::receive::Wanted;
use crate::send::Message;

/// A table: the name of the network, then pointers to functions; NULL for those that are not offered.
#[repr(C)]
pub struct Table<const FUNCTIONS: usize> {
    name: *const c_char,
    functions: [*const c_void; FUNCTIONS],
}

// SAFETY: a table is constant, and points to constants and functions.
unsafe impl<const FUNCTIONS: usize> Sync for Table<FUNCTIONS> {}

/// Name of the network, which the variable `NCCL_NET` selects.
const NAME: *const c_char = c"pathweave".as_ptr();

/// Largest number of connections that NCCL is told.
const MAX_COMMS: c_int = 65_536;

/// Functions that differ between versions.
struct Versioned {
    init: *const c_void,
    properties: *const c_void,
    listen: *const c_void,
    connect: *const c_void,
    accept: *const c_void,
    register: *const c_void,
    isend: *const c_void,
    irecv: *const c_void,
}

/// Returns a table of the functions that belong to a version. Later versions append functions.
const fn table<const FUNCTIONS: usize>(of: &Versioned) -> Table<FUNCTIONS> {
    let mut functions = [ptr::null(); FUNCTIONS];
    functions[0] = of.init;
    functions[1] = devices as *const c_void;
    functions[2] = of.properties;
    functions[3] = of.listen;
    functions[4] = of.connect;
    functions[5] = of.accept;
    functions[6] = of.register;
    // 7: registration of DMA buffers.
    functions[8] = deregister as *const c_void;
    functions[9] = of.isend;
    functions[10] = of.irecv;
    functions[11] = iflush as *const c_void;
    functions[12] = test as *const c_void;
    functions[13] = close_comm as *const c_void;
    functions[14] = close_comm as *const c_void;
    functions[15] = close_listen as *const c_void;
    // 16 to 18: device-side registration and consumption, virtual devices. 20: attributes.
    if FUNCTIONS > 19 {
        functions[19] = finalize as *const c_void;
    }
    Table { name: NAME, functions }
}

const V6: Versioned = Versioned {
    init: init_v6 as *const c_void,
    properties: properties_v6 as *const c_void,
    listen: listen_v6 as *const c_void,
    connect: connect_v6 as *const c_void,
    accept: accept_v6 as *const c_void,
    register: register_v6 as *const c_void,
    isend: isend_v6 as *const c_void,
    irecv: irecv_v6 as *const c_void,
};
const V7: Versioned = Versioned {
    properties: properties_v7 as *const c_void,
    connect: connect_v7 as *const c_void,
    accept: accept as *const c_void,
    ..V6
};
const V8: Versioned =
    Versioned { properties: properties_v8 as *const c_void, register: register as *const c_void, ..V7 };
const V9: Versioned = Versioned {
    properties: properties_v9 as *const c_void,
    isend: isend_v9 as *const c_void,
    irecv: irecv_v9 as *const c_void,
    ..V8
};
const V10: Versioned = Versioned {
    init: init_v10 as *const c_void,
    connect: connect_v10 as *const c_void,
    isend: isend as *const c_void,
    irecv: irecv as *const c_void,
    ..V9
};
const V11: Versioned = Versioned {
    init: init as *const c_void,
    properties: properties_v11 as *const c_void,
    listen: listen as *const c_void,
    connect: connect as *const c_void,
    ..V10
};
const V12: Versioned = Versioned { properties: properties as *const c_void, ..V11 };

macro_rules! export {
    ($name:ident, $functions:literal, $version:ident, $doc:literal) => {
        #[doc = $doc]
        #[allow(non_upper_case_globals, reason = "NCCL looks for this name")]
        #[unsafe(no_mangle)]
        pub static $name: Table<$functions> = table(&$version);
    };
}

export!(ncclNetPlugin_v6, 16, V6, "Version 6.");
export!(ncclNetPlugin_v7, 18, V7, "Version 7.");
export!(ncclNetPlugin_v8, 18, V8, "Version 8.");
export!(ncclNetPlugin_v9, 19, V9, "Version 9.");
export!(ncclNetPlugin_v10, 19, V10, "Version 10.");
export!(ncclNetPlugin_v11, 21, V11, "Version 11.");
export!(ncclNetPlugin_v12, 21, V12, "Version 12.");

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
unsafe fn put<T>(pointer: *mut T, value: T) -> Outcome {
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

unsafe extern "C" fn init_v6(logger: Option<Logger>) -> Code {
    entry(|| {
        log_with(logger);
        plugin::open()
    })
}

unsafe extern "C" fn init_v10(logger: Option<Logger>, _profiler: *const c_void) -> Code {
    // SAFETY: guaranteed by the caller.
    unsafe { init_v6(logger) }
}

/// All communicators share the process's devices, so a context is nothing but a pointer that is not NULL.
unsafe extern "C" fn init(
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

unsafe extern "C" fn finalize(_context: *mut c_void) -> Code {
    entry(|| Ok(()))
}

unsafe extern "C" fn devices(count: *mut c_int) -> Code {
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
fn start9(device: c_int) -> Outcome<Start9> {
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

fn properties6(device: c_int) -> Outcome<Properties6> {
    let Start9 {
        name, pci_path, guid, pointers, speed_mbps, port, latency_us, max_comms, max_receives, ..
    } = start9(device)?;
    Ok(Properties6 { name, pci_path, guid, pointers, speed_mbps, port, latency_us, max_comms, max_receives })
}

fn properties9(device: c_int) -> Outcome<Properties9> {
    Ok(Properties9 {
        start: start9(device)?,
        members: Members { count: 1, devices: [device, 0, 0, 0] },
        max_p2p_bytes: MAX_BYTES,
        max_collective_bytes: MAX_BYTES,
    })
}

unsafe extern "C" fn properties_v6(device: c_int, to: *mut Properties6) -> Code {
    // SAFETY: NCCL's variable of this version.
    entry(|| unsafe { put(to, properties6(device)?) })
}

unsafe extern "C" fn properties_v7(device: c_int, to: *mut Properties7) -> Code {
    entry(|| {
        let found = Properties7 { v6: properties6(device)?, device_type: 0, device_version: 0 };
        // SAFETY: NCCL's variable of this version.
        unsafe { put(to, found) }
    })
}

unsafe extern "C" fn properties_v8(device: c_int, to: *mut Properties8) -> Code {
    entry(|| {
        let from = start9(device)?;
        let found = Properties8 {
            name: from.name,
            pci_path: from.pci_path,
            guid: from.guid,
            pointers: from.pointers,
            registration_is_global: from.registration_is_global,
            speed_mbps: from.speed_mbps,
            port: from.port,
            latency_us: from.latency_us,
            max_comms: from.max_comms,
            max_receives: from.max_receives,
            device_type: from.device_type,
            device_version: from.device_version,
        };
        // SAFETY: NCCL's variable of this version.
        unsafe { put(to, found) }
    })
}

unsafe extern "C" fn properties_v9(device: c_int, to: *mut Properties9) -> Code {
    // SAFETY: NCCL's variable of this version.
    entry(|| unsafe { put(to, properties9(device)?) })
}

unsafe extern "C" fn properties_v11(device: c_int, to: *mut Properties11) -> Code {
    entry(|| {
        let found = Properties11 { v9: properties9(device)?, max_requests_together: 1 };
        // SAFETY: NCCL's variable of this version.
        unsafe { put(to, found) }
    })
}

unsafe extern "C" fn properties(device: c_int, to: *mut Properties12) -> Code {
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
type HandleBytes = [u8; HANDLE_BYTES];

unsafe extern "C" fn listen_v6(device: c_int, handle: *mut HandleBytes, to: *mut *mut c_void) -> Code {
    entry(|| {
        check_device(device)?;
        // SAFETY: NCCL's buffer of a handle.
        let handle = unsafe { handle.as_mut() }.ok_or(Fault::Usage)?;
        let listener = plugin()?.listen(handle);
        // SAFETY: NCCL's variable.
        unsafe { put(to, lend(listener)) }
    })
}

unsafe extern "C" fn listen(
    _context: *mut c_void,
    device: c_int,
    handle: *mut HandleBytes,
    to: *mut *mut c_void,
) -> Code {
    // SAFETY: guaranteed by the caller.
    unsafe { listen_v6(device, handle, to) }
}

unsafe extern "C" fn connect_v6(device: c_int, handle: *mut HandleBytes, to: *mut *mut c_void) -> Code {
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

unsafe extern "C" fn connect_v7(
    device: c_int,
    handle: *mut HandleBytes,
    to: *mut *mut c_void,
    _offload: *mut c_void,
) -> Code {
    // SAFETY: guaranteed by the caller.
    unsafe { connect_v6(device, handle, to) }
}

unsafe extern "C" fn connect_v10(
    device: c_int,
    _config: *const c_void,
    handle: *mut HandleBytes,
    to: *mut *mut c_void,
    _offload: *mut c_void,
) -> Code {
    // SAFETY: guaranteed by the caller.
    unsafe { connect_v6(device, handle, to) }
}

unsafe extern "C" fn connect(
    _context: *mut c_void,
    device: c_int,
    handle: *mut HandleBytes,
    to: *mut *mut c_void,
    _offload: *mut c_void,
) -> Code {
    // SAFETY: guaranteed by the caller.
    unsafe { connect_v6(device, handle, to) }
}

unsafe extern "C" fn accept_v6(listener: *const c_void, to: *mut *mut c_void) -> Code {
    entry(|| {
        // SAFETY: a listener that NCCL has not closed.
        let listener = unsafe { at(listener.cast::<Listener>()) }?;
        let accepted = listener.accept().map_or(ptr::null_mut(), lend);
        // SAFETY: NCCL's variable.
        unsafe { put(to, accepted) }
    })
}

unsafe extern "C" fn accept(listener: *const c_void, to: *mut *mut c_void, _offload: *mut c_void) -> Code {
    // SAFETY: guaranteed by the caller.
    unsafe { accept_v6(listener, to) }
}

unsafe extern "C" fn register_v6(
    comm: *const c_void,
    data: *mut c_void,
    bytes: c_int,
    kind: c_int,
    to: *mut *mut c_void,
) -> Code {
    match usize::try_from(bytes) {
        // SAFETY: guaranteed by the caller.
        Ok(bytes) => unsafe { register(comm, data, bytes, kind, to) },
        Err(_) => Fault::Usage as Code,
    }
}

unsafe extern "C" fn register(
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

unsafe extern "C" fn deregister(comm: *const c_void, memory: *mut c_void) -> Code {
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

unsafe extern "C" fn isend_v6(
    comm: *const c_void,
    data: *mut c_void,
    bytes: c_int,
    tag: c_int,
    memory: *const c_void,
    request: *mut *const Request,
) -> Code {
    match usize::try_from(bytes) {
        // SAFETY: guaranteed by the caller.
        Ok(bytes) => unsafe { isend_v9(comm, data, bytes, tag, memory, request) },
        Err(_) => Fault::Usage as Code,
    }
}

unsafe extern "C" fn isend_v9(
    comm: *const c_void,
    data: *mut c_void,
    bytes: usize,
    tag: c_int,
    memory: *const c_void,
    request: *mut *const Request,
) -> Code {
    // SAFETY: guaranteed by the caller.
    unsafe { isend(comm, data, bytes, tag, memory, ptr::null_mut(), request) }
}

unsafe extern "C" fn isend(
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

unsafe extern "C" fn irecv_v6(
    comm: *const c_void,
    count: c_int,
    data: *const *mut c_void,
    bytes: *const c_int,
    tags: *const c_int,
    memories: *const *const c_void,
    request: *mut *const Request,
) -> Code {
    // Versions 9 and later have wider sizes.
    let mut wide = [0; MAX_RECEIVES];
    for (index, wide) in wide.iter_mut().enumerate().take(usize::try_from(count).unwrap_or(0)) {
        // SAFETY: NCCL passes `count` sizes.
        match usize::try_from(unsafe { bytes.add(index).read() }) {
            Ok(bytes) => *wide = bytes,
            Err(_) => return Fault::Usage as Code,
        }
    }
    // SAFETY: guaranteed by the caller.
    unsafe { irecv_v9(comm, count, data, wide.as_ptr(), tags, memories, request) }
}

unsafe extern "C" fn irecv_v9(
    comm: *const c_void,
    count: c_int,
    data: *const *mut c_void,
    bytes: *const usize,
    tags: *const c_int,
    memories: *const *const c_void,
    request: *mut *const Request,
) -> Code {
    // SAFETY: guaranteed by the caller.
    unsafe { irecv(comm, count, data, bytes, tags, memories, ptr::null(), request) }
}

/// NCCL may pass a request that is not NULL, which says that it does not need its completion. That is no use here: the
/// variable always gets NULL or a request.
#[allow(clippy::too_many_arguments, reason = "the arguments of NCCL")]
unsafe extern "C" fn irecv(
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
unsafe extern "C" fn iflush(
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

unsafe extern "C" fn test(request: *const Request, done: *mut c_int, bytes: *mut c_int) -> Code {
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

unsafe extern "C" fn close_comm(comm: *const c_void) -> Code {
    entry(|| {
        if !comm.is_null() {
            // SAFETY: given to NCCL as an `Arc`; NCCL gives it back once.
            let comm = unsafe { Arc::from_raw(comm.cast::<Comm>()) };
            comm.lane.close(&comm);
        }
        Ok(())
    })
}

unsafe extern "C" fn close_listen(listener: *const c_void) -> Code {
    entry(|| {
        if !listener.is_null() {
            // SAFETY: as in `close_comm`.
            let listener = unsafe { Arc::from_raw(listener.cast::<Listener>()) };
            listener.close();
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places of functions that are NULL: DMA buffers, device-side registration and consumption, virtual devices,
    /// attributes.
    fn absent<const FUNCTIONS: usize>(table: &Table<FUNCTIONS>) -> Vec<usize> {
        (0..FUNCTIONS).filter(|at| table.functions[*at].is_null()).collect()
    }

    #[test]
    fn tables_have_the_sizes_and_the_gaps_of_their_versions() {
        assert_eq!(
            [size_of::<Table<16>>(), size_of::<Table<18>>(), size_of::<Table<19>>(), size_of::<Table<21>>()],
            [136, 152, 160, 176]
        );
        assert_eq!(absent(&ncclNetPlugin_v6), [7]);
        assert_eq!(absent(&ncclNetPlugin_v7), [7, 16, 17]);
        assert_eq!(absent(&ncclNetPlugin_v8), [7, 16, 17]);
        assert_eq!(absent(&ncclNetPlugin_v9), [7, 16, 17, 18]);
        assert_eq!(absent(&ncclNetPlugin_v10), [7, 16, 17, 18]);
        assert_eq!(absent(&ncclNetPlugin_v11), [7, 16, 17, 18, 20]);
        assert_eq!(absent(&ncclNetPlugin_v12), [7, 16, 17, 18, 20]);
    }
}
