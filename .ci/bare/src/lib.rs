//! A program without std that links the protocol core. It defines its own panic handler: if any crate below it
//! brought std in, there would be two, and the compiler would refuse.
#![no_std]

extern crate pathweave_policy as _;
extern crate pathweave_tagged as _;
extern crate pathweave_transport as _;
extern crate pathweave_units as _;
extern crate pathweave_wire as _;

use core::alloc::{GlobalAlloc, Layout};

struct NoMemory;

// SAFETY: a null pointer is the documented answer when there is no memory; nothing is ever freed.
unsafe impl GlobalAlloc for NoMemory {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        core::ptr::null_mut()
    }
    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static ALLOCATOR: NoMemory = NoMemory;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
