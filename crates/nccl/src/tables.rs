//! Tables of functions, one for each version of NCCL's network interface, and the functions in them. NCCL takes the
//! newest table that it knows:
//!
//! | NCCL | 2.17, 2.18 | 2.19 | 2.20 to 2.23 | 2.24, 2.25 | 2.26, 2.27 | 2.28, 2.29 | 2.30 |
//! |---|---|---|---|---|---|---|---|
//! | table | 6 | 7 | 8 | 9 | 10 | 11 | 12 |
//!
//! The functions of version 12 do the work (`calls`). Those of earlier versions have fewer arguments, or narrower ones (`older`).
#![allow(unsafe_code, reason = "exports symbols")]

use std::ffi::{c_char, c_void};
use std::ptr;

use crate::abi::NAME;
use crate::calls::{
    accept, close_comm, close_listen, connect, deregister, devices, finalize, iflush, init, irecv, isend,
    listen, properties, register, test,
};
use crate::older::{
    accept_v6, connect_v6, connect_v7, connect_v10, init_v6, init_v10, irecv_v6, irecv_v9, isend_v6,
    isend_v9, listen_v6, properties_v6, properties_v7, properties_v8, properties_v9, properties_v11,
    register_v6,
};

/// A table: the name of the network, then pointers to functions; NULL for those that are not offered.
#[repr(C)]
pub struct Table<const FUNCTIONS: usize> {
    name: *const c_char,
    functions: [*const c_void; FUNCTIONS],
}

// SAFETY: a table is constant, and points to constants and functions.
unsafe impl<const FUNCTIONS: usize> Sync for Table<FUNCTIONS> {}

/// Functions that differ between versions.
struct Versioned {
    init: *const c_void,
    properties: *const c_void,
    listen: *const c_void,
    connect: *const c_void,
    accept: *const c_void,
    register: *const c_void,
    isend: *const c_void,
    irecv: *const c_void,
}

/// Returns a table of the functions that belong to a version. Later versions append functions.
const fn table<const FUNCTIONS: usize>(of: &Versioned) -> Table<FUNCTIONS> {
    let mut functions = [ptr::null(); FUNCTIONS];
    functions[0] = of.init;
    functions[1] = devices as *const c_void;
    functions[2] = of.properties;
    functions[3] = of.listen;
    functions[4] = of.connect;
    functions[5] = of.accept;
    functions[6] = of.register;
    // 7: registration of DMA buffers.
    functions[8] = deregister as *const c_void;
    functions[9] = of.isend;
    functions[10] = of.irecv;
    functions[11] = iflush as *const c_void;
    functions[12] = test as *const c_void;
    functions[13] = close_comm as *const c_void;
    functions[14] = close_comm as *const c_void;
    functions[15] = close_listen as *const c_void;
    // 16 to 18: device-side registration and consumption, virtual devices. 20: attributes.
    if FUNCTIONS > 19 {
        functions[19] = finalize as *const c_void;
    }
    Table { name: NAME, functions }
}

const V6: Versioned = Versioned {
    init: init_v6 as *const c_void,
    properties: properties_v6 as *const c_void,
    listen: listen_v6 as *const c_void,
    connect: connect_v6 as *const c_void,
    accept: accept_v6 as *const c_void,
    register: register_v6 as *const c_void,
    isend: isend_v6 as *const c_void,
    irecv: irecv_v6 as *const c_void,
};
const V7: Versioned = Versioned {
    properties: properties_v7 as *const c_void,
    connect: connect_v7 as *const c_void,
    accept: accept as *const c_void,
    ..V6
};
const V8: Versioned =
    Versioned { properties: properties_v8 as *const c_void, register: register as *const c_void, ..V7 };
const V9: Versioned = Versioned {
    properties: properties_v9 as *const c_void,
    isend: isend_v9 as *const c_void,
    irecv: irecv_v9 as *const c_void,
    ..V8
};
const V10: Versioned = Versioned {
    init: init_v10 as *const c_void,
    connect: connect_v10 as *const c_void,
    isend: isend as *const c_void,
    irecv: irecv as *const c_void,
    ..V9
};
const V11: Versioned = Versioned {
    init: init as *const c_void,
    properties: properties_v11 as *const c_void,
    listen: listen as *const c_void,
    connect: connect as *const c_void,
    ..V10
};
const V12: Versioned = Versioned { properties: properties as *const c_void, ..V11 };

macro_rules! export {
    ($name:ident, $functions:literal, $version:ident, $doc:literal) => {
        #[doc = $doc]
        #[allow(non_upper_case_globals, reason = "NCCL looks for this name")]
        #[unsafe(no_mangle)]
        pub static $name: Table<$functions> = table(&$version);
    };
}

export!(ncclNetPlugin_v6, 16, V6, "Version 6.");
export!(ncclNetPlugin_v7, 18, V7, "Version 7.");
export!(ncclNetPlugin_v8, 18, V8, "Version 8.");
export!(ncclNetPlugin_v9, 19, V9, "Version 9.");
export!(ncclNetPlugin_v10, 19, V10, "Version 10.");
export!(ncclNetPlugin_v11, 21, V11, "Version 11.");
export!(ncclNetPlugin_v12, 21, V12, "Version 12.");

#[cfg(test)]
mod tests {
    use super::*;

    /// Places of functions that are NULL: DMA buffers, device-side registration and consumption, virtual devices,
    /// attributes.
    fn absent<const FUNCTIONS: usize>(table: &Table<FUNCTIONS>) -> Vec<usize> {
        (0..FUNCTIONS).filter(|at| table.functions[*at].is_null()).collect()
    }

    #[test]
    fn tables_have_the_sizes_and_the_gaps_of_their_versions() {
        assert_eq!(
            [size_of::<Table<16>>(), size_of::<Table<18>>(), size_of::<Table<19>>(), size_of::<Table<21>>()],
            [136, 152, 160, 176]
        );
        assert_eq!(absent(&ncclNetPlugin_v6), [7]);
        assert_eq!(absent(&ncclNetPlugin_v7), [7, 16, 17]);
        assert_eq!(absent(&ncclNetPlugin_v8), [7, 16, 17]);
        assert_eq!(absent(&ncclNetPlugin_v9), [7, 16, 17, 18]);
        assert_eq!(absent(&ncclNetPlugin_v10), [7, 16, 17, 18]);
        assert_eq!(absent(&ncclNetPlugin_v11), [7, 16, 17, 18, 20]);
        assert_eq!(absent(&ncclNetPlugin_v12), [7, 16, 17, 18, 20]);
    }
}
