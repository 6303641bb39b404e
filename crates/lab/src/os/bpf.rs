//! The bpf(2) system call, as far as a lab needs it: an array of counters and small programs.

// The only way to the bpf system call is libc's; each block says why it is sound.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Commands of bpf(2).
const MAP_CREATE: libc::c_int = 0;
const MAP_LOOKUP: libc::c_int = 1;
const PROG_LOAD: libc::c_int = 5;

/// One instruction: code, registers (source in the high half), offset, immediate value (`struct bpf_insn`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Instruction {
    pub(crate) code: u8,
    pub(crate) registers: u8,
    pub(crate) offset: i16,
    pub(crate) immediate: i32,
}

/// What a port's program counts, shared by all programs of a lab: one entry for each end of each link.
#[derive(Debug)]
pub(crate) struct Map(OwnedFd);

/// An entry of the [`Map`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    /// When the queue will be empty, in nanoseconds of the kernel's monotonic clock.
    pub(crate) empty_at_ns: u64,
    /// Packets marked.
    pub(crate) marked: u64,
}

/// Bytes of an entry.
pub(crate) const ENTRY_BYTES: u32 = 16;

impl Map {
    /// An array of zeroes.
    pub(crate) fn new(entries: u32) -> io::Result<Map> {
        /// `union bpf_attr` of the command: type, sizes of key and value, entries, flags.
        #[repr(C)]
        struct Attributes([u32; 5]);
        const ARRAY: u32 = 2;
        const KEY_BYTES: u32 = 4;
        let attributes = Attributes([ARRAY, KEY_BYTES, ENTRY_BYTES, entries, 0]);
        // SAFETY: the attributes are plain numbers of the layout the command reads.
        unsafe { new_descriptor(MAP_CREATE, &attributes) }.map(Map)
    }

    /// An entry; zeroes where there is none.
    pub(crate) fn read(&self, index: u32) -> io::Result<Entry> {
        /// `union bpf_attr` of the command.
        #[repr(C)]
        struct Attributes {
            map: u32,
            key: u64,
            value: u64,
            flags: u64,
        }
        let mut value = [0u64; ENTRY_BYTES as usize / 8];
        let attributes = Attributes {
            map: self.0.as_raw_fd().cast_unsigned(),
            key: &raw const index as u64,
            value: value.as_mut_ptr() as u64,
            flags: 0,
        };
        // SAFETY: the key is 4 bytes and the value 16, as the map was made, and both live until the call is over.
        unsafe { call(MAP_LOOKUP, &attributes) }?;
        Ok(Entry { empty_at_ns: value[0], marked: value[1] })
    }
}

impl AsFd for Map {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Loads a classifier of traffic control. The kernel checks that it ends and touches nothing it must not; its
/// complaint is in the error.
pub(crate) fn load_classifier(program: &[Instruction]) -> io::Result<OwnedFd> {
    /// `union bpf_attr` of the command, up to the flags.
    #[repr(C)]
    struct Attributes {
        kind: u32,
        instructions: u32,
        program: u64,
        license: u64,
        log_level: u32,
        log_bytes: u32,
        log: u64,
        kernel_version: u32,
        flags: u32,
    }
    const SCHED_CLS: u32 = 3;
    let mut log = vec![0u8; 1 << 16];
    let mut attributes = Attributes {
        kind: SCHED_CLS,
        // Programs here have some dozens of instructions.
        instructions: program.len() as u32,
        program: program.as_ptr() as u64,
        license: c"Apache-2.0".as_ptr() as u64,
        log_level: 0,
        log_bytes: 0,
        log: 0,
        kernel_version: 0,
        flags: 0,
    };
    // SAFETY: program and licence are alive, and as long as said (the licence ends with a zero).
    match unsafe { new_descriptor(PROG_LOAD, &attributes) } {
        Err(why) if why.kind() == io::ErrorKind::InvalidInput || why.raw_os_error() == Some(libc::EACCES) => {
        }
        done => return done,
    }
    // Refused by the verifier: once more, with room for its reasons.
    attributes.log_level = 1;
    attributes.log_bytes = log.len() as u32;
    attributes.log = log.as_mut_ptr() as u64;
    // SAFETY: as above, and the log has as many bytes as said.
    let refused = unsafe { new_descriptor(PROG_LOAD, &attributes) };
    refused.map_err(|why| {
        let text = String::from_utf8_lossy(&log);
        let last = text.trim_end_matches('\0').trim_end().lines().rev().take(3).collect::<Vec<_>>();
        io::Error::new(why.kind(), format!("{why}: {}", last.join(" / ")))
    })
}

/// Calls bpf(2) with a command that returns a descriptor.
///
/// # Safety
/// As for [`call`].
unsafe fn new_descriptor<T>(command: libc::c_int, attributes: &T) -> io::Result<OwnedFd> {
    // SAFETY: the caller's promise.
    let descriptor = unsafe { call(command, attributes) }?;
    // SAFETY: the command returned a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Calls bpf(2).
///
/// # Safety
/// The attributes are the beginning of the command's `union bpf_attr`, and all pointers in them are valid for what
/// the command does with them.
unsafe fn call<T>(command: libc::c_int, attributes: &T) -> io::Result<libc::c_int> {
    // SAFETY: the kernel reads as many bytes as it is told, all of them ours; the rest is the caller's promise.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attributes), size_of::<T>()) };
    // Results of the commands used here are descriptors or zero.
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as libc::c_int) }
}
