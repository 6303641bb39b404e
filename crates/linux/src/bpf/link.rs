//! Attachment of programs to network interfaces.

#![allow(unsafe_code, reason = "bpf(2) takes pointers; each block says why they are valid")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use crate::bpf::call::{call, new_descriptor};
use crate::bpf::program::Program;

const LINK_CREATE: libc::c_int = 28;
const LINK_DETACH: libc::c_int = 34;
/// `enum bpf_attach_type`.
const XDP: u32 = 37;

/// Point in the receive path at which a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpMode {
    /// In the interface's driver, before the kernel allocates a socket buffer.
    Driver,
    /// Behind the driver, on any interface. Slower, because the kernel has already allocated a socket buffer.
    Generic,
}

/// A program attached to an interface, until this value is dropped or its process ends.
#[derive(Debug)]
pub struct Link(OwnedFd);

impl Link {
    /// Runs a program for every packet that the interface with index `interface` receives.
    ///
    /// # Errors
    /// Fails without permission, without such an interface, if another program is attached (EBUSY), if the driver
    /// does not support XDP (EOPNOTSUPP), or if the driver rejects the MTU (EINVAL, ERANGE).
    pub fn attach(program: &Program, interface: u32, mode: XdpMode) -> io::Result<Link> {
        /// `union bpf_attr` of the command: program, interface, kind, flags (XDP_FLAGS_*).
        #[repr(C)]
        struct Attributes([u32; 4]);
        const GENERIC: u32 = 1 << 1;
        const DRIVER: u32 = 1 << 2;
        let flags = match mode {
            XdpMode::Driver => DRIVER,
            XdpMode::Generic => GENERIC,
        };
        let program = program.as_fd().as_raw_fd().cast_unsigned();
        // SAFETY: the attributes are plain numbers of the layout the command reads.
        unsafe { new_descriptor(LINK_CREATE, &Attributes([program, interface, XDP, flags])) }.map(Link)
    }

    /// Detaches the program from the interface now.
    ///
    /// # Errors
    /// Returns the kernel's error. Detaching a link that is already detached is not an error.
    pub fn detach(&self) -> io::Result<()> {
        // SAFETY: the attribute is a plain number, as the command reads it.
        unsafe { call(LINK_DETACH, &self.0.as_raw_fd().cast_unsigned()) }.map(|_| ())
    }
}
