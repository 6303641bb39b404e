//! Declarations of the functions in `shim.c`.

#![allow(unsafe_code, reason = "declarations of C functions; who calls them says why that is sound")]

use std::ffi::{c_char, c_int, c_void};

/// Memory of a frame (`struct rte_mbuf`).
#[repr(C)]
pub(super) struct Mbuf {
    _opaque: [u8; 0],
}

/// Pool of frames (`struct rte_mempool`).
#[repr(C)]
pub(super) struct Pool {
    _opaque: [u8; 0],
}

/// Requested configuration of a port: `struct pathweave_dpdk_wish`.
#[repr(C)]
pub(super) struct PortRequest {
    pub(super) frame_bytes: u32,
    pub(super) mtu_bytes: u32,
    pub(super) pool_frames: u32,
    pub(super) receive_frames: u16,
    pub(super) send_frames: u16,
}

/// Properties of a port: `struct pathweave_dpdk_facts`.
#[repr(C)]
pub(super) struct PortProperties {
    pub(super) pool: *mut Pool,
    pub(super) max_mtu_bytes: u32,
    pub(super) receive_frames: u16,
    pub(super) send_frames: u16,
    pub(super) mac: [u8; 6],
    pub(super) driver: [u8; 32],
}

impl PortProperties {
    pub(super) const NONE: PortProperties = PortProperties {
        pool: std::ptr::null_mut(),
        max_mtu_bytes: 0,
        receive_frames: 0,
        send_frames: 0,
        mac: [0; 6],
        driver: [0; 32],
    };
}

unsafe extern "C" {
    pub(super) fn pathweave_dpdk_said(text: *mut c_char, most: usize) -> usize;
    pub(super) fn pathweave_dpdk_start(count: c_int, arguments: *mut *mut c_char) -> c_int;
    pub(super) fn pathweave_dpdk_pace(rests: extern "C" fn(*mut c_void)) -> c_int;
    pub(super) fn pathweave_dpdk_join() -> c_int;
    pub(super) fn pathweave_dpdk_leave();
    pub(super) fn pathweave_dpdk_attach(
        bus: *const c_char,
        name: *const c_char,
        arguments: *const c_char,
        port: *mut u16,
    ) -> c_int;
    pub(super) fn pathweave_dpdk_look(port: u16, facts: *mut PortProperties) -> c_int;
    pub(super) fn pathweave_dpdk_configure(
        port: u16,
        wish: *const PortRequest,
        facts: *mut PortProperties,
    ) -> c_int;
    pub(super) fn pathweave_dpdk_run(port: u16) -> c_int;
    pub(super) fn pathweave_dpdk_halt(port: u16) -> c_int;
    pub(super) fn pathweave_dpdk_detach(port: u16, pool: *mut Pool);
    pub(super) fn pathweave_dpdk_is_up(port: u16) -> c_int;
    pub(super) fn pathweave_dpdk_missed(port: u16) -> u64;
    pub(super) fn pathweave_dpdk_receive(
        port: u16,
        frames: *mut *mut Mbuf,
        bytes: *mut *mut u8,
        lengths: *mut u32,
        most: u16,
    ) -> u16;
    pub(super) fn pathweave_dpdk_free(frames: *mut *mut Mbuf, count: u32);
    pub(super) fn pathweave_dpdk_allocate(
        pool: *mut Pool,
        frames: *mut *mut Mbuf,
        bytes: *mut *mut u8,
        count: u32,
    ) -> c_int;
    pub(super) fn pathweave_dpdk_send(
        port: u16,
        frames: *mut *mut Mbuf,
        lengths: *const u16,
        count: u16,
        frees_quietly: c_int,
    ) -> u16;
}
