//! Maps: memory shared by a program and this process.

#![allow(unsafe_code, reason = "bpf(2) takes pointers; each block says why they are valid")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use crate::bpf::call::{call, new_descriptor};

const MAP_CREATE: libc::c_int = 0;
const MAP_LOOKUP: libc::c_int = 1;
const MAP_UPDATE: libc::c_int = 2;
const MAP_DELETE: libc::c_int = 3;

/// Type of a map (`enum bpf_map_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapKind {
    /// Values by arbitrary key.
    Hash = 1,
    /// Values by index, initially zero.
    Array = 2,
    /// AF_XDP sockets by index. A program may redirect packets to them.
    Sockets = 17,
}

/// A map. It lives as long as this value or a program that uses it.
#[derive(Debug)]
pub struct Map {
    descriptor: OwnedFd,
    key_bytes: u32,
    value_bytes: u32,
}

/// `union bpf_attr` of the commands on one entry.
#[repr(C)]
struct Entry {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

impl Map {
    /// Creates a map for at most `entries` entries, with keys of `key_bytes` and values of `value_bytes` bytes.
    ///
    /// # Errors
    /// Fails without permission, without memory, or if the kernel has no maps of this kind.
    pub fn new(kind: MapKind, key_bytes: u32, value_bytes: u32, entries: u32) -> io::Result<Map> {
        /// `union bpf_attr` of the command: type, sizes of key and value, entries, flags.
        #[repr(C)]
        struct Attributes([u32; 5]);
        let attributes = Attributes([kind as u32, key_bytes, value_bytes, entries, 0]);
        // SAFETY: the attributes are plain numbers of the layout the command reads.
        let descriptor = unsafe { new_descriptor(MAP_CREATE, &attributes) }?;
        Ok(Map { descriptor, key_bytes, value_bytes })
    }

    /// Copies an entry's value to `value`.
    ///
    /// # Errors
    /// Fails if there is no such entry, or if `key` or `value` does not have the map's length.
    pub fn read(&self, key: &[u8], value: &mut [u8]) -> io::Result<()> {
        self.check(key, Some(value.len()))?;
        let entry = self.entry(key, value.as_mut_ptr() as u64);
        // SAFETY: key and value have the map's lengths, and both live until the call returns.
        unsafe { call(MAP_LOOKUP, &entry) }.map(|_| ())
    }

    /// Sets an entry, creating it if absent. In a map of sockets the value is a socket's descriptor.
    ///
    /// # Errors
    /// Fails if the map is full, if the key is out of range, or if `key` or `value` does not have the map's length.
    pub fn write(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.check(key, Some(value.len()))?;
        let entry = self.entry(key, value.as_ptr() as u64);
        // SAFETY: as in `read`, and the kernel only reads both.
        unsafe { call(MAP_UPDATE, &entry) }.map(|_| ())
    }

    /// Removes an entry.
    ///
    /// # Errors
    /// Fails if there is no such entry, if the map is an array, or if `key` does not have the map's length.
    pub fn remove(&self, key: &[u8]) -> io::Result<()> {
        self.check(key, None)?;
        let entry = self.entry(key, 0);
        // SAFETY: the key has the map's length and lives until the call returns. The kernel does not access the
        // value.
        unsafe { call(MAP_DELETE, &entry) }.map(|_| ())
    }

    fn entry(&self, key: &[u8], value: u64) -> Entry {
        let map = self.descriptor.as_raw_fd().cast_unsigned();
        Entry { map, padding: 0, key: key.as_ptr() as u64, value, flags: 0 }
    }

    fn check(&self, key: &[u8], value_bytes: Option<usize>) -> io::Result<()> {
        let fits = key.len() == self.key_bytes as usize
            && value_bytes.is_none_or(|bytes| bytes == self.value_bytes as usize);
        if fits { Ok(()) } else { Err(io::ErrorKind::InvalidInput.into()) }
    }
}

impl AsFd for Map {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
