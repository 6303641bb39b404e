//! Answers to the hints of real programs, and the hardware that an answer names.
#![allow(unsafe_code, reason = "calls C tables")]

mod client;

use std::ptr::{self, null_mut};

use client::*;

/// Hints of a program.
struct Asked {
    version: u32,
    caps: u64,
    mode: u64,
    mr_mode: i32,
    mr_key_size: usize,
    threading: u32,
    domain: *mut FidDomain,
}

const ASKED: Asked = Asked {
    version: version(1, 18),
    caps: 0,
    mode: FI_CONTEXT,
    mr_mode: 0,
    mr_key_size: 0,
    threading: FI_THREAD_SAFE,
    domain: null_mut(),
};
const COMM: u64 = FI_LOCAL_COMM | FI_REMOTE_COMM;

/// Hints of NIXL, without device memory, which it drops in its second attempt.
const NIXL: Asked = Asked {
    caps: FI_MSG | FI_RMA | COMM,
    mr_mode: FI_MR_LOCAL | FI_MR_HMEM | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY,
    mr_key_size: 2,
    threading: FI_THREAD_COMPLETION,
    ..ASKED
};
/// Hints with which NIXL lists the devices of all providers.
const NIXL_LIST: Asked = Asked { caps: FI_MSG | FI_RMA | COMM, mr_mode: !3, ..ASKED };
/// Hints of NCCL's plugin in its send and receive mode.
const NCCL: Asked = Asked {
    version: version(1, 6),
    caps: FI_TAGGED | FI_MSG | COMM,
    mode: FI_CONTEXT | FI_CONTEXT2,
    mr_mode: FI_MR_LOCAL | FI_MR_ENDPOINT | FI_MR_HMEM | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY,
    ..ASKED
};
const MPICH: Asked = Asked {
    caps: FI_TAGGED | FI_MSG | FI_MULTI_RECV | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV,
    mr_mode: FI_MR_ENDPOINT,
    threading: FI_THREAD_DOMAIN,
    ..ASKED
};
const OPEN_MPI_MESSAGES: Asked =
    Asked { caps: FI_TAGGED | FI_MSG | FI_DIRECTED_RECV | COMM, threading: FI_THREAD_DOMAIN, ..ASKED };
const OPEN_MPI_MEMORY: Asked = Asked {
    caps: FI_RMA | FI_ATOMIC,
    mr_mode: FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | FI_MR_ENDPOINT,
    ..ASKED
};
/// Hints of SHMEM, in the terms of libfabric before 1.5.
const BASIC: Asked = Asked { caps: FI_RMA | FI_ATOMIC, mr_mode: FI_MR_BASIC, ..ASKED };

fn ask(asked: &Asked) -> Result<*mut Info, i32> {
    environment();
    // SAFETY: zero is valid for every field of these; they live until the call returns.
    unsafe {
        let (mut hints, mut domain): (Info, DomainAttr) = (std::mem::zeroed(), std::mem::zeroed());
        let mut ep: EpAttr = std::mem::zeroed();
        ep.type_ = FI_EP_RDM;
        (domain.mr_mode, domain.mr_key_size) = (asked.mr_mode, asked.mr_key_size);
        (domain.threading, domain.domain) = (asked.threading, asked.domain);
        (hints.caps, hints.mode) = (asked.caps, asked.mode);
        (hints.domain_attr, hints.ep_attr) = (&mut domain, &mut ep);
        let (provider, mut info) = (pathweave_fi::fi_prov_ini(), null_mut());
        let answer = ((*provider).getinfo)(asked.version, ptr::null(), ptr::null(), 0, &hints, &mut info);
        check(answer as isize).map(|_| info)
    }
}

/// Returns the mode of the answer, which must be the only one.
fn mr_mode(asked: &Asked) -> i32 {
    let info = ask(asked).unwrap();
    // SAFETY: a complete answer.
    let mode = unsafe {
        assert!((*info).next.is_null(), "loopback is one link, whatever addresses it has");
        (*(*info).domain_attr).mr_mode
    };
    free_info(info);
    mode
}

#[test]
fn registered_memory_is_named_as_programs_are_ready_for() {
    let kept = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY;
    let cases = [(NIXL, kept), (NIXL_LIST, kept), (NCCL, 0), (MPICH, 0), (OPEN_MPI_MESSAGES, 0)];
    for (asked, answer) in cases.into_iter().chain([(OPEN_MPI_MEMORY, kept), (BASIC, FI_MR_BASIC)]) {
        assert_eq!(mr_mode(&asked), answer, "{:#x} asked for {:#x}", asked.mr_mode, asked.caps);
    }
    // Each bit is kept by itself, and no bit that was not hinted.
    for hinted in [0, FI_MR_VIRT_ADDR, FI_MR_PROV_KEY, FI_MR_LOCAL | FI_MR_RAW] {
        assert_eq!(mr_mode(&Asked { mr_mode: hinted, ..NIXL }), hinted & kept);
    }
    // An application that only writes to others has no memory that peers access.
    assert_eq!(mr_mode(&Asked { caps: FI_RMA | FI_WRITE, ..NIXL }), 0);
    let old = Asked { version: version(1, 4), mr_mode: 0, ..NIXL };
    assert_eq!(mr_mode(&old), FI_MR_SCALABLE);
}

