//! Structures and constants of NCCL's network interface, versions 6 to 12, on 64-bit machines.

use std::ffi::{c_char, c_int, c_ulong};

/// Result of a call, as NCCL numbers it.
pub(crate) type Code = c_int;

pub(crate) const SUCCESS: Code = 0;

/// Name of the network, which the variable `NCCL_NET` selects.
pub(crate) const NAME: *const c_char = c"pathweave".as_ptr();

/// Reason why a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Fault {
    /// The operating system, or the environment of this process.
    System = 2,
    /// A bug, or a service that is not offered.
    Internal = 3,
    /// The caller has broken a rule; also a message that is longer than its receive.
    Usage = 5,
    /// The peer is lost.
    Remote = 6,
}

/// Function by which NCCL writes its log: level, subsystems, file, line, format.
pub(crate) type Logger = unsafe extern "C" fn(c_int, c_ulong, *const c_char, c_int, *const c_char, ...);

/// Level of messages that users have to see, and of explanations.
pub(crate) const LOG_WARN: c_int = 2;
pub(crate) const LOG_INFO: c_int = 3;
/// Subsystems: start and network.
pub(crate) const LOG_INIT_NET: c_ulong = 1 | 16;

/// Memory of the host, the only kind that is supported.
pub(crate) const POINTER_HOST: c_int = 1;
/// Bytes of a handle that ranks exchange.
pub(crate) const HANDLE_BYTES: usize = 128;
/// Largest number of groups of receives of a connection that are in progress.
pub(crate) const MAX_GROUPS: usize = 32;
/// Largest number of receives of a group.
pub(crate) const MAX_RECEIVES: usize = 8;
/// Largest message.
pub(crate) const MAX_BYTES: usize = 1 << 30;

/// Devices of which a device consists.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Members<const MOST: usize> {
    pub(crate) count: c_int,
    pub(crate) devices: [c_int; MOST],
}

#[repr(C)]
pub(crate) struct Properties6 {
    pub(crate) name: *const c_char,
    pub(crate) pci_path: *const c_char,
    pub(crate) guid: u64,
    pub(crate) pointers: c_int,
    pub(crate) speed_mbps: c_int,
    pub(crate) port: c_int,
    pub(crate) latency_us: f32,
    pub(crate) max_comms: c_int,
    pub(crate) max_receives: c_int,
}

#[repr(C)]
pub(crate) struct Properties7 {
    pub(crate) v6: Properties6,
    pub(crate) device_type: c_int,
    pub(crate) device_version: c_int,
}

#[repr(C)]
pub(crate) struct Properties8 {
    pub(crate) name: *const c_char,
    pub(crate) pci_path: *const c_char,
    pub(crate) guid: u64,
    pub(crate) pointers: c_int,
    pub(crate) registration_is_global: c_int,
    pub(crate) speed_mbps: c_int,
    pub(crate) port: c_int,
    pub(crate) latency_us: f32,
    pub(crate) max_comms: c_int,
    pub(crate) max_receives: c_int,
    pub(crate) device_type: c_int,
    pub(crate) device_version: c_int,
}

/// Fields that versions 9 to 12 have in common.
#[repr(C)]
pub(crate) struct Start9 {
    pub(crate) name: *const c_char,
    pub(crate) pci_path: *const c_char,
    pub(crate) guid: u64,
    pub(crate) pointers: c_int,
    pub(crate) registration_is_global: c_int,
    pub(crate) force_flush: c_int,
    pub(crate) speed_mbps: c_int,
    pub(crate) port: c_int,
    pub(crate) latency_us: f32,
    pub(crate) max_comms: c_int,
    pub(crate) max_receives: c_int,
    pub(crate) device_type: c_int,
    pub(crate) device_version: c_int,
}

/// Version 9; the same in version 10.
#[repr(C)]
pub(crate) struct Properties9 {
    pub(crate) start: Start9,
    pub(crate) members: Members<4>,
    pub(crate) max_p2p_bytes: usize,
    pub(crate) max_collective_bytes: usize,
}

#[repr(C)]
pub(crate) struct Properties11 {
    pub(crate) v9: Properties9,
    pub(crate) max_requests_together: c_int,
}

#[repr(C)]
pub(crate) struct Properties12 {
    pub(crate) start: Start9,
    pub(crate) members: Members<8>,
    pub(crate) max_p2p_bytes: usize,
    pub(crate) max_collective_bytes: usize,
    pub(crate) max_requests_together: c_int,
    pub(crate) rail: i16,
    pub(crate) plane: i16,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn properties_are_laid_out_as_nccl_reads_them() {
        assert_eq!(size_of::<Properties6>(), 48);
        assert_eq!(
            [
                offset_of!(Properties6, guid),
                offset_of!(Properties6, pointers),
                offset_of!(Properties6, speed_mbps),
                offset_of!(Properties6, port),
                offset_of!(Properties6, latency_us),
                offset_of!(Properties6, max_comms),
                offset_of!(Properties6, max_receives),
            ],
            [16, 24, 28, 32, 36, 40, 44]
        );
        assert_eq!(size_of::<Properties7>(), 56);
        assert_eq!([offset_of!(Properties7, device_type), offset_of!(Properties7, device_version)], [48, 52]);
        assert_eq!(size_of::<Properties8>(), 64);
        assert_eq!(
            [
                offset_of!(Properties8, registration_is_global),
                offset_of!(Properties8, speed_mbps),
                offset_of!(Properties8, latency_us),
                offset_of!(Properties8, max_receives),
                offset_of!(Properties8, device_version),
            ],
            [28, 32, 40, 48, 56]
        );
        assert_eq!(size_of::<Properties9>(), 104);
        assert_eq!(
            [
                offset_of!(Start9, force_flush),
                offset_of!(Start9, speed_mbps),
                offset_of!(Start9, port),
                offset_of!(Start9, latency_us),
                offset_of!(Start9, max_comms),
                offset_of!(Start9, max_receives),
                offset_of!(Start9, device_type),
                offset_of!(Start9, device_version),
                offset_of!(Properties9, members),
                offset_of!(Properties9, max_p2p_bytes),
                offset_of!(Properties9, max_collective_bytes),
            ],
            [32, 36, 40, 44, 48, 52, 56, 60, 64, 88, 96]
        );
        assert_eq!((size_of::<Properties11>(), offset_of!(Properties11, max_requests_together)), (112, 104));
        assert_eq!(size_of::<Properties12>(), 128);
        assert_eq!(
            [
                offset_of!(Properties12, members),
                offset_of!(Properties12, max_p2p_bytes),
                offset_of!(Properties12, max_collective_bytes),
                offset_of!(Properties12, max_requests_together),
                offset_of!(Properties12, rail),
                offset_of!(Properties12, plane),
            ],
            [64, 104, 112, 120, 124, 126]
        );
    }
}
