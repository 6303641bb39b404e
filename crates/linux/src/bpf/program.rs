//! Programs and their load, at which the kernel verifies them.

#![allow(unsafe_code, reason = "bpf(2) takes pointers; each block says why they are valid")]

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::bpf::call::new_descriptor;
use crate::bpf::code::Instruction;

const PROG_LOAD: libc::c_int = 5;
/// Size of the verifier's log buffer, bytes.
const LOG_BYTES: usize = 1 << 16;

/// Type of a program: the hook that runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramKind {
    /// Classifier of traffic control.
    Classifier,
    /// XDP: runs for each packet that a network interface has received, before the network stack processes it. A
    /// packet may have several fragments; the program accesses the first.
    Xdp,
}

/// A program that the kernel has accepted. It lives as long as this value or its attachment.
#[derive(Debug)]
pub struct Program(OwnedFd);

/// `union bpf_attr` of the command, up to the program's name.
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
    name: [u8; 16],
}

impl Program {
    /// Loads a program. The kernel verifies that it terminates and accesses only permitted memory.
    ///
    /// # Errors
    /// Fails without permission, or if the verifier rejects the program; the error then holds the end of the
    /// verifier's log.
    pub fn load(kind: ProgramKind, code: &[Instruction]) -> io::Result<Program> {
        /// BPF_F_XDP_HAS_FRAGS.
        const XDP_HAS_FRAGS: u32 = 1 << 5;
        let (kind, flags) = match kind {
            ProgramKind::Classifier => (3, 0),
            ProgramKind::Xdp => (6, XDP_HAS_FRAGS),
        };
        let mut attributes = Attributes {
            kind,
            // Programs here have some dozens of instructions.
            instructions: code.len() as u32,
            program: code.as_ptr() as u64,
            license: c"Apache-2.0".as_ptr() as u64,
            log_level: 0,
            log_bytes: 0,
            log: 0,
            kernel_version: 0,
            flags,
            name: *b"pathweave\0\0\0\0\0\0\0",
        };
        // SAFETY: code and license are alive and as long as stated (the license ends with a zero byte).
        match unsafe { new_descriptor(PROG_LOAD, &attributes) } {
            Err(why) if matches!(why.raw_os_error(), Some(libc::EINVAL | libc::EACCES)) => {}
            done => return done.map(Program),
        }
        // Rejected by the verifier: load again, with a buffer for its log.
        let mut log = vec![0u8; LOG_BYTES];
        attributes.log_level = 1;
        attributes.log_bytes = log.len() as u32;
        attributes.log = log.as_mut_ptr() as u64;
        // SAFETY: as above, and the log has the stated length.
        let refused = unsafe { new_descriptor(PROG_LOAD, &attributes) };
        refused.map(Program).map_err(|why| {
            let text = String::from_utf8_lossy(&log);
            let last = text.trim_end_matches('\0').trim_end().lines().rev().take(3).collect::<Vec<_>>();
            if last.is_empty() {
                // The verifier did not cause the error.
                return why;
            }
            io::Error::new(why.kind(), format!("{why}: {}", last.join(" / ")))
        })
    }
}

impl AsFd for Program {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