/// Each program requests key 0 for all its regions. Peers reach each region by the key and the address that
/// they were told.
#[test]
fn two_regions_of_key_0_are_two_regions() {
    let answer = mr_mode(&NIXL);
    let options = Options { caps: NIXL.caps, mr_mode: answer, ..Options::default() };
    let pair = Pair::of(Node::with(options, |_| ()), Node::with(options, |_| ()));
    let mut memory = [vec![0u8; 4096], vec![0u8; 4096]];
    let regions = memory.each_mut().map(|bytes| {
        let mr = pair.far.register(slot(bytes), 0, FI_REMOTE_WRITE | FI_REMOTE_READ).unwrap();
        // SAFETY: an open region.
        (mr, unsafe { (*mr).key }, bytes.as_ptr() as u64)
    });
    assert_ne!(regions[0].1, regions[1].1);
    for (index, (_, key, address)) in regions.iter().enumerate() {
        pair.near.write(pair.to_far, *key, address + 7, &[index as u8 + 1; 9], index);
        assert_eq!(pair.near.done().op_context as usize, index);
    }
    for (mr, ..) in regions {
        assert_eq!(close(mr), 0);
    }
    for (index, bytes) in memory.iter().enumerate() {
        assert!(bytes[7..16].iter().all(|byte| *byte == index as u8 + 1) && bytes[16] == 0 && bytes[6] == 0);
    }
}

#[test]
fn an_open_domain_keeps_its_ways() {
    let node = Node::new();
    // The domain was opened without these bits.
    assert_eq!(mr_mode(&Asked { domain: node.domain, ..OPEN_MPI_MEMORY }), 0);
    let options = Options { mr_mode: FI_MR_VIRT_ADDR | FI_MR_PROV_KEY, ..Options::default() };
    let virtual_ = Node::with(options, |_| ());
    let again = Asked { domain: virtual_.domain, ..OPEN_MPI_MEMORY };
    assert_eq!(mr_mode(&again), options.mr_mode);
    let unready = ask(&Asked { mr_mode: FI_MR_PROV_KEY, ..again });
    assert_eq!(unready, Err(FI_ENODATA), "addresses would be taken for offsets");
    // A domain of another provider has other tables.
    // SAFETY: a copy of a domain of this provider.
    let mut foreign = unsafe { ptr::read(node.domain) };
    let ops = foreign.ops;
    // SAFETY: a copy of a table of this provider.
    let mut table = unsafe { ptr::read(ops) };
    foreign.ops = &raw mut table;
    assert_eq!(ask(&Asked { domain: &raw mut foreign, ..OPEN_MPI_MEMORY }), Err(FI_ENODATA));
}

/// Returns the text of a C string.
fn text(of: *mut std::ffi::c_char) -> Option<String> {
    // SAFETY: NULL or a string.
    (!of.is_null()).then(|| unsafe { std::ffi::CStr::from_ptr(of) }.to_string_lossy().into_owned())
}

#[test]
fn loopback_has_a_name_and_a_size_and_claims_no_hardware() {
    let info = getinfo(FI_TAGGED).unwrap();
    // SAFETY: a complete answer, and its hardware.
    unsafe {
        let nic = (*info).nic;
        assert_eq!((*nic).fid.fclass, FI_CLASS_NIC);
        let mut copy: *mut FidNic = null_mut();
        let table = &*(*nic).fid.ops;
        assert_eq!((table.control)((&raw mut (*nic).fid).cast(), FI_DUP, (&raw mut copy).cast()), 0);
        // This is what fi_dupinfo and fi_freeinfo do: the first structure is closed, and the copy is
        // complete.
        assert_eq!(close(nic), 0);
        (*info).nic = copy;
        let (device, bus, link) = (*(*copy).device_attr, *(*copy).bus_attr, *(*copy).link_attr);
        assert_eq!(text(device.name).as_deref(), Some("lo"));
        assert_eq!(
            [device.driver, device.vendor_id, device.device_id, device.firmware].map(text),
            [const { None }; 4]
        );
        assert_eq!((bus.bus_type, link.speed, text(link.address)), (FI_BUS_UNSPEC, 0, None));
        let mtu = std::fs::read_to_string("/sys/class/net/lo/mtu").unwrap();
        assert_eq!((link.mtu, text(link.network_type)), (mtu.trim().parse().unwrap(), None));
        let unknown = ((*(*copy).fid.ops).control)(copy.cast(), FI_ALIAS, null_mut());
        assert_eq!(unknown, -FI_ENOSYS);
    }
    free_info(info);
}
