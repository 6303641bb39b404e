//! Programs on network interfaces.

#![allow(unsafe_code, reason = "bpf(2) takes pointers; each block says why they are valid")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use crate::bpf::call::{call, new_descriptor};
use crate::bpf::program::Program;

const LINK_CREATE: libc::c_int = 28;
const LINK_DETACH: libc::c_int = 34;
/// `enum bpf_attach_type`.
const XDP: u32 = 37;

/// Where a program for received packets runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In the interface's driver, before the kernel makes anything of the packet.
    Driver,
    /// Behind the driver, on any interface: slower, for the kernel has made a packet of its own by then.
    Generic,
}

/// A program attached to an interface, until this value is dropped or its process ends.
#[derive(Debug)]
pub struct Link(OwnedFd);

impl Link {
    /// Has a program see all packets that the interface of this index receives.
    ///
    /// # Errors
    /// No permission, no such interface, another program is there (EBUSY), or the driver cannot (EOPNOTSUPP, or what it says
    /// of the MTU: EINVAL, ERANGE).
    pub fn attach(program: &Program, interface: u32, mode: Mode) -> io::Result<Link> {
        /// `union bpf_attr` of the command: program, interface, kind, flags (XDP_FLAGS_*).
        #[repr(C)]
        struct Attributes([u32; 4]);
        const GENERIC: u32 = 1 << 1;
        const DRIVER: u32 = 1 << 2;
        let flags = match mode {
            Mode::Driver => DRIVER,
            Mode::Generic => GENERIC,
        };
        let program = program.as_fd().as_raw_fd().cast_unsigned();
        // SAFETY: the attributes are plain numbers of the layout the command reads.
        unsafe { new_descriptor(LINK_CREATE, &Attributes([program, interface, XDP, flags])) }.map(Link)
    }

    /// Takes the program off the interface now.
    ///
    /// # Errors
    /// What the kernel says; a link that is off already is none.
    pub fn detach(&self) -> io::Result<()> {
        // SAFETY: the attribute is a plain number, as the command reads it.
        unsafe { call(LINK_DETACH, &self.0.as_raw_fd().cast_unsigned()) }.map(|_| ())
    }
}
