//! Memory of peers: writes, reads, atomics, keys, counters, and rejected accesses.
#![allow(unsafe_code, reason = "calls C tables")]

mod client;

use std::cell::Cell;
use std::ptr::null_mut;

use client::*;

const ALL: u64 = FI_REMOTE_READ | FI_REMOTE_WRITE;

#[test]
fn writes_and_reads_of_all_sizes() {
    let pair = Pair::new();
    for len in [1, 1_000, 100_000, 3_000_000] {
        let mut target = vec![0; len + 16];
        let mr = pair.far.register(slot(&mut target), 77, ALL).unwrap();
        let sent = pattern(len, 2);
        pair.near.write(pair.to_far, 77, 16, &sent, 1);
        let entry = pair.near.done();
        assert_eq!((entry.op_context as usize, entry.flags), (1, FI_RMA | FI_WRITE));
        let mut back = vec![0; len];
        pair.near.read(pair.to_far, 77, 16, slot(&mut back), 2);
        let entry = pair.near.done();
        assert_eq!((entry.op_context as usize, entry.flags), (2, FI_RMA | FI_READ));
        assert!(back == sent && target[16..] == sent[..] && target[..16] == [0; 16]);
        assert_eq!(close(mr), 0);
    }
}

/// Open MPI 5 opens a domain for tagged messages, and in it also an endpoint for memory.
#[test]
fn memory_is_reached_in_a_domain_that_was_opened_for_messages() {
    let far = Node::with(
        Options { domain_caps: Some(FI_TAGGED | FI_SEND | FI_RECV), ..Options::default() },
        |_| (),
    );
    let near = Node::new();
    let to_far = near.insert(&far.name());
    let (mut target, mut other) = (vec![0; 1_000], vec![0; 1_000]);
    let mr = far.register(slot(&mut target), 5, ALL).unwrap();
    // The same key is used again, as applications without remote memory access do.
    let again = far.register(slot(&mut other), 5, ALL).unwrap();
    let sent = pattern(1_000, 3);
    near.write(to_far, 5, 0, &sent, 1);
    assert_eq!(near.done().op_context as usize, 1);
    assert_eq!(close(again), 0);
    near.write(to_far, 5, 500, &sent[..500], 2);
    assert_eq!(near.done().op_context as usize, 2);
    assert!(target[..500] == sent[..500] && target[500..] == sent[..500] && other == vec![0; 1_000]);
    assert_eq!(close(mr), 0);
    near.write(to_far, 5, 0, &sent, 3);
    assert_eq!(near.failed().err, FI_EACCES);
}

#[test]
fn a_read_sees_what_was_written_before_it() {
    let pair = Pair::new();
    let mut target = vec![0; 8];
    let mr = pair.far.register(slot(&mut target), 1, ALL).unwrap();
    for round in 0u64..300 {
        let sent = round.to_le_bytes();
        let mut back = vec![0; 8];
        pair.near.write(pair.to_far, 1, 0, &sent, 1);
        pair.near.read(pair.to_far, 1, 0, slot(&mut back), 2);
        assert_eq!((pair.near.done().op_context as usize, pair.near.done().op_context as usize), (1, 2));
        assert_eq!(back, sent);
    }
    assert_eq!(close(mr), 0);
}

#[test]
fn what_is_not_allowed_fails_alone() {
    let pair = Pair::new();
    let mut target = vec![0; 100];
    let both = pair.far.register(slot(&mut target), 1, ALL).unwrap();
    let mut read_only_bytes = vec![0; 100];
    let read_only = pair.far.register(slot(&mut read_only_bytes), 2, FI_REMOTE_READ).unwrap();
    let refused = |key, address, len| {
        let bytes = pattern(len, 1);
        pair.near.write(pair.to_far, key, address, &bytes, 5);
        let error = pair.near.failed();
        assert_eq!((error.err, error.op_context as usize), (FI_EACCES, 5), "key {key}, {len} at {address}");
        // The same connection continues.
        pair.near.write(pair.to_far, 1, 0, &bytes[..1], 6);
        assert_eq!(pair.near.done().op_context as usize, 6);
    };
    refused(1, 90, 11);
    refused(1, u64::MAX, 2);
    refused(2, 0, 4);
    refused(999, 0, 4);
    assert_eq!(read_only_bytes, [0; 100]);
    // The same key cannot be used again before it is closed.
    let mut other = vec![0; 50];
    assert_eq!(pair.far.register(slot(&mut other), 1, ALL), Err(FI_ENOKEY));
    assert_eq!(close(both), 0);
    let again = pair.far.register(slot(&mut other), 1, ALL).unwrap();
    target.fill(0xaa);
    refused_key_is_new(&pair, &other);
    assert_eq!(target, [0xaa; 100], "the closed region is not reached");
    assert_eq!((close(again), close(read_only)), (0, 0));
}

