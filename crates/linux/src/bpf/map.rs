//! Maps: what a program and this process both see.

#![allow(unsafe_code, reason = "bpf(2) takes pointers; each block says why they are valid")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use crate::bpf::call::{call, new_descriptor};

const MAP_CREATE: libc::c_int = 0;
const MAP_LOOKUP: libc::c_int = 1;
const MAP_UPDATE: libc::c_int = 2;
const MAP_DELETE: libc::c_int = 3;

/// What a map is (`enum bpf_map_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapKind {
    /// Values by any key.
    Hash = 1,
    /// Values by index, zero at first.
    Array = 2,
    /// AF_XDP sockets by index, to which a program may redirect packets.
    Sockets = 17,
}

/// A map, which lives as long as this value or a program that uses it.
#[derive(Debug)]
pub struct Map {
    descriptor: OwnedFd,
    key_bytes: u32,
    value_bytes: u32,
}

/// `union bpf_attr` of what concerns one entry.
#[repr(C)]
struct Entry {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

impl Map {
    /// A map of `entries` at most, keys of `key_bytes`, values of `value_bytes`.
    ///
    /// # Errors
    /// No permission, no memory, or a kernel without maps of this kind.
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
    /// There is no such entry, or key or value have another length than the map's.
    pub fn read(&self, key: &[u8], value: &mut [u8]) -> io::Result<()> {
        self.check(key, Some(value.len()))?;
        let entry = self.entry(key, value.as_mut_ptr() as u64);
        // SAFETY: key and value are as long as the map's, and both live until the call is over.
        unsafe { call(MAP_LOOKUP, &entry) }.map(|_| ())
    }

    /// Sets an entry, which need not be there. In a map of sockets the value is a descriptor of one.
    ///
    /// # Errors
    /// The map is full or the key beyond it, or key or value have another length than the map's.
    pub fn write(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.check(key, Some(value.len()))?;
        let entry = self.entry(key, value.as_ptr() as u64);
        // SAFETY: as in `read`; the kernel only reads both.
        unsafe { call(MAP_UPDATE, &entry) }.map(|_| ())
    }

    /// Removes an entry.
    ///
    /// # Errors
    /// There is none, the map is an array, or the key has another length than the map's.
    pub fn remove(&self, key: &[u8]) -> io::Result<()> {
        self.check(key, None)?;
        let entry = self.entry(key, 0);
        // SAFETY: the key is as long as the map's and lives until the call is over; no value is looked at.
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
