//! The functions of versions 6 to 11 that have fewer arguments than those of version 12, or narrower ones.
#![allow(unsafe_code, reason = "takes pointers from NCCL and gives pointers to NCCL")]

use std::ffi::{c_int, c_void};
use std::ptr;

use crate::abi::{
    Code, Fault, Logger, MAX_BYTES, MAX_RECEIVES, Members, Properties6, Properties7, Properties8,
    Properties9, Properties11, Start9,
};
use crate::calls::{HandleBytes, accept, connect, init, irecv, isend, listen, put, register, start9};
use crate::comm::Request;
use crate::guard::{Outcome, entry};

pub(crate) unsafe extern "C" fn init_v6(logger: Option<Logger>) -> Code {
    let mut context = ptr::null_mut();
    // SAFETY: guaranteed by the caller.
    unsafe { init(&raw mut context, 0, ptr::null(), logger, ptr::null()) }
}

pub(crate) unsafe extern "C" fn init_v10(logger: Option<Logger>, _profiler: *const c_void) -> Code {
    // SAFETY: guaranteed by the caller.
    unsafe { init_v6(logger) }
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

pub(crate) unsafe extern "C" fn properties_v6(device: c_int, to: *mut Properties6) -> Code {
    // SAFETY: NCCL's variable of this version.
    entry(|| unsafe { put(to, properties6(device)?) })
}

pub(crate) unsafe extern "C" fn properties_v7(device: c_int, to: *mut Properties7) -> Code {
    entry(|| {
        let found = Properties7 { v6: properties6(device)?, device_type: 0, device_version: 0 };
        // SAFETY: NCCL's variable of this version.
        unsafe { put(to, found) }
    })
}

pub(crate) unsafe extern "C" fn properties_v8(device: c_int, to: *mut Properties8) -> Code {
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

pub(crate) unsafe extern "C" fn properties_v9(device: c_int, to: *mut Properties9) -> Code {
    // SAFETY: NCCL's variable of this version.
    entry(|| unsafe { put(to, properties9(device)?) })
}

pub(crate) unsafe extern "C" fn properties_v11(device: c_int, to: *mut Properties11) -> Code {
    entry(|| {
        let found = Properties11 { v9: properties9(device)?, max_requests_together: 1 };
        // SAFETY: NCCL's variable of this version.
        unsafe { put(to, found) }
    })
}

pub(crate) unsafe extern "C" fn listen_v6(
    device: c_int,
    handle: *mut HandleBytes,
    to: *mut *mut c_void,
) -> Code {
    // SAFETY: guaranteed by the caller.
    unsafe { listen(ptr::null_mut(), device, handle, to) }
}

pub(crate) unsafe extern "C" fn connect_v6(
    device: c_int,
    handle: *mut HandleBytes,
    to: *mut *mut c_void,
) -> Code {
    // SAFETY: guaranteed by the caller.
    unsafe { connect(ptr::null_mut(), device, handle, to, ptr::null_mut()) }
}

pub(crate) unsafe extern "C" fn connect_v7(
    device: c_int,
    handle: *mut HandleBytes,
    to: *mut *mut c_void,
    _offload: *mut c_void,
) -> Code {
    // SAFETY: guaranteed by the caller.
    unsafe { connect_v6(device, handle, to) }
}

pub(crate) unsafe extern "C" fn connect_v10(
    device: c_int,
    _config: *const c_void,
    handle: *mut HandleBytes,
    to: *mut *mut c_void,
    _offload: *mut c_void,
) -> Code {
    // SAFETY: guaranteed by the caller.
    unsafe { connect_v6(device, handle, to) }
}

pub(crate) unsafe extern "C" fn accept_v6(listener: *const c_void, to: *mut *mut c_void) -> Code {
    // SAFETY: guaranteed by the caller.
    unsafe { accept(listener, to, ptr::null_mut()) }
}

pub(crate) unsafe extern "C" fn register_v6(
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

pub(crate) unsafe extern "C" fn isend_v6(
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

pub(crate) unsafe extern "C" fn isend_v9(
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

pub(crate) unsafe extern "C" fn irecv_v6(
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

pub(crate) unsafe extern "C" fn irecv_v9(
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