/// The key belongs to another region now, which is shorter and elsewhere.
fn refused_key_is_new(pair: &Pair, other: &[u8]) {
    let bytes = pattern(50, 9);
    pair.near.write(pair.to_far, 1, 0, &bytes, 1);
    pair.near.done();
    assert_eq!(other, bytes);
    pair.near.write(pair.to_far, 1, 50, &bytes, 2);
    assert_eq!(pair.near.failed().err, FI_EACCES);
}

#[test]
fn data_comes_with_a_write_when_its_bytes_are_there() {
    let pair = Pair::new();
    let mut target = vec![0; 100_000];
    let mr = pair.far.register(slot(&mut target), 3, ALL).unwrap();
    for len in [10, 100_000] {
        let sent = pattern(len, len as u64);
        // SAFETY: the bytes stay valid until the completion.
        let call = || unsafe {
            let rma = &*(*pair.near.ep).rma;
            (rma.writedata)(
                pair.near.ep.cast(),
                sent.as_ptr().cast(),
                len,
                null_mut(),
                u64::MAX,
                pair.to_far,
                0,
                3,
                7 as *mut _,
            )
        };
        pair.near.retry(call).unwrap();
        let (entry, source) = pair.far.next().unwrap();
        assert!(target[..len] == sent, "the bytes are there at the entry");
        assert_eq!(entry.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
        assert_eq!((entry.data, entry.op_context, source), (u64::MAX, null_mut(), pair.to_near));
        assert_eq!(pair.near.done().op_context as usize, 7);
    }
    assert_eq!(close(mr), 0);
}

fn counter(node: &Node) -> *mut FidCntr {
    let mut counter = null_mut();
    // SAFETY: an open domain; no attribute means the default.
    ok(unsafe { ((*(*node.domain).ops).cntr_open)(node.domain, null_mut(), &mut counter, null_mut()) });
    counter
}

#[test]
fn counters_count_every_operation_injects_too() {
    let (writes, remote) = (Cell::new(null_mut()), Cell::new(null_mut()));
    let near = Node::with(Options { cq_flags: FI_SELECTIVE_COMPLETION, ..Options::default() }, |node| {
        writes.set(counter(node));
        // SAFETY: an open endpoint and a counter.
        unsafe { ok(((*(*node.ep).fid.ops).bind)(node.ep.cast(), writes.get().cast(), FI_WRITE)) };
    });
    let far = Node::with(Options::default(), |node| {
        remote.set(counter(node));
        // SAFETY: as above.
        unsafe { ok(((*(*node.ep).fid.ops).bind)(node.ep.cast(), remote.get().cast(), FI_REMOTE_WRITE)) };
    });
    let pair = Pair::of(near, far);
    let mut target = vec![0; 64];
    let mr = pair.far.register(slot(&mut target), 3, ALL).unwrap();
    let bytes = pattern(64, 1);
    for index in 0..100 {
        if index % 2 == 0 {
            pair.near.write(pair.to_far, 3, 0, &bytes, index);
        } else {
            // SAFETY: the call copies the bytes.
            let call = || unsafe {
                ((*(*pair.near.ep).rma).inject)(
                    pair.near.ep.cast(),
                    bytes.as_ptr().cast(),
                    64,
                    pair.to_far,
                    0,
                    3,
                )
            };
            pair.near.retry(call).unwrap();
        }
    }
    // SAFETY: open counters.
    unsafe {
        assert_eq!(((*(*writes.get()).ops).wait)(writes.get(), 100, 60_000), 0);
        assert_eq!(((*(*remote.get()).ops).wait)(remote.get(), 100, 60_000), 0);
        assert_eq!(((*(*writes.get()).ops).wait)(writes.get(), 101, 50), -FI_ETIMEDOUT);
    }
    assert!(pair.near.is_silent(), "none of them asked for an entry");
    pair.near.write(pair.to_far, 999, 0, &bytes, 1);
    assert_eq!(pair.near.failed().err, FI_EACCES, "errors always make entries");
    // SAFETY: open counters.
    unsafe {
        assert_eq!(((*(*writes.get()).ops).read)(writes.get()), 100);
        assert_eq!(((*(*writes.get()).ops).readerr)(writes.get()), 1);
        assert_eq!(((*(*remote.get()).ops).read)(remote.get()), 100);
    }
    assert_eq!(close(mr), 0);
    let (first, second) = (writes.get(), remote.get());
    assert_eq!((close(first), close(second)), (-FI_EBUSY, -FI_EBUSY), "bound to endpoints");
    let Pair { near, far, .. } = pair;
    // Drop closes the rest. The counters belong to the domain, so they are closed first.
    for (node, counter) in [(near, first), (far, second)] {
        assert_eq!((close(node.ep), close(counter)), (0, 0));
        assert_eq!((close(node.cq), close(node.av), close(node.domain), close(node.fabric)), (0, 0, 0, 0));
        free_info(node.info);
        std::mem::forget(node);
    }
}

#[test]
fn eight_endpoints_add_to_one_word() {
    let target_node = Node::new();
    let mut word = vec![0; 8];
    let mr = target_node.register(slot(&mut word), 5, ALL).unwrap();
    let name = target_node.name();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(move || {
                let node = Node::new();
                let to = node.insert(&name);
                let one = 1u64;
                for _ in 0..500 {
                    // SAFETY: the call copies the operand.
                    let call = || unsafe {
                        ((*(*node.ep).atomic).write)(
                            node.ep.cast(),
                            (&raw const one).cast(),
                            1,
                            null_mut(),
                            to,
                            0,
                            5,
                            FI_UINT64,
                            FI_SUM,
                            null_mut(),
                        )
                    };
                    node.retry(call).unwrap();
                    assert_eq!(node.done().flags, FI_ATOMIC | FI_WRITE);
                }
                let mut old = 0u64;
                let (compare, swap) = (u64::MAX, 0u64);
                // SAFETY: the values stay valid until the completion.
                let call = || unsafe {
                    ((*(*node.ep).atomic).compwrite)(
                        node.ep.cast(),
                        (&raw const swap).cast(),
                        1,
                        null_mut(),
                        (&raw const compare).cast(),
                        null_mut(),
                        (&raw mut old).cast(),
                        null_mut(),
                        to,
                        0,
                        5,
                        FI_UINT64,
                        FI_CSWAP,
                        null_mut(),
                    )
                };
                node.retry(call).unwrap();
                assert_eq!(node.done().flags, FI_ATOMIC | FI_READ);
                assert!((500..=4_000).contains(&old), "{old}");
            });
        }
    });
    assert_eq!(u64::from_le_bytes(word[..].try_into().unwrap()), 4_000);
    assert_eq!(close(mr), 0);
}

#[test]
fn memory_of_this_endpoint_itself() {
    let node = Node::new();
    let to_self = node.insert(&node.name());
    let mut target = vec![0; 5_000];
    let mr = node.register(slot(&mut target), 8, ALL).unwrap();
    let sent = pattern(5_000, 1);
    node.write(to_self, 8, 0, &sent, 1);
    assert_eq!(node.done().op_context as usize, 1);
    let mut back = vec![0; 5_000];
    node.read(to_self, 8, 0, slot(&mut back), 2);
    assert_eq!(node.done().op_context as usize, 2);
    assert!(back == sent);
    assert_eq!(close(mr), 0);
}

#[test]
fn again_in_other_ways() {
    client::again_in_other_ways();
}
